"""Leaf states of numbers: those of NumberAutomata, written to a MaskTable when they are reached.

The states of a DFA are all known when its leaf begins. Those of a number are not, since there is no last one. So the
kernels find the transitions of a state in the table, or request them, and this class writes them.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..automata.numerals.number_automaton import NumberAutomata
from ..automata.numerals.number_language import NumberLanguage
from ..automata.numerals.number_states import ZERO, Mantissa
from ..base.work import spend_work
from ..kernels import layout as at
from ..kernels.entry_points import append_number_leaf, write_number_transitions
from .number_rows import TABLE_IS_FULL, NumberRows

__all__ = ["TABLE_IS_FULL", "NumberLeaves"]

VERSION = 2
"""Of `marshal`: equal states have equal bytes, and integers may have any number of digits."""
STATE, ROW = 20, 300
"""Units of work for a state, and for a row."""
STATES = "the states of a number"


class NumberLeaves:
    """The numbers in the arrays of a MaskTable, whose lock the caller holds. `most` is the most leaf states.

    address: of the table's context, which the table sets when its arrays are there.
    """

    address = 0

    def __init__(self, arrays: Mapping[int, NDArray[np.int32]], most: int) -> None:
        self.arrays, self.most = arrays, most
        self._counts, self._leaves, self._machines = (arrays[slot].data for slot in (at.TABLE, at.LEAVES, at.MACHINES))
        self.automata = NumberAutomata()
        self.leaves: dict[int, int] = {}  # leaf states by states of the automata
        self.rows: NumberRows | None = None

    def start(self, machine: int, language: NumberLanguage) -> int:
        """Return the start state of a machine, after writing its transitions, or TABLE_IS_FULL."""
        leaf = self._intern(machine, self.automata.start(language))
        return leaf if leaf >= 0 and self.expand(leaf) >= 0 else TABLE_IS_FULL

    def is_number(self, leaf: int) -> bool:
        """Return whether a leaf state is one of a number."""
        machine = self._leaves[leaf * at.LEAF_W + at.LEAF_MACHINE]
        return self._machines[machine * at.MACHINE_W + at.MACHINE_MODE] == at.NUMBER

    def _state(self, leaf: int) -> int:
        """Return the state of the automata that a leaf state is."""
        return self._leaves[leaf * at.LEAF_W + at.LEAF_STATE]

    def least(self, leaf: int) -> int:
        """Return the least number of further bytes of a number."""
        return self.automata.least(self._state(leaf))

    def few_values(self, leaf: int) -> frozenset[Fraction] | None:
        """Return the magnitudes that the number may have, if they are few (see `NumberAutomata.few_values`)."""
        return self.automata.few_values(self._state(leaf))

    def is_written_out(self, leaf: int) -> bool:
        """Return whether no digit but 0 can follow in a number that has few values."""
        return self.automata.is_written_out(self._state(leaf))

    def make_row(self, leaf: int) -> int | None:
        """Make the row of a leaf state that may have digits, without the states that its tokens reach.

        Return the number of exits, or TABLE_IS_FULL, as the kernel `make_row` does; None for other states.
        """
        number = self._state(leaf)
        state = self.automata.states[number]
        if not isinstance(state, Mantissa) or state.phase == ZERO:
            return None
        spend_work(ROW, STATES)
        if self.rows is None:
            self.rows = NumberRows(self.arrays, self.address)
        return self.rows.make(self.automata.readers[number], state, leaf)

    def describe(self, leaf: int) -> bytes:
        """Return bytes that determine the future of a leaf state, in every process."""
        return marshal.dumps(self.automata.describe(self._state(leaf)), VERSION)

    def expand(self, leaf: int) -> int:
        """Write the transitions of a leaf state, interning its successors. Return 0, or TABLE_IS_FULL."""
        leaves, record = self._leaves, leaf * at.LEAF_W
        if leaves[record + at.LEAF_FLAGS] & at.LEAF_EXPANDED:
            return 0
        machine, state = leaves[record + at.LEAF_MACHINE], leaves[record + at.LEAF_STATE]
        row = self.automata.row(state)
        targets: dict[int, int] = {}
        pairs: list[int] = []
        for byte, after in row.items():
            target = targets.get(after)
            if target is None:
                target = targets[after] = self._intern(machine, after)
                if target == TABLE_IS_FULL:
                    return TABLE_IS_FULL
            pairs += byte, target
        return write_number_transitions(self.address, leaf, np.array(pairs, np.int32))

    def _intern(self, machine: int, state: int) -> int:
        """Return the leaf state of a state, or TABLE_IS_FULL. `machine`: that of a language which reaches it."""
        leaf = self.leaves.get(state, -1)
        if leaf < 0:
            if self._counts[at.N_LEAVES] >= self.most:
                return TABLE_IS_FULL
            spend_work(STATE, STATES)
            exits = at.LEAF_EXITS if self.automata.accepts(state) else 0
            leaf = append_number_leaf(self.address, machine, state, at.LEAF_BOUNDARY | exits)
            self.leaves[state] = leaf
        return leaf
