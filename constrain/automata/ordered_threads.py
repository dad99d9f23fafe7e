"""Threads: where a backtracking matcher may stand in ordered programs, with what it remembers and what it owes.

A thread is a place that reads, how far it is into its character, the kinds of the last characters (its *past*, as far
as a look-behind may still ask for them) and *pending lookaheads*: the looks that it has passed, each by the state that
its own program is in. A look's state is a set of threads, so looks may hold looks (Chandra, Kozen, Stockmeyer 1981,
"Alternation"). Threads, looks and what they do are numbered and computed once.
"""

from __future__ import annotations

from dataclasses import dataclass

from .thread_steps import BehindStep, DoneStep, EnterStep, LeaveStep, LookStep, ReadStep, Step
from .utf8 import END, Utf8

__all__ = ["EVERY", "NOTHING", "PendingLookaheads", "FAILED", "HELD", "BehindStart", "Thread", "ThreadStates"]

EVERY = (1 << 256) - 1
"""All bytes, as bits."""

HELD, FAILED = -1, -2
"""States of a look that has found its text, and of one that never will. Others are numbers of sets of threads."""

PendingLookaheads = frozenset[tuple[int, bool]]
"""States of looks, and whether each is negated."""

NOTHING: PendingLookaheads = frozenset()


class BehindStart(Exception):
    """A look-behind asks what stands before the lexeme. place: its place."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place


@dataclass(frozen=True, slots=True)
class Thread:
    """place: of a Read or a Done. node: of `utf8` within a Read."""

    place: int
    node: int
    past: tuple[int, ...]
    pending: PendingLookaheads


class ThreadStates:
    """All threads of programs that lie in `code`."""

    def __init__(self, code: list[Step], utf8: Utf8) -> None:
        self.code = code
        self.utf8 = utf8
        self.threads: list[Thread] = []
        self._numbers: dict[Thread, int] = {}
        self._reached: dict[tuple[int, tuple[int, ...]], tuple[Thread, ...]] = {}
        self._moves: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        self.looks: list[frozenset[int]] = []
        self._look_numbers: dict[frozenset[int], int] = {}
        self._look_moves: dict[int, list[tuple[int, int]]] = {}
        self._asked = _asked(code)

    def number(self, thread: Thread) -> int:
        """The number of a thread."""
        found = self._numbers.setdefault(thread, len(self.threads))
        if found == len(self.threads):
            self.threads.append(thread)
        return found

    def start(self, place: int) -> tuple[int, ...]:
        """The threads at the beginning of a lexeme."""
        return tuple([self.number(thread) for thread in self.reached(place, ())])

    # ---- between two characters ---------------------------------------------------------------------------------

    def reached(self, place: int, past: tuple[int, ...]) -> tuple[Thread, ...]:
        """The threads at a place after characters of these kinds, preferred ones first."""
        asked = self._asked[place]
        past = past[len(past) - asked :] if asked < len(past) else past
        found = self._reached.get((place, past))
        if found is None:
            found = self._reached[place, past] = tuple(self._follow(place, past))
        return found

    def _follow(self, place: int, past: tuple[int, ...]) -> list[Thread]:
        found: dict[Thread, None] = {}
        idle: frozenset[int] = frozenset()  # Loops whose body has begun here, without text so far.
        work = [(place, idle, NOTHING)]
        seen = set()
        while work:
            item = work.pop()
            if item in seen:
                continue
            seen.add(item)
            here, idle, pending = item
            step = self.code[here]
            if isinstance(step, (ReadStep, DoneStep)):
                asked = self._asked[here]
                kept = past[len(past) - asked :] if asked < len(past) else past
                node = step.node if isinstance(step, ReadStep) else END
                found[Thread(here, node, kept, pending)] = None
            elif isinstance(step, tuple):
                work += [(target, idle, pending) for target in reversed(step)]
            elif isinstance(step, EnterStep):
                work.append((here + 1, idle | {step.loop}, pending))
            elif isinstance(step, LeaveStep):
                target = step.out if step.loop in idle else step.again
                work.append((target, idle - {step.loop}, pending))
            elif isinstance(step, LookStep):
                state = self._look([self.number(thread) for thread in self.reached(step.start, past)])
                if state == (FAILED if step.negated else HELD):
                    work.append((here + 1, idle, pending))
                elif state >= 0:
                    work.append((here + 1, idle, pending | {(state, step.negated)}))
            elif _behind(step, past, here) != step.negated:
                work.append((here + 1, idle, pending))
        return list(found)

    # ---- one byte -----------------------------------------------------------------------------------------------

    def moves(self, number: int) -> list[tuple[int, tuple[int, ...]]]:
        """(bytes, the threads that follow, preferred first) for disjoint sets of bytes; for others there are none."""
        found = self._moves.get(number)
        if found is None:
            thread = self.threads[number]
            found = []
            for mask, target in self._reads(thread):
                if not thread.pending:
                    found.append((mask, tuple([self.number(after) for after in target])))
                    continue
                for part, pending in self.owing(thread.pending):
                    if pending is not None and mask & part:
                        after = [Thread(t.place, t.node, t.past, t.pending | pending) for t in target]
                        found.append((mask & part, tuple(map(self.number, after))))
            self._moves[number] = found
        return found

    def _reads(self, thread: Thread) -> list[tuple[int, tuple[Thread, ...]]]:
        """The moves of a thread, leaving pending lookaheads aside."""
        step = self.code[thread.place]
        if not isinstance(step, ReadStep):
            return []
        found: list[tuple[int, tuple[Thread, ...]]] = []
        for mask, node in self.utf8.nodes[thread.node]:
            if node != END:
                found.append((mask, (Thread(thread.place, node, thread.past, NOTHING),)))
            else:
                past = (*thread.past, step.kind) if step.kind >= 0 else ()
                found.append((mask, self.reached(thread.place + 1, past)))
        return found

    def owing(self, pending: PendingLookaheads) -> list[tuple[int, PendingLookaheads | None]]:
        """(bytes, what is owed after one of them; None if a pending lookahead is broken by it): all bytes, once."""
        groups: list[tuple[int, PendingLookaheads | None]] = [(EVERY, NOTHING)]
        for state, negated in pending:
            finer: list[tuple[int, PendingLookaheads | None]] = []
            for mask, owed in groups:
                for part, after in self._look_after(state):
                    both = mask & part
                    if not both:
                        continue
                    if owed is None or after == (HELD if negated else FAILED):
                        finer.append((both, None))
                    else:
                        finer.append((both, owed | {(after, negated)} if after >= 0 else owed))
            groups = finer
        return groups

    def kept_at_end(self, pending: PendingLookaheads) -> bool:
        """Whether the pending lookaheads are fulfilled if the text ends here."""
        return all(self._held_at_end(state) != negated for state, negated in pending)

    # ---- looks --------------------------------------------------------------------------------------------------

    def _look(self, numbers: list[int]) -> int:
        """The state of a look that has these threads."""
        if not numbers:
            return FAILED
        for number in numbers:
            thread = self.threads[number]
            if not thread.pending and isinstance(self.code[thread.place], DoneStep):
                return HELD
        key = frozenset(numbers)
        found = self._look_numbers.setdefault(key, len(self.looks))
        if found == len(self.looks):
            self.looks.append(key)
        return found

    def _look_after(self, state: int) -> list[tuple[int, int]]:
        """(bytes, the state after one of them): all bytes, once."""
        found = self._look_moves.get(state)
        if found is None:
            groups: list[tuple[int, list[int]]] = [(EVERY, [])]
            for number in self.looks[state]:
                for mask, after in self._look_steps(number):
                    groups = [
                        (part, targets)
                        for old, before in groups
                        for part, targets in ((old & mask, [*before, *after]), (old & ~mask, before))
                        if part
                    ]
            merged: dict[int, int] = {}
            for mask, targets in groups:
                target = self._look(targets)
                merged[target] = merged.get(target, 0) | mask
            found = self._look_moves[state] = [(mask, target) for target, mask in merged.items()]
        return found

    def _look_steps(self, number: int) -> list[tuple[int, tuple[int, ...]]]:
        """The moves of a look's thread. It is done with its first byte if all that may follow that is found."""
        thread = self.threads[number]
        step = self.code[thread.place]
        if isinstance(step, DoneStep):  # It has found its text, and waits for looks within.
            return [
                (mask, (self.number(Thread(thread.place, END, (), pending)),))
                for mask, pending in self.owing(thread.pending)
                if pending is not None
            ]
        moves = self.moves(number)
        assert isinstance(step, ReadStep)
        if thread.pending or thread.node != step.node or self._asked[thread.place + 1]:
            return moves
        ends = [after for after in self.reached(thread.place + 1, ()) if isinstance(self.code[after.place], DoneStep)]
        end = tuple([self.number(after) for after in ends if not after.pending])
        if not end:
            return moves
        result = []
        for (mask, after), (_, node) in zip(moves, self.utf8.nodes[thread.node]):
            sure = self.utf8.complete(mask, node) if node != END else 0
            result += [(part, target) for part, target in ((sure, end), (mask & ~sure, after)) if part]
        return result

    def _held_at_end(self, state: int) -> bool:
        """Whether a look has found its text if the text ends here."""
        threads = [self.threads[number] for number in self.looks[state]]
        return any(isinstance(self.code[t.place], DoneStep) and self.kept_at_end(t.pending) for t in threads)


