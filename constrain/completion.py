"""The shortest way to finish a text: from any position, greedily, by the least cost of what each byte leads to.

The cost of a set is that of its cheapest configuration: what is left of its leaf or key, of its rule
(`automata.costs`) and of all its callers. Where that is exact, each byte of the completion lowers it by one. It is a
lower bound where undeclared keys must make up a least number of members, or where a leaf counts characters that take
several bytes; the way found may then be a little longer than the shortest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .automata.costs import NEVER, Costs
from .kernels import layout as at, masks, sets as kernels

if TYPE_CHECKING:
    from .arena import Arena

__all__ = ["Completion"]

DETOURS = 4_096
"""Bytes beyond the first estimate after which a completion is given up: its costs were not what they seemed."""
BLANKS = b" \t\n\r"


class Completion:
    """Costs of sets in one arena, and completions."""

    def __init__(self, arena: Arena, costs: Costs) -> None:
        self.arena = arena
        self.costs = costs
        self.epoch = arena.epoch
        self._sets: dict[int, int] = {}
        self._nodes: dict[int, int] = {0: 0}
        self._states: dict[int, tuple[int, set[int], int, bool]] = {}
        self._rests: dict[int, tuple[set[int], int]] = {}
        self._by_rank: dict[int, list[int]] = {}

    def complete(self, start: int, limit: int | None = None) -> bytes | None:
        """Bytes that lead from a set to the end, about as few as possible; None if more than `limit`, or none known."""
        most = self.cost(start) + DETOURS if limit is None else limit
        if self.cost(start) > most:
            return None
        text, current, visits = bytearray(), start, {start: 1}
        way: list[int] = []
        flags = np.empty(256, np.uint8)
        while not self._accepts(current):
            if len(text) >= most or self.cost(start) >= NEVER:
                return None
            self.arena.run(masks.next_bytes, current, flags)
            best, choice, then = 2 * NEVER, -1, -1
            for byte in np.flatnonzero(flags).tolist():
                after = self.arena.run(kernels.step, current, byte)
                cost = 0 if self._accepts(after) else self.cost(after)
                # Where the bound is too low, counted white space would not let it go on: it is no way of its own.
                idle = byte in BLANKS and cost >= self.cost(current)
                cost += DETOURS * (visits.get(after, 0) + idle)
                if (cost, byte) < (best, choice) or choice < 0:
                    best, choice, then = cost, byte, after
            if choice < 0 or best >= NEVER:  # stuck (see `guards`): back, and not here again
                self._sets[current] = NEVER
                if not way:
                    return None
                current = way.pop()
                text.pop()
                continue
            text.append(choice)
            way.append(current)
            current = then
            visits[current] = visits.get(current, 0) + 1
        return bytes(text) if limit is None or len(text) <= limit else None

    def cost(self, number: int) -> int:
        """Least bytes from a set to the end of the text."""
        found: int | None = self._sets.get(number)
        if found is None:
            record = self.arena.arrays[at.SETS][number * at.SET_W : number * at.SET_W + 4].tolist()
            if record[at.SET_FLAGS] & at.IS_ACCEPTING:
                found = 0
            else:
                first = record[at.SET_FIRST]
                configs = self.arena.arrays[at.CONFIGS][5 * first : 5 * (first + record[at.SET_COUNT])].reshape(-1, 5)
                found = min((self._config(*config) for config in configs.tolist()), default=NEVER)
            self._sets[number] = found
        return found

    def _accepts(self, number: int) -> bool:
        return bool(self.arena.arrays[at.SETS][number * at.SET_W + at.SET_FLAGS] & at.IS_ACCEPTING)

    def _config(self, pc: int, q: int, node: int, register: int, extra: int) -> int:
        self.costs.refresh()
        code = self.costs.code
        below = self._node(node)
        if below >= NEVER:
            return NEVER
        op = code[pc]
        self.costs.owner_of(pc)  # reads the rule, if nothing needed it before
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
        if node not in self._nodes:
            nodes, edges = self.arena.arrays[at.NODES], self.arena.arrays[at.EDGES]
            ways: dict[int, list[tuple[int, int]]] = {}
            todo = [node]
            while todo:
                one = todo.pop()
                if one in self._nodes or one in ways:
                    continue
                first, count = nodes[4 * one : 4 * one + 2].tolist()
                callers = edges[3 * first : 3 * (first + count)].reshape(-1, 3).tolist()
                ways[one] = [(self._from(pc, register), below) for pc, register, below in callers]
                todo.extend(below for _, below in ways[one])
            # Nodes below have smaller ids but on a cycle (left recursion), so one round is mostly enough.
            found = dict.fromkeys(sorted(ways), NEVER)
            changed = True
            while changed:
                changed = False
                for one in found:
                    least = min(cost + found.get(below, self._nodes.get(below, NEVER)) for cost, below in ways[one])
                    if least < found[one]:
                        found[one], changed = least, True
            self._nodes.update(found)
        return self._nodes[node]

    def _leaf(self, q: int) -> int:
        """Least bytes from a leaf state to where its leaf may be left, if a byte is enough for a character."""
        leaves = self.arena.table.arrays[at.LEAVES]
        decoder, flags, need = leaves[q * at.LEAF_W + np.array([at.LEAF_DECODER, at.LEAF_FLAGS, at.LEAF_NEED])].tolist()
        kind, left = decoder >> at.KIND, (decoder >> at.LEFT) & 7
        if kind == at.DONE:
            return 0
        pending = {at.ESCAPE: 1, at.HIGH: 6, at.HIGH_UNIFORM: 6, at.HIGH_ESCAPE: 5, at.HIGH_ESCAPE_UNIFORM: 5}
        return int(need) + int(pending.get(kind, left)) + (1 if flags & at.LEAF_CLOSES else 0)

    def _string(self, q: int) -> int:
        block, low, high, depth = self.arena.arrays[at.POINTS][5 * q : 5 * q + 4].tolist()
        offsets = self.costs.code[block + at.STR_OFFSETS + low : block + at.STR_OFFSETS + high + 1]
        return int(min(b - a - depth for a, b in zip(offsets, offsets[1:])))

    def _parse(self, q: int) -> int:
        """Least bytes to the end of a text that is being parsed: by the lexeme in the making that ends soonest."""
        lists, pairs = self.arena.arrays[at.LISTS], self.arena.arrays[at.PAIRS]
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
            here = tuple(reversed(stack))
            best = min(best, endings.cost(here) if state < 0 else endings.lexeme(here, state, brackets > 0))
        return best

    # ---- objects ------------------------------------------------------------------------------------------------

    def _state(self, state: int) -> tuple[int, set[int], int, bool]:
        """Of an object state: its block, the keys seen or passed over, the members, and whether there are none yet."""
        found = self._states.get(state)
        if found is not None:
            return found
        objects, code = self.arena.arrays[at.OBJECTS], self.costs.code
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
        return found

    def _members(self, state: int, key: int) -> int:
        """Least bytes that an object in that state needs to close, once `key` (or an undeclared one) is written too."""
        block, seen, members, _ = self._state(state)
        return self.costs.members(block, seen | {key}, members + 1, fresh=0)

    def _object(self, pc: int, state: int) -> int:
        block, seen, members, fresh = self._state(state)
        op = self.costs.code[pc]
        if op == at.CLOSE or op == at.MORE:
            return self.costs.members(block, seen, members, fresh=1) if fresh else self._rest(state)[1]
        if op == at.OTHER:
            return 1 + self.costs.value(self.costs.code[pc + 3]) + self._members(state, self.costs.code[pc + 4])
        # Before the quote of a key: what must come may come in this order; else the cheapest key.
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
        strings, low, high, depth = self.arena.arrays[at.POINTS][5 * q : 5 * q + 4].tolist()
        offsets, quote = strings + at.STR_OFFSETS, code[strings + at.STR_ESCAPES]
        allowed = state + at.O_BITS + code[block + at.OBJ_WORDS]
        bits, best = self.arena.arrays[at.OBJECTS], NEVER
        due, after = self._rest(state)
        comma = self.costs.layout(block).comma
        by_rank = self._by_rank.get(block)
        if by_rank is None:
            first = code[block + at.OBJ_RANKS]
            ranks = code[first : first + code[block + at.OBJ_COUNT]]
            by_rank = self._by_rank[block] = sorted(range(len(ranks)), key=ranks.__getitem__)
        for rank in range(low, high):
            if int(bits[allowed + (rank >> 5)]) >> (rank & 31) & 1:
                key = by_rank[rank]
                left = code[offsets + rank + 1] - code[offsets + rank] - depth + quote
                target = code[code[block + at.OBJ_TARGETS] + key]
                rest = after - comma - self.costs.member(block, key) if key in due else after
                best = min(best, left + self.costs.value(target) + rest)
        return best
