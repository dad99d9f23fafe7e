"""Costs: how many bytes a rule, or what is left of one, needs at least.

The least length of a rule is a least fixpoint over the rules it calls (Knuth, A generalization of Dijkstra's
algorithm, 1977). Inside a rule the code is a small graph; `_Rule.ahead` holds, for each instruction, the least bytes
up to the first *stop*: the end of the rule, a test or the end of a round of a counted repetition, or a question to an
object's state. What the register adds (rounds still due, keys still required) is added when one is asked about.
`completion` uses this for configurations, whose callers it adds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ..kernels import layout as at

if TYPE_CHECKING:
    from .program import Program

__all__ = ["NEVER", "Costs"]

NEVER = 1 << 40
"""More than any text needs: no way out is known."""

STOPS = (at.END, at.COUNT, at.TEST, at.KEYS, at.OTHER, at.CLOSE, at.MORE)

FIRST_RULES = 64
MOST_RULES = 20_000
"""Rules read to find one least length, at most: beyond, it counts as unknown."""


@dataclass(slots=True)
class _Rule:
    """One linked rule: its code as instructions by pc, and what each needs up to the first stop."""

    order: list[int] = field(default_factory=list)
    ahead: dict[int, tuple[int, int]] = field(default_factory=dict)  # pc -> bytes, pc of the stop
    calls: set[int] = field(default_factory=set)
    block: int = 0  # object block, if it is an object's rule


class _Layout(NamedTuple):
    """Least bytes before the first member (which has its quotes), between two, from the last on, of an empty one."""

    open: int
    comma: int
    close: int
    empty: int


class Costs:
    """Least lengths of a Program's rules, leaves and configurations."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.code: list[int] = []
        self.rules: dict[int, _Rule] = {}
        self.least: dict[int, int] = {}
        self._members: dict[tuple[int, int], int] = {}
        self._layouts: dict[int, _Layout] = {}
        self._solved = False
        self._unsolved: list[int] = []
        self._hopeless: set[int] = set()
        self.callers: dict[int, set[int]] = {}
        self.object_rules: dict[int, _Rule] = {}
        self.owner: dict[int, int] = {}
        self._leaf: dict[tuple[int, int], int] = {}
        self.ensure(program.entry)

    # ---- reading the code ------------------------------------------------------------------------------------

    def ensure(self, cell: int, pc: int = 0) -> None:
        """Reads rules, breadth first from `cell`, until its least length (or that from `pc` on) is known.

        Twice as many each time: a grammar with a rule for every depth of indentation has no end of rules.
        """
        todo, seen, most = [cell], {cell}, FIRST_RULES
        with self.program.lock:
            while not self._read_some(todo, seen, most):
                known = self.rules[cell].ahead.get(pc, (NEVER, 0))[0] if pc else self.least[cell]
                if known < NEVER:
                    return
                most *= 2

    def _read_some(self, todo: list[int], seen: set[int], most: int) -> bool:
        """Reads up to `most` rules from the list and solves: whether no more can be read."""
        while todo and len(seen) - len(todo) < most:
            batch = todo[:FIRST_RULES]
            del todo[:FIRST_RULES]
            for one in batch:
                self.program.link(one)
            self.refresh()
            for one in batch:
                # Linking fills cells and objects' targets of code that was copied before.
                self.code[one] = int(self.program.code[one])
                rule = self.rules.get(one) or self._read(one)
                fresh = sorted(rule.calls - seen)
                seen.update(fresh)
                todo.extend(fresh)
        self._solve()
        return not todo or len(seen) > MOST_RULES

    def refresh(self) -> None:
        """Takes over the code that was linked since."""
        with self.program.lock:
            if len(self.code) < self.program.used:
                self.code += self.program.code[len(self.code) : self.program.used].tolist()

    def owner_of(self, pc: int) -> int:
        """The rule cell whose code holds pc; its rule is read if it was not yet."""
        if pc not in self.owner:
            entries = sorted(
                (int(self.program.code[cell]), cell) for cell in self.program.cells() if self.program.code[cell]
            )
            self.ensure(entries[bisect_right(entries, (pc, 1 << 40)) - 1][1])
        return self.owner.get(pc, -1)

    def _read(self, cell: int) -> _Rule:
        """The instructions of one rule, in the order of their addresses."""
        code, rule = self.code, _Rule()
        self.rules[cell] = rule
        self._unsolved.append(cell)
        self.least[cell] = NEVER
        todo, seen = [code[cell]], set()
        while todo:
            pc = todo.pop()
            if pc in seen:
                continue
            seen.add(pc)
            self.owner[pc] = cell
            op = code[pc]
            if op in (at.CALL, at.PASS):
                rule.calls.add(code[pc + 1])
                self.callers.setdefault(code[pc + 1], set()).add(cell)
            elif op == at.INIT:
                rule.block = code[pc + 1]
                self.object_rules[code[pc + 1]] = rule
            todo.extend(self._next(pc))
        rule.order = sorted(seen, reverse=True)
        return rule

    def _next(self, pc: int) -> list[int]:
        """The instructions that may come after the one at pc inside its rule."""
        code = self.code
        op = code[pc]
        if op < 256:
            return [pc + 1]
        if op == at.JUMP:
            return [code[pc + 1]]
        if op == at.SPLIT:
            return code[pc + 2 : pc + 2 + code[pc + 1]]
        if op == at.END:
            return []
        if op == at.TEST:
            return [pc + 4, code[pc + 3]]
        if op == at.KEYS:
            block = code[pc + 1]
            return code[code[block + at.OBJ_TARGETS] : code[block + at.OBJ_TARGETS] + code[block + at.OBJ_COUNT]]
        if op == at.OTHER:
            return [code[pc + 3]]
        return [pc + at.LENGTHS[op - 256]]

    # ---- least lengths of rules ------------------------------------------------------------------------------

    def _solve(self) -> None:
        """Lowers only: rules that were read since are looked at, then callers, until none gets shorter."""
        self._solved = False
        self._members.clear()
        self._layouts.clear()
        todo = deque(reversed(self._unsolved))
        self._unsolved.clear()
        waiting = set(todo)
        while todo:
            cell = todo.popleft()
            waiting.discard(cell)
            self._look_ahead(self.rules[cell])
            cost = self._rule_cost(cell)
            if cost < self.least[cell]:
                self.least[cell] = cost
                for caller in self.callers.get(cell, ()):
                    if caller not in waiting:
                        waiting.add(caller)
                        todo.append(caller)
        self._solved = True

    def _rule_cost(self, cell: int) -> int:
        rule, entry = self.rules[cell], self.code[cell]
        if rule.block:
            return 1 + self.members(rule.block, set(), 0, fresh=1)
        return self.from_pc(entry, 0)

    def _look_ahead(self, rule: _Rule) -> None:
        """Relaxes until nothing changes; code runs forward but for loops, so two or three rounds do."""
        ahead = rule.ahead
        changed = True
        while changed:
            changed = False
            for pc in rule.order:
                best = self._ahead_of(pc, ahead)
                if best[0] < ahead.get(pc, (NEVER, 0))[0]:
                    ahead[pc] = best
                    changed = True

    def _ahead_of(self, pc: int, ahead: dict[int, tuple[int, int]]) -> tuple[int, int]:
        code = self.code
        op = code[pc]
        far = (NEVER, pc)
        if op in STOPS:
            return 0, pc
        if op == at.SPLIT:
            return min((ahead.get(target, far) for target in self._next(pc)), default=far)
        cost, stop = ahead.get(self._next(pc)[0], far)
        if op < 256:
            cost += 1
        elif op in (at.CALL, at.PASS):
            cost += self.least.get(code[pc + 1], NEVER)
        elif op == at.LEAF:
            cost += self.leaf(code[pc + 1], code[pc + 2])
        elif op == at.SET:
            cost += self._string(code[pc + 1])
        elif op == at.PARSE:
            cost += self.program.endings(code[pc + 1]).least
        return min(cost, NEVER), stop

    def from_pc(self, pc: int, register: int, rest: Callable[[int, int], int] | None = None) -> int:
        """Least bytes from an instruction to the end of its rule, the register being that.

        rest: what an object still needs, from the pc of a stop and the register (the object's state).
        """
        code, total = self.code, 0
        while True:
            rule = self.rules.get(self.owner_of(pc))
            if rule is None:
                return NEVER
            cost, stop = self._known_ahead(rule, pc)
            total += cost
            if total >= NEVER:
                return NEVER
            op = code[stop]
            if op == at.END:
                return total
            if op == at.COUNT:  # the jump behind it leads back to the test
                register, stop = min(register + 1, code[stop + 1]), code[stop + 3]
            elif op == at.TEST:  # met from outside: ENTER stands before it
                register = 0
            else:
                return total + (rest(stop, register) if rest else 0)
            due = max(0, code[stop + 1] - register)
            if due:
                total += due * rule.ahead.get(stop + 4, (NEVER, stop))[0]
            pc, register = code[stop + 3], 0

    def _known_ahead(self, rule: _Rule, pc: int) -> tuple[int, int]:
        """What `ahead` says of pc; rules that it calls are read first if they were not needed before."""
        if rule.ahead.get(pc, (NEVER, pc))[0] >= NEVER and self._solved and pc not in self._hopeless:
            self.ensure(self.owner[pc], pc)
            if rule.ahead.get(pc, (NEVER, pc))[0] >= NEVER:
                self._hopeless.add(pc)
        return rule.ahead.get(pc, (NEVER, pc))

    # ---- objects ---------------------------------------------------------------------------------------------

    def member(self, block: int, key: int) -> int:
        """Least bytes of a member: opening quote, key, closing quote, colon, value."""
        found = self._members.get((block, key))
        if found is not None:
            return found
        code = self.code
        strings = code[block + at.OBJ_KEYS]
        rank = code[code[block + at.OBJ_RANKS] + key]
        offsets = strings + at.STR_OFFSETS + rank
        quote = 1 + code[strings + at.STR_ESCAPES]
        target = code[code[block + at.OBJ_TARGETS] + key]
        found = quote + code[offsets + 1] - code[offsets] + self.value(target)
        if self._solved:
            self._members[block, key] = found
        return found

    def value(self, target: int) -> int:
        """Least bytes from behind a key to behind its value."""
        rule = self.rules.get(self.owner.get(target, -1))
        return self._known_ahead(rule, target)[0] if rule else NEVER

    def members(self, block: int, seen: set[int], members: int, fresh: int) -> int:
        """Least bytes to write what an object still needs and to close it; `fresh`: 1 if no comma comes first."""
        count, total = self.demand(block, seen, members)
        around = self.layout(block)
        if not count:
            return around.empty if fresh else around.close
        return min(NEVER, total + (count - fresh) * around.comma + fresh * around.open + around.close)

    def demand(self, block: int, seen: set[int], members: int) -> tuple[int, int]:
        """How many members must still come, and their least bytes without commas."""
        code = self.code
        due = self.due(block, seen)
        costs = [self.member(block, key) for key in due]
        first = code[block + at.OBJ_COUNT]
        for mark in range(first, first + code[block + at.OBJ_MARKS]):
            if mark not in seen:
                costs.append(self.marked(block, mark))
        missing = code[block + at.OBJ_LOW] - members - len(costs)
        if missing > 0:
            keys = range(code[block + at.OBJ_COUNT])
            spare = sorted(self.member(block, key) for key in keys if key not in seen and key not in due)
            spare += [4] * missing if code[block + at.OBJ_OTHERS] else []
            costs += spare[:missing] if len(spare) >= missing else [NEVER]
        return len(costs), min(NEVER, sum(costs))

    def marked(self, block: int, mark: int) -> int:
        """Least bytes of a member that sets a mark."""
        code = self.code
        places = (pc for pc in self.object_rules[block].order if code[pc] == at.OTHER and code[pc + 4] == mark)
        return min((1 + self.leaf(code[pc + 2], 0) + self.value(code[pc + 3]) for pc in places), default=NEVER)

    def layout(self, block: int) -> _Layout:
        """Least bytes of what stands around the members of an object, read off its rule."""
        if block in self._layouts:
            return self._layouts[block]
        rule = self.object_rules[block]
        mores = sorted(pc for pc in rule.order if self.code[pc] == at.MORE)
        closes = sorted(pc for pc in rule.order if self.code[pc] == at.CLOSE)
        # In the order of the code: before the first member, between two; of an empty object, behind the last member.
        ahead = [rule.ahead.get(pc + 2, (NEVER, pc))[0] for pc in (*mores, *closes)]
        if len(mores) == 1:  # no member can come
            found = _Layout(NEVER, NEVER, NEVER, ahead[1])
        else:
            found = _Layout(ahead[0] - 1, ahead[1] - 1, ahead[3], ahead[2])
        if self._solved:
            self._layouts[block] = found
        return found

    def due(self, block: int, seen: set[int]) -> set[int]:
        """The keys that must still come (see `kernels.sets.still_required`)."""
        code = self.code
        count, words, needs = code[block + at.OBJ_COUNT], code[block + at.OBJ_WORDS], code[block + at.OBJ_NEEDS]

        def bits(address: int) -> set[int]:
            return {k for k in range(count) if code[address + (k >> 5)] >> (k & 31) & 1}

        due = bits(code[block + at.OBJ_REQUIRED])
        if needs:
            while True:
                more = set().union(*(bits(needs + k * words) for k in seen | due)) - due
                if not more:
                    break
                due |= more
        return due - seen

    # ---- leaves and strings ------------------------------------------------------------------------------------

    def leaf(self, number: int, low: int) -> int:
        """Least bytes of a leaf: its shortest text, a byte a character, and the closing quote."""
        found = self._leaf.get((number, low))
        if found is None:
            dfa, mode = self.program.leaves[number]
            characters = max(int(dfa.distances()[0]) if len(dfa.delta) else NEVER, low)
            found = self._leaf[number, low] = characters + (mode == at.JSON_STRING)
        return found

    def _string(self, block: int) -> int:
        code = self.code
        offsets = code[block + at.STR_OFFSETS : block + at.STR_OFFSETS + code[block] + 1]
        return min((b - a for a, b in zip(offsets, offsets[1:])), default=NEVER)
