"""Least lengths in bytes of rules and of the remainders of rules.

They are the least solution of one equation per instruction: a byte costs 1 plus the cost of what follows, a call the
cost of its rule plus what follows, a choice the cost of its cheapest option. The equations are solved with Knuth's
generalisation of Dijkstra's algorithm (Inf. Proc. Letters 6, 1977): when the cost of an instruction falls, the
instructions that depend on it are re-evaluated, cheapest first, so each is evaluated about once per operand. Rules that
are read later can only lower costs.

`LeastCosts.ahead` holds, for each instruction except single bytes, the least number of bytes to its *stop*: the end of
the rule, the end of an iteration of a counted repetition, or a query of the state of an object. A counted repetition
entered from outside costs its minimum count times its cheapest iteration. What depends on the register (iterations and
keys still required) is added per query. `completion` combines these costs for configurations with their callers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from ..automata.numerals.number_automaton import NumberAutomaton
from ..automata.numerals.number_language import NumberLanguage
from ..base.work import confine_budgets, spend_work, work_budget
from ..kernels import layout as at
from .byte_code import ByteCode
from .code_reading import list_following
from .spelled_lengths import count_spelled_bytes

__all__ = ["NEVER", "LeastCosts"]

NEVER = 1 << 40
"""Greater than the length of any text: no completion is known."""
UNKNOWN = (NEVER, -1)

STOPS = (at.END, at.COUNT, at.KEYS, at.OTHER, at.CLOSE, at.MORE)

SHARE = 2
"""Divisor of Limits.work: reading rules for a least length may take this part, unless another budget is active."""
FIRST_RULES = 64
MOST_RULES = 20_000
"""Maximum number of rules read to find one least length; beyond it, the length is unknown."""


@dataclass(slots=True)
class _RuleCode:
    """A linked rule: its instructions in order, without single bytes; the rules it calls; its object block, or 0."""

    order: list[int] = field(default_factory=list)
    calls: set[int] = field(default_factory=set)
    block: int = 0


class _LayoutCosts(NamedTuple):
    """Least bytes before the first member (excluding its quotes), between members, after the last, and of an empty
    object.
    """

    open: int
    comma: int
    close: int
    empty: int


class Demand(NamedTuple):
    """The members that an object still needs at least.

    number: of them. total: their least bytes, without commas. filler: the most bytes of one of them that is needed only
    for the number of members; 0 if there is none.
    """

    number: int
    total: int
    filler: int


class LeastCosts:
    """Least lengths of the rules, leaves and configurations of a program.

    `ahead` maps a pc to (least bytes to the stop, pc of the stop); `least` maps a rule cell to the least length of its
    rule.
    """

    def __init__(self, program: ByteCode) -> None:
        self.program = program
        self.code: list[int] = []
        self.rules: dict[int, _RuleCode] = {}
        self.ahead: dict[int, tuple[int, int]] = {}
        self.least: dict[int, int] = {}
        self.owner: dict[int, int] = {}
        self.object_rules: dict[int, _RuleCode] = {}
        self._following: dict[int, list[tuple[int, int]]] = {}  # by pc: (bytes in between, next instruction)
        self._users: dict[int, list[tuple[int, int]]] = {}  # by pc: (preceding instruction, bytes in between)
        self._calls: dict[int, list[int]] = {}  # by rule cell: instructions that call it
        self._unsolved: list[int] = []
        self._exhausted: set[int] = set()  # cells whose rules have been read as far as permitted
        self._entries: list[tuple[int, int]] = []
        self._members: dict[tuple[int, int], int] = {}
        self._layouts: dict[int, _LayoutCosts] = {}
        self._required: dict[int, set[int]] = {}  # by object block: the keys that are required
        self._solved = False
        self.has_copies = False  # whether some member that was read may have to equal an earlier one
        self._leaf: dict[tuple[int, int], int] = {}
        self.ensure(program.entry)

    # ---- reading the code ------------------------------------------------------------------------------------

    @confine_budgets
    def ensure(self, cell: int, pc: int = 0) -> None:
        """Read rules, breadth first from `cell`, until its least length (or that from `pc` on) is known.

        The number of rules doubles in each round, as a grammar may have infinitely many (one per depth of indentation).
        """
        program = self.program
        with program.lock, work_budget(program.work // SHARE, program.work, program.paid):
            if cell in self._exhausted:
                return
            todo, seen, most = deque([cell]), {cell}, FIRST_RULES
            while self._read_some(todo, seen, most):
                if (self.ahead.get(pc, UNKNOWN)[0] if pc else self.least[cell]) < NEVER:
                    return
                most *= 2
            self._exhausted.update({cell} if todo else seen)

    def _read_some(self, todo: deque[int], seen: set[int], most: int) -> bool:
        """Read up to `most` rules and solve the equations. Return whether more can be read."""
        while todo and len(seen) - len(todo) < most:
            batch = [todo.popleft() for _ in range(min(len(todo), FIRST_RULES))]
            for one in batch:
                self.program.link(one)
            self.refresh()
            for one in batch:
                # Linking fills in cells and object targets within code that was copied earlier.
                self.code[one] = int(self.program.code[one])
                rule = self.rules.get(one) or self._read(one)
                fresh = sorted(rule.calls - seen)
                seen.update(fresh)
                todo.extend(fresh)
        self._solve()
        return bool(todo) and len(seen) <= MOST_RULES

    def refresh(self) -> None:
        """Copy the code that was linked since the last call."""
        if len(self.code) < self.program.used:
            with self.program.lock:
                self.code += self.program.code[len(self.code) : self.program.used].tolist()

    def owner_of(self, pc: int) -> int:
        """Return the rule cell whose code contains pc; read its rule if necessary."""
        cell = self.owner.get(pc, -1)
        if cell < 0:
            with self.program.lock:
                if len(self._entries) < len(self.program.links):
                    self._entries = sorted((int(self.program.code[cell]), cell) for cell in self.program.links)
                cell = self._entries[bisect_right(self._entries, (pc, 1 << 40)) - 1][1]
            if cell not in self.rules:
                self.ensure(cell)
        return cell

    def _read(self, cell: int) -> _RuleCode:
        """Read the instructions of one rule."""
        code, rule = self.code, _RuleCode()
        self.rules[cell] = rule
        self._unsolved.append(cell)
        self.least[cell] = NEVER
        todo, seen = [self._skip(code[cell])[1]], set[int]()
        while todo:
            pc = todo.pop()
            if pc in seen:
                continue
            seen.add(pc)
            self.owner[pc] = cell
            op = code[pc]
            if op in (at.CALL, at.PASS):
                rule.calls.add(code[pc + 1])
                self._calls.setdefault(code[pc + 1], []).append(pc)
            elif op == at.INIT:
                rule.block = code[pc + 1]
                self.object_rules[code[pc + 1]] = rule
            following = self._following[pc] = [self._skip(target) for target in self._next(pc)]
            for between, target in following:
                if op not in STOPS:
                    self._users.setdefault(target, []).append((pc, between))
                todo.append(target)
        rule.order = sorted(seen)
        spend_work(2 * len(seen), "the least length of a rule")
        return rule

    def _skip(self, pc: int) -> tuple[int, int]:
        """Return the number of single bytes from pc on, and the address of the instruction after them."""
        end = pc
        while self.code[end] < 256:
            end += 1
        return end - pc, end

    def _next(self, pc: int) -> list[int]:
        """Return the addresses that may follow the instruction at pc within its rule."""
        if self.code[pc] == at.MEMBER_END and self.code[pc + at.ARG_EQUAL]:
            self.has_copies = True
        return list_following(self.code, pc)

    # ---- least lengths of rules ------------------------------------------------------------------------------

    def _solve(self) -> None:
        """Evaluate the rules read since the last call, and whatever depends on them, until no cost falls.

        The cost of an object depends on most of its rule, so objects are evaluated last.
        """
        self._solved = False
        self._members.clear()
        self._layouts.clear()
        heap: list[tuple[int, int]] = []
        objects = set[int]()
        for cell in reversed(self._unsolved):
            for pc in reversed(self.rules[cell].order):
                self._lower(pc, heap)
            if self.rules[cell].block:
                objects.add(cell)
        self._unsolved.clear()
        while heap or objects:
            while heap:
                cost, pc = heappop(heap)
                if cost > self.ahead[pc][0]:
                    continue
                for user, between in self._users.get(pc, ()):
                    self._lower(user, heap, pc, between)
                cell = self.owner[pc]
                if self.rules[cell].block:
                    objects.add(cell)
                elif pc == self.rules[cell].order[0]:
                    self._lower_rule(cell, cost + pc - self.code[cell], heap)
            changed, objects = objects, set()
            for cell in sorted(changed):
                self._lower_rule(cell, 1 + self.members(self.rules[cell].block, set(), 0, fresh=1), heap)
        self._solved = True

    def _lower(self, pc: int, heap: list[tuple[int, int]], successor: int = -1, between: int = 0) -> None:
        """Re-evaluate an instruction after the cost of a successor fell; a SPLIT considers that successor only."""
        if successor >= 0 and self.code[pc] == at.SPLIT:
            cost, stop = self.ahead[successor]
            entry = cost + between, stop
        else:
            entry = self._evaluate(pc)
        if entry[0] < self.ahead.get(pc, UNKNOWN)[0]:
            self.ahead[pc] = entry
            heappush(heap, (entry[0], pc))

    def _lower_rule(self, cell: int, cost: int, heap: list[tuple[int, int]]) -> None:
        """Record the least length of a rule, and re-evaluate its callers."""
        if cost < self.least[cell]:
            self.least[cell] = cost
            for call in self._calls.get(cell, ()):
                self._lower(call, heap)

    def _evaluate(self, pc: int) -> tuple[int, int]:
        """Return the least bytes from an instruction to its stop and the pc of the stop, given the known costs."""
        code = self.code
        op = code[pc]
        if op in STOPS:
            return 0, pc
        if op in (at.SPLIT, at.MEMBER_END):
            return min(map(self._cost_through, self._following[pc]), default=UNKNOWN)
        if op == at.TEST:  # entered from outside: no iterations counted yet
            return self._rounds(pc, 0)
        cost, stop = self._cost_through(self._following[pc][0])
        if op in (at.CALL, at.PASS):
            cost += self.least.get(code[pc + 1], NEVER)
        elif op == at.LEAF:
            cost += self.leaf(code[pc + 1], code[pc + 2])
        elif op == at.SET:
            first = code[pc + 1] + at.STR_OFFSETS
            offsets = code[first : first + code[code[pc + 1]] + 1]
            cost += self.string(code[pc + 1], list(zip(offsets, offsets[1:])), 0)
        elif op == at.PARSE:
            cost += self.program.endings(code[pc + 1]).least
        return min(cost, NEVER), stop

    def _cost_through(self, successor: tuple[int, int]) -> tuple[int, int]:
        """Return the entry of `ahead` for a successor: (single bytes before it, instruction)."""
        cost, stop = self.ahead.get(successor[1], UNKNOWN)
        return min(NEVER, cost + successor[0]), stop

    def _rounds(self, test: int, done: int) -> tuple[int, int]:
        """As `_evaluate`, for the TEST of a counted repetition after `done` iterations."""
        due = max(0, self.code[test + 1] - done)
        body, exit = self._following[test]
        cost, stop = self._cost_through(exit)
        if due:
            cost += due * self._cost_through(body)[0]
        return min(cost, NEVER), stop

    def from_pc(self, pc: int, register: int, object_cost: Callable[[int, int], int] | None = None) -> int:
        """Return the least bytes from an instruction to the end of its rule, for a value of the register.

        `object_cost` maps the pc of a stop and the register (the state of an object) to the bytes to close the object.
        """
        cost, stop = self.known(pc)
        if cost >= NEVER:
            return NEVER
        op = self.code[stop]
        if op == at.END:
            return cost
        if op == at.COUNT:  # the jump after it leads back to the test
            return min(NEVER, cost + self._rounds(self.code[stop + 3], min(register + 1, self.code[stop + 1]))[0])
        return cost + (object_cost(stop, register) if object_cost else 0)

    def known(self, pc: int) -> tuple[int, int]:
        """Return the entry of `ahead` for pc, reading the rules it depends on if necessary."""
        found = self.ahead.get(pc)
        if found is not None and found[0] < NEVER:
            return found
        cell = self.owner_of(pc)
        order = self.rules[cell].order
        after = order[bisect_left(order, pc)]
        if self._solved and self.ahead.get(after, UNKNOWN)[0] >= NEVER:
            self.ensure(cell, after)
        return self._cost_through((after - pc, after))

    # ---- objects ---------------------------------------------------------------------------------------------

    def member(self, block: int, key: int) -> int:
        """Return the least bytes of a member: opening quote, key, closing quote, colon, value."""
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
        """Return the least bytes from the end of a key to the end of its value."""
        return self.known(target)[0]

    def members(self, block: int, seen: set[int], members: int, fresh: int) -> int:
        """Return the least bytes to complete and close an object; `fresh` is 1 if no comma comes first, else 0."""
        return self.around(block, self.demand(block, seen, members), fresh)

    def around(self, block: int, demand: Demand, fresh: int) -> int:
        """Return the least bytes of the members that an object still needs, and to close it; see `members`."""
        around = self.layout(block)
        if not demand.number:
            return around.empty if fresh else around.close
        commas = (demand.number - fresh) * around.comma
        return min(NEVER, demand.total + commas + fresh * around.open + around.close)

    def demand(self, block: int, seen: set[int], members: int) -> Demand:
        """Return what an object with these keys and this number of members still needs."""
        code = self.code
        due = self.due(block, seen)
        costs = [self.member(block, key) for key in due]
        first = code[block + at.OBJ_COUNT]
        for mark in range(first, first + code[block + at.OBJ_MARKS]):
            if mark not in seen:
                costs.append(self.undeclared(block, mark))
        missing, fillers = code[block + at.OBJ_LOW] - members - len(costs), list[int]()
        if missing > 0:
            other = self.undeclared(block) if code[block + at.OBJ_OTHERS] else NEVER
            spare = [self.member(block, key) for key in range(first) if key not in seen and key not in due]
            fillers = sorted(cost for cost in spare if cost < other)[:missing]
            fillers += [other] * min(missing - len(fillers), 1)
        more = max(0, missing - len(fillers))  # members that are as long as the last one, whose names are other ones
        total = sum(costs) + sum(fillers) + (more * fillers[-1] if more else 0)
        return Demand(len(costs) + len(fillers) + more, min(NEVER, total), fillers[-1] if fillers else 0)

    def undeclared(self, block: int, mark: int | None = None) -> int:
        """Return the least bytes of a member with an undeclared key, of those that set a mark if one is given."""
        place = block, -1 if mark is None else -2 - mark
        found = self._members.get(place)
        if found is not None:
            return found
        code = self.code
        instructions = [pc for pc in self.object_rules[block].order if code[pc] == at.OTHER]
        if mark is not None:
            instructions = [pc for pc in instructions if code[pc + 4] == mark]
        found = min((1 + self.leaf(code[pc + 2], 0) + self.value(code[pc + 3]) for pc in instructions), default=NEVER)
        if self._solved:
            self._members[place] = found
        return found

    def layout(self, block: int) -> _LayoutCosts:
        """Return the least bytes around the members of an object, determined from its rule."""
        if block in self._layouts:
            return self._layouts[block]
        rule = self.object_rules[block]
        mores = sorted(pc for pc in rule.order if self.code[pc] == at.MORE)
        closes = sorted(pc for pc in rule.order if self.code[pc] == at.CLOSE)
        # In code order: MORE before the first member, between members; CLOSE of an empty object, after the last member.
        ahead = [self._cost_through(self._following[pc][0])[0] for pc in (*mores, *closes)]
        if len(mores) == 1:  # no member can come
            found = _LayoutCosts(NEVER, NEVER, NEVER, ahead[1])
        else:
            found = _LayoutCosts(ahead[0] - 1, ahead[1] - 1, ahead[3], ahead[2])
        if self._solved:
            self._layouts[block] = found
        return found

    def due(self, block: int, seen: set[int]) -> set[int]:
        """Return the keys that are still required (see `kernels.object_states.collect_required`)."""
        code = self.code
        count, words, needs = code[block + at.OBJ_COUNT], code[block + at.OBJ_WORDS], code[block + at.OBJ_NEEDS]

        def bits(address: int) -> set[int]:
            return {k for k in range(count) if code[address + (k >> 5)] >> (k & 31) & 1}

        required = self._required.get(block)
        if required is None:
            required = self._required[block] = bits(code[block + at.OBJ_REQUIRED])
        due = set(required)
        if needs:
            while True:
                more = set().union(*(bits(needs + k * words) for k in seen | due)) - due
                if not more:
                    break
                due |= more
        return due - seen

    # ---- leaves and strings ------------------------------------------------------------------------------------

    def leaf(self, number: int, low: int) -> int:
        """Return the least bytes of a leaf: its shortest text at one byte per character, and the closing quote."""
        found = self._leaf.get((number, low))
        if found is None:
            language, mode = self.program.leaves[number]
            if isinstance(language, NumberLanguage):
                characters = NumberAutomaton(language).least(0)
            else:
                characters = max(int(language.distances()[0]) if len(language.delta) else NEVER, low)
            found = self._leaf[number, low] = characters + (mode == at.JSON_STRING)
        return found

    def string(self, block: int, parts: list[tuple[int, int]], pending: int) -> int:
        """Return the least bytes to the end of one of the strings of a block.

        parts: what is left of each, as addresses. pending: the escape that has begun (see `spelled_lengths`).
        """
        if not self.code[block + at.STR_ESCAPES]:
            return min((end - first for first, end in parts), default=NEVER)
        lengths = [count_spelled_bytes(bytes(self.code[first:end]), pending) for first, end in parts]
        return min((length for length in lengths if length is not None), default=NEVER)
