"""A lazy union of the rules of several Grammars, with the names made distinct."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence as Many
from dataclasses import replace

from .nodes import Choice, Grammar, Node, Object, Rule, Sequence
from .visitor import NodeRebuilder, fold_node, inner_nodes

__all__ = ["MergedRules", "RuleUnion", "rename_rules"]

MOST_DEPTH = 12
"""Nesting depth from which the start of a grammar becomes a rule, so that repeated merging does not add up depths."""


class MergedRules(Mapping[Hashable, Node]):
    """The rules of several Grammars, as a mapping whose values are computed on first use.

    Rule `name` of grammar k is `(k, name)`; `(k,)` is the start of grammar k if it is deeply nested.
    """

    def __init__(self, grammars: Many[Grammar]) -> None:
        self.grammars = tuple(grammars)
        self._renamed: dict[Hashable, Node] = {}

    def start(self, k: int) -> Node:
        """Return the start of grammar k in terms of these rules."""
        return Rule((k,)) if self._is_deep(k) else rename_rules(self.grammars[k].start, k)

    def _is_deep(self, k: int) -> bool:
        level: list[Node] = [self.grammars[k].start]
        for _ in range(MOST_DEPTH):
            level = [part for node in level for part in inner_nodes(node)]
        return bool(level)

    def __getitem__(self, key: Hashable) -> Node:
        body = self._renamed.get(key)
        if body is None:
            if not (isinstance(key, tuple) and len(key) in (1, 2) and key[0] in range(len(self.grammars))):
                raise KeyError(key)
            grammar = self.grammars[key[0]]
            node = grammar.start if len(key) == 1 else grammar.rules[key[1]]
            body = self._renamed[key] = rename_rules(node, key[0])
        return body

    def __iter__(self) -> Iterator[Hashable]:
        for k, grammar in enumerate(self.grammars):
            if self._is_deep(k):
                yield (k,)
            yield from ((k, name) for name in grammar.rules)

    def __len__(self) -> int:
        return sum(len(grammar.rules) + self._is_deep(k) for k, grammar in enumerate(self.grammars))


class RuleUnion(Mapping[Hashable, Node]):
    """The union of two rule mappings with disjoint keys."""

    def __init__(self, first: Mapping[Hashable, Node], second: Mapping[Hashable, Node]) -> None:
        self.first, self.second = first, second

    def __getitem__(self, name: Hashable) -> Node:
        return self.first[name] if name in self.first else self.second[name]

    def __iter__(self) -> Iterator[Hashable]:
        yield from self.first
        yield from self.second

    def __len__(self) -> int:
        return len(self.first) + len(self.second)


def rename_rules(node: Node, k: int) -> Node:
    """Return the node with every reference to a rule `name` replaced by `(k, name)`."""
    return fold_node(node, _RuleRenamer(k).visit)


class _RuleRenamer(NodeRebuilder):
    """A fold that renames references to rules; it keeps the form of sequences and choices."""

    def __init__(self, k: int) -> None:
        self.k = k

    def visit_rule(self, node: Rule, parts: list[Node]) -> Node:
        return Rule((self.k, node.name))

    def visit_sequence(self, node: Sequence, parts: list[Node]) -> Node:
        return Sequence(tuple(parts))

    def visit_choice(self, node: Choice, parts: list[Node]) -> Node:
        return Choice(tuple(parts))

    def visit_object(self, node: Object, parts: list[Node]) -> Node:
        def rename(part: Node) -> Node:
            return rename_rules(part, self.k)

        return replace(
            node,
            properties=tuple(prop._replace(value=rename(prop.value)) for prop in node.properties),
            others=tuple(other._replace(value=rename(other.value)) for other in node.others),
            layout=node.layout.map(rename),
        )
