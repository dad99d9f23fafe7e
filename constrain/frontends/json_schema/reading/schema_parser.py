"""A schema document becomes numbered subschemas: keywords parsed by the table, references resolved.

`SchemaParser.parse_subschema` returns the set of a raw subschema: ANY for `true`, `{}` and mere annotations, NEVER for
`false`, the set of the target for a pure `$ref`, otherwise one node. Keywords are parsed from a queue, so that nesting
costs no stack. Each is looked up in the table of its dialect; a name that is not there asserts nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from typing import Any

from ....base.errors import SchemaError
from ....base.json_documents import kind_of
from ....base.options import Limits, Style
from ....base.work import spend_work
from ..core.dialects import Scope
from ..core.fresh_stack import continue_deeper
from ..core.keyword_place import SKIP, KeywordPlace, SubschemaParser
from ..core.schema_sets import ANY, NEVER, SchemaSet
from ..core.subschema_table import Subschema
from .keywords import Keyword, keywords_of_dialect
from .schema_references import ReferenceResolver, ReferenceTarget

__all__ = ["UnsharedSchemaParser", "SchemaParser"]


NODE = 16
"""Units of work that a subschema counts as."""


class _DynamicScopeNeeded(Exception):
    """A signal: the target of a reference depends on the dynamic scope, so scopes have to be distinguished."""


class SchemaParser(SubschemaParser):
    """Parses what is reachable from the root of one document, and what it refers to in the registry.

    shares: equal plain subschemas are one node, which has the pointer of the first.
    """

    shares = True

    def __init__(self, document: Any, registry: Mapping[str, Any] | None, style: Style, limits: Limits) -> None:
        self.style = style
        self.limits = limits
        self.library = ReferenceResolver(document, registry, limits)
        self._ways = False
        try:
            self._start(document)
        except _DynamicScopeNeeded:  # Rare, and distinguishing scopes doubles the memory, so it is done on demand.
            self._ways = True
            self._start(document)

    def _start(self, document: Any) -> None:
        """Parse the document from its root."""
        self.clear()
        self._at: dict[Hashable, SchemaSet] = {}
        self._shared: dict[Any, SchemaSet] = {}
        self._queue: deque[Subschema] = deque()
        self._following: dict[Hashable, None] = {}
        self.root = self.parse_subschema(document, self.library.main, "")
        self.read()

    def read(self) -> None:
        """Parse the keywords of every node in the queue, and those of the nodes that they refer to."""
        queue = self._queue
        while queue:
            node = queue.popleft()
            assert node.unparsed is not None
            live: list[tuple[Keyword, Any]]
            live, scope = node.unparsed
            node.unparsed = None
            place = KeywordPlace(self, node, scope)
            for keyword, value in live:
                found = keyword.parse(place, keyword.name, value)
                if found is not SKIP:
                    node.keywords[keyword.field] = found

    def parse_subschema(self, raw: Any, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set of a raw subschema; its keywords are parsed later."""
        key: Hashable = pointer
        if self._ways:
            scope = self.library.enter_dynamically(raw, scope, pointer)
            key = (pointer, scope.entered)
        known = self._at.get(key)
        if known is None:
            spend_work(6 + (len(pointer) >> 6) + len(scope.entered), "the reading of a schema")
            known = self._at[key] = self._parse_new(raw, scope, pointer)
        return known

    def _parse_new(self, raw: Any, scope: Scope, pointer: str) -> SchemaSet:
        if raw is True:
            return ANY
        if raw is False:
            return NEVER
        if not isinstance(raw, dict):
            raise SchemaError(f"A schema must be an object or a boolean, not {kind_of(raw)}.", pointer=pointer)
        if "$id" in raw or "id" in raw or "$schema" in raw:
            scope = self.library.enter(raw, scope, pointer)
        table = keywords_of_dialect(scope.dialect)
        reference = raw.get("$ref")
        if reference is not None and scope.draft <= 7:
            return self.follow_reference(reference, scope, pointer + "/$ref")
        live: list[tuple[Keyword, Any]] = []
        key: list[Any] = [scope.dialect]
        for name, value in raw.items():
            keyword = table.get(name)
            if keyword is not None:
                live.append((keyword, value))
                if (type(value) is str or type(value) is int) and name[0] != "$":
                    key += name, value
        if not live:
            return ANY
        if len(live) == 1 and reference is not None:
            return self.follow_reference(reference, scope, pointer + "/$ref")
        if self.shares and len(key) == 2 * len(live) + 1:
            # Equal plain subschemas (most of them are no more than a type) are one node, looked into once.
            shared = tuple(key)
            known = self._shared.get(shared)
            if known is None:
                known = self._shared[shared] = (self._new(pointer, live, scope).number,)
            return known
        return (self._new(pointer, live, scope).number,)

    def _new(self, pointer: str, live: list[tuple[Keyword, Any]], scope: Scope) -> Subschema:
        spend_work(NODE + len(scope.entered), "reading the schema")
        node = self.add(pointer, scope.draft)
        node.unparsed = (live, scope)
        self._queue.append(node)
        return node

    def follow_reference(self, reference: Any, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set that `$ref` names. Raise SchemaError if it names nothing, or only itself."""
        if not isinstance(reference, str):
            raise SchemaError(f"$ref must be a string, not {kind_of(reference)}.", pointer=pointer)
        return self._go(self.library.resolve(reference, scope, pointer), scope, pointer)

    def follow_dynamic_reference(self, reference: Any, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set that `$dynamicRef` or `$recursiveRef` names in a dynamic scope."""
        if not isinstance(reference, str):
            raise SchemaError(f"A reference must be a string, not {kind_of(reference)}.", pointer=pointer)
        found = self.library.resolve(reference, scope, pointer)
        anchor = self.library.dynamic_anchor(reference, found)
        if anchor is not None:
            if not self._ways:
                raise _DynamicScopeNeeded
            found = self.library.outermost(anchor, scope, found)
        return self._go(found, scope, pointer)

    def _go(self, found: ReferenceTarget, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set of the target of a reference in a scope."""
        place = (found.pointer, scope.entered)
        if place in self._following:
            raise SchemaError("This $ref leads back to itself, with no schema in between.", pointer=pointer)
        self._following[place] = None
        try:
            target = found.scope._replace(entered=scope.entered)
            return continue_deeper(len(self._following), self.parse_subschema, found.raw, target, found.pointer)
        finally:
            del self._following[place]


class UnsharedSchemaParser(SchemaParser):
    """A SchemaParser in which every subschema is a node with its own pointer, for error messages."""

    shares = False
