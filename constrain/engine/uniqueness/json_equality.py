"""Hashable JSON values that are equal exactly if JSON Schema (2020-12 core, section 4.2.2) says so.

1 equals 1.0 but not true, strings are compared by their characters and not by their escapes, and the members of an
object have no order. The texts are written by a model, so an exponent may have any size: a number is represented by its
digits and an exponent, not by a rational as the constants of a schema are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Union

__all__ = ["ObjectValue", "ArrayValue", "NumberValue", "Value", "BooleanValue", "parse_number", "parse_value"]


class NumberValue(NamedTuple):
    """A number: sign * int(digits) * 10 ** exponent.

    `digits` has no zeros at either end, and is empty for zero, whose sign is +.
    """

    negative: bool
    digits: str
    exponent: int


@dataclass(frozen=True, slots=True)
class ArrayValue:
    """An array."""

    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ObjectValue:
    """An object."""

    members: frozenset[tuple[str, Any]]


class BooleanValue(NamedTuple):
    """true or false, in a separate type because True == 1 in Python."""

    truth: bool


Value = Union[None, BooleanValue, str, NumberValue, ArrayValue, ObjectValue]


def _parse_integer(text: str) -> int:
    """Return a decimal integer of any length, 0 for "". `int` accepts at most 4,300 digits at a time."""
    digits, value = text.lstrip("+-"), 0
    for start in range(0, len(digits), 4000):
        part = digits[start : start + 4000]
        value = value * 10 ** len(part) + int(part)
    return -value if text.startswith("-") else value


def parse_number(text: str) -> NumberValue:
    """Return the value of a JSON number."""
    mantissa, _, exponent = text.lower().partition("e")
    integer, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (integer + fraction).lstrip("0")
    stripped = digits.rstrip("0")
    if not stripped:
        return NumberValue(False, "", 0)
    return NumberValue(text[0] == "-", stripped, _parse_integer(exponent) - len(fraction) + len(digits) - len(stripped))


def _freeze(value: Any) -> Any:
    """Return a hashable value for what the decoder returns for a value other than an object or a number."""
    if isinstance(value, bool):
        return BooleanValue(value)
    if isinstance(value, list):
        return ArrayValue(tuple(map(_freeze, value)))
    return value


def _make_object(pairs: list[tuple[str, Any]]) -> ObjectValue:
    """Return the object with these members."""
    return ObjectValue(frozenset((name, _freeze(value)) for name, value in pairs))


_DECODER = json.JSONDecoder(
    object_pairs_hook=_make_object, parse_int=parse_number, parse_float=parse_number, strict=False
)  # fmt: skip


@lru_cache(1024)
def parse_value(text: bytes) -> Value:
    """Return the value of a JSON text."""
    value: Value = _freeze(_DECODER.decode(text.decode("utf-8", "surrogatepass")))
    return value
