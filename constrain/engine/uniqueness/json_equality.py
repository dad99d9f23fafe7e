"""JSON values by what they are (JSON Schema 2020-12 core, 4.2.2): equal exactly if JSON Schema says so.

1 is 1.0 but not true, a string is its characters however they are spelled, an object has no order. A model
writes these texts: an exponent may be of any size, so a number is its digits and an exponent, never a rational as the
constants of a schema are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Union

__all__ = ["ObjectValue", "ArrayValue", "NumberValue", "Value", "BooleanValue", "parse_number", "parse_value"]


class NumberValue(NamedTuple):
    """sign * int(digits) * 10 ** exponent, digits without zeros at either end ("" for zero, whose sign is +)."""

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
    """true or false: of its own type, since Python takes True for 1."""

    truth: bool


Value = Union[None, BooleanValue, str, NumberValue, ArrayValue, ObjectValue]


def _integer(text: str) -> int:
    """A decimal integer of any length ("": 0); `int` takes 4,300 digits at once."""
    digits, value = text.lstrip("+-"), 0
    for start in range(0, len(digits), 4000):
        part = digits[start : start + 4000]
        value = value * 10 ** len(part) + int(part)
    return -value if text.startswith("-") else value


def parse_number(text: str) -> NumberValue:
    """The value of a JSON number."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    stripped = digits.rstrip("0")
    if not stripped:
        return NumberValue(False, "", 0)
    return NumberValue(text[0] == "-", stripped, _integer(exponent) - len(fraction) + len(digits) - len(stripped))


def _frozen(value: Any) -> Any:
    if isinstance(value, bool):
        return BooleanValue(value)
    if isinstance(value, list):
        return ArrayValue(tuple(map(_frozen, value)))
    return value


def _fields(pairs: list[tuple[str, Any]]) -> ObjectValue:
    return ObjectValue(frozenset((name, _frozen(value)) for name, value in pairs))


_DECODER = json.JSONDecoder(
    object_pairs_hook=_fields, parse_int=parse_number, parse_float=parse_number, strict=False
)  # fmt: skip


@lru_cache(1024)
def parse_value(text: bytes) -> Value:
    """The value of a JSON text."""
    value: Value = _frozen(_DECODER.decode(text.decode("utf-8", "surrogatepass")))
    return value
