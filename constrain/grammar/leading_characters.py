"""The first characters of the texts of a Grammar: a superset of them, computed without expanding the Grammar."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..automata.dfa import LAST, Dfa
from .nodes import Chars, Grammar, JsonString, Literal, Node, Object, Rule, Sequence, Strings
from .nullable_nodes import NullableNodes
from .visitor import NodeVisitor, inner_nodes, list_strings

__all__ = ["find_first_characters"]

ANY = Dfa.from_ranges([(0, LAST - 1)])


def find_first_characters(grammar: Grammar) -> Dfa:
    """Return a Dfa of one-character texts that includes the first character of every text of the Grammar.

    It is any character if the language contains the empty text or the set is unknown.
    """
    nullable = NullableNodes(grammar)
    if nullable.is_nullable(grammar.start):
        return ANY
    collector = _FirstCharacters(grammar, nullable)
    while collector.pending:
        first = collector.visit(collector.pending.pop())
        if first is ANY:
            return ANY
        if first is not None:
            collector.charsets.append(first)
    return Dfa.union_of(collector.charsets)


class _FirstCharacters(NodeVisitor["Dfa | None"]):
    """Returns the first characters of a leaf; of another node None, and adds its first parts to `pending`."""

    def __init__(self, grammar: Grammar, nullable: NullableNodes) -> None:
        self.rules, self.nullable = grammar.rules, nullable
        self.pending: list[Node] = [grammar.start]
        self.charsets: list[Dfa] = []
        self.reached: set[Hashable] = set()

    def visit_rule(self, node: Rule) -> None:
        if node.name not in self.reached:
            self.reached.add(node.name)
            self.pending.append(self.rules[node.name])

    def visit_sequence(self, node: Sequence) -> None:
        for part in node.parts:
            self.pending.append(part)
            if not self.nullable.is_nullable(part):
                break

    def visit_literal(self, node: Literal | Strings) -> Dfa:
        heads = [text.decode("utf-8", "replace")[:1] for text in list_strings(node) if text]
        return ANY if "\ufffd" in heads else Dfa.from_strings(heads)

    visit_strings = visit_literal

    def visit_object(self, node: Object) -> Dfa:
        return Dfa.from_strings([node.layout.opening.decode()])

    def visit_json_string(self, node: JsonString) -> Dfa:
        return Dfa.from_strings(['"'])

    def visit_chars(self, node: Chars) -> Dfa:
        if node.encoding != "utf8":
            return ANY
        table = node.dfa.table
        row = [target if target < 0 else 1 for target in table.rows[0]]
        return Dfa.from_table(table._replace(rows=[row, [-1] * len(row)], accepting=[False, True]))

    def generic_visit(self, node: Node, *context: Any) -> Dfa | None:
        parts = inner_nodes(node)
        self.pending.extend(parts)
        return None if parts else ANY
