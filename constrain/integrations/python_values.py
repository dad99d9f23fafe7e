"""From the text that a type's schema allowed back to a value of that type: the inverse of `frontends.python_types`.

    to_value(tp, text)      an instance of a Pydantic model, dataclass, NamedTuple, Enum ...; a dict for a TypedDict
    parse_json(text)        plain JSON values, exactly

Pydantic models validate themselves, from the text, and so does every type that is not known here. What is of the
standard library is done here, so that it needs no Pydantic. A union takes its first member that the value fits.
"""

from __future__ import annotations

import datetime
import json
import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, ForwardRef, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from ..base.errors import UnsupportedError

__all__ = ["is_type", "parse_json", "to_value"]


class Misfit(ValueError):
    """A value is none of this type."""


def parse_json(text: str) -> Any:
    """The value of a JSON text: integers of any length; numbers with a fraction or exponent as float, or as Decimal
    where they are beyond what a float can hold. NaN and Infinity are not JSON and do not get here."""
    return json.loads(text, parse_float=parse_finite, parse_int=parse_integer)


def parse_finite(text: str) -> float | Decimal:
    """A float, or a Decimal where that would be infinite."""
    number = float(text)
    return number if abs(number) != float("inf") else Decimal(text)


def parse_integer(text: str) -> int:
    """An int of any length: Python itself stops at some 4,300 digits."""
    try:
        return int(text)
    except ValueError:
        sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
        value = 0
        for start in range(0, len(digits), 4000):
            part = digits[start : start + 4000]
            value = value * 10 ** len(part) + int(part)
        return sign * value


def is_type(schema: object) -> bool:
    """Whether what was given as a schema is a Python type, and not a document, JSON text or bool."""
    if isinstance(schema, (dict, str, bytes, bool)) or schema is None:
        return False
    return isinstance(schema, type) or get_origin(schema) is not None or hasattr(schema, "__supertype__")


def to_value(tp: Any, text: str) -> Any:
    """The value of type `tp` that the JSON `text` spells. Raises UnsupportedError for a type it does not know, and
    what the type's own validation raises (a Pydantic validator may ask for more than any schema says)."""
    if is_pydantic(tp):
        return from_pydantic(tp, text)
    try:
        return convert_value(tp, json.loads(text, parse_float=Decimal, parse_int=parse_integer))
    except Misfit as error:
        raise UnsupportedError(f"the text satisfies the schema of {name_of(tp)}, yet {error}") from error


def is_pydantic(tp: Any) -> bool:
    """Whether a class validates itself through Pydantic."""
    return isinstance(tp, type) and hasattr(tp, "__pydantic_validator__")


def from_pydantic(tp: Any, text: str) -> Any:
    """A Pydantic model or dataclass, or any other type that Pydantic knows, from JSON."""
    try:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError
    except ImportError:
        raise UnsupportedError(f"no value can be made of type {name_of(tp)}", hint="pip install pydantic") from None
    try:
        return TypeAdapter(tp).validate_json(text)
    except PydanticUserError as error:
        raise UnsupportedError(f"no value can be made of type {name_of(tp)}: {error.message}") from None


def convert_value(tp: Any, value: Any) -> Any:
    """`value`, as JSON gives it (numbers with a point as Decimal), as a `tp`; Misfit if it is none."""
    origin, args = get_origin(tp), get_args(tp)
    if tp is Any or tp is object:
        return to_plain(value)
    if tp in SCALARS:
        return SCALARS[tp](value)
    if hasattr(tp, "__supertype__"):
        return convert_value(tp.__supertype__, value)
    if type(tp).__name__ == "TypeAliasType":
        return convert_value(tp.__value__, value)
    if origin is Annotated or getattr(origin, "__name__", getattr(origin, "_name", "")) in WRAPPERS:
        return convert_value(args[0], value)
    if origin is Literal:
        return pick_literal(args, value)
    if origin is Union or origin is types.UnionType:
        return first_fit(args, value)
    if isinstance(tp, (str, ForwardRef)):
        raise UnsupportedError(f"the forward reference {tp!r} was not resolved", hint="Annotate with the class itself.")
    if origin is not None and isinstance(origin, type):
        return convert_collection(origin, args, value)
    if isinstance(tp, type):
        return convert_instance(tp, value)
    return from_pydantic(tp, json.dumps(value, default=float))


