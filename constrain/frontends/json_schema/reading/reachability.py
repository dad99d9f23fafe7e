"""What can be reached is looked at once, so that what is refused is refused at compile time.

Subschemas in which nothing can be refused (`plain`) are only passed through: they are unfolded when they are written.
"""

from __future__ import annotations

from ..algebra.schema_sets import Lits
from ..algebra.shape_algebra import Algebra
from ..arrays import array_items
from ..objects import object_derivatives
from .fast_checks import inside

__all__ = ["survey"]


def survey(algebra: Algebra, root: Lits) -> set[Lits]:
    """All literal sets that a value of the root can have inside; raises what is unsupported in any of them."""
    seen: set[Lits] = {root}
    todo = [root]
    while todo:
        lits = todo.pop()
        found = inside(lits, algebra.nodes)
        if found is None:
            found = _inside(lits, algebra)
        else:
            found = [other for other in found if other not in seen and algebra.nonempty(other)]
        for other in found:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def _inside(lits: Lits, algebra: Algebra) -> list[Lits]:
    """The sets inside a set that is unfolded."""
    shape = algebra.live(lits)
    found: list[Lits] = []
    for array in shape.arrays:
        found += array_items.children(array, algebra)
    for settled in shape.objects:
        if isinstance(settled, object_derivatives.Factored):
            found += object_derivatives.children(settled)
            continue
        found += [other for _, other in settled.names]
        found += [other for _, other in (*settled.cells, *settled.classes)]
    return found
