"""Alignments of a text with a valid one, and what their edits cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .character_graph import CharacterGraph

__all__ = ["EDIT", "INSERT", "Alignment", "cost_step", "list_steps"]

EDIT = 1 << 32
"""The cost of one edit; what is added to it decides between paths of equally many edits."""
INSERT, DELETE, REPLACE, REQUOTE = EDIT + 2, EDIT + 2, EDIT + 3, EDIT + 1
QUOTES = frozenset("'\"`‘’“”„«»")
"""One quotation mark in place of another is the likeliest mistake of a text that was meant to be JSON."""


class Alignment(NamedTuple):
    """A valid text aligned with the original.

    cost: `EDIT` for each edit, and less than that in all for their kinds. steps: pairs of an original character and the
    one in its place, "" for none.
    """

    cost: int
    steps: tuple[tuple[str, str], ...]

    @property
    def distance(self) -> int:
        """Number of edits."""
        return self.cost // EDIT

    @property
    def text(self) -> str:
        """The valid text."""
        return "".join(new for _, new in self.steps)


def list_steps(graph: CharacterGraph, text: str, read: int, state: int) -> Iterator[tuple[int, str, str, int, int]]:
    """Yield the edits at a node as (cost, original character, new character, characters read after it, state after it).

    read: the number of characters of the text that were read.
    """
    old = text[read : read + 1]
    if old:
        yield DELETE, old, "", read + 1, state
    for new, after in graph.list_alternatives(state):
        if old:
            yield cost_step(old, new), old, new, read + 1, after
        yield INSERT, "", new, read, after


def cost_step(old: str, new: str) -> int:
    """Return the cost of a step: of one character kept, deleted or replaced, or of characters inserted."""
    if old == new:
        return 0
    if not old:
        return INSERT * len(new)
    if not new:
        return DELETE
    return REQUOTE if old in QUOTES and new in QUOTES else REPLACE
