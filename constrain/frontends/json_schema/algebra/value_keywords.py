"""The keywords `type`, `enum` and `const`, and the Shape of all keywords that are about the value itself."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ....base.json_documents import echo_value, kind_of
from ....base.work import spend_work
from ..arrays.array_keywords import ARRAY_KEYWORDS, build_array_case
from ..core.json_values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, Constant, to_constant
from ..core.keyword_context import KeywordContext
from ..core.static_types import INTEGER, TYPE_BITS, TYPES
from ..core.subschema_table import SubschemaTable
from ..numbers.number_keywords import NUMBER_KEYWORDS, build_integer_case, build_number_case
from ..numbers.number_sets import NumberCase
from ..objects.object_keywords import OBJECT_KEYWORDS, build_object_case
from ..shapes.array_case import ArrayCase
from ..shapes.enum_values import MANY_VALUES, EnumValues
from ..shapes.object_case import ObjectCase
from ..shapes.schema_algebra import SchemaAlgebra
from ..shapes.shape import (
    ALL_ARRAYS,
    ALL_NUMBERS,
    ALL_OBJECTS,
    ALL_STRINGS,
    EVERYTHING,
    FALSE_BIT,
    NULL_BIT,
    TRUE_BIT,
    Case,
    Shape,
)
from ..strings.string_keywords import STRING_KEYWORDS, build_string_case
from ..strings.string_sets import StringCase
from .shape_operations import build_exact_array, build_exact_object, intersect_shapes

__all__ = ["APPLICATORS", "UNEVALUATED", "build_value_shape", "parse_const", "parse_enum", "parse_type"]

UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
"""Keywords about the keys and items that no other keyword evaluates."""

APPLICATORS = frozenset((
    "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", *UNEVALUATED,
))  # fmt: skip
"""Keywords that apply other schemas to the same value."""


def parse_type(context: KeywordContext, name: str, value: Any) -> int:
    """Parse `type`: one name or a list of names, as a mask of bits."""
    if type(value) is str and value in TYPE_BITS:
        return TYPE_BITS[value]
    names = value if isinstance(value, list) else [value]
    if not names:
        raise context.error("`type` lists no type.", name)
    mask = 0
    for item in names:
        bit = TYPE_BITS.get(item) if isinstance(item, str) else None
        if bit is None:
            known = ", ".join(TYPE_BITS)
            raise context.error(f"`type` does not know {echo_value(item)}.", name, hint=f"The types are {known}.")
        mask |= bit
    return mask & ~INTEGER if mask & NUMBER else mask


def parse_enum(context: KeywordContext, name: str, value: Any) -> tuple[Constant, ...]:
    """Parse `enum`: a list of values."""
    if not isinstance(value, list):
        raise context.error(f"`{name}` must be an array, not {kind_of(value)}.", name)
    pointer = context.pointer(name)
    spend_work(2 * len(value), "the values of enum")
    kinds = set(map(type, value))
    if kinds <= {str} and "".join(value).isascii():  # Most enums are such lists.
        return tuple([(STRING, item) for item in dict.fromkeys(value)])
    if kinds <= {str, int}:  # Equal raw values give equal constants, and are found faster.
        return tuple(to_constant(item, pointer) for item in dict.fromkeys(value))
    return tuple(dict.fromkeys(to_constant(item, pointer) for item in value))


def parse_const(context: KeywordContext, name: str, value: Any) -> tuple[Constant, ...]:
    """Parse `const`: one value."""
    return (to_constant(value, context.pointer(name)),)


def build_value_shape(keywords: dict[str, Any], draft: int, algebra: SchemaAlgebra) -> Shape:
    """Return the Shape of the keywords that are about the value itself, and not about other schemas for it."""
    if "const" in keywords or "enum" in keywords:
        return _build_constants_shape(keywords, draft, algebra)
    types, fields = keywords.get("type", TYPES), keywords.keys()
    number: tuple[NumberCase, ...] = ()
    if types & NUMBER:
        number = (build_number_case(keywords),) if NUMBER_KEYWORDS & fields else ALL_NUMBERS
    elif types & INTEGER:
        number = (build_integer_case(keywords, draft),)
    string: tuple[StringCase, ...] = ()
    if types & STRING:
        string = (build_string_case(keywords),) if STRING_KEYWORDS & fields else ALL_STRINGS
    array: tuple[ArrayCase, ...] = ()
    if types & ARRAY:
        array = _share_full_part((build_array_case(keywords),), ALL_ARRAYS) if ARRAY_KEYWORDS & fields else ALL_ARRAYS
    members: tuple[ObjectCase, ...] = ()
    if types & OBJECT:
        members = (
            _share_full_part((build_object_case(keywords, algebra),), ALL_OBJECTS)
            if OBJECT_KEYWORDS & fields
            else ALL_OBJECTS
        )
    scalars = (NULL_BIT if types & NULL else 0) | (FALSE_BIT | TRUE_BIT if types & BOOLEAN else 0)
    return Shape(scalars, number, string, array, members)


def _share_full_part(cases: tuple[Case, ...], full: tuple[Case, ...]) -> tuple[Case, ...]:
    """Return the full part itself for equal cases, since the full part is recognised by identity."""
    return full if cases == full else cases


def _build_constants_shape(keywords: dict[str, Any], draft: int, algebra: SchemaAlgebra) -> Shape:
    """Return the values of `enum` and `const`, filtered by all sibling keywords."""
    siblings = {field: value for field, value in keywords.items() if field not in ("const", "enum")}
    types = siblings.get("type", TYPES)
    if len(keywords) == 1 + ("type" in siblings) and not types & INTEGER:
        values: tuple[Constant, ...] = keywords["enum"] if "enum" in keywords else keywords["const"]
        if {value[0] for value in values}.isdisjoint((ARRAY, OBJECT)):  # Most are texts.
            return _build_finite_shape(tuple([value for value in values if value[0] & types]), algebra.table)
    shape = EVERYTHING
    for field in ("const", "enum"):
        if field in keywords:
            shape = intersect_shapes(shape, _build_finite_shape(keywords[field], algebra.table), algebra=algebra)
    return (
        intersect_shapes(shape, build_value_shape(siblings, draft, algebra), algebra=algebra)
        if siblings.keys() - APPLICATORS
        else shape
    )


def _build_finite_shape(values: tuple[Constant, ...], table: SubschemaTable) -> Shape:
    """Return the Shape of exactly these values."""
    scalars = 0
    numbers: list[Fraction] = []
    containers: dict[int, list[Constant]] = {ARRAY: [], OBJECT: []}
    texts = [value[1] for value in values if value[0] == STRING]
    for value in values if len(texts) < len(values) else ():
        kind = value[0]
        if kind == NULL:
            scalars |= NULL_BIT
        elif kind == BOOLEAN:
            scalars |= TRUE_BIT if value[1] else FALSE_BIT
        elif kind == NUMBER:
            numbers.append(value[1])
        elif kind in containers:
            containers[kind].append(value)
    arrays, objects = containers[ARRAY], containers[OBJECT]
    return Shape(
        scalars,
        (NumberCase(tuple(numbers)),) if numbers else (),
        (StringCase(tuple(texts)),) if texts else (),
        tuple(build_exact_array(value, table) for value in arrays) if len(arrays) <= MANY_VALUES else (),
        tuple(build_exact_object(value, table) for value in objects) if len(objects) <= MANY_VALUES else (),
        tuple(EnumValues(kind, constants) for kind, constants in containers.items() if len(constants) > MANY_VALUES),
    )
