"""Convert the text that a type's schema allowed to a value of that type: the inverse of `frontends.python_types`.

    to_value(tp, text)      an instance of a Pydantic model, dataclass, NamedTuple, Enum ...; a dict for a TypedDict
    parse_json(text)        plain JSON values, exactly

Pydantic validates its own models and every type that is not handled here. Standard-library types are converted here,
so that they do not require Pydantic. A union takes its first member whose schema accepts the value.
"""

from __future__ import annotations

import collections
import datetime
import json
import math
import operator
import re
import types
from collections.abc import Callable
from dataclasses import MISSING, is_dataclass
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, ForwardRef, Literal, Union, get_args, get_origin
from uuid import UUID

from ..base.errors import LimitError, UnsupportedError, shorten_text
from ..base.json_documents import write_json
from ..base.json_numbers import MOST_DIGITS, parse_decimal, parse_finite, parse_integer
from ..frontends.key_schemas import write_key
from ..frontends.python_types import is_type_adapter, to_key_schema, to_schema
from ..frontends.type_inspection import (
    SETS,
    is_alias,
    is_pydantic,
    is_record,
    is_typeddict,
    key_required,
    list_init_fields,
    list_marks,
    needs_pydantic,
    resolve_alias,
    resolve_hints,
)
from ..validation import InstanceValidator

__all__ = ["is_type", "parse_json", "to_value"]


class Misfit(ValueError):
    """A value does not belong to the type."""


def parse_json(text: str) -> Any:
    """Return the value of a JSON text, exactly.

    Integers may have any length. Numbers with a fraction or exponent are floats, or Decimals if they exceed the range
    of float. NaN and Infinity, which are not JSON, are not expected. Raise LimitError for a text that is nested deeper
    than the interpreter's stack, ValueError for a number whose exponent is too large for Decimal.
    """
    return load_json(text, parse_finite)


def load_json(text: str, parse_float: Callable[[str], Any]) -> Any:
    """Return the value of a JSON text. Raise LimitError if it is nested too deeply."""
    try:
        return json.loads(text, parse_float=parse_float, parse_int=parse_integer)
    except RecursionError:
        raise LimitError(
            "The text is nested deeper than the interpreter's stack, so no value can be made of it.",
            hint="Bound its nesting in the schema, or read `text` by another parser.",
        ) from None


def is_type(schema: object) -> bool:
    """Return whether the value of a schema argument is a Python type, and not a document, JSON text or bool."""
    if isinstance(schema, (dict, str, bytes, bool)) or schema is None:
        return False
    if isinstance(schema, type) or is_type_adapter(schema):
        return True
    return get_origin(schema) is not None or hasattr(schema, "__supertype__")


def to_value(tp: Any, text: str) -> Any:
    """Return the value of type `tp` that the JSON `text` denotes.

    Raises UnsupportedError for a type that is not known, Misfit for a value that is not of the type (the year 0000 is
    none of a date), and any exception of the type's own validation (a Pydantic validator may check more than a schema
    can express).
    """
    if is_pydantic(tp) or is_type_adapter(tp):
        return from_pydantic(tp, text)
    try:
        return convert_value(tp, load_json(text, parse_decimal))
    except Misfit as error:
        raise Misfit(f"it is no {name_of(tp)}: {error}") from error


def from_pydantic(tp: Any, text: str) -> Any:
    """Return a Pydantic model or dataclass, or an instance of any other type that Pydantic knows, from JSON."""
    try:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError
    except ImportError:
        raise UnsupportedError(
            f"no value can be made of type {name_of(tp)}", hint='pip install "constrain-lm[types]"'
        ) from None
    try:
        return (tp if is_type_adapter(tp) else TypeAdapter(tp)).validate_json(text)
    except PydanticUserError as error:
        raise UnsupportedError(f"no value can be made of type {name_of(tp)}: {error.message}") from None


