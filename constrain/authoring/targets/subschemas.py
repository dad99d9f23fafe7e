"""The subschemas of a document, with the properties that the conditions of a table test: location, types, references.

Only the schema positions of the dialect are searched, so that an `enum` value or a property named "type" is not taken
for a keyword. `$ref` is followed inside the document, to determine which references are recursive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Union

from ...base.cached_property import cached_property
from ...base.errors import ConstrainError
from ...base.json_documents import load_document, pointer_token
from ...frontends.json_schema.core.dialects import Scope
from ...frontends.json_schema.reading.keywords import iterate_subschemas
from ...frontends.json_schema.reading.schema_references import ReferenceResolver

__all__ = ["Document", "LocatedSubschema"]


Step = tuple[Union[str, int], ...]


class LocatedSubschema:
    """One subschema.

    raw: its source, an object or a boolean. pointer: its location. enclosing: the enclosing subschema, or None at the
    root. step: the reference tokens that lead here from the holder, such as ("properties", "a").
    """

    __slots__ = ("document", "enclosing", "pointer", "raw", "scope", "step")

    def __init__(
        self,
        document: Document,
        raw: Any,
        scope: Scope,
        pointer: str,
        enclosing: LocatedSubschema | None,
        step: tuple[str | int, ...],
    ) -> None:
        self.document = document
        self.raw = raw
        self.scope = scope
        self.pointer = pointer
        self.enclosing = enclosing
        self.step = step

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a keyword."""
        return self.raw.get(name, default) if isinstance(self.raw, dict) else default

    def has(self, *names: str) -> bool:
        """Return whether any of the keywords is present."""
        return isinstance(self.raw, dict) and any(name in self.raw for name in names)

    @property
    def types(self) -> frozenset[str]:
        """The types that `type` names; empty if it is absent."""
        given = self.get("type", ())
        return frozenset((given,) if isinstance(given, str) else [name for name in given if isinstance(name, str)])

    @property
    def is_object(self) -> bool:
        """Whether it explicitly describes objects."""
        return "object" in self.types or self.has("properties", "required", "additionalProperties")

    @property
    def is_root(self) -> bool:
        """Whether it is the root of the document."""
        return self.enclosing is None

    @property
    def is_recursive(self) -> bool:
        """Whether its `$ref` leads back to an enclosing schema."""
        return self.pointer in self.document.recursive

    @property
    def is_required(self) -> bool:
        """Whether the property that it is, or is part of, is required; true where there is no property."""
        subschema: LocatedSubschema | None = self
        while subschema is not None and subschema.enclosing is not None:
            if subschema.step[0] == "properties":
                return subschema.step[-1] in subschema.enclosing.get("required", ())
            if subschema.step[0] in ("$defs", "definitions"):
                return True
            subschema = subschema.enclosing
        return True

    @property
    def depth(self) -> int:
        """Number of enclosing objects, itself included."""
        count, subschema = 0, self
        while subschema is not None:
            count += subschema.is_object
            subschema = subschema.enclosing  # type: ignore[assignment]
        return count


class Document:
    """A schema document and all its subschemas, in source order.

    Raise SchemaError if it is neither an object nor a boolean, or not JSON.
    """

    def __init__(self, schema: dict[str, Any] | bool | str, registry: Mapping[str, Any] | None = None) -> None:
        self.root = load_document(schema)
        self.library = ReferenceResolver(self.root, registry)
        self.subschemas: list[LocatedSubschema] = list(self._walk())

    def _walk(self) -> Iterator[LocatedSubschema]:
        stack = [LocatedSubschema(self, self.root, self.library.main, "", None, ())]
        while stack:
            subschema = stack.pop()
            if not subschema.is_root:
                subschema.scope = self.library.enter(subschema.raw, subschema.scope, subschema.pointer)
            yield subschema
            if isinstance(subschema.raw, dict):
                children = [
                    LocatedSubschema(
                        self,
                        raw,
                        subschema.scope,
                        "/".join((subschema.pointer, *map(pointer_token, step))),
                        subschema,
                        step,
                    )
                    for step, raw in iterate_subschemas(subschema.raw, subschema.scope.draft)
                ]
                stack.extend(reversed(children))

    @cached_property
    def recursive(self) -> frozenset[str]:
        """Pointers of the subschemas whose `$ref` is part of a cycle."""
        edges: dict[str, list[str]] = {subschema.pointer: [] for subschema in self.subschemas}
        named: list[tuple[str, str]] = []
        for subschema in self.subschemas:
            if subschema.enclosing is not None and subschema.step[0] not in ("$defs", "definitions"):
                edges[subschema.enclosing.pointer].append(subschema.pointer)
            reference = subschema.get("$ref")
            if isinstance(reference, str):
                try:
                    target = self.library.resolve(reference, subschema.scope, subschema.pointer)[2]
                except ConstrainError:
                    continue
                edges[subschema.pointer].append(target)
                named.append((subschema.pointer, target))
        children = {target: collect_reachable(edges, target) for target in {target for _, target in named}}
        return frozenset(pointer for pointer, target in named if pointer in children[target])


def collect_reachable(edges: Mapping[str, list[str]], start: str) -> set[str]:
    """Return all nodes that can be reached, the start included."""
    seen, stack = {start}, [start]
    while stack:
        for target in edges.get(stack.pop(), ()):
            if target not in seen:
                seen.add(target)
                stack.append(target)
    return seen
