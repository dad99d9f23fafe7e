"""Shortest completion of a text from any position: best-first search by a lower bound of the remaining bytes.

The cost of a set is that of its cheapest configuration: what remains of its leaf or key, of its rule
(`program.least_costs`) and of all its callers. Where this is exact, each byte of the completion lowers it by one, and
the search is a single descent to a shortest completion. It is only a lower bound where undeclared keys must make up a
minimum number of members, where a leaf counts characters of several bytes, and where members must differ. The result
may then be longer than the shortest, since the search prefers sets near the end to short texts.
"""

from __future__ import annotations

from functools import lru_cache
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
"""Weight of the estimate in the priority (weighted A*): longer texts that are nearer to the end are preferred."""
STEP = 10
"""Units of work for one byte that is tried."""
CONFIGURATION = 3
"""Units of work for the estimate of one configuration of a set."""
BYTE = 4 * STEP
"""Units of work that each byte of a completion may take."""
STEP_SHARE = 2
"""Divisor of Limits.work: the part that a search may take in addition."""
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
        self._sets: dict[tuple[int, bool], int] = {}  # by set and `_is_repeated`
        self._literal: dict[int, int] = {}  # by set: the next instruction of its cheapest configuration
        self._is_repeated = False  # whether the open member of the current set is assumed to equal an earlier one
        self._nodes: dict[bool, dict[int, int]] = {False: {0: 0}, True: {0: 0}}  # by `_is_repeated`, then stack node
        self._states: dict[int, tuple[int, set[int], int, bool]] = {}  # see `_read_object_state`
        self._due: dict[int, tuple[set[int], int]] = {}  # by object state: see `_find_due`
        self._after_key: dict[tuple[int, int], int] = {}  # by object state and key: see `_cost_after_key`
        self._by_rank: dict[int, list[int]] = {}  # by object block: its keys in order of their spelling
        self._credit: dict[int, int] = {}  # by set: by how much the path to it was allowed to raise the estimate
        self._uncharged = 0  # work not charged yet: parser states and object keys that were read
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
            raise LimitError(refused.cause, hint=refused.hint)
        program, work = self.state_cache.program, self.state_cache.work
        try:
            with work_budget(work // STEP_SHARE, work, program.paid):
                path = self._search(start, limit)
        except LimitError as error:
            self._refused[start, limit] = error
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

    def _search(self, start: int, limit: int | None) -> tuple[list[int], bytes] | None:
        """Search for a completion from a set; see `complete`. Return the sets that were visited, and the completion.

        Without a limit, the search ends where it meets a completion that is kept and as short as the cost says.
        """
        least = self.cost(start)
        # A fixed share of the work, and the work of a descent without backtracking.
        work, per_byte = self.state_cache.work, BYTE + CONFIGURATION * self._size(start) + self._uncharged
        descent = per_byte * least if least < NEVER else 0
        budget = _SearchBudget(min(work, work // STEP_SHARE + descent))
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
                after = self.state_cache.run(kernels.step_set, current, order[k])
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
                before, after = after, self.state_cache.run(kernels.step_set, after, byte)
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
        count, first = int(record[at.SET_ALLOWED]), self._literal.get(number, -1)
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

    def _size(self, number: int) -> int:
        """Return the number of configurations of a set."""
        return int(self.state_cache.arrays[at.SETS][number * at.SET_W + at.SET_COUNT])

    def cost(self, number: int) -> int:
        """Return the least number of bytes from a set to the end of the text."""
        flags = int(self.state_cache.arrays[at.SETS][number * at.SET_W + at.SET_FLAGS])
        return self._least_cost(number, bool(flags & at.HAS_CANDIDATES))

    def _estimate(self, number: int) -> int:
        """Return the priority of a set: its cost if its member differs from all earlier ones, less its credit.

        Equal members are written by `_copy_member`.
        """
        return self._least_cost(number, False) - self._credit.get(number, 0)

    def _least_cost(self, number: int, is_repeated: bool) -> int:
        """Return the cost of a set. `is_repeated`: its open member is assumed to equal an earlier one."""
        least = self._sets.get((number, is_repeated))
        if least is None:
            record = self.state_cache.arrays[at.SETS][number * at.SET_W : number * at.SET_W + 4].tolist()
            self.costs.refresh()
            self._is_repeated = is_repeated
            if record[at.SET_FLAGS] & at.IS_ACCEPTING:
                least = 0
            else:
                first = record[at.SET_FIRST]
                configs = self.state_cache.arrays[at.CONFIGS][5 * first : 5 * (first + record[at.SET_COUNT])].reshape(
                    -1, 5
                )
                least = NEVER
                for config in configs.tolist():
                    cost, op = self._configuration_cost(*config), self.costs.code[config[0]]
                    if cost < least or (cost == least and op < 256):
                        least, self._literal[number] = cost, op
            self._sets[number, is_repeated] = least
        return least

    def _accepts(self, number: int) -> bool:
        """Return whether the text may end at a set."""
        return bool(self.state_cache.arrays[at.SETS][number * at.SET_W + at.SET_FLAGS] & at.IS_ACCEPTING)

    def _configuration_cost(self, pc: int, q: int, node: int, register: int, extra: int) -> int:
        """Return the least bytes from a configuration to the end of the text; for its fields see `kernels.layout`."""
        code = self.costs.code
        below = self._nodes[self._is_repeated].get(node, -1)
        if below < 0:
            below = self._stack_cost(node)
        if below >= NEVER:
            return NEVER
        op = code[pc]
        if op < 256:
            return below + self._cost_from(pc, register)
        if op == at.LEAF:
            inside = self._leaf_cost(q)
            due = max(0, code[pc + 2] - extra)
            mode = self.costs.program.leaves[code[pc + 1]][1]
            inside = max(inside, due + (mode == at.JSON_STRING))
            return below + inside + self._cost_from(pc + 4, register)
        if op == at.PARSE:
            return below + self._parser_cost(q) + self._cost_from(pc + 2, register)
        if op == at.SET:
            return below + self._string_cost(q) + self._cost_from(pc + 2, register)
        if op == at.KEYS:
            return below + self._key_cost(pc, q, register)
        if op == at.OTHER:
            return (
                below
                + self._leaf_cost(q)
                + self.costs.value(code[pc + 3])
                + self._cost_after_key(register, code[pc + 4])
            )
        return below + self._cost_from(pc, register)

    def _cost_from(self, pc: int, register: int) -> int:
        """Return the least bytes from an instruction to the end of its rule."""
        return self.costs.from_pc(pc, register, self._object_cost)

    def _stack_cost(self, node: int) -> int:
        """Return the least bytes that the callers of a stack node need. Iterative: stacks are as deep as texts."""
        known = self._nodes[self._is_repeated]
        if node not in known:
            nodes, edges = self.state_cache.arrays[at.NODES], self.state_cache.arrays[at.EDGES]
            callers_of: dict[int, list[tuple[int, int]]] = {}  # by node: (cost, node below)
            todo = [node]
            while todo:
                one = todo.pop()
                if one in known or one in callers_of:
                    continue
                first, count = nodes[4 * one : 4 * one + 2].tolist()
                callers = edges[3 * first : 3 * (first + count)].reshape(-1, 3).tolist()
                callers_of[one] = [
                    (self._cost_after_return(pc, register) if pc != at.RETURN else 0, below)
                    for pc, register, below in callers
                ]
                todo.extend(below for _, below in callers_of[one])
            # Nodes below have smaller ids except on a cycle (left recursion), so one round usually suffices.
            costs = dict.fromkeys(sorted(callers_of), NEVER)
            changed = True
            while changed:
                changed = False
                for one in costs:
                    least = min(cost + costs.get(below, known.get(below, NEVER)) for cost, below in callers_of[one])
                    if least < costs[one]:
                        costs[one], changed = least, True
            known.update(costs)
        return known[node]

    def _cost_after_return(self, pc: int, register: int) -> int:
        """Return the least bytes from the return address of a call.

        A member that is not assumed to be repeated continues after the address for equal members.
        """
        return self._cost_from(
            pc + 2 if self.costs.code[pc] == at.MEMBER_END and not self._is_repeated else pc, register
        )

    def _leaf_cost(self, q: int) -> int:
        """Return the least bytes from a leaf state to where its leaf may be left, at one byte per character."""
        leaf = q * at.LEAF_W
        _, decoder, _, flags, need = self.state_cache.table.arrays[at.LEAVES][leaf : leaf + at.LEAF_NEED + 1].tolist()
        kind, missing = decoder >> at.KIND, (decoder >> at.LEFT) & 7
        if kind == at.DONE:
            return 0
        pending = {at.ESCAPE: 1, at.HIGH: 6, at.HIGH_UNIFORM: 6, at.HIGH_ESCAPE: 5, at.HIGH_ESCAPE_UNIFORM: 5}
        return int(need) + int(pending.get(kind, missing)) + (1 if flags & at.LEAF_CLOSES else 0)

    def _string_cost(self, q: int) -> int:
        """Return the least bytes from a string cursor to the end of one of its strings."""
        block, low, high, depth = self.state_cache.arrays[at.CURSORS][5 * q : 5 * q + 4].tolist()
        offsets = self.costs.code[block + at.STR_OFFSETS + low : block + at.STR_OFFSETS + high + 1]
        self._uncharged += len(offsets) // 8
        return int(min(b - a - depth for a, b in zip(offsets, offsets[1:])))

    def _parser_cost(self, q: int) -> int:
        """Return the least bytes to the end of a parsed text, over the lexemes that may be in progress."""
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
            self._uncharged += len(stack)
            here = tuple(reversed(stack))
            best = min(best, endings.cost(here) if state < 0 else endings.lexeme(here, state, brackets > 0))
        return best

    # ---- objects ------------------------------------------------------------------------------------------------

    def _read_object_state(self, state: int) -> tuple[int, set[int], int, bool]:
        """Return block, keys seen or skipped, number of members, and whether there are none yet, of an object state."""
        known = self._states.get(state)
        if known is not None:
            return known
        objects, code = self.state_cache.arrays[at.OBJECTS], self.costs.code
        block, following, members, names = objects[state : state + 4].tolist()
        words = objects[state + at.O_BITS : state + at.O_BITS + code[block + at.OBJ_WORDS]].tolist()
        bits = range(code[block + at.OBJ_COUNT] + code[block + at.OBJ_MARKS])
        seen = {k for k in bits if words[k >> 5] >> (k & 31) & 1}
        known = self._states[state] = block, seen, members, not seen and following == 0 and names == at.NO_NAMES
        return known

    def _find_due(self, state: int) -> tuple[set[int], int]:
        """Return the keys still required in an object state, and the least bytes from after a member to its end."""
        found = self._due.get(state)
        if found is None:
            block, seen, members, _ = self._read_object_state(state)
            found = self.costs.due(block, seen), self.costs.members(block, seen, members, fresh=0)
            self._due[state] = found
            self._uncharged += 2 * self.costs.code[block]
        return found

    def _cost_after_key(self, state: int, key: int) -> int:
        """Return the least bytes to close an object once `key` (or an undeclared key) is written, too."""
        found = self._after_key.get((state, key))
        if found is None:
            block, seen, members, _ = self._read_object_state(state)
            self._uncharged += 2 * self.costs.code[block]
            found = self._after_key[state, key] = self.costs.members(block, seen | {key}, members + 1, fresh=0)
        return found

    def _object_cost(self, pc: int, state: int) -> int:
        """Return the least bytes to close an object from an instruction that queries its state."""
        block, seen, members, fresh = self._read_object_state(state)
        op = self.costs.code[pc]
        if op == at.CLOSE or op == at.MORE:
            return self.costs.members(block, seen, members, fresh=1) if fresh else self._find_due(state)[1]
        if op == at.OTHER:
            return 1 + self.costs.value(self.costs.code[pc + 3]) + self._cost_after_key(state, self.costs.code[pc + 4])
        # Before the quote of a key: all required keys, in an allowed order; if there are none, the cheapest key.
        self._uncharged += 2 * self.costs.code[block]
        count, total = self.costs.demand(block, seen, members)
        around = self.costs.layout(block)
        if count:
            return min(NEVER, total + (count - 1) * around.comma + around.close - 1)
        keys = [k for k in range(self.costs.code[block]) if k not in seen]
        return min((self.costs.member(block, k) for k in keys), default=4) - 1 + around.close

    def _key_cost(self, pc: int, q: int, state: int) -> int:
        """Return the least bytes to close an object from within a declared key: suffix, value and required members."""
        code = self.costs.code
        block = code[pc + 1]
        strings, low, high, depth = self.state_cache.arrays[at.CURSORS][5 * q : 5 * q + 4].tolist()
        offsets, quote = strings + at.STR_OFFSETS, code[strings + at.STR_ESCAPES]
        allowed = state + at.O_BITS + code[block + at.OBJ_WORDS]
        bits, best = self.state_cache.arrays[at.OBJECTS], NEVER
        due, after = self._find_due(state)
        comma = self.costs.layout(block).comma
        by_rank = self._by_rank.get(block)
        if by_rank is None:
            first = code[block + at.OBJ_RANKS]
            ranks = code[first : first + code[block + at.OBJ_COUNT]]
            by_rank = self._by_rank[block] = sorted(range(len(ranks)), key=ranks.__getitem__)
        self._uncharged += high - low
        for rank in range(low, high):
            if int(bits[allowed + (rank >> 5)]) >> (rank & 31) & 1:
                key = by_rank[rank]
                suffix = code[offsets + rank + 1] - code[offsets + rank] - depth + quote
                target = code[code[block + at.OBJ_TARGETS] + key]
                members = after - comma - self.costs.member(block, key) if key in due else after
                best = min(best, suffix + self.costs.value(target) + members)
        return best
