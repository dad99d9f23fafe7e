"""Shortest completion of a text from any position: best-first search by a lower bound of the remaining bytes.

Where the bound (`set_costs`) is exact, each byte of the completion lowers it by one, and the search is a single descent
to a shortest completion. Elsewhere the result may be longer than the shortest, since the search prefers sets near the
end to short texts.
"""

from __future__ import annotations

from functools import lru_cache
from heapq import heappop, heappush

import numpy as np

from ..base.errors import LimitError
from ..base.work import WorkBudget, confine_budgets, work_budget
from ..kernels import entry_points, layout as at
from ..program.least_costs import NEVER, LeastCosts
from .set_costs import SetCosts
from .state_cache import StateCache
from .uniqueness.repeated_members import find_copies

__all__ = ["STEP_SHARE", "CompletionSearch", "SearchBudget", "completion_search"]

GREED = 16
"""Weight of the estimate in the priority (weighted A*): longer texts that are nearer to the end are preferred."""
STEP = 10
"""Units of work for one byte that is tried."""
CONFIGURATION = 3
"""Units of work for the estimate of one configuration of a set."""
BYTE = 4 * STEP
"""Units of work that each byte of a completion may take."""
STEP_SHARE = 2
"""Divisor of Limits.work: the part that a search may take in addition."""
HINT = "Write the grammar so that less text ends it, or raise Limits(work=...)."
MOST_KEPT = 1 << 20
"""Bytes of memory after which no more completions are kept for other searches."""
KEPT_SET = 200
"""About how many bytes of memory the entry of a set takes."""
CREDIT = 1 << 20
"""By how much the estimate may rise after a separator before other sets are expanded first."""
LAST = b"\\ \t\r\n"
"""Bytes that are tried last: escapes and white space, which are hardly ever part of a shortest completion."""


@lru_cache(maxsize=4096)
def order_bytes(allowed: bytes, first: int) -> bytes:
    """Return bytes in the order in which a search tries them: one before all others, `LAST` after all others."""
    return bytes(sorted(allowed, key=lambda byte: (byte != first, byte in LAST, byte)))


@lru_cache(maxsize=4096)
def order_bit_set(bits: bytes, first: int) -> bytes:
    """Return the bytes of a bit set of 256 bits, the lowest first, in the order of `order_bytes`."""
    flags = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    return order_bytes(bytes(np.flatnonzero(flags).tolist()), first)


def completion_search(state_cache: StateCache) -> CompletionSearch:
    """Return the search of a state cache, with its memos; a new one after an eviction."""
    search: CompletionSearch | None = state_cache.derived.get(CompletionSearch)
    if search is None or search.epoch != state_cache.epoch:
        costs = state_cache.least_costs()
        search = state_cache.derived[CompletionSearch] = CompletionSearch(state_cache, costs)
    return search


class SearchBudget(WorkBudget):
    """The part of `Limits.work` that one search may take. `hint`: what to do where it is exceeded."""

    __slots__ = ("hint",)

    def __init__(self, limit: int, hint: str) -> None:
        super().__init__(limit)
        self.hint = hint

    def spend(self, units: int, construction: str) -> None:
        """Charge `units`. Raise LimitError if the budget does not hold them."""
        self.spent += units
        if self.spent > self.limit:
            raise LimitError(
                f"{construction[:1].upper()}{construction[1:]} takes more than {self.limit:,} units, which is the part "
                "of Limits.work that it may take.",
                hint=self.hint,
            )


