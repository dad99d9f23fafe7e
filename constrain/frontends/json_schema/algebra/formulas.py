"""What a node says about a value: a formula over literal sets, and one Shape of the node's own keywords.

`formula` says how the keywords of one subschema combine; `own` makes the Shape of those that are about the value
itself (types, bounds, constants, items, keys) and not about other schemas for the same value.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Union

from ..arrays import array_cases
from ..numbers import number_sets
from ..objects import object_cases
from ..objects.enum_tries import MANY, Listed
from ..reading.json_values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, Constant
from ..reading.static_types import INTEGER, TYPES
from ..strings import string_sets
from . import unevaluated
from .schema_sets import ANY, NEVER, Lits
from .shape import (
    ALL_ARRAYS,
    ALL_NUMBERS,
    ALL_OBJECTS,
    ALL_STRINGS,
    EVERYTHING,
    FALSE_BIT,
    NULL_BIT,
    TRUE_BIT,
    Algebra as Shapes,
    Case,
    Shape,
    array_of,
    meet,
    object_of,
)

if TYPE_CHECKING:
    from ..reading.schema_parser import Node, Reader

__all__ = ["COMBINED", "All", "Formula", "One", "Own", "Some", "formula", "own"]


class Some(NamedTuple):
    """At least one of the parts."""

    parts: tuple[Formula, ...]


class All(NamedTuple):
    """All of the parts."""

    parts: tuple[Formula, ...]


class One(NamedTuple):
    """A value of the context that is in exactly one of the literal sets."""

    context: Lits
    parts: tuple[Lits, ...]


class Own(NamedTuple):
    """What a node's own keywords say."""

    shape: Shape


Formula = Union[Some, All, One, Own, Lits]


class Algebra(Shapes, Protocol):
    """What a formula needs to be made."""

    nodes: list[Node | None]
    reader: Reader


UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
"""Fields that are about what all others leave over."""

COMBINED = frozenset((
    "ref", "dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", *UNEVALUATED,
))  # fmt: skip
"""Fields that are about other schemas for the same value."""


def formula(node: Node, algebra: Algebra) -> Formula:
    """What a node says: an AND, in the order of the document, so that keys keep theirs."""
    facts = node.facts
    left = [field for field in UNEVALUATED if facts.get(field, ANY) != ANY]
    if left:
        others = {field: value for field, value in facts.items() if field not in UNEVALUATED}
        return All(
            ((algebra.reader.derived(node, others).number,), *(_unevaluated(field, node, algebra) for field in left))
        )
    if "oneOf" in facts and len(facts) > 1:
        # Branches that overlap by themselves often do not beside what stands next to oneOf.
        rest = {field: value for field, value in facts.items() if field != "oneOf"}
        return One((algebra.reader.derived(node, rest).number,), facts["oneOf"])
    parts: list[Formula] = []
    place = -1
    for field, value in facts.items():
        if field not in COMBINED and place < 0:
            place = len(parts)
        if field in ("ref", "dynamicRef"):
            parts.append(value)
        elif field == "allOf":
            parts.extend(value)
        elif field == "anyOf":
            parts.append(Some(value))
        elif field == "oneOf":
            parts.append(One(ANY, value))
        elif field == "not":
            parts.append(algebra.opposite(value))
        elif field == "if" and ("then" in facts or "else" in facts):
            chosen = All((value, facts.get("then", ANY)))
            parts.append(Some((chosen, All((algebra.opposite(value), facts.get("else", ANY))))))
        elif field in ("dependentSchemas", "dependencies"):
            schemas = ((name, lits) for name, lits in value.items() if isinstance(lits, tuple))
            parts.extend(Some((Own(_without(name)), lits)) for name, lits in schemas)
    if place >= 0:
        parts.insert(place, Own(own(facts, node.draft, algebra)))
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def _unevaluated(field: str, node: Node, algebra: Algebra) -> Formula:
    """Keys or items that nothing else evaluates are in a set."""
    lits: Lits = node.facts[field]
    others = {name: value for name, value in node.facts.items() if name != field}
    keys = field == "unevaluatedProperties"
    own = unevaluated.of_keys if keys else unevaluated.of_items
    options: list[Formula] = []
    for held, seen in unevaluated.ways(node, others, own, algebra, (node.number,)):
        if seen.everything:
            options.append(held)
            continue
        left = _other_keys(seen, lits, algebra) if keys else _other_items(seen, lits, node, algebra)
        options.append(All((held, Own(left))))
    return Some(tuple(options))


