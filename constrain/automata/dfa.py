"""Dfa: the canonical deterministic automaton of a regular language over Unicode characters.

A Dfa is trim (every state is reachable and co-reachable), minimal and numbered canonically, so two Dfas of the same
language have equal arrays, and `key` identifies the language. A Dfa is immutable; operations return new ones.

Constructions work on a Table of plain lists (`table`, `boolean_operations`, `text_lengths`), which is converted to
arrays once at the end; automata with many states are processed as arrays throughout (`large_automata`,
`word_automaton`).
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
"""Default limit of the states of a construction; callers usually pass `Limits.dfa_states`."""

MAX_WORD_STATES = 200_000
"""Default limit of the states of `from_strings`; their number is at most one more than the characters of its words."""

ON_SURROGATES = "a Table must be dead on surrogates: they are not characters"


@dataclass(frozen=True, eq=False, repr=False)
class Dfa:
    """A minimal deterministic automaton over classes of Unicode code points.

    Attributes
    ----------
    bounds : int32[R]
        Starts of ranges of code points, ascending from 0; the last range ends before 0x110000.
    classes : int32[R]
        Class of each range; classes are numbered by their first code point.
    delta : int32[n, C]
        Next state, or -1 (dead). The start is state 0; the empty language has no states.
    accepting : bool[n]
        Whether a state is accepting.
    key : bytes
        Digest of the arrays; equal languages have equal keys.

    All arrays are read-only. Every state leads to -1 on surrogates. Create instances with the class methods only.
    """

    bounds: NDArray[np.int32]
    classes: NDArray[np.int32]
    delta: NDArray[np.int32]
    accepting: NDArray[np.bool_]
    key: bytes

    # ---- constructors -----------------------------------------------------------------------------------------

    @classmethod
    def from_table(cls, table: Table) -> Dfa:
        """Return the Dfa of a Table, which need not be trim or minimal. Raise ValueError if it accepts surrogates."""
        if len(table.rows) > large_automata.WIDE:
            delta = np.array(table.rows, dtype="<i4")
            return cls.from_arrays(table.bounds, table.classes, delta, np.array(table.accepting, dtype=np.bool_))
        return cls._from_canonical_table(canonicalize_table(table))

    @classmethod
    def from_arrays(
        cls, bounds: list[int], classes: list[int], delta: large_automata.Ints, accepting: NDArray[np.bool_]
    ) -> Dfa:
        """Return the Dfa of arrays in any numbering, which need not be trim or minimal; see `from_table`."""
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
        """Return the Dfa of a canonical Table. Raise ValueError if it accepts surrogates."""
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
        """Return the Dfa of canonical arrays (trim, minimal, numbered; little-endian and contiguous), without
        validation.

        For automata that are too large to be built as a Table. `distances` is as returned by `find_distances`.
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
        """Make canonical arrays read-only, compute their key and return the Dfa."""
        digest = blake2b(repr((len(bounds), delta.shape)).encode(), digest_size=16)
        for array in (bounds, classes, delta, accepting):
            digest.update(array.tobytes())
            array.flags.writeable = False
        return cls(bounds, classes, delta, accepting, digest.digest())

    @classmethod
    def empty(cls) -> Dfa:
        """Return the Dfa of the empty language."""
        return cls.from_table(EMPTY)

    @classmethod
    def any_text(cls) -> Dfa:
        """Return the Dfa of all texts."""
        return cls.from_table(boolean_operations.make_any_text())

    @classmethod
    def from_ranges(cls, ranges: Iterable[tuple[int, int]]) -> Dfa:
        """Return the Dfa of one character out of inclusive ranges of code points, in any order; surrogates are
        excluded.
        """
        return cls.from_table(boolean_operations.make_ranges(ranges))

    @classmethod
    def from_strings(cls, words: Iterable[str], *, max_states: int = MAX_WORD_STATES) -> Dfa:
        """Return the Dfa of exactly these texts. Raise ValueError if one contains a surrogate."""
        words = list(words)
        return cls._sealed(*build_word_automaton(words, max_states)) if words else cls.empty()

    @classmethod
    def union_of(cls, languages: Iterable[Dfa], *, max_states: int = MAX_STATES) -> Dfa:
        """Return the union of the languages; the empty language if there are none."""
        parts = list(dict.fromkeys(languages)) or [cls.empty()]
        while len(parts) > 1:  # Pairwise, so that n small languages cost O(n log n), not O(n^2).
            pairs = zip(parts[::2], parts[1::2])
            parts = [a.union(b, max_states=max_states) for a, b in pairs] + (parts[-1:] if len(parts) % 2 else [])
        return parts[0]

    @classmethod
    def exactly_one_of(cls, languages: Iterable[Dfa], *, max_states: int = MAX_STATES) -> tuple[Dfa, bool]:
        """Return the Dfa of the texts in exactly one language, and whether any two languages intersect."""
        found = boolean_operations.accept_exactly_one([language.table for language in languages], max_states)
        return cls.from_table(found.table), found.overlapping

    # ---- operations -------------------------------------------------------------------------------------------

    def union(self, other: Dfa, *, max_states: int = MAX_STATES) -> Dfa:
        """Return the union of the two languages."""
        return self if self == other else self._product(other, operator.or_, max_states)

    def intersect(self, other: Dfa, *, max_states: int = MAX_STATES) -> Dfa:
        """Return the intersection of the two languages."""
        return self if self == other else self._product(other, operator.and_, max_states)

    def subtract(self, other: Dfa, *, max_states: int = MAX_STATES) -> Dfa:
        """Return the difference: the texts that this Dfa accepts and `other` does not."""
        return self._product(other, operator.gt, max_states)

    def complement(self) -> Dfa:
        """Return the Dfa of all texts that this one does not accept."""
        return Dfa.from_table(boolean_operations.complement_table(self.table))

    def concatenate(self, other: Dfa, *, max_states: int = MAX_STATES) -> Dfa:
        """Return the concatenation: a text of this Dfa followed by a text of `other`."""
        return Dfa.from_table(boolean_operations.concatenate_tables(self.table, other.table, max_states))

    def repeat(self, low: int = 0, high: int | None = None, *, max_states: int = MAX_STATES) -> Dfa:
        """Return the Dfa of `low` to `high` consecutive texts of this one; `high` is None for no upper bound."""
        return Dfa.from_table(boolean_operations.repeat_table(self.table, low, high, max_states))

    def star(self, *, max_states: int = MAX_STATES) -> Dfa:
        """Return the Kleene star: any number of consecutive texts of this Dfa, including none."""
        return self.repeat(0, None, max_states=max_states)

    def with_length(self, low: int = 0, high: int | None = None, *, max_states: int = MAX_STATES) -> Dfa:
        """Return the Dfa of the texts of `low` to `high` characters; `high` is None for no upper bound."""
        least, most = self.lengths()
        if least >= low and (high is None or (most is not None and most <= high)):
            return self
        return Dfa.from_table(boolean_operations.bound_lengths(self.table, low, high, self._distances, max_states))

    def _product(self, other: Dfa, accept: object, max_states: int) -> Dfa:
        """Return the product of the two Dfas, which accepts a text if `accept` of the two results is true."""
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
        """Return whether the two languages intersect."""
        return (self == other and not self.is_empty) or boolean_operations.has_common_text(self.table, other.table)

    # ---- queries ----------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether the Dfa accepts no text."""
        return not len(self.delta)

    @property
    def is_universal(self) -> bool:
        """Whether the Dfa accepts every text."""
        return self.delta.shape == (1, 2) and self == Dfa.any_text()

    def step(self, state: int, char: str) -> int:
        """Return the state after one character, or -1 if it is dead. `state` may be -1."""
        if state < 0:
            return -1
        table = self.table
        return table.rows[state][table.classes[bisect_right(table.bounds, ord(char)) - 1]]

    def accepts(self, text: str) -> bool:
        """Return whether the text is in the language."""
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
        """Return the shortest text, the first by code points. Raise ValueError if the language is empty."""
        if self.is_empty:
            raise ValueError("the empty language has no shortest text")
        return text_lengths.find_shortest_text(self.table)

    def count(self, cap: int) -> int:
        """Return the number of texts, at most `cap`."""
        return text_lengths.count_texts(self.table, cap)

    def enumerate(self, cap: int) -> list[str]:
        """Return the first `cap` texts, ordered by length and then by code points."""
        return list(islice(text_lengths.enumerate_texts(self.table), cap))

    def leads_beyond(self, begun: str, ranges: list[tuple[int, int]] | None, taken: Iterable[str]) -> bool:
        """Return whether some accepted text starts with `begun`, continues with a character of `ranges` and is not in
        `taken`.

        `ranges` are inclusive, disjoint ranges of code points; with None any character may follow, and `begun` itself
        counts as well.
        """
        return text_lengths.leads_beyond(self.table, begun, ranges, taken)

    def lengths(self) -> tuple[int, int | None]:
        """Return the least and greatest number of characters of a text (None: unbounded); (1, 0) for the empty
        language.
        """
        return (self._distances[0], text_lengths.find_longest_length(self.table)) if self.table.rows else (1, 0)

    def extensible(self) -> bool:
        """Return whether, from every state, acceptance after d characters implies acceptance after d + 1."""
        return text_lengths.is_extensible(self.table)

    def endless(self) -> bool:
        """Return whether every prefix of an accepted text is a prefix of infinitely many accepted texts."""
        return text_lengths.is_endless(self.table)

    def distances(self) -> NDArray[np.int32]:
        """Return int32[n]: the least number of characters from each state to acceptance."""
        return np.array(self._distances, dtype=np.int32)

    @cached_property
    def table(self) -> Table:
        """The same automaton as plain lists, which are faster than arrays for small automata."""
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
