"""Terminate documents of a recursive Grammar: find, for each Choice, an option with a text of bounded nesting.

An option is good if it has a text with few levels of nesting: levels 0, 1, 2, ... are tried in turn, so that no rule is
created that such a text does not need (a Grammar with indentation has infinitely many rules). A rule in last position
opens no level: members are counted by chains of such rules. The first proof found for a Choice is stored; proofs depend
only on earlier ones, so following them terminates.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from ..base.errors import LimitError
from ..grammar.nodes import Choice, Member, NameClass, Node, Object, Property, Repeat, Rule, Sequence, Unique
from ..grammar.visitor import NodeVisitor

__all__ = ["TerminatingChoices", "simplest_first"]

HIGHEST = 100
"""Maximum number of levels that a text may need: Python's own stack suffices to walk through them."""
CHAIN = 25
"""Number of consecutive rules in last position that are followed before their chain is assumed to end."""


class TerminatingChoices(NodeVisitor[bool]):
    """The terminating options of the nodes of one Grammar, computed on demand."""

    def __init__(self, rules: Mapping[Hashable, Node]) -> None:
        self.rules = rules
        self._picks: dict[int, tuple[Choice, int]] = {}
        self._known: dict[Hashable, int] = {}
        self._beyond: dict[Hashable, int] = {}
        self._open: set[Hashable] = set()

    def pick(self, node: Choice) -> int:
        """Return the index of an option with which the text terminates."""
        if id(node) not in self._picks:
            self.height(node)
        return self._picks[id(node)][1]

    def height(self, node: Node) -> int:
        """Return the fewest levels of a text of the node. Raise LimitError beyond HIGHEST."""
        for height in range(HIGHEST):
            if self.within(node, height):
                return height
        raise LimitError(f"a text needs more than {HIGHEST} levels of nesting", hint="Draw from a part of the schema.")

    def within(self, node: Node, height: int, chain: int | None = 0) -> bool:
        """Return whether the node is known to have a text with at most `height` levels.

        chain: number of consecutive rules in last position that lead here; None if this is not the last position.
        """
        return self.visit(node, height, chain)

    def visit_rule(self, node: Rule, height: int, chain: int | None) -> bool:
        if chain is None:
            return height > 0 and self._rule(node.name, height - 1, 0)
        return self._rule(node.name, height, chain + 1)

    def visit_sequence(self, node: Sequence, height: int, chain: int | None) -> bool:
        last = len(node.parts) - 1
        for k, part in enumerate(node.parts):  # Loops instead of `all` here and below save calls: levels are many.
            if not self.methods[type(part)](self, part, height, chain if k == last else None):
                return False
            if isinstance(part, Member) and part.again is not None and self.visit(part.again, height, chain):
                return True  # The member occurred before, and `again` follows in place of the other parts.
        return True

    def visit_choice(self, node: Choice, height: int, chain: int | None) -> bool:
        for index in simplest_first(node):
            option = node.options[index]
            if self.methods[type(option)](self, option, height, chain):
                self._picks.setdefault(id(node), (node, index))  # Keeps the node alive, and so its id valid.
                return True
        return False

    def visit_repeat(self, node: Repeat, height: int, chain: int | None) -> bool:
        return node.low == 0 or self.visit(node.node, height, None)

    def visit_unique(self, node: Unique, height: int, chain: int | None) -> bool:
        return self.visit(node.body, height, chain)

    def visit_member(self, node: Member, height: int, chain: int | None) -> bool:
        return self.visit(node.node, height, None)

    def visit_object(self, node: Object, height: int, chain: int | None) -> bool:
        items: list[Property | NameClass] = [*node.properties, *node.others]
        required = [item for item in items if item.required]
        for item in required:
            if not self.methods[type(item.value)](self, item.value, height, None):
                return False
        missing = node.low - len(required)
        for item in items:
            if missing > 0 and (item not in required or isinstance(item, NameClass)):
                if self.visit(item.value, height, None):
                    missing -= item.names.count(missing + 1) if isinstance(item, NameClass) else 1
        return missing <= 0

    def generic_visit(self, node: Node, *context: Any) -> bool:
        return True

    def _rule(self, name: Hashable, height: int, chain: int) -> bool:
        """Return whether a rule has such a text.

        A rule whose own evaluation is in progress does not count as proved.
        """
        if name in self._known:
            return self._known[name] <= height
        if name in self._open or height <= self._beyond.get(name, -1):
            return False
        if chain > CHAIN:
            return True
        self._open.add(name)
        body = self.rules[name]
        is_within: bool = self.methods[type(body)](self, body, height, chain)
        self._open.discard(name)
        (self._known if is_within else self._beyond)[name] = height
        return is_within


def simplest_first(node: Choice) -> list[int]:
    """Return the indices of the options: those without rules before the others, else in their order."""
    return sorted(range(len(node.options)), key=lambda index: _has_rule(node.options[index]))


class _RuleSearch(NodeVisitor[bool]):
    """Whether a text of a node passes, or may pass, through a rule; no rule is expanded."""

    def visit_rule(self, node: Rule | Object) -> bool:
        return True

    visit_object = visit_rule

    def visit_sequence(self, node: Sequence) -> bool:
        return any(map(self.visit, node.parts))

    def visit_choice(self, node: Choice) -> bool:
        return any(map(self.visit, node.options))

    def visit_repeat(self, node: Repeat | Member) -> bool:
        return self.visit(node.node)

    visit_member = visit_repeat

    def visit_unique(self, node: Unique) -> bool:
        return self.visit(node.body)

    def generic_visit(self, node: Node, *context: Any) -> bool:
        return False


_has_rule = _RuleSearch().visit
