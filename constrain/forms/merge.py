"""Several Grammars in one: their rules side by side under names of their own, made when they are asked for."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence as Many
from dataclasses import replace

from ..grammar.nodes import Choice, Grammar, Member, Node, Object, Repeat, Rule, Sequence, Unique

__all__ = ["Merged", "renamed"]


class Merged(Mapping[Hashable, Node]):
    """The rules of several Grammars: rule `name` of grammar k is `(k, name)`."""

    def __init__(self, grammars: Many[Grammar]) -> None:
        self.grammars = tuple(grammars)
        self._made: dict[Hashable, Node] = {}

    def start(self, k: int) -> Node:
        """The start of grammar k, in terms of these rules."""
        return renamed(self.grammars[k].start, k)

    def __getitem__(self, key: Hashable) -> Node:
        found = self._made.get(key)
        if found is None:
            if not (isinstance(key, tuple) and len(key) == 2 and key[0] in range(len(self.grammars))):
                raise KeyError(key)
            k, name = key
            found = self._made[key] = renamed(self.grammars[k].rules[name], k)
        return found

    def __iter__(self) -> Iterator[Hashable]:
        return ((k, name) for k, grammar in enumerate(self.grammars) for name in grammar.rules)

    def __len__(self) -> int:
        return sum(len(grammar.rules) for grammar in self.grammars)


def renamed(node: Node, k: int) -> Node:
    """The node with `(k, name)` for every rule `name`."""

    def again(part: Node) -> Node:
        return renamed(part, k)

    if isinstance(node, Rule):
        return Rule((k, node.name))
    if isinstance(node, Sequence):
        return Sequence(tuple(map(again, node.parts)))
    if isinstance(node, Choice):
        return Choice(tuple(map(again, node.options)))
    if isinstance(node, (Repeat, Member)):
        return replace(node, node=again(node.node))
    if isinstance(node, Unique):
        return Unique(again(node.body))
    if isinstance(node, Object):
        lay = node.layout
        return replace(
            node,
            properties=tuple(replace(prop, value=again(prop.value)) for prop in node.properties),
            others=tuple(replace(other, value=again(other.value)) for other in node.others),
            layout=type(lay)(again(lay.open), again(lay.close), again(lay.comma), again(lay.colon), again(lay.empty)),
        )
    return node
