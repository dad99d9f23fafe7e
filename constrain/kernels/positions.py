"""Positions: what a Matcher asks at every token, of one position or of many, in one call without the GIL (kernels).

A position is a few int64s that its Matcher owns (fields below), so that all of its state is read here and Python only
passes an address. Whether it still means anything is looked at here too: a position belongs to one thread's arena, and
to one epoch of that. What cannot be answered at once is -1, and then Python goes the long way.
"""

from __future__ import annotations

from typing import Any, Final

from .compiled import entry, inlined
from .doors import int64s_at
from .layout import EPOCH, HEAD, T_WORDS, TABLE, WORKER
from .masks import fill
from .views import at, view
from .walk import advance

STAMP = "1675af4a"

AT_CONTEXT: Final = 0  # of its arena
AT_SET: Final = 1
AT_EPOCH: Final = 2  # of the arena, in which the set has its meaning
AT_THREAD: Final = 3  # whose arena it is
AT_PLAIN: Final = (
    4  # tokens below it are taken by their bytes alone; 0: more is to be looked at; -1: the text has ended
)
POSITION_W: Final = 5


@inlined("int64(int64, int64)")
def stands(position: Any, thread: Any) -> Any:
    """Whether the set of a position means something to this thread."""
    p = int64s_at(position)
    return 1 if p[AT_THREAD] == thread and view(p[AT_CONTEXT], HEAD)[EPOCH] == p[AT_EPOCH] else 0


@entry("int64(int64, int64, int64)")
def mask_at(position: Any, thread: Any, out: Any) -> Any:
    """Writes the mask of a position to address `out`: 0 or -1."""
    p = int64s_at(position)
    if p[AT_PLAIN] <= 0 or stands(position, thread) == 0:
        return -1
    return fill(p[AT_CONTEXT], p[AT_SET], out)


@entry("int64(int64, int64, int64)")
def advance_at(position: Any, thread: Any, token: Any) -> Any:
    """Moves a position on by a token: the set that it leaves, or -1."""
    p = int64s_at(position)
    if token < 0 or token >= p[AT_PLAIN] or stands(position, thread) == 0:
        return -1
    before = p[AT_SET]
    after = advance(p[AT_CONTEXT], before, token)
    if after <= 0:
        return -1
    p[AT_SET] = after
    return before


@entry("int64(int64, int64, int64, int64)")
def count_rows(positions: Any, count: Any, workers: Any, counts: Any) -> Any:
    """Adds up in int64s at `counts` how many of the positions each of so many workers serves; the most of one."""
    found = int64s_at(counts)
    for w in range(workers):
        found[w] = 0
    most = 0
    for k in range(count):
        w = view(int64s_at(int64s_at(positions)[k])[AT_CONTEXT], HEAD)[WORKER] % workers
        found[w] += 1
        most = max(most, found[w])
    return most


@entry("int64(int64, int64, int64, int64, int64, int64, int64, int64, int64, int64)")
def fill_many(
    positions: Any, rows: Any, first: Any, last: Any, worker: Any, workers: Any, thread: Any,
    out: Any, stride: Any, words: Any,
) -> Any:  # fmt: skip
    """Writes the masks of those positions first .. last whose arenas are one worker's: `last`; or k, which lacks what
    its arena can provide; or -1 - k, which is to be asked by itself.

    positions: address of addresses. rows: address of the row of each, 0: in order. out: where row 0 begins; rows have
    `words` words and are `stride` bytes apart.
    """
    for k in range(first, last):
        p = int64s_at(int64s_at(positions)[k])
        c = p[AT_CONTEXT]
        mine = view(c, HEAD)[WORKER] % workers if p[AT_THREAD] == thread else 0
        if mine != worker:
            continue
        place = out + (int64s_at(rows)[k] if rows else k) * stride
        written = 0
        if p[AT_PLAIN] >= 0:
            written = view(c, TABLE)[T_WORDS] + 0
            if p[AT_PLAIN] == 0 or written > words or stands(int64s_at(positions)[k], thread) == 0:
                return -1 - k
            if fill(c, p[AT_SET], place) == -1:
                return k
        mask = at(place)
        for w in range(written, words):
            mask[w] = 0
    return last
