"""States within one gap: those of the Constraint, or pairs of these and states of the gap's own constraint.

The pairs are the product construction for intersections: a label leads on if it does so in both parts, and the gap may
end where its own constraint accepts.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .constraint_states import ENDED, START, Arcs, ConstraintStates

__all__ = ["GapStates"]


class GapStates:
    """Numbered states of a gap. Without `inner`, they have the numbers of the Constraint's own states.

    Parameters
    ----------
    outer : ConstraintStates
        The states of the Constraint of the whole text.
    inner : ConstraintStates or None
        Those of the gap's own constraint.
    unit : {"tokens", "bytes"}
        The labels of the transitions.
    end_tokens : {"allowed", "refused"}
        Whether end tokens are labels.
    """

    def __init__(
        self,
        outer: ConstraintStates,
        inner: ConstraintStates | None,
        unit: Literal["tokens", "bytes"],
        end_tokens: Literal["allowed", "refused"] = "allowed",
    ) -> None:
        self.outer, self.inner, self.unit = outer, inner, unit
        self.is_shared = inner is None and (unit == "bytes" or end_tokens == "allowed")
        self.refuses_ends = end_tokens == "refused"
        self.pairs: list[tuple[int, int]] = []
        self.numbers: dict[tuple[int, int], int] = {}
        self._arcs: dict[int, Arcs] = {}

    def code_limit(self) -> int:
        """Return a number above all codes so far (see `lattice_steps`)."""
        return 2 * max(len(self.outer.sets), len(self.pairs))

    def enter(self, state: int) -> int:
        """Return the state at the start of the gap, for a state of the Constraint."""
        return state if self.inner is None else self._number((state, START))

    def leave(self, number: int) -> int:
        """Return the state of the Constraint if the gap ends here; -1 if it may not."""
        if self.inner is None:
            return number
        state, own = self.pairs[number]
        return state if self.inner.is_accepting(own) else -1

    def cost(self, number: int) -> int:
        """Return a lower bound of the bytes that complete the text, and of those that complete the gap."""
        if self.inner is None:
            return self.outer.cost(number)
        state, own = self.pairs[number]
        return self.outer.cost(state) + self.inner.cost(own)

    def target(self, number: int, token: int) -> int:
        """Return the state after a token; -1 if it is refused."""
        if self.inner is None:
            after = self.outer.step_token(number, token)
            return -1 if after == ENDED and self.refuses_ends else after
        state, own = self.pairs[number]
        pair = self.outer.step_token(state, token), self.inner.step_token(own, token)
        if min(pair) < 0 or (pair[0] == ENDED and self.refuses_ends):
            return -1
        return self._number(pair)

    def list_arcs(self, number: int) -> Arcs:
        """Return the transitions from a state."""
        if self.is_shared:
            return self._list_part(self.outer, number)
        arcs = self._arcs.get(number)
        if arcs is None:
            outer = self._list_part(self.outer, number if self.inner is None else self.pairs[number][0])
            arcs = self._arcs[number] = self._intersect(number, outer)
        return arcs

    def is_branching(self, number: int) -> bool:
        """Return whether nearly each token leads to a state of its own (see `ConstraintStates.is_branching`)."""
        return self.outer.is_branching(number if self.inner is None else self.pairs[number][0])

    def sample_arcs(self, number: int, wanted: NDArray[np.int64]) -> Arcs:
        """Return transitions by some tokens, among them the `wanted` ones that are allowed."""
        outer = self.outer.sample_token_arcs(number if self.inner is None else self.pairs[number][0], wanted)
        return outer if self.is_shared else self._intersect(number, outer)

    def _list_part(self, part: ConstraintStates, state: int) -> Arcs:
        return part.list_token_arcs(state) if self.unit == "tokens" else part.list_byte_arcs(state)

    def _intersect(self, number: int, outer: Arcs) -> Arcs:
        """Return the transitions that both parts have, without end tokens where these are refused."""
        labels, targets = outer.labels, outer.successors[outer.which]
        if self.refuses_ends:
            labels, targets = labels[targets != ENDED], targets[targets != ENDED]
        if self.inner is None:
            return Arcs.of(labels, targets, outer.is_sample)
        inner = self._list_part(self.inner, self.pairs[number][1])
        common, left, right = np.intersect1d(labels, inner.labels, assume_unique=True, return_indices=True)
        numbers = self._number_all(targets[left], inner.successors[inner.which[right]])
        return Arcs.of(common, numbers, outer.is_sample)

    def _number_all(self, states: NDArray[np.int32], own: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the numbers of pairs: int64 [k]."""
        pairs, which = np.unique(np.stack([states, own], axis=1), axis=0, return_inverse=True)
        numbers = np.array([self._number((one[0], one[1])) for one in pairs.tolist()], np.int64)
        return numbers[which.reshape(-1)]

    def _number(self, pair: tuple[int, int]) -> int:
        number = self.numbers.setdefault(pair, len(self.pairs))
        if number == len(self.pairs):
            self.pairs.append(pair)
        return number
