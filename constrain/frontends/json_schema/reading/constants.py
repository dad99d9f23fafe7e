"""JSON values exactly: numbers as rationals, so that 1 == 1.0 but 1 is not true; and JSON text with exact numbers.

A *constant* is a JSON value in a hashable form in which equal values (as JSON Schema means it) are equal:
`(NULL,)`, `(BOOLEAN, bool)`, `(NUMBER, Fraction)`, `(STRING, str)`, `(ARRAY, (constant, ...))`,
`(OBJECT, ((name, constant), ...))` with sorted names.
"""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from operator import itemgetter
from typing import Any

from ....errors import LimitError, SchemaError, UnsupportedError

__all__ = [
    "ARRAY", "BOOLEAN", "NULL", "NUMBER", "OBJECT", "STRING", "Constant", "constant", "parse_json", "rational", "token",
]  # fmt: skip

NULL, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT = 1, 2, 4, 8, 16, 32
"""The JSON types, as bits of a mask."""

Constant = tuple[Any, ...]

MOST_EXPONENT = 4096
"""Largest power of ten in a schema's number: beyond it an exact rational would need unreasonable memory."""


def rational(value: Any, pointer: str) -> Fraction:
    """The exact value of a JSON number; a float stands for its shortest decimal, as it was most likely written."""
    kind = type(value)
    if kind is int:
        return Fraction(value)
    if kind is not Decimal and (kind is bool or not isinstance(value, (int, float, Decimal))):
        raise SchemaError(f"A number is expected here, not {kind_of(value)}.", pointer=pointer)
    if isinstance(value, int):
        return Fraction(value)
    decimal = Decimal(repr(value)) if isinstance(value, float) else value
    if not decimal.is_finite():
        raise SchemaError("NaN and infinity are not JSON numbers.", pointer=pointer)
    if decimal and abs(decimal.adjusted()) > MOST_EXPONENT:
        raise LimitError(f"A number beyond 10^±{MOST_EXPONENT}.", pointer=pointer, hint="Write a smaller number.")
    return Fraction(*decimal.as_integer_ratio())


def constant(value: Any, pointer: str) -> Constant:
    """The hashable form of a JSON value."""
    kind = type(value)  # The usual types first: a schema may list many values.
    if kind is str and value.isascii():
        return (STRING, value)
    if kind is int or kind is Decimal or kind is float:
        return (NUMBER, rational(value, pointer))
    if kind is dict:
        pairs = [(text(name, pointer), constant(item, pointer)) for name, item in value.items()]
        pairs.sort(key=itemgetter(0))
        return (OBJECT, tuple(pairs))
    if value is None:
        return (NULL,)
    if isinstance(value, bool):
        return (BOOLEAN, value)
    if isinstance(value, str):
        return (STRING, text(value, pointer))
    if isinstance(value, (int, float, Decimal)):
        return (NUMBER, rational(value, pointer))
    if isinstance(value, (list, tuple)):
        return (ARRAY, tuple(constant(item, pointer) for item in value))
    if isinstance(value, dict):
        return constant(dict(value), pointer)
    raise SchemaError(f"A JSON value is expected here, not a Python {type(value).__name__}.", pointer=pointer)


def text(value: Any, pointer: str) -> str:
    """A string that has a UTF-8 form."""
    if not isinstance(value, str):
        raise SchemaError(f"A key of an object must be a string, not {kind_of(value)}.", pointer=pointer)
    if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        raise UnsupportedError("A lone surrogate cannot be written as UTF-8.", pointer=pointer)
    return value


def token(name: str | int) -> str:
    """A reference token of a JSON pointer (RFC 6901)."""
    if isinstance(name, int):
        return str(name)
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name


def kind_of(value: Any) -> str:
    """The JSON type of a value, for messages."""
    if value is None:
        return "null"
    for types, name in (
        (bool, "a boolean"), (str, "a string"), ((int, float, Decimal), "a number"),
        ((list, tuple), "an array"), (dict, "an object"),
    ):  # fmt: skip
        if isinstance(value, types):  # type: ignore[arg-type]
            return name
    return f"a Python {type(value).__name__}"


def parse_json(source: str) -> Any:
    """A JSON document whose numbers keep all their digits. Of two equal keys the later one counts, as in `json`.

    SchemaError with line and column where the text is not JSON.
    """
    try:
        return DECODER.decode(source)
    except json.JSONDecodeError as error:
        raise SchemaError(f"Not JSON: {error.msg}.", source=source, position=error.pos) from None
    except RecursionError:
        raise LimitError("The JSON text is nested too deeply.", hint="Use $ref to flatten it.") from None
    except ValueError as error:
        raise SchemaError(f"Not JSON: {error}.") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse_constant)
