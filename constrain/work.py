"""Work accounting: every construction that can grow draws on one counted budget, `Limits.work`.

    with work_budget(limits.work):           # around a compile, and around the linking of a rule later
        spend(len(states), "a product of patterns")

Work is counted, never timed, so the same input gives the same answer on every machine and on every run. A unit is
about a microsecond of Python on one core, and stands for at most some 200 bytes of memory: a state times the classes of
characters that leave it, a symbol of an expanded rule, a case of a union. The budget belongs to the running context
(`contextvars`), so that threads do not share one, and constructions need not hand it down through every call.

A result that is cached must cost the same when it is found as when it was made; otherwise what compiles in a warm
process could fail in a cold one. `memoize` is an LRU cache that charges for its hits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

from .errors import LimitError

__all__ = ["WorkBudget", "memoize", "spend", "work_budget"]

_F = TypeVar("_F", bound=Callable[..., Any])

UNLIMITED = 1 << 62


class WorkBudget:
    """Units of work that may be spent, and how many have been.

    limit, spent: units.
    """

    __slots__ = ("limit", "spent")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.spent = 0

    def spend(self, units: int, construction: str) -> None:
        """Charge `units`. Raise LimitError, naming the construction, if the budget does not hold them."""
        self.spent += units
        if self.spent > self.limit:
            raise LimitError(
                f"{construction[:1].upper()}{construction[1:]} needs more than Limits.work = {self.limit:,} units.",
                hint="Simplify it, or raise Limits(work=...).",
            )


_current: ContextVar[WorkBudget | None] = ContextVar("constrain_work_budget", default=None)


@contextmanager
def work_budget(limit: int) -> Iterator[WorkBudget]:
    """Run the block under a budget of `limit` units, or under the budget that already holds, if there is one."""
    current = _current.get()
    if current is not None:
        yield current
        return
    budget = WorkBudget(limit)
    token = _current.set(budget)
    try:
        yield budget
    finally:
        _current.reset(token)


def spend(units: int, construction: str) -> None:
    """Charge the current budget; without one, do nothing.

    units: call this before the memory is taken, at least once per 100,000 units.
    construction: what is built, for the error: "a product of patterns".
    """
    budget = _current.get()
    if budget is not None:
        budget.spend(units, construction)


def memoize(maxsize: int) -> Callable[[_F], _F]:
    """Cache a pure function's results, as `functools.lru_cache` does, and charge a hit what making the result cost."""

    def decorate(function: _F) -> _F:
        @lru_cache(maxsize)
        def measured(*arguments: Hashable) -> tuple[Any, int]:
            with work_budget(UNLIMITED) as budget:
                before = budget.spent
                return function(*arguments), budget.spent - before

        @wraps(function)
        def cached(*arguments: Hashable) -> Any:
            budget = _current.get()
            if budget is None:
                return measured(*arguments)[0]
            before = budget.spent
            value, cost = measured(*arguments)
            unpaid = before + cost - budget.spent  # 0 if the result was made just now
            if unpaid > 0:
                budget.spend(unpaid, f"{function.__name__.strip('_').replace('_', ' ')}")
            return value

        cached.cache_info, cached.cache_clear = measured.cache_info, measured.cache_clear  # type: ignore[attr-defined]
        return cast(_F, cached)

    return decorate
