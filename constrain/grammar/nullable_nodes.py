"""Nullability of nodes: which of them derive the empty text, as the least fixpoint over the rules of a Grammar.

The rules that a query depends on start as not nullable and are raised until nothing changes (Aho, Lam, Sethi, Ullman,
*Compilers*, 2nd ed., section 4.4.2); a rule is re-evaluated only when one that it references was raised.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from .nodes import (
    Chars,
    Choice,
    Free,
    Grammar,
    JsonString,
    Literal,
    Mark,
    Member,
    Node,
    Object,
    Parsed,
    Repeat,
    Rule,
    Sequence,
    Strings,
    Token,
    Unique,
)

__all__ = ["NullableNodes"]


class NullableNodes:
    """Nullability queries for the nodes of one Grammar; results for rules are cached."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self._rules: dict[Hashable, bool] = {}

    def is_nullable(self, node: Node) -> bool:
        """Return whether the language of a node contains the empty text."""
        nullable = _is_nullable(node, self._rules.get)
        if nullable is None:
            _solve_rules(node, self.grammar, self._rules)
            nullable = _is_nullable(node, self._rules.get)
        return bool(nullable)


def _is_nullable(node: Node, known: Callable[[Hashable], bool | None]) -> bool | None:
    """Return whether a node is nullable, given the known rules; None if these do not determine it."""
    if isinstance(node, Literal):
        return not node.data
    if isinstance(node, Strings):
        return b"" in node.options
    if isinstance(node, Chars):
        return node.low <= 0 and len(node.dfa.delta) > 0 and bool(node.dfa.accepting[0])
    if isinstance(node, (JsonString, Object, Member, Token, Mark)):
        return False
    if isinstance(node, Free):
        return node.until is None
    if isinstance(node, Parsed):
        return node.parser.is_nullable
    if isinstance(node, Unique):
        return _is_nullable(node.body, known)
    if isinstance(node, Rule):
        return known(node.name)
    if isinstance(node, Repeat):
        return True if node.low == 0 else _is_nullable(node.node, known)
    parts = node.parts if isinstance(node, Sequence) else node.options
    decisive = isinstance(node, Choice)
    nullable: bool | None = not decisive
    for part in parts:
        one = _is_nullable(part, known)
        if one is decisive:
            return decisive
        if one is None:
            nullable = None
    return nullable


def _solve_rules(node: Node, grammar: Grammar, known: dict[Hashable, bool]) -> None:
    """Add the rules that `node` reaches to `known`: none nullable at first, then raised until nothing changes."""
    reached: dict[Hashable, Node] = {}
    users: dict[Hashable, list[Hashable]] = {}
    todo = list(_rules_at_left(node))
    while todo:
        name = todo.pop()
        if name not in reached and name not in known:
            reached[name] = grammar.rules[name]
            for other in _rules_at_left(reached[name]):
                users.setdefault(other, []).append(name)
                todo.append(other)
    values = dict.fromkeys(reached, False)
    todo = list(reached)  # initially all rules, then those that reference a rule found to be nullable
    while todo:
        name = todo.pop()
        if not values[name] and _is_nullable(reached[name], lambda n: known.get(n, values.get(n, False))):
            values[name] = True
            todo.extend(users.get(name, ()))
    known.update(values)


def _rules_at_left(node: Node) -> list[Hashable]:
    """Return the rules that nullability may depend on; none if a part is not nullable whatever the rules are."""
    if isinstance(node, Rule):
        return [node.name]
    if isinstance(node, (Repeat, Unique)):
        return _rules_at_left(node.node if isinstance(node, Repeat) else node.body)
    if isinstance(node, Sequence):
        if any(_is_nullable(part, lambda name: None) is False for part in node.parts):
            return []
        return [name for part in node.parts for name in _rules_at_left(part)]
    if isinstance(node, Choice):
        return [name for part in node.options for name in _rules_at_left(part)]
    return []
