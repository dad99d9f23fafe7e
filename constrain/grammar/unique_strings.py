"""Whether the Members of every Unique of a Grammar are infinitely many JSON strings.

Such Members never run out: finitely many have been written at any time, each value has finitely many spellings (RFC
8259, section 7), and so a further value is always left, by every sequence of rules that reaches the end. Of other
values this does not follow: an integer has infinitely many spellings when exponents are permitted.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from ..automata.dfa import Dfa
from ..base.errors import UnsupportedError
from .leading_characters import find_first_characters
from .nodes import Chars, Choice, Grammar, JsonString, Member, Node, Repeat, Rule, Sequence
from .visitor import NodeVisitor, walk_nodes

__all__ = ["check_members"]

QUOTE = Dfa.from_strings(['"'])


def check_members(grammar: Grammar, operation: str) -> None:
    """Raise UnsupportedError if the Members of a Unique are not infinitely many JSON strings."""
    infinite = _InfiniteNodes(grammar.rules)
    nodes = walk_nodes(grammar.start, *grammar.rules.values())
    for node in {node for node in nodes if isinstance(node, Member)}:
        if find_first_characters(Grammar(node.node, grammar.rules)) != QUOTE or not infinite.visit(node.node):
            raise UnsupportedError(
                f"{operation}: undeclared keys or unique items must differ, and rules cannot ensure that some are left",
                hint='Say "additionalProperties": false, or leave out uniqueItems.',
            )


class _InfiniteNodes(NodeVisitor[bool]):
    """Whether a node without unproductive parts has infinitely many texts; False where a recursive rule decides it."""

    def __init__(self, rules: Mapping[Hashable, Node]) -> None:
        self.rules = rules
        self.known: dict[Hashable, bool] = {}

    def visit_chars(self, node: Chars | JsonString) -> bool:
        return node.high is None and node.dfa.lengths()[1] is None

    visit_json_string = visit_chars

    def visit_repeat(self, node: Repeat) -> bool:
        return node.high is None or self.visit(node.node)

    def visit_sequence(self, node: Sequence) -> bool:
        return any(map(self.visit, node.parts))

    def visit_choice(self, node: Choice) -> bool:
        return any(map(self.visit, node.options))

    def visit_rule(self, node: Rule) -> bool:
        if node.name not in self.known:
            self.known[node.name] = False  # while it is computed
            self.known[node.name] = self.visit(self.rules[node.name])
        return self.known[node.name]

    def generic_visit(self, node: Node, *context: Any) -> bool:
        return False
