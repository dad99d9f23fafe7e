"""Masks: the tokens and bytes that a set of configurations allows next (kernels).

`fill_mask` combines the masks of configurations in leaves (`leaf_masks`), in white space (`gap_masks`), of parsed text
(`lexeme_masks`), and a walk of the main trie for all others (`trie_walks`). It stores the result as a delta to a row
(`mask_deltas`), so that the next mask of the same set is a copy.
"""

from __future__ import annotations

from typing import Any

from .context_views import at, load_acquire, size, view
from .gap_masks import add_gap
from .interned_names import request
from .jit.compilation import entry, kernel
from .leaf_masks import add_leaf, add_name, copy_row
from .lexeme_masks import add_parsed
from .mask_deltas import NO_ROW, apply_delta, store_delta
from .program_layout import ARG_HIGH, LEAF, OTHER, PARSE
from .sets import step_set
from .table_layout import LEAF_ROW, LEAF_W, TRIE_FIRST_EDGE, TRIE_W
from .token_steps import queue_question
from .trie_tokens import NO_LIMIT, clear_subtree
from .trie_walks import ALL, WITHOUT_ROW, add_to_worklist, is_gap, select_configs, take_subtree, walk_trie
from .unique_members import may_keep_candidates

from .context_layout import (  # isort: skip
    CODE, CONFIGS, ENDS, HEAD, LEAVES, MAY_LACK, NEED_ANSWERS, NEED_ROW, N_QUESTIONS, N_WORKLIST, SETS, SPENT, STACK,
    STEPS, STUCK, TABLE, TRIE, TRIE_EDGES, T_WORDS, WORKLIST,
)  # fmt: skip
from .record_layout import (  # isort: skip
    CONFIG_EXTRA, CONFIG_PC, CONFIG_STATE, CONFIG_W, HAS_CANDIDATES, IS_ACCEPTING, IS_CUT, IS_MEMBER, MEMBER_GUARD,
    SET_COUNT, SET_FIRST, SET_FLAGS, SET_MASK, SET_W, WORK_LEAST, WORK_MOST, WORK_NODE, WORK_SET, WORK_W, WORK_WALKED,
)  # fmt: skip


MOST_ROWS = 128
"""Most leaf states of one mask: each may need a row and a suffix trie, which take some 6 ms to build."""


@kernel("int64(int64, int64, int64)")
def check_worklist(c: Any, origin: Any, out: Any) -> Any:
    """Clear the tokens by which a member would end, or could only end, equal to an earlier one. Return 0 or -1.

    The walks treat each member as unique. That is wrong only along bytes after which a candidate remains: this follows
    those bytes with the exact sets, and walks again the subtrees in which no candidate is left.
    """
    head, sets, configs, worklist = view(c, HEAD), view(c, SETS), view(c, CONFIGS), view(c, WORKLIST)
    trie, edges = view(c, TRIE), view(c, TRIE_EDGES)
    while head[N_WORKLIST] > 0:
        head[N_WORKLIST] -= 1
        k = WORK_W * head[N_WORKLIST]
        node, s = worklist[k + WORK_NODE] + 0, worklist[k + WORK_SET] + 0
        least, most = worklist[k + WORK_LEAST] + 0, worklist[k + WORK_MOST] + 0
        if worklist[k + WORK_WALKED] == 0 and take_subtree(c, node, s, origin, out, least, most) < 0:
            return -1
        guard = configs[CONFIG_W * (sets[s * SET_W + SET_FIRST] + sets[s * SET_W + SET_COUNT]) + MEMBER_GUARD] + 0
        for e in range(trie[TRIE_W * node + TRIE_FIRST_EDGE], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE]):
            b, child = edges[e] & 255, edges[e] >> 8
            if not may_keep_candidates(c, guard, b):
                continue
            after = step_set(c, s, b)
            if after < 0:
                if queue_question(c) < 0:
                    return -1
                continue
            flags = sets[after * SET_W + SET_FLAGS] if after > 0 else 0
            may_equal = flags & HAS_CANDIDATES
            if may_equal and add_to_worklist(c, child, after, least, most, 0 if flags & IS_CUT else 1) < 0:
                return -1
            if may_equal and flags & IS_CUT == 0:
                continue
            if clear_subtree(c, child, out, least, most) < 0:
                return -1
            if after > 0 and not may_equal and take_subtree(c, child, after, origin, out, least, most) < 0:
                return -1
    return 0


@kernel("int64(int64, int64, int64)")
def has_many_rows(c: Any, first: Any, last: Any) -> Any:
    """Return whether configurations first .. last are in more than MOST_ROWS leaf states that have rows."""
    configs, code, leaves, stack = view(c, CONFIGS), view(c, CODE), view(c, LEAVES), view(c, STACK)
    count = 0
    for k in range(first, last):
        op, q = code[configs[CONFIG_W * k + CONFIG_PC]], configs[CONFIG_W * k + CONFIG_STATE] + 0
        if (op == LEAF or op == OTHER) and leaves[q * LEAF_W + LEAF_ROW] != -2:
            i = 0
            while i < count and stack[i] != q:
                i += 1
            if i == MOST_ROWS:
                return 1
            stack[i] = q
            count = max(count, i + 1)
    return 0


