"""Objects: which keys, with which values: `properties`, `required`, `patternProperties` and the rest of the family.

An `ObjectCase` has a literal set for every *declared* name (every name that any keyword mentions) and *cells* for
all other names: languages that do not meet, each with its set. So a key's set is always the AND of all that applies
to it, and "a pattern matches a declared key" or "required but not in properties" need no code of their own.
`somes` are demands that at least one key of a language has a value in a set, which NOT makes of cells.
`settle` (in `members`) turns a case into cases without dead ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from ....base.errors import LimitError, UnsupportedError
from ....base.options import Limits
from ....base.work import spend
from ..algebra.schema_sets import ANY, NEVER, Lits, narrower
from ..strings.string_languages import ALL, Lang, Languages

__all__ = ["ANY_OBJECT", "Cell", "ObjectCase", "complement", "factored", "meet", "narrow", "own"]

Cell = tuple[Lang, Lits]


class ObjectCase(NamedTuple):
    """Members: low <= number of members <= high (None: no bound).

    names: declared names with the set of their values (NEVER: the key is forbidden), in the order of first mention.
    required: those that must be there. mentioned: those that stand in no `properties`; they are written last.
    cells: languages of other names (declared names do not count, even if in the language), pairwise disjoint;
    a name in none of them is forbidden. needs: (name, names that must be there if it is).
    somes: (language, set): at least one key in the language has a value in the set.
    clauses: unions, in one case of each of which an object must be; where a product would have too many cases.
    """

    names: tuple[tuple[str, Lits], ...] = ()
    required: frozenset[str] = frozenset()
    mentioned: frozenset[str] = frozenset()
    cells: tuple[Cell, ...] = ((ALL, ANY),)
    low: int = 0
    high: int | None = None
    needs: tuple[tuple[str, frozenset[str]], ...] = ()
    somes: tuple[Cell, ...] = ()
    clauses: tuple[tuple[ObjectCase, ...], ...] = ()


ANY_OBJECT = ObjectCase()

FIELDS = frozenset((
    "properties", "required", "patternProperties", "additionalProperties", "propertyNames", "minProperties",
    "maxProperties", "dependentRequired", "dependencies",
))  # fmt: skip
"""The fields that this room reads."""
NO_NAMES: frozenset[str] = frozenset()


class Algebra(Protocol):
    """What objects ask about their children and names."""

    languages: Languages
    limits: Limits

    def nonempty(self, lits: Lits) -> bool: ...
    def opposite(self, lits: Lits) -> Lits: ...
    def both(self, one: Lits, other: Lits) -> Lits: ...
    def listed(self, lits: Lits) -> bool: ...
    def name_language(self, lits: Lits) -> Lang | None: ...
    def refuse(self, cause: str, field: str) -> UnsupportedError: ...


def own(facts: dict[str, Any], algebra: Algebra) -> ObjectCase:
    """The case that a subschema's own keywords make."""
    properties: dict[str, Lits] = facts.get("properties", {})
    rest: Lits = facts.get("additionalProperties", ANY)
    patterns = [(pattern, lits) for pattern, lits in facts.get("patternProperties", {}).items() if lits != rest or lits]
    needs = _needs(facts)
    cells: tuple[Cell, ...] = ((ALL, rest),)
    for pattern, lits in patterns:
        cells = _split(cells, pattern, lits, rest, algebra) if len(patterns) > 1 else _first(pattern, lits, rest)
    extra = dict.fromkeys(facts.get("required", ()))
    for name, needed in needs:
        extra[name] = None
        extra.update(dict.fromkeys(needed))
    names: dict[str, Lits] = {}
    for name, lits in properties.items():
        for pattern, also in patterns:
            if algebra.languages.accepts(frozenset(((True, "pattern", pattern),)), name):
                lits = algebra.both(lits, also)
        names[name] = lits
    mentioned = [name for name in extra if name not in names]
    for name in mentioned:
        names[name] = look_up(cells, name, algebra.languages)
    case = ObjectCase(
        tuple(names.items()), frozenset(facts.get("required", ())), frozenset(mentioned),
        tuple(cell for cell in cells if cell[1] != NEVER),
        facts.get("minProperties", 0), facts.get("maxProperties"), needs,
    )  # fmt: skip
    return _filter_names(case, facts["propertyNames"], algebra) if facts.get("propertyNames", ANY) != ANY else case


