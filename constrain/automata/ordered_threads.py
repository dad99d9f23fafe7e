"""Threads: the configurations of a backtracking matcher in ordered programs, as states of an NFA with priorities.

A thread is a place in the program that reads, a position within the current UTF-8 character, the kinds of the last
characters (its *past*, as far as a lookbehind may still inspect them) and *pending lookaheads*: the lookaheads that it
has passed, each with the state of its own program. The state of a lookahead is a set of threads, so lookaheads may be
nested (Chandra, Kozen, Stockmeyer 1981, "Alternation"). Threads, lookaheads and their transitions are numbered and
computed once.
"""

from __future__ import annotations

from dataclasses import dataclass

from .thread_steps import BehindStep, DoneStep, EnterStep, LeaveStep, LookStep, ReadStep, Step
from .utf8 import END, Utf8

__all__ = ["EVERY", "NOTHING", "PendingLookaheads", "FAILED", "HELD", "BehindStart", "Thread", "ThreadStates"]

EVERY = (1 << 256) - 1
"""The set of all bytes, as bits."""

HELD, FAILED = -1, -2
"""States of a lookahead that has matched, and of one that cannot match any more. Others are numbers of thread sets."""

PendingLookaheads = frozenset[tuple[int, bool]]
"""States of pending lookaheads, each with whether it is negated."""

NOTHING: PendingLookaheads = frozenset()


class BehindStart(Exception):
    """Raised when a lookbehind inspects text before the start of the lexeme; `place` is the place of the lookbehind."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread; `place` is that of a ReadStep or DoneStep, `node` a node of `Utf8` within the ReadStep."""

    place: int
    node: int
    past: tuple[int, ...]
    pending: PendingLookaheads


class ThreadStates:
    """The threads of all programs in `code`, numbered on first use."""

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
        """Return the number of a thread."""
        found = self._numbers.setdefault(thread, len(self.threads))
        if found == len(self.threads):
            self.threads.append(thread)
        return found

    def start(self, place: int) -> tuple[int, ...]:
        """Return the threads at the start of a lexeme, for the program at `place`."""
        return tuple([self.number(thread) for thread in self.reached(place, ())])

    # ---- between two characters ---------------------------------------------------------------------------------

    def reached(self, place: int, past: tuple[int, ...]) -> tuple[Thread, ...]:
        """Return the threads reachable without input from a place, in order of preference.

        `past` holds the kinds of the preceding characters.
        """
        asked = self._asked[place]
        past = past[len(past) - asked :] if asked < len(past) else past
        found = self._reached.get((place, past))
        if found is None:
            found = self._reached[place, past] = tuple(self._follow(place, past))
        return found

    def _follow(self, place: int, past: tuple[int, ...]) -> list[Thread]:
        """Compute the threads of `reached`."""
        found: dict[Thread, None] = {}
        idle: frozenset[int] = frozenset()  # Loops whose current iteration has not consumed text yet.
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
        """Return (bytes, successor threads in order of preference) for disjoint byte sets; other bytes have no
        successors.
        """
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
        """Return the moves of a thread without regard to its pending lookaheads."""
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
        """Return (bytes, pending lookaheads after such a byte, or None if one fails), partitioning all bytes."""
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
        """Return whether the pending lookaheads are satisfied if the text ends here."""
        return all(self._held_at_end(state) != negated for state, negated in pending)

    # ---- lookaheads ---------------------------------------------------------------------------------------------

    def _look(self, numbers: list[int]) -> int:
        """Return the state of a lookahead with these threads."""
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
        """Return (bytes, next state of the lookahead), partitioning all bytes."""
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
        """Return the moves of a thread of a lookahead.

        The thread is done after the first byte of a character if every character with that first byte completes the
        match.
        """
        thread = self.threads[number]
        step = self.code[thread.place]
        if isinstance(step, DoneStep):  # It has matched, but nested lookaheads are pending.
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
        """Return whether a lookahead has matched if the text ends here."""
        threads = [self.threads[number] for number in self.looks[state]]
        return any(isinstance(self.code[t.place], DoneStep) and self.kept_at_end(t.pending) for t in threads)


def _behind(step: BehindStep, past: tuple[int, ...], place: int) -> bool:
    """Return whether the last characters match one of the options of a lookbehind."""
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
    """Return, for each place, how many preceding characters a lookbehind reachable from there may inspect."""
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
