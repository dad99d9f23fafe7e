"""Clauses of objects: unions of cases, in one case of each of which an object must be (`ObjectCase.clauses`).

A product of unions may have exponentially many cases, and sometimes no smaller union of cases is equal to it: "no key
that the list in another key names" needs one for each set of keys. So it is represented in conjunctive normal form,
simplified by unit propagation (`object_cases.propagate_units`). Satisfiability is decided by depth-first search with
unit propagation at each node (Davis, Logemann and Loveland 1962).
"""

from __future__ import annotations

from collections.abc import Iterator

from ....base.work import spend_work
from ..shapes.object_case import ObjectCase
from ..shapes.schema_algebra import SchemaAlgebra
from .object_cases import intersect_objects

__all__ = ["resolve_clauses"]


def resolve_clauses(case: ObjectCase, algebra: SchemaAlgebra) -> Iterator[ObjectCase]:
    """Yield cases without clauses that together are the objects of a case, found by a depth-first search."""
    stack = [case]
    while stack:
        case = stack.pop()
        spend_work(20, "a search for an object among alternatives")
        values = dict(case.names)
        if not all(algebra.is_satisfiable(values[name]) for name in case.required):
            continue
        if not case.clauses:
            yield case
            continue
        clause = min(case.clauses, key=len)
        bare = case._replace(clauses=tuple(other for other in case.clauses if other is not clause))
        for alternative in reversed(clause):
            product = intersect_objects(bare, alternative, algebra)
            if product is not None:
                stack.append(product)
