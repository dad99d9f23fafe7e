"""Texts that an automaton accepts and that have the format `regex`, or do not have it, as rules.

The intersection of a context-free and a regular language is context-free (Bar-Hillel, Perles, Shamir 1961).
`build_symbols` is a grammar of both languages. A regular expression alternates between flat text (`flat_regex_format`)
and groups. Any other text has exactly one first error: inside flat text, at a `)` that closes nothing, at a group of an
unknown kind, or because a group is never closed. Flat text never continues with a parenthesis, so the grammar is
unambiguous.

`(X, p, q)` denotes the texts of a symbol X that lead the automaton from state p to q. The reachable q are the least
fixpoint over the pairs (symbol, state) that are needed; a rule is built when the text reaches it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import Context
from functools import cache
from typing import NamedTuple, Union

from ....automata.boolean_operations import find_universal_states, merge_ranges
from ....automata.dfa import Dfa, Table
from ....base.errors import LimitError
from ....base.work import spend_work
from ....grammar.nodes import EMPTY, Chars, Node, Rule, Sequence
from ...regex import to_dfa
from ..core.node_building import choice_of
from .flat_regex_format import flat_regex_dfa

__all__ = ["NestedTexts", "NestedPart"]

SUBJECT = "a format that is not a regular language, combined with other conditions"

Symbol = Union[str, Dfa]
Alternatives = dict[str, tuple[tuple[Symbol, ...], ...]]

NAME = r"[A-Za-z_$\x80-\U0010ffff][0-9A-Za-z_$\x80-\U0010ffff]*"


@cache
def build_symbols(sign: bool) -> Alternatives:
    """Return the grammar. sign: False for texts that are not regular expressions.

    It is the same for all schemas, so it is not charged to any budget.
    """
    return Context().run(_build_symbols, sign)


def _build_symbols(sign: bool) -> Alternatives:
    """Return the grammar: "regex", "other" (texts that are none) and "open" (such texts after a group that is never
    closed).

    Each is right-linear except for groups. It begins "fresh", or after a group that a quantifier may follow
    ("atom"), or after a bare parenthesis ("bare").
    """
    any_text, question_first = Dfa.any_text(), Dfa.from_strings(["?"]).concatenate(Dfa.any_text())
    bare, close = Dfa.from_strings(["("]), Dfa.from_strings([")"])
    group = to_dfa(rf"\(\?(?::|<{NAME}>|{_flags()}:)")
    look = to_dfa(r"\(\?(?:=|!|<=|<!)")
    brackets = bare.union(close).concatenate(any_text)
    unknown = to_dfa(r"\(\?").concatenate(any_text).subtract(group.union(look).concatenate(any_text))
    groups = ((bare, "atom"), (group, "atom"), (look, "fresh"))
    out: Alternatives = {}
    for level, text in (("fresh", flat_regex_dfa()), ("atom", _text_after_atom())):

        def after_groups(kind: str, text: Dfa = text) -> tuple[tuple[Symbol, ...], ...]:
            """A group, and what follows it."""
            return tuple((text, opening, "regex fresh", close, f"{kind} {after}") for opening, after in groups)

        out[f"regex {level}"] = ((text,), *after_groups("regex"))
        if sign:
            continue
        prefixes = _prefix_closure(text)
        wrong = any_text.subtract(prefixes).subtract(text.concatenate(brackets)).union(text.concatenate(unknown))
        ended = prefixes.subtract(text).union(wrong).union(text.concatenate(close).concatenate(any_text))
        never_closed: tuple[tuple[Symbol, ...], ...] = (
            (text, bare, "open bare"), (text, group.union(look), "open fresh"),
        )  # fmt: skip
        out[f"other {level}"] = ((ended,), *after_groups("other"), *never_closed)
        out[f"open {level}"] = ((prefixes.union(wrong),), *after_groups("open"), *never_closed)
        if level == "fresh":
            # After a bare parenthesis a question mark begins another kind of group: `unknown` has said which.
            out["open bare"] = ((prefixes.union(wrong).subtract(question_first),), *out["open fresh"][1:])
    return out


START = {True: "regex fresh", False: "other fresh"}


def _flags() -> str:
    """Return the text between `?` and `:`: flags that are switched on, and off after a dash, without repetition."""
    orders = _orders("ims")
    pairs = [f"{on}-{off}" for on in orders for off in orders if off and not set(on) & set(off)]
    return "(?:" + "|".join([order for order in orders if order] + pairs) + ")"


def _orders(letters: str) -> list[str]:
    """Return every order of some of the letters."""
    return ["", *(letter + suffix for letter in letters for suffix in _orders(letters.replace(letter, "")))]


def _text_after_atom() -> Dfa:
    """Return the flat text that may follow a term: what may follow a letter."""
    table = flat_regex_dfa().table
    first = flat_regex_dfa().step(0, "a")
    rows = [table.rows[first], *([t + 1 if t >= 0 else -1 for t in row] for row in table.rows)]
    rows[0] = [t + 1 if t >= 0 else -1 for t in rows[0]]
    return Dfa.from_table(Table(table.bounds, table.classes, rows, [table.accepting[first], *table.accepting]))


def _prefix_closure(dfa: Dfa) -> Dfa:
    """Return all prefixes of the texts: every state of a Dfa leads to acceptance."""
    table = dfa.table
    return Dfa.from_table(Table(table.bounds, table.classes, table.rows, [True] * len(table.rows)))


class NestedPart(NamedTuple):
    """The name of a rule: the parts from `position` on of an alternative of a symbol, from one state to another.

    alternative: -1 for all of them.
    """

    nested: NestedTexts
    symbol: str
    alternative: int
    position: int
    first: int
    last: int

    def node(self) -> Node:
        """Return the node of the rule."""
        nested = self.nested
        if self.alternative >= 0:
            return nested.emit_sequence(self.symbol, self.alternative, self.position, self.first, self.last)
        return choice_of([
            nested.emit_sequence(self.symbol, number, 0, self.first, self.last)
            for number, parts in enumerate(nested.symbols[self.symbol])
            if self.last in nested.find_targets_of_parts(parts, 0, self.first)
        ])  # fmt: skip


class LeafSteps(NamedTuple):
    """A leaf, with its character classes split by those of the Dfa.

    bounds, classes: as in `Table`. width: the number of classes. steps: for each state of the leaf, (class, next state,
    class of the Dfa) of the classes that lead on.
    """

    bounds: list[int]
    classes: list[int]
    width: int
    steps: list[list[tuple[int, int, int]]]


class NestedTexts:
    """The texts that are regular expressions (or, with `sign` False, are none) and that `dfa` accepts.

    Equal only to itself. Raises LimitError beyond max_states pairs of a symbol and a state.
    """

    def __init__(self, sign: bool, dfa: Dfa, max_states: int) -> None:
        self.start = START[sign]
        self.dfa = dfa
        self.max_states = max_states
        self.symbols = build_symbols(sign)
        self._table = dfa.table
        self._targets: dict[tuple[str, int], frozenset[int]] = {}
        self._dependents: dict[tuple[str, int], set[tuple[str, int]]] = {}
        self._leaves: dict[tuple[Dfa, int], tuple[Table, list[tuple[int, int]]]] = {}
        self._leaf_steps: dict[Dfa, LeafSteps] = {}
        self._nodes: dict[tuple[Dfa, int, int], Node] = {}
        self._free = min(find_universal_states(self._table), default=-1)
        """The state from which every text is accepted: from it the Dfa no longer matters."""
        self._ends: list[int] = []
        if not dfa.is_empty:
            self._solve()
            self._ends = [q for q in sorted(self._targets[self.start, 0]) if self._table.accepting[q]]

    @property
    def is_empty(self) -> bool:
        """Whether the language is empty."""
        return not self._ends

    def node(self) -> Node:
        """Return the node of the texts as they are written inside a JSON string. The language must not be empty."""
        return choice_of([self._part_rule(self.start, q, 0) for q in self._ends])

    def is_endless(self) -> bool:
        """Return whether there certainly are infinitely many texts; False means that it is not known."""
        for (symbol, p), ends in self._targets.items():
            if symbol == self.start and p == 0 and self._free >= 0 and self._free in ends:
                return True
        return False

    def _part_rule(self, symbol: str, last: int, first: int) -> Node:
        return Rule(NestedPart(self, symbol, -1, 0, first, last))

    # ---- where symbols lead ------------------------------------------------------------------------------------

    def _solve(self) -> None:
        """Compute the target states of all symbols that the start depends on: a least fixpoint with a worklist."""
        worklist: list[tuple[str, int]] = []

        def find_targets(symbol: Symbol, p: int, dependent: tuple[str, int]) -> frozenset[int]:
            if isinstance(symbol, Dfa):
                return self._find_leaf_targets(symbol, p)
            key = (symbol, p)
            if key not in self._targets:
                self._targets[key] = frozenset()
                self._dependents[key] = set()
                worklist.append(key)
                if len(self._targets) > self.max_states:
                    raise LimitError(
                        f"{SUBJECT[:1].upper()}{SUBJECT[1:]}: more than {self.max_states} rules",
                        hint="Simplify them, or raise Limits.dfa_states.",
                    )
            self._dependents[key].add(dependent)
            return self._targets[key]

        self._targets[self.start, 0] = frozenset()
        self._dependents[self.start, 0] = set()
        worklist.append((self.start, 0))
        while worklist:
            key = worklist.pop()
            ends: set[int] = set()
            for parts in self.symbols[key[0]]:
                states = {key[1]}
                for part in parts:
                    spend_work(1 + len(states), SUBJECT)
                    states = set().union(*(find_targets(part, state, key) for state in states))
                    if not states:
                        break
                ends |= states
            if not ends <= self._targets[key]:
                self._targets[key] |= ends
                worklist.extend(self._dependents[key])

    def find_targets(self, symbol: Symbol, p: int) -> frozenset[int]:
        """Return the states to which a symbol leads from another one."""
        if isinstance(symbol, Dfa):
            return self._find_leaf_targets(symbol, p)
        return self._targets.get((symbol, p), frozenset())

    def find_targets_of_parts(self, parts: tuple[Symbol, ...], position: int, p: int) -> set[int]:
        """Return the states to which the parts from a position on lead."""
        states = {p}
        for part in parts[position:]:
            states = set().union(*(self.find_targets(part, state) for state in states))
        return states

    # ---- leaves ------------------------------------------------------------------------------------------------

    def _intersect_leaf(self, leaf: Dfa, p: int) -> tuple[Table, list[tuple[int, int]]]:
        """Return the product of both automata from (0, p) on, with its pairs of states."""
        known = self._leaves.get((leaf, p))
        if known is None:
            bounds, classes, width, steps = self._find_leaf_steps(leaf)
            order, numbers, rows = [(0, p)], {(0, p): 0}, []
            for a, b in order:  # Grows meanwhile.
                spend_work(2 + width // 4, SUBJECT)
                row, targets = [-1] * width, self._table.rows[b]
                for column, left, right in steps[a]:
                    if targets[right] >= 0:
                        target = (left, targets[right])
                        row[column] = number = numbers.setdefault(target, len(order))
                        if number == len(order):
                            order.append(target)
                rows.append(row)
            accepting = [leaf.table.accepting[a] for a, _ in order]
            known = self._leaves[leaf, p] = Table(bounds, classes, rows, accepting), order
        return known

    def _find_leaf_steps(self, leaf: Dfa) -> LeafSteps:
        """Return what the products of a leaf with the Dfa share, whichever state of the Dfa they start from."""
        known = self._leaf_steps.get(leaf)
        if known is None:
            bounds, classes, pairs = merge_ranges(leaf.table, self._table)
            steps = [
                [(column, row[left], right) for column, (left, right) in enumerate(pairs) if row[left] >= 0]
                for row in leaf.table.rows
            ]
            known = self._leaf_steps[leaf] = LeafSteps(bounds, classes, len(pairs), steps)
        return known

    def _find_leaf_targets(self, leaf: Dfa, p: int) -> frozenset[int]:
        if p == self._free:
            return frozenset((p,))
        table, order = self._intersect_leaf(leaf, p)
        return frozenset(b for (_, b), accepts in zip(order, table.accepting) if accepts)

    def _emit_leaf(self, leaf: Dfa, p: int, q: int) -> Node:
        """Return the texts of a leaf that lead from p to q."""
        known = self._nodes.get((leaf, p, q))
        if known is None:
            if p == self._free:
                known = Chars(leaf, "json")
            else:
                table, order = self._intersect_leaf(leaf, p)
                accepting = [accepts and b == q for (_, b), accepts in zip(order, table.accepting)]
                dfa = Dfa.from_table(table._replace(accepting=accepting))
                known = EMPTY if dfa == EMPTY_TEXT else Chars(dfa, "json")
            self._nodes[leaf, p, q] = known
        return known

    # ---- writing -----------------------------------------------------------------------------------------------

    def emit_sequence(self, symbol: str, alternative: int, position: int, p: int, q: int) -> Node:
        """Return the node of the parts of an alternative from a position on, which must lead from p to q."""
        parts = self.symbols[symbol][alternative]
        return choice_of(list(self._iterate_sequences(symbol, alternative, parts, position, p, q)))

    def _iterate_sequences(
        self, symbol: str, alternative: int, parts: tuple[Symbol, ...], position: int, p: int, q: int
    ) -> Iterator[Node]:
        part, is_last = parts[position], position + 1 == len(parts)
        middles = [q] if is_last else sorted(self.find_targets(part, p))
        for middle in middles:
            if not is_last and q not in self.find_targets_of_parts(parts, position + 1, middle):
                continue
            first = self._emit_leaf(part, p, middle) if isinstance(part, Dfa) else self._part_rule(part, middle, p)
            if is_last:
                yield first
            elif position + 2 == len(parts) and isinstance(parts[-1], str):
                yield _concatenate(first, self._part_rule(parts[-1], q, middle))
            else:
                yield _concatenate(first, Rule(NestedPart(self, symbol, alternative, position + 1, middle, q)))


EMPTY_TEXT = Dfa.from_strings([""])


def _concatenate(first: Node, suffix: Node) -> Node:
    return suffix if first is EMPTY else first if suffix is EMPTY else Sequence((first, suffix))
