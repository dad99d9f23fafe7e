"""Exact values of JSON numbers."""

from __future__ import annotations

from decimal import Decimal

__all__ = ["parse_finite", "parse_integer"]


def parse_finite(text: str) -> float | Decimal:
    """Return a float, or a Decimal where the float would be infinite."""
    number = float(text)
    return number if abs(number) != float("inf") else Decimal(text)


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
