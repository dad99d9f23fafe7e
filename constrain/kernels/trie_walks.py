"""Walks of a trie: find the tokens that a set of configurations accepts (kernels).

A depth-first walk descends only where `sets.step_set` returns a set. It iterates over the bytes that the set allows or
over the edges of the trie node, whichever are fewer. Steps are memoised, so a repeated walk only loads. A mask is the
union of

1. for a leaf state that allows many bytes (inside a string, a number, white space, a pattern): a prepared row of the
   tokens that stay inside the leaf, of which 16 KB are copied (`leaf_masks.add_row`);
2. for the tokens that leave such a leaf: a walk of the suffix trie of the leaf state, from the set that follows; and
3. for all other configurations: a walk of the main trie, inside declared keys with string cursors (`key_walks`).
"""

from __future__ import annotations

from typing import Any

from .closure import begin_closure, emit_config
from .context_views import size, view
from .interned_names import request
from .interned_sets import intern_set
from .jit.compilation import inlined, kernel
from .key_walks import is_key_prefix, push_keys, walk_key
from .program_layout import ARG_FINITE, ARG_LOW, LEAF, OBJ_EXCLUDED, OTHER, PARSE, STR_COUNT, STR_OFFSETS
from .quoted_subtrees import QUOTE, find_quoted_subtree
from .sets import make_keyless, mark_text_unknown, step_set
from .string_cursors import find_bound
from .token_steps import queue_question, step_along_route, try_subtree, try_subtree_from
from .trie_tokens import NO_LIMIT, take_tokens
from .vocabulary_trie import find_edge

from .context_layout import (  # isort: skip
    CODE, CONFIGS, FULL, HEAD, LEAVES, MOST_STEPS, NAMES, N_WORKLIST, OBJECTS, ROUTE, SETS, SPENT, STACK, STEPS, TRIE,
    TRIE_EDGES, UNSURE, VISITED, WIDE, WORKLIST,
)  # fmt: skip
from .record_layout import (  # isort: skip
    CONFIG_EXTRA, CONFIG_NODE, CONFIG_PC, CONFIG_REGISTER, CONFIG_STATE, CONFIG_W, DEAD, DECODED, HAS_CANDIDATES,
    HAS_KEYS, IS_MEMBER, IS_NAMED, IS_NAMING, IS_OPEN, IS_UNSURE, LARGE_SET, NAME_PARENT, NAME_VALUE, NAME_W, NARROW,
    NO_NAMES, OPEN_NAME, O_BLOCK, O_NAMES, SET_ALLOWED, SET_BYTES, SET_COUNT, SET_FIRST, SET_FLAGS, SET_KEYLESS,
    SET_NEXT, SET_W, UNKNOWN_NAMES, WORK_LEAST, WORK_MOST, WORK_NODE, WORK_SET, WORK_W, WORK_WALKED,
)  # fmt: skip
from .table_layout import (  # isort: skip
    ESCAPE, KIND, LEAF_DECODER, LEAF_ENDLESS, LEAF_FLAGS, LEAF_GAP, LEAF_ROW,
    LEAF_W, TRIE_FIRST_EDGE, TRIE_W, WALK_BYTE, WALK_NODE, WALK_SET, WALK_W,
)  # fmt: skip


ROW_STEPS = 1_500
"""Steps that a row counts for, with the walk of its suffix trie, of up to 128,000 tokens."""


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def add_to_worklist(c: Any, node: Any, s: Any, least: Any, most: Any, walked: Any) -> Any:
    """Add a set with candidates, reached at a trie node, to the worklist of `masks.check_worklist`. Return 0 or -1.

    walked: whether the tokens below the node were walked already.
    """
    head, worklist = view(c, HEAD), view(c, WORKLIST)
    k = WORK_W * head[N_WORKLIST]
    if k + WORK_W > size(c, WORKLIST):
        return request(c, FULL, WORKLIST)
    worklist[k + WORK_NODE], worklist[k + WORK_SET] = node, s
    worklist[k + WORK_LEAST], worklist[k + WORK_MOST], worklist[k + WORK_WALKED] = least, most, walked
    head[N_WORKLIST] += 1
    return 0