def convert_value(tp: Any, value: Any) -> Any:
    """Convert a parsed JSON value, whose numbers with a point are Decimals, to type `tp`.

    Raise Misfit if it does not fit.
    """
    origin, args = get_origin(tp), get_args(tp)
    if tp is Any or tp is object:
        return to_plain(value)
    if origin is None and tp in SCALARS:
        return SCALARS[tp](value)
    if hasattr(tp, "__supertype__"):
        return convert_value(tp.__supertype__, value)
    if is_alias(tp):
        resolved = resolve_alias(tp)
        if get_origin(resolved) is Annotated and needs_pydantic(get_args(resolved)[1:]):
            return from_pydantic(tp, write_json(value))  # which resolves references of the alias to itself
        return convert_value(resolved, value)
    if origin is Annotated and needs_pydantic(args[1:]):
        return from_pydantic(tp, write_json(value))
    if origin is Annotated:
        return check_marks(convert_value(args[0], value), args[1:])
    if getattr(origin, "__name__", getattr(origin, "_name", "")) in WRAPPERS:
        return convert_value(args[0], value)
    if origin is Literal:
        return pick_literal(args, value)
    if origin is Union or origin is types.UnionType:
        return convert_member(args, value)
    if isinstance(tp, (str, ForwardRef)):
        raise UnsupportedError(f"the forward reference {tp!r} was not resolved", hint="Annotate with the class itself.")
    if is_pydantic(origin):
        return from_pydantic(tp, write_json(value))
    if is_record(origin):
        return convert_record(tp, value)
    if origin is not None and isinstance(origin, type):
        return convert_collection(origin, args, value)
    if isinstance(tp, type):
        return convert_instance(tp, value)
    return from_pydantic(tp, write_json(value))


BOUND_TESTS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "gt": ("above", operator.gt),
    "ge": ("at least", operator.ge),
    "lt": ("below", operator.lt),
    "le": ("at most", operator.le),
}
"""The bounds of `schema_bounds.BOUNDS` that rounding can break, as words and as functions."""


def check_marks(value: Any, marks: tuple[Any, ...]) -> Any:
    """Return a value of an Annotated. Raise Misfit if it breaks a bound, although its text does not.

    A number may be rounded to a float at the bound, and different items of an array may be one item of a set.
    """
    for mark in list_marks(marks):
        if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            for name, (words, is_within) in BOUND_TESTS.items():
                bound = getattr(mark, name, None)
                if bound is not None and not is_within(value, bound):
                    raise Misfit(f"{value} is not {words} {bound}")
        least = getattr(mark, "min_length", None)
        if least is not None and isinstance(value, (set, frozenset, dict)) and len(value) < least:
            raise Misfit(f"{len(value)} different items are fewer than {least}")
    return value


WRAPPERS = ("Required", "NotRequired", "ReadOnly", "ClassVar", "Final")


def to_plain(value: Any) -> Any:
    """Return JSON values as `parse_json` returns them."""
    if isinstance(value, Decimal):
        return parse_finite(str(value))
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    return value


def expect_kind(value: Any, kinds: type | tuple[type, ...], description: str) -> Any:
    """Return `value` if it is one of `kinds` (a bool is not a number). Raise Misfit otherwise."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
        raise Misfit(f"{value!r} is not {description}")
    return value


def expect_whole(value: Any) -> int:
    """Return an integer in the sense of JSON Schema, where 1, 1.0 and 1e2 are integers.

    Raise Misfit if its exponent is above MOST_DIGITS: a short text must not take long.
    """
    number = expect_kind(value, (int, Decimal), "an integer")
    if not isinstance(number, Decimal):
        return int(number)
    if number != number.to_integral_value():
        raise Misfit(f"{value} is not an integer")
    if not number:
        return 0  # with any exponent, which would be written as so many zeros
    if number.adjusted() - len(number.as_tuple().digits) >= MOST_DIGITS:
        raise Misfit(f"{shorten_text(value)} ends in more than {MOST_DIGITS:,} zeros")
    return parse_integer(f"{number:f}".partition(".")[0])  # int(number) takes quadratic time


def expect_float(value: Any) -> float:
    """Return the nearest float. Raise Misfit for a number beyond the largest."""
    try:
        number = float(expect_kind(value, (int, Decimal), "a number"))
    except OverflowError:  # a long integer
        number = math.inf
    if math.isinf(number):
        shown = shorten_text(value) if isinstance(value, Decimal) else "the integer"  # Python writes no long ones
        raise Misfit(f"{shown} is beyond the range of float")
    return number


def text_as(make: Callable[[str], Any], description: str) -> Callable[[Any], Any]:
    """Return a converter that applies `make` to a string and turns its ValueError into Misfit."""

    def read(value: Any) -> Any:
        try:
            return make(expect_kind(value, str, description))
        except Misfit:
            raise
        except (ValueError, ArithmeticError) as error:
            raise Misfit(f"{value!r} is not {description}: {error}") from error

    return read


def parse_instant(text: str) -> datetime.datetime:
    """Return the date and time of an RFC 3339 text."""
    return datetime.datetime.fromisoformat(fit_python(text))


def parse_clock(text: str) -> datetime.time:
    """Return the time of an RFC 3339 text."""
    return datetime.time.fromisoformat(fit_python(text))


def fit_python(text: str) -> str:
    """Return a time as Python 3.10 reads it: without `Z`, and with 6 digits of a fraction; further ones are cut off."""
    text = text[:-1] + "+00:00" if text[-1:] in "Zz" else text
    return re.sub("[.]([0-9]+)", lambda found: "." + found[1][:6].ljust(6, "0"), text)


SCALARS: dict[Any, Callable[[Any], Any]] = {
    str: lambda value: expect_kind(value, str, "a string"),
    bool: lambda value: expect_kind(value, bool, "a boolean"),
    int: expect_whole,
    float: expect_float,
    Decimal: lambda value: Decimal(value if isinstance(value, str) else expect_kind(value, (int, Decimal), "a number")),
    None: lambda value: expect_kind(value, type(None), "null"),
    type(None): lambda value: expect_kind(value, type(None), "null"),
    datetime.date: text_as(datetime.date.fromisoformat, "a date"),
    datetime.datetime: text_as(parse_instant, "a date and time"),
    datetime.time: text_as(parse_clock, "a time"),
    UUID: text_as(UUID, "a UUID"),
    complex: text_as(complex, "a complex number"),
}


def equal_json(a: Any, b: Any) -> bool:
    """Return whether two JSON values are equal: true is not 1, and 1.0 is 1."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(equal_json, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal_json(a[key], b[key]) for key in a)
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, float):
        return bool(a == b) or (isinstance(b, Decimal) and a == float(b))
    return bool(a == b)


