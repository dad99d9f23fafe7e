"""Find parts of a schema that nothing satisfies, although the schema can be satisfied.

A property with an unsatisfiable schema can never be written, an unsatisfiable branch never taken. That is not an error,
and sometimes intended (`false`), but more often it is a mistake that nothing else shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....base.errors import ConstrainError
from ....base.json_documents import load_document
from ....base.options import Limits, Style
from ..algebra.shape_algebra import CircularSchema, ShapeAlgebra
from ..reading.schema_parser import UnsharedSchemaParser

__all__ = ["find_unsatisfiable_parts"]


def find_unsatisfiable_parts(
    schema: dict[str, Any] | bool | str,
    *,
    style: Style = Style(),
    registry: Mapping[str, Any] | None = None,
    limits: Limits = Limits(),
) -> list[str]:
    """Return the pointers of the unsatisfiable subschemas, sorted; of nested ones the innermost.

    Only those that can be reached and that have keywords; `false` is not reported. Raises the exceptions of
    `to_grammar`, except UnsatisfiableError.
    """
    reader = UnsharedSchemaParser(load_document(schema, limits), registry, style, limits)
    algebra = ShapeAlgebra(reader, style, limits)
    empty: list[str] = []
    for node in list(reader.nodes):  # The algebra adds nodes with fewer keywords under the same pointers.
        if node is None or node.pointer is None or not node.keywords:
            continue
        try:
            possible = algebra.is_satisfiable((node.number,))
        except (
            ConstrainError,
            CircularSchema,
        ):  # taken alone it may be unsupported; then nothing is known
            continue
        if not possible:
            empty.append(node.pointer)
    around = {"/".join(parts[:n]) for parts in (pointer.split("/") for pointer in empty) for n in range(len(parts))}
    return sorted(dict.fromkeys(pointer for pointer in empty if pointer not in around))
