"""What a schema asserts about strings alone, for `propertyNames` that refers to a schema that contains it.

Keys are strings, so the assertions of such a schema about objects, this `propertyNames` included, never apply to them.
Its nodes are copied without these assertions, so the copy is not recursive.
"""

from __future__ import annotations

from typing import Any

from ..core.json_values import STRING
from ..core.schema_sets import ANY, NEVER, SchemaSet
from ..core.subschema_table import Subschema, SubschemaTable
from ..strings.string_keywords import STRING_KEYWORDS

__all__ = ["StringProjection"]

LISTS = ("allOf", "anyOf", "oneOf")
SINGLE = ("$ref", "$dynamicRef", "not", "if", "then", "else")
PLAIN = frozenset(("type", *STRING_KEYWORDS))


class StringProjection:
    """Copies of nodes: they agree with the nodes on strings, and may differ on all other values."""

    def __init__(self, table: SubschemaTable) -> None:
        self.table = table
        self._copies: dict[int, int] = {}

    def project(self, schemas: SchemaSet) -> SchemaSet:
        """Return the copy of a set."""
        if schemas in (ANY, NEVER):
            return schemas
        return tuple(sorted(self._copy(abs(one)) * (1 if one > 0 else -1) for one in schemas))

    def _copy(self, number: int) -> int:
        known = self._copies.get(number)
        if known is None:
            node = self.table.nodes[number]
            assert node is not None
            copy = self.table.add_derived(node, {})
            known = self._copies[number] = copy.number
            copy.keywords = self._project_keywords(node)
        return known

    def _project_keywords(self, node: Subschema) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for field, value in node.keywords.items():
            if field in PLAIN:
                out[field] = value
            elif field in LISTS:
                out[field] = tuple(map(self.project, value))
            elif field in SINGLE:
                out[field] = self.project(value)
            elif field in ("enum", "const"):
                out[field] = tuple(one for one in value if one[0] == STRING)
        return out