WRAPPERS = ("Required", "NotRequired", "ReadOnly", "ClassVar", "Final")


def to_plain(value: Any) -> Any:
    """JSON values as `parse_json` gives them."""
    if isinstance(value, Decimal):
        return parse_finite(str(value))
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    return value


def expect_kind(value: Any, kinds: type | tuple[type, ...], what: str) -> Any:
    """`value` if it is one of `kinds` (a bool is no number)."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
        raise Misfit(f"{value!r} is not {what}")
    return value


def expect_whole(value: Any) -> int:
    """1, 1.0 and 1e2 are integers to JSON Schema."""
    number = expect_kind(value, (int, Decimal), "an integer")
    if number != number.to_integral_value() if isinstance(number, Decimal) else False:
        raise Misfit(f"{value} is not an integer")
    return int(number)


def text_as(make: Callable[[str], Any], what: str) -> Callable[[Any], Any]:
    """What `make` gives of a string, a ValueError of it being a Misfit."""

    def read(value: Any) -> Any:
        try:
            return make(expect_kind(value, str, what))
        except Misfit:
            raise
        except ValueError as error:
            raise Misfit(f"{value!r} is not {what}: {error}") from error

    return read


def parse_instant(text: str) -> datetime.datetime:
    """RFC 3339, of which Python 3.10 does not read `Z`."""
    return datetime.datetime.fromisoformat(text[:-1] + "+00:00" if text[-1:] in "Zz" else text)


def parse_clock(text: str) -> datetime.time:
    """The time of RFC 3339."""
    return datetime.time.fromisoformat(text[:-1] + "+00:00" if text[-1:] in "Zz" else text)


SCALARS: dict[Any, Callable[[Any], Any]] = {
    str: lambda value: expect_kind(value, str, "a string"),
    bool: lambda value: expect_kind(value, bool, "a boolean"),
    int: expect_whole,
    float: lambda value: float(expect_kind(value, (int, Decimal), "a number")),
    Decimal: lambda value: Decimal(value if isinstance(value, str) else expect_kind(value, (int, Decimal), "a number")),
    None: lambda value: expect_kind(value, type(None), "null"),
    type(None): lambda value: expect_kind(value, type(None), "null"),
    datetime.date: text_as(datetime.date.fromisoformat, "a date"),
    datetime.datetime: text_as(parse_instant, "a date and time"),
    datetime.time: text_as(parse_clock, "a time"),
    UUID: text_as(UUID, "a UUID"),
}


def equal_json(a: Any, b: Any) -> bool:
    """Equality of JSON: true is not 1, and 1.0 is 1."""
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
    """The one of a Literal's options that is spelled so."""
    for option in options:
        if equal_json(option.value if isinstance(option, Enum) else option, value):
            return option
    raise Misfit(f"{value!r} is none of {options}")


def first_fit(options: tuple[Any, ...], value: Any) -> Any:
    """The value as the first member of a union that it fits."""
    for option in options:
        try:
            return convert_value(option, value)
        except (Misfit, TypeError) as error:
            last: Exception = error
        except ValueError as error:  # pydantic.ValidationError is one
            last = error
    raise Misfit(f"it fits no member of the union; the last said: {last}")


