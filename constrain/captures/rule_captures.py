"""The captures of rules: the spans that the rules of a grammar derive in a finished text.

Parts of the rules in which nothing is captured are leaves, each matched by a Matcher of its own from each position
where it may begin; `derivation_search` divides the text among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from ..base.errors import TokenRefused
from ..base.options import Limits
from ..compilation.constraint_compiler import compile_grammar
from ..engine.constraint import Constraint
from ..engine.matcher import Matcher
from ..grammar.captured_grammar import CapturedGrammar, count_captures
from ..grammar.merged_rules import RuleUnion
from ..grammar.nodes import EMPTY, Grammar, Literal, Mark, Node, Rule
from ..grammar.simplification import simplify_grammar
from ..grammar.visitor import fold_node, inner_nodes, named_rules, reached_rules, rebuild_node
from ..vocabulary.vocabulary import Vocabulary
from .derivation_search import find_derivation

__all__ = ["CaptureFinder", "CapturedSpan", "RuleCaptures", "walk_bytes"]


class CapturedSpan(NamedTuple):
    """A capture: its name, and its span in bytes."""

    name: str
    start: int
    end: int


class CaptureFinder(Protocol):
    """Finds the captures within a text of a grammar. counts: how many of each name there may be, 2 for several."""

    counts: dict[str, int]

    def find(self, data: bytes) -> list[CapturedSpan]:
        """Return the captures of a text that the grammar derives, outer before inner ones."""


class RuleCaptures:
    """A CaptureFinder for a CapturedGrammar."""

    def __init__(self, grammar: CapturedGrammar, vocabulary: Vocabulary, limits: Limits) -> None:
        self.captured, self.vocabulary, self.limits = grammar, vocabulary, limits
        self.counts = count_captures(
            grammar.start, grammar.rules, {rule: (name,) for rule, name in grammar.names.items()}
        )
        self.leaves: list[Node] = []
        self.numbers: dict[Node, int] = {}
        self.constraints: dict[int, Constraint | None] = {}
        self.grammar = self.cut_leaves()

    def cut_leaves(self) -> Grammar:
        """Return the rules that lead to captures, with Marks in place of all parts in which nothing is captured."""
        rules, wanted = self.captured.rules, {*self.captured.names, *self.captured.ignored}
        order = reached_rules(self.captured.start, rules)
        size = -1
        while len(wanted) > size:
            size = len(wanted)
            wanted |= {name for name in order if not wanted.isdisjoint(named_rules(rules[name]))}

        def cut(node: Node, parts: list[Node | None]) -> Node | None:
            """Return the node with its leaves cut; None for a part in which nothing is captured."""
            if isinstance(node, Rule):
                return node if node.name in wanted else None
            if all(part is None for part in parts):
                return None
            inner = zip(inner_nodes(node), parts)
            return rebuild_node(node, [self.leaf(old) if new is None else new for old, new in inner])

        def cut_whole(node: Node) -> Node:
            found: Node | None = fold_node(node, cut)
            return self.leaf(node) if found is None else found

        return Grammar(
            cut_whole(self.captured.start), {name: cut_whole(rules[name]) for name in order if name in wanted}
        )

    def leaf(self, node: Node) -> Node:
        """Return the Mark of a leaf; the same one for equal leaves."""
        if node == EMPTY:
            return node
        if node not in self.numbers:
            self.numbers[node] = len(self.leaves)
            self.leaves.append(node)
        return Mark(str(self.numbers[node]))

    def find(self, data: bytes) -> list[CapturedSpan]:
        """Return the captures of a text that the grammar derives, outer before inner ones."""
        derived = find_derivation(self.grammar, lambda mark, p: self.leaf_ends(mark, p, data), len(data))
        ignored = [one for one in derived or () if one.symbol in self.captured.ignored and one.start < one.end]
        after, before = {one.start: one.end for one in ignored}, {one.end: one.start for one in ignored}
        out = []
        for one in derived or ():
            if one.symbol in self.captured.names:
                start = min(after.get(one.start, one.start), one.end)
                end = max(before.get(one.end, one.end), start)
                out.append(CapturedSpan(self.captured.names[one.symbol], start, end))
        return out

    def leaf_ends(self, mark: str, start: int, data: bytes) -> Iterable[int]:
        """Return where the texts of a leaf may end if they begin at a position of a text."""
        number = int(mark)
        node = self.leaves[number]
        if isinstance(node, Literal):
            return (start + len(node.data),) if data.startswith(node.data, start) else ()
        if number not in self.constraints:
            self.constraints[number] = self.compile_leaf(node)
        constraint = self.constraints[number]
        if constraint is None:
            return ()
        return [end for end, matcher in walk_bytes(constraint, data, start) if matcher.is_complete]

    def compile_leaf(self, node: Node) -> Constraint | None:
        """Return the Constraint of a leaf; None if it has no text."""
        own, inner = self.captured.rules, self.captured.inner
        grammar = simplify_grammar(node, {name: own[name] for name in reached_rules(node, own)})
        if grammar is None:
            return None
        return compile_grammar(Grammar(grammar.start, RuleUnion(grammar.rules, inner)), self.vocabulary, self.limits)


def walk_bytes(constraint: Constraint, data: bytes, start: int) -> Iterator[tuple[int, Matcher]]:
    """Yield (position, Matcher after the bytes from `start` to there) while the Matcher accepts them."""
    matcher = constraint.matcher()
    yield start, matcher
    for end in range(start + 1, len(data) + 1):
        try:
            matcher.advance_bytes(data[end - 1 : end])
        except TokenRefused:
            return
        yield end, matcher
