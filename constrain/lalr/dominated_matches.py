"""Dominated matches: matches with pending lookaheads that a preferred longer match always supersedes.

After "i", the terminal `(?!(if|else)\\b)[a-z]+` has a match whose lookahead needs more than the next byte. But whenever
that match is valid, so is "if" or "in": the thread that reads on has the same pending lookaheads and is preferred.
Hence "i" is never a lexeme before a letter, and its lookahead need not be decided there.
"""

from __future__ import annotations

from ..automata.ordered_threads import NOTHING, PendingLookaheads, ThreadStates
from ..automata.thread_steps import DoneStep
from ..automata.utf8 import END

__all__ = ["is_dominated"]

MOST_STEPS = 2_000
"""Maximum number of pairs of threads and pending lookaheads explored; beyond it, a match counts as not dominated."""


def is_dominated(threads: ThreadStates, ahead: tuple[int, ...], pending: PendingLookaheads, first: int) -> bool:
    """Return whether preferred threads supersede a match in every continuation that satisfies its pending lookaheads.

    `ahead` are the numbers of the preferred threads, `pending` the lookaheads of the match and `first` the possible
    next bytes, as bits.
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
    """Return the possible tuples of threads after one of the bytes."""
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
    """Return whether one of the threads has matched with no pending lookaheads beyond `owed`."""
    found = (threads.threads[number] for number in numbers)
    return any(isinstance(threads.code[thread.place], DoneStep) and thread.pending <= owed for thread in found)
