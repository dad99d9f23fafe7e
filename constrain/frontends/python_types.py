"""JSON Schemas of Python types, for the JSON form of their values. The inverse is `integrations.python_values`.

    None bool int float str Decimal date time datetime UUID Any         the JSON type, with a `format` if there is one
    complex                                                             a text such as "1.5-2j"
    list set frozenset tuple dict Sequence Mapping ...                  arrays and objects of their arguments; keys of
                                                                        any type that is written as one text
    Literal Enum                                                        `enum` of the values
    Union Optional `X | Y` Annotated NewType                            `anyOf`; bounds of annotated-types are kept
    dataclass TypedDict NamedTuple                                      closed objects with the fields as keys
    Pydantic models and dataclasses, and every other type               what Pydantic generates, if it is installed

A class is a closed object: only its fields are allowed as keys, unless a Pydantic model sets `extra="allow"`. A set is
an array whose items may repeat, since repeated items do not change the set, unless it has a least number of items above
1. A recursive class becomes a `$ref`.
"""

from __future__ import annotations

import datetime
import re
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, is_dataclass
from decimal import Decimal
from enum import Enum
from itertools import chain, count
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, Union, get_args, get_origin
from uuid import UUID

from ..base.errors import UnsupportedError, describe_value, shorten_text
from .key_schemas import build_key_schema
from .pydantic_schemas import SECONDS, make_generator
from .schema_bounds import BOUNDS, LENGTHS, add_bounds, has_keyword
from .type_inspection import (
    ARRAYS,
    MAPPINGS,
    MOST_NESTED,
    SETS,
    check_json_values,
    is_alias,
    is_never_hashable,
    is_pydantic,
    is_record,
    key_required,
    list_init_fields,
    list_marks,
    needs_pydantic,
    resolve_alias,
    resolve_hints,
    unhashable_items,
)

__all__ = ["is_type_adapter", "is_type_expression", "to_key_schema", "to_schema"]

Schema = dict[str, Any]

PART = "(?:0|[1-9][0-9]{0,16})(?:[.][0-9]{1,17})?(?:[eE][+-]?[0-9]{1,3})?"
"""A decimal of at most 17 digits before and after the point: every float has such a spelling."""

