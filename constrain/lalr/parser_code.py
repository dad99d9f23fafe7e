"""Parser: a scanner, an LALR table and indentation rules, encoded as one block of code (parser blocks,
`kernels.program_layout`).

The kernels in `kernels.parsing` execute the block. Rare queries of the kernels are computed here: `joint`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..automata.dfa import Dfa
from ..base.cached_property import cached_property
from ..kernels import layout as at
from .coreachable_stacks import CoReachableStacks
from .lalr_tables import Lalr
from .lexeme_boundaries import LexemeBoundaries
from .productions import Productions
from .scanner_tables import Scanner

__all__ = ["IndentationLayout", "Parser", "ProductOrigin"]

Ints = NDArray[np.int32]
DeadEnds = Literal["", "table", "lexer"]
DEAD_ROW = -1
"""Key of the last row of a block's P_DELTA, that of one more state from which nothing is accepted."""


@dataclass(frozen=True, slots=True)
class IndentationLayout:
    """Significant indentation as in `lark.indenter.Indenter`; terminals are given by number.

    `newline` is the terminal that ends a line and includes the indentation of the next one. `indent` and `dedent` are
    inserted where blocks open and close. Within `opening` and `closing` brackets, lines do not end. `tab` is the width
    of a tab in columns.
    """

    newline: int
    indent: int
    dedent: int
    opening: frozenset[int] = frozenset()
    closing: frozenset[int] = frozenset()
    tab: int = 8


@dataclass(frozen=True, slots=True, eq=False)
class ProductOrigin:
    """The factors of a product: a parser and a regular language, which is in state `paired[q]` in parser state q."""

    parser: Parser
    dfa: Dfa
    paired: Ints