def _needs(facts: dict[str, Any]) -> tuple[tuple[str, frozenset[str]], ...]:
    """`dependentRequired`, and `dependencies` on lists of names."""
    needs: dict[str, frozenset[str]] = {}
    for field in ("dependentRequired", "dependencies"):
        for name, needed in facts.get(field, {}).items():
            if isinstance(needed, frozenset) and needed - {name}:
                needs[name] = needs.get(name, NO_NAMES) | (needed - {name})
    return tuple(needs.items())


def _first(pattern: str, lits: Lits, rest: Lits) -> tuple[Cell, ...]:
    return ((frozenset(((True, "pattern", pattern),)), lits), (frozenset(((False, "pattern", pattern),)), rest))


def _split(cells: tuple[Cell, ...], pattern: str, lits: Lits, rest: Lits, algebra: Algebra) -> tuple[Cell, ...]:
    """Cells by one more pattern: a name that matches some pattern is not additional."""
    out: list[Cell] = []
    for lang, value in cells:
        additional = not any(sign for sign, _, _ in lang)
        inside, outside = algebra.languages.split(lang, pattern)
        if inside is not None:
            out.append((inside, lits if additional else algebra.both(value, lits)))
        if outside is not None:
            out.append((outside, value))
    _within(len(out), algebra, "patternProperties")
    return tuple(out)


def _filter_names(case: ObjectCase, lits: Lits, algebra: Algebra) -> ObjectCase:
    """`propertyNames`: other names are forbidden."""
    if lits == NEVER:
        allowed: Lang | None = None
    else:
        allowed = algebra.name_language(lits) or frozenset(((True, "names", lits),))
    names = tuple(
        (name, value if allowed is not None and algebra.languages.accepts(allowed, name) else NEVER)
        for name, value in case.names
    )
    cells = tuple((lang | allowed, value) for lang, value in case.cells) if allowed is not None else ()
    return case._replace(names=names, cells=cells)


def look_up(cells: Iterable[Cell], name: str, languages: Languages) -> Lits:
    """The set of an undeclared name's values."""
    for lang, lits in cells:
        if not lang or languages.accepts(lang, name):
            return lits
    return NEVER


def meet(one: ObjectCase, other: ObjectCase, algebra: Algebra) -> ObjectCase | None:
    """Objects of both; None if a required key obviously has no value, or the numbers of members exclude all."""
    low = max(one.low, other.low)
    high = one.high if other.high is None else other.high if one.high is None else min(one.high, other.high)
    required = one.required | other.required
    if high is not None and (low > high or len(required) > high):
        return None
    languages = algebra.languages
    spend(len(one.names) + len(other.names), "a product of objects")
    left, right = dict(one.names), dict(other.names)
    mentioned = frozenset(
        name for name in one.mentioned | other.mentioned
        if (name not in left or name in one.mentioned) and (name not in right or name in other.mentioned)
    )  # fmt: skip
    names: dict[str, Lits] = {}
    for name in left | right:
        mine, yours = left.get(name), right.get(name)
        if mine is None:
            mine = look_up(one.cells, name, languages)
        if yours is None:
            yours = look_up(other.cells, name, languages)
        names[name] = lits = algebra.both(mine, yours)
        if lits == NEVER and name in required:
            return None
    cells = _meet_cells(one.cells, other.cells, algebra)
    needs = dict(one.needs)
    for name, needed in other.needs:
        needs[name] = needs.get(name, NO_NAMES) | needed
    somes = tuple(dict.fromkeys(one.somes + other.somes))
    case = ObjectCase(tuple(names.items()), required, mentioned, cells, low, high, tuple(needs.items()), somes)
    clauses = tuple(dict.fromkeys(one.clauses + other.clauses))
    return narrow(case._replace(clauses=clauses), algebra) if clauses else case


def factored(unions: list[tuple[ObjectCase, ...]], algebra: Algebra) -> ObjectCase | None:
    """The product of unions as one case, with clauses: nothing is multiplied out. None if it is plainly empty."""
    names = dict.fromkeys(name for union in unions for one in union for name, _ in one.names)
    # Keys keep the order in which the unions name them.
    case: ObjectCase | None = ObjectCase(tuple((name, ANY) for name in names), mentioned=frozenset(names))
    for union in unions:
        if case is not None and len(union) == 1:
            case = meet(case, union[0], algebra)
    if case is None or () in unions:
        return None
    clauses = tuple(dict.fromkeys(union for union in unions if len(union) > 1))
    return narrow(case._replace(clauses=tuple(dict.fromkeys(case.clauses + clauses))), algebra)


