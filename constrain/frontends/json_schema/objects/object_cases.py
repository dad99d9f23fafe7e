"""AND, OR and NOT of the objects that schemas allow (`shapes.object_case.ObjectCase`).

`object_keywords` makes cases of keywords, and `object_members.normalise_object` turns a case into cases without dead
ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....base.errors import LimitError
from ....base.work import spend_work
from ..core.schema_sets import ANY, NEVER, SchemaSet, is_subset_of
from ..shapes.object_case import ANY_OBJECT, NO_NAMES, Cell, ObjectCase
from ..shapes.schema_algebra import SchemaAlgebra
from ..strings.string_languages import ALL, Language, LanguageCache

__all__ = ["complement_object", "factor_unions", "intersect_objects", "propagate_units"]


def look_up_name(cells: Iterable[Cell], name: str, languages: LanguageCache) -> SchemaSet:
    """Return the set of the values of an undeclared name."""
    for lang, schemas in cells:
        if not lang or languages.accepts(lang, name):
            return schemas
    return NEVER


def intersect_objects(one: ObjectCase, other: ObjectCase, algebra: SchemaAlgebra) -> ObjectCase | None:
    """Return the objects of both cases; None if a required key has no value or the numbers of members exclude all."""
    low = max(one.low, other.low)
    high = one.high if other.high is None else other.high if one.high is None else min(one.high, other.high)
    required = one.required | other.required
    if high is not None and (low > high or len(required) > high):
        return None
    languages = algebra.languages
    spend_work(len(one.names) + len(other.names), "a product of objects")
    left, right = dict(one.names), dict(other.names)
    mentioned = frozenset(
        name for name in one.mentioned | other.mentioned
        if (name not in left or name in one.mentioned) and (name not in right or name in other.mentioned)
    )  # fmt: skip
    names: dict[str, SchemaSet] = {}
    for name in left | right:
        one_value, other_value = left.get(name), right.get(name)
        if one_value is None:
            one_value = look_up_name(one.cells, name, languages)
        if other_value is None:
            other_value = look_up_name(other.cells, name, languages)
        names[name] = schemas = algebra.intersect(one_value, other_value)
        if schemas == NEVER and name in required:
            return None
    cells = _intersect_cells(one.cells, other.cells, algebra)
    needs = dict(one.needs)
    for name, needed in other.needs:
        needs[name] = needs.get(name, NO_NAMES) | needed
    existentials = tuple(dict.fromkeys(one.existentials + other.existentials))
    case = ObjectCase(tuple(names.items()), required, mentioned, cells, low, high, tuple(needs.items()), existentials)
    clauses = tuple(dict.fromkeys(one.clauses + other.clauses))
    return propagate_units(case._replace(clauses=clauses), algebra) if clauses else case


def factor_unions(unions: list[tuple[ObjectCase, ...]], algebra: SchemaAlgebra) -> ObjectCase | None:
    """Return the product of unions as one case with clauses, without multiplying out; None if it is obviously empty."""
    names = dict.fromkeys(name for union in unions for one in union for name, _ in one.names)
    # Keys keep the order in which the unions name them.
    case: ObjectCase | None = ObjectCase(tuple((name, ANY) for name in names), mentioned=frozenset(names))
    for union in unions:
        if case is not None and len(union) == 1:
            case = intersect_objects(case, union[0], algebra)
    if case is None or () in unions:
        return None
    clauses = tuple(dict.fromkeys(union for union in unions if len(union) > 1))
    return propagate_units(case._replace(clauses=tuple(dict.fromkeys(case.clauses + clauses))), algebra)


def drop_excluded_cases(
    unions: list[tuple[ObjectCase, ...]], case: ObjectCase, algebra: SchemaAlgebra
) -> list[tuple[ObjectCase, ...]]:
    """Return the unions without the cases that their factored product (`factor_unions`) excludes or entails."""
    bare = case._replace(clauses=())
    names = dict(bare.names)
    out: list[tuple[ObjectCase, ...]] = []
    for union in unions:
        possible = tuple(alternative for alternative in union if not _excludes(bare, names, alternative, algebra))
        if len(possible) < 2 or _possible_cases(bare, possible, algebra) is not None:
            out.append(possible)
    return out


def propagate_units(case: ObjectCase, algebra: SchemaAlgebra) -> ObjectCase | None:
    """Return the case after unit propagation: clauses with one possible case become conjuncts (Davis and Putnam 1960).

    None if some clause has no possible case. `unchanged` counts the clauses inspected since the last change; when all
    have been inspected, a fixpoint is reached.
    """
    clauses = list(case.clauses)
    bare = case._replace(clauses=())
    index = unchanged = 0
    while clauses and unchanged < len(clauses):
        index %= len(clauses)
        possible = _possible_cases(bare, clauses[index], algebra)
        if possible is None:
            clauses.pop(index)
            continue
        if not possible:
            return None
        if len(possible) == 1:
            clauses.pop(index)
            clauses += [clause for clause in possible[0].clauses if clause not in clauses]
            product = intersect_objects(bare, possible[0]._replace(clauses=()), algebra)
            if product is None:
                return None
            bare, unchanged = product, 0
            continue
        clauses[index] = possible
        index, unchanged = index + 1, unchanged + 1
    return bare._replace(clauses=tuple(dict.fromkeys(clauses)))


def _possible_cases(
    bare: ObjectCase, clause: tuple[ObjectCase, ...], algebra: SchemaAlgebra
) -> tuple[ObjectCase, ...] | None:
    """Return the cases of a clause that are compatible with a case; None if the case implies the clause."""
    names = dict(bare.names)
    possible = []
    for alternative in clause:
        if (
            not alternative.clauses
            and _is_contained(bare, names, alternative)
            and alternative.required <= bare.required
        ):
            return None
        if not _excludes(bare, names, alternative, algebra):
            possible.append(alternative)
    return tuple(possible)


def _excludes(case: ObjectCase, names: dict[str, SchemaSet], other: ObjectCase, algebra: SchemaAlgebra) -> bool:
    """Return whether some single key shows that two cases share no object. names: those of the first case."""
    low = max(case.low, other.low)
    if any(high is not None and low > high for high in (case.high, other.high)):
        return True
    languages = algebra.languages
    spend_work(1 + len(other.names), "a product of objects")
    for name, schemas in other.names:
        if name in case.required or name in other.required:
            own = names[name] if name in names else look_up_name(case.cells, name, languages)
            if algebra.intersect(own, schemas) == NEVER:
                return True
    if other.cells == ANY_OBJECT.cells:
        return False
    others = case.required.difference(name for name, _ in other.names)
    return any(algebra.intersect(names[name], look_up_name(other.cells, name, languages)) == NEVER for name in others)


def _intersect_cells(one: tuple[Cell, ...], other: tuple[Cell, ...], algebra: SchemaAlgebra) -> tuple[Cell, ...]:
    if one == ANY_OBJECT.cells:
        return other
    if other == ANY_OBJECT.cells:
        return one
    out: list[Cell] = []
    checked = len(one) > 1 and len(other) > 1
    for lang, schemas in one:
        for other_lang, other_schemas in other:
            part, value = lang | other_lang, algebra.intersect(schemas, other_schemas)
            if value == NEVER or _contradicts(part):
                continue
            if not checked or not algebra.languages.dfa(part).is_empty:
                out.append((part, value))
    check_cells(len(out), algebra, "patternProperties")
    return tuple(out)


def drop_subsumed(cases: Iterable[ObjectCase]) -> list[ObjectCase]:
    """Return the cases that are not contained in another one, so that the union stays the same."""
    remaining: list[tuple[ObjectCase, dict[str, SchemaSet], int, int]] = []
    bits: dict[object, int] = {}
    forbidden: dict[str, int] = {}
    cases = list(cases)
    for case in cases:
        for name, schemas in case.names:
            for literal in schemas:
                bit = bits.setdefault((name, literal), 1 << len(bits))
                forbidden[name] = forbidden.get(name, 0) | bit
        for name in case.required:
            bits.setdefault(name, 1 << len(bits))
    for case in cases:
        spend_work(1 + len(remaining) * (1 + len(bits) // 500) // 8, "a comparison of alternatives")
        names = dict(case.names)
        # Bits of what the case requires, and of what it implies: a forbidden key has no value that violates a set.
        required_bits = sum(bits[name] for name in case.required)
        required_bits |= sum(bits[name, literal] for name, schemas in case.names for literal in schemas)
        implied_bits = required_bits
        for name, schemas in case.names:
            if schemas == NEVER:
                implied_bits |= forbidden[name]
        if any(not their & ~implied_bits and _is_contained(case, names, other) for other, _, their, _ in remaining):
            continue
        remaining = [
            entry for entry in remaining if required_bits & ~entry[3] or not _is_contained(entry[0], entry[1], case)
        ]
        remaining.append((case, names, required_bits, implied_bits))
    return [entry[0] for entry in remaining]


def _is_contained(case: ObjectCase, names: dict[str, SchemaSet], other: ObjectCase) -> bool:
    """Return whether every object of the case is in the other one, which requires no more. names: those of the case."""
    for name, schemas in other.names:
        if schemas:
            own = names.get(name)
            if own is None or not is_subset_of(own, schemas):
                return False
    if case.low < other.low or (other.high is not None and (case.high is None or case.high > other.high)):
        return False
    if not set(other.needs) <= set(case.needs) or not set(other.existentials) <= set(case.existentials):
        return False
    if not set(other.clauses) <= set(case.clauses):
        return False
    if other.cells == ANY_OBJECT.cells:
        return True
    return other.cells == case.cells and names.keys() == {name for name, _ in other.names}


def _contradicts(lang: Language) -> bool:
    """Return whether an atom occurs in the formula with both signs."""
    return any((not sign, kind, payload) in lang for sign, kind, payload in lang)


def check_cells(count: int, algebra: SchemaAlgebra, field: str) -> None:
    """Raise LimitError if patterns divide the names into too many classes."""
    if count > algebra.limits.cases:
        raise LimitError(
            f"The patterns of {field} make more than {algebra.limits.cases} classes of names.",
            pointer=algebra.unsupported("", field).pointer,
            hint="Raise Limits.cases, or use fewer patterns that overlap.",
        )  # fmt: skip


def complement_object(case: ObjectCase, algebra: SchemaAlgebra) -> list[ObjectCase]:
    """Return the objects that are not in the case: one case for each condition that may be violated.

    A key with enumerated values is a *discriminator*: its violation comes first, and all other violations assume its
    value. So the complements of two cases with different discriminators have a small product.
    """
    fixed = ANY_OBJECT
    leading: list[ObjectCase] = []
    out: list[ObjectCase] = []
    listed = {name for name, _ in case.names} - case.mentioned
    for name, schemas in case.names:
        mentioned = NO_NAMES if name in listed else frozenset((name,))
        if schemas == ANY and name not in case.required:
            continue
        # Of a required key: absent or with another value, which is one case.
        absent = frozenset() if name in case.required else frozenset((name,))
        violation = ObjectCase(((name, NEVER if schemas == ANY else algebra.complement(schemas)),), absent, mentioned)
        if schemas in (ANY, NEVER) or not algebra.is_enumerated(schemas):
            out.append(violation)
            continue
        discriminated = intersect_objects(fixed, violation, algebra)
        leading += [discriminated] if discriminated is not None else []
        names = (*fixed.names, (name, schemas))
        fixed = ObjectCase(names, fixed.required | (case.required & {name}), fixed.mentioned | mentioned)
    declared = tuple(sorted(name for name, _ in case.names))
    outside: Language = frozenset(((False, "texts", declared),)) if declared else ALL
    covered: list[Language] = []
    for lang, schemas in case.cells:
        covered.append(lang)
        if schemas != ANY:
            out.append(ObjectCase(existentials=((lang | outside, algebra.complement(schemas)),)))
    out.extend(ObjectCase(existentials=((lang | outside, ANY),)) for lang in _complement_languages(covered))
    if case.low:
        out.append(ObjectCase(high=case.low - 1))
    if case.high is not None:
        out.append(ObjectCase(low=case.high + 1))
    for name, needed in case.needs:
        for other in sorted(needed):
            pair = ((name, ANY), (other, NEVER))
            out.append(ObjectCase(pair, frozenset((name,)), frozenset((name, other))))
    for lang, schemas in case.existentials:
        opposite = algebra.complement(schemas)
        cells = ((lang, opposite), *((outside_lang, ANY) for outside_lang in _complement_languages([lang])))
        out.append(ObjectCase(cells=tuple(cell for cell in cells if cell[1] != NEVER)))
    for clause in case.clauses:
        outside_all = factor_unions(
            [tuple(dict.fromkeys(complement_object(violation, algebra))) for violation in clause], algebra
        )
        out += [outside_all] if outside_all is not None else []
    return [
        *leading,
        *(
            violation
            for violation in (intersect_objects(fixed, other, algebra) for other in out)
            if violation is not None
        ),
    ]


def _complement_languages(langs: list[Language]) -> list[Language]:
    """Return disjoint languages that together hold the names outside of all the given ones."""
    uncovered: list[Language] = [ALL]
    for lang in langs:
        parts: list[Language] = []
        for remaining in uncovered:
            before: set[tuple[bool, str, object]] = set()
            for sign, kind, payload in lang:  # Not (a and b) = not a, or a and not b: disjoint parts.
                part: Language = remaining | before | {(not sign, kind, payload)}  # type: ignore[assignment, arg-type]
                if not _contradicts(part):
                    parts.append(part)
                before.add((sign, kind, payload))
        uncovered = parts
    return uncovered