@kernel("int64(int64, int64)")
def may_escape(c: Any, s: Any) -> Any:
    """Return whether an undeclared key is being spelled in set s, a backslash being its last byte: 1 or 0."""
    sets, configs, code, leaves = view(c, SETS), view(c, CONFIGS), view(c, CODE), view(c, LEAVES)
    first = sets[s * SET_W + SET_FIRST]
    for k in range(first, first + sets[s * SET_W + SET_COUNT]):
        q = configs[CONFIG_W * k + CONFIG_STATE]
        is_name = code[configs[CONFIG_W * k + CONFIG_PC]] == OTHER
        if is_name and leaves[q * LEAF_W + LEAF_DECODER] >> KIND == ESCAPE:
            return 1
    return 0


@kernel("int64(int64, int64, int64, int64)")
def is_new_name(c: Any, origin: Any, s: Any, depth: Any) -> Any:
    """Return 1 if the key that ends with byte `depth` of ROUTE is certainly no duplicate, else 0.

    The key is between the last two quotes of ROUTE. If it contains an escape or began before ROUTE, the result is 0.

    s: the set before its last byte. origin: the set in which ROUTE begins.
    """
    sets, configs, code, objects = view(c, SETS), view(c, CONFIGS), view(c, CODE), view(c, OBJECTS)
    names, route = view(c, NAMES), view(c, ROUTE)
    end = depth - 1
    start = end
    while start > 0 and route[start - 1] != 34:
        start -= 1
        if route[start] == 92:
            return 0
    if start == 0:
        return 0
    # The first of the quotes may be part of the name.
    if route[start - 2] == 92 if start > 1 else may_escape(c, origin) == 1:
        return 0
    first = sets[s * SET_W + SET_FIRST]
    for k in range(first, first + sets[s * SET_W + SET_COUNT]):
        if code[configs[CONFIG_W * k + CONFIG_PC]] != OTHER:
            continue
        state = configs[CONFIG_W * k + CONFIG_REGISTER] + 0
        name_list = objects[state + O_NAMES] + 0
        if configs[CONFIG_W * k + CONFIG_EXTRA] != OPEN_NAME or name_list == UNKNOWN_NAMES:
            return 0
        block = code[objects[state + O_BLOCK] + OBJ_EXCLUDED]
        low, high = 0, code[block + STR_COUNT] + 0
        for i in range(start, end):
            if low < high:
                low = find_bound(c, block, low, high, i - start, route[i])
                high = find_bound(c, block, low, high, i - start, route[i] + 1)
        if low < high and code[block + STR_OFFSETS + low + 1] - code[block + STR_OFFSETS + low] == end - start:
            return 0
        while name_list != NO_NAMES:
            i, chain = end - 1, names[NAME_W * name_list + NAME_VALUE] + 0
            while i >= start and chain != DECODED and names[NAME_W * chain + NAME_VALUE] == route[i]:
                chain = names[NAME_W * chain + NAME_PARENT] + 0
                i -= 1
            if i < start and chain == DECODED:
                return 0
            name_list = names[NAME_W * name_list + NAME_PARENT] + 0
    return 1


WITHOUT_ROW, ALL, NO_KEYS = -1, -2, -3
"""Which configurations `select_configs` selects."""


@inlined("int64(int64, int64)")
def is_gap(c: Any, k: Any) -> Any:
    """Return whether configuration k is in a gap without a least length."""
    configs, code = view(c, CONFIGS), view(c, CODE)
    pc = configs[CONFIG_W * k + CONFIG_PC]
    if code[pc] != LEAF or code[pc + ARG_LOW] > 0:
        return 0
    return 1 if view(c, LEAVES)[configs[CONFIG_W * k + CONFIG_STATE] * LEAF_W + LEAF_FLAGS] & LEAF_GAP else 0


