"""Everything that can be reached is looked at once, so that what is refused is refused at compile time."""

from __future__ import annotations

from ..algebra.algebra import Algebra
from ..algebra.literals import Lits
from ..arrays import items

__all__ = ["survey"]


def survey(algebra: Algebra, root: Lits) -> set[Lits]:
    """All literal sets that a value of the root can have inside; raises what is unsupported in any of them."""
    seen: set[Lits] = {root}
    todo = [root]
    while todo:
        shape = algebra.live(todo.pop())
        found: list[Lits] = []
        for array in shape.arrays:
            found += items.children(array, algebra)
        for settled in shape.objects:
            found += [lits for _, lits in settled.names]
            found += [lits for _, lits in (*settled.cells, *settled.classes)]
        for lits in found:
            if lits not in seen:
                seen.add(lits)
                todo.append(lits)
    return seen