def _behind(step: BehindStep, past: tuple[int, ...], place: int) -> bool:
    """Whether the last characters are as one of the options says."""
    known = past[max(len(past) - step.width, 0) :]
    options = [
        option
        for option in step.options
        if all(kinds >> kind & 1 for kinds, kind in zip(option[step.width - len(known) :], known))
    ]
    if options and len(known) < step.width:
        raise BehindStart(place)
    return bool(options)


def _asked(code: list[Step]) -> list[int]:
    """For each place: how many of the characters before it a look-behind may ask for from there."""
    asked = [step.width if isinstance(step, BehindStep) else 0 for step in code]
    if not any(asked):
        return asked
    changed = True
    while changed:
        changed = False
        for place in range(len(code) - 1, -1, -1):
            step = code[place]
            if isinstance(step, ReadStep):
                most = asked[place + 1] - 1
            elif isinstance(step, tuple):
                most = max(asked[target] for target in step)
            elif isinstance(step, LeaveStep):
                most = max(asked[step.again], asked[step.out])
            elif isinstance(step, LookStep):
                most = max(asked[place + 1], asked[step.start])
            else:
                most = 0 if isinstance(step, DoneStep) else asked[place + 1]
            if most > asked[place]:
                asked[place] = most
                changed = True
    return asked
