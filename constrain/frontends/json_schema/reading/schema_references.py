"""Which subschema a reference names: base URIs, anchors, pointers, dynamic scopes. Nothing is ever fetched.

A *scope* is the resource in which a subschema stands: its base URI, the raw schema at its root, the pointer of that
root for messages, and its dialect. `$id` (`id` in draft 4) opens a new one. Ids are searched for only at schema
positions of the dialect, and only when a reference needs more than a pointer into its own resource.

A document of the registry that does not name its dialect is read in that of the document which refers to it. So such
documents are indexed once for each dialect in which references stand, which is nearly always one.

The target of a `$dynamicRef` depends on the dynamic scope: of the resources passed on the way that have the anchor, the
first counts (core specification, section 8.2.3.2). So a scope also records, for each dynamic anchor, which resource
that was; a subschema that is reached in two such ways is parsed twice. `$recursiveRef` of 2019-09 is the same with one
nameless anchor, which stands at roots.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from ....base.errors import SchemaError, UnsupportedError, shorten_text
from ....base.json_documents import check_registry, echo_value, load_document, pointer_token
from ....base.options import Limits
from ....base.work import spend_work
from ..core.dialects import NEWEST, Dialect, Scope, resolve_dialect
from .keywords import iterate_subschemas

__all__ = ["ReferenceTarget", "ReferenceResolver"]

INDEX = re.compile("0|[1-9][0-9]{0,8}")
"""An index of an array in a JSON pointer (RFC 6901, section 4); a longer one is beyond any array."""


class ReferenceTarget(NamedTuple):
    """What a reference names: a raw schema, the scope around it, and its pointer."""

    raw: Any
    scope: Scope
    pointer: str


class ReferenceIndex(NamedTuple):
    """Ids and anchors of some documents.

    resources: by URI. anchors: by URI and name. dynamic: by URI, then by name.
    """

    resources: dict[str, Scope]
    anchors: dict[tuple[str, str], ReferenceTarget]
    dynamic: dict[str, dict[str, ReferenceTarget]]


class ReferenceResolver:
    """One document and its registry: what references may name. The drafts' own meta-schemas are always at hand.

    registry: schema documents by URI, perhaps as `References`. Raise SchemaError for a URI that is none, and for a
    document that is no schema.
    """

    def __init__(self, document: Any, registry: Mapping[str, Any] | None, limits: Limits = Limits()) -> None:
        base = split_uri(getattr(registry, "base_uri", ""), "")[0]
        self.registry = {}
        for uri, schema in check_registry(registry).items():
            pointer = f"{uri}#"
            self.registry[resolve_uri(base, split_uri(uri, pointer)[0], pointer)] = load_document(schema, limits)
        self.main = self._open(document, Scope(base, document, "", NEWEST), "")
        self._declared: ReferenceIndex | None = None
        self._undeclared: dict[Dialect, ReferenceIndex] = {}

    # ---- scopes ------------------------------------------------------------------------------------------------

    def enter(self, raw: Any, scope: Scope, pointer: str) -> Scope:
        """The scope inside a schema that may have an id or a dialect of its own."""
        return scope if raw is scope.root else self._open(raw, scope, pointer)

    def _open(self, raw: Any, scope: Scope, pointer: str) -> Scope:
        if not isinstance(raw, dict):
            return scope
        spoken = resolve_dialect(raw, scope.dialect, pointer, self.registry)
        name = raw.get("id" if spoken.draft == 4 else "$id")
        if not isinstance(name, str) or (spoken.draft <= 7 and "$ref" in raw):
            return scope if spoken == scope.dialect else scope._replace(dialect=spoken)
        place = f"{pointer}/{'id' if spoken.draft == 4 else '$id'}"
        uri, fragment = split_uri(name, place)
        if not uri and fragment:  # A plain-name anchor of the older drafts.
            return scope._replace(dialect=spoken)
        return Scope(resolve_uri(scope.uri, uri, place), raw, pointer, spoken, scope.entered)

    def enter_dynamically(self, raw: Any, scope: Scope, pointer: str) -> Scope:
        """The same, with the dynamic anchors of the resource noted that no resource before it had."""
        scope = self.enter(raw, scope, pointer)
        known = dict(scope.entered)
        fresh = self._dynamic(scope).keys() - known.keys()
        if not fresh:
            return scope
        return scope._replace(entered=tuple(sorted({**known, **dict.fromkeys(fresh, scope.uri)}.items())))

    # ---- references --------------------------------------------------------------------------------------------

    def resolve(self, reference: str, scope: Scope, pointer: str) -> ReferenceTarget:
        """What a reference names, whatever the way there."""
        uri, fragment = ("", reference[1:]) if reference[:1] == "#" else split_uri(reference, pointer)
        if uri:
            scope = self._resource(resolve_uri(scope.uri, uri, pointer), scope.dialect, reference, pointer)
        if not fragment:
            return ReferenceTarget(scope.root, scope, scope.pointer)
        fragment = unquote(fragment)
        if fragment.startswith("/"):
            return self._walk(scope, fragment, reference, pointer)
        found = next(
            (index.anchors[scope.uri, fragment] for index in self._indexes(scope.dialect)
             if (scope.uri, fragment) in index.anchors), None,
        )  # fmt: skip
        if found is None:
            raise SchemaError(f"$ref {echo_value(reference)} names no anchor of this document.", pointer=pointer)
        return found

    def dynamic_anchor(self, reference: str, found: ReferenceTarget) -> str | None:
        """The anchor by which a dynamic reference goes on from what it names statically; None: it stays there."""
        raw = found.raw
        if not isinstance(raw, dict):
            return None
        if found.scope.draft == 2019:
            return "" if raw.get("$recursiveAnchor") is True else None
        anchor = unquote(split_uri(reference, found.pointer)[1])
        return anchor if anchor and raw.get("$dynamicAnchor") == anchor else None

    def outermost(self, anchor: str, scope: Scope, found: ReferenceTarget) -> ReferenceTarget:
        """What has the dynamic anchor in the first resource on the way to `scope` that has it."""
        uri = dict(scope.entered).get(anchor)
        return found if uri is None else self._dynamic(scope._replace(uri=uri)).get(anchor, found)

    def _walk(self, scope: Scope, fragment: str, reference: str, pointer: str) -> ReferenceTarget:
        """Go down a JSON pointer, noticing ids on the way."""
        raw, place, base = scope.root, scope.pointer, scope
        for part in fragment[1:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            # Where a string is meant to be and is none, it is a map of schemas that has keys of these names.
            if isinstance(raw, dict) and (isinstance(raw.get("$id"), str) or isinstance(raw.get("id"), str)):
                base = self.enter(raw, base, place)
            if isinstance(raw, dict) and name in raw:
                raw = raw[name]
            elif isinstance(raw, list) and INDEX.fullmatch(name) and int(name) < len(raw):
                raw = raw[int(name)]
            else:
                raise SchemaError(
                    f"$ref {echo_value(reference)} names nothing: there is no {echo_value(name)}.", pointer=pointer
                )
            place = f"{place}/{part}"
        return ReferenceTarget(raw, base, place)

    def _resource(self, uri: str, dialect: Dialect, reference: str, pointer: str) -> Scope:
        """The resource of a URI, as a reference names it that stands in a dialect."""
        if uri == self.main.uri:
            return self.main
        indexes = self._indexes(dialect)
        spellings = (uri, uri.rstrip("#"))
        found = next(
            (index.resources[name] for index in indexes for name in spellings if name in index.resources), None
        )
        if found is None:
            found = self._meta_schema(uri.rstrip("#"), indexes[0])
        if found is None:
            hint = "Give it as registry={uri: schema}, on the command line --registry FILE; nothing is ever fetched."
            if not HAS_SCHEME.match(uri):
                hint += " Relative references are relative to base_uri=."
            raise SchemaError(
                f"$ref {echo_value(reference)} names a document that is not at hand: {shorten_text(uri)}",
                pointer=pointer, hint=hint,
            )  # fmt: skip
        return found

    def _meta_schema(self, uri: str, index: ReferenceIndex) -> Scope | None:
        """A meta-schema of a draft, or a part of one."""
        if not uri.startswith(("http://json-schema.org/", "https://json-schema.org/")):
            return None
        from jsonschema_specifications import REGISTRY

        if uri not in REGISTRY:
            return None
        self._add(uri, REGISTRY[uri].contents, index, NEWEST, f"{uri}#")
        return index.resources.get(uri)

    # ---- the index ---------------------------------------------------------------------------------------------

    def _indexes(self, dialect: Dialect) -> tuple[ReferenceIndex, ...]:
        """Every id and anchor that a reference can name which stands in a dialect, with each id in one index."""
        if self._declared is None:
            self._declared = ReferenceIndex({}, {}, {})
            self._look_into(self.main.root, self.main, "", self._declared)
            for uri, schema in self.registry.items():
                if _declares_dialect(schema):
                    self._add(uri, schema, self._declared, NEWEST, f"{uri}#")
        index = self._undeclared.get(dialect)
        if index is None:
            again = bool(self._undeclared)
            index = self._undeclared[dialect] = ReferenceIndex({}, {}, {})
            for uri, schema in self.registry.items():
                if not _declares_dialect(schema):  # Two readings of one document have different pointers.
                    pointer = f"{uri} (draft {dialect.draft}, reading {len(self._undeclared)})#" if again else f"{uri}#"
                    self._add(uri, schema, index, dialect, pointer)
        return self._declared, index

    def _dynamic(self, scope: Scope) -> dict[str, ReferenceTarget]:
        """The dynamic anchors of the resource of a scope."""
        for index in self._indexes(scope.dialect):
            if scope.uri in index.dynamic:
                return index.dynamic[scope.uri]
        return {}

    def _add(self, uri: str, schema: Any, index: ReferenceIndex, dialect: Dialect, pointer: str) -> None:
        """Find the ids and anchors of another document, which is in `resolve_dialect` unless it says otherwise."""
        try:
            scope = self._open(schema, Scope(uri, schema, pointer, dialect), pointer)
        except UnsupportedError:  # Of an older dialect: no harm unless something refers to it.
            return
        index.resources.setdefault(uri, scope)
        self._look_into(schema, scope, pointer, index)

    def _look_into(self, document: Any, scope: Scope, pointer: str, index: ReferenceIndex) -> None:
        todo = [(document, scope, pointer)]
        while todo:
            raw, scope, pointer = todo.pop()
            if not isinstance(raw, dict):
                continue
            spend_work(2 + (len(pointer) >> 6), "the index of ids and anchors")
            scope = self.enter(raw, scope, pointer)
            found = ReferenceTarget(raw, scope, pointer)
            if raw is scope.root:
                index.resources.setdefault(scope.uri, scope)
                if scope.draft == 2019 and raw.get("$recursiveAnchor") is True:
                    index.dynamic.setdefault(scope.uri, {})[""] = found
            dynamic = raw.get("$dynamicAnchor") if scope.draft == 2020 else None
            if isinstance(dynamic, str):
                index.dynamic.setdefault(scope.uri, {}).setdefault(dynamic, found)
            for anchor in list_anchors(raw, scope.draft, pointer):
                index.anchors.setdefault((scope.uri, anchor), found)
            for tokens, child in iterate_subschemas(raw, scope.draft):
                todo.append((child, scope, "/".join((pointer, *map(pointer_token, tokens)))))


def _declares_dialect(schema: Any) -> bool:
    return isinstance(schema, dict) and "$schema" in schema


def list_anchors(raw: dict[str, Any], draft: int, pointer: str) -> list[str]:
    """The plain names that a schema gives itself."""
    if draft <= 7:
        name = raw.get("id" if draft == 4 else "$id")
        fragment = split_uri(name, pointer)[1] if isinstance(name, str) and "$ref" not in raw else ""
        return [fragment] if fragment else []
    names = (raw.get("$anchor"), raw.get("$dynamicAnchor") if draft == 2020 else None)
    return [name for name in names if isinstance(name, str)]


HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def split_uri(uri: str, pointer: str) -> tuple[str, str]:
    """Return a URI without its fragment, and the fragment. Raise SchemaError if it is no URI."""
    try:
        urlsplit(uri)
        whole, fragment = urldefrag(uri)
    except ValueError as error:
        raise SchemaError(f"{echo_value(uri)} is no URI: {error}.", pointer=pointer) from None
    return whole, fragment


def resolve_uri(base: str, uri: str, pointer: str) -> str:
    """Resolve a URI against a base (RFC 3986, section 5). Raise SchemaError if one of them is no URI."""
    try:
        return urljoin(base, uri)
    except ValueError as error:
        raise SchemaError(f"{echo_value(uri)} is no URI: {error}.", pointer=pointer) from None