def without_excluded(
    unions: list[tuple[ObjectCase, ...]], case: ObjectCase, algebra: Algebra
) -> list[tuple[ObjectCase, ...]]:
    """The unions without what the case that has been made of them (`factored`) plainly excludes or entails."""
    bare = case._replace(clauses=())
    names = dict(bare.names)
    out: list[tuple[ObjectCase, ...]] = []
    for union in unions:
        kept = tuple(way for way in union if not _excludes(bare, names, way, algebra))
        if len(kept) < 2 or _possible_ways(bare, kept, algebra) is not None:
            out.append(kept)
    return out


def narrow(case: ObjectCase, algebra: Algebra) -> ObjectCase | None:
    """The case with clauses that leave a choice only: unit propagation. None if some clause plainly has no way."""
    clauses = list(case.clauses)
    bare = case._replace(clauses=())
    at = since = 0
    while clauses and since < len(clauses):
        at %= len(clauses)
        kept = _possible_ways(bare, clauses[at], algebra)
        if kept is None:
            clauses.pop(at)
            continue
        if not kept:
            return None
        if len(kept) == 1:
            clauses.pop(at)
            clauses += [clause for clause in kept[0].clauses if clause not in clauses]
            met = meet(bare, kept[0]._replace(clauses=()), algebra)
            if met is None:
                return None
            bare, since = met, 0
            continue
        clauses[at] = kept
        at, since = at + 1, since + 1
    return bare._replace(clauses=tuple(dict.fromkeys(clauses)))


def _possible_ways(bare: ObjectCase, clause: tuple[ObjectCase, ...], algebra: Algebra) -> tuple[ObjectCase, ...] | None:
    """The cases of a clause that a case leaves possible; None if the whole case is within one of them."""
    names = dict(bare.names)
    kept = []
    for way in clause:
        if not way.clauses and _within_other(bare, names, way) and way.required <= bare.required:
            return None
        if not _excludes(bare, names, way, algebra):
            kept.append(way)
    return tuple(kept)


def _excludes(case: ObjectCase, names: dict[str, Lits], way: ObjectCase, algebra: Algebra) -> bool:
    """Whether a case and another one plainly share no object, without making their product. names: of the case."""
    low = max(case.low, way.low)
    if any(high is not None and low > high for high in (case.high, way.high)):
        return True
    languages = algebra.languages
    spend(1 + len(way.names), "a product of objects")
    for name, lits in way.names:
        if name in case.required or name in way.required:
            own = names[name] if name in names else look_up(case.cells, name, languages)
            if algebra.both(own, lits) == NEVER:
                return True
    if way.cells == ANY_OBJECT.cells:
        return False
    others = case.required.difference(name for name, _ in way.names)
    return any(algebra.both(names[name], look_up(way.cells, name, languages)) == NEVER for name in others)


def _meet_cells(one: tuple[Cell, ...], other: tuple[Cell, ...], algebra: Algebra) -> tuple[Cell, ...]:
    if one == ANY_OBJECT.cells:
        return other
    if other == ANY_OBJECT.cells:
        return one
    out: list[Cell] = []
    checked = len(one) > 1 and len(other) > 1
    for lang, lits in one:
        for also, more in other:
            part, value = lang | also, algebra.both(lits, more)
            if value == NEVER or _contradicts(part):
                continue
            if not checked or not algebra.languages.dfa(part).is_empty:
                out.append((part, value))
    _within(len(out), algebra, "patternProperties")
    return tuple(out)


