"""The normal form of an object case: non-empty, and written as one node of the Grammar."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.schema_sets import ANY, NEVER, SchemaSet
from ..shapes.object_case import Cell, ObjectCase
from ..strings.string_languages import ALL

__all__ = ["NormalisedObject", "build_plain_object", "normalise_plain_object"]


class NormalisedObject(NamedTuple):
    """An object case as it is written.

    names: declared keys that may occur, in order. forbidden: declared keys that may not. cells: disjoint languages of
    other names. classes: languages of other names, each of which must have a separate member.
    """

    names: tuple[tuple[str, SchemaSet], ...]
    required: frozenset[str]
    forbidden: tuple[str, ...]
    cells: tuple[Cell, ...]
    low: int
    high: int | None
    needs: dict[str, frozenset[str]]
    classes: tuple[Cell, ...] = ()


def normalise_plain_object(case: ObjectCase) -> NormalisedObject:
    """Return the normal form of a case whose values are all possible and in which nothing is counted or constrained."""
    names = case.names
    if case.mentioned:
        names = tuple(sorted(names, key=lambda item: item[0] in case.mentioned))
    return NormalisedObject(names, case.required, (), case.cells, 0, None, {})


def build_plain_object(keywords: dict[str, Any]) -> NormalisedObject:
    """Return the normal form of `properties`, `required` and `additionalProperties` whose values are all possible.

    It equals that of the case that `object_keywords.build_object_case` makes of these keywords.
    """
    names: dict[str, SchemaSet] = keywords.get("properties", {})
    required: tuple[str, ...] = keywords.get("required", ())
    additional: SchemaSet = keywords.get("additionalProperties", ANY)
    if not names.keys() >= set(required):
        names = {**names, **{name: additional for name in required if name not in names}}
    cells: tuple[Cell, ...] = () if additional == NEVER else ((ALL, additional),)
    return NormalisedObject(tuple(names.items()), frozenset(required), (), cells, 0, None, {})
