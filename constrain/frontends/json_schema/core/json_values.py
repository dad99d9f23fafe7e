"""Exact JSON values: numbers are rationals, so 1 == 1.0, but 1 is not true.

A *constant* is a JSON value in a hashable form in which exactly the values are equal that JSON Schema calls equal:
`(NULL,)`, `(BOOLEAN, bool)`, `(NUMBER, Fraction)`, `(STRING, str)`, `(ARRAY, (constant, ...))`, `(OBJECT, ((name,
constant), ...))` with sorted names.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from operator import itemgetter
from typing import Any

from ....base.errors import LimitError, SchemaError, UnsupportedError
from ....base.json_documents import LONG, MOST_DIGITS, kind_of, number_too_long

__all__ = [
    "ARRAY",
    "BOOLEAN",
    "NULL",
    "NUMBER",
    "OBJECT",
    "STRING",
    "Constant",
    "to_constant",
    "parse_rational",
    "check_text",
]

NULL, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT = 1, 2, 4, 8, 16, 32
"""The JSON types, as bits of a mask."""

Constant = tuple[Any, ...]

MOST_LEVELS = 1_000
"""Most levels of lists and objects in one constant, whatever `Limits.nesting` says: tuples are hashed recursively."""


def parse_rational(value: Any, pointer: str) -> Fraction:
    """Return the exact value of a JSON number.

    A float denotes its shortest decimal, as it was most likely written. Raise SchemaError if it is not a number,
    LimitError if it has more than `MOST_DIGITS` digits before or after the point.
    """
    kind = type(value)
    if kind is not int and (kind is bool or not isinstance(value, (int, float, Decimal))):
        raise SchemaError(f"A number is expected here, not {kind_of(value)}.", pointer=pointer)
    if isinstance(value, int):
        if not -LONG < value < LONG:
            raise number_too_long(pointer)
        return Fraction(value)
    decimal = Decimal(repr(float(value))) if isinstance(value, float) else value
    if not decimal.is_finite():
        raise SchemaError("NaN and infinity are not JSON numbers.", pointer=pointer)
    if not decimal:
        return Fraction(0)
    exponent = decimal.as_tuple().exponent
    assert isinstance(exponent, int)
    if decimal.adjusted() >= MOST_DIGITS or exponent < -2 * MOST_DIGITS:
        raise number_too_long(pointer)
    exact = Fraction(*decimal.as_integer_ratio())
    if exact.denominator > LONG:
        raise number_too_long(pointer)
    return exact


def to_constant(value: Any, pointer: str) -> Constant:
    """Return the hashable form of a JSON value. Raise SchemaError if it is not one."""
    kind = type(value)  # The usual types first: a schema may list many values.
    if kind is str and value.isascii():
        return (STRING, value)
    if kind is int or kind is Decimal or kind is float:
        return (NUMBER, parse_rational(value, pointer))
    if value is None:
        return (NULL,)
    if isinstance(value, bool):
        return (BOOLEAN, value)
    if isinstance(value, str):
        return (STRING, check_text(value, pointer))
    if isinstance(value, (int, float, Decimal)):
        return (NUMBER, parse_rational(value, pointer))
    if isinstance(value, (list, tuple, dict)):
        return _nested_constant(value, pointer)
    raise SchemaError(f"A JSON value is expected here, not {kind_of(value)}.", pointer=pointer)


def _nested_constant(value: Any, pointer: str) -> Constant:
    """Return the hashable form of a list or object, from the innermost out, without recursion."""
    stack: list[tuple[list[str] | None, Iterator[Any], list[Constant]]] = []
    opened = value
    while True:
        if len(stack) >= MOST_LEVELS:
            raise LimitError(
                f"A constant of more than {MOST_LEVELS:,} levels of lists and objects.", pointer=pointer,
                hint="Nest it less deeply.",
            )  # fmt: skip
        is_object = isinstance(opened, dict)
        names = [check_text(name, pointer) for name in opened] if is_object else None
        stack.append((names, iter(opened.values() if is_object else opened), []))
        opened = None
        while opened is None:
            names, values, made = stack[-1]
            for item in values:
                if isinstance(item, (dict, list, tuple)):
                    opened = item
                    break
                made.append(to_constant(item, pointer))
            else:
                done: Constant
                if names is None:
                    done = (ARRAY, tuple(made))
                else:
                    done = (OBJECT, tuple(sorted(zip(names, made), key=itemgetter(0))))
                stack.pop()
                if not stack:
                    return done
                stack[-1][2].append(done)


def check_text(value: Any, pointer: str) -> str:
    """Return a string that has a UTF-8 form. Raise UnsupportedError for half of a surrogate pair."""
    if not isinstance(value, str):
        raise SchemaError(f"A key of an object must be a string, not {kind_of(value)}.", pointer=pointer)
    if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        raise UnsupportedError("A lone surrogate cannot be written as UTF-8.", pointer=pointer)
    return value
