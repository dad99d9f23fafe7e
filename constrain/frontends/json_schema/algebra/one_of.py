"""`oneOf` and its complement: the values that exactly one branch allows, and all others.

"Exactly one" of n branches is a union of n conjunctions: each branch without those that it overlaps. Most branches are
disjoint by their types or by the constant of a key that all of them require, and cheap proofs of that come first; only
for the other pairs the algebra has to decide whether they share a value. Subtracting a branch that shares no value is
exact, too, so wherever that is not known the branch is subtracted.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ....automata.dfa import Dfa
from ....base.work import spend_work
from ..core.json_values import OBJECT, STRING, Constant
from ..core.schema_sets import NEVER, SchemaSet, intersect_sets
from ..core.static_types import StaticBound, are_disjoint
from ..core.subschema_table import Subschema
from ..shapes.schema_algebra import SchemaAlgebra
from ..shapes.shape import NOTHING, Shape
from ..strings import string_sets
from ..strings.string_sets import StringCase
from .formulas import ExactlyOneOf
from .shape_operations import (
    complement_shape,
    count_widest_part,
    intersect_shapes,
    unite_overlapping_shapes,
    unite_shapes,
)
from .value_keywords import UNEVALUATED

__all__ = ["OneOfLiteral", "find_one_of", "unfold_not_one_of", "unfold_one_of"]

REFERENCES = frozenset(("$ref", "$dynamicRef"))
"""The keywords that a subschema which is nothing but a reference has one of."""

MANY_BRANCHES = 8
"""Branches of `oneOf` with texts beyond which one automaton counts how many of them hold."""


class OneOfLiteral(NamedTuple):
    """A literal of a set that denotes a subschema with `oneOf`.

    literal: the number of that subschema, negative for its complement. given: the literal in the set, which may be a
    reference to it.
    """

    literal: int
    node: Subschema
    given: int


def find_one_of(literal: int, algebra: SchemaAlgebra) -> OneOfLiteral | None:
    """Return the subschema with `oneOf` that a literal denotes, through references; None if there is none."""
    given, seen = literal, set()
    while literal not in seen:
        seen.add(literal)
        node = algebra.nodes[abs(literal)]
        if node is None:  # NEVER
            break
        keywords = node.keywords
        if "oneOf" in keywords and keywords.keys().isdisjoint(UNEVALUATED):
            return OneOfLiteral(literal, node, given)
        if len(keywords) != 1 or REFERENCES.isdisjoint(keywords):
            break
        [schemas] = keywords.values()
        if len(schemas) != 1 or schemas == NEVER:
            break
        literal = schemas[0] if literal > 0 else -schemas[0]
    return None


def unfold_one_of(one_of: ExactlyOneOf, algebra: SchemaAlgebra) -> Shape:
    """Return the values of the context that exactly one branch allows."""
    alternatives: list[Shape] = []
    texts = _unite_texts_of_exactly_one(one_of, algebra)
    if texts is not None:
        alternatives.append(NOTHING._replace(strings=texts))
        one_of = ExactlyOneOf(algebra.intersect(one_of.context, algebra.non_string_set()), one_of.parts)
    context, branches = one_of
    overlaps = _find_overlaps(one_of, algebra)
    for position, branch in enumerate(branches):
        complements = [algebra.complement(branches[other]) for other in overlaps[position]]
        alternatives.append(_intersect_all(algebra.intersect(context, branch), complements, algebra))
    if any(overlaps):
        return unite_overlapping_shapes(alternatives, algebra)
    return unite_shapes(alternatives or [NOTHING])


def unfold_not_one_of(one_of: ExactlyOneOf, within: SchemaSet, algebra: SchemaAlgebra) -> Shape:
    """Return the values of the set `within` that are outside of the context, or in no branch, or in two at least."""
    texts = _unite_texts_of_exactly_one(one_of, algebra)
    if texts is not None:
        context = algebra.intersect(one_of.context, algebra.non_string_set())
        others = unfold_not_one_of(ExactlyOneOf(context, one_of.parts), within, algebra)
        complement = complement_shape(NOTHING._replace(strings=texts), algebra)
        complement = complement._replace(scalars=0, numbers=(), arrays=(), objects=())
        return others._replace(strings=intersect_shapes(complement, algebra.unfold(within), algebra=algebra).strings)
    context, branches = one_of
    shape = _intersect_all(within, [algebra.complement(branch) for branch in branches], algebra)
    overlaps = _find_overlaps(ExactlyOneOf(algebra.intersect(within, context), branches), algebra)
    pairs = [(one, other) for one in range(len(branches)) for other in overlaps[one] if one < other]
    outside = [algebra.unfold(algebra.intersect(within, algebra.complement(context)))] if context else []
    shared = (
        algebra.unfold(algebra.intersect(within, intersect_sets(branches[one], branches[other])))
        for one, other in pairs
    )
    return unite_overlapping_shapes([shape, *outside, *shared], algebra)


def _intersect_all(schemas: SchemaSet, others: list[SchemaSet], algebra: SchemaAlgebra) -> Shape:
    """Return the Shape of an intersection: as one set if `oneOf` is among the others, else Shape by Shape."""
    if any(find_one_of(literal, algebra) for other in others for literal in other):
        for other in others:
            schemas = algebra.intersect(schemas, other)
        return algebra.unfold(schemas)
    shapes = sorted(map(algebra.unfold, others), key=count_widest_part)  # Small ones first keep the products small.
    return intersect_shapes(algebra.unfold(schemas), *shapes, algebra=algebra)


def _unite_texts_of_exactly_one(one_of: ExactlyOneOf, algebra: SchemaAlgebra) -> tuple[StringCase, ...] | None:
    """Return the texts that exactly one of many branches allows, by one automaton; None if comparing pairs is better.

    Pairwise subtraction of n overlapping languages makes n automata of n factors; `Dfa.exactly_one_of` makes one.
    """
    context, branches = one_of
    if len(branches) <= MANY_BRANCHES:
        return None
    sets = [algebra.intersect(context, branch) for branch in branches]
    sets = [schemas for schemas in sets if algebra.bound_of(schemas).types & STRING]
    if sum(algebra.bound_of(schemas).values is None for schemas in sets) <= MANY_BRANCHES:
        return None
    unions = [algebra.unfold(schemas).strings for schemas in sets]
    if sum(any(case.values is None for case in union) for union in unions) <= MANY_BRANCHES:
        return None
    if any(algebra.languages.irregular(case.lang) for union in unions for case in union):
        return None
    most = algebra.limits.dfa_states
    parts = [
        Dfa.union_of([string_sets.exact_string_dfa(case, algebra.languages) for case in union], max_states=most)
        for union in unions
    ]
    texts, overlapping = Dfa.exactly_one_of(parts, max_states=most)
    if not overlapping:  # Then lengths stay counters instead of being multiplied into the automaton.
        return tuple(dict.fromkeys(case for union in unions for case in union))
    return () if texts.is_empty else (StringCase(lang=frozenset(((True, "dfa", texts),))),)


def _find_overlaps(one_of: ExactlyOneOf, algebra: SchemaAlgebra) -> list[list[int]]:
    """Return for each branch, by index, the others that may share a value with it inside the context."""
    context, branches = one_of
    branches = tuple(algebra.intersect(context, branch) for branch in branches)
    out: list[list[int]] = [[] for _ in branches]
    spend_work(len(branches) ** 2 // 4, "a comparison of the branches of oneOf")
    bounds = [algebra.bound_of(branch) for branch in branches]
    tags = _find_discriminator_values(bounds, algebra)
    for one in range(len(branches)):
        for other in range(one):
            tags_of_one, tags_of_other = tags[one], tags[other]
            if tags_of_one is not None and tags_of_other is not None and tags_of_one.isdisjoint(tags_of_other):
                continue
            if are_disjoint(bounds[one], bounds[other]):
                continue
            if algebra.is_possible(intersect_sets(branches[one], branches[other])):
                out[one].append(other)
                out[other].append(one)
    return out


def _find_discriminator_values(bounds: list[StaticBound], algebra: SchemaAlgebra) -> list[frozenset[Constant] | None]:
    """Return the values of the discriminator in each branch, None if the branch does not require it or enumerate it.

    The discriminator is the key that most branches of objects require with enumerated values.
    """
    known = [
        {
            name: values
            for name, schemas in bound.required.items()
            if (values := algebra.bound_of(schemas).values) is not None
        }
        if bound.types == OBJECT
        else {}
        for bound in bounds
    ]
    counts = Counter(name for bound in known for name in bound)
    best = max(counts, key=counts.__getitem__, default="")
    return [bound.get(best) for bound in known]
