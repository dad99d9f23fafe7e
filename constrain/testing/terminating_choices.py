"""How a recursive Grammar is brought to an end: for each Choice an option whose text is known to end.

An option is good if it has a text with few brackets within brackets: it is asked for 0, 1, 2, ... levels, so that no
rule is made that such a text does not need (a Grammar that indents has no end of rules). A rule in last place opens no
level: chains of such rules are how members are counted. The first proof that is found for a Choice is kept; proofs
rest only on earlier ones, so whoever follows them comes to an end.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from ..base.errors import LimitError
from ..grammar.nodes import Choice, Member, NameClass, Node, Object, Property, Repeat, Rule, Sequence, Unique

__all__ = ["TerminatingChoices", "simplest_first"]

HIGHEST = 100
"""Levels that a text may need at least: Python's own stack holds a walk through them."""
CHAIN = 25
"""Rules in last place that are followed, one by one, before it is believed that their chain ends, as chains do."""


class TerminatingChoices:
    """Which way ends, for the nodes of one Grammar, found when it is asked for."""

    def __init__(self, rules: Mapping[Hashable, Node]) -> None:
        self.rules = rules
        self._picks: dict[int, tuple[Choice, int]] = {}
        self._known: dict[Hashable, int] = {}
        self._beyond: dict[Hashable, int] = {}
        self._open: set[Hashable] = set()

    def pick(self, node: Choice) -> int:
        """The index of an option by which the text ends."""
        if id(node) not in self._picks:
            self.height(node)
        return self._picks[id(node)][1]

    def height(self, node: Node) -> int:
        """Fewest levels of a text of the node. LimitError beyond HIGHEST."""
        for height in range(HIGHEST):
            if self.within(node, height):
                return height
        raise LimitError(f"a text needs more than {HIGHEST} levels of nesting", hint="Draw from a part of the schema.")

    def within(self, node: Node, height: int, chain: int | None = 0) -> bool:
        """Whether the node is known to have a text with so many levels.

        chain: how many rules in last place have led here, one after the other; None if this is not the last place.
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
                self._picks.setdefault(id(node), (node, index))  # Keeps the node, and so its id.
                return True
        return False

    def _rule(self, name: Hashable, height: int, chain: int) -> bool:
        """Whether a rule has such a text; a rule that is being asked about rests on nothing yet."""
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
    """The indices of the options: those without any rule before the others, else in their order."""
    return sorted(range(len(node.options)), key=lambda index: _has_rule(node.options[index]))


def _has_rule(node: Node) -> bool:
    """Whether a text of the node passes through a rule, or may: cheaply, no rule is looked into."""
    if isinstance(node, Rule):
        return True
    if isinstance(node, Sequence):
        return any(map(_has_rule, node.parts))
    if isinstance(node, Choice):
        return any(map(_has_rule, node.options))
    if isinstance(node, (Unique, Repeat, Member)):
        return _has_rule(node.body if isinstance(node, Unique) else node.node)
    return isinstance(node, Object)
