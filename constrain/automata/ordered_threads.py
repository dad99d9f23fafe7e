"""Threads: the configurations of a backtracking matcher in ordered programs, as states of an NFA with priorities.

A thread is the address (`pc`) of a reading instruction, a position within the current UTF-8 character, the kinds of the
last characters as far as a lookbehind may still inspect them (its *lookbehind state*), and *pending lookaheads*: the
lookaheads that it has passed, each with the state of its own program. All pending lookaheads must succeed, and each is
a set of threads of which one must succeed, so this is an alternating automaton (Chandra, Kozen, Stockmeyer 1981,
"Alternation"), and lookaheads may be nested. Threads, lookaheads and their transitions are numbered and computed once.
"""

from __future__ import annotations

from dataclasses import dataclass

from .thread_steps import BehindStep, DoneStep, EnterStep, LeaveStep, LookStep, ReadStep, Step
from .utf8 import END, Utf8

__all__ = ["EVERY", "NOTHING", "PendingLookaheads", "FAILED", "SATISFIED", "BehindStart", "Thread", "ThreadStates"]

EVERY = (1 << 256) - 1
"""The set of all bytes, as bits."""

SATISFIED, FAILED = -1, -2
"""States of a lookahead that has matched, and of one that cannot match any more. Others are numbers of thread sets."""

PendingLookaheads = frozenset[tuple[int, bool]]
"""States of pending lookaheads, each with whether it is negated."""

NOTHING: PendingLookaheads = frozenset()


