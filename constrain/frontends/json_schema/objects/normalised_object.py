"""The normal form of an object case: non-empty, and written as one node of the Grammar."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.schema_sets import ANY, NEVER, SchemaSet
from ..shapes.object_case import NO_NAMES, Cell, ObjectCase
from ..strings.string_languages import ALL

__all__ = ["NormalisedObject", "normalise_plain_keywords", "normalise_plain_object"]


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


def normalise_plain_keywords(keywords: dict[str, Any]) -> NormalisedObject:
    """Return the normal form of the objects that `properties`, `required` and `additionalProperties` allow, all of
    whose values are possible. Keys that only `required` names are written last.
    """
    properties: dict[str, SchemaSet] = keywords.get("properties", {})
    additional: SchemaSet = keywords.get("additionalProperties", ANY)
    names, required = tuple(properties.items()), NO_NAMES
    if "required" in keywords:
        required = frozenset(keywords["required"])
        if not required <= properties.keys():
            names += tuple([(name, additional) for name in keywords["required"] if name not in properties])
    return NormalisedObject(names, required, (), () if additional == NEVER else ((ALL, additional),), 0, None, {})