@dataclass(frozen=True, eq=False)
class Parser:
    """The language of the texts that `scanner` splits into lexemes that the parser `table` accepts.

    Attributes
    ----------
    scanner : Scanner
    table : Lalr
        The table of `productions`.
    productions : Productions
    scan : int32[LALR states]
        Start state of the scanner in each parser state; -1 if no lexeme is possible there.
    ignored : frozenset of int
        Terminals that are not passed to the parser.
    layout : IndentationLayout or None
    dead_ends : {"", "table", "lexer"}
        What may lead to dead stacks, from which no text can be completed. "table": conflicts were resolved or a rule is
        unproductive; "lexer": also lexemes that cannot follow each other; "": nothing.
    product : ProductOrigin or None
        For the product of a parser and a regular language (`parser_product`): of which. `productions` are then those of
        that parser, not of the table.
    """

    scanner: Scanner
    table: Lalr
    productions: Productions
    scan: Ints
    ignored: frozenset[int] = frozenset()
    layout: IndentationLayout | None = None
    dead_ends: DeadEnds = ""
    product: ProductOrigin | None = None

    @property
    def terminals(self) -> int:
        return len(self.table.terminals)

    @property
    def words(self) -> int:
        """Number of int32 words of a set of letters."""
        return (len(self.letter_of) + 31) // 32

    @cached_property
    def boundaries(self) -> LexemeBoundaries:
        """The boundaries of lexemes; needed only if `dead_ends` is "lexer"."""
        return LexemeBoundaries(self.scanner, self.table, self.scan, self.ignored, max_obligations=None)

    @cached_property
    def letter_of(self) -> tuple[int, ...]:
        """The terminal of each letter; letters are terminals unless `dead_ends` is "lexer" (see `boundaries`)."""
        if self.dead_ends == "lexer":
            return self.boundaries.merged[1].terminal
        return tuple(range(self.terminals))

    @cached_property
    def coreachable(self) -> CoReachableStacks:
        """The automaton of the co-reachable stacks; needed only if there are dead ends."""
        return CoReachableStacks(self.table, self.boundaries.merged[1] if self.dead_ends == "lexer" else None)

    @cached_property
    def is_empty(self) -> bool:
        """Whether the language is empty."""
        if self.dead_ends == "lexer":
            return not self.coreachable.accepts(self.coreachable.start) & self.boundaries.merged[1].start
        return bool(self.dead_ends) and not self.coreachable.accepts(self.coreachable.start)

    def leads_on(self, stack: Sequence[int]) -> Ints:
        """Return int32[words]: the letters after which a stack (bottom first) can still reach acceptance."""
        state = self.coreachable.start
        for pushed in stack[1:]:
            state = self.coreachable.step(state, pushed)
        bits = self.coreachable.accepts(state)
        if self.dead_ends == "lexer":
            letters, good = self.boundaries.merged[1], bits
            for letter in letters.skipped:
                if letters.following.get((stack[-1], letter), 0) & good:
                    bits |= 1 << letter
        return np.frombuffer(bits.to_bytes(4 * self.words, "little"), np.int32)

    @cached_property
    def key(self) -> bytes:
        """A digest of the part of the scanner that token masks depend on: its tables, and the terminal that
        ends lines.
        """
        scanner = self.scanner
        digest = blake2b(digest_size=16)
        for part in (scanner.delta, scanner.accept, scanner.accept_table, self.possible):
            digest.update(np.ascontiguousarray(part).reshape(-1).data)
        digest.update(repr((self.layout.newline, self.layout.tab) if self.layout else None).encode())
        return digest.digest()

    @cached_property
    def is_nullable(self) -> bool:
        """Whether the empty text is in the language: $END is accepted after reductions only."""
        stack, end = [self.table.start], self.terminals - 1
        for _ in range(2 * len(self.table.action)):  # exceeded only if a symbol derives itself for ever
            act = int(self.table.action[stack[-1], end])
            if act >= 0:
                return act > 0
            rule = -act - 1
            del stack[len(stack) - int(self.table.length[rule]) :]
            stack.append(int(self.table.goto[stack[-1], self.table.left[rule]]))
        return False

    @cached_property
    def possible(self) -> Ints:
        """int32[scanner states, words]: the letters that each state can still become."""
        if self.dead_ends == "lexer":
            letters = self.boundaries.possible(len(self.scanner.delta))
            bits_ = b"".join(bits.to_bytes(4 * self.words, "little") for bits in letters)
            return np.frombuffer(bits_, np.int32).reshape(len(letters), self.words)
        wide = np.ascontiguousarray(self.scanner.possible).view(np.uint32)
        out = np.zeros((len(wide), self.words), np.uint32)
        out[:, : min(self.words, wide.shape[1])] = wide[:, : self.words]
        return out.view(np.int32)

    def set_of(self, terminals: Collection[int]) -> Ints:
        """Return int32[words]: the letters of a set of terminals, as bits."""
        chosen = np.zeros(self.terminals, np.uint8)
        chosen[list(terminals)] = 1
        bits = np.zeros(32 * self.words, np.uint8)
        bits[: len(self.letter_of)] = chosen[list(self.letter_of)]
        return np.packbits(bits, bitorder="little").view(np.int32)

    def block(self, base: int, index: int) -> Ints:
        """Return the int32 parser block for address `base` of the code, as parser number `index` of its program."""
        table, scanner, dead_end = self.table, self.scanner, len(self.scanner.delta)  # one more state, without bytes
        possible = np.concatenate([self.possible, np.zeros((1, self.words), np.int32)])
        scan = np.where(self.scan < 0, dead_end, self.scan)
        states, terminals = table.action.shape
        reduces, rules = self._reductions()
        kinds = np.zeros(terminals, np.int32)
        if self.layout:
            kinds[self.layout.newline] = at.NEWLINE
            kinds[list(self.layout.opening)] = at.OPENING
            kinds[list(self.layout.closing)] = at.CLOSING
        kinds[list(self.ignored)] = at.IGNORED  # Last: ignored terminals do not reach the Indenter.
        certain = (scanner.accept_table >= 0).all(1) & (scanner.accept_table == scanner.accept_table[:, :1]).all(1)
        live_bytes = np.zeros((dead_end + 1, 8), np.int32)
        live_bytes[:-1] = np.packbits(scanner.delta >= 0, axis=1, bitorder="little").view(np.int32)
        accept = np.append(scanner.accept, np.int32(0))
        kinds_of_class, class_of = np.unique(possible, axis=0, return_inverse=True)
        first = np.bitwise_or.reduce(live_bytes[scan], axis=0)
        parts = {
            at.P_ACTION: table.action,
            at.P_GOTO: table.goto,
            at.P_LEFT: table.left,
            at.P_LENGTH: table.length,
            at.P_SHIFTS: self._bits(table.action > 0),
            at.P_ROWS: self._bits(table.action != 0) | (self.set_of(self.ignored) if self.dead_ends == "lexer" else 0),
            at.P_REDUCES: reduces,
            at.P_RULES: rules,
            at.P_SCAN: scan,
            at.P_DELTA: scanner.delta,
            DEAD_ROW: np.full(256, -1, np.int32),
            at.P_ACCEPT: accept << 1 | certain[accept],
            at.P_ACCEPT_TABLE: scanner.accept_table,
            at.P_POSSIBLE: possible,
            at.P_BYTES: live_bytes,
            at.P_FIRST: first,
            at.P_KINDS: kinds,
            at.P_IGNORED: self.set_of(() if self.dead_ends == "lexer" else self.ignored),
            at.P_CLASS: class_of.ravel(),
            at.P_KINDS_OF_CLASS: kinds_of_class,
        }
        block = np.empty(at.P_W + sum(part.size for part in parts.values()), np.int32)
        head, end = block[: at.P_W], at.P_W
        head[:] = 0
        for slot, part in parts.items():
            if slot != DEAD_ROW:
                head[slot] = base + end
            block[end : end + part.size] = part.ravel()
            end += part.size
        head[[at.P_STATES, at.P_TERMINALS, at.P_NONTERMINALS]] = states, terminals, len(table.nonterminals)
        head[[at.P_WORDS, at.P_START, at.P_INDEX, at.P_CLASSES]] = self.words, table.start, index, len(kinds_of_class)
        head[at.P_DEAD_ENDS] = ("", "table", "lexer").index(self.dead_ends)
        layout = self.layout
        head[[at.P_NEWLINE, at.P_INDENT, at.P_DEDENT, at.P_TAB]] = (
            (layout.newline, layout.indent, layout.dedent, layout.tab) if layout else (-1, -1, -1, 0)
        )
        return block

    def _bits(self, chosen: NDArray[np.bool_]) -> Ints:
        """Return int32[rows, words]: the letters of the chosen terminals of each row, as bits."""
        bits = np.zeros((len(chosen), 32 * self.words), np.uint8)
        bits[:, : len(self.letter_of)] = chosen[:, list(self.letter_of)]
        return np.packbits(bits, axis=1, bitorder="little").view(np.int32)

    def _reductions(self) -> tuple[Ints, Ints]:
        """Return the reductions of each state: offsets by state, and entries (rule, lookahead letters as bits)."""
        action, rules = self.table.action, len(self.table.left)
        states, terminals = np.nonzero(action < 0)
        last_rule_first = rules + action[states, terminals]
        keys = states * rules + last_rule_first
        ordered = np.sort(keys)
        found = ordered[np.diff(ordered, prepend=-1) > 0]
        entry = np.searchsorted(found, keys)  # `np.unique` sorts indices, in ten times the time, or imports `numpy.ma`
        chosen = np.zeros((len(found), self.terminals), np.bool_)
        chosen[entry, terminals] = True
        offsets = np.searchsorted(found, rules * np.arange(len(action) + 1))
        entries = np.concatenate([rules - 1 - found[:, None] % rules, self._bits(chosen)], axis=1)
        return offsets.astype(np.int32), entries.astype(np.int32)

    def joint(self, states: Sequence[int]) -> Ints:
        """Return int32[words]: the letters that the last of several partial lexemes can end in, given the others.

        `states` are the scanner states of the lexemes, none negative. None of the others may be complete at any
        position up to the end of the last. Breadth-first search of the product of all of them: a terminal of the last
        state after w is included if none of the others accepts a prefix of w, w included.
        """
        if self.dead_ends == "lexer":
            mapped, _ = self.boundaries.merged
            bits = self.boundaries.ends_of(tuple(sorted(set(states[:-1]))), states[-1], mapped)
            return np.frombuffer(bits.to_bytes(4 * self.words, "little"), np.int32)
        delta, accept_table, accept = self.scanner.delta, self.scanner.accept_table, self.scanner.accept
        others, last = frozenset(states[:-1]), states[-1]
        letters, maximum = np.zeros(self.words, np.int32), self.possible[last]
        queue = deque([(others, last)])
        visited = {(others, last)}
        while queue and (letters != maximum).any():
            others, last = queue.popleft()
            if not others:  # no restrictions remain
                letters = letters | self.possible[last]
                continue
            rows = [*sorted(others), last]
            after, accepted = delta[rows], accept_table[accept[rows]]
            open_ = np.asarray((accepted[:-1] < 0).all(axis=0))  # Before byte b none of the others may be complete.
            ends = accepted[-1][open_]
            letters = letters | self.set_of(np.unique(ends[ends >= 0]).tolist())
            successors = after[:, open_[:256] & (after[-1] >= 0)]
            for successor in np.unique(successors, axis=1).T.tolist():
                pair = frozenset(state for state in successor[:-1] if state >= 0), successor[-1]
                if pair not in visited:
                    visited.add(pair)
                    queue.append(pair)
        return letters
