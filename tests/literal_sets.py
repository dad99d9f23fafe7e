"""A few literal sets with a plain meaning, for tests of cases of the algebra: which values they hold is known by hand.

Two predicates tell the values apart: being the number 1, and being a string. So a set is one of three kinds of values,
and `VALUES` has one of each.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from constrain.frontends.json_schema.algebra.algebra import Algebra
from constrain.frontends.json_schema.algebra.literals import ANY, NEVER, Lits
from constrain.frontends.json_schema.objects.objects import ObjectCase
from constrain.frontends.json_schema.reading.constants import BOOLEAN, NULL, NUMBER, STRING, constant
from constrain.frontends.json_schema.reading.read import Reader
from constrain.frontends.json_schema.strings.languages import Lang
from constrain.style import Limits, Style

__all__ = ["ONE", "TEXT", "VALUES", "holds", "in_object_case", "language_holds", "made"]

VALUES = (1, "x", None)
SCHEMAS: tuple[Any, ...] = ({"const": 1}, {"type": "string"})
ONE, TEXT = 0, 1
"""Places of the predicates in SCHEMAS; `made` returns their literal sets."""

KINDS = {bool: BOOLEAN, int: NUMBER, str: STRING, type(None): NULL}


def made(style: Style | None = None, **limits: int) -> tuple[Algebra, list[Lits]]:
    """A new algebra, and sets of all values, of none, and by one or both of the predicates."""
    style = style or Style.any()
    reader = Reader({"prefixItems": list(SCHEMAS)}, None, style, Limits(**limits))
    algebra = Algebra(reader, style, Limits(**limits))
    one, text = (reader.lits(raw, reader.library.main, f"/prefixItems/{place}") for place, raw in enumerate(SCHEMAS))
    opposites = [algebra.opposite(one), algebra.opposite(text)]
    return algebra, [ANY, NEVER, one, text, *opposites, algebra.both(*opposites)]


@lru_cache(maxsize=10_000, typed=True)  # True is not 1.
def holds(algebra: Algebra, lits: Lits, value: Any) -> bool:
    """Whether a value, which is no list nor object, is in a literal set."""
    return lits != NEVER and all(_in_node(algebra, abs(literal), value) == (literal > 0) for literal in lits)


def _in_node(algebra: Algebra, number: int, value: Any) -> bool:
    node = algebra.nodes[number]
    assert node is not None
    met = []
    for field, said in node.facts.items():
        if field == "allOf":
            met.append(all(holds(algebra, lits, value) for lits in said))
        elif field in ("enum", "const"):
            met.append(constant(value, "") in said)
        elif field == "type":
            met.append(bool(said & KINDS[type(value)]))
        else:
            raise AssertionError(field)
    return all(met)


@lru_cache(maxsize=10_000)
def language_holds(lang: Lang, name: str) -> bool:
    """Whether a name is in a language of patterns and lists of texts."""
    for sign, kind, payload in lang:
        assert kind in ("pattern", "texts")
        inside = name in payload if kind == "texts" else re.search(str(payload), name) is not None  # type: ignore
        if inside != sign:
            return False
    return True


def in_object_case(algebra: Algebra, case: ObjectCase, value: dict[str, Any]) -> bool:
    """Whether an object is in a case: what the docstring of `ObjectCase` says, word for word."""
    names = dict(case.names)
    if not case.low <= len(value) <= (len(value) if case.high is None else case.high):
        return False
    if not case.required <= value.keys():
        return False
    for name, inside in value.items():
        if name in names:
            sets = [names[name]]
        else:
            sets = [lits for lang, lits in case.cells if language_holds(lang, name)] or [NEVER]
            assert len(sets) == 1, "cells are disjoint"
        if not holds(algebra, sets[0], inside):
            return False
    if any(name in value and not needed <= value.keys() for name, needed in case.needs):
        return False
    for lang, lits in case.somes:
        if not any(language_holds(lang, name) and holds(algebra, lits, inside) for name, inside in value.items()):
            return False
    return all(any(in_object_case(algebra, way, value) for way in clause) for clause in case.clauses)
