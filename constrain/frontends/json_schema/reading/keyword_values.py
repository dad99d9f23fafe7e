"""Readers of keyword values: each checks what a keyword was given and returns what the algebra works with.

A reader is called with the place of the subschema, the keyword's name and its value. It raises SchemaError with a
JSON pointer if the value is not what the keyword takes, and returns SKIP if the keyword, as given, asserts nothing.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ....base.errors import LimitError, UnsupportedError
from ....base.json_documents import MOST_DIGITS, echo, kind_of, token
from ....base.work import spend
from ..algebra.schema_sets import ANY, Lits
from ..strings.formats import FORMATS, format_in
from ..strings.schema_patterns import check_pattern
from . import json_values
from .json_values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, constant, rational
from .static_types import INTEGER

if TYPE_CHECKING:
    from .schema_parser import Place

__all__ = [
    "SKIP",
    "additional",
    "at_least",
    "at_most",
    "contained",
    "dependencies",
    "dynamic",
    "edge",
    "format_name",
    "items",
    "name_lists",
    "names",
    "natural",
    "number",
    "pattern",
    "pattern_map",
    "positive",
    "reference",
    "refuse",
    "schema",
    "schema_map",
    "schemas",
    "types",
    "unique",
    "value_of",
    "values",
]

SKIP = object()
"""What a reader returns for a keyword that asserts nothing here."""

MOST_COUNT = 2**31 - 1
"""Largest count that the registers of the automaton hold."""

TYPE_BITS = {
    "null": NULL, "boolean": BOOLEAN, "number": NUMBER, "integer": INTEGER,
    "string": STRING, "array": ARRAY, "object": OBJECT,
}  # fmt: skip


def types(place: Place, name: str, value: Any) -> int:
    """`type`: one name or a list of names, as a mask."""
    names = value if isinstance(value, list) else [value]
    if not names:
        raise place.error("`type` lists no type.", name)
    mask = 0
    for item in names:
        bit = TYPE_BITS.get(item) if isinstance(item, str) else None
        if bit is None:
            known = ", ".join(TYPE_BITS)
            raise place.error(f"`type` does not know {echo(item)}.", name, hint=f"The types are {known}.")
        mask |= bit
    return mask & ~INTEGER if mask & NUMBER else mask


def values(place: Place, name: str, value: Any) -> tuple[json_values.Constant, ...]:
    """`enum`: a list of values."""
    if not isinstance(value, list):
        raise place.error(f"`{name}` must be an array, not {kind_of(value)}.", name)
    pointer = place.pointer(name)
    spend(2 * len(value), "the values of enum")
    if all(type(item) is str for item in value) and "".join(value).isascii():  # As most long ones are.
        return tuple((STRING, item) for item in dict.fromkeys(value))
    if {str, int}.issuperset(map(type, value)):  # Equal before is equal after, and sooner known.
        return tuple(constant(item, pointer) for item in dict.fromkeys(value))
    return tuple(dict.fromkeys(constant(item, pointer) for item in value))


def value_of(place: Place, name: str, value: Any) -> tuple[json_values.Constant, ...]:
    """`const`: one value."""
    return (constant(value, place.pointer(name)),)


def natural(place: Place, name: str, value: Any) -> int:
    """A count: an integer from 0 on, also written as 2.0."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)) or value != value or not value >= 0:
        raise place.error(f"`{name}` must be a non-negative integer, not {echo(value)}.", name)
    if value > MOST_COUNT:
        return MOST_COUNT + 1
    if value != int(value) or (isinstance(value, Decimal) and value.adjusted() < -MOST_DIGITS):
        raise place.error(f"`{name}` must be a non-negative integer, not {echo(value)}.", name)
    return int(value)


def at_least(place: Place, name: str, value: Any) -> Any:
    """A least count; 0 asserts nothing."""
    least = natural(place, name, value)
    if least > MOST_COUNT:
        raise LimitError(
            f"`{name}` is beyond {MOST_COUNT}.", pointer=place.pointer(name), hint="Write a smaller number."
        )
    return least or SKIP


def at_most(place: Place, name: str, value: Any) -> Any:
    """A greatest count; one that no text of less than 2 GB can exceed asserts nothing."""
    most = natural(place, name, value)
    return SKIP if most > MOST_COUNT else most


def number(place: Place, name: str, value: Any) -> Fraction:
    """A number, exactly."""
    return rational(value, place.pointer(name))


def edge(place: Place, name: str, value: Any) -> Fraction | bool:
    """`exclusiveMinimum`, `exclusiveMaximum`: a number; in draft 4 whether `minimum` (`maximum`) is excluded."""
    if place.draft == 4:
        if not isinstance(value, bool):
            raise place.error(f"`{name}` is a boolean in draft 4, not {kind_of(value)}.", name)
        return value
    return rational(value, place.pointer(name))


def positive(place: Place, name: str, value: Any) -> Fraction:
    """`multipleOf`: a number above 0."""
    step = rational(value, place.pointer(name))
    if step <= 0:
        raise place.error(f"`{name}` must be greater than 0, not {echo(value)}.", name)
    return step


