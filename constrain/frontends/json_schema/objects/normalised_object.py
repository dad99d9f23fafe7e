"""The normal form of an object case: non-empty, and written as one node of the Grammar."""

from __future__ import annotations

from typing import NamedTuple

from ..core.schema_sets import SchemaSet
from ..shapes.object_case import Cell, ObjectCase

__all__ = ["NormalisedObject", "normalise_plain_object"]


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