def pick_literal(options: tuple[Any, ...], value: Any) -> Any:
    """Return the option of a Literal that equals the value."""
    for option in options:
        if equal_json(option.value if isinstance(option, Enum) else option, value):
            return option
    raise Misfit(f"{value!r} is none of {options}")


def convert_member(options: tuple[Any, ...], value: Any) -> Any:
    """Convert the value to the first member of a union whose schema accepts it, and which does not refuse it.

    Whether a member can be made of a value does not decide: a Pydantic model ignores keys that it does not know.
    """
    refusal: ValueError | None = None
    for option in options:
        try:
            if validator_of(option).check_value(value):
                continue
            return convert_value(option, value)
        except LimitError as error:  # a number that is too long to be judged
            refusal = Misfit(error.cause)
        except ValueError as error:  # pydantic.ValidationError is one
            refusal = error
    raise refusal or Misfit(f"{value!r} matches no member of the union")


def validator_of(tp: Any) -> InstanceValidator:
    """Return the validator of the schema of a type, the same for the same type."""
    try:
        return cached_validator(tp)
    except TypeError:  # not hashable, such as Annotated with a list
        return InstanceValidator(to_schema(tp))


@lru_cache(maxsize=256)
def cached_validator(tp: Any) -> InstanceValidator:
    """Return the validator of the schema of a type that is hashable."""
    return InstanceValidator(to_schema(tp))


def convert_collection(origin: type, args: tuple[Any, ...], value: Any) -> Any:
    """Convert to list[int], tuple[int, str], dict[str, int], Sequence[int], a generic class ..."""
    if issubclass(origin, (dict,)) or origin.__name__ in ("Mapping", "MutableMapping"):
        bare: tuple[Any, ...] = (str, int) if origin is collections.Counter else (str, Any)
        keys, values = args + bare[len(args) :]
        pairs = expect_kind(value, dict, "an object").items()
        make: Any = origin
        converted = {convert_key(keys, key): convert_value(values, item) for key, item in pairs}
        if issubclass(origin, collections.defaultdict):
            factory: Any = get_origin(values) or values
            has_default = getattr(factory, "__module__", "") in ("builtins", "collections")
            return make(factory if has_default else None, converted)
        return converted if origin.__name__ in ("dict", "Mapping", "MutableMapping") else make(converted)
    items = expect_kind(value, list, "an array")
    if origin is tuple:
        if args and args[-1] is not Ellipsis:
            if len(items) != len(args):
                raise Misfit(f"{len(items)} items are not {len(args)}")
            return tuple(map(convert_value, args, items))
        return tuple(convert_value(args[0] if args else Any, item) for item in items)
    made_items = [convert_value(args[0] if args else Any, item) for item in items]
    if origin in SETS:
        try:
            return frozenset(made_items) if origin is frozenset else set(made_items)
        except TypeError as error:  # Any, a union and fields of a frozen class may hold what has no hash.
            raise Misfit(f"an item of a set has no hash: {error}") from error
    if origin.__name__ in ("list", "Sequence", "MutableSequence", "Iterable", "Collection"):
        return made_items
    made_as: Any = origin
    return made_as(made_items)


