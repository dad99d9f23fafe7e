"""LALR(1) tables, equal to those that Lark makes, state by state.

    productions --items--> LR(0) states --relations--> lookaheads --actions--> Lalr

The states are LR(0), merged by kernel. The lookaheads are DeRemer and Pennello's ("Efficient computation of LALR(1)
look-ahead sets", TOPLAS 1982), with bit sets, and arrays over all states at once for the walks along rules. A shift
wins over a reduction; between reductions the rule's priority decides, or the grammar is refused.

One thing differs from the paper, because the row of a state decides which terminals Lark's contextual lexer looks
for, and so must be Lark's: in a state that has `a: x . y` and goes on with an `a` too, what may follow that `a` is
also taken to follow `y`. The row may thereby be wider than LALR(1), never narrower; what is accepted is the same
unless terminals then meet in one lexer that otherwise would not.
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
"""Name of the terminal that stands for the end of the text."""

Ints = NDArray[np.int32]
WORK = "the LALR table of the grammar"


@dataclass(frozen=True, slots=True)
class Lalr:
    """The table of a shift-reduce parser.

    terminals, nonterminals: names; a number is a place. The last terminal is $END, the others are those of the
    Productions, in their order.
    action: int32[states, terminals], 0 none, s + 1: shift and go to s, -(r + 1): reduce by rule r. What is not 0 in a
    row is what Lark's contextual lexer looks for in that state.
    goto: int32[states, nonterminals], the state after a reduction, -1 none.
    left, length: int32[rules], the nonterminal that a rule makes and how many states it pops.
    start: the state before any text. end: the state that accepts; reductions on $END that lead to it end in a shift
    of $END, from `end` to itself.
    conflicts: a sentence for each rule that could end before a terminal and never does, since the terminal is shifted
    or a rule of higher priority ends. Without any, the table accepts what the productions make.
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
    """The tables, for productions whose start has a rule.

    GrammarError if two rules of equal priority could end at one place before one terminal.
    place: text and offset where a rule is written, for that error.
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
    """(state, terminal, rule) for each rule that could end there before it, where `table`, of these, does other."""
    rules, finals, before = _lookaheads(productions, _States(productions))
    lost = before & (table.action[finals] != -1 - rules[:, None])
    return [(int(finals[k]), terminal, int(rules[k])) for k, terminal in np.argwhere(lost).tolist()]


class _States:
    """The LR(0) states.

    An item is an int: a rule's first item is `first[rule]`, and one more for each symbol that the dot has passed.
    move: int32[states, terminals + nonterminals], the next state, -1 none; the start is 0.
    kernels: the items, as a sorted tuple, that a state was made of; the added rule `$root: start` is the last.
    """

    def __init__(self, productions: Productions) -> None:
        self.terminals = len(productions.terminals) + 1
        rights = [*productions.right, (~productions.start,)]
        self.column = [[s if s >= 0 else ~s + self.terminals for s in right] for right in rights]
        self.first: list[int] = []
        self.after: list[int] = []  # the column of the symbol behind the dot, -1 at the end
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
        """For each nonterminal the set of those whose rules may begin where it begins, itself included."""
        sets = [1 << n for n in range(len(productions.nonterminals))]
        edges = [
            sorted({~right[0] for rule in rules if (right := productions.right[rule]) and right[0] < 0})
            for rules in self._by_left
        ]
        propagate_sets(edges, sets)
        return sets

    def _enter(self, begun: int) -> dict[int, tuple[int, ...]]:
        """What the first symbols of these nonterminals' rules lead to: items by symbol."""
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
        after, kernels = self.after, self.kernels
        numbers: dict[tuple[int, ...], int] = {(self.first[-1],): 0}
        kernels.append((self.first[-1],))
        rows: list[dict[int, int]] = []
        width = self.terminals + nonterminals
        for kernel in kernels:  # grows while it is read
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
            spend_work(width // 16, WORK)  # of the tables, before they are made
        move = np.full((len(rows), self.terminals + nonterminals), -1, dtype=np.int32)
        sizes = [len(row) for row in rows]
        at = np.repeat(np.arange(len(rows)), sizes)
        move[at, [s for row in rows for s in row]] = [n for row in rows for n in row.values()]
        return move


def _lookaheads(productions: Productions, states: _States) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Rules, states where they end, and before which terminals: int32[k], int32[k], bool[k, terminals].

    A node is a move over a nonterminal, (p, A); its set is what may follow that A: first what is read directly behind
    it, then also what is read behind nullable nonterminals, and last what may follow the rule that it stands last in.
    """
    move, terminals = states.move, states.terminals
    goto = move[:, terminals:]
    places, made = np.nonzero(goto >= 0)
    node = np.full(goto.shape, -1, dtype=np.int64)
    node[places, made] = np.arange(len(places))
    behind = goto[places, made]

    shifted = _as_sets(move[:, :terminals] >= 0)
    sets = [shifted[state] for state in behind.tolist()]
    sets[int(node[0, productions.start])] |= 1 << (terminals - 1)  # behind the whole text: its end
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

    # A rule that ends in a state may have begun in many: join what follows in each.
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
    """Every rule, walked from every place where it begins, all places at once.

    inside, outside: int64[edges], what follows the node `outside` follows `inside` too. rules, finals, sources:
    int64[ends], a rule, the state in which it ends, and the node that it makes.
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
        last = len(right)  # from here on all is nullable
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
    # As Lark does it, and beyond the paper: see the head of this file.
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
    """The action table, and a sentence for each rule that gave way to a shift."""
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
    """A sentence for each rule that could end before some terminals and gives way to the same other action there."""
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
    """Says of the rules that clash first before which terminals they do, and how many others there are."""
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
    """The places of the bits that are set, ascending."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


def _as_sets(rows: NDArray[np.bool_]) -> list[int]:
    """bool[n, m] as n ints of m bits."""
    return [int.from_bytes(row.tobytes(), "little") for row in np.packbits(rows, axis=1, bitorder="little")]
