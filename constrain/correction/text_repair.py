"""Repair of a text without a model: the nearest valid text, with its edits and whether it was proved to be nearest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..base.errors import TokenRefused
from ..base.options import Limits
from ..base.work import confine_budgets, work_budget
from ..engine.constraint import Constraint
from .alignment import EDIT, Alignment
from .character_graph import CharacterGraph
from .edit_beam import search_beam
from .edits import Edit, list_edits
from .nearest_text import search_nearest

__all__ = ["MOST_NODES", "Repair", "is_valid", "repair_text"]

MOST_NODES = 100_000
"""Default number of nodes that the exact search expands: a few seconds."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A valid text in place of another one.

    Attributes
    ----------
    text : str
        The valid text.
    original : str
        The text that was repaired.
    distance : int
        Number of characters inserted, deleted and replaced; 0 if the original was valid.
    at_least : int
        Proved lower bound of the distance of any valid text; equal to `distance` if the text is a nearest one.
    edits : tuple of Edit
        What was changed, in order.
    value : object
        The parsed text, as `Generation.value`; None where only a Constraint was given.
    """

    text: str
    original: str
    distance: int
    at_least: int
    edits: tuple[Edit, ...]
    value: Any = None

    @property
    def is_nearest(self) -> bool:
        """Whether no valid text is nearer to the original."""
        return self.distance == self.at_least


@confine_budgets
def repair_text(text: str, constraint: Constraint, most_nodes: int = MOST_NODES, work: int = Limits().work) -> Repair:
    """Return the valid text that takes the fewest edits of characters.

    Parameters
    ----------
    text : str
        The text to repair.
    constraint : Constraint
        What it must satisfy, compiled for `Vocabulary.bytes`.
    most_nodes : int
        Maximum number of nodes of the exact search. If they do not suffice, the result is that of the beam search, and
        `Repair.at_least` says below which distance there is nothing.
    work : int
        Maximum units of work (`Limits.work`) of both searches. The exact one ends when they are used up, too.

    Returns
    -------
    Repair

    Raises
    ------
    LimitError
        If the work does not suffice to find any valid text.
    """
    if is_valid(constraint, text):
        return Repair(text, text, 0, 0, ())
    with work_budget(work):
        graph = CharacterGraph(constraint)
        near = search_beam(graph, text)
        exact = search_nearest(graph, text, most_nodes, near.distance * EDIT)
    best: Alignment = exact.found or near
    return Repair(best.text, text, best.distance, exact.at_least, list_edits(best.steps))


def is_valid(constraint: Constraint, text: str) -> bool:
    """Return whether a text satisfies a constraint compiled for `Vocabulary.bytes`."""
    matcher = constraint.matcher()
    try:
        matcher.advance_bytes(text.encode())
    except TokenRefused:
        return False
    return matcher.is_complete
