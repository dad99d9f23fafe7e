"""Intersection of a context-free Grammar with a Dfa (Bar-Hillel, Perles, Shamir 1961), without unproductive rules.

The nonterminal `(X, p, q)` derives the texts of X that lead the Dfa from state p to q. First, the states that each rule
can lead to from each state are computed, as the least fixpoint over the pairs (rule, state) that are reached; a pair is
re-evaluated when one that it depends on grows. Then rules are generated for non-empty triples only.

The texts of a Member that lead from p to q are fewer than those of the Member, so that distinct ones may run out, which
rules cannot foresee. Intersections are therefore limited to Members that remain an infinite set of JSON strings (see
`unique_strings`): of these, finitely many that were used never leave too few.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable
from functools import partial
from typing import Protocol

import numpy as np

from ..automata.boolean_operations import merge_ranges
from ..automata.dfa import Dfa, Table
from ..base.errors import LimitError, UnsupportedError
from ..base.options import Limits
from ..base.work import spend_work
from ..lalr.parser_product import ParserProduct, cut_dfa
from .nodes import (
    EMPTY,
    Chars,
    Choice,
    Grammar,
    Literal,
    Mark,
    Member,
    Node,
    Parsed,
    Repeat,
    Rule,
    Sequence,
    Strings,
    Token,
    Unique,
)
from .object_expansion import expand_objects
from .simplification import simplify_grammar
from .smart_constructors import make_choice, make_sequence
from .unique_strings import check_members
from .visitor import PLAIN_CLASSES, NodeVisitor, list_strings

__all__ = ["START", "LeafTransitions", "ReachableStates", "intersect_grammar", "rewrite_leaves", "rewrite_rules"]

OPERATION = "an intersection"
Leaf = Literal | Strings | Chars | Mark | Parsed
States = frozenset[int]
NO_STATES: States = frozenset()
START = object()
"""The key of the start node, which need not be a rule."""


def intersect_grammar(grammar: Grammar, dfa: Dfa, limits: Limits = Limits()) -> Grammar | None:
    """Return the intersection of a Grammar and a Dfa as a Grammar; None if it is empty.

    A Mark advances the Dfa by its text; Token nodes do not advance it. Raise UnsupportedError for nodes that plain
    rules cannot express, and LimitError for more than `limits.dfa_states` triples.
    """
    if dfa.is_empty:
        return None
    plain = expand_objects(grammar, OPERATION, keep=(Mark, Parsed, Unique, Member), limits=limits)
    if isinstance(plain.start, Parsed):
        return _intersect_parsed(plain.start, dfa, limits)
    leaves = _LeafProducts(dfa, limits)
    reachable = ReachableStates(plain, leaves, limits.dfa_states)
    reachable.solve()
    rules = _TripleRules(plain, leaves, reachable, limits.dfa_states).write(dfa.table.accepting.__getitem__)
    product = None if rules is None else simplify_grammar(rules.start, rules.rules)
    if product is not None:
        check_members(product, OPERATION)
    return product


class LeafTransitions(Protocol):
    """A transducer of leaves with numbered states."""

    def products(self, node: Node, p: int) -> dict[int, Node]:
        """Return what a leaf is rewritten to in state p, by the state that follows it."""


def rewrite_leaves(
    grammar: Grammar, leaves: LeafTransitions, is_accepting: Callable[[int], bool], limits: Limits = Limits()
) -> Grammar | None:
    """Return a Grammar with its leaves rewritten by a transducer, from state 0 to an accepting one; None if empty.

    The leaves of `grammar` are Literals. Raise LimitError for more than `limits.dfa_states` rules.
    """
    made = rewrite_rules(grammar, leaves, is_accepting, limits)
    return None if made is None else simplify_grammar(made.start, made.rules)


def rewrite_rules(
    grammar: Grammar, leaves: LeafTransitions, is_accepting: Callable[[int], bool], limits: Limits = Limits()
) -> Grammar | None:
    """Return what `rewrite_leaves` returns before it is simplified: its leaves are those of the transducer."""
    reachable = ReachableStates(grammar, leaves, limits.dfa_states)
    reachable.solve()
    return _TripleRules(grammar, leaves, reachable, limits.dfa_states).write(is_accepting)


def _intersect_parsed(node: Parsed, dfa: Dfa, limits: Limits) -> Grammar | None:
    """Return the intersection of a grammar with a lexer and a Dfa; None if it is empty.

    A node that is such an intersection itself is replaced by its grammar, and the Dfa by that of both.
    """
    parser, origin = node.parser, node.parser.product
    if origin is not None:
        parser, dfa = origin.parser, dfa.intersect(origin.dfa, max_states=limits.dfa_states)
        if dfa.is_empty:
            return None
    if parser.layout is not None:
        raise UnsupportedError(
            f"{OPERATION}: a grammar with indentation cannot be combined with a pattern",
            hint="Leave out the `&`, or use a grammar without _INDENT and _DEDENT.",
        )
    accepting = np.flatnonzero(dfa.accepting).tolist()
    product = ParserProduct(parser, dfa, 0, dfa.accepting.astype(np.int32), limits).parser(accepting)
    return None if product is None else Grammar(Parsed(product), {})


def _limit_exceeded(limit: int) -> LimitError:
    return LimitError(
        f"{OPERATION} needs more than {limit} rules or states",
        hint="Simplify one of both, or raise Limits.dfa_states.",
    )


class ReachableStates(NodeVisitor[States]):
    """The states to which texts of a node lead from a state, as far as known: `visit(node, state)`."""

    node_classes = (*PLAIN_CLASSES, Mark, Parsed, Unique, Member)

    def __init__(self, grammar: Grammar, leaves: LeafTransitions, limit: int) -> None:
        self.grammar, self.leaves, self.limit = grammar, leaves, limit
        self.states: dict[tuple[Hashable, int], States] = {}  # by rule and state
        self.dependents: defaultdict[tuple[Hashable, int], set[tuple[Hashable, int]]] = defaultdict(set)
        self.current: tuple[Hashable, int] | None = None  # the pair that is evaluated
        self.pending: list[tuple[Hashable, int]] = []
        self.is_solved = False
        self.suffix_states: dict[tuple[int, int, int], States] = {}
        self._numbers: dict[int, tuple[int, Node]] = {}  # by id; holding the nodes keeps their ids valid

    def solve(self) -> None:
        """Compute `states` for all pairs that the start depends on, by a worklist; the start itself is one of them."""
        self.states[START, 0] = NO_STATES
        self.pending.append((START, 0))
        while self.pending:
            self.current = rule, p = self.pending.pop()
            states = self.visit(self.grammar.start if rule is START else self.grammar.rules[rule], p)
            if states - self.states[self.current]:
                self.states[self.current] |= states
                self.pending.extend(self.dependents[self.current])
        self.current, self.is_solved = None, True

    def visit_rule(self, node: Rule, p: int) -> States:
        key = (node.name, p)
        if key not in self.states:
            assert not self.is_solved, "rules are only generated for pairs that were evaluated"
            self.states[key] = NO_STATES
            self.pending.append(key)
            if len(self.states) > self.limit:
                raise _limit_exceeded(self.limit)
        if self.current is not None:
            self.dependents[key].add(self.current)
        return self.states[key]

    def visit_sequence(self, node: Sequence, p: int) -> States:
        return self.after_suffix(node, 0, p)

    def visit_choice(self, node: Choice, p: int) -> States:
        return NO_STATES.union(*(self.visit(option, p) for option in node.options))

    def visit_repeat(self, node: Repeat, p: int) -> States:
        return self.after_rounds(node.node, node.low, node.high, p)

    def visit_unique(self, node: Unique, p: int) -> States:
        return self.visit(node.body, p)

    def visit_member(self, node: Member, p: int) -> States:
        if node.again is not None:
            raise UnsupportedError(
                f"{OPERATION}: the array must have two equal items, which rules cannot ensure",
                hint="Leave out the negated uniqueItems.",
            )
        return self.visit(node.node, p)

    def visit_token(self, node: Token, p: int) -> States:
        return frozenset({p})

    def visit_literal(self, node: Leaf, p: int) -> States:
        return frozenset(self.leaves.products(node, p))

    visit_strings = visit_chars = visit_mark = visit_parsed = visit_literal

    def after_suffix(self, node: Sequence, k: int, p: int) -> States:
        """Return the states to which the parts from k on lead from p."""
        key = (id(node), k, p)
        if self.is_solved and key in self.suffix_states:
            return self.suffix_states[key]
        states: States = frozenset({p})
        for part in node.parts[k:]:
            states = self.after_node(part, states)
        if self.is_solved:
            self.number(node)
            self.suffix_states[key] = states
        return states

    def after_node(self, node: Node, states: States) -> States:
        """Return the states to which texts of a node lead from any of the given states."""
        spend_work(1 + len(states), OPERATION)
        return NO_STATES.union(*(self.visit(node, p) for p in states))

    def after_rounds(self, node: Node, low: int, high: int | None, p: int) -> States:
        """Return the states to which `low` to `high` repetitions of a node lead from p.

        The sequence of state sets after 0, 1, 2, ... repetitions is eventually periodic.
        """
        rounds: list[States] = []
        known: dict[States, int] = {}
        states: States = frozenset({p})
        while states not in known:
            known[states] = len(rounds)
            rounds.append(states)
            states = self.after_node(node, states)
        first = known[states]
        last = low + len(rounds)  # Covers every set of the period.
        counts = range(low, last if high is None else min(high, last) + 1)
        return NO_STATES.union(
            *(rounds[k if k < first else first + (k - first) % (len(rounds) - first)] for k in counts)
        )

    def number(self, node: Node) -> int:
        """Return a number that identifies the node."""
        return self._numbers.setdefault(id(node), (len(self._numbers), node))[0]


class _LeafProducts(NodeVisitor[dict[int, Node]]):
    """The intersections of leaves with the Dfa: `visit(leaf, state)` maps final states to nodes."""

    node_classes = (Literal, Strings, Chars, Mark, Parsed)

    def __init__(self, dfa: Dfa, limits: Limits) -> None:
        self.language, self.limits = dfa, limits
        self.dfa, self.limit = dfa.table, limits.dfa_states
        self._known: dict[tuple[int, int], tuple[Node, dict[int, Node]]] = {}

    def products(self, node: Node, p: int) -> dict[int, Node]:
        """Return, for each state that a leaf leads to from p, a node of its texts that do so."""
        key = (id(node), p)
        if key not in self._known:
            self._known[key] = node, self.visit(node, p)
        return self._known[key][1]

    def visit_literal(self, node: Literal | Strings, p: int) -> dict[int, Node]:
        groups: defaultdict[int, list[bytes]] = defaultdict(list)
        for text in list_strings(node):
            try:
                q = self.run(p, text.decode())
            except UnicodeDecodeError:
                raise UnsupportedError(
                    f"{OPERATION} of a grammar with a literal that is not UTF-8", hint="Write whole characters."
                ) from None
            if q >= 0:
                groups[q].append(text)
        return {q: Literal(texts[0]) if len(texts) == 1 else Strings(tuple(texts)) for q, texts in groups.items()}

    visit_strings = visit_literal

    def visit_mark(self, node: Mark, p: int) -> dict[int, Node]:
        """Advance by the text of the mark, which the output has in a vocabulary with and without the special token."""
        q = self.run(p, node.text)
        return {q: node} if q >= 0 else {}

    def visit_parsed(self, node: Parsed, p: int) -> dict[int, Node]:
        out: dict[int, Node] = {}
        for q in range(len(self.language.delta)):
            between = cut_dfa(self.language, p, [q])
            product = None if between.is_empty else _intersect_parsed(node, between, self.limits)
            if product is not None:
                out[q] = product.start
        return out

    def run(self, state: int, text: str) -> int:
        """Return the state after a text, or -1."""
        table = self.dfa
        for char in text:
            if state < 0:
                break
            state = table.rows[state][table.classes[bisect_right(table.bounds, ord(char)) - 1]]
        return state

    def visit_chars(self, node: Chars, p: int) -> dict[int, Node]:
        """Build the product of both automata from (0, p), and restrict it to one final state at a time."""
        table = node.dfa.table
        bounds, classes, pairs = merge_ranges(table, self.dfa)
        order, numbers, rows = [(0, p)], {(0, p): 0}, []
        for a, b in order:  # `order` grows during the loop.
            row = []
            for left, right in pairs:
                target = (table.rows[a][left], self.dfa.rows[b][right])
                if min(target) < 0:
                    row.append(-1)
                    continue
                if target not in numbers:
                    numbers[target] = len(order)
                    order.append(target)
                row.append(numbers[target])
            rows.append(row)
            spend_work(1 + len(pairs), OPERATION)
            if len(order) > self.limit:
                raise _limit_exceeded(self.limit)
        out: dict[int, Node] = {}
        for q in sorted({b for a, b in order if table.accepting[a]}):
            accepting = [table.accepting[a] and b == q for a, b in order]
            dfa = Dfa.from_table(Table(bounds, classes, rows, accepting))
            leaf = self.bound_length(dfa, node.low, node.high)
            if leaf is not None:
                out[q] = leaf
        return out

    def bound_length(self, dfa: Dfa, low: int, high: int | None) -> Node | None:
        """Return a Chars node of the texts of `low` to `high` characters, or None if there are none."""
        shortest, longest = dfa.lengths()
        if dfa.is_empty or (high is not None and max(shortest, low) > high) or (longest is not None and longest < low):
            return None
        if (low or high is not None) and not dfa.extensible():  # A counted Dfa must be extensible, see `nodes`.
            dfa, low, high = dfa.with_length(low, high, max_states=self.limit), 0, None
        return None if dfa.is_empty else Chars(dfa, "utf8", low, high)


class _TripleRules(NodeVisitor[Node]):
    """Generates the rules: `visit(node, p, q)` returns a node of the texts of `node` that lead from p to q, of which
    there must be one.
    """

    node_classes = (*PLAIN_CLASSES, Mark, Parsed, Unique, Member)

    def __init__(self, grammar: Grammar, leaves: LeafTransitions, reachable: ReachableStates, limit: int) -> None:
        self.grammar, self.leaves, self.reachable, self.limit = grammar, leaves, reachable, limit
        self.rules: dict[Hashable, Node] = {}
        self.pending: list[tuple[Hashable, Callable[[], Node]]] = []

    def write(self, is_accepting: Callable[[int], bool]) -> Grammar | None:
        """Return the Grammar of the texts that lead from state 0 to an accepting one, or None if it is empty."""
        start = self.grammar.start
        ends = [q for q in sorted(self.reachable.visit(start, 0)) if is_accepting(q)]
        if not ends:
            return None
        body = make_choice(self.visit(start, 0, q) for q in ends)
        while self.pending:
            name, write_body = self.pending.pop()
            self.rules[name] = write_body()
        return Grammar(body, self.rules)

    def visit_rule(self, node: Rule, p: int, q: int) -> Node:
        return self.reference((node.name, p, q), partial(self.visit, self.grammar.rules[node.name], p, q))

    def visit_sequence(self, node: Sequence, p: int, q: int) -> Node:
        return self.write_suffix(node, 0, p, q)

    def visit_choice(self, node: Choice, p: int, q: int) -> Node:
        return make_choice(self.visit(option, p, q) for option in node.options if q in self.reachable.visit(option, p))

    def visit_unique(self, node: Unique, p: int, q: int) -> Node:
        return Unique(self.visit(node.body, p, q))

    def visit_member(self, node: Member, p: int, q: int) -> Node:
        return Member(self.visit(node.node, p, q))

    def visit_token(self, node: Token, p: int, q: int) -> Node:
        return node

    def visit_literal(self, node: Leaf, p: int, q: int) -> Node:
        return self.leaves.products(node, p)[q]

    visit_strings = visit_chars = visit_mark = visit_parsed = visit_literal

    def reference(self, name: Hashable, write_body: Callable[[], Node]) -> Rule:
        """Return a reference to the rule of this name; if it is new, its body is generated later."""
        if name not in self.rules:
            self.rules[name] = EMPTY
            self.pending.append((name, write_body))
            if len(self.rules) > self.limit:
                raise _limit_exceeded(self.limit)
        return Rule(name)

    def write_suffix(self, node: Sequence, k: int, p: int, q: int) -> Node:
        """Return a node for the parts from k on. A position with a single intermediate state needs no rule."""
        reachable = self.reachable
        out: list[Node] = []
        while k < len(node.parts):
            reached = sorted(reachable.visit(node.parts[k], p))
            middles = [r for r in reached if q in reachable.after_suffix(node, k + 1, r)]
            if len(middles) > 1:
                name = ("from", reachable.number(node), k, p, q)
                branches = self.reference(name, partial(self.write_branches, node, k, p, q, middles))
                return make_sequence((*out, branches))
            out.append(self.visit(node.parts[k], p, middles[0]))
            k, p = k + 1, middles[0]
        return make_sequence(out)

    def write_branches(self, node: Sequence, k: int, p: int, q: int, middles: list[int]) -> Node:
        """Return the choice, over the intermediate states, of part k followed by the remaining parts."""
        first = node.parts[k]
        return make_choice(
            make_sequence((self.visit(first, p, r), self.write_suffix(node, k + 1, r, q))) for r in middles
        )

    def visit_repeat(self, node: Repeat, p: int, q: int) -> Node:
        """Return a node for a repetition.

        If every iteration returns to the same state, it remains a Repeat; else there is a rule for each state and
        remaining count.
        """
        body, low, high = node.node, node.low, node.high
        if p == q and self.reachable.visit(body, p) <= {p}:
            return Repeat(self.visit(body, p, p), low, high) if self.reachable.visit(body, p) else EMPTY
        if high == 1 and low == 0:
            options = [self.visit(body, p, q)] if q in self.reachable.visit(body, p) else []
            return make_choice([*options, EMPTY] if p == q else options)
        return self.reference_rounds(body, low, high, p, q)

    def reference_rounds(self, body: Node, low: int, high: int | None, p: int, q: int) -> Node:
        """Return a reference to the rule of a repetition with these remaining counts."""
        name = ("rounds", self.reachable.number(body), low, high, p, q)
        return self.reference(name, partial(self.write_round, body, low, high, p, q))

    def write_round(self, body: Node, low: int, high: int | None, p: int, q: int) -> Node:
        """Return the body of such a rule: one iteration and the remaining ones, or the end."""
        options: list[Node] = [EMPTY] if p == q and low == 0 else []
        if high != 0:
            remaining = (max(low - 1, 0), None if high is None else high - 1)
            for r in sorted(self.reachable.visit(body, p)):
                if q in self.reachable.after_rounds(body, *remaining, r):
                    following = self.reference_rounds(body, *remaining, r, q)
                    options.append(make_sequence((self.visit(body, p, r), following)))
        return make_choice(options)
