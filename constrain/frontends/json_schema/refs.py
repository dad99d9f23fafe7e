"""Which subschema a reference names: base URIs, anchors, pointers. Nothing is ever fetched.

A *scope* is the resource in which a subschema stands: its base URI, the raw schema at its root, the pointer to that
root for messages, and its dialect. `$id` (`id` in draft 4) opens a new one. Ids are looked for only at schema
positions of the dialect, and only when a reference needs more than a pointer into its own resource.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from ...errors import SchemaError, UnsupportedError
from .keywords import children

__all__ = ["DIALECTS", "Library", "Scope", "token"]

DIALECTS = {
    "http://json-schema.org/draft-04/schema": 4,
    "http://json-schema.org/draft-06/schema": 6,
    "http://json-schema.org/draft-07/schema": 7,
    "https://json-schema.org/draft/2019-09/schema": 2019,
    "https://json-schema.org/draft/2020-12/schema": 2020,
}
"""`$schema` without an empty fragment -> dialect. Any other value, or none, is taken as 2020-12."""

UNREAD = ("http://json-schema.org/draft-03/schema", "http://json-schema.org/draft-02/schema")


class Scope(NamedTuple):
    """The resource in which a subschema stands."""

    uri: str
    root: Any
    pointer: str
    draft: int


def token(name: str | int) -> str:
    """A reference token of a JSON pointer (RFC 6901)."""
    if isinstance(name, int):
        return str(name)
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name


class Library:
    """One document and its registry: what references may name."""

    def __init__(self, document: Any, registry: Mapping[str, Any] | None) -> None:
        self.registry = {urldefrag(uri)[0]: schema for uri, schema in (registry or {}).items()}
        self.main = self.enter(document, Scope("", document, "", 2020), "")
        self._resources: dict[str, Scope] = {}
        self._anchors: dict[tuple[str, str], tuple[Any, Scope, str]] = {}
        self._dynamic: dict[str, int] = {}
        self._indexed = False

    def enter(self, raw: Any, scope: Scope, pointer: str) -> Scope:
        """The scope inside a schema that may have an id or a dialect of its own."""
        if not isinstance(raw, dict):
            return scope
        draft = dialect(raw, scope.draft, pointer, self.registry)
        name = raw.get("id" if draft == 4 else "$id")
        if not isinstance(name, str) or (draft <= 7 and "$ref" in raw):
            return scope if draft == scope.draft else scope._replace(draft=draft)
        uri, fragment = urldefrag(name)
        if not uri and fragment:  # A plain-name anchor of the older drafts.
            return scope._replace(draft=draft)
        return Scope(urljoin(scope.uri, uri), raw, pointer, draft)

    def resolve(self, reference: str, scope: Scope, pointer: str) -> tuple[Any, Scope, str]:
        """The raw schema that a reference names, its scope, and its pointer."""
        uri, fragment = urldefrag(reference)
        if uri:
            scope = self._resource(urljoin(scope.uri, uri), reference, pointer)
        if not fragment:
            return scope.root, scope, scope.pointer
        fragment = unquote(fragment)
        if fragment.startswith("/"):
            return self._walk(scope, fragment, reference, pointer)
        self._index()
        found = self._anchors.get((scope.uri, fragment))
        if found is None:
            raise SchemaError(f"$ref {reference!r} names no anchor of this document.", pointer=pointer)
        return found

    def is_dynamic(self, reference: str, scope: Scope, keyword: str) -> bool:
        """Whether what a dynamic reference names depends on how one came there: several schemas have the anchor."""
        self._index()
        if keyword == "$recursiveRef":
            return scope.root.get("$recursiveAnchor") is True and self._dynamic.get("", 0) > 1
        return self._dynamic.get(urldefrag(reference)[1], 0) > 1

    def _walk(self, scope: Scope, fragment: str, reference: str, pointer: str) -> tuple[Any, Scope, str]:
        """Go down a JSON pointer, noticing ids on the way."""
        raw, place, base = scope.root, scope.pointer, scope
        for part in fragment[1:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            if raw is not scope.root and isinstance(raw, dict) and ("$id" in raw or "id" in raw):
                base = self.enter(raw, base, place)
            if isinstance(raw, dict) and name in raw:
                raw = raw[name]
            elif isinstance(raw, list) and name.isdecimal() and int(name) < len(raw):
                raw = raw[int(name)]
            else:
                raise SchemaError(f"$ref {reference!r} names nothing: there is no {name!r}.", pointer=pointer)
            place = f"{place}/{part}"
        return raw, base, place

    def _resource(self, uri: str, reference: str, pointer: str) -> Scope:
        if uri == self.main.uri:
            return self.main
        self._index()
        found = self._resources.get(uri) or self._resources.get(uri.rstrip("#"))
        if found is None:
            raise SchemaError(
                f"$ref {reference!r} names a document that is not at hand: {uri}",
                pointer=pointer,
                hint="Give it as registry={uri: schema}; constrain never fetches anything.",
            )
        return found

    def _index(self) -> None:
        """Find every id and anchor, of the document and of the registry."""
        if self._indexed:
            return
        self._indexed = True
        documents = [(self.main.root, self.main, "")]
        for uri, schema in self.registry.items():
            try:
                scope = self.enter(schema, Scope(uri, schema, uri + "#", 2020), uri + "#")
            except UnsupportedError:  # Of an older dialect: no harm unless something refers to it.
                continue
            self._resources.setdefault(uri, scope)
            self._resources.setdefault(scope.uri, scope)
            documents.append((schema, scope, uri + "#"))
        while documents:
            raw, scope, pointer = documents.pop()
            if not isinstance(raw, dict):
                continue
            if raw is not scope.root:
                scope = self.enter(raw, scope, pointer)
            if raw is scope.root:
                self._resources.setdefault(scope.uri, scope)
            for anchor in (raw.get("$dynamicAnchor"), "" if raw.get("$recursiveAnchor") is True else None):
                if isinstance(anchor, str):
                    self._dynamic[anchor] = self._dynamic.get(anchor, 0) + 1
            for anchor in anchors(raw, scope.draft):
                self._anchors.setdefault((scope.uri, anchor), (raw, scope, pointer))
            for tokens, child in children(raw, scope.draft):
                documents.append((child, scope, "/".join((pointer, *map(token, tokens)))))


def anchors(raw: dict[str, Any], draft: int) -> Iterator[str]:
    """The plain names of a schema."""
    if draft >= 2019:
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(raw.get(key), str):
                yield raw[key]
    else:
        name = raw.get("id" if draft == 4 else "$id")
        if isinstance(name, str) and "#" in name and urldefrag(name)[1]:
            yield urldefrag(name)[1]


def dialect(raw: dict[str, Any], inherited: int, pointer: str, registry: Mapping[str, Any]) -> int:
    """The dialect that `$schema` names. SchemaError if it is not a string, UnsupportedError for draft 3 and older, and
    for a meta-schema of the registry that chooses its own vocabularies."""
    name = raw.get("$schema")
    if name is None:
        return inherited
    if not isinstance(name, str):
        raise SchemaError("$schema must be a string.", pointer=pointer + "/$schema")
    name = name.removesuffix("#")
    if name in UNREAD:
        raise UnsupportedError("Drafts before 4 are not supported.", pointer=pointer + "/$schema")
    if name not in DIALECTS and "$vocabulary" in (registry.get(name) or ()):
        raise UnsupportedError("A meta-schema with vocabularies of its own.", pointer=pointer + "/$schema")
    return DIALECTS.get(name, 2020)