def pattern(place: Place, name: str, value: Any) -> str:
    """A regular expression."""
    if not isinstance(value, str):
        raise place.error(f"`{name}` must be a string, not {kind_of(value)}.", name)
    check_pattern(value, place.pointer(name), place.reader.limits)
    return value


def format_name(place: Place, name: str, value: Any) -> Any:
    """`format`: a name; one that the specification does not know asserts nothing."""
    if not isinstance(value, str):
        raise place.error(f"`{name}` must be a string, not {kind_of(value)}.", name)
    if place.style.formats == "annotate" and not place.scope.dialect.asserts_formats:
        return SKIP
    return format_in(value, place.scope.draft) if value in FORMATS else SKIP


def schema(place: Place, name: str, value: Any) -> Lits:
    """One subschema."""
    return place.lits(value, name)


def additional(place: Place, name: str, value: Any) -> Any:
    """A subschema for what is left; ANY asserts nothing, but from 2019-09 on it evaluates."""
    lits = place.lits(value, name)
    return SKIP if lits == ANY and place.draft < 2019 else lits


def schemas(place: Place, name: str, value: Any) -> tuple[Lits, ...]:
    """A list of subschemas, one at least."""
    if not isinstance(value, list) or not value:
        raise place.error(f"`{name}` must be a non-empty array of schemas.", name)
    lits, scope, pointer = place.reader.lits, place.scope, place.pointer(name)
    return tuple([lits(item, scope, f"{pointer}/{index}") for index, item in enumerate(value)])


def schema_map(place: Place, name: str, value: Any) -> dict[str, Lits]:
    """Subschemas by key."""
    if not isinstance(value, dict):
        raise place.error(f"`{name}` must be an object of schemas, not {kind_of(value)}.", name)
    pointer = place.pointer(name)
    lits, scope = place.reader.lits, place.scope
    return {json_values.text(key, pointer): lits(item, scope, f"{pointer}/{token(key)}") for key, item in value.items()}


def pattern_map(place: Place, name: str, value: Any) -> dict[str, Lits]:
    """Subschemas by regular expression."""
    found = schema_map(place, name, value)
    for expression in found:
        check_pattern(expression, place.pointer(name, expression), place.reader.limits)
    return found


def items(place: Place, name: str, value: Any) -> Any:
    """`items`: one subschema for all items; before 2020-12 also a list, one for each."""
    if isinstance(value, list) and place.draft < 2020:
        return [place.lits(item, name, index) for index, item in enumerate(value)]
    if isinstance(value, list):
        raise place.error("`items` is one schema in 2020-12, not an array.", name, hint="Use prefixItems.")
    return additional(place, name, value)


def names(place: Place, name: str, value: Any) -> tuple[str, ...]:
    """A list of keys."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise place.error(f"`{name}` must be an array of strings.", name)
    return tuple(dict.fromkeys(json_values.text(item, place.pointer(name)) for item in value))


def name_lists(place: Place, name: str, value: Any) -> dict[str, frozenset[str]]:
    """`dependentRequired`: lists of keys by key."""
    if not isinstance(value, dict):
        raise place.error(f"`{name}` must be an object of arrays of strings, not {kind_of(value)}.", name)
    out = {}
    for key, listed in value.items():
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            raise place.error(f"`{name}` must be an object of arrays of strings.", name, key)
        out[json_values.text(key, place.pointer(name))] = frozenset(listed)
    return out


def dependencies(place: Place, name: str, value: Any) -> dict[str, frozenset[str] | Lits]:
    """`dependencies`: lists of keys, or subschemas, by key."""
    if not isinstance(value, dict):
        raise place.error(f"`{name}` must be an object, not {kind_of(value)}.", name)
    out: dict[str, frozenset[str] | Lits] = {}
    for key, item in value.items():
        out |= name_lists(place, name, {key: item}) if isinstance(item, list) else {key: place.lits(item, name, key)}
    return out


def reference(place: Place, name: str, value: Any) -> Lits:
    """`$ref`: the subschema that it names."""
    return place.follow(value, name)


def dynamic(place: Place, name: str, value: Any) -> Lits:
    """`$dynamicRef`, `$recursiveRef`: the subschema that it names on the way by which one came here."""
    return place.follow_dynamically(value, name)


def unique(place: Place, name: str, value: Any) -> Any:
    """`uniqueItems`."""
    if not isinstance(value, bool):
        raise place.error(f"`{name}` must be a boolean, not {kind_of(value)}.", name)
    return value or SKIP


def contained(place: Place, name: str, value: Any) -> int:
    """`minContains`: 0 takes back what `contains` alone would ask for."""
    least = at_least(place, name, value)
    return 0 if least is SKIP else int(least)


def refuse(place: Place, name: str, value: Any) -> UnsupportedError:
    """A keyword that constrain knows and does not enforce yet."""
    raise UnsupportedError(
        f"`{name}` is not enforced yet, and nothing is ignored.", pointer=place.pointer(name),
        hint="Leave the keyword out and check it afterwards, or rewrite the schema without it.",
    )  # fmt: skip
