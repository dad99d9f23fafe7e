"""Values of keywords that are certainly valid: types, names, short lists of scalars, small bounds.

The tests are sound but incomplete, as those of `document_inspection`, which uses them.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from ....base.work import spend_work
from ..algebra.fast_checks import SMALL_BOUND
from ..core.json_values import BOOLEAN, NULL, NUMBER, STRING
from ..core.static_types import INTEGER, TYPE_BITS

__all__ = ["has_plain_value", "is_plain_interval", "is_unicode", "read_types", "read_valid_types"]

MOST_DECIMALS = 30
"""Decimals of a number in a plain enum."""
CONSTANT_TYPES = {str: STRING, int: NUMBER | INTEGER, Decimal: NUMBER, bool: BOOLEAN, type(None): NULL}


def read_types(value: Any) -> int:
    """Return the bits of `type`, 0 if it is not valid."""
    if type(value) is str:
        return TYPE_BITS.get(value, 0)
    types = 0
    for name in value if type(value) is list else ():
        bit = TYPE_BITS.get(name) if type(name) is str else None
        if bit is None:
            return 0
        types |= bit
    return types


def read_valid_types(value: Any) -> int:
    """Return the bits of a valid `type`. All numbers include the integers."""
    bits = TYPE_BITS[value] if type(value) is str else read_types(value)
    return bits & ~INTEGER if bits & NUMBER else bits


def is_unicode(names: Any) -> bool:
    """Return whether all names are strings that have a UTF-8 form."""
    try:
        joined = "".join(names)
        return joined.isascii() or bool(joined.encode())
    except (TypeError, UnicodeEncodeError):
        return False


def has_plain_value(values: list[Any], types: int) -> bool:
    """Return whether values are scalars, numbers among them short, and one is certainly of one of the types."""
    spend_work(2 * len(values), "the values of enum")
    kinds = set(map(type, values))
    if not kinds <= CONSTANT_TYPES.keys():
        return False
    if str in kinds and not is_unicode([value for value in values if type(value) is str]):
        return False
    if int in kinds and any(type(value) is int and not -SMALL_BOUND < value < SMALL_BOUND for value in values):
        return False
    if Decimal in kinds and not all(_is_short(value) for value in values if type(value) is Decimal):
        return False
    return any(CONSTANT_TYPES[kind] & types for kind in kinds)


def _is_short(value: Decimal) -> bool:
    exponent = value.as_tuple().exponent
    return type(exponent) is int and exponent > -MOST_DECIMALS and value.copy_abs() < SMALL_BOUND


def is_plain_interval(raw: dict[str, Any]) -> bool:
    """Return whether the bounds are small integers, which then are allowed themselves."""
    low, high = raw.get("minimum", 1 - SMALL_BOUND), raw.get("maximum", SMALL_BOUND - 1)
    return type(low) is int and type(high) is int and -SMALL_BOUND < low <= high < SMALL_BOUND
