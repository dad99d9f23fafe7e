"""Exact lookarounds: compile a pattern with assertions anywhere, by simulating threads with pending lookaheads.

A thread is a place in the program that reads next, with its *pending lookaheads*: the lookahead assertions that it has
passed and that the rest of the text must satisfy (`pending_lookahead`). Lookbehinds are separate programs that run in
parallel from the beginning of the text; the vector of their states is the *past*, which gates query. A state of the
result is a past and a set of threads: an alternating automaton (Chandra, Kozen, Stockmeyer 1981), determinised lazily.

    (?=X)   at a gap: the pending lookahead "the rest begins with X", an automaton built from the past of this gap
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
    Past,
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
"""Places that may be united per state of the limit; it bounds patterns with few states but large sets."""

STATE = 16
"""Cost of a state, in places: the lookarounds of a pattern together may have four times as many states as the limit."""

MOST_LOOKS = 24
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
        self._gates: dict[object, int] = {}
        self.main = self._compile(term, search, 0)
        self.bounds, self.classes, members = partition_charsets(list(self.sets))
        surrogates = [c for bound, c in zip(self.bounds, self.classes) if bound == SURROGATES[0]]
        self.ledger = PendingLookahead(self.bounds, self.classes, surrogates[0] if surrogates else -1)
        for runner in (self.main, *self.runners["ahead"], *self.runners["behind"]):
            runner.read_by(members)
        self._holds: dict[tuple[LookaroundGate, Past], tuple[PendingLookaheads, ...]] = {}
        self._faded: dict[Past, Past] = {}
        self._pasts: dict[tuple[Past, int], Past] = {}

    # ---- programs -----------------------------------------------------------------------------------------------

    def _compile(self, term: Term, search: Search, depth: int) -> ProgramRunner:
        """Return the runner of a tree, after compiling its lookarounds."""
        if depth > MOST_LOOKS:
            raise LimitError(f"looks are nested deeper than {MOST_LOOKS}", hint="Write the inner ones side by side.")
        program = compile_program(term, search=search, max_positions=self.max_states)
        behinds: set[int] = set()
        known: dict[int, LookaroundGate] = {}
        code: Code = []
        sets = [self.sets.setdefault(charset, len(self.sets)) for charset in program.sets]
        for step in program.code:
            if isinstance(step, str) and step != MATCH:
                step = self.anchors[step]
            if isinstance(step, Lookaround):  # Copies of a repetition share gates.
                gate = known.get(id(step)) or known.setdefault(id(step), self._gate(step, depth))
                behinds |= self.runners[gate.direction][gate.program].behinds
                behinds |= {gate.program} if gate.direction == "behind" else set()
                code.append(gate)
            else:
                code.append(sets[step] if isinstance(step, int) else step)
        return make_runner(program, code, frozenset(behinds))

    def _gate(self, look: Lookaround, depth: int) -> LookaroundGate:
        """Return the gate of a lookaround; equal lookarounds share a program."""
        runners = self.runners[look.direction]
        runner = self._compile(look.term, look.direction, depth + 1)
        number = self._gates.setdefault((look.direction, tuple(runner.code)), len(runners))
        if number == len(runners):
            runners.append(runner)
        return LookaroundGate(look.direction, number, look.negated)

    # ---- one gap between two characters -------------------------------------------------------------------------

    def reach(self, runner: ProgramRunner, place: int, past: Past) -> tuple[tuple[PendingLookaheads, int], ...]:
        """Return the threads that start at a place of the code, at a gap with this past."""
        found = runner.reached.get(place) or runner.reached.get((place, past))
        if found is not None:
            return found
        threads: dict[PendingLookaheads, int] = {}
        looked = False
        work = [(place, NOTHING)]
        seen = set(work)
        while work:
            here, pending = work.pop()
            step = runner.code[here]
            following: list[tuple[int, PendingLookaheads]] = []  # Next places and pending lookaheads.
            if isinstance(step, LookaroundGate):
                looked = True
                following = [(here + 1, pending | more) for more in self.holds(step, past)]
            elif isinstance(step, tuple):
                following = [(target, pending) for target in step]
            else:  # A character or the match.
                bit = runner.bits.get(here, ACCEPT)
                threads[pending] = threads.get(pending, 0) | bit
            fresh = [item for item in following if item not in seen]
            seen.update(fresh)
            work += fresh
        self._spend(len(seen))
        result = tuple(threads.items())
        runner.reached[(place, past) if looked else place] = result
        return result

    def holds(self, gate: LookaroundGate, past: Past) -> tuple[PendingLookaheads, ...]:
        """Return the alternatives under which the assertion holds at a gap with this past; none if it does not."""
        runner = self.runners[gate.direction][gate.program]
        past = self._only(past, runner.behinds | ({gate.program} if gate.direction == "behind" else set()))
        key = (gate, past)
        found = self._holds.get(key)
        if found is None:
            if gate.direction == "ahead":
                table = self._determinise(runner, past, self._settle(runner, dict(self.reach(runner, 0, past))))
                found = self.ledger.of(table, negated=gate.negated)
            else:
                arrived = [pending for pending, places in runner.states[past[gate.program]] if places & ACCEPT]
                found = self._arrived(arrived, gate.negated)
            self._holds[key] = found
        return found

    def _arrived(self, arrived: list[PendingLookaheads], negated: bool) -> tuple[PendingLookaheads, ...]:
        """Return the alternatives of a lookbehind, given the pending lookaheads of its accepting threads."""
        if NOTHING in arrived:
            arrived = [NOTHING]
        if not negated:
            return tuple(arrived)
        if not arrived:
            return (NOTHING,)
        return () if arrived == [NOTHING] else self.ledger.of(self._promised(arrived), negated=True)

    def _promised(self, alternatives: list[PendingLookaheads]) -> Table:
        """Return the table of the texts that satisfy one of the alternatives."""
        start = frozenset(alternatives)
        numbers = {start: 0}
        order = [start]
        rows: list[list[int]] = []
        for state in order:
            row = []
            for index in range(len(self.main.readers)):
                after = [self.ledger.after(pending)[index] for pending in state] if index != self.ledger.dead else []
                target = frozenset(pending for pending in after if pending is not None)
                if target and target not in numbers:
                    numbers[target] = len(order)
                    order.append(target)
                row.append(numbers[target] if target else -1)
            rows.append(row)
            self._spend(len(state) * len(row))
        return Table(self.bounds, self.classes, rows, [any(map(self.ledger.ends, state)) for state in order])

    # ---- one character ------------------------------------------------------------------------------------------

    def _only(self, past: Past, behinds: frozenset[int]) -> Past:
        """Return the past restricted to these lookbehinds."""
        return tuple([state if number in behinds else -1 for number, state in enumerate(past)])

    def _beginning(self) -> Past:
        """Return the past at the beginning of a text."""
        past: Past = (-1,) * len(self.runners["behind"])
        for number, runner in enumerate(self.runners["behind"]):
            threads = self._settle(runner, dict(self.reach(runner, 0, self._only(past, runner.behinds))))
            past = (*past[:number], runner.number(threads), *past[number + 1 :])
        return past

    def _fade(self, past: Past) -> Past:
        """Return the past without its accepting places, which matter at this gap only."""
        found = self._faded.get(past)
        if found is None:
            faded = []
            for runner, state in zip(self.runners["behind"], past):
                left = [(pending, places & ~ACCEPT) for pending, places in runner.states[state]] if state >= 0 else []
                faded.append(runner.number(frozenset(item for item in left if item[1])) if state >= 0 else -1)
            found = self._faded[past] = tuple(faded)
        return found

    def _advance(self, past: Past, index: int) -> Past:
        """Return the past after one more character of the class."""
        key = (past, index)
        found = self._pasts.get(key)
        if found is None:
            found = (-1,) * len(past)
            for number, state in enumerate(past):
                if state >= 0:
                    runner = self.runners["behind"][number]
                    threads = self._step(runner, runner.states[state], index, self._only(found, runner.behinds))
                    found = (*found[:number], runner.number(threads), *found[number + 1 :])
                    if len(runner.states) > self.max_states:
                        raise pattern_too_large(self.max_states)
            self._pasts[key] = found
        return found

    def _step(self, runner: ProgramRunner, threads: Threads, index: int, past: Past) -> Threads:
        """Return the threads after one more character of the class. past: at the gap after it."""
        owing = [(self.ledger.after(pending), places) for pending, places in threads]
        return self._follow(runner, find_readings(owing, runner.readers[index], index), past)

    def _follow(self, runner: ProgramRunner, reading: Readings, past: Past) -> Threads:
        """Return the threads after the readings. past: at the gap after the character."""
        if not reading:
            return frozenset()
        known = runner.steps.get((reading, past))
        if known is not None:
            return known
        found: dict[PendingLookaheads, int] = {}
        for owed, places in reading:
            self._spend(places.bit_count())
            while places:
                bit = places & -places
                places ^= bit
                for more, bits in self.reach(runner, runner.places[bit.bit_length() - 1] + 1, past):
                    both = owed | more if more else owed
                    found[both] = found.get(both, 0) | bits
        known = runner.steps[reading, past] = self._settle(runner, found)
        return known

    def _settle(self, runner: ProgramRunner, found: dict[PendingLookaheads, int]) -> Threads:
        """Remove dominated threads.

        A thread is dominated if another one has fewer pending lookaheads and is not further up a ladder.
        """
        if runner.rest and found.get(NOTHING, 0) & runner.rest:
            return frozenset(((NOTHING, runner.rest | ACCEPT),))
        for ladder in runner.ladders:
            for pending, places in found.items():
                on = places & ladder
                if on & (on - 1):
                    found[pending] ^= on ^ (on & -on)
        if len(found) == 1:
            return frozenset(found.items())
        kept = []
        self._spend(len(found) ** 2)
        for pending, places in found.items():
            for less, others in found.items():
                if less < pending:
                    places &= ~runner.superfluous(others)
            if places:
                kept.append((pending, places))
        return frozenset(kept)

    # ---- the automaton ------------------------------------------------------------------------------------------

    def table(self) -> Table:
        """Return the table of the whole pattern."""
        past = self._only(self._beginning(), self.main.behinds)
        return self._determinise(self.main, past, self._settle(self.main, dict(self.reach(self.main, 0, past))))

    def _determinise(self, runner: ProgramRunner, past: Past, threads: Threads) -> Table:
        """Build one state per reachable pair of a past and a set of threads."""
        everything = frozenset(((NOTHING, runner.rest | ACCEPT),)) if runner.rest else None
        nowhere: Past = (-1,) * len(past)
        start = (nowhere if threads == everything else self._fade(past), threads)
        numbers = {start: 0}
        order = [start]
        rows: list[list[int]] = []
        reached: dict[tuple[Readings, Past], int] = {}
        gaps: dict[Past, list[tuple[Past, Past]]] = {}
        for past, threads in order:
            row = []
            if past not in gaps:
                pasts = [self._advance(past, index) for index in range(len(runner.readers))]
                gaps[past] = [(after, self._fade(after)) for after in pasts]
            owing = [(self.ledger.after(pending), places) for pending, places in threads]
            for index, (reader, (after, faded)) in enumerate(zip(runner.readers, gaps[past])):
                key = (find_readings(owing, reader, index), after)
                number = reached.get(key)
                if number is None:
                    target = self._follow(runner, *key)
                    state = (nowhere if target == everything else faded, target)
                    number = numbers.setdefault(state, len(order)) if target else -1
                    if number == len(order):
                        order.append(state)
                    reached[key] = number
                row.append(number)
            rows.append(row)
            self._spend(STATE)
            if len(order) > self.max_states:
                raise pattern_too_large(self.max_states)
        accepting = [
            any(places & ACCEPT and self.ledger.ends(pending) for pending, places in threads) for _, threads in order
        ]
        return Table(self.bounds, self.classes, rows, accepting)

    def _spend(self, work: int) -> None:
        spend_work(work, "a pattern that looks around")
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
