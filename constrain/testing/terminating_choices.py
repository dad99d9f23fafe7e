"""Terminate documents of a recursive Grammar: find, for each Choice, an option with a text of bounded nesting.

An option is good if it has a text with few levels of nesting: levels 0, 1, 2, ... are tried in turn, so that no rule is
created that such a text does not need (a Grammar with indentation has infinitely many rules). A rule in last position
opens no level: members are counted by chains of such rules. The first proof found for a Choice is stored; proofs depend
only on earlier ones, so following them terminates.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from ..base.errors import LimitError
from ..grammar.nodes import Choice, Member, NameClass, Node, Object, Property, Repeat, Rule, Sequence, Unique

__all__ = ["TerminatingChoices", "simplest_first"]

HIGHEST = 100
"""Maximum number of levels that a text may need: Python's own stack suffices to walk through them."""
CHAIN = 25
"""Number of consecutive rules in last position that are followed before their chain is assumed to end."""


class TerminatingChoices:
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
        if isinstance(node, Rule):
            if chain is None:
                return height > 0 and self._rule(node.name, height - 1, 0)
            return self._rule(node.name, height, chain + 1)
        if isinstance(node, Sequence):
            return all(self.within(part, height, None) for part in node.parts[:-1]) and all(
                self.within(part, height, chain) for part in node.parts[-1:]
            )
        if isinstance(node, Choice):
            return self._choice(node, height, chain)
        if isinstance(node, Repeat):
            return node.low == 0 or self.within(node.node, height, None)
        if isinstance(node, Unique):
            return self.within(node.body, height, chain)
        if isinstance(node, Member):
            return self.within(node.node, height, None)
        return self._object(node, height) if isinstance(node, Object) else True

    def _choice(self, node: Choice, height: int, chain: int | None) -> bool:
        for index in simplest_first(node):
            if self.within(node.options[index], height, chain):
                self._picks.setdefault(id(node), (node, index))  # Keeps the node alive, and so its id valid.
                return True
        return False

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
        found = self.within(self.rules[name], height, chain)
        self._open.discard(name)
        (self._known if found else self._beyond)[name] = height
        return found

    def _object(self, node: Object, height: int) -> bool:
        items: list[Property | NameClass] = [*node.properties, *node.others]
        must = [item for item in items if item.required]
        if not all(self.within(item.value, height, None) for item in must):
            return False
        missing = node.low - len(must)
        for item in items:
            if missing > 0 and (item not in must or isinstance(item, NameClass)):
                if self.within(item.value, height, None):
                    missing -= item.names.count(missing + 1) if isinstance(item, NameClass) else 1
        return missing <= 0


def simplest_first(node: Choice) -> list[int]:
    """Return the indices of the options: those without rules before the others, else in their order."""
    return sorted(range(len(node.options)), key=lambda index: _has_rule(node.options[index]))


def _has_rule(node: Node) -> bool:
    """Return whether a text of the node passes, or may pass, through a rule; no rule is expanded."""
    if isinstance(node, Rule):
        return True
    if isinstance(node, Sequence):
        return any(map(_has_rule, node.parts))
    if isinstance(node, Choice):
        return any(map(_has_rule, node.options))
    if isinstance(node, (Unique, Repeat, Member)):
        return _has_rule(node.body if isinstance(node, Unique) else node.node)
    return isinstance(node, Object)