@kernel("int64(int64, int64, int64)")
def select_configs(c: Any, s: Any, which: Any) -> Any:
    """Return the set of some configurations of set s, with the text of members unknown: its id, or -1.

    which: one configuration; WITHOUT_ROW: those without a row, outside gaps; NO_KEYS: those that `key_walks` does not
    walk; ALL.
    """
    sets, configs, code, leaves = view(c, SETS), view(c, CONFIGS), view(c, CODE), view(c, LEAVES)
    begin_closure(c)
    mark_text_unknown(c, s)
    first = sets[s * SET_W + SET_FIRST]
    for k in range(first, first + sets[s * SET_W + SET_COUNT]):
        q = configs[CONFIG_W * k + CONFIG_STATE]
        op = code[configs[CONFIG_W * k + CONFIG_PC]]
        has_row = op == PARSE or ((op == LEAF or op == OTHER) and leaves[q * LEAF_W + LEAF_ROW] != -2) or is_gap(c, k)
        is_selected = k == which or which == ALL or (which == WITHOUT_ROW and not has_row)
        if is_selected or (which == NO_KEYS and not is_key_prefix(c, k)):
            pc, reg = configs[CONFIG_W * k + CONFIG_PC] + 0, configs[CONFIG_W * k + CONFIG_REGISTER] + 0
            if op == OTHER and code[pc + ARG_FINITE] and view(c, OBJECTS)[reg + O_NAMES] == UNKNOWN_NAMES:
                if leaves[q * LEAF_W + LEAF_FLAGS] & LEAF_ENDLESS == 0:
                    view(c, HEAD)[UNSURE] = 1
            if (
                emit_config(c, pc, q, configs[CONFIG_W * k + CONFIG_NODE], reg, configs[CONFIG_W * k + CONFIG_EXTRA])
                < 0
            ):
                return -1
    return intern_set(c)


@kernel("int64(int64, int64)")
def drop_keys(c: Any, s: Any) -> Any:
    """Return the set of the configurations of set s that `key_walks` does not walk: its id, DEAD, or -1."""
    sets, r = view(c, SETS), s * SET_W
    has_memo = sets[r + SET_ALLOWED] > NARROW and sets[r + SET_FLAGS] & IS_NAMING == 0
    if has_memo and sets[r + SET_KEYLESS] >= 0:
        return sets[r + SET_KEYLESS]
    others = select_configs(c, s, NO_KEYS)
    if others >= 0 and has_memo:
        sets[r + SET_KEYLESS] = others
    return others


