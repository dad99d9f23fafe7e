"""Which subschema a reference names: base URIs, anchors, pointers, dynamic scopes. Nothing is ever fetched.

A *scope* is the resource in which a subschema stands: its base URI, the raw schema at its root, the pointer of that
root for messages, and its dialect. `$id` (`id` in draft 4) opens a new one. Ids are searched for only at schema
positions of the dialect, and only when a reference needs more than a pointer into its own resource.

A document of the registry that does not name its dialect is read in that of the document which refers to it. So such
documents are indexed once for each dialect in which references stand, which is nearly always one.

The target of a `$dynamicRef` depends on the dynamic scope: the anchor of the outermost resource that has it is used
(core specification, section 8.2.3.2). So a scope also records this resource for each dynamic anchor; a subschema that
is reached in two dynamic scopes is parsed twice. `$recursiveRef` of 2019-09 is the same with one nameless anchor, which
may only be at the root of a resource.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from ....base.errors import SchemaError, UnsupportedError, shorten_text
from ....base.json_documents import References, check_registry, echo_value, load_document, pointer_token
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
    """Resolves the references of a document with a registry. The meta-schemas of the drafts are always available.

    registry: schema documents by URI, perhaps as `References`. Raise SchemaError for an invalid URI, and for a
    document that is not a schema.
    """

    def __init__(self, document: Any, registry: Mapping[str, Any] | None, limits: Limits = Limits()) -> None:
        base_uri: str = getattr(registry, "base_uri", "")
        base = split_uri(base_uri, "")[0] if base_uri else ""
        self.registry: dict[str, Any] = {}
        if registry is not None and (type(registry) is not References or registry):
            for uri, schema in check_registry(registry).items():
                pointer = f"{uri}#"
                self.registry[resolve_uri(base, split_uri(uri, pointer)[0], pointer)] = load_document(schema, limits)
        self.main = self._open_scope(document, Scope(base, document, "", NEWEST), "")
        self._targets: dict[Hashable, ReferenceTarget] = {}
        self._declared: ReferenceIndex | None = None
        self._undeclared: dict[Dialect, ReferenceIndex] = {}

    # ---- scopes ------------------------------------------------------------------------------------------------

    def enter(self, raw: Any, scope: Scope, pointer: str) -> Scope:
        """Return the scope inside a schema, which may have an id or `$schema`."""
        return scope if raw is scope.root else self._open_scope(raw, scope, pointer)

    def _open_scope(self, raw: Any, scope: Scope, pointer: str) -> Scope:
        if not isinstance(raw, dict):
            return scope
        dialect = resolve_dialect(raw, scope.dialect, pointer, self.registry)
        name = raw.get("id" if dialect.draft == 4 else "$id")
        if not isinstance(name, str) or (dialect.draft <= 7 and "$ref" in raw):
            return (
                scope
                if dialect == scope.dialect
                else Scope(scope.uri, scope.root, scope.pointer, dialect, scope.entered)
            )
        id_pointer = f"{pointer}/{'id' if dialect.draft == 4 else '$id'}"
        uri, fragment = split_uri(name, id_pointer)
        if not uri and fragment:  # A plain-name anchor of the older drafts.
            return scope._replace(dialect=dialect)
        return Scope(resolve_uri(scope.uri, uri, id_pointer), raw, pointer, dialect, scope.entered)

    def enter_dynamically(self, raw: Any, scope: Scope, pointer: str) -> Scope:
        """Return `enter`, and record the resource for each of its dynamic anchors that no outer resource has."""
        scope = self.enter(raw, scope, pointer)
        known = dict(scope.entered)
        new_anchors = self._list_dynamic_anchors(scope).keys() - known.keys()
        if not new_anchors:
            return scope
        return scope._replace(entered=tuple(sorted({**known, **dict.fromkeys(new_anchors, scope.uri)}.items())))

    # ---- references --------------------------------------------------------------------------------------------

    def resolve(self, reference: str, scope: Scope, pointer: str) -> ReferenceTarget:
        """Return the target of a reference by static resolution. pointer: where the reference is, for errors."""
        key = (reference, scope.uri, scope.pointer, scope.dialect, scope.entered)
        target = self._targets.get(key)
        if target is None:
            target = self._targets[key] = self._resolve(reference, scope, pointer)
        return target

    def _resolve(self, reference: str, scope: Scope, pointer: str) -> ReferenceTarget:
        uri, fragment = ("", reference[1:]) if reference[:1] == "#" else split_uri(reference, pointer)
        if uri:
            scope = self._resource(resolve_uri(scope.uri, uri, pointer), scope.dialect, reference, pointer)
        if not fragment:
            return ReferenceTarget(scope.root, scope, scope.pointer)
        fragment = unquote(fragment) if "%" in fragment else fragment
        if fragment.startswith("/"):
            return self._follow_pointer(scope, fragment, reference, pointer)
        target = next(
            (index.anchors[scope.uri, fragment] for index in self._indexes(scope.dialect)
             if (scope.uri, fragment) in index.anchors), None,
        )  # fmt: skip
        if target is None:
            raise SchemaError(f"$ref {echo_value(reference)} names no anchor of this document.", pointer=pointer)
        return target

    def dynamic_anchor(self, reference: str, target: ReferenceTarget) -> str | None:
        """Return the anchor to look up in the dynamic scope for a static target; None if the target is final."""
        raw = target.raw
        if not isinstance(raw, dict):
            return None
        if target.scope.draft == 2019:
            return "" if raw.get("$recursiveAnchor") is True else None
        anchor = unquote(split_uri(reference, target.pointer)[1])
        return anchor if anchor and raw.get("$dynamicAnchor") == anchor else None

    def outermost(self, anchor: str, scope: Scope, target: ReferenceTarget) -> ReferenceTarget:
        """Return the target of a dynamic anchor in the outermost resource of the dynamic scope that has it."""
        uri = dict(scope.entered).get(anchor)
        return target if uri is None else self._list_dynamic_anchors(scope._replace(uri=uri)).get(anchor, target)

    def _follow_pointer(self, scope: Scope, fragment: str, reference: str, pointer: str) -> ReferenceTarget:
        """Return the target of a JSON pointer; ids on its path change the base URI."""
        raw, location, base = scope.root, scope.pointer, scope
        for part in fragment[1:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~") if "~" in part else part
            # An id that is not a string is a key of a map of schemas, such as `properties`.
            if isinstance(raw, dict) and (isinstance(raw.get("$id"), str) or isinstance(raw.get("id"), str)):
                base = self.enter(raw, base, location)
            if isinstance(raw, dict) and name in raw:
                raw = raw[name]
            elif isinstance(raw, list) and INDEX.fullmatch(name) and int(name) < len(raw):
                raw = raw[int(name)]
            else:
                raise SchemaError(
                    f"$ref {echo_value(reference)} names nothing: there is no {echo_value(name)}.", pointer=pointer
                )
            location = f"{location}/{part}"
        return ReferenceTarget(raw, base, location)

    def _resource(self, uri: str, dialect: Dialect, reference: str, pointer: str) -> Scope:
        """Return the resource of a URI for a reference in a dialect. Raise SchemaError if it is not in the registry."""
        if uri == self.main.uri:
            return self.main
        indexes = self._indexes(dialect)
        spellings = (uri, uri.rstrip("#"))
        resource = next(
            (index.resources[name] for index in indexes for name in spellings if name in index.resources), None
        )
        if resource is None:
            resource = self._meta_schema(uri.rstrip("#"), indexes[0])
        if resource is None:
            hint = "Give it as registry={uri: schema}, on the command line --registry FILE; nothing is ever fetched."
            if not HAS_SCHEME.match(uri):
                hint += " Relative references are relative to base_uri=."
            raise SchemaError(
                f"$ref {echo_value(reference)} names a document that is not in the registry: {shorten_text(uri)}",
                pointer=pointer, hint=hint,
            )  # fmt: skip
        return resource

    def _meta_schema(self, uri: str, index: ReferenceIndex) -> Scope | None:
        """Return a meta-schema of a draft, or a vocabulary of one; None for any other URI."""
        if not uri.startswith(("http://json-schema.org/", "https://json-schema.org/")):
            return None
        from jsonschema_specifications import REGISTRY

        if uri not in REGISTRY:
            return None
        self._add_document(uri, REGISTRY[uri].contents, index, NEWEST, f"{uri}#")
        return index.resources.get(uri)

    # ---- the index ---------------------------------------------------------------------------------------------

    def _indexes(self, dialect: Dialect) -> tuple[ReferenceIndex, ...]:
        """Return the indexes for references in a dialect: of documents with `$schema`, and of all others."""
        if self._declared is None:
            self._declared = ReferenceIndex({}, {}, {})
            self._index_document(self.main.root, self.main, "", self._declared)
            for uri, schema in self.registry.items():
                if _declares_dialect(schema):
                    self._add_document(uri, schema, self._declared, NEWEST, f"{uri}#")
        index = self._undeclared.get(dialect)
        if index is None:
            has_other_reading = bool(self._undeclared)
            index = self._undeclared[dialect] = ReferenceIndex({}, {}, {})
            for uri, schema in self.registry.items():
                if not _declares_dialect(schema):  # Two readings of one document have different pointers.
                    pointer = (
                        f"{uri} (draft {dialect.draft}, reading {len(self._undeclared)})#"
                        if has_other_reading
                        else f"{uri}#"
                    )
                    self._add_document(uri, schema, index, dialect, pointer)
        return self._declared, index

    def _list_dynamic_anchors(self, scope: Scope) -> dict[str, ReferenceTarget]:
        """Return the dynamic anchors of the resource of a scope."""
        for index in self._indexes(scope.dialect):
            if scope.uri in index.dynamic:
                return index.dynamic[scope.uri]
        return {}

    def _add_document(self, uri: str, schema: Any, index: ReferenceIndex, dialect: Dialect, pointer: str) -> None:
        """Index the ids and anchors of another document. dialect: applies if it has no `$schema`."""
        try:
            scope = self._open_scope(schema, Scope(uri, schema, pointer, dialect), pointer)
        except UnsupportedError:  # Of an older dialect: no harm unless something refers to it.
            return
        index.resources.setdefault(uri, scope)
        self._index_document(schema, scope, pointer, index)

    def _index_document(self, document: Any, scope: Scope, pointer: str, index: ReferenceIndex) -> None:
        stack = [(document, scope, pointer)]
        while stack:
            raw, scope, pointer = stack.pop()
            if not isinstance(raw, dict):
                continue
            spend_work(2 + (len(pointer) >> 6), "the index of ids and anchors")
            scope = self.enter(raw, scope, pointer)
            target = ReferenceTarget(raw, scope, pointer)
            if raw is scope.root:
                index.resources.setdefault(scope.uri, scope)
                if scope.draft == 2019 and raw.get("$recursiveAnchor") is True:
                    index.dynamic.setdefault(scope.uri, {})[""] = target
            dynamic = raw.get("$dynamicAnchor") if scope.draft == 2020 else None
            if isinstance(dynamic, str):
                index.dynamic.setdefault(scope.uri, {}).setdefault(dynamic, target)
            for anchor in list_anchors(raw, scope.draft, pointer):
                index.anchors.setdefault((scope.uri, anchor), target)
            for tokens, child in iterate_subschemas(raw, scope.draft):
                stack.append((child, scope, "/".join((pointer, *map(pointer_token, tokens)))))


def _declares_dialect(schema: Any) -> bool:
    return isinstance(schema, dict) and "$schema" in schema


def list_anchors(raw: dict[str, Any], draft: int, pointer: str) -> list[str]:
    """Return the plain-name anchors of a schema."""
    if draft <= 7:
        name = raw.get("id" if draft == 4 else "$id")
        fragment = split_uri(name, pointer)[1] if isinstance(name, str) and "$ref" not in raw else ""
        return [fragment] if fragment else []
    names = (raw.get("$anchor"), raw.get("$dynamicAnchor") if draft == 2020 else None)
    return [name for name in names if isinstance(name, str)]


PLAIN_URI = re.compile(r"[A-Za-z0-9/:.?=&_~%+-]*")
"""A URI without a fragment in which `urllib.parse` finds no fault: there are no brackets around a host."""
PLAIN_URI_REFERENCE = re.compile(r"(|https?://[a-z0-9.-]+(?:/[A-Za-z0-9/._~-]*)?)#([!-~]*)")
"""A URI with a fragment that `urllib.parse` only divides: nothing before the fragment, or what it would not rewrite."""
HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def split_uri(uri: str, pointer: str) -> tuple[str, str]:
    """Return a URI without its fragment, and the fragment. Raise SchemaError if it is not a URI."""
    if PLAIN_URI.fullmatch(uri):
        return uri, ""
    if match := PLAIN_URI_REFERENCE.fullmatch(uri):
        return match[1], match[2]
    try:
        urlsplit(uri)
        absolute, fragment = urldefrag(uri)
    except ValueError as error:
        raise SchemaError(f"{echo_value(uri)} is not a URI: {error}.", pointer=pointer) from None
    return absolute, fragment


def resolve_uri(base: str, uri: str, pointer: str) -> str:
    """Resolve a URI against a base (RFC 3986, section 5). Raise SchemaError if one of them is not a URI."""
    if not base:
        return uri
    try:
        return urljoin(base, uri)
    except ValueError as error:
        raise SchemaError(f"{echo_value(uri)} is not a URI: {error}.", pointer=pointer) from None
