"""A schema document becomes numbered subschemas: keywords parsed by the table, references resolved.

`SchemaParser.parse_subschema` returns the set of a raw subschema: ANY for `true`, `{}` and mere annotations, NEVER for
`false`, the set of the target for a pure `$ref`, otherwise one node. Keywords are parsed from a queue, so that nesting
costs no stack. Each is looked up in the table of its dialect; a name that is not there asserts nothing.

A document that `document_inspection` finds plain has no error, so `PlainSchemaParser` leaves the keywords of every node
to whatever first reads them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Set
from typing import Any

from ....base.errors import SchemaError
from ....base.json_documents import kind_of, pointer_token
from ....base.options import Limits, Style
from ....base.weak_calls import call_weakly
from ....base.work import spend_work
from ..core.dialects import Scope
from ..core.fresh_stack import continue_deeper
from ..core.keyword_context import SKIP, KeywordContext, SubschemaParser
from ..core.schema_sets import ANY, NEVER, SchemaSet
from ..core.static_types import TYPE_BITS
from ..core.subschema_table import PlainSubschema, Subschema
from .document_inspection import IDENTIFIERS, Inspection
from .keywords import Keyword, keywords_of_dialect
from .name_summaries import summaries_of_draft
from .schema_references import ReferenceResolver, ReferenceTarget

__all__ = ["MixedSchemaParser", "UnsharedSchemaParser", "SchemaParser", "parse_document"]


NODE = 16
"""Units of work that a subschema counts as."""
LONG_POINTER = 64
"""Characters of a pointer for each unit of work."""
UNITS_AT_ONCE = 1024
"""Units of work after which they are charged."""
PLAIN = frozenset((str, int))
"""Types of values that are equal only if they mean the same."""
REFERENCES = frozenset(("$ref", "$dynamicRef", "$recursiveRef"))


class _DynamicScopeNeeded(Exception):
    """A signal: the target of a reference depends on the dynamic scope, so scopes have to be distinguished."""


class SchemaParser(SubschemaParser):
    """Parses what is reachable from the root of one document, and what it refers to in the registry.

    shares_nodes: equal plain subschemas are one node, which has the pointer of the first.
    """

    shares_nodes = True

    def __init__(
        self, document: Any, registry: Mapping[str, Any] | None, style: Style, limits: Limits,
        references: ReferenceResolver | None = None,
    ) -> None:  # fmt: skip
        self.style = style
        self.limits = limits
        self.references = ReferenceResolver(document, registry, limits) if references is None else references
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
        self._units = 0
        self.root = self.parse_subschema(document, self.references.main, "")
        self.read()

    def read(self) -> None:
        """Parse the keywords of every node in the queue, and those of the nodes that they refer to."""
        queue = self._queue
        while queue:
            node = queue.popleft()
            assert node.unparsed is not None
            unparsed, node.unparsed = node.unparsed, None
            node.keywords = self._parse_keywords(node, *unparsed)
        self._charge()

    def _parse_keywords(self, node: Subschema, keywords: list[tuple[Keyword, Any]], scope: Scope) -> dict[str, Any]:
        """Return the parsed values of the keywords of a node, without those that assert nothing."""
        context = KeywordContext(self, node, scope)
        parsed_keywords = {}
        for keyword, value in keywords:
            parsed = keyword.parse(context, keyword.name, value)
            if parsed is not SKIP:
                parsed_keywords[keyword.field] = parsed
        return parsed_keywords

    def _charge(self) -> None:
        """Charge the units of work that have been counted."""
        spend_work(self._units, "the reading of a schema")
        self._units = 0

    def parse_subschema(self, raw: Any, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set of a raw subschema; its keywords are parsed later."""
        if self._distinguishes_scopes:
            scope = self.references.enter_dynamically(raw, scope, pointer)
            key: Hashable = (pointer, scope.entered)
            self._units += len(scope.entered)
        else:
            key = pointer
        known = self._by_pointer.get(key)
        if known is None:
            self._units += 6 + len(pointer) // LONG_POINTER
            if self._units > UNITS_AT_ONCE:
                self._charge()
            known = self._by_pointer[key] = self._parse_new(raw, scope, pointer)
        return known

    def _parse_new(self, raw: Any, scope: Scope, pointer: str) -> SchemaSet:
        if not isinstance(raw, dict):
            if raw is True or raw is False:
                return ANY if raw else NEVER
            raise SchemaError(f"A schema must be an object or a boolean, not {kind_of(raw)}.", pointer=pointer)
        if not IDENTIFIERS.isdisjoint(raw):
            scope = self.references.enter(raw, scope, pointer)
        dialect = scope.dialect
        table = keywords_of_dialect(dialect)
        names = [*filter(table.__contains__, raw)]
        if "$ref" in raw and (dialect.draft <= 7 or len(names) == 1) and raw["$ref"] is not None:
            return self.follow_reference(raw["$ref"], scope, pointer + "/$ref")
        if not names:
            return ANY
        values = [*map(raw.__getitem__, names)]
        if self.shares_nodes and PLAIN.issuperset(map(type, values)) and REFERENCES.isdisjoint(names):
            # Equal plain subschemas (most of them are no more than a type) are one node, looked into once.
            key = (dialect, *names, *values)
            known = self._shared.get(key)
            if known is None:
                known = self._shared[key] = self._new(pointer, [*zip(map(table.__getitem__, names), values)], scope)
            return known
        return self._new(pointer, [*zip(map(table.__getitem__, names), values)], scope)

    def _new(self, pointer: str, keywords: list[tuple[Keyword, Any]], scope: Scope) -> SchemaSet:
        """Return the set of a new node with these keywords, which are parsed later."""
        self._units += NODE + len(scope.entered)
        node = self.add(pointer, scope.dialect.draft)
        node.unparsed = (keywords, scope)
        self._queue.append(node)
        return (node.number,)

    def follow_reference(self, reference: Any, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set that `$ref` names. Raise SchemaError if it names nothing, or only itself."""
        if not isinstance(reference, str):
            raise SchemaError(f"$ref must be a string, not {kind_of(reference)}.", pointer=pointer)
        target = self.references.resolve(reference, scope, pointer)
        known = None if self._distinguishes_scopes else self._by_pointer.get(target.pointer)
        return self._parse_target(target, scope, pointer) if known is None else known

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
            inside = target.scope
            if inside.entered != scope.entered:
                inside = inside._replace(entered=scope.entered)
            return continue_deeper(len(self._following), self.parse_subschema, target.raw, inside, target.pointer)
        finally:
            del self._following[visit]


class UnsharedSchemaParser(SchemaParser):
    """A SchemaParser in which every subschema is a node with its own pointer, for error messages."""

    shares_nodes = False


class PlainSchemaParser(SchemaParser):
    """A SchemaParser of a plain document: keywords of a node are parsed when they are first read.

    There is one scope, so that a raw subschema always has the same set: they are told apart by their ids, which is
    faster than by their pointers. The inspection of the document has charged for the nodes; long pointers are charged
    when they are made.
    """

    def _start(self, document: Any) -> None:
        self._by_raw: dict[int, SchemaSet] = {}
        self._draft = self.references.main.dialect.draft
        self._summaries = summaries_of_draft(self._draft)
        self._named: dict[str, SchemaSet] = {}  # the sets of subschemas that assert a type and no more
        self._parse_later = call_weakly(self._parse_plain)
        super()._start(document)

    def parse_subschema(self, raw: Any, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set of a raw subschema; its keywords are parsed when they are read."""
        if type(raw) is not dict:
            return ANY if raw else NEVER
        known = self._by_raw.get(id(raw))
        if known is None:
            if len(pointer) > LONG_POINTER:
                self._units += len(pointer) // LONG_POINTER
                if self._units > UNITS_AT_ONCE:
                    self._charge()
            known = self._by_raw[id(raw)] = self._parse_new(raw, scope, pointer)
        return known

    def _parse_new(self, raw: Any, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set of a raw subschema; only the root may have an identifier that matters."""
        if "$ref" in raw:  # In later drafts it is the only keyword.
            return self.follow_reference(raw["$ref"], scope, pointer + "/$ref")
        _, rows, may_be_types, is_type, _ = self._summaries[tuple(raw)]
        if not rows:
            return ANY
        if is_type and type(name := raw["type"]) is str:
            known = self._named.get(name)  # Most subschemas are no more.
            if known is None:
                node = self.add_plain(pointer, self._draft, self._parse_later, (((rows[0], name),), scope, True, raw))
                node.keywords = {"type": TYPE_BITS[name]}
                known = self._named[name] = (node.number,)
            return known
        keywords: list[tuple[Keyword, Any]] = []
        key: Any = ()
        for row in rows:  # A loop in place of a comprehension, which CPython 3.11 calls as a function.
            value = raw[row.name]
            keywords.append((row, value))
            key = (*key, row.name, value) if key is not None and type(value) in PLAIN else None
        if key is not None:
            known = self._shared.get(key)
            if known is not None:
                return known
        source = keywords, scope, may_be_types, raw
        schemas = (self.add_plain(pointer, self._draft, self._parse_later, source).number,)
        if key is not None:
            self._shared[key] = schemas
        return schemas

    def follow_reference(self, reference: Any, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set that `$ref` names, which is known if its target has been read before."""
        target = self.references.resolve(reference, scope, pointer)
        known = self._by_raw.get(id(target.raw))
        return self._parse_target(target, scope, pointer) if known is None else known

    def _parse_plain(self, node: PlainSubschema) -> dict[str, Any]:
        keywords, scope, _, _ = node.source
        return self._parse_keywords(node, keywords, scope)


class MixedSchemaParser(PlainSchemaParser):
    """A SchemaParser of a document that is plain but for some undecided subschemas, all of which are parsed at once.

    Raise what is wrong with them.
    """

    def __init__(self, document: Any, inspection: Inspection, style: Style, limits: Limits) -> None:
        self._undecided, self._entries = inspection.undecided, inspection.entries
        super().__init__(document, None, style, limits, inspection.references)

    def _start(self, document: Any) -> None:
        super()._start(document)
        places = find_pointers(document, {id(raw) for raw in self._entries})
        self.entries = [self.parse_subschema(raw, self.references.main, places[id(raw)]) for raw in self._entries]
        """The sets of the undecided subschemas that plain ones, references and the root lead to."""
        self.read()

    def parse_subschema(self, raw: Any, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set of a raw subschema. Raise SchemaError if it is none, as in an undecided one it may be."""
        if type(raw) is not dict and type(raw) is not bool:
            return SchemaParser._parse_new(self, raw, scope, pointer)
        return super().parse_subschema(raw, scope, pointer)

    def _parse_new(self, raw: Any, scope: Scope, pointer: str) -> SchemaSet:
        parser = SchemaParser if id(raw) in self._undecided else PlainSchemaParser
        return parser._parse_new(self, raw, scope, pointer)


def find_pointers(document: Any, numbers: Set[int]) -> dict[int, str]:
    """Return the JSON pointers of the values of a document with the given ids."""
    found: dict[int, str] = {}
    pending: list[tuple[Any, Any]] = [(document, None)]  # a value, and its link: that of the value around, and a name
    while pending and len(found) < len(numbers):
        value, link = pending.pop()
        if id(value) in numbers:
            found.setdefault(id(value), _write_pointer(link))
        items = value.items() if value.__class__ is dict else enumerate(value)
        pending += [(part, (link, name)) for name, part in items if part.__class__ is dict or part.__class__ is list]
    return found


def _write_pointer(link: Any) -> str:
    """Return the JSON pointer of the names of a link."""
    names: list[str | int] = []
    while link is not None:
        link, name = link
        names.append(name)
    return "".join([f"/{pointer_token(name)}" for name in reversed(names)])


def parse_document(
    document: Any, inspection: Inspection, registry: Mapping[str, Any] | None, style: Style, limits: Limits
) -> SchemaParser:
    """Parse a document that has been inspected. Raise its first error."""
    parser = PlainSchemaParser if inspection.is_plain else SchemaParser
    return parser(document, registry, style, limits, inspection.references)
