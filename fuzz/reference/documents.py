"""Resolve references between schemas: documents, base URIs, anchors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

__all__ = ["DIALECTS", "Documents", "Node", "UnresolvedReference"]

DIALECTS = (
    "http://json-schema.org/draft-04/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
NUMBERS = dict(zip(DIALECTS, (4, 6, 7, 2019, 2020)))
SCHEMAS = ("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
           "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties")  # fmt: skip
LISTS = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
MAPS = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")


class UnresolvedReference(LookupError):
    """A reference has no target."""


@dataclass(frozen=True)
class Node:
    """A schema with its context. resource: the base URI. draft: the number of the dialect."""

    schema: Any
    resource: str
    draft: int

    def child(self, schema: Any) -> Node:
        """Return a subschema as a node; one with an identifier begins a resource."""
        return enter_schema(schema, self.resource, self.draft)


def enter_schema(schema: Any, base: str, draft: int) -> Node:
    """Return a schema that is found below `base` as a node."""
    if isinstance(schema, dict):
        named = schema.get("$schema")
        draft = NUMBERS.get(named.rstrip("#"), draft) if isinstance(named, str) else draft
        own = schema.get("id" if draft == 4 else "$id")
        ref_alone = draft <= 7 and "$ref" in schema
        if isinstance(own, str) and not ref_alone and not own.startswith("#"):
            base = urldefrag(urljoin(base, own))[0]
    return Node(schema, base, draft)


class Documents:
    """All schemas to which a reference can refer, by URI."""

    def __init__(self, registry: Mapping[str, Any], dialect: str) -> None:
        self.draft = NUMBERS[dialect.rstrip("#")]
        self.registry = {uri.rstrip("#"): document for uri, document in registry.items()}
        self.resources: dict[str, Node] = {}
        self.anchors: dict[tuple[str, str], Node] = {}
        self.dynamic: set[tuple[str, str]] = set()

    def root(self, schema: Any) -> Node:
        """Enter the root schema."""
        return self.enter(schema, "")

    def enter(self, schema: Any, uri: str) -> Node:
        """Record all resources and anchors of the document at `uri`. Return its root."""
        root = enter_schema(schema, uri, self.draft)
        self.resources[uri] = root
        todo = [root]
        while todo:
            node = todo.pop()
            if isinstance(node.schema, dict):
                self.record(node)
                todo += [node.child(one) for one in list_subschemas(node.schema)]
        return root

    def record(self, node: Node) -> None:
        """Record the identifiers and anchors that a schema object declares."""
        schema = node.schema
        own = schema.get("id" if node.draft == 4 else "$id")
        if isinstance(own, str) and not (node.draft <= 7 and "$ref" in schema):
            if own.startswith("#"):
                self.anchors[node.resource, own[1:]] = node
            else:
                self.resources.setdefault(node.resource, node)
                fragment = urldefrag(own)[1]
                if fragment:
                    self.anchors[node.resource, fragment] = node
        if node.draft >= 2019:
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(schema.get(keyword), str):
                    self.anchors[node.resource, schema[keyword]] = node
            if isinstance(schema.get("$dynamicAnchor"), str):
                self.dynamic.add((node.resource, schema["$dynamicAnchor"]))

    def resolve(self, node: Node, reference: str) -> Node:
        """Return the target of a `$ref` in `node`. Raises UnresolvedReference."""
        if not isinstance(reference, str):
            raise UnresolvedReference(repr(reference))
        uri, fragment = urldefrag(urljoin(node.resource, reference))
        resource = self.resource(uri)
        fragment = unquote(fragment)
        if not fragment:
            return resource
        if not fragment.startswith("/"):
            found = self.anchors.get((resource.resource, fragment))
            if found is None:
                raise UnresolvedReference(reference)
            return found
        for part in fragment[1:].split("/"):
            resource = resolve_step(resource, part.replace("~1", "/").replace("~0", "~"), reference)
        return resource

    def resource(self, uri: str) -> Node:
        """Return the schema resource of a URI. Raises UnresolvedReference."""
        if uri not in self.resources:
            document = self.registry[uri] if uri in self.registry else load_metaschemas().get(uri)
            if document is None:
                raise UnresolvedReference(uri)
            self.enter(document, uri)
        return self.resources[uri]

    def resolve_dynamic(self, node: Node, reference: str, scope: tuple[str, ...]) -> Node:
        """Resolve a `$dynamicRef`: the outermost dynamic anchor of that name, if the reference first lands on one."""
        found = self.resolve(node, reference)
        name = urldefrag(reference)[1]
        if (found.resource, name) in self.dynamic:
            for resource in scope:
                if (resource, name) in self.dynamic:
                    return self.anchors[resource, name]
        return found

    def resolve_recursive(self, node: Node, scope: tuple[str, ...]) -> Node:
        """Resolve a `$recursiveRef`: the outermost of the resources in scope that all say `$recursiveAnchor`."""
        found = self.resolve(node, "#")
        if isinstance(found.schema, dict) and found.schema.get("$recursiveAnchor") is True:
            for resource in scope:
                outer = self.resources[resource]
                if isinstance(outer.schema, dict) and outer.schema.get("$recursiveAnchor") is True:
                    return outer
        return found


def resolve_step(node: Node, part: str, reference: str) -> Node:
    """Follow one step of a JSON pointer."""
    schema = node.schema
    if isinstance(schema, dict) and part in schema:
        return node.child(schema[part])
    if isinstance(schema, list) and part.isdigit() and int(part) < len(schema):
        return node.child(schema[int(part)])
    raise UnresolvedReference(reference)


def list_subschemas(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the subschemas of a schema object."""
    for keyword in SCHEMAS:
        if isinstance(schema.get(keyword), (dict, bool)):
            yield schema[keyword]
    for keyword in LISTS:
        if isinstance(schema.get(keyword), list):
            yield from schema[keyword]
    for keyword in MAPS:
        if isinstance(schema.get(keyword), dict):
            yield from (one for one in schema[keyword].values() if isinstance(one, (dict, bool)))


@lru_cache(maxsize=1)
def load_metaschemas() -> dict[str, Any]:
    """Return the published metaschemas by URI."""
    from jsonschema_specifications import REGISTRY

    from .validator import exact_value

    return {uri.rstrip("#"): exact_value(REGISTRY[uri].contents) for uri in REGISTRY}
