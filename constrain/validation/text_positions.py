"""Positions in the text of an instance: where each value and each key begins, in the order of the items of its tree."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NamedTuple

from ..base.json_documents import pointer_token
from ..base.work import spend_work

__all__ = [
    "RepeatedKey",
    "TextLines",
    "ValuePositions",
    "count_members",
    "find_positions",
    "find_repeated_keys",
    "find_token",
]

STRING = r'"(?:[^"\\]|\\.)*"'
TOKEN = re.compile(STRING + r"|[{}\[\]:,]|[^\s{}\[\]:,\"]+", re.S)
STRINGS = re.compile(STRING, re.S)


class ValuePositions(NamedTuple):
    """Offsets by the index of an item: of its value, and of its key (-1 for items of arrays and the root)."""

    values: list[int]
    keys: list[int]


class RepeatedKey(NamedTuple):
    """A key that its object has already: the pointer of the member, the name, the offset."""

    pointer: str
    name: str
    position: int


class TextLines:
    """The lines of a text, for any number of positions."""

    def __init__(self, text: str) -> None:
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def locate(self, position: int) -> tuple[int, int]:
        """Return line and column of an offset, both 1-based."""
        line = bisect_right(self.starts, position)
        return line, position - self.starts[line - 1] + 1


def find_token(text: str, accepts: Callable[[str], bool]) -> int | None:
    """Return the offset of the first token of a JSON text that the predicate accepts."""
    return next((match.start() for match in TOKEN.finditer(text) if accepts(match[0])), None)


def count_members(text: str) -> int:
    """Return the number of members of all objects of a valid JSON text, repeated ones included."""
    return STRINGS.sub("", text).count(":")


def find_positions(text: str) -> ValuePositions:
    """Return the positions of all values of a valid JSON text."""
    values: list[int] = []
    keys: list[int] = []
    key = -1
    stack: list[bool] = []  # whether each open bracket is an object, whose next string may be a key
    expects_key = False
    for match in TOKEN.finditer(text):
        token = match[0]
        if token == ",":
            expects_key = stack[-1]
        elif token in "}]":
            stack.pop()
            expects_key = False
        elif token == ":":
            expects_key = False
        elif expects_key:
            key = match.start()
        else:
            values.append(match.start())
            keys.append(key)
            key = -1
            if token in "{[":
                stack.append(token == "{")
                expects_key = token == "{"
    return ValuePositions(values, keys)


def find_repeated_keys(text: str) -> list[RepeatedKey]:
    """Return the keys of a valid JSON text that their objects have already."""
    found: list[RepeatedKey] = []
    stack: list[Bracket] = []
    expects_key = False
    for match in TOKEN.finditer(text):
        token = match[0]
        if token == ",":
            inside = stack[-1]
            expects_key = inside.names is not None
            if inside.names is None:
                inside.step += 1
        elif token in "}]":
            stack.pop()
            expects_key = False
        elif token == ":":
            expects_key = False
        elif expects_key:
            inside = stack[-1]
            inside.step = name = json.loads(token, strict=False)
            assert inside.names is not None
            if name in inside.names:
                pointer = "".join(f"/{pointer_token(bracket.step)}" for bracket in stack)
                spend_work(1 + (len(pointer) >> 6), "the report of repeated keys")
                found.append(RepeatedKey(pointer, name, match.start()))
            inside.names.add(name)
        elif token in "{[":
            stack.append(Bracket(set() if token == "{" else None))
            expects_key = token == "{"
    return found


class Bracket:
    """An open bracket. names: the keys so far, None in an array. step: the current key or index."""

    __slots__ = ("names", "step")

    def __init__(self, names: set[str] | None) -> None:
        self.names = names
        self.step: Any = 0
