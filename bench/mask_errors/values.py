"""A JSON value whose numbers keep their spelling: `null`, bool, str, list, dict, and `Number`.

Values are judged as decimals, never as floats, so that 0.1 is a tenth. An exponent beyond MOST is reduced to about MOST
with its last digits unchanged: all bounds and multiples of a schema are far below, and distinct numbers stay distinct.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Union

__all__ = [
    "Number",
    "DuplicateKey",
    "Value",
    "decode_json",
    "parse_fraction",
    "has_surrogate",
    "build_number",
    "parse_exactly",
]

MOST = 20_000
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Number:
    """A number by its text."""

    text: str

    @property
    def value(self) -> Fraction:
        """Return the value as a fraction."""
        return parse_fraction(self.text)


Value = Union[None, bool, str, Number, list[Any], dict[str, Any]]


def parse_fraction(text: str) -> Fraction:
    """Return the value of a decimal."""
    mantissa, e, exponent = text.lower().partition("e")
    if e and len(exponent.lstrip("+-0")) > 4:
        power = int(exponent.lstrip("+-0")[-3:]) + MOST
        text = f"{mantissa}e{'-' if exponent[0] == '-' else ''}{power}"
    return Fraction(text)


def build_number(value: Fraction) -> Number:
    """Return the shortest decimal without an exponent."""
    sign, value = "-" if value < 0 else "", abs(value)
    scale = 0
    while (value * 10**scale).denominator > 1:
        scale += 1
    digits = str(int(value * 10**scale)).rjust(scale + 1, "0")
    return Number(sign + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits))


class DuplicateKey(Exception):
    """A key occurs twice in an object."""


def refuse_constant(name: str) -> Any:
    """Reject NaN and Infinity, which Python's parser accepts."""
    raise ValueError(f"{name} is not JSON")


def reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise DuplicateKey
    return found


def parse_exactly(text: str) -> Value:
    """Return the value of a JSON text. Raises ValueError, and DuplicateKey for a key that occurs twice."""
    value: Value = json.loads(
        text, parse_int=Number, parse_float=Number, parse_constant=refuse_constant, object_pairs_hook=reject_duplicates
    )
    return value


def has_surrogate(value: Value) -> bool:
    """Return whether a string in a value has a lone surrogate, which can be escaped but is not a character."""
    if isinstance(value, str):
        return SURROGATE.search(value) is not None
    if isinstance(value, dict):
        return any(map(has_surrogate, value)) or any(map(has_surrogate, value.values()))
    return isinstance(value, list) and any(map(has_surrogate, value))


def decode_json(text: str, *, exact: bool) -> Any:
    """Return the value for jsonschema. Numbers that are not plain integers are floats, or Fractions if exact."""
    return json.loads(text, parse_float=parse_fraction if exact else None, parse_constant=refuse_constant)
