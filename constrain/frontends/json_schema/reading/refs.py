"""Which subschema a reference names: base URIs, anchors, pointers, dynamic scopes. Nothing is ever fetched.

A *scope* is the resource in which a subschema stands: its base URI, the raw schema at its root, the pointer to that
root for messages, and its dialect. `$id` (`id` in draft 4) opens a new one. Ids are looked for only at schema
positions of the dialect, and only when a reference needs more than a pointer into its own resource.

What a `$dynamicRef` names depends on the resources that one came through: of those that have the anchor, the first
counts (core specification, section 8.2.3.2). So a scope also says, for each dynamic anchor, which resource that was;
a subschema that is reached in two such ways is read as two. `$recursiveRef` of 2019-09 is the same with one nameless
anchor, which stands at roots.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from ....errors import SchemaError, UnsupportedError
from .constants import token
from .keywords import children
from .vocabularies import NEWEST, Dialect, dialect

__all__ = ["Found", "Library", "Scope", "token"]


class Scope(NamedTuple):
    """The resource in which a subschema stands.

    entered: (dynamic anchor, URI of the first resource with it on the way here), sorted; "" is the recursive anchor.
    """

    uri: str
    root: Any
    pointer: str
    dialect: Dialect
    entered: tuple[tuple[str, str], ...] = ()

    @property
    def draft(self) -> int:
        """4, 6, 7, 2019 or 2020."""
        return self.dialect.draft


class Found(NamedTuple):
    """What a reference names: a raw schema, the scope around it, and its pointer."""

    raw: Any
    scope: Scope
    pointer: str


class Library:
    """One document and its registry: what references may name. The drafts' own meta-schemas are always at hand."""

    def __init__(self, document: Any, registry: Mapping[str, Any] | None) -> None:
        self.registry = {urldefrag(uri)[0]: schema for uri, schema in (registry or {}).items()}
        self.main = self._open(document, Scope("", document, "", NEWEST), "")
        self._resources: dict[str, Scope] = {}
        self._anchors: dict[tuple[str, str], Found] = {}
        self._dynamic: dict[str, dict[str, Found]] = {}
        self._indexed = False

    # ---- scopes ------------------------------------------------------------------------------------------------

    def enter(self, raw: Any, scope: Scope, pointer: str) -> Scope:
        """The scope inside a schema that may have an id or a dialect of its own."""
        return scope if raw is scope.root else self._open(raw, scope, pointer)

    def _open(self, raw: Any, scope: Scope, pointer: str) -> Scope:
        if not isinstance(raw, dict):
            return scope
        spoken = dialect(raw, scope.dialect, pointer, self.registry)
        name = raw.get("id" if spoken.draft == 4 else "$id")
        if not isinstance(name, str) or (spoken.draft <= 7 and "$ref" in raw):
            return scope if spoken == scope.dialect else scope._replace(dialect=spoken)
        uri, fragment = urldefrag(name)
        if not uri and fragment:  # A plain-name anchor of the older drafts.
            return scope._replace(dialect=spoken)
        return Scope(urljoin(scope.uri, uri), raw, pointer, spoken, scope.entered)

    def enter_dynamically(self, raw: Any, scope: Scope, pointer: str) -> Scope:
        """The same, with the dynamic anchors of the resource noted that no resource before it had."""
        self._index()
        scope = self.enter(raw, scope, pointer)
        known = dict(scope.entered)
        fresh = self._dynamic.get(scope.uri, {}).keys() - known.keys()
        if not fresh:
            return scope
        return scope._replace(entered=tuple(sorted({**known, **dict.fromkeys(fresh, scope.uri)}.items())))

    # ---- references --------------------------------------------------------------------------------------------

    def resolve(self, reference: str, scope: Scope, pointer: str) -> Found:
        """What a reference names, whatever the way there."""
        uri, fragment = ("", reference[1:]) if reference[:1] == "#" else urldefrag(reference)
        if uri:
            scope = self._resource(urljoin(scope.uri, uri), reference, pointer)
        if not fragment:
            return Found(scope.root, scope, scope.pointer)
        fragment = unquote(fragment)
        if fragment.startswith("/"):
            return self._walk(scope, fragment, reference, pointer)
        self._index()
        found = self._anchors.get((scope.uri, fragment))
        if found is None:
            raise SchemaError(f"$ref {reference!r} names no anchor of this document.", pointer=pointer)
        return found

    def dynamic_anchor(self, reference: str, found: Found) -> str | None:
        """The anchor by which a dynamic reference goes on from what it names statically; None: it stays there."""
        raw = found.raw
        if not isinstance(raw, dict):
            return None
        if found.scope.draft == 2019:
            return "" if raw.get("$recursiveAnchor") is True else None
        anchor = unquote(urldefrag(reference)[1])
        return anchor if anchor and raw.get("$dynamicAnchor") == anchor else None

    def outermost(self, anchor: str, scope: Scope, found: Found) -> Found:
        """What has the dynamic anchor in the first resource on the way to `scope` that has it."""
        uri = dict(scope.entered).get(anchor)
        return found if uri is None else self._dynamic[uri][anchor]

    def _walk(self, scope: Scope, fragment: str, reference: str, pointer: str) -> Found:
        """Go down a JSON pointer, noticing ids on the way."""
        raw, place, base = scope.root, scope.pointer, scope
        for part in fragment[1:].split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            # Where a string is meant to be and is none, it is a map of schemas that has keys of these names.
            if isinstance(raw, dict) and (isinstance(raw.get("$id"), str) or isinstance(raw.get("id"), str)):
                base = self.enter(raw, base, place)
            if isinstance(raw, dict) and name in raw:
                raw = raw[name]
            elif isinstance(raw, list) and name.isdecimal() and int(name) < len(raw):
                raw = raw[int(name)]
            else:
                raise SchemaError(f"$ref {reference!r} names nothing: there is no {name!r}.", pointer=pointer)
            place = f"{place}/{part}"
        return Found(raw, base, place)

    def _resource(self, uri: str, reference: str, pointer: str) -> Scope:
        if uri == self.main.uri:
            return self.main
        self._index()
        found = self._resources.get(uri) or self._resources.get(uri.rstrip("#"))
        if found is None:
            found = self._meta_schema(uri.rstrip("#"))
        if found is None:
            raise SchemaError(
                f"$ref {reference!r} names a document that is not at hand: {uri}",
                pointer=pointer,
                hint="Give it as registry={uri: schema}, on the command line --registry FILE; nothing is ever fetched.",
            )
        return found

    def _meta_schema(self, uri: str) -> Scope | None:
        """A meta-schema of a draft, or a part of one."""
        if not uri.startswith(("http://json-schema.org/", "https://json-schema.org/")):
            return None
        from jsonschema_specifications import REGISTRY

        if uri not in REGISTRY:
            return None
        self._add(uri, REGISTRY[uri].contents)
        return self._resources.get(uri)

    # ---- the index ---------------------------------------------------------------------------------------------

    def _index(self) -> None:
        """Find every id and anchor, of the document and of the registry."""
        if self._indexed:
            return
        self._indexed = True
        self._look_into(self.main.root, self.main, "")
        for uri, schema in self.registry.items():
            self._add(uri, schema)

    def _add(self, uri: str, schema: Any) -> None:
        """Find the ids and anchors of another document."""
        pointer = uri + "#"
        try:
            scope = self._open(schema, Scope(uri, schema, pointer, NEWEST), pointer)
        except UnsupportedError:  # Of an older dialect: no harm unless something refers to it.
            return
        self._resources.setdefault(uri, scope)
        self._look_into(schema, scope, pointer)

    def _look_into(self, document: Any, scope: Scope, pointer: str) -> None:
        todo = [(document, scope, pointer)]
        while todo:
            raw, scope, pointer = todo.pop()
            if not isinstance(raw, dict):
                continue
            scope = self.enter(raw, scope, pointer)
            found = Found(raw, scope, pointer)
            if raw is scope.root:
                self._resources.setdefault(scope.uri, scope)
                if scope.draft == 2019 and raw.get("$recursiveAnchor") is True:
                    self._dynamic.setdefault(scope.uri, {})[""] = found
            dynamic = raw.get("$dynamicAnchor") if scope.draft == 2020 else None
            if isinstance(dynamic, str):
                self._dynamic.setdefault(scope.uri, {}).setdefault(dynamic, found)
            for anchor in anchors(raw, scope.draft):
                self._anchors.setdefault((scope.uri, anchor), found)
            for tokens, child in children(raw, scope.draft):
                todo.append((child, scope, "/".join((pointer, *map(token, tokens)))))


def anchors(raw: dict[str, Any], draft: int) -> list[str]:
    """The plain names that a schema gives itself."""
    if draft <= 7:
        name = raw.get("id" if draft == 4 else "$id")
        fragment = urldefrag(name)[1] if isinstance(name, str) and "$ref" not in raw else ""
        return [fragment] if fragment else []
    names = (raw.get("$anchor"), raw.get("$dynamicAnchor") if draft == 2020 else None)
    return [name for name in names if isinstance(name, str)]
