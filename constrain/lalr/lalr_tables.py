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


Place = Callable[[int], "tuple[str, int] | None"]


def build_tables(productions: Productions, place: Place = lambda rule: None) -> Lalr:
    """Return the tables of productions whose start symbol has a rule.

    `place` maps a rule to its source text and offset, for errors. Raise GrammarError for a reduce/reduce conflict
    between rules of equal priority.
    """
    states = _States(productions)
    rules, finals, lookaheads = _lookaheads(productions, states)
    action, conflicts = _actions(productions, states, rules, finals, lookaheads, place)
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
    rules, finals, before = _lookaheads(productions, _States(productions))
    lost = before & (table.action[finals] != -1 - rules[:, None])
    return [(int(finals[k]), terminal, int(rules[k])) for k, terminal in np.argwhere(lost).tolist()]


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
        self._begun = self._beginnings(productions)
        self._entered: dict[int, dict[int, tuple[int, ...]]] = {}
        self.kernels: list[tuple[int, ...]] = []
        self.move = self._explore(len(productions.nonterminals))

    def _beginnings(self, productions: Productions) -> list[int]:
        """Return, for each nonterminal, the set of nonterminals that can begin it, including itself."""
        sets = [1 << n for n in range(len(productions.nonterminals))]
        edges = [
            sorted({~right[0] for rule in rules if (right := productions.right[rule]) and right[0] < 0})
            for rules in self._by_left
        ]
        propagate_sets(edges, sets)
        return sets

    def _enter(self, begun: int) -> dict[int, tuple[int, ...]]:
        """Return the transitions on the first symbols of the rules of these nonterminals: kernel items by symbol."""
        known = self._entered.get(begun)
        if known is None:
            moves: dict[int, list[int]] = {}
            for nonterminal in _members(begun):
                for rule in self._by_left[nonterminal]:
                    item = self.first[rule]
                    if (symbol := self.after[item]) >= 0:
                        moves.setdefault(symbol, []).append(item + 1)
            known = self._entered[begun] = {symbol: tuple(sorted(items)) for symbol, items in moves.items()}
        return known

    def _explore(self, nonterminals: int) -> Ints:
        """Build all states and return `move`."""
        after, kernels = self.after, self.kernels
        numbers: dict[tuple[int, ...], int] = {(self.first[-1],): 0}
        kernels.append((self.first[-1],))
        rows: list[dict[int, int]] = []
        width = self.terminals + nonterminals
        for kernel in kernels:  # `kernels` grows during the loop
            begun = 0
            advanced: dict[int, list[int]] = {}
            for item in kernel:
                if (symbol := after[item]) >= 0:
                    advanced.setdefault(symbol, []).append(item + 1)
                    if symbol >= self.terminals:
                        begun |= self._begun[symbol - self.terminals]
            moves = self._enter(begun)
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


