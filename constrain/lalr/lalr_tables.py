"""LALR(1) tables, identical to those of Lark state by state.

    productions --items--> LR(0) states --relations--> lookaheads --actions--> Lalr

The states are LR(0), identified by kernel. Lookaheads follow DeRemer and Pennello ("Efficient computation of LALR(1)
look-ahead sets", TOPLAS 1982), with bit sets, and with arrays over all states at once for the walks along rules. A
shift wins over a reduction; between reductions the rule's priority decides, or the grammar is rejected.

There is one deviation from the paper. The row of a state determines which terminals Lark's contextual lexer tries, so
it must equal Lark's: in a state with the item `a: x . y` and a transition on `a`, whatever may follow that `a` is also
taken to follow `y`. A row may thereby be larger than that of LALR(1), never smaller; the accepted language is the same
unless the additional terminals interfere in the lexer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..automata.bit_sets import list_members
from ..base.errors import GrammarError
from ..base.work import spend_work
from .productions import Productions, propagate_sets

__all__ = ["END", "Lalr", "build_tables", "list_overruled_reductions"]

END = "$END"
"""Name of the end-of-text terminal."""

Ints = NDArray[np.int32]
WORK = "the LALR table of the grammar"


@dataclass(frozen=True, slots=True)
class Lalr:
    """The tables of a shift-reduce parser.

    Attributes
    ----------
    terminals, nonterminals : tuple of str
        Names by number. The last terminal is $END; the others are those of the Productions, in the same order.
    action : int32[states, terminals]
        0: error; s + 1: shift and go to state s; -(r + 1): reduce by rule r. Lark's contextual lexer tries the
        terminals whose entry in the row of the state is not 0.
    goto : int32[states, nonterminals]
        The state after a reduction, or -1.
    left, length : int32[rules]
        The nonterminal of a rule, and the number of states it pops.
    start : int
        The initial state.
    end : int
        The accepting state; reductions on $END that lead to it are followed by a shift of $END from `end` to itself.
    conflicts : tuple of str
        A message for each rule whose reduction before a terminal lost to a shift or to a rule of higher priority. If
        there are none, the table accepts the language of the productions.
    """

    terminals: tuple[str, ...]
    nonterminals: tuple[str, ...]
    action: Ints
    goto: Ints
    left: Ints
    length: Ints
    start: int
    end: int
    conflicts: tuple[str, ...]


LocateRule = Callable[[int], "tuple[str, int] | None"]


def build_tables(productions: Productions, locate_rule: LocateRule = lambda rule: None) -> Lalr:
    """Return the tables of productions whose start symbol has a rule.

    `locate_rule` maps a rule to its source text and offset, for errors. Raise GrammarError for a reduce/reduce conflict
    between rules of equal priority.
    """
    states = _States(productions)
    reduction_rules, reduction_states, lookaheads = _compute_lookaheads(productions, states)
    action, conflicts = _build_actions(productions, states, reduction_rules, reduction_states, lookaheads, locate_rule)
    end = int(states.move[0, states.terminals + productions.start])
    action[end, states.terminals - 1] = end + 1
    return Lalr(
        terminals=(*productions.terminals, END),
        nonterminals=productions.nonterminals,
        action=action,
        goto=states.move[:, states.terminals :].copy(),
        left=np.array(productions.left, dtype=np.int32),
        length=np.array([len(right) for right in productions.right], dtype=np.int32),
        start=0,
        end=end,
        conflicts=conflicts,
    )


def list_overruled_reductions(productions: Productions, table: Lalr) -> list[tuple[int, int, int]]:
    """Return (state, terminal, rule) for each possible reduction for which `table` has a different action.

    `table` must be the table of these productions.
    """
    rules, reduction_states, lookaheads = _compute_lookaheads(productions, _States(productions))
    overruled = lookaheads & (table.action[reduction_states] != -1 - rules[:, None])
    return [(int(reduction_states[k]), terminal, int(rules[k])) for k, terminal in np.argwhere(overruled).tolist()]


class _States:
    """The LR(0) automaton.

    An item is an int: `first[rule]` plus the number of symbols before the dot. `move` is int32[states, terminals +
    nonterminals], the next state or -1; the start is state 0. `kernels` holds the kernel items of each state as a
    sorted tuple; the added rule `$root: start` is the last.
    """

    def __init__(self, productions: Productions) -> None:
        self.terminals = len(productions.terminals) + 1
        rights = [*productions.right, (~productions.start,)]
        self.column = [[s if s >= 0 else ~s + self.terminals for s in right] for right in rights]
        self.first: list[int] = []
        self.after: list[int] = []  # by item: the column of the symbol after the dot, -1 at the end
        self.rule: list[int] = []
        for rule, columns in enumerate(self.column):
            self.first.append(len(self.after))
            self.after += [*columns, -1]
            self.rule += [rule] * (len(columns) + 1)
        self._by_left = productions.by_left()
        self._first_nonterminals = self._find_first_nonterminals(productions)
        self._closures: dict[int, dict[int, tuple[int, ...]]] = {}
        self.kernels: list[tuple[int, ...]] = []
        self.move = self._explore(len(productions.nonterminals))

    def _find_first_nonterminals(self, productions: Productions) -> list[int]:
        """Return, for each nonterminal, the set of nonterminals that can begin it, including itself."""
        sets = [1 << n for n in range(len(productions.nonterminals))]
        edges = [
            sorted({~right[0] for rule in rules if (right := productions.right[rule]) and right[0] < 0})
            for rules in self._by_left
        ]
        propagate_sets(edges, sets)
        return sets

    def _closure_moves(self, nonterminals: int) -> dict[int, tuple[int, ...]]:
        """Return the transitions on the first symbols of the rules of these nonterminals: kernel items by symbol."""
        known = self._closures.get(nonterminals)
        if known is None:
            moves: dict[int, list[int]] = {}
            for nonterminal in list_members(nonterminals):
                for rule in self._by_left[nonterminal]:
                    item = self.first[rule]
                    if (symbol := self.after[item]) >= 0:
                        moves.setdefault(symbol, []).append(item + 1)
            known = self._closures[nonterminals] = {symbol: tuple(sorted(items)) for symbol, items in moves.items()}
        return known

    def _explore(self, nonterminals: int) -> Ints:
        """Build all states and return `move`."""
        after, kernels = self.after, self.kernels
        numbers: dict[tuple[int, ...], int] = {(self.first[-1],): 0}
        kernels.append((self.first[-1],))
        rows: list[dict[int, int]] = []
        width = self.terminals + nonterminals
        for kernel in kernels:  # `kernels` grows during the loop
            first_nonterminals = 0
            advanced: dict[int, list[int]] = {}
            for item in kernel:
                if (symbol := after[item]) >= 0:
                    advanced.setdefault(symbol, []).append(item + 1)
                    if symbol >= self.terminals:
                        first_nonterminals |= self._first_nonterminals[symbol - self.terminals]
            moves = self._closure_moves(first_nonterminals)
            if advanced:
                moves = moves | {s: tuple(sorted((*moves.get(s, ()), *items))) for s, items in advanced.items()}
            row = {}
            for symbol, target in moves.items():
                number = numbers.get(target)
                if number is None:
                    number = numbers[target] = len(kernels)
                    kernels.append(target)
                row[symbol] = number
            rows.append(row)
            spend_work(10 + 3 * len(row) + 2 * len(kernel), WORK)
            spend_work(width // 16, WORK)  # for the tables, before they are allocated
        move = np.full((len(rows), self.terminals + nonterminals), -1, dtype=np.int32)
        sizes = [len(row) for row in rows]
        at = np.repeat(np.arange(len(rows)), sizes)
        move[at, [s for row in rows for s in row]] = [n for row in rows for n in row.values()]
        return move


def _compute_lookaheads(productions: Productions, states: _States) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Return the reductions with their lookaheads: rules int32[k], states int32[k], terminals bool[k, terminals].

    A node is a transition over a nonterminal, (p, A). In the terms of DeRemer and Pennello, its set is first DR(p, A),
    the terminals read directly after A; then Read(p, A), by the relation *reads* over nullable nonterminals; finally
    Follow(p, A), by the relation *includes*. LA(q, rule) is the union of the Follow sets of its *lookback* nodes.
    """
    move, terminals = states.move, states.terminals
    goto = move[:, terminals:]
    transition_states, nonterminals = np.nonzero(goto >= 0)
    node = np.full(goto.shape, -1, dtype=np.int64)
    node[transition_states, nonterminals] = np.arange(len(transition_states))
    targets = goto[transition_states, nonterminals]

    shifted = _pack_rows(move[:, :terminals] >= 0)
    sets = [shifted[state] for state in targets.tolist()]
    sets[int(node[0, productions.start])] |= 1 << (terminals - 1)  # $END follows the whole text
    nullable = np.array(sorted(productions.nullable()), dtype=np.int64)
    edges: list[list[int]] = [[] for _ in sets]
    if len(nullable):
        nullable_nodes = node[:, nullable]
        reads = [[n for n in row if n >= 0] for row in nullable_nodes.tolist()]
        edges = [reads[state] for state in targets.tolist()]
    propagate_sets(edges, sets)

    includes_from, includes_to, rules, reduction_states, lookback = _find_includes_and_lookback(
        productions, states, transition_states, nonterminals, node
    )
    pairs = np.unique(includes_from * len(sets) + includes_to)
    spend_work(len(sets) * (1 + terminals // 512) + len(pairs) * (2 + terminals // 512), WORK)
    edges = [[] for _ in sets]
    for pair in pairs.tolist():
        edges[pair // len(sets)].append(pair % len(sets))
    propagate_sets(edges, sets)

    # LA: the union of the Follow sets over lookback, for each pair of a rule and the state in which it ends.
    keys = reduction_states * len(productions.left) + rules
    order = np.argsort(keys, kind="stable")
    keys, starts = np.unique(keys[order], return_index=True)
    width = (terminals + 7) // 8
    follow = np.frombuffer(b"".join(one.to_bytes(width, "little") for one in sets), dtype=np.uint8).reshape(-1, width)
    joined = np.bitwise_or.reduceat(follow[lookback[order]], starts)
    bits = np.unpackbits(joined, axis=1, bitorder="little")[:, :terminals].astype(np.bool_)
    return (keys % len(productions.left)).astype(np.int32), (keys // len(productions.left)).astype(np.int32), bits


def _find_includes_and_lookback(
    productions: Productions,
    states: _States,
    transition_states: NDArray[Any],
    nonterminals: NDArray[Any],
    node: NDArray[Any],
) -> tuple[NDArray[Any], ...]:
    """Return the relations *includes* and *lookback*, by walks along every rule from all states in which it begins.

    The results are int64 arrays: includes_from and includes_to [edges], where Follow(includes_from) includes
    Follow(includes_to); and rules, reduction_states and lookback [ends], a rule, the state in which it ends and the
    node of its left side.
    """
    nullable = {~n for n in productions.nullable()}
    nodes_of_nonterminal = [np.flatnonzero(nonterminals == n) for n in range(len(productions.nonterminals))]
    includes_from: list[NDArray[Any]] = []
    includes_to: list[NDArray[Any]] = []
    rules: list[NDArray[Any]] = []
    reduction_states: list[NDArray[Any]] = []
    lookback: list[NDArray[Any]] = []

    def walk(rule: int, dot: int, current: NDArray[Any], nodes: NDArray[Any]) -> NDArray[Any]:
        right = productions.right[rule]
        last = len(right)  # all symbols from here on are nullable
        while last > dot and right[last - 1] in nullable:
            last -= 1
        for position in range(dot, len(right)):
            if right[position] < 0 and position >= last - 1:
                includes_from.append(node[current, ~right[position]])
                includes_to.append(nodes)
            current = states.move[current, states.column[rule][position]]
        return current

    for rule, left in enumerate(productions.left):
        nodes = nodes_of_nonterminal[left]
        spend_work(20 + (10 + len(nodes) // 16) * len(productions.right[rule]), WORK)
        if len(nodes):
            reduction_states.append(walk(rule, 0, transition_states[nodes], nodes))
            rules.append(np.full(len(nodes), rule))
            lookback.append(nodes)
    # As in Lark, but not in the paper: see the module docstring.
    for state, kernel in enumerate(states.kernels[1:], 1):
        for item in kernel:
            rule = states.rule[item]
            if states.after[item] >= 0 and (left_node := node[state, productions.left[rule]]) >= 0:
                spend_work(10 * (1 + len(productions.right[rule])), WORK)
                walk(rule, item - states.first[rule], np.array([state]), np.array([left_node]))
    none = np.zeros(0, dtype=np.int64)
    return tuple(
        np.concatenate(each).astype(np.int64) if each else none
        for each in (includes_from, includes_to, rules, reduction_states, lookback)
    )


def _build_actions(
    productions: Productions,
    states: _States,
    reduction_rules: Ints,
    reduction_states: Ints,
    lookaheads: NDArray[np.bool_],
    locate_rule: LocateRule,
) -> tuple[Ints, tuple[str, ...]]:
    """Return the action table, and a message for each reduction that lost a conflict."""
    action: Ints = states.move[:, : states.terminals] + 1
    shifts = action > 0
    ends: dict[int, list[int]] = {}
    for k, state in enumerate(reduction_states.tolist()):
        ends.setdefault(state, []).append(k)
    single = np.array([entries[0] for entries in ends.values() if len(entries) == 1], dtype=np.int64)
    rows = reduction_states[single]
    action[rows] = np.where(lookaheads[single] & ~shifts[rows], -1 - reduction_rules[single][:, None], action[rows])
    conflicts: list[tuple[int, tuple[int, ...]]] = []
    for state, entries in ends.items():
        if len(entries) > 1:
            entries.sort(key=lambda k: -productions.priority[reduction_rules[k]])
            priorities = [productions.priority[reduction_rules[k]] for k in entries]
            for terminal in np.flatnonzero(lookaheads[entries].any(axis=0)).tolist():
                candidates = [i for i, k in enumerate(entries) if lookaheads[k, terminal]]
                if len(candidates) > 1 and priorities[candidates[0]] == priorities[candidates[1]]:
                    equal = tuple(
                        int(reduction_rules[entries[i]])
                        for i in candidates
                        if priorities[i] == priorities[candidates[0]]
                    )
                    conflicts.append((terminal, equal))
                elif not shifts[state, terminal]:
                    action[state, terminal] = -1 - reduction_rules[entries[candidates[0]]]
    if conflicts:
        raise _reduce_reduce_error(productions, conflicts, locate_rule)
    return action, _describe_conflicts(productions, reduction_rules, reduction_states, lookaheads, action)


def _describe_conflicts(
    productions: Productions, rules: Ints, finals: Ints, lookaheads: NDArray[np.bool_], action: Ints
) -> tuple[str, ...]:
    """Return a message for each rule and winning action; it lists the terminals before which the rule loses to it."""
    lost: dict[tuple[int, int], dict[str, None]] = {}
    chosen = action[finals]
    for k, terminal in np.argwhere(lookaheads & (chosen != -1 - rules[:, None])).tolist():
        winner = min(int(chosen[k, terminal]), 0)
        lost.setdefault((int(rules[k]), winner), {}).setdefault(_name(productions, terminal))
    return tuple(
        f"before {', '.join(names)} the rule `{productions.text(rule)}` is never reduced: "
        + (f"`{productions.text(-1 - winner)}` has a higher priority" if winner else "shifting it has precedence")
        for (rule, winner), names in lost.items()
    )


def _name(productions: Productions, terminal: int) -> str:
    return productions.name(terminal) if terminal < len(productions.terminals) else "the end of the text"


def _reduce_reduce_error(
    productions: Productions, conflicts: list[tuple[int, tuple[int, ...]]], locate_rule: LocateRule
) -> GrammarError:
    """Return the error for reduce/reduce conflicts: the rules and terminals of the first, and the number
    of the others.
    """
    first = conflicts[0][1]
    terminals = list(dict.fromkeys(_name(productions, terminal) for terminal, rules in conflicts if rules == first))
    source, position = locate_rule(first[0]) or (None, None)
    others = len({rules for _, rules in conflicts}) - 1
    return GrammarError(
        f"reduce/reduce conflict: before {', '.join(terminals)}, one token of lookahead does not decide which of "
        f"{len(first)} rules ends:"
        + "".join(f"\n    {productions.text(rule)}" for rule in first)
        + (f"\n  as for {others} other pair{'s' if others > 1 else ''} of rules" if others else ""),
        source=source,
        position=position,
        hint="Join the rules, or give one of them a priority: `name.2: ...` goes first.",
    )


def _pack_rows(rows: NDArray[np.bool_]) -> list[int]:
    """Convert bool[n, m] to n ints of m bits."""
    return [int.from_bytes(row.tobytes(), "little") for row in np.packbits(rows, axis=1, bitorder="little")]