def distinct(cases: Iterable[ObjectCase]) -> list[ObjectCase]:
    """The cases that are not plainly within another, so that their union is the same."""
    kept: list[tuple[ObjectCase, dict[str, Lits], int, int]] = []
    bits: dict[object, int] = {}
    forbidden: dict[str, int] = {}
    cases = list(cases)
    for case in cases:
        for name, lits in case.names:
            for literal in lits:
                bit = bits.setdefault((name, literal), 1 << len(bits))
                forbidden[name] = forbidden.get(name, 0) | bit
        for name in case.required:
            bits.setdefault(name, 1 << len(bits))
    for case in cases:
        spend(1 + len(kept) * (1 + len(bits) // 500) // 8, "a comparison of alternatives")
        names = dict(case.names)
        # What it asks, and what it grants: a key that is forbidden has no value that breaks another set.
        asks = sum(bits[name] for name in case.required)
        asks |= sum(bits[name, literal] for name, lits in case.names for literal in lits)
        grants = asks
        for name, lits in case.names:
            if lits == NEVER:
                grants |= forbidden[name]
        if any(not their & ~grants and _within_other(case, names, other) for other, _, their, _ in kept):
            continue
        kept = [entry for entry in kept if asks & ~entry[3] or not _within_other(entry[0], entry[1], case)]
        kept.append((case, names, asks, grants))
    return [entry[0] for entry in kept]


def _within_other(case: ObjectCase, names: dict[str, Lits], other: ObjectCase) -> bool:
    """Whether every object of the case is plainly one of the other, which requires no more. names: of the case."""
    for name, lits in other.names:
        if lits:
            own = names.get(name)
            if own is None or not narrower(own, lits):
                return False
    if case.low < other.low or (other.high is not None and (case.high is None or case.high > other.high)):
        return False
    if not set(other.needs) <= set(case.needs) or not set(other.somes) <= set(case.somes):
        return False
    if not set(other.clauses) <= set(case.clauses):
        return False
    if other.cells == ANY_OBJECT.cells:
        return True
    return other.cells == case.cells and names.keys() == {name for name, _ in other.names}


def _contradicts(lang: Lang) -> bool:
    """Whether an atom stands in it with both signs."""
    return any((not sign, kind, payload) in lang for sign, kind, payload in lang)


def _within(count: int, algebra: Algebra, field: str) -> None:
    if count > algebra.limits.cases:
        raise LimitError(
            f"The patterns of {field} make more than {algebra.limits.cases} classes of names.",
            pointer=algebra.refuse("", field).pointer, hint="Raise Limits.cases, or use fewer patterns that overlap.",
        )  # fmt: skip


def complement(case: ObjectCase, algebra: Algebra) -> list[ObjectCase]:
    """Objects that are not of the case: one case for each way to fail.

    A key with few possible values is a *discriminator*: it comes first, and the other ways have it as the case wants
    it. So of two cases that it tells apart few ways meet, and the complement of many of them stays small.
    """
    held = ANY_OBJECT
    first: list[ObjectCase] = []
    out: list[ObjectCase] = []
    listed = {name for name, _ in case.names} - case.mentioned
    for name, lits in case.names:
        mentioned = NO_NAMES if name in listed else frozenset((name,))
        if lits == ANY and name not in case.required:
            continue
        # Of a required key: absent or with another value, which is one case.
        absent = frozenset() if name in case.required else frozenset((name,))
        way = ObjectCase(((name, NEVER if lits == ANY else algebra.opposite(lits)),), absent, mentioned)
        if lits in (ANY, NEVER) or not algebra.listed(lits):
            out.append(way)
            continue
        told = meet(held, way, algebra)
        first += [told] if told is not None else []
        names = (*held.names, (name, lits))
        held = ObjectCase(names, held.required | (case.required & {name}), held.mentioned | mentioned)
    declared = tuple(sorted(name for name, _ in case.names))
    outside: Lang = frozenset(((False, "texts", declared),)) if declared else ALL
    covered: list[Lang] = []
    for lang, lits in case.cells:
        covered.append(lang)
        if lits != ANY:
            out.append(ObjectCase(somes=((lang | outside, algebra.opposite(lits)),)))
    out.extend(ObjectCase(somes=((lang | outside, ANY),)) for lang in _uncovered(covered))
    if case.low:
        out.append(ObjectCase(high=case.low - 1))
    if case.high is not None:
        out.append(ObjectCase(low=case.high + 1))
    for name, needed in case.needs:
        for other in sorted(needed):
            pair = ((name, ANY), (other, NEVER))
            out.append(ObjectCase(pair, frozenset((name,)), frozenset((name, other))))
    for lang, lits in case.somes:
        opposite = algebra.opposite(lits)
        cells = ((lang, opposite), *((rest, ANY) for rest in _uncovered([lang])))
        out.append(ObjectCase(cells=tuple(cell for cell in cells if cell[1] != NEVER)))
    for clause in case.clauses:
        outside_all = factored([tuple(dict.fromkeys(complement(way, algebra))) for way in clause], algebra)
        out += [outside_all] if outside_all is not None else []
    return [*first, *(way for way in (meet(held, other, algebra) for other in out) if way is not None)]


def _uncovered(langs: list[Lang]) -> list[Lang]:
    """Languages that together hold the names that no one of `langs` holds."""
    rest: list[Lang] = [ALL]
    for lang in langs:
        parts: list[Lang] = []
        for held in rest:
            before: set[tuple[bool, str, object]] = set()
            for sign, kind, payload in lang:  # Not (a and b) = not a, or a and not b: disjoint parts.
                part: Lang = held | before | {(not sign, kind, payload)}  # type: ignore[assignment, arg-type]
                if not _contradicts(part):
                    parts.append(part)
                before.add((sign, kind, payload))
        rest = parts
    return rest
