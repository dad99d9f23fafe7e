"""JSON texts as values with exact numbers."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

__all__ = ["MOST_EXPONENT", "NotJson", "Real", "TooLarge", "canonical", "parse"]

MOST_EXPONENT = 20_000
"""Maximum decimal exponent of a fraction; larger ones would take megabytes."""

NUMBER = re.compile(r"(-?[0-9]+)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?")


class NotJson(ValueError):
    """The text is not JSON, or an object in it has a key twice."""


class TooLarge(ValueError):
    """A number whose exact value is too large."""


class Real(Fraction):
    """A number with a fraction or an exponent in its text: never an integer in draft 4."""

    __slots__ = ()


def parse(text: str | bytes) -> Any:
    """Return the value of a JSON text; integers are Fraction, other numbers Real. Raises NotJson, TooLarge."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return json.loads(
            text, parse_int=_integer, parse_float=_real, parse_constant=_constant, object_pairs_hook=_object
        )
    except TooLarge:
        raise
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from None


def canonical(value: Any) -> Any:
    """Return a hashable value: equal for equal JSON values, different for different ones (`true` is not 1)."""
    if isinstance(value, bool) or value is None:
        return ("constant", value)
    if isinstance(value, (int, float, Fraction)):
        return ("number", Fraction(value))
    if isinstance(value, str):
        return ("string", value)
    if isinstance(value, list):
        return ("array", tuple(map(canonical, value)))
    return ("object", frozenset((key, canonical(item)) for key, item in value.items()))


def _integer(text: str) -> Fraction:
    if len(text) > MOST_EXPONENT:
        raise TooLarge(text[:40])
    return Fraction(_decimal(text))


def _real(text: str) -> Real:
    match = NUMBER.fullmatch(text)
    if match is None:
        raise NotJson(text[:40])
    whole, fraction, exponent = match[1], match[2] or "", match[3] or "0"
    if len(text) > MOST_EXPONENT or len(exponent) > 6 or abs(int(exponent)) > MOST_EXPONENT:
        raise TooLarge(text[:40])
    shift = int(exponent) - len(fraction)
    value = Fraction(_decimal(whole + fraction)) * Fraction(10) ** shift
    return Real(value.numerator, value.denominator)


def _decimal(digits: str) -> int:
    """Parse an integer without the limit of 4,300 digits of `int`."""
    value = 0
    sign, digits = (-1, digits[1:]) if digits.startswith("-") else (1, digits)
    for at in range(0, len(digits), 4_000):
        part = digits[at : at + 4_000]
        value = value * 10 ** len(part) + int(part)
    return sign * value


def _constant(name: str) -> Any:
    raise NotJson(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise NotJson("a key occurs twice")
    return out
