"""Intersection of a context-free Grammar with a Dfa (Bar-Hillel, Perles, Shamir 1961), without unproductive rules.

The nonterminal `(X, p, q)` derives the texts of X that lead the Dfa from state p to q. First, the states that each rule
can lead to from each state are computed, as the least fixpoint over the pairs (rule, state) that are reached; a pair is
re-evaluated when one that it depends on grows. Then rules are generated for non-empty triples only.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable
from functools import partial

from ..automata.boolean_operations import merge_ranges
from ..automata.dfa import Dfa, Table
from ..base.errors import LimitError, UnsupportedError
from ..base.options import Limits
from ..base.work import spend_work
from .nodes import EMPTY, Chars, Choice, Grammar, Literal, Node, Repeat, Rule, Sequence, Strings, Token
from .object_expansion import expand_objects
from .simplification import simplify_grammar
from .visitor import make_choice, make_sequence

__all__ = ["intersect_grammar"]

WHAT = "an intersection"
States = frozenset[int]
NONE: States = frozenset()
START = object()
"""The key of the start node, which need not be a rule."""


def intersect_grammar(grammar: Grammar, dfa: Dfa, limits: Limits = Limits()) -> Grammar | None:
    """Return the intersection of a Grammar and a Dfa as a Grammar; None if it is empty.

    Token nodes do not advance the Dfa. Raise UnsupportedError for nodes that plain rules cannot express, and LimitError
    for more than `limits.dfa_states` triples.
    """
    if dfa.is_empty:
        return None
    plain = expand_objects(grammar, WHAT, limits=limits)
    return _GrammarProduct(plain, dfa, limits.dfa_states).grammar()


class _GrammarProduct:
    """Builds the intersection: `solve` computes the reachable states, `grammar` generates the rules."""

    def __init__(self, grammar: Grammar, dfa: Dfa, most: int) -> None:
        self.given, self.dfa, self.most = grammar, dfa.table, most
        self.found: dict[tuple[Hashable, int], States] = {}
        self.asked: defaultdict[tuple[Hashable, int], set[tuple[Hashable, int]]] = defaultdict(set)
        self.now: tuple[Hashable, int] | None = None
        self.todo: list[tuple[Hashable, int]] = []
        self.solved = False
        self.solved_states: dict[tuple[int, int, int], States] = {}
        self.leaves: dict[tuple[int, int], tuple[Node, dict[int, Node]]] = {}
        self.rules: dict[Hashable, Node] = {}
        self.pending: list[tuple[Hashable, Callable[[], Node]]] = []
        self.numbers: dict[int, tuple[int, Node]] = {}  # by id; holding the nodes keeps their ids valid

    def grammar(self) -> Grammar | None:
        """Return the intersection, or None if it is empty."""
        start = self.given.start
        self.solve(start)
        ends = [q for q in sorted(self.leads(start, 0)) if self.dfa.accepting[q]]
        if not ends:
            return None
        body = make_choice(self.node(start, 0, q) for q in ends)
        while self.pending:
            name, make = self.pending.pop()
            self.rules[name] = make()
        return simplify_grammar(body, self.rules)

    # ---- reachable states

    def solve(self, start: Node) -> None:
        """Compute `found` for all pairs that the start depends on, by a worklist; the start itself is one of them."""
        self.found[START, 0] = NONE
        self.todo.append((START, 0))
        while self.todo:
            self.now = rule, p = self.todo.pop()
            leads = self.leads(start if rule is START else self.given.rules[rule], p)
            if leads - self.found[self.now]:
                self.found[self.now] |= leads
                self.todo.extend(self.asked[self.now])
        self.now, self.solved = None, True

    def leads(self, node: Node, p: int) -> States:
        """Return the states to which texts of a node lead from p, as far as known."""
        if isinstance(node, Rule):
            key = (node.name, p)
            if key not in self.found:
                assert not self.solved, "what is written was asked for before"
                self.found[key] = NONE
                self.todo.append(key)
                if len(self.found) > self.most:
                    raise self.exceeded()
            if self.now is not None:
                self.asked[key].add(self.now)
            return self.found[key]
        if isinstance(node, Sequence):
            return self.through(node, 0, p)
        if isinstance(node, Choice):
            return NONE.union(*(self.leads(option, p) for option in node.options))
        if isinstance(node, Repeat):
            return self.repeated(node.node, node.low, node.high, p)
        return frozenset({p}) if isinstance(node, Token) else frozenset(self.leaf(node, p))

    def through(self, node: Sequence, k: int, p: int) -> States:
        """Return the states to which the parts from k on lead from p."""
        key = (id(node), k, p)
        if self.solved and key in self.solved_states:
            return self.solved_states[key]
        states: States = frozenset({p})
        for part in node.parts[k:]:
            states = self.all(part, states)
        if self.solved:
            self.number(node)
            self.solved_states[key] = states
        return states

    def all(self, node: Node, states: States) -> States:
        """Return the states to which texts of a node lead from any of the given states."""
        spend_work(1 + len(states), WHAT)
        return NONE.union(*(self.leads(node, p) for p in states))

    def repeated(self, node: Node, low: int, high: int | None, p: int) -> States:
        """Return the states to which `low` to `high` repetitions of a node lead from p.

        The sequence of state sets after 0, 1, 2, ... repetitions is eventually periodic.
        """
        rounds: list[States] = []
        known: dict[States, int] = {}
        states: States = frozenset({p})
        while states not in known:
            known[states] = len(rounds)
            rounds.append(states)
            states = self.all(node, states)
        first = known[states]
        last = low + len(rounds)  # Covers every set of the period.
        counts = range(low, last if high is None else min(high, last) + 1)
        return NONE.union(*(rounds[k if k < first else first + (k - first) % (len(rounds) - first)] for k in counts))

    # ---- leaves

    def leaf(self, node: Node, p: int) -> dict[int, Node]:
        """Return, for each state that a leaf leads to from p, a node of its texts that do so."""
        key = (id(node), p)
        if key not in self.leaves:
            self.leaves[key] = node, self.chars(node, p) if isinstance(node, Chars) else self.texts(node, p)
        return self.leaves[key][1]

    def texts(self, node: Node, p: int) -> dict[int, Node]:
        """Compute `leaf` for a Literal or Strings."""
        if not isinstance(node, (Literal, Strings)):
            raise UnsupportedError(f"{WHAT} with {type(node).__name__} nodes is not built")
        groups: defaultdict[int, list[bytes]] = defaultdict(list)
        for text in node.options if isinstance(node, Strings) else (node.data,):
            try:
                q = self.run(p, text.decode())
            except UnicodeDecodeError:
                raise UnsupportedError(
                    f"{WHAT} of a grammar with a literal that is not UTF-8", hint="Write whole characters."
                ) from None
            if q >= 0:
                groups[q].append(text)
        return {q: Literal(them[0]) if len(them) == 1 else Strings(tuple(them)) for q, them in groups.items()}

    def run(self, state: int, text: str) -> int:
        """Return the state after a text, or -1."""
        table = self.dfa
        for char in text:
            if state < 0:
                break
            state = table.rows[state][table.classes[bisect_right(table.bounds, ord(char)) - 1]]
        return state

    def chars(self, node: Chars, p: int) -> dict[int, Node]:
        """Compute `leaf` for Chars: the product of both automata from (0, p), restricted to one final state at
        a time.
        """
        leaf = node.dfa.table
        bounds, classes, pairs = merge_ranges(leaf, self.dfa)
        order, numbers, rows = [(0, p)], {(0, p): 0}, []
        for a, b in order:  # `order` grows during the loop.
            row = []
            for left, right in pairs:
                target = (leaf.rows[a][left], self.dfa.rows[b][right])
                if min(target) < 0:
                    row.append(-1)
                    continue
                if target not in numbers:
                    numbers[target] = len(order)
                    order.append(target)
                row.append(numbers[target])
            rows.append(row)
            spend_work(1 + len(pairs), WHAT)
            if len(order) > self.most:
                raise self.exceeded()
        out: dict[int, Node] = {}
        for q in sorted({b for a, b in order if leaf.accepting[a]}):
            dfa = Dfa.from_table(Table(bounds, classes, rows, [leaf.accepting[a] and b == q for a, b in order]))
            made = self.counted(dfa, node.low, node.high)
            if made is not None:
                out[q] = made
        return out

    def counted(self, dfa: Dfa, low: int, high: int | None) -> Node | None:
        """Return a Chars node of the texts of `low` to `high` characters, or None if there are none."""
        least, most = dfa.lengths()
        if dfa.is_empty or (high is not None and max(least, low) > high) or (most is not None and most < low):
            return None
        if (low or high is not None) and not dfa.extensible():  # A counted Dfa must be extensible, see `nodes`.
            dfa, low, high = dfa.with_length(low, high, max_states=self.most), 0, None
        return None if dfa.is_empty else Chars(dfa, "utf8", low, high)

    # ---- generation of rules

    def node(self, node: Node, p: int, q: int) -> Node:
        """Return a node of the texts of `node` that lead from p to q, of which there is at least one."""
        if isinstance(node, Rule):
            return self.call((node.name, p, q), partial(self.node, self.given.rules[node.name], p, q))
        if isinstance(node, Sequence):
            return self.sequence(node, 0, p, q)
        if isinstance(node, Choice):
            return make_choice(self.node(option, p, q) for option in node.options if q in self.leads(option, p))
        if isinstance(node, Repeat):
            return self.repeat(node, p, q)
        return node if isinstance(node, Token) else self.leaf(node, p)[q]

    def call(self, name: Hashable, make: Callable[[], Node]) -> Rule:
        """Return a reference to the rule of this name; if it is new, its body is generated later by `make`."""
        if name not in self.rules:
            self.rules[name] = EMPTY
            self.pending.append((name, make))
            if len(self.rules) > self.most:
                raise self.exceeded()
        return Rule(name)

    def sequence(self, node: Sequence, k: int, p: int, q: int) -> Node:
        """Return a node for the parts from k on. A position with a single intermediate state needs no rule."""
        out: list[Node] = []
        while k < len(node.parts):
            middles = [r for r in sorted(self.leads(node.parts[k], p)) if q in self.through(node, k + 1, r)]
            if len(middles) > 1:
                name = ("from", self.number(node), k, p, q)
                return make_sequence((*out, self.call(name, partial(self.either, node, k, p, q, middles))))
            out.append(self.node(node.parts[k], p, middles[0]))
            k, p = k + 1, middles[0]
        return make_sequence(out)

    def either(self, node: Sequence, k: int, p: int, q: int, middles: list[int]) -> Node:
        """Return the choice, over the intermediate states, of part k followed by the remaining parts."""
        first = node.parts[k]
        return make_choice(make_sequence((self.node(first, p, r), self.sequence(node, k + 1, r, q))) for r in middles)

    def number(self, node: Node) -> int:
        """Return a number that identifies the node."""
        return self.numbers.setdefault(id(node), (len(self.numbers), node))[0]

    def repeat(self, node: Repeat, p: int, q: int) -> Node:
        """Return a node for a repetition.

        If every iteration returns to the same state, it remains a Repeat; else there is a rule for each state and
        remaining count.
        """
        body, low, high = node.node, node.low, node.high
        if p == q and self.leads(body, p) <= {p}:
            return Repeat(self.node(body, p, p), low, high) if self.leads(body, p) else EMPTY
        if high == 1 and low == 0:
            options = [self.node(body, p, q)] if q in self.leads(body, p) else []
            return make_choice([*options, EMPTY] if p == q else options)
        return self.rounds(body, low, high, p, q)

    def rounds(self, body: Node, low: int, high: int | None, p: int, q: int) -> Node:
        """Return a reference to the rule of a repetition with these remaining counts."""
        name = ("rounds", self.number(body), low, high, p, q)
        return self.call(name, partial(self.one_round, body, low, high, p, q))

    def one_round(self, body: Node, low: int, high: int | None, p: int, q: int) -> Node:
        """Return the body of such a rule: one iteration and the rest, or the end."""
        options: list[Node] = [EMPTY] if p == q and low == 0 else []
        if high != 0:
            left = (max(low - 1, 0), None if high is None else high - 1)
            for r in sorted(self.leads(body, p)):
                if q in self.repeated(body, *left, r):
                    options.append(make_sequence((self.node(body, p, r), self.rounds(body, *left, r, q))))
        return make_choice(options)

    def exceeded(self) -> LimitError:
        return LimitError(
            f"{WHAT} needs more than {self.most} rules or states",
            hint="Simplify one of both, or raise Limits.dfa_states.",
        )
