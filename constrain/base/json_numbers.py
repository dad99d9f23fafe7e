"""Exact values of JSON numbers."""

from __future__ import annotations

import sys
from decimal import Decimal, InvalidOperation

__all__ = [
    "MOST_DIGITS",
    "ExactFloat",
    "parse_decimal",
    "parse_exact_float",
    "parse_exact_integer",
    "parse_finite",
    "parse_integer",
]

MOST_DIGITS = 4096
"""Most digits of a number of a schema before the decimal point, and after it.

Exact arithmetic on longer numbers takes quadratic time, and `int` refuses more than 4,300.
"""


class ExactFloat(float):
    """A number of a JSON text that no float has: the nearest finite float, for code that computes with floats.

    `exact` is the number itself, for schemas (see `json_documents.plain_document`).
    """

    __slots__ = ("exact",)

    exact: Decimal

    @classmethod
    def of(cls, exact: Decimal) -> ExactFloat:
        """Return an exact number as a float."""
        largest = sys.float_info.max
        made = cls(min(max(float(exact), -largest), largest))
        made.exact = exact
        return made


def parse_exact_float(text: str) -> float:
    """Return a number with a fraction or an exponent, as an ExactFloat unless a float, as Python writes it, equals it.

    Raise ValueError if its exponent is too large for Decimal.
    """
    number, exact = float(text), parse_decimal(text)
    is_equal = abs(number) != float("inf") and Decimal(repr(number)) == exact
    return number if is_equal else ExactFloat.of(exact)


def parse_decimal(text: str) -> Decimal:
    """Return a number exactly. Raise ValueError if its exponent is too large for Decimal."""
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"the exponent of {text[:20]} is too large") from None


def parse_exact_integer(text: str) -> float:
    """Return an int, or an ExactFloat if it has more than MOST_DIGITS digits."""
    return int(text) if len(text) <= MOST_DIGITS else ExactFloat.of(Decimal(text))


def parse_finite(text: str) -> float | Decimal:
    """Return a float, or a Decimal where the float would be infinite. Raises ValueError as `parse_decimal`."""
    number = float(text)
    return number if abs(number) != float("inf") else parse_decimal(text)


def parse_integer(text: str) -> int:
    """Return an int of any length; `int` itself refuses more than 4,300 digits by default."""
    try:
        return int(text)
    except ValueError:
        sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
        value = 0
        for start in range(0, len(digits), 4000):
            part = digits[start : start + 4000]
            value = value * 10 ** len(part) + int(part)
        return sign * value
