"""Inspect a text under a constraint: what is accepted, the first illegal byte, what is forced, and where the text is.

Offsets in the result count UTF-16 code units, as JavaScript's strings do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..authoring.explanations import ByteRefusal, describe_expected, refusal_of
from ..base.work import spend_work
from ..engine.constraint import Constraint
from ..engine.matcher import Matcher
from ..engine.position_stack import describe_stack
from ..sampling.core.token_masses import allowed_tokens

__all__ = ["inspect_text"]

BYTE = 1
"""Units of work of a byte that a kernel steps over."""
STEP = 14
"""Units of work of a step of the search for forced runs: two calls of kernels, and some Python."""
MOST_SHOWN = 400
"""Maximum number of characters of forced text that are returned."""
INSPECTION = "the inspection of the text"
JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[][{},:]')


@dataclass(frozen=True, slots=True)
class CodeUnits:
    """Converts byte offsets of a text to offsets in UTF-16. before: int64 [bytes + 1]."""

    before: NDArray[np.int64]

    @classmethod
    def of(cls, data: bytes) -> CodeUnits:
        """Make the table of a text in UTF-8."""
        octets = np.frombuffer(data, np.uint8)
        units = ((octets & 0xC0) != 0x80).astype(np.int64) + (octets >= 0xF0)
        return cls(np.concatenate(([0], np.cumsum(units))))

    def at(self, offset: int) -> int:
        """Return the code units before a byte offset; the beginning of the character if it is inside of one."""
        before = self.before
        while 0 < offset < len(before) - 1 and before[offset] == before[offset + 1]:
            offset -= 1  # the next byte continues a character
        return int(before[offset])


def inspect_text(constraint: Constraint, text: str) -> dict[str, Any]:
    """Return what the page shows of a text, as JSON data.

    accepted: code units before the first illegal one. refusal: None, or where and what; expected: what could stand
    there, or come next. forced_runs: pairs (begin, end) of what could not have been otherwise. forced_next: what must
    follow. path, rules, symbols, readings: the position, see `PositionStack`. allowed_tokens: tokens of the mask.

    Raises
    ------
    LimitError
        If that takes more than the work that the request may spend.
    """
    data = text.encode()
    spend_work(BYTE * len(data), INSPECTION)
    start = constraint.matcher()
    refusal = refusal_of(start, data)
    accepted = data if refusal is None else data[: refusal.offset]
    units, here = CodeUnits.of(data), start.fork()
    if accepted:
        here.advance_bytes(accepted)
    runs = [(units.at(begin), units.at(end)) for begin, end in find_forced_runs(start, accepted)]
    stack = describe_stack(here)
    return {
        "accepted": units.at(len(accepted)), "bytes": len(data),
        "is_complete": refusal is None and here.is_complete, "is_finished": refusal is None and here.is_finished,
        "refusal": None if refusal is None else describe_refusal(refusal),
        "expected": list(describe_expected(here) if refusal is None else refusal.expected),
        "forced_runs": [run for run in runs if run[0] < run[1]],
        "forced_next": here.forced().decode("utf-8", "ignore")[:MOST_SHOWN],
        "path": find_json_path(accepted.decode("utf-8", "ignore")) if shows_json(constraint) else None,
        "rules": list(stack.rules), "symbols": list(stack.symbols), "readings": stack.readings,
        "allowed_tokens": len(allowed_tokens(here.mask())),
        "warnings": list(constraint.schema_warnings),
    }  # fmt: skip


def describe_refusal(refusal: ByteRefusal) -> dict[str, Any]:
    """Return a refusal as JSON data."""
    return {"line": refusal.line, "column": refusal.column, "found": refusal.found}


def find_forced_runs(start: Matcher, data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the byte ranges of an accepted text in which every byte was the only one allowed."""
    matcher, position, begin = start.fork(), 0, None
    while position < len(data):
        spend_work(STEP, INSPECTION)
        length = len(matcher.forced())
        if length and begin is None:
            begin = position
        elif not length and begin is not None:
            yield begin, position
            begin = None
        step = min(length or 1, len(data) - position)
        matcher.advance_bytes(data[position : position + step])
        position += step
    if begin is not None:
        yield begin, len(data)


def shows_json(constraint: Constraint) -> bool:
    """Return whether the texts of a constraint are JSON documents: whether it was made from a schema."""
    form = (constraint.source or {}).get("form")
    return isinstance(form, dict) and form.get("kind") == "SchemaText"


def find_json_path(text: str) -> list[str | int]:
    """Return the keys and indices that lead to where a JSON text ends, which is the beginning of a valid one."""
    path: list[str | int | None] = []  # of each open array its index, of each open object its key, if it has one
    word = ""
    for match in JSON_TOKEN.finditer(text):
        token = match[0]
        if token in "[{":
            path.append(0 if token == "[" else None)
        elif token in "]}":
            path.pop()
        elif token == ",":
            last = path[-1]
            path[-1] = last + 1 if isinstance(last, int) else None
        elif token == ":":
            path[-1] = json.loads(word)
        else:
            word = token
    return [part for part in path if part is not None]
