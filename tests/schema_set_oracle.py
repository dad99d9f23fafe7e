"""SchemaSets whose values are known, for tests of the cases of the algebra.

There are two predicates: being the number 1, and being a string. They distinguish three kinds of values, and `VALUES`
has one of each.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from constrain.base.options import Limits, Style
from constrain.frontends.json_schema.algebra.shape_algebra import ShapeAlgebra
from constrain.frontends.json_schema.core.json_values import BOOLEAN, NULL, NUMBER, STRING, to_constant
from constrain.frontends.json_schema.core.schema_sets import ANY, NEVER, SchemaSet
from constrain.frontends.json_schema.reading.schema_parser import SchemaParser
from constrain.frontends.json_schema.shapes.object_case import ObjectCase
from constrain.frontends.json_schema.strings.string_languages import Language

__all__ = ["ONE", "TEXT", "VALUES", "holds", "in_object_case", "language_holds", "made"]

VALUES = (1, "x", None)
SCHEMAS: tuple[Any, ...] = ({"const": 1}, {"type": "string"})
ONE, TEXT = 0, 1
"""Indices of the predicates in SCHEMAS; `made` returns their SchemaSets."""

KINDS = {bool: BOOLEAN, int: NUMBER, str: STRING, type(None): NULL}


def made(style: Style | None = None, **limits: int) -> tuple[ShapeAlgebra, list[SchemaSet]]:
    """Return a new algebra, and the sets of all values, of none, and of one or both predicates."""
    style = style or Style.any()
    reader = SchemaParser({"prefixItems": list(SCHEMAS)}, None, style, Limits(**limits))
    algebra = ShapeAlgebra(reader, style, Limits(**limits))
    one, text = (
        reader.parse_subschema(raw, reader.references.main, f"/prefixItems/{index}")
        for index, raw in enumerate(SCHEMAS)
    )
    opposites = [algebra.complement(one), algebra.complement(text)]
    return algebra, [ANY, NEVER, one, text, *opposites, algebra.intersect(*opposites)]


@lru_cache(maxsize=10_000, typed=True)  # True is not 1.
def holds(algebra: ShapeAlgebra, schemas: SchemaSet, value: Any) -> bool:
    """Return whether a value, neither a list nor an object, is in a SchemaSet."""
    return schemas != NEVER and all(_in_node(algebra, abs(literal), value) == (literal > 0) for literal in schemas)


def _in_node(algebra: ShapeAlgebra, number: int, value: Any) -> bool:
    node = algebra.nodes[number]
    assert node is not None
    met = []
    for field, said in node.keywords.items():
        if field == "allOf":
            met.append(all(holds(algebra, schemas, value) for schemas in said))
        elif field in ("enum", "const"):
            met.append(to_constant(value, "") in said)
        elif field == "type":
            met.append(bool(said & KINDS[type(value)]))
        else:
            raise AssertionError(field)
    return all(met)


@lru_cache(maxsize=10_000)
def language_holds(lang: Language, name: str) -> bool:
    """Return whether a name is in a language of patterns and lists of texts."""
    for sign, kind, payload in lang:
        assert kind in ("pattern", "texts")
        inside = name in payload if kind == "texts" else re.search(str(payload), name) is not None  # type: ignore
        if inside != sign:
            return False
    return True


def in_object_case(algebra: ShapeAlgebra, case: ObjectCase, value: dict[str, Any]) -> bool:
    """Return whether an object is in a case, by the definition in the docstring of `ObjectCase`."""
    names = dict(case.names)
    if not case.low <= len(value) <= (len(value) if case.high is None else case.high):
        return False
    if not case.required <= value.keys():
        return False
    for name, inside in value.items():
        if name in names:
            sets = [names[name]]
        else:
            sets = [schemas for lang, schemas in case.cells if language_holds(lang, name)] or [NEVER]
            assert len(sets) == 1, "cells are disjoint"
        if not holds(algebra, sets[0], inside):
            return False
    if any(name in value and not needed <= value.keys() for name, needed in case.needs):
        return False
    for lang, schemas in case.existentials:
        if not any(language_holds(lang, name) and holds(algebra, schemas, inside) for name, inside in value.items()):
            return False
    return all(any(in_object_case(algebra, way, value) for way in clause) for clause in case.clauses)
