"""Texts of `constrain generate` as they end: on a terminal under headings, in a pipe as plain lines.

Answers go to stdout. How they ended goes to stderr, and so does a count while further ones are being written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from decimal import Decimal
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rich.status import Status
from rich.text import Text

from ..base.json_documents import parse_json
from . import display
from .answer_statistics import print_ending, print_total

if TYPE_CHECKING:
    from ..decoding.events import FinishEvent
    from ..decoding.generation_loop import Piece
    from ..generation.generation_result import Generation

__all__ = ["AnswerPrinter", "generation_json", "stream_pieces"]

ORIGINS = {"drawn": "", "forced": "dim", "closing": "yellow"}
"""Style of a token while it is streamed: drawn by itself, found in a draft of forced text, or written to complete the
text."""
HEADING_COLUMNS = 40


class AnswerPrinter:
    """Prints texts as they end, and keeps them.

    Parameters
    ----------
    prompts, count : int
        Number of prompts, and of texts for each.
    output : {"text", "json"}
        "json": texts are only kept, for one document at the end.

    Attributes
    ----------
    kept : list of (int, int, Generation)
        The texts that ended, each with the numbers of its prompt and sample, in the order in which they ended.
    """

    def __init__(self, prompts: int, count: int, output: str = "text") -> None:
        self.prompts, self.count, self.output = prompts, count, output
        self.kept: list[tuple[int, int, Generation[Any]]] = []
        self.start = perf_counter()
        self.status: Status | None = None
        if sys.stderr.isatty():
            self.status = display.message_console().status(Text(self.describe()))

    @property
    def total(self) -> int:
        """Number of all texts."""
        return self.prompts * self.count

    @property
    def generations(self) -> list[Generation[Any]]:
        """The texts that ended, in the order of prompts and samples."""
        return [one for *_, one in sorted(self.kept, key=lambda item: item[:2])]

    def describe(self) -> str:
        """Return what is being done, for the line on stderr."""
        done = f"{len(self.kept)} of {self.total} texts …"
        return "writing …" if self.total == 1 else f"writing: {done} (Ctrl-C keeps them)"

    def __enter__(self) -> AnswerPrinter:
        if self.status is not None:
            self.status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.status is not None:
            self.status.stop()

    def take_event(self, event: FinishEvent) -> None:
        """Print the text of an event."""
        self.take(event.prompt, event.sample, event.generation)

    def take_all(self, results: Iterable[Generation[Any] | list[Generation[Any]]]) -> None:
        """Print the results of each prompt."""
        for prompt, texts in enumerate(results):
            for sample, one in enumerate(texts if isinstance(texts, list) else [texts]):
                self.take(prompt, sample, one)

    def take(self, prompt: int, sample: int, generation: Generation[Any]) -> None:
        """Keep a text, and print it unless there is one document at the end."""
        self.kept.append((prompt, sample, generation))
        if self.output == "json":
            if self.status is not None:
                self.status.update(Text(self.describe()))
            return
        if self.status is not None:  # a line that is redrawn must not mix with the text
            self.status.stop()
        is_listed = self.total > 1 and sys.stdout.isatty()
        if is_listed:
            self.print_heading(prompt)
        print(generation.text, flush=True)
        if self.total == 1 or is_listed:
            print_ending(generation)
        if self.status is not None and len(self.kept) < self.total:
            self.status.update(Text(self.describe()))
            self.status.start()

    def print_heading(self, prompt: int) -> None:
        """Print the line above one of several texts."""
        of_prompt = f"prompt {prompt + 1} · " if self.prompts > 1 else ""
        heading = f"── {of_prompt}text {len(self.kept)} of {self.total} "
        display.print_answer((heading.ljust(HEADING_COLUMNS, "─"), "dim"))

    def print_end(self) -> None:
        """Print a line about all texts, if there are several."""
        if self.total > 1 and self.output == "text":
            print_total(self.generations, perf_counter() - self.start)

    def print_interruption(self) -> None:
        """Print a line that says how many texts there are after Ctrl-C."""
        kept = "the text was not finished" if self.total == 1 else f"{len(self.kept)} of {self.total} texts are kept"
        display.print_note(("interrupted: ", "bold yellow"), kept)


def stream_pieces() -> Callable[[Piece], None]:
    """Return a function that prints pieces as they arrive."""
    out = display.answer_console()

    def stream(piece: Piece) -> None:
        out.print(
            display.replace_controls(piece.text), style=ORIGINS[piece.origin], end="", markup=False, soft_wrap=True
        )
        sys.stdout.flush()

    return stream


def generation_json(generation: Generation[Any]) -> dict[str, Any]:
    """Return a Generation as JSON data; the value of a Python type as the JSON that it was made of."""
    value = generation.value if is_json(generation.value) else parse_json(generation.text)
    return {
        "text": generation.text, "value": value, "finish_reason": generation.finish_reason,
        "stop": generation.stop, "tokens": list(generation.tokens), "logprob": generation.logprob,
        "log_weight": generation.log_weight,
        "stats": asdict(generation.stats),
    }  # fmt: skip


def is_json(value: Any) -> bool:
    """Return whether a value consists of what JSON has, and so is not, and does not hold, an object of a type."""
    if isinstance(value, dict):
        return all(is_json(item) for item in value.values())
    if isinstance(value, list):
        return all(map(is_json, value))
    return value is None or type(value) in (str, int, float, bool, Decimal)
