"""Dfa: the canonical deterministic automaton of a regular language over Unicode characters.

A Dfa is trim (every state is reachable and co-reachable), minimal and numbered canonically, so two Dfas of the same
language have equal arrays, and `key` identifies the language. A Dfa is immutable; operations return new ones.

Constructions are compiled kernels over arrays (`compiled_operations`). What is written in Python builds a Table of
plain lists (`table`, `boolean_operations`), and queries that visit few states read one (`text_lengths`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.cached_property import cached_property
from ..base.work import memoize_work
from ..kernels.automata_layout import (
    CLASSES,
    DIFFERENCE,
    HEADER_W,
    INTERSECTION,
    RANGES,
    REVERSED_DIFFERENCE,
    STATES,
    UNION,
)  # fmt: skip
from . import boolean_operations, compiled_operations, text_lengths
from .compiled_operations import Record
from .table import EMPTY, LAST, SURROGATES, Table
from .word_automaton import build_word_automaton

__all__ = ["LAST", "MAX_STATES", "SURROGATES", "Dfa", "Table"]

MAX_STATES = 20_000
"""Default limit of the states of a construction; callers usually pass `Limits.dfa_states`."""

MAX_WORD_STATES = 200_000
"""Default limit of the states of `from_strings`; their number is at most one more than the characters of its words."""


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
    table : Table
        The same automaton as plain lists, which are faster than arrays where few elements are read.

    All arrays are read-only. Every state leads to -1 on surrogates. Create instances with the class methods only.
    """

    def __init__(self, record: Record) -> None:
        """record: canonical (see `kernels.automata_layout`)."""
        record.flags.writeable = False
        self.record = record

    # ---- constructors -----------------------------------------------------------------------------------------

    @classmethod
    def from_table(cls, table: Table) -> Dfa:
        """Return the Dfa of a Table, which need not be trim or minimal. Raise ValueError if it accepts surrogates."""
        states, width = len(table.rows), len(table.rows[0]) if table.rows else max(table.classes) + 1
        delta = np.fromiter(chain.from_iterable(table.rows), np.int32, states * width).reshape(states, width)
        return cls.from_arrays(table.bounds, table.classes, delta, table.accepting)

    @classmethod
    def from_arrays(
        cls,
        bounds: Sequence[int],
        classes: Sequence[int],
        delta: NDArray[np.integer[Any]],
        accepting: Sequence[bool] | NDArray[np.bool_],
    ) -> Dfa:
        """Return the Dfa of arrays in any numbering, which need not be trim or minimal; see `from_table`."""
        dfa = cls(
            compiled_operations.minimise_record(compiled_operations.pack_record(bounds, classes, delta, accepting))
        )
        first, end = np.searchsorted(dfa.bounds, [SURROGATES[0] + 1, SURROGATES[1]])
        if (dfa.delta[:, dfa.classes[first - 1 : end]] >= 0).any():
            raise ValueError("a Table must be dead on surrogates: they are not characters")
        return dfa

    @classmethod
    def from_canonical(
        cls,
        bounds: NDArray[np.int32],
        classes: NDArray[np.int32],
        delta: NDArray[np.int32],
        accepting: NDArray[np.bool_],
    ) -> Dfa:
        """Return the Dfa of canonical arrays (trim, minimal, numbered), without validation.

        For automata that are too large to be minimised.
        """
        return cls(compiled_operations.pack_record(bounds, classes, delta, accepting))

    @classmethod
    def empty(cls) -> Dfa:
        """Return the Dfa of the empty language."""
        return cls.from_table(EMPTY)

    @classmethod
    def any_text(cls) -> Dfa:
        """Return the Dfa of all texts, which is made once."""
        return _build_any_text()

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
        return cls.from_canonical(*build_word_automaton(words, max_states)) if words else cls.empty()

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
        return self if self == other else self._product(other, UNION, max_states)

    def intersect(self, other: Dfa, *, max_states: int = MAX_STATES) -> Dfa:
        """Return the intersection of the two languages."""
        return self if self == other else self._product(other, INTERSECTION, max_states)

    def subtract(self, other: Dfa, *, max_states: int = MAX_STATES) -> Dfa:
        """Return the difference: the texts that this Dfa accepts and `other` does not."""
        return self._product(other, DIFFERENCE, max_states)

    def complement(self) -> Dfa:
        """Return the Dfa of all texts that this one does not accept."""
        any_text = Dfa.any_text()
        # The product has a state more than this automaton at most.
        return self._product(any_text, REVERSED_DIFFERENCE, len(self.delta) + 2)

    def concatenate(self, other: Dfa, *, max_states: int = MAX_STATES) -> Dfa:
        """Return the concatenation: a text of this Dfa followed by a text of `other`."""
        if self.is_empty or other.is_empty:
            return Dfa.empty()
        return Dfa(compiled_operations.concatenate_records(self.record, other.record, max_states))

    def repeat(self, low: int = 0, high: int | None = None, *, max_states: int = MAX_STATES) -> Dfa:
        """Return the Dfa of `low` to `high` consecutive texts of this one; `high` is None for no upper bound."""
        if (high is not None and high < low) or (self.is_empty and low > 0):
            return Dfa.empty()
        if high == 0 or self.is_empty:
            return Dfa.from_table(Table([0], [0], [(-1,)], [True]))
        return Dfa(compiled_operations.repeat_record(self.record, low, high, max_states))

    def star(self, *, max_states: int = MAX_STATES) -> Dfa:
        """Return the Kleene star: any number of consecutive texts of this Dfa, including none."""
        return self.repeat(0, None, max_states=max_states)

    def with_length(self, low: int = 0, high: int | None = None, *, max_states: int = MAX_STATES) -> Dfa:
        """Return the Dfa of the texts of `low` to `high` characters; `high` is None for no upper bound."""
        least, most = self.lengths()
        if least >= low and (high is None or (most is not None and most <= high)):
            return self
        if self.is_empty or (high is not None and high < max(low, least)):
            return Dfa.empty()
        return Dfa(compiled_operations.bound_record_lengths(self.record, self._measures[0], low, high, max_states))

    def _product(self, other: Dfa, operation: int, max_states: int) -> Dfa:
        """Return the Dfa of a boolean operation of the two."""
        return Dfa(compiled_operations.combine_records(self.record, other.record, operation, max_states))

    def meets(self, other: Dfa) -> bool:
        """Return whether the two languages intersect."""
        if self == other:
            return not self.is_empty
        return compiled_operations.records_intersect(self.record, other.record)

    # ---- queries ----------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether the Dfa accepts no text."""
        return not self.record[STATES]

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
        if self.lengths()[1] is None:
            return cap
        return text_lengths.count_texts(self.table, cap)

    def list_texts(self, most: int) -> list[str] | None:
        """Return all texts, ordered as by `enumerate`, if they are at most `most`; None otherwise."""
        if self.is_empty:
            return []
        return None if self.count(most + 1) > most else text_lengths.list_texts(self.table)

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
        return (int(self._measures[0][0]), self._measures[1]) if not self.is_empty else (1, 0)

    def extensible(self) -> bool:
        """Return whether, from every state, acceptance after d characters implies acceptance after d + 1."""
        return text_lengths.is_extensible(self.table)

    @cached_property
    def is_endless(self) -> bool:
        """Whether every prefix of an accepted text is a prefix of infinitely many accepted texts."""
        return text_lengths.is_endless(self.table)

    def distances(self) -> NDArray[np.int32]:
        """Return int32[n]: the least number of characters from each state to acceptance."""
        return self._measures[0]

    @cached_property
    def _measures(self) -> tuple[NDArray[np.int32], int | None]:
        """The distance of each state, and the greatest length; see `compiled_operations.measure_record`."""
        if self.is_empty:
            return np.empty(0, np.int32), 0
        return compiled_operations.measure_record(self.record)

    @cached_property
    def bounds(self) -> NDArray[np.int32]:
        return self.record[HEADER_W : HEADER_W + self.record[RANGES]]

    @cached_property
    def classes(self) -> NDArray[np.int32]:
        return self.record[HEADER_W + self.record[RANGES] : HEADER_W + 2 * self.record[RANGES]]

    @cached_property
    def delta(self) -> NDArray[np.int32]:
        states, width, begin = self.record[STATES], self.record[CLASSES], HEADER_W + 2 * self.record[RANGES]
        return self.record[begin : begin + states * width].reshape(states, width)

    @cached_property
    def accepting(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.record[len(self.record) - self.record[STATES] :] != 0
        found.flags.writeable = False
        return found

    @cached_property
    def key(self) -> bytes:
        return blake2b(self.record.tobytes(), digest_size=16).digest()

    @cached_property
    def table(self) -> Table:
        return Table(self.bounds.tolist(), self.classes.tolist(), self.delta.tolist(), self.accepting.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dfa):
            return NotImplemented
        return self is other or (len(self.record) == len(other.record) and bool((self.record == other.record).all()))

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Dfa({len(self.delta)} states, {self.delta.shape[1]} classes, key {self.key.hex()[:8]})"


@memoize_work(1)
def _build_any_text() -> Dfa:
    """Return the Dfa of all texts."""
    return Dfa.from_table(boolean_operations.make_any_text())
