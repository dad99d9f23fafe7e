"""A lazy union of the rules of several Grammars, with the names made distinct."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence as Many
from dataclasses import replace

from .nodes import Choice, Grammar, Member, Node, Object, Repeat, Rule, Sequence, Unique
from .visitor import inner_nodes

__all__ = ["MergedRules", "rename_rules"]


DEEP = 12
"""Nesting depth from which the start of a grammar becomes a rule, since functions on nodes are recursive."""


class MergedRules(Mapping[Hashable, Node]):
    """The rules of several Grammars, as a mapping whose values are computed on first use.

    Rule `name` of grammar k is `(k, name)`; `(k,)` is the start of grammar k if it is deeply nested.
    """

    def __init__(self, grammars: Many[Grammar]) -> None:
        self.grammars = tuple(grammars)
        self._made: dict[Hashable, Node] = {}

    def start(self, k: int) -> Node:
        """Return the start of grammar k in terms of these rules."""
        return Rule((k,)) if self._is_deep(k) else rename_rules(self.grammars[k].start, k)

    def _is_deep(self, k: int) -> bool:
        level: list[Node] = [self.grammars[k].start]
        for _ in range(DEEP):
            level = [part for node in level for part in inner_nodes(node)]
        return bool(level)

    def __getitem__(self, key: Hashable) -> Node:
        found = self._made.get(key)
        if found is None:
            if not (isinstance(key, tuple) and len(key) in (1, 2) and key[0] in range(len(self.grammars))):
                raise KeyError(key)
            grammar = self.grammars[key[0]]
            node = grammar.start if len(key) == 1 else grammar.rules[key[1]]
            found = self._made[key] = rename_rules(node, key[0])
        return found

    def __iter__(self) -> Iterator[Hashable]:
        for k, grammar in enumerate(self.grammars):
            if self._is_deep(k):
                yield (k,)
            yield from ((k, name) for name in grammar.rules)

    def __len__(self) -> int:
        return sum(len(grammar.rules) + self._is_deep(k) for k, grammar in enumerate(self.grammars))


def rename_rules(node: Node, k: int) -> Node:
    """Return the node with every reference to a rule `name` replaced by `(k, name)`."""

    def again(part: Node) -> Node:
        return rename_rules(part, k)

    if isinstance(node, Rule):
        return Rule((k, node.name))
    if isinstance(node, Sequence):
        return Sequence(tuple(map(again, node.parts)))
    if isinstance(node, Choice):
        return Choice(tuple(map(again, node.options)))
    if isinstance(node, Repeat):
        return replace(node, node=again(node.node))
    if isinstance(node, Member):
        return Member(again(node.node), None if node.again is None else Rule((k, node.again.name)))
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
