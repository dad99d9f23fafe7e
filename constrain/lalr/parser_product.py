"""The product of a Parser (scanner and LALR table) and a regular language, as a Parser.

The product grammar of Bar-Hillel, Perles and Shamir (1961) need not be LALR where the grammar is. The product is
therefore one of automata: the LALR automaton runs as before, and each state on its stack is paired with the state of
the regular language at that point of the text. An action depends on the state on top and the next terminal only:

    shift t     in (q, r), before t that leads to r':  push (shift(q, t), r')
    reduce A    in (q, r):                             pop, then push (goto(p, A), r) on the pair of p, then on top
    ignored t   in (q, r), before t that leads to r':  replace (q, r) by (q, r')

So terminals and nonterminals of the product are those of the grammar with the state after them, no new conflict
arises, and conflicts are resolved as before. A replacement is a shift to an *interlude*, whose only action is to reduce
itself and the state below it to the symbol by which that state was entered. The text may end where the grammar's may,
in accepting states of the regular language.

States and lookaheads of the product are found by a search that knows only the top of the stack, hence an upper bound:
what remains that cannot be completed are dead ends, which `coreachable_stacks` decides.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from ..automata.bit_sets import list_members
from ..automata.byte_automaton import build_byte_automaton
from ..automata.dfa import Dfa
from ..base.options import Limits
from ..base.work import spend_work
from .lalr_tables import END, Lalr
from .lexeme_boundaries import LexemeBoundaries
from .parser_code import DeadEnds, Parser, ProductOrigin
from .productions import propagate_sets
from .scanner_product import UNCHANGED, ScannerProduct, multiply_scanner

__all__ = ["ParserProduct", "cut_dfa"]

WORK = "the product of a parser and a pattern"

Ints = NDArray[np.int32]
_Pair = tuple[int, int]
"""A state of the LALR automaton and a state of the regular language."""
_Symbol = tuple[str, int, int]
"""A nonterminal: ("rule", nonterminal, state after it); or one that interludes are reduced to, ("terminal", terminal,
state) and ("start", 0, state); or the accepted text, ("accepted", 0, 0)."""
_Interlude = tuple[str, int, int, int]
"""The symbol by which the state below was entered, the start of the scanner there, the state after the interlude."""


class ParserProduct:
    """The products of a Parser without indentation and a Dfa that begins in state `first`.

    `parser(accepting)` is that of the texts that lead to one of some states, and `final_states` are those that a text
    may lead to (an upper bound). States with equal numbers in `ends`, int32[states], are not distinguished there.
    """

    def __init__(self, parser: Parser, dfa: Dfa, first: int, ends: Ints, limits: Limits) -> None:
        assert parser.layout is None, "indentation depends on more than the stack"
        self.original, self.dfa, self.first = parser, dfa, first
        table = parser.table
        self.end = len(table.terminals) - 1
        starts = sorted({int(start) for start in parser.scan if start >= 0})
        automaton = build_byte_automaton(dfa)
        self.lexemes: ScannerProduct = multiply_scanner(
            parser.scanner, starts, parser.ignored, automaton, ends, first, limits.dfa_states
        )
        self.scanner = self.lexemes.scanner()
        self.states = len(dfa.delta)
        self.entries = _find_entries(table)
        self.bits_of = self._group_terminals()
        self.ignored = frozenset(t for t, one in enumerate(self.lexemes.terminals) if one.state == UNCHANGED)
        self.changing = sum(self.bits_of)
        self.lookback = _Lookback(table)
        self.rows = [self._summarise_row(q) for q in range(len(table.action))]
        self.lookaheads: dict[_Pair, int] = {}
        self._find_lookaheads()
        self._build_table()

    @property
    def final_states(self) -> list[int]:
        """The states of the regular language in which a text of the parser may end, ascending: an upper bound."""
        return sorted(r for q, r in self.pairs if q == self.original.table.end)

    # ---- reachable states and lookaheads --------------------------------------------------------------------------

    def _group_terminals(self) -> list[int]:
        """Return, for each terminal of the grammar, its terminals of the product as bits; the last is $END.

        Those that change nothing are left out.
        """
        bits = [0] * (self.end + 1)
        for number, one in enumerate(self.lexemes.terminals):
            bits[one.terminal] |= (one.state != UNCHANGED) << number
        bits[self.end] = 1 << len(self.lexemes.terminals)
        return bits

    def _summarise_row(self, q: int) -> tuple[int, int, list[tuple[int, int]]]:
        """Return the terminals of the product, as bits, that state q ignores, shifts, and reduces before."""
        row = self.original.table.action[q]
        ignored = sum(self.bits_of[t] for t in self.original.ignored)
        shifted = sum(self.bits_of[t] for t in np.flatnonzero(row > 0).tolist() if t not in self.original.ignored)
        reduced: dict[int, int] = {}
        for t in np.flatnonzero(row < 0).tolist():
            if t not in self.original.ignored:
                reduced[-1 - int(row[t])] = reduced.get(-1 - int(row[t]), 0) | self.bits_of[t]
        return ignored, shifted & ~self.bits_of[self.end], list(reduced.items())

    def readable(self, q: int, r: int) -> int:
        """Return the terminals that the lexer may find in state q and state r of the regular language, as bits."""
        return self.readable_from(int(self.original.scan[q]), r)

    def readable_from(self, scanner_start: int, r: int) -> int:
        """As `readable`, for a start state of the scanner."""
        start = self.lexemes.starts.get((scanner_start, r))
        return self.bits_of[self.end] | (0 if start is None else self.lexemes.possible[start] & self.changing)

    def _find_lookaheads(self) -> None:
        """Compute `lookaheads`: the terminals that may be next, as bits, for each pair that may be on top."""
        start = self.original.table.start
        pending: dict[_Pair, int] = {(start, self.first): self.readable(start, self.first)}
        action, terminals = self.original.table.action, self.lexemes.terminals
        while pending:
            (q, r), bits = pending.popitem()
            bits &= ~self.lookaheads.get((q, r), 0)
            if not bits:
                continue
            self.lookaheads[q, r] = self.lookaheads.get((q, r), 0) | bits
            ignored, shifted, reduced = self.rows[q]
            targets = {(q, terminals[t].state) for t in list_members(bits & ignored)}
            targets |= {
                (int(action[q, terminals[t].terminal]) - 1, terminals[t].state) for t in list_members(bits & shifted)
            }
            spend_work(10 + 2 * len(targets), WORK)
            for pair in targets:
                if pair not in self.lookaheads:
                    pending[pair] = pending.get(pair, 0) | self.readable(*pair)
            for rule, before in reduced:
                if bits & before:
                    for state in self.lookback.states_after(q, rule):
                        pending[state, r] = pending.get((state, r), 0) | bits & before
                        spend_work(1, WORK)

    # ---- the table ------------------------------------------------------------------------------------------------

    def _build_table(self) -> None:
        """Build the tables of the product, in which the text may end in every state of the regular language.

        State 0 is the bottom of the stack, which an empty reduction covers with the pair of the start; then follow the
        pairs, the interludes and the state of acceptance.
        """
        self.pairs = sorted(self.lookaheads)
        self.state_of = np.full((len(self.original.table.action), self.states), -1, np.int32)
        for number, (q, r) in enumerate(self.pairs, 1):
            self.state_of[q, r] = number
        self.interludes: dict[_Interlude, int] = {}
        self.nonterminals: dict[_Symbol, int] = {}
        self.rules: dict[tuple[int, int], int] = {}  # by nonterminal and length
        start = self.original.table.start
        bottom = self._rule(("start", 0, self.first), 0)
        first = np.where(self._select(self.readable(start, self.first)), -1 - bottom, 0)
        actions = [self._action_row(q, r) for q, r in self.pairs]
        interludes = [self._interlude_row(*key) for key in self.interludes]
        last = np.zeros(len(first), np.int32)
        last[-1] = 2 + len(self.pairs) + len(interludes)
        self.action = np.array([first, *actions, *interludes, last], dtype=np.int32)
        self.goto = self._build_goto()
        places = [(start, self.first), *self.pairs]
        scan = [self.lexemes.starts.get((int(self.original.scan[q]), r), -1) for q, r in places]
        scan += [self.lexemes.starts.get((entry, r), -1) for _, _, entry, r in self.interludes]
        self.scan = np.array([*scan, -1], dtype=np.int32)
        self.paired = np.array([*(r for _, r in places), *(key[3] for key in self.interludes), -1], dtype=np.int32)

    def _select(self, bits: int) -> NDArray[np.bool_]:
        """Return bool[terminals]: the terminals of a set, the last of which is $END."""
        count = len(self.lexemes.terminals) + 1
        data = np.frombuffer(bits.to_bytes(count // 8 + 1, "little"), np.uint8)
        return np.unpackbits(data, bitorder="little")[:count].astype(np.bool_)

    def _rule(self, symbol: _Symbol, length: int) -> int:
        """Return the number of the rule of a nonterminal and a length, which may be new."""
        number = self.nonterminals.setdefault(symbol, len(self.nonterminals))
        return self.rules.setdefault((number, length), len(self.rules))

    def _action_row(self, q: int, r: int) -> Ints:
        """Return the actions of a pair."""
        table, bits, terminals = self.original.table, self.lookaheads[q, r], self.lexemes.terminals
        ignored, shifted, reduced = self.rows[q]
        row = np.zeros(len(terminals) + 1, np.int32)
        spend_work(20 + len(row) // 4, WORK)
        for t in list_members(bits & shifted):
            row[t] = 1 + self.state_of[table.action[q, terminals[t].terminal] - 1, terminals[t].state]
        for t in list_members(bits & ignored):
            key = *self.entries[q], int(self.original.scan[q]), terminals[t].state
            row[t] = 2 + len(self.pairs) + self.interludes.setdefault(key, len(self.interludes))
        for rule, before in reduced:
            if bits & before:
                number = self._rule(("rule", int(table.left[rule]), r), int(table.length[rule]))
                row[self._select(bits & before)] = -1 - number
        if q == table.end:
            row[-1] = -1 - self._rule(("accepted", 0, 0), 2)
        return row

    def _interlude_row(self, kind: str, symbol: int, start: int, r: int) -> Ints:
        """Return the actions of an interlude: it and the state below it are reduced to the symbol of that state."""
        bits = self.readable_from(start, r)
        return np.where(self._select(bits), -1 - self._rule((kind, symbol, r), 2), 0).astype(np.int32)

    def _build_goto(self) -> Ints:
        """Return the table of the states after reductions."""
        table = self.original.table
        goto = np.full((len(self.action), len(self.nonterminals)), -1, np.int32)
        spend_work(goto.size // 16, WORK)
        states, before = np.array([q for q, _ in self.pairs]), np.array([r for _, r in self.pairs])
        leads_to = self._find_later_states()
        for (kind, symbol, r), column in self.nonterminals.items():
            if kind == "start":
                goto[0, column] = self.state_of[table.start, r]
            elif kind == "accepted":
                goto[0, column] = len(goto) - 1
            else:
                after = table.goto[states, symbol] if kind == "rule" else table.action[states, symbol] - 1
                exists = (after >= 0) & leads_to[before, r]
                goto[1 : 1 + len(states), column] = np.where(exists, self.state_of[np.maximum(after, 0), r], -1)
        return goto

    def _find_later_states(self) -> NDArray[np.bool_]:
        """Return bool[states, states]: whether lexemes lead from one state of the regular language to another."""
        edges: list[list[int]] = [[] for _ in range(self.states)]
        for (_, r), start in self.lexemes.starts.items():
            after = {self.lexemes.terminals[t].state for t in list_members(self.lexemes.possible[start])}
            edges[r] = sorted({*edges[r], *after} - {UNCHANGED})
        reached = [1 << r for r in range(self.states)]
        propagate_sets(edges, reached)
        spend_work(self.states * (1 + self.states // 16), WORK)
        return np.array([[bits >> r & 1 for r in range(self.states)] for bits in reached], dtype=np.bool_)

    def parser(self, accepting: Collection[int]) -> Parser | None:
        """Return the Parser of the texts that lead to one of these states of the regular language; None if there are
        none.
        """
        action = self.action.copy()
        action[:-1][~np.isin(self.paired[:-1], list(accepting)), -1] = 0
        names = self.original.table.terminals
        table = Lalr(
            terminals=(*(f"{names[t]} ({state})" for t, state in self.lexemes.terminals), END),
            nonterminals=tuple(f"{kind} {symbol} ({r})" for kind, symbol, r in self.nonterminals),
            action=action,
            goto=self.goto,
            left=np.array([left for left, _ in self.rules], np.int32),
            length=np.array([length for _, length in self.rules], np.int32),
            start=0,
            end=len(action) - 1,
            conflicts=self.original.table.conflicts,
        )
        origin = ProductOrigin(self.original, cut_dfa(self.dfa, self.first, accepting), self.paired)
        boundaries = LexemeBoundaries(self.scanner, table, self.scan, self.ignored, max_obligations=None)
        dead_ends: DeadEnds = "table" if boundaries.is_free else "lexer"
        parser = Parser(
            self.scanner, table, self.original.productions, self.scan, self.ignored, dead_ends=dead_ends, product=origin
        )
        parser.__dict__["boundaries"] = boundaries  # The cached property.
        return None if parser.is_empty else parser


def cut_dfa(dfa: Dfa, first: int, accepting: Collection[int]) -> Dfa:
    """Return the Dfa of the texts that lead from one state to one of others."""
    order = [first, *(q for q in range(len(dfa.delta)) if q != first)]
    numbers = {q: number for number, q in enumerate(order)} | {-1: -1}
    rows = [[numbers[target] for target in dfa.table.rows[q]] for q in order]
    return Dfa.from_table(dfa.table._replace(rows=rows, accepting=[q in accepting for q in order]))


class _Lookback:
    """The states that may be on top after a reduction, whatever is below: an upper bound."""

    def __init__(self, table: Lalr) -> None:
        self.table = table
        self.predecessors: list[set[int]] = [set() for _ in table.action]
        for q, (actions, gotos) in enumerate(zip(table.action, table.goto)):
            for after in {*(actions[actions > 0] - 1).tolist(), *gotos[gotos >= 0].tolist()}:
                self.predecessors[after].add(q)
        self.known: dict[tuple[int, int], list[int]] = {}

    def states_after(self, state: int, rule: int) -> list[int]:
        """Return the states that may be on top after `rule` is reduced in `state`."""
        known = self.known.get((state, rule))
        if known is None:
            below = {state}
            for _ in range(int(self.table.length[rule])):
                below = {p for q in below for p in self.predecessors[q]}
                spend_work(2 + len(below), WORK)
            after = self.table.goto[sorted(below), self.table.left[rule]]
            known = self.known[state, rule] = np.unique(after[after >= 0]).tolist()
        return known


def _find_entries(table: Lalr) -> list[tuple[str, int]]:
    """Return the symbol by which each state is entered: of a rule, a terminal, or the start."""
    entries = [("start", 0)] * len(table.action)
    for q, t in np.argwhere(table.action[:, :-1] > 0).tolist():
        entries[int(table.action[q, t]) - 1] = "terminal", t
    for q, a in np.argwhere(table.goto >= 0).tolist():
        entries[int(table.goto[q, a])] = "rule", a
    return entries
