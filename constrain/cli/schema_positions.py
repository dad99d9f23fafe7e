"""Source positions in the text of a schema: the line of every JSON pointer, and duplicate keys.

`json.loads` keeps neither: of two equal keys the last one silently wins. So the text is scanned once more, token by
token, after it has been parsed without an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from ..base.json_documents import pointer_token

__all__ = ["SchemaPositions", "find_positions"]

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')


class SchemaPositions(NamedTuple):
    """Positions in the text of a schema.

    lines: 1-based line of each pointer; for a member, that of its key. twice: (pointer, first line, last line) of each
    key that occurs more than once in an object; the last one is effective.
    """

    lines: dict[str, int]
    twice: list[tuple[str, int, int]]


def find_positions(text: str) -> SchemaPositions:
    """Return the positions in a valid JSON text."""
    lines: dict[str, int] = {"": 1}
    twice: list[tuple[str, int, int]] = []
    stack: list[tuple[str, set[str] | int]] = []  # pointer of an open bracket; its keys, or number of items
    key: str | None = None
    for token, line in scan_tokens(text):
        if token == ":" or token == ",":
            if token == "," and stack and isinstance(stack[-1][1], int):
                stack[-1] = (stack[-1][0], stack[-1][1] + 1)
        elif token in "}]":
            stack.pop()
        elif stack and isinstance(stack[-1][1], set) and key is None:
            name = json.loads(token, strict=False)
            pointer, seen = f"{stack[-1][0]}/{pointer_token(name)}", stack[-1][1]
            if name in seen:
                twice.append((pointer, lines[pointer], line))
            seen.add(name)
            lines[pointer] = line
            key = pointer
        else:
            here = key if key is not None else f"{stack[-1][0]}/{stack[-1][1]}" if stack else ""
            if key is None:
                lines[here] = line
            if token in "{[":
                stack.append((here, set() if token == "{" else 0))
            key = None
    assert not stack
    return SchemaPositions(lines, twice)


def scan_tokens(text: str) -> Iterator[tuple[str, int]]:
    """Yield each token with its line."""
    line, last = 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", last, match.start())
        last = match.start()
        yield match[0], line
