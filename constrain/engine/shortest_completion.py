"""Shortest completion of a text from any position: best-first search by a lower bound of the remaining bytes.

The cost of a set is that of its cheapest configuration: the remainder of its leaf or key, of its rule
(`program.least_costs`) and of all its callers. Where this is exact, each byte of the completion lowers it by one, and
the search is a single descent to a shortest completion. It is only a lower bound where undeclared keys must make up a
minimum number of members, where a leaf counts characters of several bytes, and where members must differ. The result
may then be longer than the shortest, since the search prefers sets near the end to short texts.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from ..base.errors import LimitError
from ..base.work import WorkBudget, work_budget
from ..kernels import layout as at, sets as kernels
from ..program.least_costs import NEVER, LeastCosts
from .state_cache import StateCache
from .uniqueness.repeated_members import find_copies

__all__ = ["CompletionSearch", "completion_search"]

GREED = 16
"""Bytes that the search writes more for each byte that it is nearer to the end."""
STEP = 10
"""Units of work for one byte that is tried."""
CONFIGURATION = 3
"""Units of work for the estimate of one configuration of a set."""
BYTE = 4 * STEP
"""Units of work that each byte of a completion may take."""
STEP_SHARE = 2
"""Part of Limits.work that a search takes beyond that."""
CREDIT = 1 << 20
"""By how much the estimate may rise behind a separator before what else there is to try comes first."""
LAST = b"\\ \t\r\n"
"""Bytes that are tried last: escapes and white space, which are hardly ever the shortest way."""


def completion_search(state_cache: StateCache) -> CompletionSearch:
    """Return the search of a state cache, with its memos; a new one after an eviction."""
    found: CompletionSearch | None = state_cache.derived.get(CompletionSearch)
    if found is None or found.epoch != state_cache.epoch:
        costs = state_cache.least_costs()
        found = state_cache.derived[CompletionSearch] = CompletionSearch(state_cache, costs)
    return found


class _SearchBudget(WorkBudget):
    """The part of `Limits.work` that one search may take."""

    __slots__ = ()

    def spend(self, units: int, construction: str) -> None:
        """Charge `units`. Raise LimitError if the budget does not hold them."""
        self.spent += units
        if self.spent > self.limit:
            raise LimitError(
                f"{construction[:1].upper()}{construction[1:]} takes more than {self.limit:,} units, which is the part "
                "of Limits.work that it may take.",
                hint="Write the grammar so that less text ends it, or raise Limits(work=...).",
            )


class CompletionSearch:
    """Costs of sets in one state cache, and completions."""

    def __init__(self, state_cache: StateCache, costs: LeastCosts) -> None:
        self.state_cache = state_cache
        self.costs = costs
        self.epoch = state_cache.epoch
        self._sets: dict[tuple[int, bool], int] = {}  # by set, and whether its member may equal an earlier one
        self._literal: dict[int, int] = {}  # the byte by which a set's cheapest configuration goes on, where it is one
        self._watched = False  # whether the member of the set at hand is taken to equal an earlier one
        self._nodes: dict[bool, dict[int, int]] = {False: {0: 0}, True: {0: 0}}  # by that
        self._states: dict[int, tuple[int, set[int], int, bool]] = {}
        self._rests: dict[int, tuple[set[int], int]] = {}
        self._behind: dict[tuple[int, int], int] = {}  # by object state and key: see `_members`
        self._by_rank: dict[int, list[int]] = {}
        self._credit: dict[int, int] = {}  # of sets of a search: how much the way there may have raised the estimate
        self._walked = 0  # work that is not charged yet: states of parsers' stacks and keys of objects looked at
        self._refused: dict[tuple[int, int | None], LimitError] = {}

    def complete(self, start: int, limit: int | None = None) -> bytes | None:
        """Return the bytes of a completion from a set: a shortest one where costs are exact.

        Return None if it takes more than `limit` bytes, or there is none. Raise LimitError if the share of
        `Limits.work` is spent. The search descends without backtracking as long as each byte lowers the cost.
        """
        if self._accepts(start):
            return b""
        refused = self._refused.get((start, limit))
        if refused is not None:  # What the first search has cached would let this one come further.
            raise LimitError(refused.cause, hint=refused.hint)
        program, work = self.state_cache.program, self.state_cache.work
        try:
            with work_budget(work // STEP_SHARE, work, program.paid):
                return self._search(start, limit)
        except LimitError as error:
            self._refused[start, limit] = error
            raise

    def _search(self, start: int, limit: int | None) -> bytes | None:
        """The same, once."""
        least = self.cost(start)
        # A fixed share, and what a descent takes that goes straight to the end.
        work, each = self.state_cache.work, BYTE + CONFIGURATION * self._size(start) + self._walked
        straight = each * least if least < NEVER else 0
        budget = _SearchBudget(min(work, work // STEP_SHARE + straight))
        if least > (NEVER if limit is None else limit):
            return None
        if least < NEVER:
            budget.spend(max(0, least - 1) * STEP, "the shortest completion")
            budget.spent = 0
        self._credit.clear()
        came: dict[int, tuple[int, int]] = {start: (-1, 0)}  # set -> set before it, byte between them
        # What is left to try: (priority, -length, set, place in the order of its bytes), the best first.
        heap: list[tuple[int, int, int, int]] = [(GREED * self._estimate(start), 0, start, 0)]
        while heap:
            _, length, current, place = heappop(heap)
            found = self._follow(current, -length, place, came, heap, limit, budget)
            if found >= 0:
                return self._spelled(found, came)
        return None

    def _follow(
        self,
        current: int,
        length: int,
        place: int,
        came: dict[int, tuple[int, int]],
        heap: list[tuple[int, int, int, int]],
        limit: int | None,
        budget: WorkBudget,
    ) -> int:
        """Goes on from a set as long as some byte lowers the cost: the set where the text may end, or -1."""
        while True:
            copied = self._copy(current, length, came, limit, budget) if place == 0 and self.costs.has_copies else None
            if copied is not None:
                heappush(heap, (GREED * self._estimate(current) + length, -length, current, 0))
                current, length = copied
                if self._accepts(current):
                    return current
            here, order = self._estimate(current), self._in_order(current)
            for k in range(place, len(order)):
                budget.spend(STEP, "the shortest completion")
                memory = self.state_cache.guarded
                asked = memory.total
                after = self.state_cache.run(kernels.step_set, current, order[k])
                budget.spend(memory.total - asked, "the shortest completion")
                if after == at.DEAD or after in came or length == limit:
                    continue
                came[after] = current, order[k]
                if current in self._credit:
                    self._credit[after] = self._credit[current]
                if self._accepts(after):
                    return after
                cost = self._estimate(after)
                budget.spend(CONFIGURATION * self._size(after) + self._walked, "the shortest completion")
                self._walked = 0
                if limit is not None and length + 1 + self.cost(after) > limit:
                    continue
                if cost < here:
                    if k + 1 < len(order):
                        heappush(heap, (GREED * (here - 1) + length + 1, -length, current, k + 1))
                    current, length, place = after, length + 1, 0
                    break
                heappush(heap, (GREED * cost + length + 1, -length - 1, after, 0))
            else:
                return -1

    def _copy(
        self, current: int, length: int, came: dict[int, tuple[int, int]], limit: int | None, budget: WorkBudget
    ) -> tuple[int, int] | None:
        """The set behind a copy of an earlier member, where one must equal another, and the length up to there.

        Where no copy fits, or a new member written twice is shorter, that behind the separator: the next member begins
        there, by which the estimate may rise. None where no such member comes next, or this was done before.
        """
        copies = find_copies(self.state_cache, self.costs, current, self._least(current, False))
        if copies is None:
            return None
        for text in [*(text for text in copies.texts if len(text) <= copies.worth), b""]:
            text = copies.separator + text
            after, steps = current, list[tuple[int, int, int]]()
            for byte in text:
                budget.spend(STEP, "the shortest completion")
                before, after = after, self.state_cache.run(kernels.step_set, after, byte)
                steps.append((after, before, byte))
                if after == at.DEAD:
                    break
            if after in (at.DEAD, current) or after in came:
                continue
            if limit is None or length + len(text) + self.cost(after) <= limit:
                for one, before, byte in steps:
                    came.setdefault(one, (before, byte))
                self._credit[after] = self._credit.get(current, 0) + (CREDIT if text == copies.separator else 0)
                return after, length + len(text)
        return None

    def _in_order(self, number: int) -> list[int]:
        """The bytes that a set names as allowed: that by which a least cost is reached first, if it is known."""
        record = self.state_cache.arrays[at.SETS][number * at.SET_W : (number + 1) * at.SET_W]
        count = int(record[at.SET_ALLOWED])
        if count > at.NARROW:
            bits = np.unpackbits(record[at.SET_NEXT : at.SET_NEXT + 8].view(np.uint8), bitorder="little")
            found: list[int] = np.flatnonzero(bits).tolist()
        else:
            found = list(record[at.SET_BYTES : at.SET_BYTES + 2].tobytes()[:count])
        first = self._literal.get(number, -1)
        return sorted(found, key=lambda byte: (byte != first, byte in LAST, byte))

    def _spelled(self, number: int, came: dict[int, tuple[int, int]]) -> bytes:
        """Return the bytes on the path to a set."""
        text = bytearray()
        while came[number][0] >= 0:
            number, byte = came[number]
            text.append(byte)
        return bytes(reversed(text))

    def _size(self, number: int) -> int:
        """Return the number of configurations of a set."""
        return int(self.state_cache.arrays[at.SETS][number * at.SET_W + at.SET_COUNT])

    def cost(self, number: int) -> int:
        """Return the least number of bytes from a set to the end of the text."""
        flags = int(self.state_cache.arrays[at.SETS][number * at.SET_W + at.SET_FLAGS])
        return self._least(number, bool(flags & at.HAS_CANDIDATES))

    def _estimate(self, number: int) -> int:
        """The same, were no member that is being written equal to an earlier one (`_copy` knows those), less credit."""
        return self._least(number, False) - self._credit.get(number, 0)

    def _least(self, number: int, watched: bool) -> int:
        found = self._sets.get((number, watched))
        if found is None:
            record = self.state_cache.arrays[at.SETS][number * at.SET_W : number * at.SET_W + 4].tolist()
            self.costs.refresh()
            self._watched = watched
            if record[at.SET_FLAGS] & at.IS_ACCEPTING:
                found = 0
            else:
                first = record[at.SET_FIRST]
                configs = self.state_cache.arrays[at.CONFIGS][5 * first : 5 * (first + record[at.SET_COUNT])].reshape(
                    -1, 5
                )
                found = NEVER
                for config in configs.tolist():
                    cost, op = self._config(*config), self.costs.code[config[0]]
                    if cost < found or (cost == found and op < 256):
                        found, self._literal[number] = cost, op
            self._sets[number, watched] = found
        return found

    def _accepts(self, number: int) -> bool:
        return bool(self.state_cache.arrays[at.SETS][number * at.SET_W + at.SET_FLAGS] & at.IS_ACCEPTING)

    def _config(self, pc: int, q: int, node: int, register: int, extra: int) -> int:
        code = self.costs.code
        below = self._nodes[self._watched].get(node, -1)
        if below < 0:
            below = self._node(node)
        if below >= NEVER:
            return NEVER
        op = code[pc]
        if op < 256:
            return below + self._from(pc, register)
        if op == at.LEAF:
            inside = self._leaf(q)
            due = max(0, code[pc + 2] - extra)
            mode = self.costs.program.leaves[code[pc + 1]][1]
            inside = max(inside, due + (mode == at.JSON_STRING))
            return below + inside + self._from(pc + 4, register)
        if op == at.PARSE:
            return below + self._parse(q) + self._from(pc + 2, register)
        if op == at.SET:
            return below + self._string(q) + self._from(pc + 2, register)
        if op == at.KEYS:
            return below + self._key(pc, q, register)
        if op == at.OTHER:
            return below + self._leaf(q) + self.costs.value(code[pc + 3]) + self._members(register, code[pc + 4])
        return below + self._from(pc, register)

    def _from(self, pc: int, register: int) -> int:
        return self.costs.from_pc(pc, register, self._object)

    def _node(self, node: int) -> int:
        """Least bytes that the callers of a stack node still need. No recursion: stacks are as deep as texts."""
        known = self._nodes[self._watched]
        if node not in known:
            nodes, edges = self.state_cache.arrays[at.NODES], self.state_cache.arrays[at.EDGES]
            ways: dict[int, list[tuple[int, int]]] = {}
            todo = [node]
            while todo:
                one = todo.pop()
                if one in known or one in ways:
                    continue
                first, count = nodes[4 * one : 4 * one + 2].tolist()
                callers = edges[3 * first : 3 * (first + count)].reshape(-1, 3).tolist()
                ways[one] = [
                    (self._after(pc, register) if pc != at.RETURN else 0, below) for pc, register, below in callers
                ]
                todo.extend(below for _, below in ways[one])
            # Nodes below have smaller ids but on a cycle (left recursion), so one round is mostly enough.
            found = dict.fromkeys(sorted(ways), NEVER)
            changed = True
            while changed:
                changed = False
                for one in found:
                    least = min(cost + found.get(below, known.get(below, NEVER)) for cost, below in ways[one])
                    if least < found[one]:
                        found[one], changed = least, True
            known.update(found)
        return known[node]

    def _after(self, pc: int, register: int) -> int:
        """Least bytes from where a call comes back to; a member that is not watched equals none before."""
        return self._from(pc + 2 if self.costs.code[pc] == at.MEMBER_END and not self._watched else pc, register)

    def _leaf(self, q: int) -> int:
        """Least bytes from a leaf state to where its leaf may be left, if a byte is enough for a character."""
        leaf = q * at.LEAF_W
        _, decoder, _, flags, need = self.state_cache.table.arrays[at.LEAVES][leaf : leaf + at.LEAF_NEED + 1].tolist()
        kind, left = decoder >> at.KIND, (decoder >> at.LEFT) & 7
        if kind == at.DONE:
            return 0
        pending = {at.ESCAPE: 1, at.HIGH: 6, at.HIGH_UNIFORM: 6, at.HIGH_ESCAPE: 5, at.HIGH_ESCAPE_UNIFORM: 5}
        return int(need) + int(pending.get(kind, left)) + (1 if flags & at.LEAF_CLOSES else 0)

    def _string(self, q: int) -> int:
        block, low, high, depth = self.state_cache.arrays[at.CURSORS][5 * q : 5 * q + 4].tolist()
        offsets = self.costs.code[block + at.STR_OFFSETS + low : block + at.STR_OFFSETS + high + 1]
        self._walked += len(offsets) // 8
        return int(min(b - a - depth for a, b in zip(offsets, offsets[1:])))

    def _parse(self, q: int) -> int:
        """Least bytes to the end of a text that is being parsed: by the lexeme in the making that ends soonest."""
        lists, pairs = self.state_cache.arrays[at.LISTS], self.state_cache.arrays[at.PAIRS]
        if lists[q + at.LIST_COMPLETE]:
            return 0
        endings = self.costs.program.endings(int(lists[q + at.LIST_BLOCK]))
        best = NEVER
        for k in range(int(lists[q + at.LIST_COUNT])):
            first = q + at.LIST_FIRST + at.LEXEME_W * k
            pair, state, _, brackets, _ = lists[first : first + at.LEXEME_W].tolist()
            stack: list[int] = []
            while pairs[at.PAIR_W * pair + at.PAIR_BELOW] >= 0:
                stack.append(int(pairs[at.PAIR_W * pair]))
                pair = int(pairs[at.PAIR_W * pair + at.PAIR_BELOW])
            self._walked += len(stack)
            here = tuple(reversed(stack))
            best = min(best, endings.cost(here) if state < 0 else endings.lexeme(here, state, brackets > 0))
        return best

    # ---- objects ------------------------------------------------------------------------------------------------

    def _state(self, state: int) -> tuple[int, set[int], int, bool]:
        """Of an object state: its block, the keys seen or passed over, the members, and whether there are none yet."""
        found = self._states.get(state)
        if found is not None:
            return found
        objects, code = self.state_cache.arrays[at.OBJECTS], self.costs.code
        block, following, members, names = objects[state : state + 4].tolist()
        words = objects[state + at.O_BITS : state + at.O_BITS + code[block + at.OBJ_WORDS]].tolist()
        bits = range(code[block + at.OBJ_COUNT] + code[block + at.OBJ_MARKS])
        seen = {k for k in bits if words[k >> 5] >> (k & 31) & 1}
        found = self._states[state] = block, seen, members, not seen and following == 0 and names == at.NO_NAMES
        return found

    def _rest(self, state: int) -> tuple[set[int], int]:
        """Of an object state: the keys that must still come, and the least bytes from behind a member to the end."""
        found = self._rests.get(state)
        if found is None:
            block, seen, members, _ = self._state(state)
            found = self.costs.due(block, seen), self.costs.members(block, seen, members, fresh=0)
            self._rests[state] = found
            self._walked += 2 * self.costs.code[block]
        return found

    def _members(self, state: int, key: int) -> int:
        """Least bytes that an object in that state needs to close, once `key` (or an undeclared one) is written too."""
        found = self._behind.get((state, key))
        if found is None:
            block, seen, members, _ = self._state(state)
            self._walked += 2 * self.costs.code[block]
            found = self._behind[state, key] = self.costs.members(block, seen | {key}, members + 1, fresh=0)
        return found

    def _object(self, pc: int, state: int) -> int:
        block, seen, members, fresh = self._state(state)
        op = self.costs.code[pc]
        if op == at.CLOSE or op == at.MORE:
            return self.costs.members(block, seen, members, fresh=1) if fresh else self._rest(state)[1]
        if op == at.OTHER:
            return 1 + self.costs.value(self.costs.code[pc + 3]) + self._members(state, self.costs.code[pc + 4])
        # Before the quote of a key: what must come may come in this order; else the cheapest key.
        self._walked += 2 * self.costs.code[block]
        count, total = self.costs.demand(block, seen, members)
        around = self.costs.layout(block)
        if count:
            return min(NEVER, total + (count - 1) * around.comma + around.close - 1)
        keys = [k for k in range(self.costs.code[block]) if k not in seen]
        return min((self.costs.member(block, k) for k in keys), default=4) - 1 + around.close

    def _key(self, pc: int, q: int, state: int) -> int:
        """From inside a declared key: what is left of the nearest one, its value, and what the object still needs."""
        code = self.costs.code
        block = code[pc + 1]
        strings, low, high, depth = self.state_cache.arrays[at.CURSORS][5 * q : 5 * q + 4].tolist()
        offsets, quote = strings + at.STR_OFFSETS, code[strings + at.STR_ESCAPES]
        allowed = state + at.O_BITS + code[block + at.OBJ_WORDS]
        bits, best = self.state_cache.arrays[at.OBJECTS], NEVER
        due, after = self._rest(state)
        comma = self.costs.layout(block).comma
        by_rank = self._by_rank.get(block)
        if by_rank is None:
            first = code[block + at.OBJ_RANKS]
            ranks = code[first : first + code[block + at.OBJ_COUNT]]
            by_rank = self._by_rank[block] = sorted(range(len(ranks)), key=ranks.__getitem__)
        self._walked += high - low
        for rank in range(low, high):
            if int(bits[allowed + (rank >> 5)]) >> (rank & 31) & 1:
                key = by_rank[rank]
                left = code[offsets + rank + 1] - code[offsets + rank] - depth + quote
                target = code[code[block + at.OBJ_TARGETS] + key]
                rest = after - comma - self.costs.member(block, key) if key in due else after
                best = min(best, left + self.costs.value(target) + rest)
        return best
