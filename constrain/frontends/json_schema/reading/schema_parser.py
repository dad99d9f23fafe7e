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
from ..core.keyword_context import SKIP, KeywordContext, SubschemaParser
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

    shares_nodes: equal plain subschemas are one node, which has the pointer of the first.
    """

    shares_nodes = True

    def __init__(self, document: Any, registry: Mapping[str, Any] | None, style: Style, limits: Limits) -> None:
        self.style = style
        self.limits = limits
        self.references = ReferenceResolver(document, registry, limits)
        self._distinguishes_scopes = False
        try:
            self._start(document)
        except _DynamicScopeNeeded:  # Rare, and distinguishing scopes doubles the memory, so it is done on demand.
            self._distinguishes_scopes = True
            self._start(document)

    def _start(self, document: Any) -> None:
        """Parse the document from its root."""
        self.clear()
        self._by_pointer: dict[Hashable, SchemaSet] = {}
        self._shared: dict[Any, SchemaSet] = {}
        self._queue: deque[Subschema] = deque()
        self._following: dict[Hashable, None] = {}
        self.root = self.parse_subschema(document, self.references.main, "")
        self.read()

    def read(self) -> None:
        """Parse the keywords of every node in the queue, and those of the nodes that they refer to."""
        queue = self._queue
        while queue:
            node = queue.popleft()
            assert node.unparsed is not None
            keywords: list[tuple[Keyword, Any]]
            keywords, scope = node.unparsed
            node.unparsed = None
            context = KeywordContext(self, node, scope)
            for keyword, value in keywords:
                parsed = keyword.parse(context, keyword.name, value)
                if parsed is not SKIP:
                    node.keywords[keyword.field] = parsed

    def parse_subschema(self, raw: Any, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set of a raw subschema; its keywords are parsed later."""
        key: Hashable = pointer
        if self._distinguishes_scopes:
            scope = self.references.enter_dynamically(raw, scope, pointer)
            key = (pointer, scope.entered)
        known = self._by_pointer.get(key)
        if known is None:
            spend_work(6 + (len(pointer) >> 6) + len(scope.entered), "the reading of a schema")
            known = self._by_pointer[key] = self._parse_new(raw, scope, pointer)
        return known

    def _parse_new(self, raw: Any, scope: Scope, pointer: str) -> SchemaSet:
        if raw is True:
            return ANY
        if raw is False:
            return NEVER
        if not isinstance(raw, dict):
            raise SchemaError(f"A schema must be an object or a boolean, not {kind_of(raw)}.", pointer=pointer)
        if "$id" in raw or "id" in raw or "$schema" in raw:
            scope = self.references.enter(raw, scope, pointer)
        table = keywords_of_dialect(scope.dialect)
        reference = raw.get("$ref")
        if reference is not None and scope.draft <= 7:
            return self.follow_reference(reference, scope, pointer + "/$ref")
        keywords: list[tuple[Keyword, Any]] = []
        key: list[Any] = [scope.dialect]
        for name, value in raw.items():
            keyword = table.get(name)
            if keyword is not None:
                keywords.append((keyword, value))
                if (type(value) is str or type(value) is int) and name[0] != "$":
                    key += name, value
        if not keywords:
            return ANY
        if len(keywords) == 1 and reference is not None:
            return self.follow_reference(reference, scope, pointer + "/$ref")
        if self.shares_nodes and len(key) == 2 * len(keywords) + 1:
            # Equal plain subschemas (most of them are no more than a type) are one node, looked into once.
            key_of_node = tuple(key)
            known = self._shared.get(key_of_node)
            if known is None:
                known = self._shared[key_of_node] = (self._new(pointer, keywords, scope).number,)
            return known
        return (self._new(pointer, keywords, scope).number,)

    def _new(self, pointer: str, keywords: list[tuple[Keyword, Any]], scope: Scope) -> Subschema:
        spend_work(NODE + len(scope.entered), "reading the schema")
        node = self.add(pointer, scope.draft)
        node.unparsed = (keywords, scope)
        self._queue.append(node)
        return node

    def follow_reference(self, reference: Any, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set that `$ref` names. Raise SchemaError if it names nothing, or only itself."""
        if not isinstance(reference, str):
            raise SchemaError(f"$ref must be a string, not {kind_of(reference)}.", pointer=pointer)
        return self._parse_target(self.references.resolve(reference, scope, pointer), scope, pointer)

    def follow_dynamic_reference(self, reference: Any, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set that `$dynamicRef` or `$recursiveRef` names in a dynamic scope."""
        if not isinstance(reference, str):
            raise SchemaError(f"A reference must be a string, not {kind_of(reference)}.", pointer=pointer)
        target = self.references.resolve(reference, scope, pointer)
        anchor = self.references.dynamic_anchor(reference, target)
        if anchor is not None:
            if not self._distinguishes_scopes:
                raise _DynamicScopeNeeded
            target = self.references.outermost(anchor, scope, target)
        return self._parse_target(target, scope, pointer)

    def _parse_target(self, target: ReferenceTarget, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set of the target of a reference in a scope."""
        visit = (target.pointer, scope.entered)
        if visit in self._following:
            raise SchemaError("This $ref refers to itself through references alone.", pointer=pointer)
        self._following[visit] = None
        try:
            scope_of_target = target.scope._replace(entered=scope.entered)
            return continue_deeper(
                len(self._following), self.parse_subschema, target.raw, scope_of_target, target.pointer
            )
        finally:
            del self._following[visit]


class UnsharedSchemaParser(SchemaParser):
    """A SchemaParser in which every subschema is a node with its own pointer, for error messages."""

    shares_nodes = False
