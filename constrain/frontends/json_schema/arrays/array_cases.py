"""Arrays as sets: `items`, `prefixItems`, `minItems`, `maxItems`, `uniqueItems`, `contains` and its counts.

An `ArrayCase` is the literal sets of the first items, that of the rest, an interval of lengths, and *demands*: how
many items from a position on are in a set. `contains` is a demand, and so is what NOT makes of `items`. AND, OR and
NOT of cases are here; `items` turns a case into one without dead ends and writes it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from ..algebra.schema_sets import ANY, NEVER, Lits, narrower

__all__ = ["ANY_ARRAY", "ArrayCase", "Demand", "complement", "meet", "own", "tidy", "within"]


class Demand(NamedTuple):
    """low <= number of items at position `start` or later that are in the set `lits` <= high (None: no bound)."""

    start: int
    lits: Lits
    low: int = 1
    high: int | None = None


class ArrayCase(NamedTuple):
    """Items: `prefix`, then `rest`; low <= number of items <= high (None: no bound); all demands are met.

    unique: no two items are equal. alike: some two items are equal, which is what NOT makes of `uniqueItems`.
    """

    prefix: tuple[Lits, ...] = ()
    rest: Lits = ANY
    low: int = 0
    high: int | None = None
    demands: tuple[Demand, ...] = ()
    unique: bool = False
    alike: bool = False

    def at(self, position: int) -> Lits:
        """The set of the item at a position."""
        return self.prefix[position] if position < len(self.prefix) else self.rest


ANY_ARRAY = ArrayCase()

FIELDS = frozenset((
    "items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains",
    "maxContains",
))  # fmt: skip
"""The fields that this room reads."""


class Algebra(Protocol):
    """What arrays ask about their children."""

    def nonempty(self, lits: Lits) -> bool: ...
    def opposite(self, lits: Lits) -> Lits: ...
    def both(self, one: Lits, other: Lits) -> Lits: ...


def own(facts: dict[str, Any]) -> ArrayCase:
    """The case that a subschema's own keywords make."""
    items = facts.get("items", ANY)
    prefix = facts.get("prefixItems", ())
    if isinstance(items, list):  # Before 2020-12 a list of items is the prefix, and additionalItems the rest.
        prefix, items = tuple(items), facts.get("additionalItems", ANY)
    demands: tuple[Demand, ...] = ()
    if "contains" in facts:  # Without it, its counts assert nothing.
        demands = (Demand(0, facts["contains"], facts.get("minContains", 1), facts.get("maxContains")),)
    low, high = facts.get("minItems", 0), facts.get("maxItems")
    return tidy(ArrayCase(prefix, items, low, high, demands, facts.get("uniqueItems", False)))


def tidy(case: ArrayCase) -> ArrayCase:
    """The same case in one form: no prefix that the rest or the bound makes idle, no demand that is a bound."""
    prefix, rest, low, high, demands = case[:5]
    if demands:
        low, high, demands = _tidy_demands(case)
    if NEVER in prefix:
        prefix = prefix[: prefix.index(NEVER)]
        rest = NEVER
    if rest == NEVER and (high is None or high > len(prefix)):
        high = len(prefix)
    if high is not None and high <= len(prefix):
        prefix, rest = prefix[:high], NEVER
    else:
        while prefix and prefix[-1] == rest:
            prefix = prefix[:-1]
    return ArrayCase(prefix, rest, low, high, demands, case.unique, case.alike)


def _tidy_demands(case: ArrayCase) -> tuple[int, int | None, tuple[Demand, ...]]:
    """Lengths and demands: so many that are in a set are so many items, and any item is in ANY."""
    low, high = case.low, case.high
    kept: list[Demand] = []
    for demand in case.demands:
        if demand.low:
            low = max(low, demand.start + demand.low)
        if demand.lits == ANY:
            if demand.high is not None:
                most = demand.start + demand.high
                high = most if high is None else min(high, most)
        elif demand.low or (demand.high is not None and demand.lits != NEVER):
            kept.append(demand)
    return low, high, tuple(kept)


def meet(one: ArrayCase, other: ArrayCase, algebra: Algebra) -> ArrayCase | None:
    """Arrays of both; None if lengths or counts alone exclude all."""
    size = max(len(one.prefix), len(other.prefix))
    prefix = tuple(algebra.both(one.at(position), other.at(position)) for position in range(size))
    low, high = max(one.low, other.low), least(one.high, other.high)
    demands: dict[tuple[int, Lits], Demand] = {}
    for demand in one.demands + other.demands:
        known = demands.setdefault((demand.start, demand.lits), demand)
        merged = known._replace(low=max(known.low, demand.low), high=least(known.high, demand.high))
        if merged.high is not None and merged.low > merged.high:
            return None
        demands[demand.start, demand.lits] = merged
    unique, alike = one.unique or other.unique, one.alike or other.alike
    rest = algebra.both(one.rest, other.rest)
    case = tidy(ArrayCase(prefix, rest, low, high, tuple(demands.values()), unique, alike))
    return None if (unique and alike) or (case.high is not None and case.low > case.high) else case


def least(one: int | None, other: int | None) -> int | None:
    """The lower of two upper bounds."""
    return one if other is None else other if one is None else min(one, other)


def within(case: ArrayCase, other: ArrayCase) -> bool:
    """Whether every array of the case is plainly one of the other."""
    if case.low < other.low or (other.high is not None and (case.high is None or case.high > other.high)):
        return False
    if (other.unique and not case.unique) or (other.alike and not case.alike):
        return False
    if not all(any(_implies(mine, demand) for mine in case.demands) for demand in other.demands):
        return False
    size = max(len(case.prefix), len(other.prefix)) + 1
    return all(narrower(case.at(position), other.at(position)) for position in range(size))


def _implies(one: Demand, other: Demand) -> bool:
    if one[:2] != other[:2] or one.low < other.low:
        return False
    return other.high is None or (one.high is not None and one.high <= other.high)


def complement(case: ArrayCase, algebra: Algebra) -> list[ArrayCase]:
    """Arrays that are not of the case: one case for each way to fail."""
    out: list[ArrayCase] = []
    if case.unique:
        out.append(ArrayCase(low=2, alike=True))
    if case.alike:
        out.append(ArrayCase(unique=True))
    if case.low:
        out.append(ArrayCase(high=case.low - 1))
    for position, lits in enumerate(case.prefix):
        if lits != ANY:
            out.append(ArrayCase((ANY,) * position + (algebra.opposite(lits),), ANY, position + 1))
    if case.high is not None:
        out.append(ArrayCase(low=case.high + 1))
    if case.rest not in (ANY, NEVER):
        out.append(ArrayCase(demands=(Demand(len(case.prefix), algebra.opposite(case.rest)),)))
    for start, lits, low, high in case.demands:
        if low == 1:
            out.append(ArrayCase((ANY,) * start, algebra.opposite(lits)))
        elif low:
            out.append(ArrayCase(demands=(Demand(start, lits, 0, low - 1),)))
        if high is not None:
            out.append(ArrayCase(demands=(Demand(start, lits, high + 1),)))
    return [tidy(item) for item in out]


def bound(case: ArrayCase, algebra: Algebra) -> int | None:
    """Most items, given that an item whose set is empty cannot be there. Looks no further than it must."""
    for position, lits in enumerate(case.prefix):
        if case.high is not None and position >= case.high:
            return case.high
        if not algebra.nonempty(lits):
            return position
    if (case.high is None or case.high > len(case.prefix)) and not algebra.nonempty(case.rest):
        return len(case.prefix)
    return case.high