def _lookaheads(productions: Productions, states: _States) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Return the reductions with their lookaheads: rules int32[k], states int32[k], terminals bool[k, terminals].

    A node is a transition over a nonterminal, (p, A); its set becomes Follow(p, A): first the terminals read directly
    after A, then those read after nullable nonterminals, and finally those that follow a rule that ends with A.
    """
    move, terminals = states.move, states.terminals
    goto = move[:, terminals:]
    places, made = np.nonzero(goto >= 0)
    node = np.full(goto.shape, -1, dtype=np.int64)
    node[places, made] = np.arange(len(places))
    behind = goto[places, made]

    shifted = _as_sets(move[:, :terminals] >= 0)
    sets = [shifted[state] for state in behind.tolist()]
    sets[int(node[0, productions.start])] |= 1 << (terminals - 1)  # $END follows the whole text
    nullable = np.array(sorted(productions.nullable()), dtype=np.int64)
    edges: list[list[int]] = [[] for _ in sets]
    if len(nullable):
        onward = node[:, nullable]
        reading = [[n for n in row if n >= 0] for row in onward.tolist()]
        edges = [reading[state] for state in behind.tolist()]
    propagate_sets(edges, sets)

    inside, outside, rules, finals, sources = _walks(productions, states, places, made, node)
    pairs = np.unique(inside * len(sets) + outside)
    spend_work(len(sets) * (1 + terminals // 512) + len(pairs) * (2 + terminals // 512), WORK)
    edges = [[] for _ in sets]
    for pair in pairs.tolist():
        edges[pair // len(sets)].append(pair % len(sets))
    propagate_sets(edges, sets)

    # A rule that ends in a state may have begun in many: join the follow sets of each.
    keys = finals * len(productions.left) + rules
    order = np.argsort(keys, kind="stable")
    keys, starts = np.unique(keys[order], return_index=True)
    width = (terminals + 7) // 8
    follow = np.frombuffer(b"".join(one.to_bytes(width, "little") for one in sets), dtype=np.uint8).reshape(-1, width)
    joined = np.bitwise_or.reduceat(follow[sources[order]], starts)
    bits = np.unpackbits(joined, axis=1, bitorder="little")[:, :terminals].astype(np.bool_)
    return (keys % len(productions.left)).astype(np.int32), (keys // len(productions.left)).astype(np.int32), bits


def _walks(
    productions: Productions, states: _States, places: NDArray[Any], made: NDArray[Any], node: NDArray[Any]
) -> tuple[NDArray[Any], ...]:
    """Walk along every rule from every state in which it begins, all such states at once.

    Return int64 arrays: inside and outside [edges], where Follow(inside) includes Follow(outside); and rules, finals
    and sources [ends], a rule, the state in which it ends and the node of its left side.
    """
    nullable = {~n for n in productions.nullable()}
    begins = [np.flatnonzero(made == n) for n in range(len(productions.nonterminals))]
    inside: list[NDArray[Any]] = []
    outside: list[NDArray[Any]] = []
    rules: list[NDArray[Any]] = []
    finals: list[NDArray[Any]] = []
    sources: list[NDArray[Any]] = []

    def walk(rule: int, dot: int, at: NDArray[Any], nodes: NDArray[Any]) -> NDArray[Any]:
        right = productions.right[rule]
        last = len(right)  # all symbols from here on are nullable
        while last > dot and right[last - 1] in nullable:
            last -= 1
        for place in range(dot, len(right)):
            if right[place] < 0 and place >= last - 1:
                inside.append(node[at, ~right[place]])
                outside.append(nodes)
            at = states.move[at, states.column[rule][place]]
        return at

    for rule, left in enumerate(productions.left):
        nodes = begins[left]
        spend_work(20 + (10 + len(nodes) // 16) * len(productions.right[rule]), WORK)
        if len(nodes):
            finals.append(walk(rule, 0, places[nodes], nodes))
            rules.append(np.full(len(nodes), rule))
            sources.append(nodes)
    # As in Lark, but not in the paper: see the module docstring.
    for state, kernel in enumerate(states.kernels[1:], 1):
        for item in kernel:
            rule = states.rule[item]
            if states.after[item] >= 0 and (own := node[state, productions.left[rule]]) >= 0:
                spend_work(10 * (1 + len(productions.right[rule])), WORK)
                walk(rule, item - states.first[rule], np.array([state]), np.array([own]))
    none = np.zeros(0, dtype=np.int64)
    return tuple(
        np.concatenate(each).astype(np.int64) if each else none for each in (inside, outside, rules, finals, sources)
    )


def _actions(
    productions: Productions, states: _States, rules: Ints, finals: Ints, before: NDArray[np.bool_], place: Place
) -> tuple[Ints, tuple[str, ...]]:
    """Return the action table, and a message for each reduction that lost a conflict."""
    action: Ints = states.move[:, : states.terminals] + 1
    shifts = action > 0
    ends: dict[int, list[int]] = {}
    for k, state in enumerate(finals.tolist()):
        ends.setdefault(state, []).append(k)
    single = np.array([each[0] for each in ends.values() if len(each) == 1], dtype=np.int64)
    rows = finals[single]
    action[rows] = np.where(before[single] & ~shifts[rows], -1 - rules[single][:, None], action[rows])
    clashes: list[tuple[int, tuple[int, ...]]] = []
    for state, each in ends.items():
        if len(each) > 1:
            each.sort(key=lambda k: -productions.priority[rules[k]])
            weight = [productions.priority[rules[k]] for k in each]
            for terminal in np.flatnonzero(before[each].any(axis=0)).tolist():
                rivals = [i for i, k in enumerate(each) if before[k, terminal]]
                if len(rivals) > 1 and weight[rivals[0]] == weight[rivals[1]]:
                    equal = tuple(int(rules[each[i]]) for i in rivals if weight[i] == weight[rivals[0]])
                    clashes.append((terminal, equal))
                elif not shifts[state, terminal]:
                    action[state, terminal] = -1 - rules[each[rivals[0]]]
    if clashes:
        raise _refused(productions, clashes, place)
    return action, _given_way(productions, rules, finals, before, action)


def _given_way(
    productions: Productions, rules: Ints, finals: Ints, before: NDArray[np.bool_], action: Ints
) -> tuple[str, ...]:
    """Return a message for each rule and winning action; it lists the terminals before which the rule loses to it."""
    lost: dict[tuple[int, int], dict[str, None]] = {}
    taken = action[finals]
    for k, terminal in np.argwhere(before & (taken != -1 - rules[:, None])).tolist():
        winner = min(int(taken[k, terminal]), 0)
        lost.setdefault((int(rules[k]), winner), {}).setdefault(_name(productions, terminal))
    return tuple(
        f"before {', '.join(names)} the rule `{productions.text(rule)}` never ends: "
        + (f"`{productions.text(-1 - winner)}` has a higher priority" if winner else "a longer rule goes on with it")
        for (rule, winner), names in lost.items()
    )


def _name(productions: Productions, terminal: int) -> str:
    return productions.name(terminal) if terminal < len(productions.terminals) else "the end of the text"


def _refused(productions: Productions, clashes: list[tuple[int, tuple[int, ...]]], place: Place) -> GrammarError:
    """Return the error for reduce/reduce conflicts: the rules and terminals of the first, and the number
    of the others.
    """
    first = clashes[0][1]
    before = list(dict.fromkeys(_name(productions, terminal) for terminal, rules in clashes if rules == first))
    source, position = place(first[0]) or (None, None)
    others = len({rules for _, rules in clashes}) - 1
    return GrammarError(
        f"{len(first)} rules could end at the same place before {', '.join(before)}, and one token of look-ahead does "
        "not tell which:"
        + "".join(f"\n    {productions.text(rule)}" for rule in first)
        + (f"\n  and so could {others} other pair{'s' if others > 1 else ''} of rules" if others else ""),
        source=source,
        position=position,
        hint="Join the rules, or give one of them a priority: `name.2: ...` goes first.",
    )


def _members(bits: int) -> list[int]:
    """Return the positions of the set bits, ascending."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


def _as_sets(rows: NDArray[np.bool_]) -> list[int]:
    """Convert bool[n, m] to n ints of m bits."""
    return [int.from_bytes(row.tobytes(), "little") for row in np.packbits(rows, axis=1, bitorder="little")]
