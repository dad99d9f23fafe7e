"""References between definitions of a grammar.

They are read from the source, because lark drops unused definitions while it loads a grammar.
"""

from __future__ import annotations

import re

from ...frontends.lark.source_map import SourceMap
from ...grammar.nodes import Node
from ...grammar.visitor import named_rules

__all__ = ["RuleReferences", "read_gbnf_references", "read_lark_references"]


class RuleReferences:
    """The references between definitions.

    names: all definitions, with their position; imported ones are located at the import. uses: the names in each
    definition. roots: names that always count as used (%ignore, %declare).
    """

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self.uses: dict[str, set[str]] = {}
        self.roots: set[str] = set()
        self.imported: dict[str, str] = {}

    def unused(self, start: str) -> list[str]:
        """Return the definitions that are not reachable from the start, in the order of the text."""
        seen, todo = set[str](), [start, *self.roots]
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += self.uses.get(name, ())
        return sorted((name for name in self.places if name not in seen), key=self.places.__getitem__)


def read_lark_references(source_map: SourceMap) -> RuleReferences:
    """Return the references of a Lark grammar."""
    out = RuleReferences()
    for name, (grammar, position) in source_map.imported_names.items():
        out.places[name], out.imported[name] = position, grammar
    for name, positions in source_map.definitions.items():
        out.places.setdefault(name, positions[0])
    heads = {position for positions in source_map.definitions.values() for position in positions}
    inside: set[str] = out.roots
    skipping = False
    for token in source_map.tokens:
        if token.kind == "directive":
            inside, skipping = out.roots, token.text in ("%import", "%declare", "%extend", "%override")
        elif token.kind == "name" and token.position in heads:
            inside, skipping = out.uses.setdefault(token.text, set()), False
        elif token.kind == "name" and not skipping:
            inside.add(token.text)
    return out


def read_gbnf_references(text: str, rules: dict[str, Node]) -> RuleReferences:
    """Return the references of a GBNF grammar."""
    out = RuleReferences()
    for name, body in rules.items():
        match = re.search(rf"^[ \t]*({re.escape(name)})[ \t]*::=", text, re.M)
        out.places[name] = match.start(1) if match else 0
        out.uses[name] = set(map(str, named_rules(body)))
    return out
