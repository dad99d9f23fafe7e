"""Everything that is wrong with a schema, not only the first: what `to_grammar` would raise if the rest were right.

A Reader that goes on. Where a keyword's value is not what it must be, the fault is noted and the keyword taken for
one that asserts nothing. Subschemas that nothing refers to are read too, after all others: they do no harm, so what is
wrong in them is told apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ....base.errors import ConstrainError, SchemaError, UnsupportedError
from ....base.json_documents import load_document, pointer_token
from ....base.options import Limits, Style
from ..core.dialects import Scope
from ..core.keyword_place import SKIP, KeywordPlace
from ..core.schema_sets import ANY, SchemaSet
from ..reading.keywords import Keyword, iterate_subschemas
from ..reading.schema_parser import UnsharedSchemaParser

__all__ = ["SchemaFault", "find_faults"]


class SchemaFault(NamedTuple):
    """One thing that is wrong. reached: whether a value is ever held against the schema that it stands in."""

    error: SchemaError | UnsupportedError
    reached: bool


def find_faults(
    schema: dict[str, Any] | bool | str,
    *,
    style: Style = Style(),
    registry: Mapping[str, Any] | None = None,
    limits: Limits = Limits(),
) -> list[SchemaFault]:
    """All faults of the keywords, those first that hinder compiling; [] if every keyword can be read.

    SchemaError if the document itself is none, as JSON or as a schema. What only shows when keywords are combined
    (that nothing satisfies them, that a budget is spent) is no fault of a keyword, and `to_grammar` says it.
    """
    document = load_document(schema, limits)
    try:
        reader = FaultCollector(document, registry, style, limits)
    except ConstrainError as error:  # of the document itself, such as a dialect that is not read
        if not isinstance(error, (SchemaError, UnsupportedError)):
            raise
        return [SchemaFault(error, True)]
    reached = len(reader.found)
    reader.rest(document)
    seen: dict[tuple[str | None, str], SchemaFault] = {}
    for number, found in enumerate(reader.found):
        seen.setdefault((found.pointer, found.cause), SchemaFault(found, number < reached))
    return list(seen.values())


class FaultCollector(UnsharedSchemaParser):
    """A Reader that notes what is wrong and reads on."""

    def __init__(self, document: Any, registry: Mapping[str, Any] | None, style: Style, limits: Limits) -> None:
        self.found: list[SchemaError | UnsupportedError] = []
        super().__init__(document, registry, style, limits)

    def read(self) -> None:
        """Read every node that is waiting, and those that they refer to."""
        while self._queue:
            node = self._queue.popleft()
            assert node.unparsed is not None
            live: list[tuple[Keyword, Any]]
            live, scope = node.unparsed
            node.unparsed = None
            place = KeywordPlace(self, node, scope)
            for keyword, value in live:
                try:
                    found = keyword.parse(place, keyword.name, value)
                except (SchemaError, UnsupportedError) as error:
                    self.found.append(error)
                    continue
                if found is not SKIP:
                    node.keywords[keyword.field] = found

    def parse_subschema(self, raw: Any, scope: Scope, pointer: str) -> SchemaSet:
        """The literal set of a subschema; any value, if it is none."""
        try:
            return super().parse_subschema(raw, scope, pointer)
        except (SchemaError, UnsupportedError) as error:
            self.found.append(error)
            return ANY

    def rest(self, document: Any) -> None:
        """Read what nothing refers to."""
        todo: list[tuple[Any, Scope, str]] = [(document, self.library.main, "")]
        while todo:
            raw, scope, pointer = todo.pop()
            self.parse_subschema(raw, scope, pointer)
            if isinstance(raw, dict):
                try:
                    scope = self.library.enter(raw, scope, pointer)
                except (SchemaError, UnsupportedError):  # noted by `schemas`
                    continue
                below = [
                    (child, scope, "/".join((pointer, *map(pointer_token, path))))
                    for path, child in iterate_subschemas(raw, scope.draft)
                    if not (path[0] == "dependencies" and isinstance(child, list))  # names of keys, no schema
                ]
                todo.extend(reversed(below))
        self.read()
