"""Check everything that can be reached, so that what is unsupported is refused at compile time.

Plain subschemas (`algebra.fast_checks`), in which nothing can be refused, are only passed through: they are unfolded
when they are written.
"""

from __future__ import annotations

from ..algebra.fast_checks import find_children
from ..algebra.shape_algebra import ShapeAlgebra
from ..arrays import array_items
from ..core.schema_sets import SchemaSet
from ..objects import object_derivatives

__all__ = ["check_reachable"]


def check_reachable(algebra: ShapeAlgebra, root: SchemaSet) -> set[SchemaSet]:
    """Return all sets that a value of the root can have inside. Raise what is unsupported in any of them."""
    seen: set[SchemaSet] = {root}
    todo = [root]
    while todo:
        schemas = todo.pop()
        found = find_children(schemas, algebra.nodes)
        if found is None:
            found = _inside(schemas, algebra)
        else:
            found = [other for other in found if other not in seen and algebra.is_satisfiable(other)]
        for other in found:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def _inside(schemas: SchemaSet, algebra: ShapeAlgebra) -> list[SchemaSet]:
    """Return the sets inside a set that is unfolded."""
    shape = algebra.normalise(schemas)
    found: list[SchemaSet] = []
    for array in shape.arrays:
        found += array_items.list_item_sets(array, algebra)
    for normalised in shape.objects:
        if isinstance(normalised, object_derivatives.ClausalObject):
            found += object_derivatives.list_clausal_children(normalised)
            continue
        found += [other for _, other in normalised.names]
        found += [other for _, other in (*normalised.cells, *normalised.classes)]
    return found