class BehindStart(Exception):
    """Raised when a lookbehind inspects text before the start of the lexeme; `pc` is the address of the lookbehind."""

    def __init__(self, pc: int) -> None:
        super().__init__()
        self.pc = pc


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread: `pc` is the address of a ReadStep or DoneStep, `node` a node of `Utf8` within the ReadStep."""

    pc: int
    node: int
    lookbehind: tuple[int, ...]
    pending: PendingLookaheads


class ThreadStates:
    """The threads of all programs in `code`, numbered on first use."""

    def __init__(self, code: list[Step], utf8: Utf8) -> None:
        self.code = code
        self.utf8 = utf8
        self.threads: list[Thread] = []
        self._numbers: dict[Thread, int] = {}
        self._reached: dict[tuple[int, tuple[int, ...]], tuple[Thread, ...]] = {}
        self._cached_moves: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        self.lookahead_states: list[frozenset[int]] = []
        self._lookahead_numbers: dict[frozenset[int], int] = {}
        self._cached_lookahead_moves: dict[int, list[tuple[int, int]]] = {}
        self._lookbehind_widths = _lookbehind_widths(code)

    def number(self, thread: Thread) -> int:
        """Return the number of a thread."""
        number = self._numbers.setdefault(thread, len(self.threads))
        if number == len(self.threads):
            self.threads.append(thread)
        return number

    def start(self, pc: int) -> tuple[int, ...]:
        """Return the threads at the start of a lexeme, for the program at `pc`."""
        return tuple([self.number(thread) for thread in self.reached(pc, ())])

    # ---- between two characters ---------------------------------------------------------------------------------

    def reached(self, pc: int, lookbehind: tuple[int, ...]) -> tuple[Thread, ...]:
        """Return the threads reachable without input from an address (epsilon closure), in order of preference.

        `lookbehind` holds the kinds of the preceding characters.
        """
        width = self._lookbehind_widths[pc]
        lookbehind = lookbehind[len(lookbehind) - width :] if width < len(lookbehind) else lookbehind
        reached = self._reached.get((pc, lookbehind))
        if reached is None:
            reached = self._reached[pc, lookbehind] = tuple(self._compute_reached(pc, lookbehind))
        return reached

    def _compute_reached(self, start: int, lookbehind: tuple[int, ...]) -> list[Thread]:
        """Compute the threads of `reached`."""
        threads: dict[Thread, None] = {}
        idle: frozenset[int] = frozenset()  # Loops whose current iteration has not consumed text yet.
        stack = [(start, idle, NOTHING)]
        visited = set()
        while stack:
            item = stack.pop()
            if item in visited:
                continue
            visited.add(item)
            pc, idle, pending = item
            step = self.code[pc]
            if isinstance(step, (ReadStep, DoneStep)):
                width = self._lookbehind_widths[pc]
                visible = lookbehind[len(lookbehind) - width :] if width < len(lookbehind) else lookbehind
                node = step.node if isinstance(step, ReadStep) else END
                threads[Thread(pc, node, visible, pending)] = None
            elif isinstance(step, tuple):
                stack += [(target, idle, pending) for target in reversed(step)]
            elif isinstance(step, EnterStep):
                stack.append((pc + 1, idle | {step.loop}, pending))
            elif isinstance(step, LeaveStep):
                target = step.out if step.loop in idle else step.again
                stack.append((target, idle - {step.loop}, pending))
            elif isinstance(step, LookStep):
                state = self._intern_lookahead([self.number(thread) for thread in self.reached(step.start, lookbehind)])
                if state == (FAILED if step.negated else SATISFIED):
                    stack.append((pc + 1, idle, pending))
                elif state >= 0:
                    stack.append((pc + 1, idle, pending | {(state, step.negated)}))
            elif _matches_lookbehind(step, lookbehind, pc) != step.negated:
                stack.append((pc + 1, idle, pending))
        return list(threads)

    # ---- one byte -----------------------------------------------------------------------------------------------

    def moves(self, number: int) -> list[tuple[int, tuple[int, ...]]]:
        """Return (bytes, successor threads in order of preference) for disjoint byte sets; other bytes have no
        successors.
        """
        moves = self._cached_moves.get(number)
        if moves is None:
            thread = self.threads[number]
            moves = []
            for mask, target in self._read_moves(thread):
                if not thread.pending:
                    moves.append((mask, tuple([self.number(successors) for successors in target])))
                    continue
                for part, pending in self.advance_lookaheads(thread.pending):
                    if pending is not None and mask & part:
                        successors = [Thread(t.pc, t.node, t.lookbehind, t.pending | pending) for t in target]
                        moves.append((mask & part, tuple(map(self.number, successors))))
            self._cached_moves[number] = moves
        return moves

    def _read_moves(self, thread: Thread) -> list[tuple[int, tuple[Thread, ...]]]:
        """Return the moves of a thread without regard to its pending lookaheads."""
        step = self.code[thread.pc]
        if not isinstance(step, ReadStep):
            return []
        moves: list[tuple[int, tuple[Thread, ...]]] = []
        for mask, node in self.utf8.nodes[thread.node]:
            if node != END:
                moves.append((mask, (Thread(thread.pc, node, thread.lookbehind, NOTHING),)))
            else:
                lookbehind = (*thread.lookbehind, step.kind) if step.kind >= 0 else ()
                moves.append((mask, self.reached(thread.pc + 1, lookbehind)))
        return moves

    def advance_lookaheads(self, pending: PendingLookaheads) -> list[tuple[int, PendingLookaheads | None]]:
        """Return (bytes, pending lookaheads after such a byte, or None if one fails), partitioning all bytes.

        The product of the transitions of all lookaheads: satisfied ones are dropped.
        """
        groups: list[tuple[int, PendingLookaheads | None]] = [(EVERY, NOTHING)]
        for state, negated in pending:
            refined: list[tuple[int, PendingLookaheads | None]] = []
            for mask, advanced in groups:
                for part, next_state in self._lookahead_moves(state):
                    common = mask & part
                    if not common:
                        continue
                    if advanced is None or next_state == (SATISFIED if negated else FAILED):
                        refined.append((common, None))
                    else:
                        refined.append((common, advanced | {(next_state, negated)} if next_state >= 0 else advanced))
            groups = refined
        return groups

    def are_satisfied_at_end(self, pending: PendingLookaheads) -> bool:
        """Return whether all pending lookaheads are satisfied if the text ends here."""
        return all(self._matches_at_end(state) != negated for state, negated in pending)

    # ---- lookaheads ---------------------------------------------------------------------------------------------

    def _intern_lookahead(self, numbers: list[int]) -> int:
        """Return the state of a lookahead with these threads."""
        if not numbers:
            return FAILED
        for number in numbers:
            thread = self.threads[number]
            if not thread.pending and isinstance(self.code[thread.pc], DoneStep):
                return SATISFIED
        key = frozenset(numbers)
        number = self._lookahead_numbers.setdefault(key, len(self.lookahead_states))
        if number == len(self.lookahead_states):
            self.lookahead_states.append(key)
        return number

    def _lookahead_moves(self, state: int) -> list[tuple[int, int]]:
        """Return (bytes, next state of the lookahead), partitioning all bytes."""
        moves = self._cached_lookahead_moves.get(state)
        if moves is None:
            groups: list[tuple[int, list[int]]] = [(EVERY, [])]
            for number in self.lookahead_states[state]:
                for mask, after in self._lookahead_thread_moves(number):
                    groups = [
                        (part, targets)
                        for old, before in groups
                        for part, targets in ((old & mask, [*before, *after]), (old & ~mask, before))
                        if part
                    ]
            merged: dict[int, int] = {}
            for mask, targets in groups:
                target = self._intern_lookahead(targets)
                merged[target] = merged.get(target, 0) | mask
            moves = self._cached_lookahead_moves[state] = [(mask, target) for target, mask in merged.items()]
        return moves

    def _lookahead_thread_moves(self, number: int) -> list[tuple[int, tuple[int, ...]]]:
        """Return the moves of a thread of a lookahead.

        The thread is done after the first byte of a character if every character with that first byte completes the
        match.
        """
        thread = self.threads[number]
        step = self.code[thread.pc]
        if isinstance(step, DoneStep):  # It has matched, but nested lookaheads are pending.
            return [
                (mask, (self.number(Thread(thread.pc, END, (), pending)),))
                for mask, pending in self.advance_lookaheads(thread.pending)
                if pending is not None
            ]
        moves = self.moves(number)
        assert isinstance(step, ReadStep)
        if thread.pending or thread.node != step.node or self._lookbehind_widths[thread.pc + 1]:
            return moves
        done_threads = [after for after in self.reached(thread.pc + 1, ()) if isinstance(self.code[after.pc], DoneStep)]
        done = tuple([self.number(after) for after in done_threads if not after.pending])
        if not done:
            return moves
        result = []
        for (mask, after), (_, node) in zip(moves, self.utf8.nodes[thread.node]):
            decided = self.utf8.complete(mask, node) if node != END else 0
            result += [(part, target) for part, target in ((decided, done), (mask & ~decided, after)) if part]
        return result

    def _matches_at_end(self, state: int) -> bool:
        """Return whether a lookahead has matched if the text ends here."""
        threads = [self.threads[number] for number in self.lookahead_states[state]]
        return any(isinstance(self.code[t.pc], DoneStep) and self.are_satisfied_at_end(t.pending) for t in threads)


def _matches_lookbehind(step: BehindStep, lookbehind: tuple[int, ...], pc: int) -> bool:
    """Return whether the last characters match one of the options of a lookbehind."""
    known = lookbehind[max(len(lookbehind) - step.width, 0) :]
    options = [
        option
        for option in step.options
        if all(kinds >> kind & 1 for kinds, kind in zip(option[step.width - len(known) :], known))
    ]
    if options and len(known) < step.width:
        raise BehindStart(pc)
    return bool(options)


def _lookbehind_widths(code: list[Step]) -> list[int]:
    """Return, for each address, how many preceding characters a lookbehind reachable from it may inspect.

    A backward data-flow analysis (least fixpoint): reading a character leaves one character less to inspect.
    """
    widths = [step.width if isinstance(step, BehindStep) else 0 for step in code]
    if not any(widths):
        return widths
    changed = True
    while changed:
        changed = False
        for pc in range(len(code) - 1, -1, -1):
            step = code[pc]
            if isinstance(step, ReadStep):
                most = widths[pc + 1] - 1
            elif isinstance(step, tuple):
                most = max(widths[target] for target in step)
            elif isinstance(step, LeaveStep):
                most = max(widths[step.again], widths[step.out])
            elif isinstance(step, LookStep):
                most = max(widths[pc + 1], widths[step.start])
            else:
                most = 0 if isinstance(step, DoneStep) else widths[pc + 1]
            if most > widths[pc]:
                widths[pc] = most
                changed = True
    return widths
