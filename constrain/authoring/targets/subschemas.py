"""The subschemas of a document, with the properties that the conditions of a table test: location, types, references.

Only the schema positions of the dialect are searched, so that an `enum` value or a property named "type" is not taken
for a keyword. `$ref` is followed inside the document, to determine which references are recursive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Union

from ...base.errors import ConstrainError
from ...base.json_documents import load_document, pointer_token
from ...frontends.json_schema.core.dialects import Scope
from ...frontends.json_schema.reading.keywords import iterate_subschemas
from ...frontends.json_schema.reading.schema_references import ReferenceResolver

__all__ = ["Document", "DocumentPart"]


Step = tuple[Union[str, int], ...]


class DocumentPart:
    """One subschema.

    raw: its source, an object or a boolean. pointer: its location. holder: the enclosing subschema, or None at the
    root. step: the reference tokens that lead here from the holder, such as ("properties", "a").
    """

    __slots__ = ("document", "holder", "pointer", "raw", "scope", "step")

    def __init__(
        self,
        document: Document,
        raw: Any,
        scope: Scope,
        pointer: str,
        holder: DocumentPart | None,
        step: tuple[str | int, ...],
    ) -> None:
        self.document = document
        self.raw = raw
        self.scope = scope
        self.pointer = pointer
        self.holder = holder
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
        """Whether it is the whole document."""
        return self.holder is None

    @property
    def is_recursive(self) -> bool:
        """Whether its `$ref` leads back to an enclosing schema."""
        return self.pointer in self.document.recursive

    @property
    def is_required(self) -> bool:
        """Whether the property that it is, or is part of, is required; true where there is no property."""
        place: DocumentPart | None = self
        while place is not None and place.holder is not None:
            if place.step[0] == "properties":
                return place.step[-1] in place.holder.get("required", ())
            if place.step[0] in ("$defs", "definitions"):
                return True
            place = place.holder
        return True

    @property
    def depth(self) -> int:
        """Number of enclosing objects, itself included."""
        count, place = 0, self
        while place is not None:
            count += place.is_object
            place = place.holder  # type: ignore[assignment]
        return count


class Document:
    """A schema document and all its subschemas, in source order.

    Raise SchemaError if it is neither an object nor a boolean, or not JSON.
    """

    def __init__(self, schema: dict[str, Any] | bool | str, registry: Mapping[str, Any] | None = None) -> None:
        self.root = load_document(schema)
        self.library = ReferenceResolver(self.root, registry)
        self.places: list[DocumentPart] = list(self._walk())

    def _walk(self) -> Iterator[DocumentPart]:
        todo = [DocumentPart(self, self.root, self.library.main, "", None, ())]
        while todo:
            place = todo.pop()
            if not place.is_root:
                place.scope = self.library.enter(place.raw, place.scope, place.pointer)
            yield place
            if isinstance(place.raw, dict):
                below = [
                    DocumentPart(
                        self, raw, place.scope, "/".join((place.pointer, *map(pointer_token, step))), place, step
                    )
                    for step, raw in iterate_subschemas(place.raw, place.scope.draft)
                ]
                todo.extend(reversed(below))

    @cached_property
    def recursive(self) -> frozenset[str]:
        """Pointers of the subschemas whose `$ref` is part of a cycle."""
        edges: dict[str, list[str]] = {place.pointer: [] for place in self.places}
        named: list[tuple[str, str]] = []
        for place in self.places:
            if place.holder is not None and place.step[0] not in ("$defs", "definitions"):
                edges[place.holder.pointer].append(place.pointer)
            reference = place.get("$ref")
            if isinstance(reference, str):
                try:
                    target = self.library.resolve(reference, place.scope, place.pointer)[2]
                except ConstrainError:
                    continue
                edges[place.pointer].append(target)
                named.append((place.pointer, target))
        below = {target: collect_reachable(edges, target) for target in {target for _, target in named}}
        return frozenset(pointer for pointer, target in named if pointer in below[target])


def collect_reachable(edges: Mapping[str, list[str]], start: str) -> set[str]:
    """Return all nodes that can be reached, the start included."""
    seen, todo = {start}, [start]
    while todo:
        for target in edges.get(todo.pop(), ()):
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return seen
