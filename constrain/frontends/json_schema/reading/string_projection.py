"""What a schema says about strings alone: for `propertyNames` that refers to the schema it stands in.

Keys are strings, so what such a schema says about objects, this `propertyNames` included, never matters to them. Its
nodes are copied without that, and the copy does not lead back.
"""

from __future__ import annotations

from typing import Any

from ..algebra.schema_sets import ANY, NEVER, Lits
from ..strings.string_sets import FIELDS
from .json_values import STRING
from .schema_parser import Node, Reader

__all__ = ["Projection"]

LISTS = ("allOf", "anyOf", "oneOf")
SINGLE = ("ref", "dynamicRef", "not", "if", "then", "else")
PLAIN = frozenset(("type", *FIELDS))


class Projection:
    """Copies of nodes: of a string they say what the nodes say, of anything else more or less than that."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._copies: dict[int, int] = {}

    def lits(self, lits: Lits) -> Lits:
        """The copy of a literal set."""
        if lits in (ANY, NEVER):
            return lits
        return tuple(sorted(self._copy(abs(one)) * (1 if one > 0 else -1) for one in lits))

    def _copy(self, number: int) -> int:
        known = self._copies.get(number)
        if known is None:
            node = self.reader.nodes[number]
            assert node is not None
            copy = self.reader.derived(node, {})
            known = self._copies[number] = copy.number
            copy.facts = self._facts(node)
        return known

    def _facts(self, node: Node) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for field, value in node.facts.items():
            if field in PLAIN:
                out[field] = value
            elif field in LISTS:
                out[field] = tuple(map(self.lits, value))
            elif field in SINGLE:
                out[field] = self.lits(value)
            elif field in ("enum", "const"):
                out[field] = tuple(one for one in value if one[0] == STRING)
        return out
