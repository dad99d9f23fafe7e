"""Find all errors of a schema, not only the first error of `to_grammar`.

The parser continues after an error: the fault is recorded, and the keyword is treated as one that asserts nothing.
Subschemas that nothing refers to are parsed last, since their faults are harmless and are reported separately.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ....base.errors import ConstrainError, SchemaError, UnsupportedError
from ....base.json_documents import load_document, pointer_token
from ....base.options import Limits, Style
from ..core.dialects import Scope
from ..core.keyword_context import SKIP, KeywordContext
from ..core.schema_sets import ANY, SchemaSet
from ..reading.keywords import Keyword, iterate_subschemas
from ..reading.schema_parser import UnsharedSchemaParser

__all__ = ["SchemaFault", "find_faults"]


class SchemaFault(NamedTuple):
    """One error. reached: whether the schema that contains it can ever validate a value."""

    error: SchemaError | UnsupportedError
    reached: bool


def find_faults(
    schema: dict[str, Any] | bool | str,
    *,
    style: Style = Style(),
    registry: Mapping[str, Any] | None = None,
    limits: Limits = Limits(),
) -> list[SchemaFault]:
    """Return all faults of the keywords, those that prevent compiling first; [] if every keyword can be parsed.

    Raise SchemaError if the document itself is not JSON or not a schema. Contradictions between keywords and exceeded
    budgets are not faults of a keyword; `to_grammar` raises them.
    """
    document = load_document(schema, limits)
    try:
        reader = FaultCollector(document, registry, style, limits)
    except ConstrainError as error:  # error of the document itself, such as an unsupported dialect
        if not isinstance(error, (SchemaError, UnsupportedError)):
            raise
        return [SchemaFault(error, True)]
    reached = len(reader.errors)
    reader.parse_unreferenced(document)
    seen: dict[tuple[str | None, str], SchemaFault] = {}
    for number, errors in enumerate(reader.errors):
        seen.setdefault((errors.pointer, errors.cause), SchemaFault(errors, number < reached))
    return list(seen.values())


class FaultCollector(UnsharedSchemaParser):
    """A parser that records errors and continues."""

    def __init__(self, document: Any, registry: Mapping[str, Any] | None, style: Style, limits: Limits) -> None:
        self.errors: list[SchemaError | UnsupportedError] = []
        super().__init__(document, registry, style, limits)

    def read(self) -> None:
        """Parse the keywords of every node in the queue."""
        while self._queue:
            node = self._queue.popleft()
            assert node.unparsed is not None
            keywords: list[tuple[Keyword, Any]]
            keywords, scope = node.unparsed
            node.unparsed = None
            context = KeywordContext(self, node, scope)
            for keyword, value in keywords:
                try:
                    errors = keyword.parse(context, keyword.name, value)
                except (SchemaError, UnsupportedError) as error:
                    self.errors.append(error)
                    continue
                if errors is not SKIP:
                    node.keywords[keyword.field] = errors

    def parse_subschema(self, raw: Any, scope: Scope, pointer: str) -> SchemaSet:
        """Return the set of a subschema; ANY if it is not a schema."""
        try:
            return super().parse_subschema(raw, scope, pointer)
        except (SchemaError, UnsupportedError) as error:
            self.errors.append(error)
            return ANY

    def parse_unreferenced(self, document: Any) -> None:
        """Parse what nothing refers to."""
        todo: list[tuple[Any, Scope, str]] = [(document, self.references.main, "")]
        while todo:
            raw, scope, pointer = todo.pop()
            self.parse_subschema(raw, scope, pointer)
            if isinstance(raw, dict):
                try:
                    scope = self.references.enter(raw, scope, pointer)
                except (SchemaError, UnsupportedError):  # recorded by `parse_subschema`
                    continue
                below = [
                    (child, scope, "/".join((pointer, *map(pointer_token, path))))
                    for path, child in iterate_subschemas(raw, scope.draft)
                    if not (path[0] == "dependencies" and isinstance(child, list))  # names of keys, no schema
                ]
                todo.extend(reversed(below))
        self.read()
