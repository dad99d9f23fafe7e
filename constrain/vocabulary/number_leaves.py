"""Leaf states of numbers: those of a NumberAutomaton, written to a MaskTable when they are reached.

The states of a DFA are all known when its leaf begins. Those of a number are not, since there is no last one. So the
kernels find the transitions of a state in the table, or request them, and this class writes them.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..automata.numerals.number_automaton import NumberAutomaton
from ..automata.numerals.number_language import NumberLanguage
from ..automata.numerals.number_states import ZERO, Mantissa
from ..base.work import spend_work
from ..kernels import layout as at
from ..kernels.entry_points import publish_word
from .number_rows import TABLE_IS_FULL, NumberRows

__all__ = ["TABLE_IS_FULL", "NumberLeaves"]

VERSION = 2
"""Of `marshal`: equal states have equal bytes, and integers may have any number of digits."""
STATE, ROW = 20, 300
"""Units of work for a state, and for a row."""
STATES = "the states of a number"


class NumberLeaves:
    """The numbers in the arrays of a MaskTable, whose lock the caller holds. `most` is the most leaf states."""

    def __init__(self, arrays: Mapping[int, NDArray[np.int32]], most: int) -> None:
        self.arrays, self.most = arrays, most
        self.automata: dict[int, NumberAutomaton] = {}  # by machine
        self.leaves: dict[tuple[int, int], int] = {}  # leaf states by machine and state of its automaton
        self.rows: NumberRows | None = None

    def start(self, machine: int, language: NumberLanguage) -> int:
        """Return the start state of a machine, after writing its transitions, or TABLE_IS_FULL."""
        self.automata[machine] = NumberAutomaton(language)
        leaf = self._intern(machine, 0)
        return leaf if leaf >= 0 and self.expand(leaf) >= 0 else TABLE_IS_FULL

    def is_number(self, leaf: int) -> bool:
        """Return whether a leaf state is one of a number."""
        machine = self.arrays[at.LEAVES][leaf * at.LEAF_W + at.LEAF_MACHINE]
        return bool(self.arrays[at.MACHINES][machine * at.MACHINE_W + at.MACHINE_MODE] == at.NUMBER)

    def least(self, leaf: int) -> int:
        """Return the least number of further bytes of a number."""
        machine, _, state = self.arrays[at.LEAVES][leaf * at.LEAF_W : leaf * at.LEAF_W + 3].tolist()
        return self.automata[machine].least(state)

    def few_values(self, leaf: int) -> frozenset[Fraction] | None:
        """Return the magnitudes that the number may have, if they are few (see `NumberAutomaton.few_values`)."""
        machine, _, state = self.arrays[at.LEAVES][leaf * at.LEAF_W : leaf * at.LEAF_W + 3].tolist()
        return self.automata[machine].few_values(state)

    def make_row(self, leaf: int) -> int | None:
        """Make the row of a leaf state that may have digits, without the states that its tokens reach.

        Return the number of exits, or TABLE_IS_FULL, as the kernel `make_row` does; None for other states.
        """
        machine, _, number = self.arrays[at.LEAVES][leaf * at.LEAF_W : leaf * at.LEAF_W + 3].tolist()
        automaton = self.automata[machine]
        state = automaton.states[number]
        if not isinstance(state, Mantissa) or state.phase == ZERO:
            return None
        spend_work(ROW, STATES)
        if self.rows is None:
            self.rows = NumberRows(self.arrays)
        return self.rows.make(automaton.reader, state, leaf)

    def describe(self, leaf: int) -> bytes:
        """Return bytes that determine the future of a leaf state within its language, in every process."""
        machine, _, state = self.arrays[at.LEAVES][leaf * at.LEAF_W : leaf * at.LEAF_W + 3].tolist()
        return marshal.dumps(tuple(self.automata[machine].states[state]), VERSION)

    def expand(self, leaf: int) -> int:
        """Write the transitions of a leaf state, interning its successors. Return 0, or TABLE_IS_FULL."""
        leaves, record = self.arrays[at.LEAVES], leaf * at.LEAF_W
        if leaves[record + at.LEAF_FLAGS] & at.LEAF_EXPANDED:
            return 0
        machine, _, state = leaves[record : record + 3].tolist()
        row = self.automata[machine].row(state)
        targets = {after: self._intern(machine, after) for after in set(row.values())}
        if TABLE_IS_FULL in targets.values():
            return TABLE_IS_FULL
        transitions = np.full(256, -1, np.int32)
        transitions[list(row)] = [targets[after] for after in row.values()]
        self.arrays[at.LEAF_NEXT][256 * leaf : 256 * leaf + 256] = transitions
        allowed = np.packbits(transitions >= 0, bitorder="little").view(np.int32)
        leaves[record + at.LEAF_BYTES : record + at.LEAF_BYTES + 8] = allowed
        leaves[record + at.LEAF_ALLOWED] = len(row)
        leaves[record + at.LEAF_STAYING_DEPTH] = 0  # computed again, now that there are transitions
        if len(row) < at.WIDE_LEAF:
            leaves[record + at.LEAF_ROW] = -2
        flags = int(leaves[record + at.LEAF_FLAGS]) | at.LEAF_EXPANDED
        publish_word(leaves.ctypes.data, record + at.LEAF_FLAGS, flags)
        return 0

    def _intern(self, machine: int, state: int) -> int:
        """Return the leaf state of a state of an automaton, or TABLE_IS_FULL."""
        leaf = self.leaves.get((machine, state), -1)
        if leaf < 0:
            counts, leaves = self.arrays[at.TABLE], self.arrays[at.LEAVES]
            leaf = int(counts[at.N_LEAVES])
            if leaf >= self.most:
                return TABLE_IS_FULL
            spend_work(STATE, STATES)
            record = leaves[leaf * at.LEAF_W : (leaf + 1) * at.LEAF_W]
            record[:] = 0
            record[at.LEAF_MACHINE], record[at.LEAF_STATE] = machine, state
            exits = at.LEAF_EXITS if self.automata[machine].accepts(state) else 0
            record[at.LEAF_FLAGS] = at.LEAF_BOUNDARY | exits
            record[[at.LEAF_ROW, at.LEAF_SUFFIXES, at.LEAF_BY_LENGTH, at.LEAF_SLOT]] = -1
            counts[at.N_LEAVES] = leaf + 1
            self.leaves[machine, state] = leaf
        return leaf