def convert_collection(origin: type, args: tuple[Any, ...], value: Any) -> Any:
    """list[int], tuple[int, str], dict[str, int], Sequence[int], a generic class ..."""
    if is_dataclass(origin) or is_typeddict(origin) or is_pydantic(origin):
        return convert_instance(origin, value)
    if issubclass(origin, (dict,)) or origin.__name__ in ("Mapping", "MutableMapping"):
        keys, values = args if len(args) == 2 else (str, Any)
        pairs = expect_kind(value, dict, "an object").items()
        made = {convert_key(keys, key): convert_value(values, item) for key, item in pairs}
        return made if origin.__name__ in ("dict", "Mapping", "MutableMapping") else origin(made)
    items = expect_kind(value, list, "an array")
    if origin is tuple:
        if args and args[-1] is not Ellipsis:
            if len(items) != len(args):
                raise Misfit(f"{len(items)} items are not {len(args)}")
            return tuple(map(convert_value, args, items))
        return tuple(convert_value(args[0] if args else Any, item) for item in items)
    made_items = [convert_value(args[0] if args else Any, item) for item in items]
    kinds: dict[str, Callable[[list[Any]], Any]] = {"Set": set, "MutableSet": set, "set": set, "frozenset": frozenset}
    if origin.__name__ in ("list", "Sequence", "MutableSequence", "Iterable", "Collection"):
        return made_items
    return kinds.get(origin.__name__, origin)(made_items)


def convert_key(tp: Any, key: str) -> Any:
    """Keys are strings in JSON; a dict may want them as numbers or members of an Enum."""
    if tp is int:
        return int(key)
    return convert_value(tp, key)


def convert_instance(tp: type, value: Any) -> Any:
    """An Enum member, dataclass, NamedTuple, TypedDict, Pydantic model, or bare collection."""
    if is_pydantic(tp):
        return from_pydantic(tp, json.dumps(value, default=float))
    if issubclass(tp, Enum):
        for member in tp:
            if equal_json(member.value, value):
                return member
        raise Misfit(f"{value!r} is no value of {tp.__name__}")
    if is_typeddict(tp) or is_dataclass(tp) or hasattr(tp, "_fields"):
        return convert_record(tp, value)
    if tp in (list, tuple, set, frozenset, dict):
        return convert_collection(tp, (), value)
    if issubclass(tp, (str, int, float)):
        return tp(convert_value(next(kind for kind in (str, int, float) if issubclass(tp, kind)), value))
    return from_pydantic(tp, json.dumps(value, default=float))


def convert_record(tp: Any, value: Any) -> Any:
    """A dataclass, NamedTuple or TypedDict from an object (a NamedTuple also from an array)."""
    hints = get_type_hints(tp, include_extras=True)
    if isinstance(value, list) and hasattr(tp, "_fields"):
        value = dict(zip(tp._fields, value))
    members = expect_kind(value, dict, "an object")
    if is_typeddict(tp):
        missing = {key for key, hint in hints.items() if key_required(tp, key, hint)} - members.keys()
        extra: set[str] = set()
    elif is_dataclass(tp):
        known = {f.name: f for f in fields(tp) if f.init}
        needed = {n for n, f in known.items() if f.default is MISSING and f.default_factory is MISSING}
        missing, extra = needed - members.keys(), members.keys() - known.keys()
    else:
        missing = set(tp._fields) - set(tp._field_defaults) - members.keys()
        extra = members.keys() - set(tp._fields)
    if missing or extra:
        raise Misfit(f"of {name_of(tp)}, {sorted(missing)} are missing and {sorted(extra)} unknown")
    made = {key: convert_value(hints.get(key, Any), item) for key, item in members.items()}
    return made if is_typeddict(tp) else tp(**made)


def is_typeddict(tp: Any) -> bool:
    """Whether a class is a TypedDict, of `typing` or of `typing_extensions` (which are not the same)."""
    return isinstance(tp, type) and issubclass(tp, dict) and hasattr(tp, "__required_keys__")


def key_required(tp: Any, key: str, hint: Any) -> bool:
    """Whether a TypedDict requires a key. Its own set does not see marks that were written as text, as all are under
    `from __future__ import annotations`; the hints do."""
    marks = {getattr(get_origin(hint), "__name__", getattr(get_origin(hint), "_name", ""))}
    if marks & {"Required", "NotRequired"}:
        return "Required" in marks
    return key in tp.__required_keys__


def name_of(tp: Any) -> str:
    """How a type is called in a message."""
    return getattr(tp, "__qualname__", None) or repr(tp)
