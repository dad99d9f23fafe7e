"""Matches that need not be decided, because a longer one is preferred whenever they are right.

`(?!(if|else)\\b)[a-z]+` has matched "i", and whether it may have depends on more than the next byte. But if it may, so
may "if" or "in": the thread that reads on owes the same and is preferred. So "i" is no lexeme before a letter.
"""

from __future__ import annotations

from ..automata.ordered_threads import NOTHING, PendingLookaheads, ThreadStates
from ..automata.thread_steps import DoneStep
from ..automata.utf8 import END

__all__ = ["is_dominated"]

MOST_STEPS = 2_000
"""Pairs of threads and pending lookaheads that are followed; what is not settled by then is refused."""


def is_dominated(threads: ThreadStates, ahead: tuple[int, ...], pending: PendingLookaheads, first: int) -> bool:
    """Whether a match is beaten whenever its pending lookaheads are fulfilled, by one of the preferred threads,
    whatever follows.

    first: the bytes that may come next.
    """
    start = (ahead, pending, threads.utf8.anything)
    work, seen = [start], {start}
    allowed = first
    while work:
        ahead, pending, spelled = work.pop()
        for mask, node in threads.utf8.nodes[spelled]:
            for part, owed in threads.owing(pending):
                if owed is None:
                    continue
                for after in _after(threads, ahead, mask & part & allowed):
                    if _matched(threads, after, owed):
                        continue
                    ended = node == END and threads.kept_at_end(owed)
                    if not after or owed == NOTHING or ended or len(seen) > MOST_STEPS:
                        return False
                    item = (after, owed, node if node != END else threads.utf8.anything)
                    if item not in seen:
                        seen.add(item)
                        work.append(item)
        allowed = -1  # All bytes.
    return True


def _after(threads: ThreadStates, numbers: tuple[int, ...], bytes_: int) -> set[tuple[int, ...]]:
    """The threads that may follow after one of the bytes."""
    groups: list[tuple[int, tuple[int, ...]]] = [(bytes_, ())] if bytes_ else []
    for number in numbers:
        for mask, after in threads.moves(number):
            groups = [
                (part, found)
                for old, before in groups
                for part, found in ((old & mask, before + after), (old & ~mask, before))
                if part
            ]
    return {tuple(dict.fromkeys(found)) for _, found in groups}


def _matched(threads: ThreadStates, numbers: tuple[int, ...], owed: PendingLookaheads) -> bool:
    """Whether one of the threads has matched and owes no more than that."""
    found = (threads.threads[number] for number in numbers)
    return any(isinstance(threads.code[thread.place], DoneStep) and thread.pending <= owed for thread in found)
