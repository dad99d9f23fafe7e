"""Check everything that can be reached, so that what is unsupported is refused at compile time.

Plain subschemas (`algebra.fast_checks`), in which nothing can be refused, are traversed without unfolding: that happens
when they are emitted.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..algebra.fast_checks import find_children
from ..algebra.shape_algebra import ShapeAlgebra
from ..arrays import array_items
from ..core.schema_sets import SchemaSet
from ..objects import object_derivatives

__all__ = ["check_reachable"]


def check_reachable(algebra: ShapeAlgebra, roots: Iterable[SchemaSet]) -> set[SchemaSet]:
    """Return all sets that a value of the roots can have inside. Raise what is unsupported in any of them.

    What is inside a plain subschema (`reading.document_inspection`) is not traversed.
    """
    worklist = list(dict.fromkeys(roots))
    seen: set[SchemaSet] = set(worklist)
    while worklist:
        schemas = worklist.pop()
        node = algebra.nodes[schemas[0]] if len(schemas) == 1 and schemas[0] > 0 else None
        if node is not None and node.is_plain:
            continue
        children = find_children(schemas, algebra.nodes)
        if children is None:
            children = _list_children(schemas, algebra)
        else:
            children = [other for other in children if other not in seen and algebra.is_satisfiable(other)]
        for other in children:
            if other not in seen:
                seen.add(other)
                worklist.append(other)
    return seen


def _list_children(schemas: SchemaSet, algebra: ShapeAlgebra) -> list[SchemaSet]:
    """Return the sets inside a set that is unfolded."""
    shape = algebra.normalise(schemas)
    children: list[SchemaSet] = []
    for array in shape.arrays:
        children += array_items.list_item_sets(array, algebra)
    for normalised in shape.objects:
        if isinstance(normalised, object_derivatives.ClausalObject):
            children += object_derivatives.list_clausal_children(normalised)
            continue
        children += [other for _, other in normalised.names]
        children += [other for _, other in (*normalised.cells, *normalised.classes)]
    return children
