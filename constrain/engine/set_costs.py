"""The least number of bytes from a set of configurations to the end of the text.

The cost of a set is that of its cheapest configuration: what remains of its leaf or key, of its rule
(`program.least_costs`) and of all its callers. It is only a lower bound where undeclared keys must make up a minimum
number of members, where a leaf counts characters of several bytes, and where members must differ.
"""

from __future__ import annotations

from weakref import ref

from ..kernels import layout as at
from ..program.least_costs import NEVER, LeastCosts
from .state_cache import StateCache

__all__ = ["SetCosts"]

SPACE, QUOTE, BACKSLASH = b' "\\'


class SetCosts:
    """Costs of the sets of one state cache in one epoch, each computed once.

    The state cache refers to them, and they to it only weakly: it is freed when it is dropped, not at the next garbage
    collection, before which a server would drop many more.
    """

    def __init__(self, state_cache: StateCache, costs: LeastCosts) -> None:
        self._state_cache = ref(state_cache)
        self.costs = costs
        self.epoch = state_cache.epoch
        self._sets: dict[tuple[int, bool], int] = {}  # by set and `_is_repeated`
        self._next_bytes: dict[int, int] = {}  # by set: the next byte of its cheapest configuration, as far as known
        self._is_repeated = False  # whether the open member of the current set is assumed to equal an earlier one
        self._nodes: dict[bool, dict[int, int]] = {False: {0: 0}, True: {0: 0}}  # by `_is_repeated`, then stack node
        self._states: dict[int, tuple[int, set[int], int, bool]] = {}  # see `_read_object_state`
        self._due: dict[int, tuple[set[int], int, int]] = {}  # by object state: see `_find_due`
        self._after_key: dict[tuple[int, int], int] = {}  # by object state and key: see `_cost_after_key`
        self._by_rank: dict[int, list[int]] = {}  # by object block: its keys in order of their spelling
        self._keys: dict[tuple[int, int, int], tuple[int, int]] = {}  # see `_find_cheapest_key`
        self._uncharged = 0  # work not charged yet: parser states and object keys that were read

    @property
    def state_cache(self) -> StateCache:
        """The state cache, which whoever asks for costs keeps alive."""
        state_cache = self._state_cache()
        assert state_cache is not None
        return state_cache

    def _size(self, number: int) -> int:
        """Return the number of configurations of a set."""
        return int(self.state_cache.arrays[at.SETS][number * at.SET_W + at.SET_COUNT])

    def cost(self, number: int) -> int:
        """Return the least number of bytes from a set to the end of the text."""
        flags = int(self.state_cache.arrays[at.SETS][number * at.SET_W + at.SET_FLAGS])
        return self._least_cost(number, bool(flags & at.HAS_CANDIDATES))

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
                least, cheapest = NEVER, None
                for config in configs.tolist():
                    cost = self._configuration_cost(*config)
                    if cost < least or (cost == least and self.costs.code[config[0]] < 256):
                        least, cheapest = cost, config
                if cheapest is not None:
                    self._next_bytes[number] = self._find_next_byte(*cheapest)
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
            return below + self._string_cost(q, extra) + self._cost_from(pc + 2, register)
        if op == at.KEYS:
            return below + self._find_cheapest_key(pc, q, register)[0]
        if op == at.OTHER:
            return (
                below
                + self._leaf_cost(q)
                + self.costs.value(code[pc + 3])
                + self._cost_after_key(register, code[pc + 4])
            )
        return below + self._cost_from(pc, register)

    def _find_next_byte(self, pc: int, q: int, node: int, register: int, extra: int) -> int:
        """Return the byte with which a cheapest completion of a configuration continues; -1 if it is not known.

        It is only tried first, so it may be wrong: within an escape it is.
        """
        code = self.costs.code
        if code[pc] < 256:
            return code[pc]
        if code[pc] != at.KEYS or self._find_cheapest_key(pc, q, register)[1] < 0:
            return -1
        strings, _, _, depth = self.state_cache.arrays[at.CURSORS][5 * q : 5 * q + 4].tolist()
        offsets = strings + at.STR_OFFSETS + self._find_cheapest_key(pc, q, register)[1]
        place, end = code[offsets] + depth, code[offsets + 1]
        if place == end:
            return QUOTE
        return BACKSLASH if code[place] < SPACE or code[place] in (QUOTE, BACKSLASH) else code[place]

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
        if self.state_cache.table.is_number(q):
            return self.state_cache.table.least(q)
        leaf = q * at.LEAF_W
        _, decoder, _, flags, need = self.state_cache.table.arrays[at.LEAVES][leaf : leaf + at.LEAF_NEED + 1].tolist()
        kind, missing = decoder >> at.KIND, (decoder >> at.LEFT) & 7
        if kind == at.DONE:
            return 0
        pending = {at.ESCAPE: 1, at.HIGH: 6, at.HIGH_UNIFORM: 6, at.HIGH_ESCAPE: 5, at.HIGH_ESCAPE_UNIFORM: 5}
        return int(need) + int(pending.get(kind, missing)) + (1 if flags & at.LEAF_CLOSES else 0)

    def _string_cost(self, q: int, extra: int) -> int:
        """Return the least bytes from a string cursor to the end of one of its strings; `extra`: a pending escape."""
        block, low, high, depth = self.state_cache.arrays[at.CURSORS][5 * q : 5 * q + 4].tolist()
        offsets = self.costs.code[block + at.STR_OFFSETS + low : block + at.STR_OFFSETS + high + 1]
        self._uncharged += len(offsets) // 8
        return self.costs.string(block, [(a + depth, b) for a, b in zip(offsets, offsets[1:])], extra)

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

    def _find_due(self, state: int) -> tuple[set[int], int, int]:
        """Return the keys still required in an object state, the least bytes from after a member to its end, and the
        most bytes of a member that is among these only for the number of members (0 for none).
        """
        found = self._due.get(state)
        if found is None:
            block, seen, members, _ = self._read_object_state(state)
            demand = self.costs.demand(block, seen, members)
            found = self.costs.due(block, seen), self.costs.around(block, demand, fresh=0), demand.filler
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
        count, total, _ = self.costs.demand(block, seen, members)
        around = self.costs.layout(block)
        if count:
            return min(NEVER, total + (count - 1) * around.comma + around.close - 1)
        keys = [k for k in range(self.costs.code[block]) if k not in seen]
        least = min((self.costs.member(block, k) for k in keys), default=NEVER)
        return min(NEVER, least, self.costs.undeclared(block)) - 1 + around.close

    def _find_cheapest_key(self, pc: int, q: int, state: int) -> tuple[int, int]:
        """Return the least bytes to close an object from within a declared key, and the rank of that key; -1 for none.

        They are those of its suffix, its value and the required members.
        """
        found = self._keys.get((pc, q, state))
        if found is not None:
            return found
        code = self.costs.code
        block = code[pc + 1]
        strings, low, high, depth = self.state_cache.arrays[at.CURSORS][5 * q : 5 * q + 4].tolist()
        offsets, quote = strings + at.STR_OFFSETS, code[strings + at.STR_ESCAPES]
        allowed = state + at.O_BITS + code[block + at.OBJ_WORDS]
        bits, best = self.state_cache.arrays[at.OBJECTS], (NEVER, -1)
        self.costs.owner_of(pc)  # reads the rule of the object, if that has not been done
        due, after, filler = self._find_due(state)
        comma, needs = self.costs.layout(block).comma, code[block + at.OBJ_NEEDS]
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
                if after >= NEVER or (needs and self._has_needs(block, key)):
                    members = self._cost_after_key(state, key)
                elif key in due or filler:
                    cost = self.costs.member(block, key)
                    members = after - comma - (cost if key in due else min(cost, filler))
                else:
                    members = after
                best = min(best, (suffix + self.costs.value(target) + members, rank))
        self._keys[pc, q, state] = best
        return best

    def _has_needs(self, block: int, key: int) -> bool:
        """Return whether a key of an object requires other keys."""
        words = self.costs.code[block + at.OBJ_WORDS]
        first = self.costs.code[block + at.OBJ_NEEDS] + key * words
        return any(self.costs.code[first : first + words])
