"""A row, answered: `RowRunner` holds an Engine and turns rows into lines of the output.

    {"id": "a7", "text": "{\\"age\\": 3}", "value": {"age": 3}, "finish_reason": "complete", "tokens": 5}
    {"id": "b1", "outputs": [{"text": ..., "finish_reason": ..., "tokens": ...}, ...]}          of a row with n
    {"id": "c2", "error": {"type": "SchemaError", "message": "..."}}

`value` is there where the constraint is a schema or a type; it has the text's own spelling of numbers. Lines hold no
times and no log-probabilities, so that equal answers are equal lines.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any, NamedTuple

from ..base.errors import ConstrainError
from ..generation.generation_result import Generation
from ..generation.inference_engine import Engine
from .job_options import JobOptions
from .job_rows import JobRow, describe_error

__all__ = ["RowResult", "RowRunner", "run_rows"]


class RowResult(NamedTuple):
    """A finished row.

    line: of the output, without the line break. tokens, compile_us, mask_us: what its texts took; times in
    microseconds, that of the masks in parallel to the model.
    """

    number: int
    line: str
    is_error: bool
    tokens: int = 0
    compile_us: float = 0.0
    mask_us: float = 0.0


class RowRunner:
    """An Engine that answers rows. Raises ConstrainError if the model cannot be loaded."""

    def __init__(self, options: JobOptions) -> None:
        dtype = "float64" if options.arithmetic == "reproducible" else None
        self.engine = Engine(options.model, slots=options.slots, dtype=dtype)
        self.reported_ns = 0

    async def run_row(self, row: JobRow) -> RowResult:
        """Return the result of a row. What its fields are to blame for is an error in it; other exceptions, such as
        those of a lost device, are raised.
        """
        if row.error is not None:
            return make_error(row, *row.error)
        try:
            made = await self.engine.agenerate(row.prompt, **row.arguments)
        except (ConstrainError, TypeError, ValueError, RecursionError) as error:
            return make_error(row, *describe_error(error))
        return make_result(row, made)

    def take_model_us(self) -> float:
        """Return the microseconds that the model ran since the last call, masks that overlap with it included."""
        scheduler = self.engine.scheduler
        total = scheduler.step_ns - scheduler.outside_ns
        found, self.reported_ns = (total - self.reported_ns) / 1e3, total
        return found

    def close(self) -> None:
        """Close the Engine."""
        self.engine.close()


async def run_rows(rows: Iterable[JobRow], runner: RowRunner, window: int) -> AsyncGenerator[RowResult, None]:
    """Yield the results of rows in their order, while up to `window` rows are in work. Rows are read as needed."""
    pending: deque[asyncio.Task[RowResult]] = deque()
    try:
        for row in rows:
            pending.append(asyncio.create_task(runner.run_row(row)))
            if len(pending) >= window:
                yield await pending[0]
                pending.popleft()
        while pending:
            yield await pending[0]
            pending.popleft()
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)


def make_result(row: JobRow, made: Generation[Any] | Sequence[Generation[Any]]) -> RowResult:
    """Return the result of a row that was answered."""
    texts = [made] if isinstance(made, Generation) else list(made)
    outputs = [write_output(one, row.is_json) for one in texts]
    body = outputs[0] if isinstance(made, Generation) else f'"outputs": [{", ".join(f"{{{one}}}" for one in outputs)}]'
    line = f'{{"id": {json.dumps(row.id, ensure_ascii=False)}, {body}}}'
    stats = [one.stats for one in texts]
    return RowResult(
        row.number, line, False, sum(one.tokens for one in stats), max((one.compile_us for one in stats), default=0.0),
        sum(one.mask_us * one.tokens for one in stats),
    )  # fmt: skip


def write_output(made: Generation[Any], is_json: bool) -> str:
    """Return the members of the JSON object of a text, without the braces."""
    members = {"text": made.text, "finish_reason": made.finish_reason, "tokens": made.stats.tokens}
    if made.stop is not None:
        members["stop"] = made.stop
    written = {name: json.dumps(value, ensure_ascii=False) for name, value in members.items()}
    if is_json and made.finish_reason != "length":  # a line break in JSON is white space between tokens
        written["value"] = made.text.replace("\r", " ").replace("\n", " ")
    order = ("text", "value", "finish_reason", "stop", "tokens")
    return ", ".join(f'"{name}": {written[name]}' for name in order if name in written)


def make_error(row: JobRow, kind: str, message: str) -> RowResult:
    """Return the result of a row that cannot be answered."""
    body = {"type": kind, "message": message}
    return RowResult(row.number, json.dumps({"id": row.id, "error": body}, ensure_ascii=False), True)