@kernel("int64(int64, int64, int64, int64, int64, int64, int64, int64)")
def walk_trie(c: Any, root: Any, start: Any, exact: Any, origin: Any, out: Any, least: Any, most: Any) -> Any:
    """Set the bits of all tokens below trie node `root` that set `start` accepts. Return 0 or -1.

    exact: whether all keys in `start` are known. least, most: take only tokens that leave their leaf after least ..
    most characters. origin: the set of the mask.
    """
    head, sets, wide, route = view(c, HEAD), view(c, SETS), view(c, WIDE), view(c, ROUTE)
    trie, edges, stack = view(c, TRIE), view(c, TRIE_EDGES), view(c, STACK)
    limit = size(c, STACK) // 2 - WALK_W * 258
    top = 0
    stack[0], stack[1], stack[2] = root, start, 0
    while top >= 0:
        node, s = stack[WALK_W * top + WALK_NODE] + 0, stack[WALK_W * top + WALK_SET] + 0
        depth, byte = stack[WALK_W * top + WALK_BYTE] >> 8, stack[WALK_W * top + WALK_BYTE] & 255
        if depth > 0:
            route[depth - 1] = byte
        depth += 1
        top -= 1
        head[VISITED] += 1
        if depth > size(c, ROUTE):
            return request(c, FULL, ROUTE)
        if s < 0:
            head[STEPS] += 1
            if head[STEPS] > head[MOST_STEPS]:
                return request(c, SPENT, 0)
            top = walk_key(c, top + 2, depth, out, least, most) - 1
            if top == -2:
                return -1
            continue
        if sets[s * SET_W + SET_FLAGS] & HAS_KEYS:
            count = top + 1
            top = push_keys(c, count, node, s, stack[WALK_W * count + WALK_BYTE] + 0) - 1
            if top == -2:
                return -1
            if top + 1 - count == sets[s * SET_W + SET_COUNT]:
                continue
            s = drop_keys(c, s)
            if s < 0:
                return -1
        if byte == QUOTE and least == 0 and most == NO_LIMIT:
            copy = find_quoted_subtree(c, node, s)
            if copy != node:
                node = copy
                take_tokens(c, node, out, least, most)
        r = s * SET_W
        n = sets[r + SET_ALLOWED]
        first, last = trie[TRIE_W * node + TRIE_FIRST_EDGE] + 0, trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE] + 0
        is_wide = n > NARROW
        head[STEPS] += sets[r + SET_COUNT] if sets[r + SET_COUNT] > LARGE_SET else 1
        if head[STEPS] > head[MOST_STEPS]:
            return request(c, SPENT, 0)
        if WALK_W * top > limit:
            return request(c, FULL, STACK)
        # Iterate over the edges of the node if many bytes are allowed, else over the allowed bytes.
        for k in range(last - first if is_wide else n):
            if is_wide:
                b, child = edges[first + k] & 255, edges[first + k] >> 8
                if sets[r + SET_NEXT + (b >> 5)] >> (b & 31) & 1 == 0:
                    continue
                after = wide[256 * sets[r + SET_BYTES] + b] + 0 if sets[r + SET_BYTES] >= 0 else -1
            else:
                b = (sets[r + SET_BYTES + (k >> 2)] >> (8 * (k & 3))) & 255
                after = sets[r + SET_NEXT + k] + 0
                if after == DEAD:
                    continue
                e = find_edge(c, b, first, last)
                if e == last or edges[e] & 255 != b:
                    continue
                child = edges[e] >> 8
            if after < 0:
                after = step_set(c, s, b)
                if after < 0:
                    return -1
            if after == DEAD:
                continue
            flags = sets[after * SET_W + SET_FLAGS] + 0
            if flags & HAS_CANDIDATES:
                if add_to_worklist(c, child, after, least, most, 0) < 0:
                    return -1
                continue
            if flags & (IS_NAMING | IS_MEMBER):
                after = make_keyless(c, after)
                if after < 0:
                    return -1
                flags = sets[after * SET_W + SET_FLAGS] + 0
            if flags & (IS_UNSURE | IS_NAMED):
                route[depth - 1] = b
                if flags & IS_UNSURE or is_new_name(c, start, s, depth) == 0:
                    # Step the path exactly; if that is undecided too, step every token below.
                    flags = IS_MEMBER
                    if exact:
                        after = step_along_route(c, start, depth)
                        if after < 0:
                            return -1
                        if after == DEAD:
                            continue
                        flags = sets[after * SET_W + SET_FLAGS] + 0
                    if flags & (IS_MEMBER | IS_OPEN | IS_UNSURE):
                        if root > 0:
                            if try_subtree(c, child, origin, out) < 0:
                                return -1
                            continue
                        exact_set = step_along_route(c, origin, depth)
                        if (queue_question(c) if exact_set < 0 else try_subtree_from(c, child, exact_set, out)) < 0:
                            return -1
                        continue
                    if flags & IS_NAMING:
                        after = make_keyless(c, after)
                        if after < 0:
                            return -1
            take_tokens(c, child, out, least, most)
            has_edges = trie[TRIE_W * child + TRIE_FIRST_EDGE] < trie[TRIE_W * child + TRIE_W + TRIE_FIRST_EDGE]
            if has_edges and sets[after * SET_W + SET_ALLOWED] > 0:
                top += 1
                stack[WALK_W * top + WALK_NODE], stack[WALK_W * top + WALK_SET] = child, after
                stack[WALK_W * top + WALK_BYTE] = depth << 8 | b
    return 0


@kernel("int64(int64, int64, int64, int64, int64, int64, int64)")
def take_subtree(c: Any, node: Any, s: Any, origin: Any, out: Any, least: Any, most: Any) -> Any:
    """Set the bits of the tokens at a trie node, which set s has reached, and of those that s accepts below.

    Return 0 or -1.
    """
    sets = view(c, SETS)
    if sets[s * SET_W + SET_FLAGS] & (IS_NAMING | IS_MEMBER):
        s = make_keyless(c, s)
        if s < 0:
            return -1
    if sets[s * SET_W + SET_FLAGS] & (IS_UNSURE | IS_NAMED):
        return try_subtree(c, node, origin, out)
    take_tokens(c, node, out, least, most)
    return walk_trie(c, node, s, 0, origin, out, least, most)
