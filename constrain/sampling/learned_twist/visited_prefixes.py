"""The texts that populations have visited, with the distribution of the next token after each.

This is all that values are learned from (`value_backups`): the model is not called for it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["VisitedPrefix", "VisitedPrefixes"]


class VisitedPrefix:
    """A visited text, and what may follow it.

    Attributes
    ----------
    slot, token : int
        Slot of the text, and its last token (-1 for the empty text); see `value_table`.
    prob : float
        Probability of that token after the text before it.
    left : int
        Number of tokens left, end token included.
    tokens, slots : int64 [k]
        Next tokens that were followed to their states, without end tokens, and the slot after each.
    probs : float64 [k]
        Their probabilities.
    rest_slot, rest_prob : int, float
        Slot that stands for all other allowed tokens, and their probability.
    end_prob : float
        Probability of the end of the text here, 0 if it may not end.
    children : dict
        By token, those texts with one token more that were visited.
    weight : float
        From 0 to 1: for how many texts it counts in means. Populations also visit texts that are hardly worth it, and
        what the model does after these says little about others.
    value : float or None
        Estimated probability that the text is completed, once computed.
    """

    __slots__ = (
        "children",
        "end_prob",
        "left",
        "prob",
        "probs",
        "rest_prob",
        "rest_slot",
        "slot",
        "slots",
        "token",
        "tokens",
        "value",
        "weight",
    )

    def __init__(self, slot: int, token: int, prob: float, left: int) -> None:
        self.slot, self.token, self.prob, self.left = slot, token, prob, left
        self.tokens: NDArray[np.int64] = np.empty(0, np.int64)
        self.slots: NDArray[np.int64] = np.empty(0, np.int64)
        self.probs: NDArray[np.float64] = np.empty(0)
        self.rest_slot, self.rest_prob, self.end_prob = slot, 0.0, 0.0
        self.children: dict[int, VisitedPrefix] = {}
        self.weight = 1.0
        self.value: float | None = None


class VisitedPrefixes:
    """The visited texts of one model, as a trie. `listed` has all of them, parents before their children."""

    def __init__(self) -> None:
        self.listed: list[VisitedPrefix] = []

    def __len__(self) -> int:
        return len(self.listed)

    @property
    def root(self) -> VisitedPrefix | None:
        """The empty text, once it was visited."""
        return self.listed[0] if self.listed else None

    def add(self, parent: VisitedPrefix | None, slot: int, token: int, prob: float, left: int) -> VisitedPrefix:
        """Add the text of `parent` with one more token; the empty text if `parent` is None."""
        visited = VisitedPrefix(slot, token, prob, left)
        if parent is not None:
            parent.children[token] = visited
        self.listed.append(visited)
        return visited
