"""Tokens taken byte by byte from a set of configurations: exact, and slower than a walk (kernels).

A walk of the trie (`trie_walks`) leaves some things unknown, such as the text of a member that must be unique. The few
tokens for which that matters are stepped from the exact set of the mask instead. `advance_token` and `advance_bytes`
are what a Matcher does with a token that was chosen.
"""

from __future__ import annotations

from typing import Any

from .context_views import at, size, view
from .interned_names import request
from .jit.compilation import entry, kernel
from .record_layout import DEAD, SET_COUNT, SET_W
from .sets import step_set
from .table_layout import ENTRY_TOKEN, ENTRY_W, TRIE_FIRST_EDGE, TRIE_FIRST_TOKEN, TRIE_W, WALK_NODE, WALK_SET
from .vocabulary_trie import read_byte

from .context_layout import (  # isort: skip
    ARGUMENT, FULL, HEAD, MOST_STEPS, NAMED_IN, NEED_ANSWERS, NEED_CANDIDATES, NEED_NAME_FREE, N_QUESTIONS, OFFSETS,
    QUESTIONS, QUESTION_W, Q_ARGUMENT, Q_NAMED_IN, Q_SPELLING, Q_STATUS, Q_TEXT, ROUTE, SETS, SPELLING, SPENT, STACK,
    STATUS, STEPS, TEXT, TRIE, TRIE_EDGES, TRIE_END, TRIE_TOKENS,
)  # fmt: skip


TRIED_AT_ONCE = 8
"""Configurations of a set per counted step: most of them refuse the byte."""


@entry("int64(int64, int64, int64)")
def advance_token(c: Any, s: Any, token: Any) -> Any:
    """Return the set after set s and a token: its id, DEAD if the token is refused (or has no bytes), or -1."""
    offsets = view(c, OFFSETS)
    first, last = offsets[token], offsets[token + 1]
    if first == last:
        return DEAD
    for i in range(first, last):
        s = step_set(c, s, read_byte(c, i))
        if s <= 0:
            return s
    return s


@entry("int64(int64, int64, int64[::1], int64[::1])")
def advance_by_each(c: Any, s: Any, tokens: Any, sets: Any) -> Any:
    """Write what `advance_token` returns for set s and each of some tokens to `sets`. Return 0."""
    for i in range(len(tokens)):
        sets[i] = advance_token(c, s, tokens[i])
    return 0


@entry("int64(int64, int64, uint8[::1])")
def advance_bytes(c: Any, s: Any, text: Any) -> Any:
    """Return the set after set s and the bytes of `text`: its id, -1, or -2 - i if byte i is refused."""
    for i in range(len(text)):
        s = step_set(c, s, text[i])
        if s == DEAD:
            return -2 - i
        if s < 0:
            return s
    return s


@kernel("int64(int64)")
def queue_question(c: Any) -> Any:
    """Queue the request that a step has made about members or names, so that the walk can go on. Return 0 or -1.

    The caller answers all of them at the end of the mask (NEED_ANSWERS): each answer restarts the mask.
    """
    head, questions = view(c, HEAD), view(c, QUESTIONS)
    status = head[STATUS] + 0
    if status < NEED_CANDIDATES or status > NEED_NAME_FREE:
        return -1
    k = QUESTION_W * head[N_QUESTIONS]
    if k > 0 and questions[k - QUESTION_W] == status and questions[k - QUESTION_W + Q_ARGUMENT] == head[ARGUMENT]:
        if (
            questions[k - QUESTION_W + Q_TEXT] == head[TEXT]
            and questions[k - QUESTION_W + Q_SPELLING] == head[SPELLING]
        ):
            return 0
    if k + QUESTION_W > size(c, QUESTIONS):
        return request(c, NEED_ANSWERS, 0)
    questions[k + Q_STATUS], questions[k + Q_ARGUMENT], questions[k + Q_TEXT] = status, head[ARGUMENT], head[TEXT]
    questions[k + Q_SPELLING], questions[k + Q_NAMED_IN] = head[SPELLING], head[NAMED_IN]
    head[N_QUESTIONS] += 1
    return 0


