"""`uniqueItems`: what the Grammar itself must know of the values of items, beside the guard of the machine.

The machine refuses an item that equals an earlier one, and what can only end so. It does not know whether values
enough are left for the items that must still come. Sets of few values are therefore *listed*: an automaton (`counts`)
knows which of them are left. Any other set must have more values than can be gone when one of them is needed, which
is shown by counting (`sizes`); between the two lies what is refused by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....base.errors import UnsupportedError
from ..algebra.schema_sets import Lits
from ..reading.json_values import Constant
from .array_cases import ArrayCase, least
from .item_counts import Plan, place_of
from .value_counts import listed, size

if TYPE_CHECKING:
    from ..algebra.shape_algebra import Algebra

__all__ = ["apart", "capped", "plan", "repeated", "too_many_equal"]

ENDLESS = 2**31 - 1
"""Values that no array can use up: the machine counts no further."""

MOST_ORDERS = 1_000
"""Orders of the items that must come for which values are listed: a shortest array is searched for among them."""

MOST_APART = 64
"""Most items of which every two are compared."""


def apart(case: ArrayCase, algebra: Algebra) -> bool:
    """Whether no two items can be equal anyway."""
    if case.high is None or case.high > MOST_APART:
        return False
    items = [case.at(position) for position in range(case.high)]
    return not any(
        algebra.nonempty(algebra.both(one, other)) for position, one in enumerate(items) for other in items[:position]
    )


def capped(case: ArrayCase, algebra: Algebra) -> ArrayCase:
    """The case with no more items than there are values for them."""
    if case.high is not None and case.high <= len(case.prefix):
        return case
    most = size(case.rest, ENDLESS, algebra).most
    return case if most is None else case._replace(high=least(case.high, len(case.prefix) + most))


def plan(case: ArrayCase, algebra: Algebra) -> Plan:
    """The automaton of a case with different items: which values it lists."""
    whole = Plan(case, (), True, algebra)
    cells: dict[Lits, int | None] = {}
    for position in range(whole.size + 1):
        if case.high is None or position < case.high:
            for kind in whole.kinds(position, whole.start.counts):
                cells[kind.lits] = None
    values: dict[Constant, None] = {}
    ample: list[Lits] = []
    for lits in cells:
        few = listed(lits, algebra)
        if few is None:
            ample.append(lits)
        else:
            values.update(dict.fromkeys(few))
    alone = whole.size == 0 and not case.demands  # Then there are values enough, and no item beyond them: `capped`.
    if alone and len(values) ** case.low > MOST_ORDERS:
        return Plan(case, (), False, algebra)
    if all(size(lits, ENDLESS, algebra).least >= ENDLESS for lits in cells):
        return Plan(case, (), False, algebra)
    for lits in ample:
        _enough(case, lits, len(values), whole.size, algebra)
    return Plan(case, tuple(values), True, algebra)


def _enough(case: ArrayCase, lits: Lits, listed_values: int, first: int, algebra: Algebra) -> None:
    """Refuses a set that may be used up before an item needs one of its values."""
    found = size(lits, ENDLESS, algebra)
    if found.least >= ENDLESS:
        return
    if case.demands:
        # While a demand is unmet, its items beyond the prefix have been counted; others fill up to `low`.
        needed, possible = max([case.low, *(first + demand.low for demand in case.demands)]), case.high
    else:
        needed = _places(case, lits, case.low, algebra)
        possible = _places(case, lits, len(case.prefix) if case.high is None else case.high, algebra)
        if case.high is None and algebra.nonempty(algebra.both(case.rest, lits)):
            possible = None
    if needed > 1 and found.least - listed_values < needed:
        raise _refuse(f"Of the items here {needed:,} must differ, and it is not plain that there are so many.", algebra)
    if found.most is not None and (possible is None or found.least - listed_values < possible):
        raise _refuse(f"An array here may use up the {found.most:,} values of a set that others share.", algebra)


def _places(case: ArrayCase, lits: Lits, length: int, algebra: Algebra) -> int:
    """How many of the first `length` items may have values of a set."""
    count = sum(algebra.nonempty(algebra.both(item, lits)) for item in case.prefix[:length])
    more = length - len(case.prefix)
    return count + more if more > 0 and algebra.nonempty(algebra.both(case.rest, lits)) else count


def repeated(case: ArrayCase, algebra: Algebra) -> list[Constant] | None:
    """The values that two items of a case can have in common; None if they are too many to list."""
    size = len(case.prefix)
    sets = dict.fromkeys(case.prefix if case.high is None else case.prefix[: case.high])
    pairs = {algebra.both(one, other) for one in case.prefix for other in sets if one is not other}
    pairs |= {lits for lits in sets if case.prefix.count(lits) > 1}
    if case.high is None or case.high > size:
        pairs |= {algebra.both(one, case.rest) for one in sets}
        if case.high is None or case.high > size + 1:
            pairs.add(case.rest)
    values: dict[Constant, None] = {}
    for lits in pairs:
        few = listed(lits, algebra)
        if few is None:
            return None
        values.update(dict.fromkeys(few))
    return list(values)


def too_many_equal(algebra: Algebra) -> UnsupportedError:
    """The refusal of arrays with two equal items that can neither be listed nor watched for."""
    cause = "Two equal items are demanded here (the complement of uniqueItems), of too many values for items with a"
    return _refuse(f"{cause} bound on their number or with `contains`.", algebra)


def _refuse(cause: str, algebra: Algebra) -> UnsupportedError:
    return UnsupportedError(
        cause, pointer=place_of("uniqueItems", algebra),
        hint="Allow fewer items, or more values; or leave uniqueItems out and check it afterwards.",
    )  # fmt: skip