def _other_keys(seen: unevaluated.Seen, lits: Lits, algebra: Algebra) -> Shape:
    facts = {
        "properties": dict.fromkeys(sorted(seen.names), ANY), "additionalProperties": lits,
        "patternProperties": dict.fromkeys(sorted(seen.patterns), ANY),
    }  # fmt: skip
    case = object_cases.own(facts, algebra)  # Where these names stand is up to those who evaluate them.
    return EVERYTHING._replace(objects=(case._replace(mentioned=seen.names),))


def _other_items(seen: unevaluated.Seen, lits: Lits, node: Node, algebra: Algebra) -> Shape:
    if seen.sets:
        lits = (algebra.reader.derived(node, {"anyOf": (lits, *sorted(seen.sets))}).number,)
    return EVERYTHING._replace(arrays=(array_cases.tidy(array_cases.ArrayCase((ANY,) * seen.first, lits)),))


def _without(name: str) -> Shape:
    """All values that are not objects with that key."""
    case = object_cases.ObjectCase(((name, NEVER),), mentioned=frozenset((name,)))
    return EVERYTHING._replace(objects=(case,))


def own(facts: dict[str, Any], draft: int, algebra: Algebra) -> Shape:
    """The Shape of the keywords that are about the value itself."""
    if "const" in facts or "enum" in facts:
        return _constants(facts, draft, algebra)
    types, fields = facts.get("type", TYPES), facts.keys()
    number: tuple[number_sets.NumberCase, ...] = ()
    if types & NUMBER:
        number = (number_sets.own(facts),) if number_sets.FIELDS & fields else ALL_NUMBERS
    elif types & INTEGER:
        number = (number_sets.own_integer(facts, draft),)
    string: tuple[string_sets.StringCase, ...] = ()
    if types & STRING:
        string = (string_sets.own(facts),) if string_sets.FIELDS & fields else ALL_STRINGS
    array: tuple[array_cases.ArrayCase, ...] = ()
    if types & ARRAY:
        array = _whole((array_cases.own(facts),), ALL_ARRAYS) if array_cases.FIELDS & fields else ALL_ARRAYS
    members: tuple[object_cases.ObjectCase, ...] = ()
    if types & OBJECT:
        members = (
            _whole((object_cases.own(facts, algebra),), ALL_OBJECTS) if object_cases.FIELDS & fields else ALL_OBJECTS
        )
    scalars = (NULL_BIT if types & NULL else 0) | (FALSE_BIT | TRUE_BIT if types & BOOLEAN else 0)
    return Shape(scalars, number, string, array, members)


def _whole(cases: tuple[Case, ...], full: tuple[Case, ...]) -> tuple[Case, ...]:
    """Keywords that assert nothing leave the full part as it is, which is known by identity."""
    return full if cases == full else cases


def _constants(facts: dict[str, Any], draft: int, algebra: Algebra) -> Shape:
    """`enum` and `const`, filtered by all that stands beside them."""
    rest = {field: value for field, value in facts.items() if field not in ("const", "enum")}
    shape = EVERYTHING
    for field in ("const", "enum"):
        if field in facts:
            shape = meet(shape, _finite(facts[field], algebra.reader), algebra=algebra)
    return meet(shape, own(rest, draft, algebra), algebra=algebra) if rest.keys() - COMBINED else shape


def _finite(values: tuple[Constant, ...], reader: Reader) -> Shape:
    """Exactly these values."""
    scalars = 0
    numbers: list[Fraction] = []
    brackets: dict[int, list[Constant]] = {ARRAY: [], OBJECT: []}
    texts = [value[1] for value in values if value[0] == STRING]
    for value in values if len(texts) < len(values) else ():
        kind = value[0]
        if kind == NULL:
            scalars |= NULL_BIT
        elif kind == BOOLEAN:
            scalars |= TRUE_BIT if value[1] else FALSE_BIT
        elif kind == NUMBER:
            numbers.append(value[1])
        elif kind in brackets:
            brackets[kind].append(value)
    lists, maps = brackets[ARRAY], brackets[OBJECT]
    return Shape(
        scalars,
        (number_sets.NumberCase(tuple(numbers)),) if numbers else (),
        (string_sets.StringCase(tuple(texts)),) if texts else (),
        tuple(array_of(value, reader) for value in lists) if len(lists) <= MANY else (),
        tuple(object_of(value, reader) for value in maps) if len(maps) <= MANY else (),
        tuple(Listed(kind, held) for kind, held in brackets.items() if len(held) > MANY),
    )
