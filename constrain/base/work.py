"""Work accounting: every construction that can grow draws on one counted budget, `Limits.work`.

    with work_budget(limits.work):           # around a compile, and around the linking of a rule later
        spend(len(states), "a product of patterns")

Work is counted, never timed, so the same input gives the same answer on every machine and on every run. A unit is about
a microsecond of Python on one core and at most about 200 bytes of memory: a transition of an automaton by a class of
characters, a symbol of an expanded rule, a case of a union. The budget is a context variable (`contextvars`), so
threads do not share one, and it need not be passed through every call. Functions that begin one where none may be
active are decorated with `confine_budgets`.

A cached result must cost the same on a hit as on a miss; otherwise a source that compiles in a warm process could fail
in a cold one. `memoize_work` is an LRU cache that charges each result to a budget, once. It forgets everything when its
results took MOST_UNITS in all, since their number alone does not bound the memory of a server.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Set
from contextvars import ContextVar, Token, copy_context
from functools import lru_cache, wraps
from typing import Any, NamedTuple, TypeVar, cast

from .errors import LimitError

__all__ = ["WorkBudget", "active_budget", "check_work", "confine_budgets", "memoize_work", "spend_work", "use_budget",
           "work_budget"]  # fmt: skip

_F = TypeVar("_F", bound=Callable[..., Any])

UNLIMITED = 1 << 62
MOST_UNITS = 4_000_000
"""Units that the results in one cache may have taken: some thousand usual schemas, or a few that exhaust a budget."""

FEW_PARTS = 32
"""Results up to which the cost of one that was made from them is summed in advance."""


class _Frame:
    """A running cached function: the units spent by cached functions that it called, and their costs."""

    __slots__ = ("nested", "parts")

    def __init__(self) -> None:
        self.nested = 0
        self.parts: list[_Cost] = []


class WorkBudget:
    """A budget of units of work.

    `limit` and `spent` are units. `total` is Limits.work if the budget is a part of it. `before` are results that an
    earlier compile has paid for, `paid` cached results that have been charged, and `frames` the cached functions that
    are running.
    """

    __slots__ = ("before", "frames", "limit", "paid", "spent", "total")

    def __init__(self, limit: int, total: int | None = None, before: Set[tuple[object, ...]] = frozenset()) -> None:
        self.limit = limit
        self.before = before
        self.total = limit if total is None else total
        self.spent = 0
        self.paid: set[tuple[object, ...]] = set()
        self.frames: list[_Frame] = []

    def pay(self, cost: _Cost, construction: str) -> None:
        """Charge a cached result and the results that it was made from, unless they have been charged."""
        if cost.keys and self.paid.isdisjoint(cost.keys) and self.before.isdisjoint(cost.keys):
            self.paid |= cost.keys
            self.spend(cost.total, construction)
            return
        todo = [cost]
        while todo:
            one = todo.pop()
            if one.key not in self.paid and one.key not in self.before:
                self.paid.add(one.key)
                self.spend(one.own, construction)
                todo.extend(one.parts)

    def check(self) -> None:
        """Raise LimitError if nobody waits for the result any more, as servers know; here, never."""

    def spend(self, units: int, construction: str) -> None:
        """Charge `units`. Raise LimitError, naming the construction, if the budget is exceeded."""
        self.spent += units
        if self.spent > self.limit:
            part = "" if self.limit >= self.total else f"{self.limit:,} units, the part that it may take of "
            error = LimitError(
                f"{construction[:1].upper()}{construction[1:]} needs more than "
                f"{part}Limits.work = {self.total:,} units.",
                hint="Simplify it, or raise Limits(work=...).",
            )
            error.is_of_source = True
            raise error


_current: ContextVar[WorkBudget | None] = ContextVar("constrain_work_budget", default=None)


class work_budget(WorkBudget):
    """Run the block under a budget of `limit` units, or under the active budget if there is one.

    `total` is Limits.work, for the error message, if `limit` is a part of it. `before` are cached results that are
    free. (A class, named as a function: a generator takes three times as long, and compiles enter many.)
    """

    __slots__ = ("_token",)

    _token: Token[WorkBudget | None] | None

    def __enter__(self) -> WorkBudget:
        active = _current.get()
        self._token = _current.set(self) if active is None else None
        return self if active is None else active

    def __exit__(self, *error: object) -> None:
        if self._token is not None:
            _current.reset(self._token)


class use_budget:
    """Run the block under a budget, in place of the active one. (A class for the reason that `work_budget` is one.)"""

    __slots__ = ("_budget", "_token")

    def __init__(self, budget: WorkBudget) -> None:
        self._budget = budget

    def __enter__(self) -> WorkBudget:
        self._token = _current.set(self._budget)
        return self._budget

    def __exit__(self, *error: object) -> None:
        _current.reset(self._token)


def confine_budgets(function: _F) -> _F:
    """Decorate a function so that no budget that begins in a call of it outlives the call.

    An interrupt (KeyboardInterrupt) can come at the end of `__enter__` or just before the first line of `__exit__`, and
    the budget of the block would stay active for ever. So the call runs in a copy of the context.
    """

    @wraps(function)
    def confined(*arguments: Any, **keywords: Any) -> Any:
        return copy_context().run(function, *arguments, **keywords)

    return cast(_F, confined)


def spend_work(units: int, construction: str) -> None:
    """Charge the active budget. Without one, do nothing.

    Call this before the memory is allocated, at least once per 100,000 units. `construction` says what is built, for
    the error message: "a product of patterns".
    """
    budget = _current.get()
    if budget is not None:
        budget.spend(units, construction)


def active_budget() -> WorkBudget | None:
    """Return the active budget."""
    return _current.get()


def check_work() -> None:
    """Raise LimitError if the active budget was abandoned. For long work that is not charged, such as sampling."""
    budget = _current.get()
    if budget is not None:
        budget.check()


class _Cost(NamedTuple):
    """The cost of a cached result: its key, its own units, and the results that it was made from.

    If these are few, `keys` are all keys, `total` all units, each result counted once. A frozenset keeps the hashes of
    its elements, which are slow to compute.
    """

    key: tuple[object, ...]
    own: int
    parts: tuple[_Cost, ...]
    keys: frozenset[tuple[object, ...]]
    total: int

    @classmethod
    def of(cls, key: tuple[object, ...], own: int, parts: tuple[_Cost, ...]) -> _Cost:
        """Return the cost of a result."""
        known = {key: own}
        todo = list(parts)
        while todo and len(known) <= FEW_PARTS:
            one = todo.pop()
            if one.key not in known:
                known[one.key] = one.own
                todo.extend(one.parts)
        return cls(key, own, parts, frozenset() if todo else frozenset(known), sum(known.values()))


def memoize_work(maxsize: int) -> Callable[[_F], _F]:
    """Cache a pure function's results, as `functools.lru_cache` does, and charge each to a budget once.

    The first use of a result under a budget is charged what making it cost, whether it was cached or not; further uses
    are free. So the total does not depend on what other compiles have left in the cache.
    """

    def decorate(function: _F) -> _F:
        units = 0  # of the results in the cache and of those that it has evicted since it was last empty

        @lru_cache(maxsize)
        def measured(*arguments: Hashable) -> tuple[Any, _Cost]:
            nonlocal units
            with work_budget(UNLIMITED) as budget:
                frame = _Frame()
                budget.frames.append(frame)
                before = budget.spent
                try:
                    value = function(*arguments)
                finally:
                    budget.frames.pop()
                cost = _Cost.of((measured, *arguments), budget.spent - before - frame.nested, tuple(frame.parts))
                if cost.key in budget.paid:  # It was evicted since it was charged.
                    budget.spent -= cost.own
                budget.paid.add(cost.key)
            units += cost.own
            if units > MOST_UNITS:
                measured.cache_clear()
                units = cost.own
            return value, cost

        @wraps(function)
        def cached(*arguments: Hashable) -> Any:
            budget = _current.get()
            if budget is None:
                return copy_context().run(measured, *arguments)[0]  # as `confine_budgets` does
            before = budget.spent
            value, cost = measured(*arguments)
            if not (budget.paid.issuperset(cost.keys) if cost.keys else cost.key in budget.paid):
                budget.pay(cost, function.__name__.strip("_").replace("_", " "))
            if budget.frames:
                budget.frames[-1].nested += budget.spent - before
                budget.frames[-1].parts.append(cost)
            return value

        cached.cache_info, cached.cache_clear = measured.cache_info, measured.cache_clear  # type: ignore[attr-defined]
        return cast(_F, cached)

    return decorate
