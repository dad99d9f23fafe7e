"""`unevaluatedProperties`, `unevaluatedItems`: which keys and items the other keywords evaluate, case by case.

What is evaluated depends on which branches hold (JSON Schema 2020-12, core, 11.2 and 11.3; 7.7.1 on annotations). An
`EvaluationCase` is a condition (a set) and what is evaluated at least when it holds; the cases of a schema cover its
values. More evaluated means less forbidden, so a branch that holds may be ignored: cases need no complements and may
overlap, and the keyword is the union over the cases of "the condition, and what this case leaves unevaluated is in the
set".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ....base.errors import LimitError
from ..core.json_values import OBJECT
from ..core.schema_sets import ANY, NEVER, SchemaSet
from ..core.subschema_table import Subschema
from ..shapes.schema_algebra import SchemaAlgebra

__all__ = [
    "NOTHING_EVALUATED",
    "Evaluated",
    "EvaluationCase",
    "find_evaluated_items",
    "find_evaluated_keys",
    "find_evaluation_cases",
]


class Evaluated(NamedTuple):
    """What is evaluated: everything; or keys by name and pattern; or the first items and those in the sets."""

    everything: bool = False
    names: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    first: int = 0
    sets: frozenset[SchemaSet] = frozenset()

    def join(self, other: Evaluated) -> Evaluated:
        """Return what one of the two evaluates."""
        if self.everything or other.everything:
            return ALL_EVALUATED
        return Evaluated(
            False, self.names | other.names, self.patterns | other.patterns,
            max(self.first, other.first), self.sets | other.sets,
        )  # fmt: skip

    def covers(self, other: Evaluated) -> bool:
        """Return whether it evaluates all that the other does."""
        if self.everything or other.everything:
            return self.everything
        keys = self.names >= other.names and self.patterns >= other.patterns
        return keys and self.first >= other.first and self.sets >= other.sets


NOTHING_EVALUATED, ALL_EVALUATED = Evaluated(), Evaluated(True)


class EvaluationCase(NamedTuple):
    """Values of the set `condition`, of which at least `evaluated` is evaluated."""

    condition: SchemaSet
    evaluated: Evaluated


UNCONDITIONAL = [EvaluationCase(ANY, NOTHING_EVALUATED)]
"""The case without a condition: nothing need be evaluated."""


OwnEvaluation = Callable[[dict[str, Any], int], Evaluated]


def find_evaluated_keys(keywords: dict[str, Any], draft: int) -> Evaluated:
    """Return the keys that the keywords of a schema itself evaluate."""
    if "additionalProperties" in keywords or "unevaluatedProperties" in keywords:
        return ALL_EVALUATED
    return Evaluated(
        names=frozenset(keywords.get("properties", ())), patterns=frozenset(keywords.get("patternProperties", ()))
    )


def find_evaluated_items(keywords: dict[str, Any], draft: int) -> Evaluated:
    """Return the items that the keywords of a schema itself evaluate; `contains` does from 2020-12 on."""
    items = keywords.get("items", [])
    listed = isinstance(items, list)
    if "unevaluatedItems" in keywords or not listed or keywords.keys() >= {"items", "additionalItems"}:
        return ALL_EVALUATED
    first = len(items) or len(keywords.get("prefixItems", ()))
    sets = frozenset((keywords["contains"],)) if draft >= 2020 and "contains" in keywords else frozenset()
    return Evaluated(first=first, sets=sets)


def find_evaluation_cases(
    node: Subschema, keywords: dict[str, Any], own: OwnEvaluation, algebra: SchemaAlgebra, path: tuple[int, ...] = ()
) -> list[EvaluationCase]:
    """Return the evaluation cases of a schema with these keywords, given that it holds.

    path: the literals that lead to it.
    """

    def cases_within(schemas: SchemaSet) -> list[EvaluationCase]:
        """Return the cases of another schema for the same value, given that it holds."""
        cases = UNCONDITIONAL
        for literal in schemas if schemas != NEVER else ():
            inner = algebra.nodes[abs(literal)]
            assert inner is not None
            if literal > 0 and literal not in path:  # A schema within itself: the algebra refuses it as circular.
                inner_cases = find_evaluation_cases(inner, inner.keywords, own, algebra, (*path, literal))
                cases = combine_cases(cases, inner_cases, algebra, node)
        return cases

    def cases_if_holds(schemas: SchemaSet, *more: SchemaSet) -> list[EvaluationCase]:
        """Return the cases under the condition that a schema holds, and that others hold with it."""
        cases = [EvaluationCase(schemas, NOTHING_EVALUATED)]
        for condition in (schemas, *more):
            cases = combine_cases(cases, cases_within(condition), algebra, node)
        return cases

    out = [EvaluationCase(ANY, own(keywords, node.draft))]
    for field in ("$ref", "$dynamicRef"):
        out = combine_cases(out, cases_within(keywords.get(field, ANY)), algebra, node)
    for schemas in keywords.get("allOf", ()):
        out = combine_cases(out, cases_within(schemas), algebra, node)
    if "oneOf" in keywords:
        out = combine_cases(
            out, choose_branch([cases_if_holds(schemas) for schemas in keywords["oneOf"]]), algebra, node
        )
    if "if" in keywords:
        condition = cases_if_holds(keywords["if"], keywords.get("then", ANY))
        failed = [EvaluationCase(algebra.complement(keywords["if"]), NOTHING_EVALUATED)]
        out = combine_cases(
            out,
            choose_branch([condition, combine_cases(failed, cases_within(keywords.get("else", ANY)), algebra, node)]),
            algebra,
            node,
        )
    if "anyOf" in keywords:
        out = combine_cases(
            out,
            choose_branches([cases_if_holds(schemas) for schemas in keywords["anyOf"]], algebra, node),
            algebra,
            node,
        )
    for name, schemas in keywords.get("dependentSchemas", {}).items():
        present = algebra.table.add_derived(node, {"type": OBJECT, "required": (name,)})
        found = combine_cases(
            [EvaluationCase((present.number,), NOTHING_EVALUATED)], cases_within(schemas), algebra, node
        )
        out = combine_cases(out, choose_branch([found, UNCONDITIONAL]), algebra, node)
    return out


def choose_branch(branches: list[list[EvaluationCase]]) -> list[EvaluationCase]:
    """Return the cases of one of several branches; those that evaluate nothing become one case without a condition."""
    evaluating = [[case for case in branch if case.evaluated != NOTHING_EVALUATED] for branch in branches]
    evaluates_nothing = any(case.evaluated == NOTHING_EVALUATED for branch in branches for case in branch)
    return [
        *(UNCONDITIONAL if evaluates_nothing else ()),
        *(case for branch in evaluating for case in branch),
    ]


def choose_branches(
    branches: list[list[EvaluationCase]], algebra: SchemaAlgebra, node: Subschema
) -> list[EvaluationCase]:
    """Return the cases of at least one of several branches: any may be ignored, but not all at once."""
    out = UNCONDITIONAL
    for branch in branches:
        evaluating = [case for case in branch if case.evaluated != NOTHING_EVALUATED]
        if evaluating:
            out = combine_cases(out, [*UNCONDITIONAL, *evaluating], algebra, node)
    if all(case.evaluated != NOTHING_EVALUATED for branch in branches for case in branch):
        out = [case for case in out if case.evaluated != NOTHING_EVALUATED]
    return out


def combine_cases(
    one: Iterable[EvaluationCase], other: Iterable[EvaluationCase], algebra: SchemaAlgebra, node: Subschema
) -> list[EvaluationCase]:
    """Return the cases of a conjunction, without impossible ones and those that another one makes redundant."""
    if other is UNCONDITIONAL:
        return list(one)
    products = {
        EvaluationCase(algebra.intersect(a.condition, b.condition), a.evaluated.join(b.evaluated)): None
        for a in one
        for b in other
    }
    out: list[EvaluationCase] = []
    for case in products:
        if case.condition != NEVER and not any(_is_redundant(case, present) for present in out):
            out = [present for present in out if not _is_redundant(present, case)]
            out.append(case)
    if len(out) > SOME:
        out = [case for case in out if algebra.is_possible(case.condition)]
    if len(out) > algebra.limits.cases:
        raise LimitError(
            f"What is left unevaluated here depends on more than {algebra.limits.cases} cases.",
            pointer=node.pointer, hint="Raise Limits.cases, or write fewer alternatives that may hold together.",
        )  # fmt: skip
    return out


SOME = 8
"""Number of cases beyond which impossible ones are removed."""


def _is_redundant(case: EvaluationCase, other: EvaluationCase) -> bool:
    """Return whether the other case allows all that this one does."""
    return other.evaluated.covers(case.evaluated) and set(other.condition) <= set(case.condition)
