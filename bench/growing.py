"""Schemas with one growing number, each with a text whose length depends on it, for `bench scaling`.

ROWS[name].make(size)   Grown(schema, text), both as JSON text; text: up to LENGTH members, the last value, ...
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["ROWS", "SIZES", "Grown", "Row"]

SIZES = (10, 100, 1_000, 10_000, 100_000)
LENGTH = 200
"""Characters of a string, members of an array: as many as the size allows, up to this."""
KEYS = 50
SYLLABLES = ("ba", "ke", "lo", "mi", "nu", "ra", "so", "ti", "zu", "fen", "gar", "hol", "wex")
PROSE = "It takes a while to write so long a string, and every word of it counts towards its greatest length. "


class Grown(NamedTuple):
    """A schema and an instance of it, or a prefix of one."""

    schema: str
    text: str


@dataclass(frozen=True)
class Row:
    """A kind of growth. constant: whether the length of the schema is. whole: whether the text is a whole instance."""

    make: Callable[[int], Grown]
    constant: bool
    whole: bool = True


def build_grown(schema: Any, value: Any) -> Grown:
    return Grown(json.dumps(schema), json.dumps(value))


def grow_max_length(size: int) -> Grown:
    return build_grown({"type": "string", "maxLength": size}, (PROSE * 3)[: min(size, LENGTH)])


def grow_max_items(size: int) -> Grown:
    schema = {"type": "array", "items": {"type": "integer"}, "maxItems": size}
    return build_grown(schema, [37 * number % 1_000 for number in range(min(size, LENGTH))])


def grow_min_items(size: int) -> Grown:
    """Grow minItems; the text is a prefix of the array if that would be too long."""
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": size}
    text = json.dumps([37 * number % 1_000 for number in range(min(size, LENGTH))])
    return Grown(json.dumps(schema), text if size <= LENGTH else text[:-1])


def spell_number(number: int) -> str:
    """Return a different word for each number, made of syllables, so that many have a common prefix."""
    parts = []
    left = number + 13 * 13
    while left:
        left, part = divmod(left, len(SYLLABLES))
        parts.append(SYLLABLES[part])
    return " ".join(("".join(parts[:2]), "".join(parts[2:])))


def grow_enum(size: int) -> Grown:
    """Grow an enum; the text is an array of some of its values, with the last one."""
    words = [spell_number(number) for number in range(size)]
    schema = {"type": "array", "items": {"enum": words}}
    return build_grown(
        schema, [words[(number + 1) * size // KEYS - 1] for number in range(KEYS)] if size >= KEYS else words
    )


def grow_optional_keys(size: int) -> Grown:
    """Grow the number of optional keys; the text has up to KEYS of them, with the last one."""
    names = [spell_number(number) for number in range(size)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "additionalProperties": False,
    }
    chosen = [names[(number + 1) * size // KEYS - 1] for number in range(KEYS)] if size >= KEYS else names
    return build_grown(schema, {name: number for number, name in enumerate(chosen)})


def grow_depth(size: int) -> Grown:
    """Grow the depth of the text, with a recursive schema."""
    schema = {"type": "array", "items": {"$ref": "#"}, "maxItems": 3}
    return Grown(json.dumps(schema), "[" * size + "]" * size)


ROWS = {
    "maxLength": Row(grow_max_length, constant=True),
    "maxItems": Row(grow_max_items, constant=True),
    "minItems": Row(grow_min_items, constant=True, whole=False),
    "enum values": Row(grow_enum, constant=False),
    "optional keys": Row(grow_optional_keys, constant=False),
    "depth of the text": Row(grow_depth, constant=True),
}