SCALARS: dict[Any, Schema] = {
    None: {"type": "null"},
    type(None): {"type": "null"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Decimal: {"type": "number"},
    complex: {"type": "string", "pattern": f"^[+-]?{PART}(?:j|[+-]{PART}j)?$"},
    str: {"type": "string"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.datetime: {"type": "string", "format": "date-time", "pattern": SECONDS},
    datetime.time: {"type": "string", "format": "time", "pattern": SECONDS},
    UUID: {"type": "string", "format": "uuid"},
    Any: {},
    object: {},
}

MARKS = ("Required", "NotRequired", "ReadOnly", "Final")


def to_schema(tp: Any) -> Schema:
    """Return the JSON Schema (2020-12) of a Python type.

    Parameters
    ----------
    tp : type
        A class, or a type expression of `typing`.

    Returns
    -------
    dict
        The schema; definitions of classes are under "$defs".

    Raises
    ------
    TypeError
        If `tp` is not a type.
    UnsupportedError
        If neither this module nor Pydantic knows the type.
    """
    check_is_type(tp)
    converter = _TypeConverter()
    try:
        schema = converter.of(tp)
    except RecursionError:
        raise UnsupportedError(
            f"The type {shorten_text(_name(tp))} is nested too deeply.", hint="Use fewer levels."
        ) from None
    if not converter.defs:
        return schema
    if schema.keys() == {"$ref"} and converter.uses == 1:  # Only used here: no definition needed.
        name, *others = converter.defs
        nested = {"$defs": {other: converter.defs[other] for other in others}} if others else {}
        return {**converter.defs[name], **nested}
    return {**schema, "$defs": converter.defs}


def to_key_schema(tp: Any) -> Schema:
    """Return the JSON Schema of the keys of `dict[tp, ...]`. Raise UnsupportedError if its values are no keys."""
    converter = _TypeConverter()
    return build_key_schema(converter.of(tp), converter.find_definition)


def check_is_type(tp: Any) -> None:
    """Raise TypeError unless `tp` is a class, its name, or a type expression of `typing`."""
    if is_type_expression(tp) or isinstance(tp, (str, ForwardRef)):
        return
    if hasattr(tp, "token_nodes"):
        wanted = "it is a form already: give it as grammar="
    elif hasattr(type(tp), "__pydantic_validator__") or is_dataclass(tp):
        wanted = f"give the class {type(tp).__name__}, not an instance of it"
    else:
        wanted = "give a JSON Schema as dict, bool or JSON text, or a class such as a Pydantic model"
    raise TypeError(f"the schema is {describe_value(tp)}: {wanted}")


def is_type_expression(value: object) -> bool:
    """Return whether a value is None, a class, a TypeAdapter or a type expression of `typing`."""
    if value is None or isinstance(value, type) or is_type_adapter(value):
        return True
    others = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.SimpleNamespace)
    return type(value).__module__ in ("typing", "typing_extensions", "types") and not isinstance(value, others)


def is_type_adapter(value: object) -> bool:
    """Return whether a value is a TypeAdapter of Pydantic, which is no class but stands for a type."""
    return type(value).__name__ == "TypeAdapter" and hasattr(value, "validate_json") and hasattr(value, "json_schema")


class _TypeConverter:
    """Converter of types to schemas that records the classes converted so far, for `$ref`."""

    def __init__(self) -> None:
        self.defs: dict[str, Schema] = {}
        self.names: dict[Any, str] = {}
        self.recursive: set[Any] = set()
        self.open: list[Any] = []  # generic classes and aliases whose definitions are being made
        self.uses = 0

    def of(self, tp: Any) -> Schema:
        """Return the schema of a type."""
        origin, args = get_origin(tp), get_args(tp)
        if origin is None and tp in SCALARS:
            return dict(SCALARS[tp])
        if hasattr(tp, "__supertype__"):
            return self.of(tp.__supertype__)
        if is_alias(tp):
            return self.alias(tp)
        if origin is Annotated:
            return self.pydantic(tp) if needs_pydantic(args[1:]) else self.annotated(args[0], args[1:])
        if getattr(origin, "__name__", getattr(origin, "_name", "")) in MARKS:
            return self.of(args[0])
        if origin is Literal:
            return self.choice(tp, [item.value if isinstance(item, Enum) else item for item in args])
        if origin is Union or origin is getattr(types, "UnionType", None):
            return {"anyOf": [self.of(item) for item in args]}
        if isinstance(tp, (str, ForwardRef, TypeVar)):
            raise UnsupportedError(f"{tp!r} is not a type by itself.", hint="Give the class itself.")
        if origin is tuple and not args:
            return {"type": "array", "items": False, "maxItems": 0}
        return self.collection(origin or tp, args) or self.instance(tp)

    @contextmanager
    def opened(self, tp: Any) -> Iterator[None]:
        """Refuse a generic type that refers to itself with ever larger arguments, while its definition is made."""
        generic = get_origin(tp)
        if generic is not None and self.open.count(generic) >= MOST_NESTED:
            raise UnsupportedError(
                f"{_name(generic)} refers to itself with other arguments, more than {MOST_NESTED} levels deep.",
                hint="Let it refer to itself with the same arguments, or to Any.",
            )
        self.open.append(generic)
        try:
            yield
        finally:
            self.open.pop()

    def alias(self, tp: Any) -> Schema:
        """Return the schema of an alias: that of its type, or a reference to it if it is recursive."""
        if tp in self.names:
            self.recursive.add(tp)
            self.uses += 1
            return {"$ref": f"#/$defs/{self.names[tp]}"}
        try:
            value = resolve_alias(tp)
        except NameError as error:
            raise UnsupportedError(
                f"The alias {tp} names what cannot be found: {error}.", hint="Define it at module level."
            ) from None
        if get_origin(value) is Annotated and needs_pydantic(get_args(value)[1:]):
            return self.pydantic(tp)
        name = self.names[tp] = make_fresh(name_definition(tp), self.defs)
        self.defs[name] = {}
        with self.opened(tp):
            schema = self.of(value)
        if tp not in self.recursive:
            del self.names[tp], self.defs[name]
            return schema
        self.uses += 1
        self.defs[name].update(schema)
        return {"$ref": f"#/$defs/{name}"}

    def annotated(self, tp: Any, marks: tuple[Any, ...]) -> Schema:
        """Return the schema of a type with the bounds of its marks; marks of other libraries are ignored."""
        schema = self.of(tp)
        for mark in list_marks(marks):
            found = {keyword: getattr(mark, name, None) for name, keyword in BOUNDS.items()}
            if isinstance(getattr(mark, "pattern", None), str):
                found["pattern"] = mark.pattern
            bounds = {keyword: value for keyword, value in found.items() if value is not None}
            check_mark(mark, tp)
            lengths = {name: getattr(mark, name) for name in LENGTHS if getattr(mark, name, None) is not None}
            if bounds or lengths:
                if not any(has_keyword(schema, keyword) for keyword in (*bounds, *lengths)):
                    raise UnsupportedError(
                        f"{shorten_text(mark)} says nothing about {shorten_text(_name(tp))}.",
                        hint="Numbers have bounds, texts and collections have lengths, texts have patterns.",
                    )
                schema = add_bounds(schema, bounds, lengths)
        return require_different_items(schema, tp)

    def choice(self, tp: Any, values: list[Any]) -> Schema:
        """Return the schema of the values of an Enum or Literal."""
        check_json_values(_name(tp), values)
        return {"enum": values}

    def collection(self, origin: Any, args: tuple[Any, ...]) -> Schema | None:
        """Return the schema of list[int], tuple[int, str], dict[str, int] and the like; None for any other type."""
        if origin is tuple:
            if args and args[-1] is not Ellipsis:
                items = [self.of(item) for item in args if item != ()]
                prefix = {"prefixItems": items} if items else {}
                return {"type": "array", **prefix, "items": False, "minItems": len(items)}
            return {"type": "array", "items": self.of(args[0])} if args else {"type": "array"}
        if origin in ARRAYS:
            schema: Schema = {"type": "array", "items": self.of(args[0])} if args else {"type": "array"}
            if args and origin in SETS and is_never_hashable(args[0]):
                raise unhashable_items(_name(args[0]))
            return schema
        if origin in MAPPINGS:
            schema = {"type": "object"}
            if args:
                names = build_key_schema(self.of(args[0]), self.find_definition)
                if names != {"type": "string"} and names:
                    schema["propertyNames"] = names
                schema["additionalProperties"] = self.of(args[1] if len(args) > 1 else int)  # int: of a Counter
            return schema
        return None

    def find_definition(self, ref: str) -> Schema | None:
        """Return the definition that a `$ref` names; None while it is made."""
        return self.defs.get(ref.removeprefix("#/$defs/")) or None

    def instance(self, tp: Any) -> Schema:
        """Return the schema of an Enum, of a class with fields, or of what Pydantic knows."""
        origin = get_origin(tp) or tp
        if not isinstance(origin, type) or is_pydantic(origin):
            return self.pydantic(tp)
        if is_record(origin):
            return self.reference(tp)
        if origin is not tp:
            return self.pydantic(tp)
        if issubclass(tp, Enum):
            return self.choice(tp, [member.value for member in tp])
        plain = next((dict(SCALARS[base]) for base in (str, int, float) if issubclass(tp, base)), None)
        return plain or self.pydantic(tp)

    def reference(self, tp: Any) -> Schema:
        """Return a reference to the definition of a class with fields, which is made at the first use."""
        self.uses += 1
        name = self.names.get(tp)
        if name is None:
            name = self.names[tp] = make_fresh(name_definition(tp), self.defs)
            self.defs[name] = {}
            with self.opened(tp):
                self.defs[name].update(self.record(tp))
        return {"$ref": f"#/$defs/{name}"}

    def record(self, tp: Any) -> Schema:
        """Return the schema of a dataclass, TypedDict or NamedTuple: its fields, and which of them are required."""
        try:
            hints = resolve_hints(tp)
        except NameError as error:
            raise UnsupportedError(
                f"An annotation of {_name(tp)} names what cannot be found: {error}.", hint="Define it at module level."
            ) from None
        title, tp = title_of(tp), get_origin(tp) or tp
        if is_dataclass(tp):
            known = list_init_fields(tp, hints)
            names = list(known)
            required = [n for n, f in known.items() if f.default is MISSING and f.default_factory is MISSING]
        elif hasattr(tp, "_fields"):
            names = list(tp._fields)
            required = [name for name in names if name not in tp._field_defaults]
        else:
            names = list(hints)
            required = [name for name in names if key_required(tp, name, hints[name])]
        schema: Schema = {"title": title, "type": "object"}
        schema["properties"] = {name: self.of(hints.get(name, Any)) for name in names}
        return {**schema, "required": required, "additionalProperties": False}

    def pydantic(self, tp: Any) -> Schema:
        """Return the schema that Pydantic generates; its definitions are merged with the others."""
        try:
            from pydantic import TypeAdapter
            from pydantic.errors import PydanticUserError
        except ImportError:
            raise UnsupportedError(
                f"No JSON Schema is known for the type {_name(tp)}.",
                hint='pip install "constrain-lm[types]", or give the schema itself.',
            ) from None
        try:
            adapter = tp if is_type_adapter(tp) else TypeAdapter(tp)
            schema, defs = self.name_apart(adapter)
        except PydanticUserError as error:
            raise UnsupportedError(
                f"There is no JSON Schema for the type {shorten_text(_name(tp))}.",
                hint="Give a class with fields (Pydantic, dataclass, TypedDict), or the JSON Schema itself.",
            ) from error
        except (TypeError, ValueError, AttributeError, NameError, RecursionError) as error:
            raise UnsupportedError(
                f"Pydantic has no JSON Schema for {shorten_text(_name(tp))}: {shorten_text(error)}"
            ) from error
        self.defs.update(defs)
        return schema

    def name_apart(self, adapter: Any) -> tuple[Schema, dict[str, Schema]]:
        """Return the schema of a TypeAdapter and its definitions, with names that no other definition has."""
        for suffix in chain([""], map(str, count(2))):
            template = f"#/$defs/{{model}}{suffix}"
            schema: Schema = adapter.json_schema(
                ref_template=template, schema_generator=make_generator(), mode="validation"
            )
            defs = {name + suffix: definition for name, definition in schema.pop("$defs", {}).items()}
            if all(self.defs.get(name, definition) == definition for name, definition in defs.items()):
                break
        return schema, defs


def check_mark(mark: Any, tp: Any) -> None:
    """Raise UnsupportedError for a mark of annotated-types that is a condition and can be no keyword of a schema."""
    if get_origin(mark) is Annotated:
        raise UnsupportedError(
            f"{shorten_text(mark)} is a type, and no mark of {shorten_text(_name(tp))}.",
            hint="Give the type its argument: LowerCase[str], not Annotated[str, LowerCase].",
        )
    if type(mark).__name__ == "Timezone" and type(mark).__module__ == "annotated_types" and mark.tz is not ...:
        raise UnsupportedError(
            f"{shorten_text(mark)} cannot be said in a JSON Schema, in which every time has some offset.",
            hint="Check the time zone in a validator of Pydantic.",
        )


def require_different_items(schema: Schema, tp: Any) -> Schema:
    """Return the schema of a type with `uniqueItems` where a set has at least 2 items, each of which must count."""
    origin, args = get_origin(tp), get_args(tp)
    if hasattr(tp, "__supertype__"):
        return require_different_items(schema, tp.__supertype__)
    if is_alias(tp):
        return require_different_items(schema, resolve_alias(tp))
    if origin is Annotated:
        return require_different_items(schema, args[0])
    if (origin is Union or origin is getattr(types, "UnionType", None)) and "anyOf" in schema:
        return {**schema, "anyOf": list(map(require_different_items, schema["anyOf"], args))}
    is_set = (origin or tp) in SETS
    return {**schema, "uniqueItems": True} if is_set and schema.get("minItems", 0) > 1 else schema


def make_fresh(name: str, taken: dict[str, Schema]) -> str:
    """Return an unused name for a definition."""
    number = 2
    fresh = name
    while fresh in taken:
        fresh, number = f"{name}{number}", number + 1
    return fresh


def name_definition(tp: Any) -> str:
    """Return the name of the definition of a type: "Box_int" for `Box[int]`."""
    return re.sub(r"\W+", "_", title_of(tp)).strip("_")


def title_of(tp: Any) -> str:
    """Return the name of a class, with its arguments if it is generic: "Box[int]"."""
    args = get_args(tp)
    name: str = (get_origin(tp) or tp).__name__ if hasattr(get_origin(tp) or tp, "__name__") else repr(tp)
    return f"{name}[{', '.join(map(title_of, args))}]" if args else name


def _name(tp: Any) -> str:
    if get_origin(tp) is not None:  # type[int] has the name of `type`
        return repr(tp)
    return getattr(tp, "__qualname__", None) or repr(tp)
