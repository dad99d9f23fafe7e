"""Nullability of nodes: which of them derive the empty text, as the least fixpoint over the rules of a Grammar.

The rules that a query depends on start as not nullable and are raised until nothing changes (Aho, Lam, Sethi, Ullman,
*Compilers*, 2nd ed., section 4.4.2); a rule is re-evaluated only when one that it references was raised.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

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
from .visitor import NodeVisitor

__all__ = ["NullableNodes", "is_nullable_node"]


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


Known = Callable[[Hashable], bool | None]


class _Nullability(NodeVisitor["bool | None"]):
    """Whether a node is nullable, given the known rules; None if these do not determine it."""

    def visit_literal(self, node: Literal, known: Known) -> bool | None:
        return not node.data

    def visit_strings(self, node: Strings, known: Known) -> bool | None:
        return b"" in node.options

    def visit_chars(self, node: Chars, known: Known) -> bool | None:
        return node.low <= 0 and len(node.dfa.delta) > 0 and bool(node.dfa.accepting[0])

    def visit_json_string(self, node: JsonString | Object | Member | Token | Mark, known: Known) -> bool | None:
        return False

    visit_object = visit_member = visit_token = visit_mark = visit_number = visit_json_string

    def visit_free(self, node: Free, known: Known) -> bool | None:
        return node.until is None

    def visit_parsed(self, node: Parsed, known: Known) -> bool | None:
        return node.parser.is_nullable

    def visit_unique(self, node: Unique, known: Known) -> bool | None:
        return self.visit(node.body, known)

    def visit_rule(self, node: Rule, known: Known) -> bool | None:
        return known(node.name)

    def visit_repeat(self, node: Repeat, known: Known) -> bool | None:
        return True if node.low == 0 else self.visit(node.node, known)

    def visit_sequence(self, node: Sequence, known: Known) -> bool | None:
        return self.combine(node.parts, known, decisive=False)

    def visit_choice(self, node: Choice, known: Known) -> bool | None:
        return self.combine(node.options, known, decisive=True)

    def combine(self, parts: tuple[Node, ...], known: Known, decisive: bool) -> bool | None:
        """Return `decisive` if any part has this value, None if that is unknown, else the opposite."""
        nullable: bool | None = not decisive
        for part in parts:
            value = self.visit(part, known)
            if value is decisive:
                return decisive
            if value is None:
                nullable = None
        return nullable


_is_nullable = _Nullability().visit


def is_nullable_node(node: Node) -> bool:
    """Return whether the language of a node without references to rules contains the empty text."""
    return bool(_is_nullable(node, lambda name: None))


def _solve_rules(node: Node, grammar: Grammar, known: dict[Hashable, bool]) -> None:
    """Add the rules that `node` reaches to `known`: none nullable at first, then raised until nothing changes."""
    reached: dict[Hashable, Node] = {}
    users: dict[Hashable, list[Hashable]] = {}
    pending = list(_rules_at_left(node))
    while pending:
        name = pending.pop()
        if name not in reached and name not in known:
            reached[name] = grammar.rules[name]
            for other in _rules_at_left(reached[name]):
                users.setdefault(other, []).append(name)
                pending.append(other)
    values = dict.fromkeys(reached, False)
    pending = list(reached)  # initially all rules, then those that reference a rule found to be nullable
    while pending:
        name = pending.pop()
        if not values[name] and _is_nullable(reached[name], lambda n: known.get(n, values.get(n, False))):
            values[name] = True
            pending.extend(users.get(name, ()))
    known.update(values)


class _RulesAtLeft(NodeVisitor[list[Hashable]]):
    """The rules that nullability may depend on; none if a part is not nullable whatever the rules are."""

    def visit_rule(self, node: Rule) -> list[Hashable]:
        return [node.name]

    def visit_repeat(self, node: Repeat) -> list[Hashable]:
        return self.visit(node.node)

    def visit_unique(self, node: Unique) -> list[Hashable]:
        return self.visit(node.body)

    def visit_sequence(self, node: Sequence) -> list[Hashable]:
        if any(_is_nullable(part, lambda name: None) is False for part in node.parts):
            return []
        return [name for part in node.parts for name in self.visit(part)]

    def visit_choice(self, node: Choice) -> list[Hashable]:
        return [name for part in node.options for name in self.visit(part)]

    def generic_visit(self, node: Node, *context: Any) -> list[Hashable]:
        return []


_rules_at_left = _RulesAtLeft().visit
