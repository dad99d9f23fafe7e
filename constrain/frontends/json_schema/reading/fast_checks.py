"""What a look at the keywords of a subschema shows: that it surely has a value, that nothing in it can be refused.

Most subschemas are a type, a few keys, a list of texts. Of these the algebra need not be asked before a value is
written there, so a large schema costs what is used of it. Nothing here claims more than is true; what it cannot tell
is asked of the algebra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..algebra.schema_sets import ANY, NEVER, Lits
from ..strings.schema_patterns import read_pattern
from .json_values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, Constant
from .static_types import INTEGER, TYPES

if TYPE_CHECKING:
    from .schema_parser import Node

__all__ = ["inside", "is_ruled", "only_types", "surely"]

Nodes = list["Node | None"]

LISTED = frozenset(("type", "enum", "const"))
TEXT = frozenset(("minLength", "maxLength", "pattern", "format"))
NUMERIC = frozenset(("minimum", "maximum"))
OWN = frozenset((*LISTED, *TEXT, *NUMERIC, "items", "minItems", "maxItems", "properties", "required"))
OWN |= {"additionalProperties"}
"""Fields that are looked at here: beside any other nothing is sure."""
BRACKETS = ARRAY | OBJECT
SHORT = 10**18
DEPTH = 24
"""Levels of keys that must be there which are looked into."""


def surely(lits: Lits, nodes: Nodes, depth: int = 0) -> bool:
    """Whether a set certainly holds a value; no is not an answer."""
    if len(lits) != 1:
        return lits == ANY
    node = nodes[lits[0]] if lits[0] > 0 else None
    if node is None:
        return False
    if node.sure is None:
        if depth > DEPTH or node.waiting is not None:
            return False
        node.sure = False  # what leads back here has no value by that way
        node.sure = _has_value(node, nodes, depth)
    return node.sure


def _has_value(node: Node, nodes: Nodes, depth: int) -> bool:
    facts = node.facts
    fields = facts.keys()
    if fields == {"anyOf"}:
        return any(surely(lits, nodes, depth + 1) for lits in facts["anyOf"])
    if not fields <= OWN:
        return False
    types = facts.get("type", TYPES)
    if "enum" in fields or "const" in fields:
        return len(fields - {"type"}) == 1 and any(value[0] & types for value in _listed(facts))
    return bool(
        types & (NULL | BOOLEAN)
        or (types & STRING and _has_text(facts))
        or (types & (NUMBER | INTEGER) and _has_number(facts))
        or (types & ARRAY and _has_array(facts, nodes, depth))
        or (types & OBJECT and _has_object(facts, nodes, depth))
    )


def _listed(facts: dict[str, Any]) -> tuple[Constant, ...]:
    values: tuple[Constant, ...] = facts["enum"] if "enum" in facts else facts["const"]
    return values


def _has_text(facts: dict[str, Any]) -> bool:
    if "pattern" in facts or "format" in facts:
        return len(TEXT & facts.keys()) == 1 and ("format" in facts or read_pattern(facts["pattern"]).surely)
    return bool(facts.get("minLength", 0) <= facts.get("maxLength", facts.get("minLength", 0)))


def _has_number(facts: dict[str, Any]) -> bool:
    """An interval that is longer than 1 holds an integer."""
    return "minimum" not in facts or "maximum" not in facts or facts["maximum"] - facts["minimum"] > 1


def _short(facts: dict[str, Any]) -> bool:
    """Whether the bounds of numbers are such that no automaton of them is too large."""
    bounds = [facts[field] for field in NUMERIC if field in facts]
    return all(bound.denominator == 1 and abs(bound.numerator) < SHORT for bound in bounds)


def _has_array(facts: dict[str, Any], nodes: Nodes, depth: int) -> bool:
    low, items = facts.get("minItems", 0), facts.get("items", ANY)
    return low == 0 or (low <= facts.get("maxItems", low) and type(items) is tuple and surely(items, nodes, depth + 1))


def _has_object(facts: dict[str, Any], nodes: Nodes, depth: int) -> bool:
    values, rest = facts.get("properties", {}), facts.get("additionalProperties", ANY)
    return all(surely(values.get(name, rest), nodes, depth + 1) for name in facts.get("required", ()))


def inside(lits: Lits, nodes: Nodes) -> list[Lits] | None:
    """The sets that a value of the set can have inside, some perhaps empty; None: the algebra has to say.

    Where they are told, the set itself has no conflict to be found and no limit to be exceeded.
    """
    if len(lits) != 1 or lits[0] <= 0:
        return [] if lits == ANY else None
    node = nodes[lits[0]]
    assert node is not None
    if node.inner is None:
        node.inner = (_inside(lits, node, nodes),)
    return node.inner[0]


def _inside(lits: Lits, node: Node, nodes: Nodes) -> list[Lits] | None:
    facts = node.facts
    fields = facts.keys()
    if fields == {"anyOf"}:
        return _inside_any(facts["anyOf"], nodes)
    if not fields <= OWN:
        return None
    types = facts.get("type", TYPES)
    if "enum" in fields or "const" in fields:
        return [] if surely(lits, nodes) and not any(value[0] & BRACKETS for value in _listed(facts)) else None
    if types & STRING and not _has_text(facts):
        return None
    if types & (NUMBER | INTEGER) and not (_has_number(facts) and _short(facts)):
        return None
    out: list[Lits] = []
    if types & ARRAY:
        items = facts.get("items", ANY)
        if type(items) is not tuple or facts.get("maxItems", 1) == 0 or not _has_array(facts, nodes, 0):
            return None
        out.append(items)
    if types & OBJECT:
        if not _has_object(facts, nodes, 0):
            return None
        values = facts.get("properties", {}).values()
        if NEVER in values:  # Its key cannot be there, which `members.as_it_stands` does not look at.
            return None
        out += values
        out.append(facts.get("additionalProperties", ANY))
    return [other for other in out if other and other != NEVER]


def _inside_any(options: tuple[Lits, ...], nodes: Nodes) -> list[Lits] | None:
    """Of options that exclude each other by their types, and so cannot be merged."""
    seen, out = 0, list[Lits]()
    for lits in options:
        node = nodes[lits[0]] if len(lits) == 1 and lits[0] > 0 else None
        found = None if node is None or "type" not in node.facts else inside(lits, nodes)
        if found is None or node is None or seen & node.facts["type"]:
            return None
        seen |= node.facts["type"]
        out += found
    return None if seen & INTEGER and seen & NUMBER else out


def is_ruled(lits: Lits, nodes: Nodes) -> bool:
    """Whether it is plain that arrays or objects are in the set, so that a rule is written for it."""
    if len(lits) != 1 or lits[0] <= 0:
        return lits == ANY
    node = nodes[lits[0]]
    assert node is not None
    told = node.facts.keys()
    if not told <= OWN or not LISTED.isdisjoint(told - {"type"}):
        return False
    return bool(node.facts.get("type", TYPES) & BRACKETS) and inside(lits, nodes) is not None


def only_types(lits: Lits, nodes: Nodes) -> tuple[int, int] | None:
    """The types that a set consists of, and the draft that says so, if nothing else is said and none has brackets."""
    node = nodes[lits[0]] if len(lits) == 1 and lits[0] > 0 else None
    if node is None or node.facts.keys() != {"type"} or node.facts["type"] & BRACKETS:
        return None
    return node.facts["type"], node.draft
