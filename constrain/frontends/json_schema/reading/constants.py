"""JSON values exactly: numbers as rationals, so that 1 == 1.0 but 1 is not true; and JSON text with exact numbers.

A *constant* is a JSON value in a hashable form in which equal values (as JSON Schema means it) are equal:
`(NULL,)`, `(BOOLEAN, bool)`, `(NUMBER, Fraction)`, `(STRING, str)`, `(ARRAY, (constant, ...))`,
`(OBJECT, ((name, constant), ...))` with sorted names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from operator import itemgetter
from typing import Any

from ....errors import LimitError, SchemaError, UnsupportedError, shorten
from ....style import Limits

__all__ = [
    "ARRAY", "BOOLEAN", "NULL", "NUMBER", "OBJECT", "STRING", "Constant", "constant", "echo", "kind_of", "parse_json",
    "rational", "token",
]  # fmt: skip

NULL, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT = 1, 2, 4, 8, 16, 32
"""The JSON types, as bits of a mask."""

Constant = tuple[Any, ...]

MOST_DIGITS = 4096
"""Most digits before the point, and behind it, of a schema's number. Exact arithmetic on longer ones is quadratic."""
LONG = 10**MOST_DIGITS
MOST_LEVELS = 1_000
"""Most levels of lists and objects in one constant, whatever `Limits.nesting` says: CPython hashes tuples recursively."""
ZERO = re.compile(r"-?0(?:\.0+)?[eE]")


def rational(value: Any, pointer: str) -> Fraction:
    """Return the exact value of a JSON number.

    A float stands for its shortest decimal, as it was most likely written. Raise SchemaError if it is no number,
    LimitError if it has more than `MOST_DIGITS` digits before or behind the point.
    """
    kind = type(value)
    if kind is not int and (kind is bool or not isinstance(value, (int, float, Decimal))):
        raise SchemaError(f"A number is expected here, not {kind_of(value)}.", pointer=pointer)
    if isinstance(value, int):
        if not -LONG < value < LONG:
            raise too_long(pointer)
        return Fraction(value)
    decimal = Decimal(repr(float(value))) if isinstance(value, float) else value
    if not decimal.is_finite():
        raise SchemaError("NaN and infinity are not JSON numbers.", pointer=pointer)
    if not decimal:
        return Fraction(0)
    exponent = decimal.as_tuple().exponent
    assert isinstance(exponent, int)
    if decimal.adjusted() >= MOST_DIGITS or exponent < -2 * MOST_DIGITS:
        raise too_long(pointer)
    exact = Fraction(*decimal.as_integer_ratio())
    if exact.denominator > LONG:
        raise too_long(pointer)
    return exact


def too_long(pointer: str | None) -> LimitError:
    """Return the error for a number with too many digits."""
    return LimitError(
        f"A number of more than {MOST_DIGITS:,} digits before or behind its point (beyond 10^±{MOST_DIGITS}).",
        pointer=pointer,
        hint="Write a shorter number.",
    )


def constant(value: Any, pointer: str) -> Constant:
    """Return the hashable form of a JSON value. Raise SchemaError if it is none."""
    kind = type(value)  # The usual types first: a schema may list many values.
    if kind is str and value.isascii():
        return (STRING, value)
    if kind is int or kind is Decimal or kind is float:
        return (NUMBER, rational(value, pointer))
    if value is None:
        return (NULL,)
    if isinstance(value, bool):
        return (BOOLEAN, value)
    if isinstance(value, str):
        return (STRING, text(value, pointer))
    if isinstance(value, (int, float, Decimal)):
        return (NUMBER, rational(value, pointer))
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
        names = [text(name, pointer) for name in opened] if is_object else None
        stack.append((names, iter(opened.values() if is_object else opened), []))
        opened = None
        while opened is None:
            names, values, made = stack[-1]
            for item in values:
                if isinstance(item, (dict, list, tuple)):
                    opened = item
                    break
                made.append(constant(item, pointer))
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


def text(value: Any, pointer: str) -> str:
    """Return a string that has a UTF-8 form. Raise UnsupportedError for half of a surrogate pair."""
    if not isinstance(value, str):
        raise SchemaError(f"A key of an object must be a string, not {kind_of(value)}.", pointer=pointer)
    if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        raise UnsupportedError("A lone surrogate cannot be written as UTF-8.", pointer=pointer)
    return value


def token(name: str | int) -> str:
    """Return a reference token of a JSON pointer (RFC 6901)."""
    if isinstance(name, int):
        return str(name)
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name


def kind_of(value: Any) -> str:
    """Return the JSON type of a value, for messages."""
    if value is None:
        return "null"
    for types, name in (
        (bool, "a boolean"), (str, "a string"), ((int, float, Decimal), "a number"),
        ((list, tuple), "an array"), (dict, "an object"),
    ):  # fmt: skip
        if isinstance(value, types):  # type: ignore[arg-type]
            return name
    return f"a Python {shorten(type(value).__name__)}"


def echo(value: Any) -> str:
    """Return a value for a message: a short one as Python writes it, of any other what it is."""
    if isinstance(value, str):
        return repr(shorten(value))
    if isinstance(value, int) and not isinstance(value, bool) and not -LONG < value < LONG:
        return "a number of many digits"
    if value is None or isinstance(value, (bool, int, float)):
        return shorten(repr(value))
    return shorten(str(value)) if isinstance(value, Decimal) else kind_of(value)


def parse_json(source: str, limits: Limits = Limits()) -> Any:
    """Parse a JSON document, keeping all digits of its numbers. Of two equal keys the later one counts.

    Integers of many digits come as Decimal, too. Raise SchemaError with line and column where the text is not JSON
    (NaN and Infinity are not), LimitError if it is nested deeper than `Limits.nesting`.
    """
    check_levels(source, limits)
    try:
        return DECODER.decode(source)
    except json.JSONDecodeError as error:
        raise SchemaError(f"Not JSON: {error.msg}.", source=source, position=error.pos) from None
    except RecursionError:
        raise LimitError("The JSON text is nested deeper than the interpreter's stack.", hint=FLATTEN) from None
    except ValueError as error:
        raise SchemaError(f"Not JSON: {error}.") from None


FLATTEN = "Use $ref to flatten it, or raise Limits(nesting=...)."
BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*\\?(?:"|\Z)|[\[\]{}]', re.S)
"""A string, also one that does not end, so that none is looked at twice; or a bracket."""


def check_levels(source: str, limits: Limits) -> None:
    """Raise LimitError if a JSON text has more levels of lists and objects than `Limits.nesting`; it need not parse."""
    if source.count("[") + source.count("{") <= limits.nesting:
        return
    level = 0
    for match in BRACKET.finditer(source):
        char = source[match.start()]
        if char in "[{":
            level += 1
            if level > limits.nesting:
                raise LimitError(
                    f"The JSON text has more than Limits.nesting = {limits.nesting:,} levels of lists and objects.",
                    source=source, position=match.start(), hint=FLATTEN,
                )  # fmt: skip
        elif char != '"':
            level -= 1


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _whole(digits: str) -> int | Decimal:
    """An integer; a long one as Decimal, which is read in linear time and without CPython's limit of 4,300 digits."""
    return int(digits) if len(digits) <= MOST_DIGITS else Decimal(digits)


def _fraction(digits: str) -> Decimal:
    try:
        return Decimal(digits)
    except InvalidOperation:  # An exponent that Decimal does not hold.
        if ZERO.match(digits):
            return Decimal(0)
        raise too_long(None) from None


DECODER = json.JSONDecoder(parse_float=_fraction, parse_int=_whole, parse_constant=_refuse_constant)
