"""The first characters of the texts of a Grammar: a superset of them, computed without expanding the Grammar."""

from __future__ import annotations

from collections.abc import Hashable

from ..automata.dfa import LAST, Dfa
from .nodes import Chars, Grammar, JsonString, Literal, Node, Object, Rule, Sequence, Strings
from .nullable_nodes import NullableNodes
from .visitor import inner_nodes

__all__ = ["find_first_characters"]

ANY = Dfa.from_ranges([(0, LAST - 1)])


def find_first_characters(grammar: Grammar) -> Dfa:
    """Return a Dfa of one-character texts that includes the first character of every text of the Grammar.

    It is any character if the language contains the empty text or the set is unknown.
    """
    nullable = NullableNodes(grammar)
    if nullable.is_nullable(grammar.start):
        return ANY
    found: list[Dfa] = []
    seen: set[Hashable] = set()
    todo: list[Node] = [grammar.start]
    while todo:
        node = todo.pop()
        if isinstance(node, Rule):
            if node.name not in seen:
                seen.add(node.name)
                todo.append(grammar.rules[node.name])
        elif isinstance(node, Sequence):
            for part in node.parts:
                todo.append(part)
                if not nullable.is_nullable(part):
                    break
        elif isinstance(node, (Literal, Strings)):
            options = node.options if isinstance(node, Strings) else (node.data,)
            heads = [option.decode("utf-8", "replace")[:1] for option in options if option]
            found.append(ANY if "\ufffd" in heads else Dfa.from_strings(heads))
        elif isinstance(node, (Object, JsonString)):
            found.append(Dfa.from_strings(["{" if isinstance(node, Object) else '"']))
        elif isinstance(node, Chars) and node.encoding == "utf8":
            table = node.dfa.table
            row = [target if target < 0 else 1 for target in table.rows[0]]
            found.append(Dfa.from_table(table._replace(rows=[row, [-1] * len(row)], accepting=[False, True])))
        elif inner_nodes(node):
            todo.extend(inner_nodes(node))
        else:
            return ANY
    return Dfa.union_of(found)
