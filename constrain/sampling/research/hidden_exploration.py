"""Exploration of the product of an Hmm and a Constraint: which states of the automaton there are, and their arcs.

`explore_all` finds everything that a number of tokens reaches, `explore_likely` what masking reaches, by the rule of
`product_exploration`, with the states of the automaton in place of pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .hidden_markov import Hmm
from .product_exploration import TAIL
from .token_automaton import TokenAutomaton

__all__ = ["HiddenExplorer"]

Floats = NDArray[np.float64]
Arcs = tuple[NDArray[np.int64], NDArray[np.int32]]
NO_ARCS: Arcs = np.empty(0, np.int64), np.empty(0, np.int32)


class HiddenExplorer:
    """Finds the arcs of states of the automaton.

    arcs: by state, the tokens (int64 [k], ascending) and the state after each (int32 [k]). edges: by state, its
    different successors (int64 [e]) and the probability of the tokens that lead to each (float64 [e, K]). dropped: by
    state, the probability of allowed tokens that are not followed, float64 [K]. K: hidden states.
    """

    def __init__(self, lm: Hmm, automaton: TokenAutomaton) -> None:
        self.lm, self.automaton = lm, automaton
        self.arcs: dict[int, Arcs] = {}
        self.edges: dict[int, tuple[NDArray[np.int64], Floats]] = {}
        self.dropped: dict[int, Floats] = {}
        self._masses: dict[int, Floats] = {}

    def explore_all(self, max_tokens: int) -> None:
        """Expand each state that fewer than max_tokens tokens reach, breadth first. States of the last layer have no
        arcs, since only an end token fits after them.
        """
        done = 0
        for _ in range(max_tokens - 1):
            layer = len(self.automaton)
            for state in range(done, layer):
                self._expand(state, self.automaton.allowed(state))
            done = layer

    def explore_likely(self, max_tokens: int, threshold: float, ending: Floats) -> None:
        """Expand the states, and keep the edges, that masking takes this often per text.

        ending: float64 [K], the probability of the end tokens.
        """
        visits, known, layer = dict[int, Floats](), dict[int, float](), {0: self.lm.start}
        for _ in range(max_tokens - 1):
            after: dict[int, Floats] = {}
            for state, mass in layer.items():
                visits[state] = visits[state] + mass if state in visits else mass
                if visits[state].sum() >= max(threshold, 2 * known.get(state, 0.0)):
                    known[state] = float(visits[state].sum())
                    self._expand_likely(state, self._mask(visits[state], state, ending), threshold)
                if state in self.arcs:
                    targets, weights = self.edges[state]
                    for target, moved in zip(
                        targets.tolist(), (self._mask(mass, state, ending) * weights) @ self.lm.move
                    ):
                        after[target] = after[target] + moved if target in after else moved
            layer = after
        for state in range(len(self.automaton)):
            if state not in self.arcs:  # anything may follow but the end, which the product has
                self.dropped[state] = np.maximum(1 - ending, 0.0)

    def _mask(self, mass: Floats, state: int, ending: Floats) -> Floats:
        """Return a mass by hidden state (float64 [K]), scaled so that it is as large after what the mask refuses."""
        left = float(mass @ self._allowed_mass(state, ending))
        return mass * (float(mass.sum()) / left) if left > 0 else np.zeros_like(mass)

    def _allowed_mass(self, state: int, ending: Floats) -> Floats:
        """Return the mass that the mask leaves, by hidden state: float64 [K]."""
        if state not in self._masses:
            mass = self.lm.emit[:, self.automaton.allowed(state)].sum(axis=1)
            self._masses[state] = mass + ending if self.automaton.accepting[state] else mass
        return self._masses[state]

    def _expand_likely(self, state: int, mass: Floats, threshold: float) -> None:
        """Find the edges of a state that take at least this much of a mass by hidden state (float64 [K])."""
        allowed = self.automaton.allowed(state)
        shares = mass @ self.lm.emit[:, allowed]
        followed = np.flatnonzero(shares >= TAIL * threshold)
        sets = self.automaton.sets_after(state, allowed[followed])
        different, inverse = np.unique(sets, return_inverse=True)
        kept = followed[np.bincount(inverse, shares[followed], len(different))[inverse] >= threshold]
        self._expand(state, allowed[kept])
        others = np.ones(len(allowed), np.bool_)
        others[kept] = False
        self.dropped[state] = self.lm.emit[:, allowed[others]].sum(axis=1)

    def _expand(self, state: int, tokens: NDArray[np.int64]) -> None:
        after = self.automaton.follow(state, tokens)
        self.arcs[state] = tokens, after
        targets, inverse = np.unique(after.astype(np.int64), return_inverse=True)
        weights = np.zeros((len(targets), len(self.lm.start)))
        np.add.at(weights, inverse, self.lm.emit[:, tokens].T)
        self.edges[state] = targets, weights