@kernel("int64(int64, int64, int64, int64)")
def try_token(c: Any, s: Any, token: Any, out: Any) -> Any:
    """Set or clear the bit of one token by stepping its bytes from set s. Return 0 or -1."""
    head, sets, offsets, mask = view(c, HEAD), view(c, SETS), view(c, OFFSETS), at(out)
    first, last = offsets[token], offsets[token + 1]
    after = s if first < last else DEAD
    for i in range(first, last):
        head[STEPS] += 1 + sets[after * SET_W + SET_COUNT] // TRIED_AT_ONCE
        after = step_set(c, after, read_byte(c, i))
        if after <= 0:
            break
    if head[STEPS] > head[MOST_STEPS]:
        return request(c, SPENT, 0)
    if after < 0:
        return queue_question(c)
    if after > 0:
        mask[token >> 5] |= 1 << (token & 31)
    else:
        mask[token >> 5] &= ~(1 << (token & 31))
    return 0


@kernel("int64(int64, int64, int64, int64)")
def try_subtree(c: Any, root: Any, origin: Any, out: Any) -> Any:
    """Try every token of the subtree at `root` one by one from the set of the mask. Return 0 or -1."""
    trie, edges, tokens, stack = view(c, TRIE), view(c, TRIE_EDGES), view(c, TRIE_TOKENS), view(c, STACK)
    base = size(c, STACK) // 2  # the upper half: the caller's walk uses the lower one
    top = 0
    stack[base] = root
    while top >= 0:
        node = stack[base + top] + 0
        top -= 1
        for k in range(trie[TRIE_W * node + TRIE_FIRST_TOKEN], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_TOKEN]):
            if try_token(c, origin, tokens[ENTRY_W * k + ENTRY_TOKEN], out) < 0:
                return -1
        for e in range(trie[TRIE_W * node + TRIE_FIRST_EDGE], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE]):
            top += 1
            if base + top >= size(c, STACK):
                return request(c, FULL, STACK)
            stack[base + top] = edges[e] >> 8
    return 0


@kernel("int64(int64, int64, int64, int64)")
def try_subtree_from(c: Any, root: Any, s: Any, out: Any) -> Any:
    """Set or clear the bits of all tokens below a node of the main trie, which set s has reached. Return 0 or -1.

    Depth-first, so each edge is stepped once.
    """
    head, sets, mask = view(c, HEAD), view(c, SETS), at(out)
    trie, edges, tokens, stack = view(c, TRIE), view(c, TRIE_EDGES), view(c, TRIE_TOKENS), view(c, STACK)
    base = size(c, STACK) // 2
    top = 0
    stack[base + WALK_NODE], stack[base + WALK_SET] = root, s
    while top >= 0:
        node, s = stack[base + 2 * top + WALK_NODE] + 0, stack[base + 2 * top + WALK_SET] + 0
        top -= 1
        if s == DEAD:  # Tokens are in preorder: those of a subtree are contiguous.
            end = view(c, TRIE_END)[node]
            for k in range(trie[TRIE_W * node + TRIE_FIRST_TOKEN], trie[TRIE_W * end + TRIE_FIRST_TOKEN]):
                mask[tokens[ENTRY_W * k + ENTRY_TOKEN] >> 5] &= ~(1 << (tokens[ENTRY_W * k + ENTRY_TOKEN] & 31))
            continue
        for k in range(trie[TRIE_W * node + TRIE_FIRST_TOKEN], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_TOKEN]):
            mask[tokens[ENTRY_W * k + ENTRY_TOKEN] >> 5] |= 1 << (tokens[ENTRY_W * k + ENTRY_TOKEN] & 31)
        for e in range(trie[TRIE_W * node + TRIE_FIRST_EDGE], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE]):
            head[STEPS] += 1 + sets[s * SET_W + SET_COUNT] // TRIED_AT_ONCE
            after = step_set(c, s, edges[e] & 255)
            if after < 0:
                if queue_question(c) < 0:
                    return -1
                continue
            top += 1
            if base + 2 * top + 1 >= size(c, STACK):
                return request(c, FULL, STACK)
            stack[base + 2 * top + WALK_NODE], stack[base + 2 * top + WALK_SET] = edges[e] >> 8, after
        if head[STEPS] > head[MOST_STEPS]:
            return request(c, SPENT, 0)
    return 0


@kernel("int64(int64, int64, int64)")
def step_along_route(c: Any, s: Any, depth: Any) -> Any:
    """Return the set after set s and the first `depth` bytes of ROUTE: its id, DEAD, or -1."""
    route = view(c, ROUTE)
    for i in range(depth):
        s = step_set(c, s, route[i])
        if s <= 0:
            return s
    return s
