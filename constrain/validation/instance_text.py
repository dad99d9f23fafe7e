"""The text of an instance: read exactly, with the faults that no value has, and with positions for violations."""

from __future__ import annotations

import json
from dataclasses import replace

from ..base.errors import SchemaError, describe_value
from ..base.json_documents import parse_json
from ..base.options import Limits
from ..base.work import spend_work
from ..frontends.json_schema.core.json_values import OBJECT
from .instance_tree import InstanceItem, build_tree
from .message_words import show_text
from .text_positions import TextLines, ValuePositions, count_members, find_positions, find_repeated_keys, find_token
from .violations import Violation

__all__ = ["InstanceText", "InvalidText"]

CONSTANTS = ("NaN", "Infinity", "-Infinity")
AT_KEY = frozenset(("additionalProperties", "unevaluatedProperties", "properties", "patternProperties"))
"""Keywords whose violations by a member that is not allowed are at the key of the member."""
CHARACTERS = 64
"""Characters of a text for each unit of work."""


class InvalidText(Exception):
    """A text that is no JSON text of one value. violations: why, with an empty keyword."""

    def __init__(self, *violations: Violation) -> None:
        super().__init__(*map(str, violations))
        self.violations = violations


class InstanceText:
    """A JSON text, its items, and where each begins.

    Raise InvalidText if it is not JSON in UTF-8, contains half of a surrogate pair, or repeats a key in an object;
    TypeError if it is neither str nor bytes; LimitError if it is nested too deeply.
    """

    def __init__(self, text: str | bytes, limits: Limits) -> None:
        self.text = decode_text(text)
        spend_work(len(self.text) // CHARACTERS, "the reading of an instance")
        self.lines = TextLines(self.text)
        self._positions: ValuePositions | None = None
        try:
            value = parse_json(self.text, limits)
        except SchemaError as error:
            position = error.position
            if position is None:
                position = find_token(self.text, CONSTANTS.__contains__)
            message = error.cause.removeprefix("Not JSON: ").removesuffix(".")
            raise self._invalid(f"not JSON: {message}", position) from None
        if "\\u" in self.text or not is_encodable(self.text):
            position = find_token(self.text, is_broken_string)
            if position is not None:
                raise self._invalid("a text contains half of a surrogate pair, which is not a character", position)
        self.items: list[InstanceItem] = build_tree(value)
        if count_members(self.text) != sum(len(item.value) for item in self.items if item.kind == OBJECT):
            raise InvalidText(*(
                Violation(f"the key {show_text(one.name)} is repeated", "", one.pointer, "",
                          *self.lines.locate(one.position))
                for one in find_repeated_keys(self.text)
            ))  # fmt: skip

    def _invalid(self, message: str, position: int | None) -> InvalidText:
        line, column = self.lines.locate(min(position or 0, len(self.text)))
        return InvalidText(Violation(message, "", "", "", line, column))

    def place(self, violation: Violation, item: InstanceItem) -> Violation:
        """Return the violation with its line and column."""
        if self._positions is None:
            self._positions = find_positions(self.text)
        index = item.index if item.index >= 0 else -1 - item.index
        position, key = self._positions.values[index], self._positions.keys[index]
        if key >= 0 and (item.is_name or violation.keyword in AT_KEY):
            position = key
        line, column = self.lines.locate(position)
        return replace(violation, line=line, column=column)


def decode_text(text: str | bytes) -> str:
    """Return a text as str. Raise InvalidText if it is not UTF-8, TypeError if it is no text."""
    if isinstance(text, str):
        return text
    if not isinstance(text, (bytes, bytearray)):
        raise TypeError(f"text is {describe_value(text)}: give JSON text, as str or bytes")
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        before = bytes(text)[: error.start].decode("utf-8")
        line, column = TextLines(before).locate(len(before))
        message = f"not JSON: the byte 0x{text[error.start]:02x} is not UTF-8"
        raise InvalidText(Violation(message, "", "", "", line, column)) from None


def is_encodable(text: str) -> bool:
    """Return whether a text has a UTF-8 form."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_broken_string(token: str) -> bool:
    """Return whether a token is a string with half of a surrogate pair."""
    return token.startswith('"') and not is_encodable(json.loads(token, strict=False))
