"""Decide a small integer programme: can so many items of each kind be taken that all totals are in their intervals?

Each kind of item adds 0 or 1 to each total. Intervals are narrowed until nothing changes (bound propagation), then the
open kind that is in most totals is bisected. A length and two counts need a dozen bisections whatever their size; three
or more counts that must be met exactly, in the thousands, may exceed the budget.
"""

from __future__ import annotations

from typing import NamedTuple

from ....base.errors import LimitError

__all__ = ["CountConstraint", "is_feasible"]

MOST_HALVINGS = 10_000
"""Open subproblems that are tried before the search is given up: some hundred milliseconds."""


class CountConstraint(NamedTuple):
    """low <= how many items are taken of the kinds (by index) together <= high (None: no bound)."""

    kinds: tuple[int, ...]
    low: int
    high: int | None


def is_feasible(most: list[int | None], totals: list[CountConstraint]) -> bool:
    """Return whether there are numbers 0 <= n[k] <= most[k] (None: no bound) that satisfy all constraints.

    Raise LimitError if the budget of bisections is spent.
    """
    if any(total.high is not None and total.low > total.high for total in totals):
        return False
    # A number above every lower bound can be lowered to the greatest of them: no total needs more.
    enough = max((total.low for total in totals), default=0)
    busiest = {kind: sum(kind in total.kinds for total in totals) for kind in range(len(most))}
    todo = [([0] * len(most), [enough if top is None else min(top, enough) for top in most])]
    for _ in range(MOST_HALVINGS):
        if not todo:
            return False
        low, high = todo.pop()
        if not _narrow(low, high, totals):
            continue
        chosen = max((kind for kind in busiest if low[kind] < high[kind]), key=busiest.__getitem__, default=None)
        if chosen is None:
            return True
        middle = (low[chosen] + high[chosen]) // 2
        todo.append((low[:], [middle if kind == chosen else top for kind, top in enumerate(high)]))
        todo.append(([middle + 1 if kind == chosen else least for kind, least in enumerate(low)], high[:]))
    raise LimitError("It takes too long to decide whether these counts of items can all be met.", hint=CURE)


CURE = "Use smaller bounds, or fewer `contains` on one array."


def _narrow(low: list[int], high: list[int], totals: list[CountConstraint]) -> bool:
    """Narrow the intervals in place to what each constraint leaves possible; return False if nothing is left."""
    moved = True
    while moved:
        moved = False
        for kinds, least, most in totals:
            bottom, top = sum(low[kind] for kind in kinds), sum(high[kind] for kind in kinds)
            if top < least or (most is not None and bottom > most):
                return False
            for kind in kinds:
                need = least - (top - high[kind])
                if need > low[kind]:
                    moved, bottom, low[kind] = True, bottom + need - low[kind], need
                slack = high[kind] if most is None else most - (bottom - low[kind])
                if slack < high[kind]:
                    moved, top, high[kind] = True, top - high[kind] + slack, slack
                if low[kind] > high[kind]:
                    return False
    return True
