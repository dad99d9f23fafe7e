"""Masks ahead of time: the masks of the sets that may follow a set of configurations (kernels).

The sets after a set are many only by its tokens. What leads on is tried in this order, each a *place*:

    0 .. 255     the bytes, which reach what nearly all tokens of a large row do
    then         repetitions of a letter or a digit: where characters are counted, tokens differ by their length
    then         the tokens of the mask outside a large row, by id: frequent ones first, where ids are ranks of a BPE

A mask that is made here is stored with its set, so the step that needs it copies it. Sets within members that must
differ, or within undeclared keys, are passed over: their text makes each set another one.
"""

from __future__ import annotations

from typing import Any

from .call_layout import FIRST_TOKEN, LONGEST_RUN
from .context_views import at, count_ones, lowest_bit, size, view
from .jit.compilation import entry, kernel
from .masks import fill_mask
from .sets import step_set
from .token_steps import advance_token

from .context_layout import (  # isort: skip
    CLOSURES, HEAD, MASKS, MOST_STEPS, N_MASKS, ROWS, SETS, TABLE, T_WORDS, VISITED,
)  # fmt: skip
from .record_layout import HAS_CANDIDATES, IS_MEMBER, IS_NAMING, IS_OPEN, MASK_BASE, SET_FLAGS, SET_MASK, SET_W  # isort: skip

BYTES = 256
LETTER, DIGIT = 97, 48
LARGE_ROW = 1_500
"""Tokens of a row from which on they are left out."""
MOST_TOKENS = 64
"""Tokens that are followed, about."""
MASK_STEPS = 20_000
"""Most steps of a mask that is made ahead of time (about 1 ms)."""
UNIT = 100
"""Closures, or eight times as many trie nodes or tokens, after which a call returns."""


@entry("int64(int64, int64, int64)")
def list_likely(c: Any, s: Any, out: Any) -> Any:
    """Write the tokens by which set s likely continues to address `out`, as a mask. Return 0 or -1.

    These are the first MOST_TOKENS of its mask, less the large row that it differs from.
    """
    if fill_mask(c, s, out) < 0:
        return -1
    delta, words = view(c, SETS)[SET_W * s + SET_MASK] + 0, view(c, TABLE)[T_WORDS] + 0
    base, rows, mask, count = -1, view(c, ROWS), at(out), 0
    if delta >= 0:
        base = view(c, MASKS)[delta + MASK_BASE] + 0
    if base >= 0:
        for w in range(words):
            count += count_ones(rows[base * words + w])
        if count > LARGE_ROW:
            for w in range(words):
                mask[w] &= ~rows[base * words + w]
    count = 0
    for w in range(words):
        count += count_ones(mask[w])
        if count > MOST_TOKENS:
            mask[w] = 0
    return 0


@kernel("int64(int64, int64, int64)")
def follow_run(c: Any, s: Any, place: Any) -> Any:
    """Return the set after set s and the repetitions of a byte that a place stands for: its id, DEAD, or -1."""
    byte = LETTER if place < LONGEST_RUN else DIGIT
    for _ in range(1 + place % LONGEST_RUN):
        s = step_set(c, s, byte)
        if s <= 0:
            break
    return s


@kernel("int64(int64, int64, int64)")
def fill_ahead(c: Any, s: Any, out: Any) -> Any:
    """Make the mask of set s, unless it has one or cannot store it, with `out` as scratch memory. Return 0 or -1."""
    head, record = view(c, HEAD), SET_W * s
    if view(c, SETS)[record + SET_MASK] >= 0:
        return 0
    if view(c, SETS)[record + SET_FLAGS] & (IS_MEMBER | IS_OPEN | HAS_CANDIDATES | IS_NAMING):
        return 0
    most = head[MOST_STEPS] + 0
    head[MOST_STEPS] = min(most, MASK_STEPS)
    result = fill_mask(c, s, out)
    head[MOST_STEPS] = most
    return -1 if result < 0 else 0


@entry("int64(int64, int64, int64, int64, int64)")
def fill_next_masks(c: Any, s: Any, place: Any, likely: Any, out: Any) -> Any:
    """Make masks of the sets after set s from a place on.

    likely: address of what `list_likely` has written. out: address of a scratch mask.

    Return the place to continue at; FIRST_TOKEN + 32 * words if nothing is left, or half of the memory for masks is
    used; or -1 - k if place k has made a request.
    """
    head, tokens = view(c, HEAD), at(likely)
    end = FIRST_TOKEN + 32 * view(c, TABLE)[T_WORDS]
    if view(c, SETS)[SET_W * s + SET_FLAGS] & IS_NAMING:
        place = max(place, FIRST_TOKEN)
    closures, visited, tried = head[CLOSURES] + 0, head[VISITED] + 0, 0
    while place < end:
        if 2 * head[N_MASKS] > size(c, MASKS):
            return end
        if head[CLOSURES] - closures + (head[VISITED] - visited + tried) // 8 > UNIT:
            return place
        if place < BYTES:
            after = step_set(c, s, place)
        elif place < FIRST_TOKEN:
            after = follow_run(c, s, place - BYTES)
        else:
            token = place - FIRST_TOKEN
            bits = (tokens[token >> 5] & 0xFFFFFFFF) >> (token & 31)
            if bits == 0:
                place += 32 - (token & 31)
                continue
            place += lowest_bit(bits)
            after = advance_token(c, s, place - FIRST_TOKEN)
        if after < 0 or (after > 0 and fill_ahead(c, after, out) < 0):
            return -1 - place
        tried += 1
        place += 1
    return end
