"""Simplification: from the rules of a grammar source to a Grammar without unproductive rules, with few and large
leaves.

Literals at the edges of a regular part stay outside its leaf, so that `"\\"" char* "\\""` shares the leaf of `char*`
with other rules. Parts that only spell strings become Literal or Strings, which need no vocabulary rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from ..automata.dfa import Dfa
from ..base.work import spend_work
from .left_linear import unroll_recursion
from .nodes import EMPTY, Chars, Choice, Grammar, Literal, Node, Repeat, Rule, Sequence, Strings
from .productive import remove_dead_ends
from .regular_parts import RegularParts
from .smart_constructors import flatten_choice, flatten_sequence, make_choice, make_sequence
from .visitor import NodeVisitor, inner_nodes, list_strings, reached_rules, rebuild_node

__all__ = ["simplify_grammar"]


def simplify_grammar(start: Node, rules: Mapping[Hashable, Node]) -> Grammar | None:
    """Return a simplified Grammar of the same language, or None if it is empty.

    References to rules that are not in `rules` are left unchanged.
    """
    live = remove_dead_ends(start, rules)
    if live is None:
        return None
    live_start, live_rules = live
    bodies = {name: unroll_recursion(name, body) for name, body in live_rules.items()}
    simplifier = _RuleSimplifier()
    for name in reached_rules(live_start, bodies):
        simplifier.add(name, bodies[name])
    body = simplifier.visit(live_start)
    simplified = simplifier.rules
    return Grammar(body, {name: simplified[name] for name in reached_rules(body, simplified)})


RULE_WORK = 40
"""Units of work of a rule, besides those of its automata and strings (`constrain.base.work`)."""
MOST_INLINED_BYTES = 1 << 10
"""Size in bytes of strings up to which a rule is inlined where it is referenced; a bound, since inlining rules that
reference each other may double the size each time.
"""


def _count_bytes(node: Node) -> int:
    """Return the number of bytes of the strings of a leaf."""
    return sum(map(len, list_strings(node))) if isinstance(node, (Literal, Strings)) else 0


class _RuleSimplifier(NodeVisitor[Node]):
    """Simplifies rules; each must be added after those it references."""

    def __init__(self) -> None:
        self.regular = RegularParts()
        self.rules: dict[Hashable, Node] = {}

    def add(self, name: Hashable, body: Node) -> None:
        """Simplify a rule."""
        spend_work(RULE_WORK, "the rules of a grammar")
        self.regular.add(name, body)
        self.rules[name] = simplified = self.visit(body)
        spend_work(1 + _count_bytes(simplified) // 16, "the strings of a grammar")

    def visit_rule(self, node: Rule) -> Node:
        body = self.rules.get(node.name)
        return (
            body if isinstance(body, (Literal, Strings, Chars)) and _count_bytes(body) <= MOST_INLINED_BYTES else node
        )

    def visit_sequence(self, node: Sequence) -> Node:
        """Simplify a sequence: adjacent regular parts become one leaf, from the first character class to the last."""
        parts = flatten_sequence(node)
        if not any(map(self.regular.has_classes, parts)):
            return make_sequence(map(self.visit, parts))
        out: list[Node] = []
        run: list[Node] = []
        for part in parts:
            if self.regular.dfa(part) is not None:
                run.append(part)
            else:
                out += [*self.simplify_run(run), self.visit(part)]
                run = []
        return make_sequence([*out, *self.simplify_run(run)])

    def visit_choice(self, node: Choice) -> Node:
        return self.to_leaf(node) or self.merge_strings(node)

    def visit_repeat(self, node: Repeat) -> Node:
        return self.to_leaf(node) or self.count_characters(node)

    def generic_visit(self, node: Node, *context: Any) -> Node:
        return rebuild_node(node, list(map(self.visit, inner_nodes(node))))

    def to_leaf(self, node: Node) -> Node | None:
        """Return a single leaf for a regular node that is more than strings, or None."""
        dfa = self.regular.dfa(node) if self.regular.has_classes(node) else None
        return None if dfa is None else make_leaf(dfa)

    def simplify_run(self, parts: list[Node]) -> list[Node]:
        """Simplify consecutive regular parts."""
        inside = [k for k, part in enumerate(parts) if self.regular.has_classes(part)]
        if inside:
            first, last = inside[0], inside[-1] + 1
            dfa = self.regular.concatenate([self.regular.dfa(part) for part in parts[first:last]])
            if dfa is not None and last - first > 1:
                return [*map(self.visit, parts[:first]), make_leaf(dfa), *map(self.visit, parts[last:])]
        return [self.visit(part) for part in parts]

    def merge_strings(self, node: Choice) -> Node:
        """Simplify a choice: its literals become one Strings node."""
        options = list(map(self.visit, flatten_choice(node)))
        texts = {text for option in options if isinstance(option, (Literal, Strings)) for text in list_strings(option)}
        others: list[Node] = [option for option in options if not isinstance(option, (Literal, Strings))]
        if len(texts) == 1:
            others.append(Literal(next(iter(texts))))
        elif texts:
            others.append(Strings(tuple(sorted(texts))))
        return make_choice(others)

    def count_characters(self, node: Repeat) -> Node:
        """Simplify a repetition; of single characters it becomes one leaf."""
        dfa = self.regular.dfa(node.node) if self.regular.has_classes(node) else None
        if dfa is not None and dfa.lengths() == (1, 1):  # A count of characters is an attribute of the leaf.
            return Chars(dfa.star(), "utf8", node.low, node.high)
        body = self.visit(node.node)
        return EMPTY if body == EMPTY else Repeat(body, node.low, node.high)


def make_leaf(dfa: Dfa) -> Node:
    """Return the leaf of a Dfa; a Literal if it has a single text."""
    if dfa.count(2) == 1:
        return Literal(dfa.shortest().encode())
    return Chars(dfa)
