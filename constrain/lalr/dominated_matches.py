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


def is_dominated(threads: ThreadStates, preferred: tuple[int, ...], pending: PendingLookaheads, first: int) -> bool:
    """Return whether preferred threads supersede a match in every continuation that satisfies its pending lookaheads.

    `preferred` are the numbers of the preferred threads, `pending` the lookaheads of the match and `first` the possible
    next bytes, as bits.
    """
    start = (preferred, pending, threads.utf8.anything)
    stack, visited = [start], {start}
    allowed = first
    while stack:
        preferred, pending, spelled = stack.pop()
        for mask, node in threads.utf8.nodes[spelled]:
            for part, remaining in threads.advance_lookaheads(pending):
                if remaining is None:
                    continue
                for successors in _advance_threads(threads, preferred, mask & part & allowed):
                    if _has_matched(threads, successors, remaining):
                        continue
                    may_end = node == END and threads.are_satisfied_at_end(remaining)
                    if not successors or remaining == NOTHING or may_end or len(visited) > MOST_STEPS:
                        return False
                    item = (successors, remaining, node if node != END else threads.utf8.anything)
                    if item not in visited:
                        visited.add(item)
                        stack.append(item)
        allowed = -1  # All bytes.
    return True


def _advance_threads(threads: ThreadStates, numbers: tuple[int, ...], bytes_: int) -> set[tuple[int, ...]]:
    """Return the possible tuples of threads after one of the bytes."""
    groups: list[tuple[int, tuple[int, ...]]] = [(bytes_, ())] if bytes_ else []
    for number in numbers:
        for mask, next_threads in threads.moves(number):
            groups = [
                (part, successors)
                for old, so_far in groups
                for part, successors in ((old & mask, so_far + next_threads), (old & ~mask, so_far))
                if part
            ]
    return {tuple(dict.fromkeys(successors)) for _, successors in groups}


def _has_matched(threads: ThreadStates, numbers: tuple[int, ...], remaining: PendingLookaheads) -> bool:
    """Return whether one of the threads has matched with no pending lookaheads beyond `remaining`."""
    matched = (threads.threads[number] for number in numbers)
    return any(isinstance(threads.code[thread.pc], DoneStep) and thread.pending <= remaining for thread in matched)
