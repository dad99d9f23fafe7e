"""Exact lookarounds: compile a pattern with assertions anywhere, by simulating threads with pending lookaheads.

A thread is a position of the program that reads next, with its *pending lookaheads*: the lookahead assertions that it
has passed and that the remaining text must satisfy (`pending_lookahead`). Lookbehinds are separate programs that run in
parallel from the beginning of the text; gates query the vector of their states, the *lookbehind state*. A state of the
result is a lookbehind state and a set of threads: an alternating automaton (Chandra, Kozen, Stockmeyer 1981),
determinised lazily. A *gap* is a boundary between two characters.

    (?=X)   at a gap: the pending lookahead "the remaining text begins with X", built from the lookbehind state here
    (?!X)   the same, complemented
    (?<=X)  the threads of `any text, X` that accept here: true, or their pending lookaheads if X looks ahead
    ^ $     are lookarounds as well: no character before, none after

Lookarounds may be nested, in any direction: inner ones are compiled, and take their steps, before outer ones.
"""

from __future__ import annotations

from ...automata.dfa import SURROGATES, Dfa, Table
from ...base.errors import LimitError
from ...base.work import spend_work
from .charset import ALL, CharSet, charset_of, complement_charset, partition_charsets
from .pending_lookahead import PendingLookahead, PendingLookaheads
from .program_runner import (
    ACCEPT,
    NOTHING,
    Code,
    LookaroundGate,
    LookbehindStates,
    ProgramRunner,
    Readings,
    Threads,
    find_readings,
    make_runner,
)
from .regex_program import MATCH, Search, compile_program
from .regex_tree import Anchor, Concatenation, Lookaround, OneOf, Repetition, Term

__all__ = ["WORK", "pattern_too_large", "build_with_lookarounds"]

WORK = 64
"""Positions that may be united per state of the limit; it bounds patterns with few states but large sets."""

STATE_COST = 16
"""Cost of a state, in positions: all lookarounds of a pattern may have four times as many states as the limit."""

MOST_NESTED_LOOKAROUNDS = 24
"""Deepest nesting of lookarounds: each level takes a few Python stack frames."""


def pattern_too_large(max_states: int) -> LimitError:
    """Return the error of a pattern that exceeds its budget."""
    return LimitError(
        f"the automaton of the pattern needs more than {max_states} states (max_states), or as much work",
        hint="Simplify the pattern, or raise Limits.dfa_states.",
    )


def build_with_lookarounds(term: Term, *, newline: CharSet, search: Search, max_states: int) -> Dfa:
    """Return the Dfa of a tree with anchors and lookarounds anywhere; raise LimitError beyond `max_states`."""
    return Dfa.from_table(_LookaroundConstruction(term, newline, search, max_states).table())


