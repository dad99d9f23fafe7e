"""Decide a small 0-1 integer programme: is there a number of items of each kind such that all totals are within bounds?

Each kind of item adds 0 or 1 to each total. Branch and bound: intervals are narrowed until nothing changes (bound
propagation), then the open kind that is in most totals is bisected. A length and two counts need a dozen bisections
whatever their size; three or more counts with exact values in the thousands may exceed the budget.
"""

from __future__ import annotations

from typing import NamedTuple

from ....base.errors import LimitError

__all__ = ["CountConstraint", "is_feasible"]

MOST_BISECTIONS = 10_000
"""Most subproblems that are explored before LimitError is raised: some hundred milliseconds."""


class CountConstraint(NamedTuple):
    """low <= total number of items of the kinds (by index) <= high (None: no bound)."""

    kinds: tuple[int, ...]
    low: int
    high: int | None


def is_feasible(most: list[int | None], totals: list[CountConstraint]) -> bool:
    """Return whether there are numbers 0 <= n[k] <= most[k] (None: no bound) that satisfy all constraints.

    Raise LimitError if the budget of bisections is spent.
    """
    if any(total.high is not None and total.low > total.high for total in totals):
        return False
    # Cap the unbounded numbers: one above every lower bound can be lowered to the greatest of them.
    greatest_lower = max((total.low for total in totals), default=0)
    constraint_counts = {kind: sum(kind in total.kinds for total in totals) for kind in range(len(most))}
    worklist = [([0] * len(most), [greatest_lower if top is None else min(top, greatest_lower) for top in most])]
    for _ in range(MOST_BISECTIONS):
        if not worklist:
            return False
        low, high = worklist.pop()
        if not _propagate_bounds(low, high, totals):
            continue
        branched = max(
            (kind for kind in constraint_counts if low[kind] < high[kind]),
            key=constraint_counts.__getitem__,
            default=None,
        )
        if branched is None:
            return True
        middle = (low[branched] + high[branched]) // 2
        worklist.append((low[:], [middle if kind == branched else top for kind, top in enumerate(high)]))
        worklist.append(([middle + 1 if kind == branched else least for kind, least in enumerate(low)], high[:]))
    raise LimitError("Deciding whether these counts of items can all be satisfied takes too long.", hint=HINT)


HINT = "Use smaller bounds, or fewer `contains` on one array."


def _propagate_bounds(low: list[int], high: list[int], totals: list[CountConstraint]) -> bool:
    """Tighten the intervals in place until every constraint is bounds-consistent; return False if one is violated."""
    changed = True
    while changed:
        changed = False
        for kinds, least, most in totals:
            total_low, total_high = sum(low[kind] for kind in kinds), sum(high[kind] for kind in kinds)
            if total_high < least or (most is not None and total_low > most):
                return False
            for kind in kinds:
                required = least - (total_high - high[kind])
                if required > low[kind]:
                    changed, total_low, low[kind] = True, total_low + required - low[kind], required
                allowed = high[kind] if most is None else most - (total_low - low[kind])
                if allowed < high[kind]:
                    changed, total_high, high[kind] = True, total_high - high[kind] + allowed, allowed
                if low[kind] > high[kind]:
                    return False
    return True
