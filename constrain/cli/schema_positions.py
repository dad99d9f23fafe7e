"""Where things stand in the text of a schema: the line of every JSON pointer, and keys that are written twice.

`json.loads` keeps neither: of two equal keys the later one wins without a word. So the text is gone through once more,
token by token, after it has been parsed without an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from ..base.json_documents import pointer_token

__all__ = ["Places", "places"]

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')


class Places(NamedTuple):
    """lines: 1-based line of each pointer, that of its key for a member. twice: (pointer, first line, last line) of
    each key that an object has more than once; the last one counts."""

    lines: dict[str, int]
    twice: list[tuple[str, int, int]]


def places(text: str) -> Places:
    """The places in a JSON text that parses."""
    lines: dict[str, int] = {"": 1}
    twice: list[tuple[str, int, int]] = []
    stack: list[tuple[str, set[str] | int]] = []  # pointer of an open bracket; the keys seen, or the number of items
    key: str | None = None
    for word, line in words(text):
        if word == ":" or word == ",":
            if word == "," and stack and isinstance(stack[-1][1], int):
                stack[-1] = (stack[-1][0], stack[-1][1] + 1)
        elif word in "}]":
            stack.pop()
        elif stack and isinstance(stack[-1][1], set) and key is None:
            name = json.loads(word, strict=False)
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
            if word in "{[":
                stack.append((here, set() if word == "{" else 0))
            key = None
    assert not stack
    return Places(lines, twice)


def words(text: str) -> Iterator[tuple[str, int]]:
    """(token, its line)."""
    line, last = 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", last, match.start())
        last = match.start()
        yield match[0], line