def convert_key(tp: Any, key: str) -> Any:
    """Convert the key of an object to the key type of a dict, for example an int or a member of an Enum."""
    origin, args = get_origin(tp), get_args(tp)
    if origin is None and tp in KEYS:
        return KEYS[tp](key)
    if hasattr(tp, "__supertype__"):
        return convert_key(tp.__supertype__, key)
    if is_alias(tp):
        return convert_key(resolve_alias(tp), key)
    if origin is Annotated:
        return from_pydantic(tp, json.dumps(key)) if needs_pydantic(args[1:]) else convert_key(args[0], key)
    if origin is Union or origin is types.UnionType:
        fitting = [option for option in args if option not in (None, type(None)) and accepts_key(option, key)]
        if not fitting:
            raise Misfit(f"the key {key!r} matches no member of the union")
        return convert_key(fitting[0], key)
    if origin is Literal or (isinstance(tp, type) and issubclass(tp, Enum) and not is_pydantic(tp)):
        for option in args or tp:
            if write_key(option.value if isinstance(option, Enum) else option) == key:
                return option
        raise Misfit(f"the key {key!r} is no value of {name_of(tp)}")
    if isinstance(tp, type) and issubclass(tp, (int, float)) and not is_pydantic(tp):
        return tp(convert_key(int if issubclass(tp, int) else float, key))
    return convert_value(tp, key)


def accepts_key(tp: Any, key: str) -> bool:
    """Return whether a key denotes a value of a type."""
    return not InstanceValidator(to_key_schema(tp)).check_value(key)


KEYS: dict[Any, Callable[[str], Any]] = {
    bool: lambda key: pick_literal((True, False), {"true": True, "false": False}.get(key, key)),
    int: text_as(parse_integer, "an integer"),
    float: text_as(lambda key: expect_float(parse_decimal(key)), "a number"),
    Decimal: text_as(parse_decimal, "a number"),
}
"""How keys are read that are no texts."""


def convert_instance(tp: type, value: Any) -> Any:
    """Convert to an Enum member, dataclass, NamedTuple, TypedDict, Pydantic model, or bare collection."""
    if is_pydantic(tp):
        return from_pydantic(tp, write_json(value))
    if issubclass(tp, Enum):
        for member in tp:
            if equal_json(member.value, value):
                return member
        raise Misfit(f"{value!r} is not a value of {tp.__name__}")
    if is_record(tp):
        return convert_record(tp, value)
    if tp in (list, tuple, set, frozenset) or issubclass(tp, dict):
        return convert_collection(tp, (), value)
    if issubclass(tp, (str, int, float)):
        return tp(convert_value(next(kind for kind in (str, int, float) if issubclass(tp, kind)), value))
    return from_pydantic(tp, write_json(value))


def convert_record(tp: Any, value: Any) -> Any:
    """Convert an object (for a NamedTuple also an array) to a dataclass, NamedTuple or TypedDict."""
    hints, tp = resolve_hints(tp), get_origin(tp) or tp
    if isinstance(value, list) and hasattr(tp, "_fields"):
        value = dict(zip(tp._fields, value))
    members = expect_kind(value, dict, "an object")
    if is_typeddict(tp):
        missing = {key for key, hint in hints.items() if key_required(tp, key, hint)} - members.keys()
        extra = members.keys() - hints.keys()
    elif is_dataclass(tp):
        known = list_init_fields(tp, hints)
        needed = {n for n, f in known.items() if f.default is MISSING and f.default_factory is MISSING}
        missing, extra = needed - members.keys(), members.keys() - known.keys()
    else:
        missing = set(tp._fields) - set(tp._field_defaults) - members.keys()
        extra = members.keys() - set(tp._fields)
    if missing or extra:
        raise Misfit(f"of {name_of(tp)}, {sorted(missing)} are missing and {sorted(extra)} unknown")
    converted = {key: convert_value(hints.get(key, Any), item) for key, item in members.items()}
    return converted if is_typeddict(tp) else tp(**converted)


def name_of(tp: Any) -> str:
    """Return the name of a type for a message."""
    if get_origin(tp) is not None:  # `Annotated[int, ...]` has the name of Annotated
        return repr(tp)
    return getattr(tp, "__qualname__", None) or repr(tp)