class CompletionSearch(SetCosts):
    """Costs of sets in one state cache, and completions."""

    def __init__(self, state_cache: StateCache, costs: LeastCosts) -> None:
        super().__init__(state_cache, costs)
        self._credit: dict[int, int] = {}  # by set: by how much the path to it was allowed to raise the estimate
        self._refused: dict[tuple[int, int | None], LimitError] = {}
        self._found: dict[int, tuple[bytes, int]] = {}  # by set: see `_keep`
        self._kept = 0  # bytes of memory in `_found`

    def complete(self, start: int, limit: int | None = None) -> bytes | None:
        """Return the bytes of a completion from a set: a shortest one where costs are exact.

        Return None if it takes more than `limit` bytes, or there is none. Raise LimitError if the share of
        `Limits.work` is spent. The search descends without backtracking as long as each byte lowers the cost.
        """
        if self._accepts(start):
            return b""
        if limit is None and start in self._found:
            return self._recall(start)
        refused = self._refused.get((start, limit))
        if refused is not None:  # with the results that the first search has cached, this one could go further
            raise refused.restate()
        try:
            path = self._search_in_share(start, limit)
        except LimitError as error:
            error.is_of_source = start == self.state_cache.start
            self._refused[start, limit] = error.restate()
            raise
        if path is None:
            return None
        sets, text = path
        if limit is None and self._kept < MOST_KEPT:
            self._keep(sets, text)
        return text

    def _keep(self, sets: list[int], text: bytes) -> None:
        """Keep a completion that was found without a limit, for the first set of its path.

        A completion that is as short as its cost says is a shortest one, and so are its ends from the other sets of the
        path: they are kept, too, as the text and where they begin in it.
        """
        kept = sets if len(text) == self.cost(sets[0]) else sets[:1]
        for begin, number in enumerate(kept):
            self._found.setdefault(number, (text, begin))
        self._kept += len(text) + KEPT_SET * len(kept)

    def _recall(self, number: int) -> bytes:
        """Return the completion that is kept for a set."""
        text, begin = self._found[number]
        return text[begin:]

    def _joins_known(self, number: int, rest: int) -> bool:
        """Return whether a completion of `rest` bytes is kept for a set."""
        known = self._found.get(number)
        return known is not None and len(known[0]) - known[1] == rest

    @confine_budgets
    def _search_in_share(self, start: int, limit: int | None) -> tuple[list[int], bytes] | None:
        """Do `_search` within a share of `Limits.work`."""
        work = self.state_cache.work
        with work_budget(work // STEP_SHARE, work, self.state_cache.program.paid):
            return self._search(start, limit)

    def _search(self, start: int, limit: int | None) -> tuple[list[int], bytes] | None:
        """Search for a completion from a set; see `complete`. Return the sets that were visited, and the completion.

        Without a limit, the search ends where it meets a completion that is kept and as short as the cost says.
        """
        least = self.cost(start)
        # A fixed share of the work, and the work of a descent without backtracking.
        work, per_byte = self.state_cache.work, BYTE + CONFIGURATION * self._size(start) + self._uncharged
        descent = per_byte * least if least < NEVER else 0
        budget = SearchBudget(min(work, work // STEP_SHARE + descent), HINT)
        if least > (NEVER if limit is None else limit):
            return None
        if least < NEVER:
            budget.spend(max(0, least - 1) * STEP, "the shortest completion")
            budget.spent = 0
        self._credit.clear()
        parents: dict[int, tuple[int, int]] = {start: (-1, 0)}  # set -> (set before it, byte between them)
        # The frontier: (priority, -length, set, index of its next byte in `_order_bytes`), the best first.
        heap: list[tuple[int, int, int, int]] = [(GREED * self._estimate(start), 0, start, 0)]
        while heap:
            _, length, current, position = heappop(heap)
            end = self._descend(current, -length, position, parents, heap, limit, least, budget)
            if end >= 0:
                sets, text = self._spell_path(end, parents)
                return sets, text if self._accepts(end) else text + self._recall(end)
        return None

    def _descend(
        self,
        current: int,
        length: int,
        position: int,
        parents: dict[int, tuple[int, int]],
        heap: list[tuple[int, int, int, int]],
        limit: int | None,
        least: int,
        budget: WorkBudget,
    ) -> int:
        """Descend from a set while some byte lowers the estimate.

        Return the set that was reached, which is accepting or has a completion that is kept; -1 if there is none.
        Other sets are added to the heap.
        """
        memo = self.state_cache.uniqueness
        while True:
            may_copy = position == 0 and self.costs.has_copies
            copied = self._copy_member(current, length, parents, limit, budget) if may_copy else None
            if copied is not None:
                heappush(heap, (GREED * self._estimate(current) + length, -length, current, 0))
                current, length = copied
                if self._accepts(current):
                    return current
            estimate, order = self._estimate(current), self._order_bytes(current)
            for k in range(position, len(order)):
                before = memo.total
                after = self.state_cache.run(entry_points.step_set, current, order[k])
                budget.spend(STEP + memo.total - before, "the shortest completion")
                if after == at.DEAD or after in parents or length == limit:
                    continue
                parents[after] = current, order[k]
                if current in self._credit:
                    self._credit[after] = self._credit[current]
                if self._accepts(after) or (limit is None and self._joins_known(after, least - length - 1)):
                    return after
                cost = self._estimate(after)
                budget.spend(CONFIGURATION * self._size(after) + self._uncharged, "the shortest completion")
                self._uncharged = 0
                if limit is not None and length + 1 + self.cost(after) > limit:
                    continue
                if cost < estimate:
                    if k + 1 < len(order):
                        heappush(heap, (GREED * (estimate - 1) + length + 1, -length, current, k + 1))
                    current, length, position = after, length + 1, 0
                    break
                heappush(heap, (GREED * cost + length + 1, -length - 1, after, 0))
            else:
                return -1

    def _copy_member(
        self, current: int, length: int, parents: dict[int, tuple[int, int]], limit: int | None, budget: WorkBudget
    ) -> tuple[int, int] | None:
        """Write a copy of an earlier member where some member must equal one.

        Return the set after the copy and the length of the text there. If no copy fits, or writing a new member twice
        is shorter, return those after the separator, where the next member begins and the estimate may rise. Return
        None if no such member comes next, or the set was reached before.
        """
        copies = find_copies(self.state_cache, self.costs, current, self._least_cost(current, False))
        if copies is None:
            return None
        for text in [*(text for text in copies.texts if len(text) <= copies.most_bytes), b""]:
            text = copies.separator + text
            after, steps = current, list[tuple[int, int, int]]()
            for byte in text:
                budget.spend(STEP, "the shortest completion")
                before, after = after, self.state_cache.run(entry_points.step_set, after, byte)
                steps.append((after, before, byte))
                if after == at.DEAD:
                    break
            if after in (at.DEAD, current) or after in parents:
                continue
            if limit is None or length + len(text) + self.cost(after) <= limit:
                for one, before, byte in steps:
                    parents.setdefault(one, (before, byte))
                self._credit[after] = self._credit.get(current, 0) + (CREDIT if text == copies.separator else 0)
                return after, length + len(text)
        return None

    def _order_bytes(self, number: int) -> bytes:
        """Return a superset of the bytes that can follow a set, first the one of least cost, if it is known."""
        record = self.state_cache.arrays[at.SETS][number * at.SET_W : (number + 1) * at.SET_W]
        count, first = int(record[at.SET_ALLOWED]), self._next_bytes.get(number, -1)
        if count > at.NARROW:
            return order_bit_set(record[at.SET_NEXT : at.SET_NEXT + 8].tobytes(), first)
        return order_bytes(record[at.SET_BYTES : at.SET_BYTES + 2].tobytes()[:count], first)

    def _spell_path(self, number: int, parents: dict[int, tuple[int, int]]) -> tuple[list[int], bytes]:
        """Return the sets on the path to a set, and the bytes between them."""
        sets, text = [number], bytearray()
        while parents[number][0] >= 0:
            number, byte = parents[number]
            sets.append(number)
            text.append(byte)
        return sets[::-1], bytes(reversed(text))

    def _estimate(self, number: int) -> int:
        """Return the priority of a set: its cost if its member differs from all earlier ones, less its credit.

        Equal members are written by `_copy_member`.
        """
        return self._least_cost(number, False) - self._credit.get(number, 0)