class _LookaroundConstruction:
    def __init__(self, term: Term, newline: CharSet, search: Search, max_states: int) -> None:
        self.max_states = max_states
        self.work = WORK * max_states
        self.sets: dict[CharSet, int] = {}
        self.runners: dict[str, list[ProgramRunner]] = {"ahead": [], "behind": []}
        self.anchors = anchor_lookarounds(newline)
        self._gate_numbers: dict[object, int] = {}
        self.main = self._compile(term, search, 0)
        self.bounds, self.classes, members = partition_charsets(list(self.sets))
        surrogates = [c for bound, c in zip(self.bounds, self.classes) if bound == SURROGATES[0]]
        self.pending_lookaheads = PendingLookahead(self.bounds, self.classes, surrogates[0] if surrogates else -1)
        for runner in (self.main, *self.runners["ahead"], *self.runners["behind"]):
            runner.set_readers(members)
        self._conditions: dict[tuple[LookaroundGate, LookbehindStates], tuple[PendingLookaheads, ...]] = {}
        self._without_accepting: dict[LookbehindStates, LookbehindStates] = {}
        self._advanced: dict[tuple[LookbehindStates, int], LookbehindStates] = {}

    # ---- programs -----------------------------------------------------------------------------------------------

    def _compile(self, term: Term, search: Search, depth: int) -> ProgramRunner:
        """Return the runner of a tree, after compiling its lookarounds."""
        if depth > MOST_NESTED_LOOKAROUNDS:
            raise LimitError(
                f"lookarounds are nested deeper than {MOST_NESTED_LOOKAROUNDS}",
                hint="Write the inner ones side by side.",
            )
        program = compile_program(term, search=search, max_positions=self.max_states)
        lookbehinds: set[int] = set()
        gate_of: dict[int, LookaroundGate] = {}
        code: Code = []
        sets = [self.sets.setdefault(charset, len(self.sets)) for charset in program.sets]
        for step in program.code:
            if isinstance(step, str) and step != MATCH:
                step = self.anchors[step]
            if isinstance(step, Lookaround):  # Copies of a repetition share gates.
                gate = gate_of.get(id(step)) or gate_of.setdefault(id(step), self._make_gate(step, depth))
                lookbehinds |= self.runners[gate.direction][gate.program].lookbehinds
                lookbehinds |= {gate.program} if gate.direction == "behind" else set()
                code.append(gate)
            else:
                code.append(sets[step] if isinstance(step, int) else step)
        return make_runner(program, code, frozenset(lookbehinds))

    def _make_gate(self, look: Lookaround, depth: int) -> LookaroundGate:
        """Return the gate of a lookaround; equal lookarounds share a program."""
        runners = self.runners[look.direction]
        runner = self._compile(look.term, look.direction, depth + 1)
        number = self._gate_numbers.setdefault((look.direction, tuple(runner.code)), len(runners))
        if number == len(runners):
            runners.append(runner)
        return LookaroundGate(look.direction, number, look.negated)

    # ---- one gap between two characters -------------------------------------------------------------------------

    def reach(
        self, runner: ProgramRunner, start: int, lookbehind: LookbehindStates
    ) -> tuple[tuple[PendingLookaheads, int], ...]:
        """Return the threads that begin at the address `start`, at a gap with this lookbehind state."""
        cached = runner.reached.get(start) or runner.reached.get((start, lookbehind))
        if cached is not None:
            return cached
        threads: dict[PendingLookaheads, int] = {}
        used_gate = False
        stack = [(start, NOTHING)]
        visited = set(stack)
        while stack:
            position, pending = stack.pop()
            step = runner.code[position]
            successors: list[tuple[int, PendingLookaheads]] = []  # Next addresses and pending lookaheads.
            if isinstance(step, LookaroundGate):
                used_gate = True
                successors = [(position + 1, pending | added) for added in self.find_conditions(step, lookbehind)]
            elif isinstance(step, tuple):
                successors = [(target, pending) for target in step]
            else:  # A character or the match.
                bit = runner.bits.get(position, ACCEPT)
                threads[pending] = threads.get(pending, 0) | bit
            unseen = [item for item in successors if item not in visited]
            visited.update(unseen)
            stack += unseen
        self._spend(len(visited))
        result = tuple(threads.items())
        runner.reached[(start, lookbehind) if used_gate else start] = result
        return result

    def find_conditions(self, gate: LookaroundGate, lookbehind: LookbehindStates) -> tuple[PendingLookaheads, ...]:
        """Return the alternatives under which the assertion holds at a gap with this lookbehind state, or ()."""
        runner = self.runners[gate.direction][gate.program]
        lookbehind = self._restrict(
            lookbehind, runner.lookbehinds | ({gate.program} if gate.direction == "behind" else set())
        )
        key = (gate, lookbehind)
        alternatives = self._conditions.get(key)
        if alternatives is None:
            if gate.direction == "ahead":
                table = self._determinise(
                    runner, lookbehind, self._drop_dominated(runner, dict(self.reach(runner, 0, lookbehind)))
                )
                alternatives = self.pending_lookaheads.add_language(table, negated=gate.negated)
            else:
                accepting = [
                    pending for pending, positions in runner.states[lookbehind[gate.program]] if positions & ACCEPT
                ]
                alternatives = self._lookbehind_conditions(accepting, gate.negated)
            self._conditions[key] = alternatives
        return alternatives

    def _lookbehind_conditions(
        self, accepting: list[PendingLookaheads], negated: bool
    ) -> tuple[PendingLookaheads, ...]:
        """Return the alternatives of a lookbehind, given the pending lookaheads of its accepting threads."""
        if NOTHING in accepting:
            accepting = [NOTHING]
        if not negated:
            return tuple(accepting)
        if not accepting:
            return (NOTHING,)
        return (
            ()
            if accepting == [NOTHING]
            else self.pending_lookaheads.add_language(self._satisfying_table(accepting), negated=True)
        )

    def _satisfying_table(self, alternatives: list[PendingLookaheads]) -> Table:
        """Return the table of the texts that satisfy one of the alternatives."""
        start = frozenset(alternatives)
        numbers = {start: 0}
        order = [start]
        rows: list[list[int]] = []
        for state in order:
            row = []
            for index in range(len(self.main.readers)):
                after = (
                    [self.pending_lookaheads.after(pending)[index] for pending in state]
                    if index != self.pending_lookaheads.dead
                    else []
                )
                target = frozenset(pending for pending in after if pending is not None)
                if target and target not in numbers:
                    numbers[target] = len(order)
                    order.append(target)
                row.append(numbers[target] if target else -1)
            rows.append(row)
            self._spend(len(state) * len(row))
        return Table(
            self.bounds, self.classes, rows, [any(map(self.pending_lookaheads.ends, state)) for state in order]
        )

    # ---- one character ------------------------------------------------------------------------------------------

    def _restrict(self, lookbehind: LookbehindStates, lookbehinds: frozenset[int]) -> LookbehindStates:
        """Return the lookbehind state restricted to these lookbehinds."""
        return tuple([state if number in lookbehinds else -1 for number, state in enumerate(lookbehind)])

    def _start_lookbehinds(self) -> LookbehindStates:
        """Return the lookbehind state at the beginning of a text."""
        lookbehind: LookbehindStates = (-1,) * len(self.runners["behind"])
        for number, runner in enumerate(self.runners["behind"]):
            threads = self._drop_dominated(
                runner, dict(self.reach(runner, 0, self._restrict(lookbehind, runner.lookbehinds)))
            )
            lookbehind = (*lookbehind[:number], runner.number(threads), *lookbehind[number + 1 :])
        return lookbehind

    def _drop_accepting(self, lookbehind: LookbehindStates) -> LookbehindStates:
        """Return the lookbehind state without accepting positions, which matter at this gap only."""
        without_accepting = self._without_accepting.get(lookbehind)
        if without_accepting is None:
            numbers = []
            for runner, state in zip(self.runners["behind"], lookbehind):
                remaining = (
                    [(pending, positions & ~ACCEPT) for pending, positions in runner.states[state]]
                    if state >= 0
                    else []
                )
                numbers.append(runner.number(frozenset(item for item in remaining if item[1])) if state >= 0 else -1)
            without_accepting = self._without_accepting[lookbehind] = tuple(numbers)
        return without_accepting

    def _advance(self, lookbehind: LookbehindStates, index: int) -> LookbehindStates:
        """Return the lookbehind state after one more character of the class."""
        key = (lookbehind, index)
        advanced = self._advanced.get(key)
        if advanced is None:
            advanced = (-1,) * len(lookbehind)
            for number, state in enumerate(lookbehind):
                if state >= 0:
                    runner = self.runners["behind"][number]
                    threads = self._step(
                        runner, runner.states[state], index, self._restrict(advanced, runner.lookbehinds)
                    )
                    advanced = (*advanced[:number], runner.number(threads), *advanced[number + 1 :])
                    if len(runner.states) > self.max_states:
                        raise pattern_too_large(self.max_states)
            self._advanced[key] = advanced
        return advanced

    def _step(self, runner: ProgramRunner, threads: Threads, index: int, lookbehind: LookbehindStates) -> Threads:
        """Return the threads after one more character of the class. lookbehind: the state at the gap after it."""
        advanced = [(self.pending_lookaheads.after(pending), positions) for pending, positions in threads]
        return self._advance_threads(runner, find_readings(advanced, runner.readers[index], index), lookbehind)

    def _advance_threads(self, runner: ProgramRunner, reading: Readings, lookbehind: LookbehindStates) -> Threads:
        """Return the threads after the readings. lookbehind: the state at the gap after the character."""
        if not reading:
            return frozenset()
        known = runner.steps.get((reading, lookbehind))
        if known is not None:
            return known
        threads: dict[PendingLookaheads, int] = {}
        for remaining, positions in reading:
            self._spend(positions.bit_count())
            while positions:
                bit = positions & -positions
                positions ^= bit
                for added, bits in self.reach(runner, runner.positions[bit.bit_length() - 1] + 1, lookbehind):
                    combined = remaining | added if added else remaining
                    threads[combined] = threads.get(combined, 0) | bits
        known = runner.steps[reading, lookbehind] = self._drop_dominated(runner, threads)
        return known

    def _drop_dominated(self, runner: ProgramRunner, threads: dict[PendingLookaheads, int]) -> Threads:
        """Remove dominated threads.

        A thread is dominated if another one has fewer pending lookaheads and is not later in a chain of copies: every
        text that it accepts is also accepted by the other one (antichains: De Wulf, Doyen, Henzinger, Raskin 2006).
        """
        if runner.rest_bit and threads.get(NOTHING, 0) & runner.rest_bit:
            return frozenset(((NOTHING, runner.rest_bit | ACCEPT),))
        for chain in runner.chains:
            for pending, positions in threads.items():
                present = positions & chain
                if present & (present - 1):
                    threads[pending] ^= present ^ (present & -present)
        if len(threads) == 1:
            return frozenset(threads.items())
        undominated = []
        self._spend(len(threads) ** 2)
        for pending, positions in threads.items():
            for fewer, other_positions in threads.items():
                if fewer < pending:
                    positions &= ~runner.find_dominated(other_positions)
            if positions:
                undominated.append((pending, positions))
        return frozenset(undominated)

    # ---- the automaton ------------------------------------------------------------------------------------------

    def table(self) -> Table:
        """Return the table of the whole pattern."""
        lookbehind = self._restrict(self._start_lookbehinds(), self.main.lookbehinds)
        return self._determinise(
            self.main, lookbehind, self._drop_dominated(self.main, dict(self.reach(self.main, 0, lookbehind)))
        )

    def _determinise(self, runner: ProgramRunner, lookbehind: LookbehindStates, threads: Threads) -> Table:
        """Build one state per reachable pair of a lookbehind state and a set of threads."""
        accept_all = frozenset(((NOTHING, runner.rest_bit | ACCEPT),)) if runner.rest_bit else None
        no_lookbehinds: LookbehindStates = (-1,) * len(lookbehind)
        start = (no_lookbehinds if threads == accept_all else self._drop_accepting(lookbehind), threads)
        numbers = {start: 0}
        order = [start]
        rows: list[list[int]] = []
        reached: dict[tuple[Readings, LookbehindStates], int] = {}
        after_gaps: dict[LookbehindStates, list[tuple[LookbehindStates, LookbehindStates]]] = {}
        for lookbehind, threads in order:
            row = []
            if lookbehind not in after_gaps:
                pasts = [self._advance(lookbehind, index) for index in range(len(runner.readers))]
                after_gaps[lookbehind] = [(after, self._drop_accepting(after)) for after in pasts]
            advanced = [(self.pending_lookaheads.after(pending), positions) for pending, positions in threads]
            for index, (reader, (after, without_accepting)) in enumerate(zip(runner.readers, after_gaps[lookbehind])):
                key = (find_readings(advanced, reader, index), after)
                number = reached.get(key)
                if number is None:
                    target = self._advance_threads(runner, *key)
                    state = (no_lookbehinds if target == accept_all else without_accepting, target)
                    number = numbers.setdefault(state, len(order)) if target else -1
                    if number == len(order):
                        order.append(state)
                    reached[key] = number
                row.append(number)
            rows.append(row)
            self._spend(STATE_COST)
            if len(order) > self.max_states:
                raise pattern_too_large(self.max_states)
        accepting = [
            any(positions & ACCEPT and self.pending_lookaheads.ends(pending) for pending, positions in threads)
            for _, threads in order
        ]
        return Table(self.bounds, self.classes, rows, accepting)

    def _spend(self, work: int) -> None:
        spend_work(work, "a pattern with lookarounds")
        self.work -= work
        if self.work < 0:
            raise pattern_too_large(self.max_states)


def anchor_lookarounds(newline: CharSet) -> dict[str, Lookaround]:
    """Return the lookaround that is equivalent to each kind of anchor."""
    character, line = OneOf(ALL), OneOf(complement_charset(newline))
    last = Concatenation((Repetition(OneOf(charset_of(0x0A)), 0, 1), Anchor("end")))
    return {
        "begin": Lookaround(character, "behind", True),
        "end": Lookaround(character, "ahead", True),
        "line_begin": Lookaround(line, "behind", True),
        "line_end": Lookaround(line, "ahead", True),
        "last_line_end": Lookaround(last, "ahead", False),
    }
