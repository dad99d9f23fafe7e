"""The product of a scanner and a regular language: the same lexemes, each with the state that it leads to.

The regular language runs over the whole text, beside the scanner. Where a lexeme begins and ends is decided as before;
a byte that the regular language refuses is dead. A terminal of the product is a terminal of the scanner with the state
of the regular language at the end of the lexeme, and a start is a start of the scanner with the state before it: the
triples of Bar-Hillel, Perles and Shamir (1961) for lexemes.

Few states are needed at the ends of lexemes. A name that ends in a prefix of a phrase, say, cannot be continued by the
next lexeme, since the name would be longer then. The state after a lexeme is therefore replaced by the first one that
has the same moves over all bytes before which the lexeme may end. If the state before an ignored lexeme has them, too,
the lexeme changes nothing; to know that state, those of the product carry it where a lexeme may be ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..automata.boolean_operations import too_many_states
from ..base.work import spend_work
from .productions import propagate_sets
from .scanner_tables import END_OF_TEXT, Scanner

__all__ = ["UNCHANGED", "AnnotatedTerminal", "ScannerProduct", "multiply_scanner"]

WORK = "the product of a lexer and a pattern"

Ints = NDArray[np.int32]


class AnnotatedTerminal(NamedTuple):
    """A terminal, and the state of the regular language after a lexeme of it.

    The state is UNCHANGED for an ignored terminal after which it is the one before.
    """

    terminal: int
    state: int


UNCHANGED = -1


@dataclass(frozen=True, slots=True, eq=False)
class ScannerProduct:
    """The product of a scanner and an automaton over bytes.

    Attributes
    ----------
    delta : int32[n, 256]
        Next state, or -1.
    accept : int32[n]
        Row of `accept_table`.
    accept_table : int32[k, 257]
        The number of the AnnotatedTerminal that is accepted given the next byte, or -1; row 0 is all -1.
    terminals : tuple of AnnotatedTerminal
        The terminals by number.
    possible : tuple of int
        The terminals that each state or a later one accepts, as bits.
    starts : dict
        For each start of the scanner and state of the regular language before it, the start of the product, if a lexeme
        is possible there.
    """

    delta: Ints
    accept: Ints
    accept_table: Ints
    terminals: tuple[AnnotatedTerminal, ...]
    possible: tuple[int, ...]
    starts: dict[tuple[int, int], int]

    def scanner(self) -> Scanner:
        """Return the product as a Scanner whose terminals are numbered as `terminals`."""
        words = -(-len(self.terminals) // 64)
        bits = b"".join([one.to_bytes(8 * words, "little") for one in self.possible])
        possible = np.frombuffer(bits, dtype="<u8").astype(np.uint64).reshape(len(self.delta), words)
        starts = np.array(sorted(self.starts.values()), dtype=np.int32)
        return Scanner(self.delta, self.accept, self.accept_table, possible, starts)


def multiply_scanner(
    scanner: Scanner,
    starts: list[int],
    ignored: frozenset[int],
    automaton: Ints,
    ends: Ints,
    first: int,
    max_states: int,
) -> ScannerProduct:
    """Return the product of a scanner and an automaton over bytes.

    Parameters
    ----------
    scanner : Scanner
    starts : list of int
        The states in which lexemes begin.
    ignored : frozenset of int
        Terminals that are not passed to the parser.
    automaton : int32[m, 256]
        As returned by `build_byte_automaton`.
    ends : int32[states]
        For each state of the automaton between characters, which are the first ones, a class: states of one class are
        equivalent at the end of the text.
    first : int
        The state of the automaton at the start of the text.
    max_states : int
        Most states of the product.

    Raises
    ------
    LimitError
        If there are more states.
    """
    builder = _ScannerProductBuilder(scanner, ignored, automaton, ends, max_states)
    done: set[int] = set()
    pending = {first}
    while pending:
        done |= pending
        for state in sorted(pending):
            builder.explore(starts, state)
        pending = {terminal.state for terminal in builder.terminals} - done - {UNCHANGED}
    return builder.product()


class _ScannerProductBuilder:
    """Explores the triples of a state of the scanner, one of the automaton, and the one before the lexeme.

    The last is -1 where the lexeme cannot be ignored.
    """

    def __init__(self, scanner: Scanner, ignored: frozenset[int], automaton: Ints, ends: Ints, max_states: int) -> None:
        self.scanner, self.automaton, self.ends, self.max_states = scanner, automaton, ends, max_states
        self.ignored = ignored
        self.may_be_ignored = np.zeros(len(scanner.delta), np.bool_)
        for t in ignored:
            self.may_be_ignored |= (scanner.possible[:, t // 64] >> np.uint64(t % 64)) & np.uint64(1) != 0
        accepted = scanner.accept_table
        certain = (accepted >= 0).all(axis=1) & (accepted == accepted[:, :1]).all(axis=1)
        self.certain = np.append(certain[scanner.accept], False)  # The last entry is for -1.
        self.triples: list[tuple[int, int, int]] = []
        self.numbers: dict[tuple[int, int, int], int] = {}
        self.rows: list[Ints] = []
        self.accept: list[int] = []
        self.accept_rows: list[Ints] = [np.full(END_OF_TEXT + 1, -1, np.int32)]
        self.row_numbers: dict[tuple[int, int, bool], int] = {}
        self.terminals: dict[AnnotatedTerminal, int] = {}
        self.starts: dict[tuple[int, int], int] = {}

    def explore(self, starts: list[int], state: int) -> None:
        """Explore the lexemes that begin in a state of the automaton."""
        self.starts |= {(start, state): self.number(start, state, state) for start in starts}
        while len(self.rows) < len(self.triples):
            d, r, before = self.triples[len(self.rows)]
            left, right = self.scanner.delta[d], self.automaton[r]
            row = np.full(256, -1, np.int32)
            live = np.flatnonzero((left >= 0) & (right >= 0))
            codes, inverse = np.unique(
                left[live].astype(np.int64) * len(self.automaton) + right[live], return_inverse=True
            )
            width = len(self.automaton)
            targets = [self.number(code // width, code % width, before) for code in codes.tolist()]
            row[live] = np.array(targets, np.int32)[inverse.ravel()]
            spend_work(60 + 2 * len(targets), WORK)
            self.rows.append(row)
            self.accept.append(self.accept_row(d, r, before) if r < len(self.ends) else 0)

    def number(self, d: int, r: int, before: int) -> int:
        """Return the number of a triple, which may be new."""
        key = d, r, before if self.may_be_ignored[d] else -1
        number = self.numbers.setdefault(key, len(self.triples))
        if number == len(self.triples):
            self.triples.append(key)
            if number >= self.max_states:
                raise too_many_states(WORK, self.max_states)
        return number

    def accept_row(self, d: int, r: int, before: int) -> int:
        """Return the number of the row of terminals for a triple."""
        row = int(self.scanner.accept[d])
        old = self.scanner.accept_table[row]
        if (old < 0).all():
            return 0
        same = self.find_equivalent_states(old, d, r)
        state, unchanged = int(np.argmax(same)), before >= 0 and bool(same[before])
        number = self.row_numbers.get((row, state, unchanged))
        if number is None:
            new = np.full(END_OF_TEXT + 1, -1, np.int32)
            for terminal in np.unique(old[old >= 0]).tolist():
                key = AnnotatedTerminal(terminal, UNCHANGED if unchanged and terminal in self.ignored else state)
                new[old == terminal] = self.terminals.setdefault(key, len(self.terminals))
            number = self.row_numbers[row, state, unchanged] = len(self.accept_rows)
            self.accept_rows.append(new)
        return number

    def find_equivalent_states(self, accepted: Ints, d: int, r: int) -> NDArray[np.bool_]:
        """Return bool[states]: the states of the automaton that may replace r after a lexeme that ends in d.

        The lexeme does not end before a byte with which it certainly becomes a longer one.
        """
        longer = self.certain[self.scanner.delta[d]] & (self.automaton[r] >= 0)
        before = (accepted[:END_OF_TEXT] >= 0) & ~longer
        moves = self.automaton[: len(self.ends)][:, before]
        same: NDArray[np.bool_] = (moves == moves[r]).all(axis=1)
        if accepted[END_OF_TEXT] >= 0:
            same &= self.ends == self.ends[r]
        spend_work(10 + same.size // 4, WORK)
        return same

    def product(self) -> ScannerProduct:
        """Return the product, restricted to co-reachable states."""
        bits_of_row = [sum(1 << t for t in np.unique(row[row >= 0]).tolist()) for row in self.accept_rows]
        edges = [np.unique(row[row >= 0]).tolist() for row in self.rows]
        possible = [bits_of_row[row] for row in self.accept]
        spend_work(len(self.rows) * (2 + len(self.terminals) // 64), WORK)
        propagate_sets(edges, possible)
        live = np.array([bits != 0 for bits in possible], dtype=np.bool_)
        numbers = np.append(np.where(live, np.cumsum(live) - 1, -1), -1).astype(np.int32)
        rows = np.array(self.rows, dtype=np.int32).reshape(-1, 256)[live]
        starts = {key: int(numbers[number]) for key, number in self.starts.items() if live[number]}
        return ScannerProduct(
            delta=numbers[rows],
            accept=np.array(self.accept, np.int32)[live],
            accept_table=np.array(self.accept_rows, np.int32),
            terminals=tuple(self.terminals),
            possible=tuple(bits for bits in possible if bits),
            starts=starts,
        )
