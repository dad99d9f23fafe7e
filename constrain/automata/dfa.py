"""Dfa: the one automaton of a regular language of texts, over Unicode characters grouped in classes.

A Dfa is trimmed (every state is reachable and leads to acceptance), minimal and numbered in one fixed way, so
two of one language are equal, arrays and all, and `key` names the language. Operations make new ones.
Construction happens on a Table of plain lists (`table`, `algebra`, `words`, `lengths`), where arrays are made once;
automata of many states stay in arrays (`wide`).
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from . import boolean_operations, large_automata, text_lengths
from .table import EMPTY, LAST, SURROGATES, Table, canonicalize_table, find_distances
from .word_automaton import build_word_automaton

__all__ = ["LAST", "MAX_STATES", "SURROGATES", "Dfa", "Table"]

MAX_STATES = 20_000
"""Most states of a construction where the caller does not say: `Limits.dfa_states`."""

MAX_WORD_STATES = 200_000
"""Most states of `from_strings`, which has no more of them than its words have characters."""

ON_SURROGATES = "a Table must be dead on surrogates: they are no characters"


@dataclass(frozen=True, eq=False, repr=False)
class Dfa:
    """bounds:    int32[R]    ascending starts of ranges of code points; bounds[0] == 0; the last ends at 0x110000
    classes:   int32[R]    class of each range, numbered by first code point
    delta:     int32[n, C] next state, or -1 (dead). Start is state 0; n == 0 is the empty language
    accepting: bool[n]
    key:       digest of the arrays: equal languages have equal keys

    All arrays are read-only. Surrogates lead to -1 everywhere. Make one with the class methods, never directly.
    """

    bounds: NDArray[np.int32]
    classes: NDArray[np.int32]
    delta: NDArray[np.int32]
    accepting: NDArray[np.bool_]
    key: bytes

    # ---- making one -------------------------------------------------------------------------------------------

    @classmethod
    def from_table(cls, table: Table) -> Dfa:
        """The Dfa of a Table in any numbering, not minimal. ValueError if it accepts surrogates."""
        if len(table.rows) > large_automata.WIDE:
            delta = np.array(table.rows, dtype="<i4")
            return cls.from_arrays(table.bounds, table.classes, delta, np.array(table.accepting, dtype=np.bool_))
        return cls._from_canonical_table(canonicalize_table(table))

    @classmethod
    def from_arrays(
        cls, bounds: list[int], classes: list[int], delta: large_automata.Ints, accepting: NDArray[np.bool_]
    ) -> Dfa:
        """As from_table: the Dfa of arrays in any numbering, not minimal."""
        arrays = large_automata.canonicalize_arrays(bounds, classes, delta, accepting)
        if arrays is None:
            return cls._from_canonical_table(
                canonicalize_table(Table(bounds, classes, delta.tolist(), accepting.tolist()))
            )
        first, end = np.searchsorted(arrays.bounds, [SURROGATES[0] + 1, SURROGATES[1]])
        if (arrays.delta[:, arrays.classes[first - 1 : end]] >= 0).any():
            raise ValueError(ON_SURROGATES)
        return cls._sealed(*arrays)

    @classmethod
    def _from_canonical_table(cls, table: Table) -> Dfa:
        first = bisect_right(table.bounds, SURROGATES[0]) - 1
        end = [*table.bounds[first + 1 : first + 2], LAST][0]
        dead = table.classes[first]
        if end < SURROGATES[1] or any(row[dead] >= 0 for row in table.rows):
            raise ValueError(ON_SURROGATES)
        count = max(table.classes) + 1
        dfa = cls._sealed(
            np.array(table.bounds, dtype="<i4"),
            np.array(table.classes, dtype="<i4"),
            np.array(table.rows, dtype="<i4").reshape(len(table.rows), count),
            np.array(table.accepting, dtype=np.bool_),
        )
        dfa.__dict__["table"] = table
        return dfa

    @classmethod
    def from_canonical(
        cls,
        bounds: NDArray[np.int32],
        classes: NDArray[np.int32],
        delta: NDArray[np.int32],
        accepting: NDArray[np.bool_],
        distances: list[int],
    ) -> Dfa:
        """From arrays that are trimmed, minimal and numbered already, little-endian and contiguous: nothing is checked.

        For what is too large to be built as a Table. distances: as `find_distances` says them.
        """
        dfa = cls._sealed(bounds, classes, delta, accepting)
        dfa.__dict__["_distances"] = distances
        return dfa

    @classmethod
    def _sealed(
        cls,
        bounds: NDArray[np.int32],
        classes: NDArray[np.int32],
        delta: NDArray[np.int32],
        accepting: NDArray[np.bool_],
    ) -> Dfa:
        """From canonical arrays."""
        digest = blake2b(repr((len(bounds), delta.shape)).encode(), digest_size=16)
        for array in (bounds, classes, delta, accepting):
            digest.update(array.tobytes())
            array.flags.writeable = False
        return cls(bounds, classes, delta, accepting, digest.digest())

    @classmethod
    def empty(cls) -> Dfa:
        """No text."""
        return cls.from_table(EMPTY)

    @classmethod
    def any_text(cls) -> Dfa:
        """All texts."""
        return cls.from_table(boolean_operations.make_any_text())

    @classmethod
    def from_ranges(cls, ranges: Iterable[tuple[int, int]]) -> Dfa:
        """One character out of inclusive ranges of code points, in any order; surrogates are left out."""
        return cls.from_table(boolean_operations.make_ranges(ranges))

    @classmethod
    def from_strings(cls, words: Iterable[str], *, max_states: int = MAX_WORD_STATES) -> Dfa:
        """Exactly these texts. ValueError if one holds a surrogate."""
        words = list(words)
        return cls._sealed(*build_word_automaton(words, max_states)) if words else cls.empty()

    @classmethod
    def union_of(cls, languages: Iterable[Dfa], *, max_states: int = MAX_STATES) -> Dfa:
        """What at least one of them accepts."""
        parts = list(dict.fromkeys(languages)) or [cls.empty()]
        while len(parts) > 1:  # Pairwise, so that n small ones cost n log n and not n squared.
            pairs = zip(parts[::2], parts[1::2])
            parts = [a.union(b, max_states=max_states) for a, b in pairs] + (parts[-1:] if len(parts) % 2 else [])
        return parts[0]

    @classmethod
    def exactly_one_of(cls, languages: Iterable[Dfa], *, max_states: int = MAX_STATES) -> tuple[Dfa, bool]:
        """What exactly one of them accepts; and whether any two of them have a text in common."""
        found = boolean_operations.accept_exactly_one([language.table for language in languages], max_states)
        return cls.from_table(found.table), found.overlapping

    # ---- new ones from old ------------------------------------------------------------------------------------

    def union(self, other: Dfa, *, max_states: int = MAX_STATES) -> Dfa:
        """What one or both accept."""
        return self if self == other else self._product(other, operator.or_, max_states)

    def intersect(self, other: Dfa, *, max_states: int = MAX_STATES) -> Dfa:
        """What both accept."""
        return self if self == other else self._product(other, operator.and_, max_states)

    def subtract(self, other: Dfa, *, max_states: int = MAX_STATES) -> Dfa:
        """What this one accepts and the other does not."""
        return self._product(other, operator.gt, max_states)

    def complement(self) -> Dfa:
        """All texts that this one does not accept."""
        return Dfa.from_table(boolean_operations.complement_table(self.table))

    def concatenate(self, other: Dfa, *, max_states: int = MAX_STATES) -> Dfa:
        """A text of this one and then one of the other."""
        return Dfa.from_table(boolean_operations.concatenate_tables(self.table, other.table, max_states))

    def repeat(self, low: int = 0, high: int | None = None, *, max_states: int = MAX_STATES) -> Dfa:
        """`low` to `high` texts of this one in a row (None: no bound)."""
        return Dfa.from_table(boolean_operations.repeat_table(self.table, low, high, max_states))

    def star(self, *, max_states: int = MAX_STATES) -> Dfa:
        """Any number of texts of this one in a row, also none."""
        return self.repeat(0, None, max_states=max_states)

    def with_length(self, low: int = 0, high: int | None = None, *, max_states: int = MAX_STATES) -> Dfa:
        """Its texts of `low` to `high` characters (None: no bound)."""
        least, most = self.lengths()
        if least >= low and (high is None or (most is not None and most <= high)):
            return self
        return Dfa.from_table(boolean_operations.bound_lengths(self.table, low, high, self._distances, max_states))

    def _product(self, other: Dfa, accept: object, max_states: int) -> Dfa:
        assert callable(accept)
        if max(len(self.delta), len(other.delta)) > large_automata.WIDE:
            first, second = self._arrays, other._arrays
            ranges = (Table(one.bounds.tolist(), one.classes.tolist(), (), ()) for one in (first, second))
            bounds, classes, pairs = boolean_operations.merge_ranges(*ranges)
            return Dfa.from_arrays(
                bounds, classes, *large_automata.product_of_arrays(first, second, pairs, accept, max_states)
            )
        return Dfa.from_table(boolean_operations.product_of_tables(self.table, other.table, accept, max_states))

    def meets(self, other: Dfa) -> bool:
        """Whether some text is in both."""
        return (self == other and not self.is_empty) or boolean_operations.has_common_text(self.table, other.table)

    # ---- questions --------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether it accepts no text."""
        return not len(self.delta)

    @property
    def is_universal(self) -> bool:
        """Whether it accepts every text."""
        return self.delta.shape == (1, 2) and self == Dfa.any_text()

    def step(self, state: int, char: str) -> int:
        """The state after one character, -1 if that is dead. `state` may be -1."""
        if state < 0:
            return -1
        table = self.table
        return table.rows[state][table.classes[bisect_right(table.bounds, ord(char)) - 1]]

    def accepts(self, text: str) -> bool:
        """Whether the text is in the language."""
        table = self.table
        if not table.rows:
            return False
        bounds, classes, rows = table.bounds, table.classes, table.rows
        state = 0
        for char in text:
            state = rows[state][classes[bisect_right(bounds, ord(char)) - 1]]
            if state < 0:
                return False
        return table.accepting[state]

    def shortest(self) -> str:
        """The first of its shortest texts. ValueError if there is none."""
        if self.is_empty:
            raise ValueError("the empty language has no shortest text")
        return text_lengths.find_shortest_text(self.table)

    def count(self, cap: int) -> int:
        """Number of its texts, at most `cap`."""
        return text_lengths.count_texts(self.table, cap)

    def enumerate(self, cap: int) -> list[str]:
        """Its first `cap` texts, shorter ones first, then by code point."""
        return list(islice(text_lengths.enumerate_texts(self.table), cap))

    def leads_beyond(self, begun: str, ranges: list[tuple[int, int]] | None, taken: Iterable[str]) -> bool:
        """Whether it accepts a text that begins so, goes on with a character of `ranges` and is not among `taken`.

        ranges: of code points, inclusive and disjoint; None: the text may also end here.
        """
        return text_lengths.leads_beyond(self.table, begun, ranges, taken)

    def lengths(self) -> tuple[int, int | None]:
        """Least and most characters of a text (None: no bound); (1, 0) if there is no text."""
        return (self._distances[0], text_lengths.find_longest_length(self.table)) if self.table.rows else (1, 0)

    def extensible(self) -> bool:
        """Whether from every state, acceptance in d more characters implies acceptance in d + 1: no gaps, no end."""
        return text_lengths.is_extensible(self.table)

    def endless(self) -> bool:
        """Whether every text that begins an accepted one begins infinitely many."""
        return text_lengths.is_endless(self.table)

    def distances(self) -> NDArray[np.int32]:
        """int32[n]: least number of characters from each state to acceptance."""
        return np.array(self._distances, dtype=np.int32)

    @cached_property
    def table(self) -> Table:
        """The same as plain lists, which small automata are worked on in."""
        return Table(self.bounds.tolist(), self.classes.tolist(), self.delta.tolist(), self.accepting.tolist())

    @property
    def _arrays(self) -> large_automata.DfaArrays:
        return large_automata.DfaArrays(self.bounds, self.classes, self.delta, self.accepting)

    @cached_property
    def _distances(self) -> list[int]:
        found = (
            large_automata.find_array_distances(self.delta, self.accepting)
            if len(self.delta) > large_automata.WIDE
            else None
        )
        return find_distances(self.table) if found is None else found.tolist()

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Dfa) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Dfa({len(self.table.rows)} states, {self.delta.shape[1]} classes, key {self.key.hex()[:8]})"
