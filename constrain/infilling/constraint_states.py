"""States of a Constraint, numbered, with the transitions by tokens and by bytes that lead from each.

A state is an interned set of configurations (see `engine.state_cache`): positions with the same state have the same
future, so that all texts that lead to it are treated at once. State `ENDED` follows an end token. The states and
transitions of a Constraint are kept as long as its state cache, so that another check of the same Constraint is fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConstrainError, LimitError
from ..engine.shortest_completion import completion_search
from ..engine.state_cache import StateCacheEvicted
from ..kernels import entry_points, layout as at
from ..sampling.core.masked_sampling import allowed_tokens
from ..sampling.research.token_automaton import ByteSteps

if TYPE_CHECKING:
    from ..engine.constraint import Constraint

__all__ = ["ENDED", "START", "Arcs", "ConstraintStates"]

ENDED, START = 0, 1
"""The states after an end token and before any text."""
MOST_ARCS = 40_000_000
"""Most transitions that are kept for one Constraint, 8 bytes each."""
PROBED = 16
"""Tokens that are tried to find out whether nearly each leads to a state of its own."""

Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Arcs:
    """The transitions from one state.

    labels : int32 [k], ascending: tokens or bytes. successors : int32 [u], ascending: the states that they lead to,
    each once. which : int32 [k], the index in `successors` for each label. is_sample : whether there are others.
    """

    labels: Ints
    successors: Ints
    which: Ints
    is_sample: bool = False

    @classmethod
    def of(cls, labels: NDArray[np.integer[Any]], targets: NDArray[np.integer[Any]], is_sample: bool = False) -> Arcs:
        """Return the transitions by `labels`, ascending, to `targets`."""
        successors, which = np.unique(targets, return_inverse=True)
        which = which.reshape(-1).astype(np.int32)
        return cls(labels.astype(np.int32), successors.astype(np.int32), which, is_sample)

    def target(self, label: int) -> int:
        """Return the state after a label; -1 if there is none."""
        index = int(np.searchsorted(self.labels, label))
        found = index < len(self.labels) and self.labels[index] == label
        return int(self.successors[self.which[index]]) if found else -1


class ConstraintStates:
    """The states of a Constraint in the current thread's state cache. Create one with `of`."""

    def __init__(self, constraint: Constraint) -> None:
        self.constraint, self.state_cache = constraint, constraint.state_cache()
        self.epoch = self.state_cache.epoch
        self.sets = [-1, self.state_cache.start]
        self.numbers = {self.state_cache.start: START}
        self.ends = np.array(constraint.vocabulary.eos_ids, np.int64)
        self.token_arcs: dict[int, Arcs] = {ENDED: Arcs.of(self.ends, np.full(len(self.ends), ENDED))}
        self.byte_arcs: dict[int, Arcs] = {ENDED: Arcs.of(np.empty(0, np.int64), np.empty(0, np.int64))}
        self._branching: dict[int, bool] = {}
        self.kept = 0
        self._steps = ByteSteps(constraint.vocabulary)
        self._costs: dict[int, int] = {}

    @classmethod
    def of(cls, constraint: Constraint) -> ConstraintStates:
        """Return the states of a Constraint in this thread; new ones after an eviction of the state cache."""
        state_cache = constraint.state_cache()
        states: ConstraintStates | None = state_cache.derived.get(cls)
        if states is None or states.epoch != state_cache.epoch:
            states = state_cache.derived[cls] = cls(constraint)
        return states

    def list_token_arcs(self, state: int) -> Arcs:
        """Return the transitions by one token, end tokens included."""
        arcs = self.token_arcs.get(state)
        if arcs is None:
            arcs = self.token_arcs[state] = self._keep(self._explore_tokens(state))
        return arcs

    def is_branching(self, state: int) -> bool:
        """Return whether nearly each token leads to a state of its own, judged by some of them.

        That is so within undeclared keys of an object: these must differ, so that states know their texts.
        """
        if state in self.token_arcs:
            return False  # it does not matter any more
        if state not in self._branching:
            tokens = self._allowed(state)
            some = tokens[:: max(1, len(tokens) // PROBED)]
            self._branching[state] = len(np.unique(self._states_after(state, some))) > PROBED // 2
        return self._branching[state]

    def sample_token_arcs(self, state: int, wanted: NDArray[np.int64]) -> Arcs:
        """Return transitions by some tokens: those of one byte, some others, and the `wanted` ones that are allowed."""
        tokens = self._allowed(state)
        some = tokens[:: max(1, len(tokens) // PROBED)]
        short = tokens[np.diff(self.constraint.vocabulary.offsets)[tokens] == 1]
        sampled = np.unique(np.concatenate([some, short, np.intersect1d(tokens, wanted)]))
        return replace(self._with_ends(state, sampled), is_sample=True)

    def list_byte_arcs(self, state: int) -> Arcs:
        """Return the transitions by one byte."""
        arcs = self.byte_arcs.get(state)
        if arcs is None:
            arcs = self.byte_arcs[state] = self._keep(self._explore_bytes(state))
        return arcs

    def step_token(self, state: int, token: int) -> int:
        """Return the state after a token; -1 if it is refused."""
        if token in self.constraint.vocabulary.eos_ids:
            return ENDED if self.is_accepting(state) else -1
        if state in self.token_arcs:
            return self.token_arcs[state].target(token)
        with self._guarded():
            after = self.state_cache.run(entry_points.advance_token, self.sets[state], token)
        return self._number(after) if after > 0 else -1

    def step_bytes(self, state: int, data: bytes) -> int:
        """Return the state after bytes; -1 if one of them is refused."""
        if state == ENDED or not data:
            return state if not data else -1
        with self._guarded():
            after = self.state_cache.advance_bytes(self.sets[state], data)
        return self._number(after) if after > 0 else -1

    def is_accepting(self, state: int) -> bool:
        """Return whether the text may end in a state."""
        if state == ENDED:
            return True
        with self._guarded():
            flags = self.state_cache.arrays[at.SETS][self.sets[state] * at.SET_W + at.SET_FLAGS]
        return bool(flags & at.IS_ACCEPTING)

    def cost(self, state: int) -> int:
        """Return a lower bound of the bytes that complete the text from a state."""
        cost = self._costs.get(state)
        if cost is None:
            with self._guarded():
                cost = 0 if state == ENDED else completion_search(self.state_cache).cost(self.sets[state])
            self._costs[state] = cost
        return cost

    def _explore_tokens(self, state: int) -> Arcs:
        return self._with_ends(state, self._allowed(state))

    def _allowed(self, state: int) -> NDArray[np.int64]:
        """Return the tokens that are allowed in a state, without end tokens."""
        out = np.empty(self.state_cache.table.words, np.int32)
        with self._guarded():
            self.state_cache.run(entry_points.write_mask, self.sets[state], out)
        allowed = allowed_tokens(out)
        return allowed[~np.isin(allowed, self.ends)]

    def _states_after(self, state: int, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the states after each of some allowed tokens: int64 [k]."""
        if not len(tokens):
            return tokens
        with self._guarded():
            sets = self._steps.after(self.state_cache, self.sets[state], tokens)
        found, which = np.unique(sets, return_inverse=True)
        return np.array([self._number(one) for one in found.tolist()], np.int64)[which.reshape(-1)]

    def _with_ends(self, state: int, tokens: NDArray[np.int64]) -> Arcs:
        """Return the transitions by some allowed tokens, and by end tokens where the text may end."""
        targets = self._states_after(state, tokens)
        if self.is_accepting(state):
            tokens = np.concatenate([tokens, self.ends])
            targets = np.concatenate([targets, np.full(len(self.ends), ENDED)])
            order = np.argsort(tokens, kind="stable")
            tokens, targets = tokens[order], targets[order]
        return Arcs.of(tokens, targets)

    def _explore_bytes(self, state: int) -> Arcs:
        flags = np.empty(256, np.uint8)
        with self._guarded():
            self.state_cache.run(entry_points.list_next_bytes, self.sets[state], flags)
        octets = np.flatnonzero(flags)
        return Arcs.of(octets, np.array([self.step_bytes(state, bytes((one,))) for one in octets.tolist()], np.int64))

    def _number(self, set_id: int) -> int:
        """Return the number of a set, a new one if it has none."""
        number = self.numbers.setdefault(set_id, len(self.sets))
        if number == len(self.sets):
            self.sets.append(set_id)
        return number

    def _keep(self, arcs: Arcs) -> Arcs:
        """Count the transitions that are kept. Raise LimitError if there are too many."""
        self.kept += len(arcs.labels)
        if self.kept > MOST_ARCS:
            self.state_cache.derived.pop(ConstraintStates, None)
            raise LimitError(
                f"Infilling keeps more than {MOST_ARCS:,} transitions of this constraint.",
                hint="Make the gaps shorter, or the constraint narrower.",
            )
        return arcs

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Raise LimitError if the states that this object knows have been evicted, before or during the block."""
        try:
            if self.state_cache.epoch != self.epoch:
                raise StateCacheEvicted
            yield
        except StateCacheEvicted:
            raise LimitError(
                "The states of this constraint between the gaps do not fit into Limits.state_cache_bytes = "
                f"{self.constraint.limits.state_cache_bytes:,}, or another text has displaced them.",
                hint="Check again, make the gaps shorter, or raise Limits(state_cache_bytes=...).",
            ) from None
        except ConstrainError:
            raise
        except BaseException:  # KeyboardInterrupt: the state cache may be inconsistent
            self.state_cache.lose()
            raise