@kernel("int64(int64, int64, int64)")
def fill_mask(c: Any, s: Any, out: Any) -> Any:
    """Write the mask of set s, end tokens included, to the int32 words at address `out`. Return 0 or -1."""
    head, sets, configs, code = view(c, HEAD), view(c, SETS), view(c, CONFIGS), view(c, CODE)
    leaves, mask = view(c, LEAVES), at(out)
    words = view(c, TABLE)[T_WORDS] + 0
    r = s * SET_W
    if sets[r + SET_MASK] >= 0:
        return apply_delta(c, sets[r + SET_MASK], out)
    first = sets[r + SET_FIRST] + 0
    last = first + sets[r + SET_COUNT]
    rows, base, parsed, begun = 0, NO_ROW, False, NO_ROW
    if last - first > MOST_ROWS and has_many_rows(c, first, last):
        return request(c, SPENT, 0)
    for k in range(first, last):
        op = code[configs[CONFIG_W * k + CONFIG_PC]]
        if op == LEAF or op == OTHER:
            row = load_acquire(leaves, configs[CONFIG_W * k + CONFIG_STATE] * LEAF_W + LEAF_ROW)
            if row == -1:
                return request(c, NEED_ROW, configs[CONFIG_W * k + CONFIG_STATE])
            if row >= 0:
                rows += 1
                base = row + 0
                if op == LEAF and begun == NO_ROW and code[configs[CONFIG_W * k + CONFIG_PC] + ARG_HIGH] < 0:
                    begun = row + 0
            elif is_gap(c, k):
                rows += 1
        elif op == PARSE:
            rows += 1
            parsed = True
    if begun == NO_ROW:
        for w in range(words):
            mask[w] = 0
    else:  # copied, and not added below
        copy_row(c, begun, out)
    flags = sets[r + SET_FLAGS] + 0
    if flags & IS_ACCEPTING:
        ends = view(c, ENDS)
        for k in range(size(c, ENDS)):
            mask[ends[k] >> 5] |= 1 << (ends[k] & 31)
    head[N_WORKLIST], head[STEPS], head[N_QUESTIONS] = 0, 0, 0
    if flags & HAS_CANDIDATES and add_to_worklist(c, 0, s, 0, NO_LIMIT, 1) < 0:
        return -1
    if rows < last - first:
        without_rows = s
        if rows > 0 or flags & IS_MEMBER:
            without_rows = select_configs(c, s, WITHOUT_ROW if rows > 0 else ALL)
        if without_rows < 0 or walk_trie(c, 0, without_rows, 1, s, out, 0, NO_LIMIT) < 0:
            return -1
    for k in range(first, last):
        pc, q = configs[CONFIG_W * k + CONFIG_PC] + 0, configs[CONFIG_W * k + CONFIG_STATE] + 0
        op = code[pc]
        if op == PARSE:
            if add_parsed(c, s, k, out) < 0:
                return -1
        elif op == OTHER and leaves[q * LEAF_W + LEAF_ROW] >= 0:
            if add_name(c, s, k, out) < 0:
                return -1
        elif op == LEAF and leaves[q * LEAF_W + LEAF_ROW] >= 0:
            high = code[pc + ARG_HIGH]
            most = high - configs[CONFIG_W * k + CONFIG_EXTRA] if high >= 0 else NO_LIMIT
            has_row = 1 if high < 0 and leaves[q * LEAF_W + LEAF_ROW] == begun else 0
            if add_leaf(c, s, k, out, most, has_row) < 0:
                return -1
        elif is_gap(c, k) and add_gap(c, s, k, out) < 0:
            return -1
    if check_worklist(c, s, out) < 0:
        return -1
    if head[N_QUESTIONS] > 0:
        return request(c, NEED_ANSWERS, 0)
    if flags & IS_ACCEPTING == 0 and head[MAY_LACK] == 0:
        w = 0
        while w < words and mask[w] == 0:
            w += 1
        if w == words:
            return request(c, STUCK, 0)
    if flags & IS_MEMBER:  # the text of the member makes the set unique: it never recurs
        return 0
    delta = store_delta(c, base, out, parsed)
    if delta == -1:
        return -1
    if delta >= 0:
        view(c, SETS)[r + SET_MASK] = delta
    return 0


@entry("int64(int64, int64, int32[::1])")
def write_mask(c: Any, s: Any, out: Any) -> Any:
    """Write the mask of set s into `out`, int32[words]. Return 0 or -1."""
    return fill_mask(c, s, out.ctypes.data)


@kernel("int64(int64, int64)")
def find_single_byte(c: Any, s: Any) -> Any:
    """Return the only byte that may follow set s; -2 if there is none or several, or the text may end; or -1."""
    if view(c, SETS)[s * SET_W + SET_FLAGS] & IS_ACCEPTING:
        return -2
    byte = -2
    for b in range(256):
        after = step_set(c, s, b)
        if after < 0:
            return -1
        if after > 0:
            if byte >= 0:
                return -2
            byte = b
    return byte


FORCED_STEPS = 1 << 16
"""Most configurations that `find_forced_bytes` steps."""


@entry("int64(int64, int64, uint8[::1])")
def find_forced_bytes(c: Any, s: Any, out: Any) -> Any:
    """Write the bytes that must follow set s to `out`, as many as fit. Return their number, or -1."""
    steps = 0
    for i in range(len(out)):
        steps += view(c, SETS)[s * SET_W + SET_COUNT]
        if steps > FORCED_STEPS:
            return i
        b = find_single_byte(c, s)
        if b == -1:
            return -1
        if b < 0:
            return i
        out[i] = b
        s = step_set(c, s, b)
    return len(out)


@entry("int64(int64, int64, uint8[::1])")
def list_next_bytes(c: Any, s: Any, out: Any) -> Any:
    """Write 1 to out[b] of uint8[256] for each byte b that may follow set s, else 0. Return 0 or -1."""
    for b in range(256):
        after = step_set(c, s, b)
        if after < 0:
            return -1
        out[b] = 1 if after > 0 else 0
    return 0
