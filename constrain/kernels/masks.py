"""Masks: what a set of configurations allows next, and the other questions a Matcher asks (kernels).

`fill_mask` combines rows and walks of the trie (`trie_walks`). Undeclared keys are the difficult part: any name may
begin, but one that is declared, excluded or present already may not be finished, so the tokens that would finish it
are cleared.
"""

from __future__ import annotations

from typing import Any

from .context_views import address, at, size, view
from .interned_names import decode_name, name_into_buffer, request
from .jit.compilation import entry, kernel

from .layout import (  # isort: skip
    ARG_FINITE, ARG_HIGH, BUFFER, CODE, CONFIGS, CONFIG_EXTRA, CONFIG_NODE, CONFIG_PC, CONFIG_PLACE, CONFIG_REGISTER,
    CONFIG_W, END, ENDS, ENTRY_CHARACTERS, ENTRY_TOKEN, ENTRY_W, ESCAPED, FULL, HAS_CANDIDATES, HEAD, IS_ACCEPTING,
    IS_CUT, IS_MEMBER, IS_NAMED, IS_NAMING, IS_UNSURE, KIND, LEAF, LEAF_DECODER, LEAF_ROW, LEAF_SUFFIXES,
    LEAF_SUFFIXES_END, LEAF_W, LEAVES, LEXEME_STATE, LISTS, LIST_BLOCK, LIST_FIRST, MAY_LACK, MEMBER_GUARD, NAMES,
    NAME_PARENT, NAME_VALUE, NAME_W, NEED_ANSWERS, NEED_ROW, NO_NAMES, N_QUESTIONS, N_WORKLIST, OBJECTS, OBJ_EXCLUDED,
    OPEN_NAME, OTHER, O_BLOCK, O_NAMES, PARSE, PLAIN, P_ACCEPT, P_DELTA, P_VERDICTS, RAW, RAW_UNIFORM, SETS, SET_COUNT,
    SET_FIRST, SET_FLAGS, SET_MASK, SET_W, SPARE, SPENT, STACK, STEPS, STR_COUNT, STR_OFFSETS, STUCK, TABLE, TRIE,
    TRIE_EDGES, TRIE_END, TRIE_FIRST_EDGE, TRIE_FIRST_TOKEN, TRIE_TOKENS, TRIE_W, T_WORDS, UNKNOWN_NAMES, WORKLIST,
    WORK_LEAST, WORK_MOST, WORK_NODE, WORK_SET, WORK_W, WORK_WALKED,
)  # fmt: skip
from .lexemes import add_lexemes, drop_first_lexeme
from .mask_deltas import NO_ROW, apply_delta, store_delta
from .object_states import may_repeat
from .sets import make_keyless, may_allow, step_set
from .string_cursors import find_bound
from .trie import find_child
from .trie_walks import (
    NO_LIMIT,
    add_leaf,
    add_to_worklist,
    queue_question,
    select_configs,
    take_tokens,
    try_below,
    try_token,
    walk_trie,
)
from .unique_members import keeps_candidates

MOST_ROWS = 128
"""Leaf states that a mask is made of, at most: each may need a row and a suffix trie, which take some 6 ms to make."""


@kernel("int64(int64, int64, int64, int64)")
def clear_name(c: Any, n: Any, m: Any, out: Any) -> Any:
    """Clear the tokens that spell BUFFER[n .. m), as it stands, and a closing quote. 1 if BUFFER[0 .. n) is its start.

    BUFFER holds what was spelled so far in 0 .. n, and behind it, from n on, a whole name of m bytes.
    """
    buffer, trie, tokens, end, mask = view(c, BUFFER), view(c, TRIE), view(c, TRIE_TOKENS), view(c, TRIE_END), at(out)
    if m < n:
        return 0
    for i in range(n):
        if buffer[i] != buffer[n + i]:
            return 0
    node = 0
    for i in range(n, m):
        b = buffer[n + i]
        if b < 32 or b == 34 or b == 92:  # never written as it stands
            return 1
        node = find_child(c, node, b)
        if node < 0:
            return 1
    node = find_child(c, node, 34)
    if node >= 0:
        for k in range(trie[TRIE_W * node + TRIE_FIRST_TOKEN], trie[TRIE_W * end[node] + TRIE_FIRST_TOKEN]):
            token = tokens[ENTRY_W * k + ENTRY_TOKEN]
            mask[token >> 5] &= ~(1 << (token & 31))
    return 1


@kernel("int64(int64, int64, int64, int64)")
def clear_excluded(c: Any, state: Any, n: Any, out: Any) -> Any:
    """Clear the tokens that would finish a name excluded for undeclared keys. Return how many names begin so, or -1."""
    code, buffer = view(c, CODE), view(c, BUFFER)
    block = code[view(c, OBJECTS)[state + O_BLOCK] + OBJ_EXCLUDED]
    low, high = 0, code[block + STR_COUNT] + 0
    for i in range(n):
        low = find_bound(c, block, low, high, i, buffer[i])
        high = find_bound(c, block, low, high, i, buffer[i] + 1)
    for k in range(low, high):
        first = code[block + STR_OFFSETS + k]
        m = code[block + STR_OFFSETS + k + 1] - first
        if n + m > size(c, BUFFER):
            return request(c, FULL, BUFFER)
        for i in range(m):
            buffer[n + i] = code[first + i]
        clear_name(c, n, m, out)
    return high - low


@kernel("int64(int64, int64, int64, int64)")
def clear_seen(c: Any, state: Any, n: Any, out: Any) -> Any:
    """Clear the tokens that would finish an undeclared key that the object already has.

    Return how many begin so, or -1.
    """
    names = view(c, NAMES)
    seen = view(c, OBJECTS)[state + O_NAMES] + 0
    found = 0
    while seen != NO_NAMES:
        m = name_into_buffer(c, names[NAME_W * seen + NAME_VALUE], n)
        if m < 0:
            return -1
        seen = names[NAME_W * seen + NAME_PARENT] + 0
        found += clear_name(c, n, m, out)
    return found


@kernel("int64(int64, int64, int64, int64)")
def try_key_prefixes(c: Any, s: Any, k: Any, out: Any) -> Any:
    """Try one by one the tokens by which the key of configuration k continues like a name that is taken.

    Return 0 or -1.

    For classes in which some text begins few names only: such a text may have no name left to become. Those tokens
    stand along the name as it is, or spell some character of it by an escape; inside an escape or a character any may.
    """
    configs, leaves, code, objects = view(c, CONFIGS), view(c, LEAVES), view(c, CODE), view(c, OBJECTS)
    names, trie, edges = view(c, NAMES), view(c, TRIE), view(c, TRIE_EDGES)
    state, ext = configs[CONFIG_W * k + CONFIG_REGISTER] + 0, configs[CONFIG_W * k + CONFIG_EXTRA] + 0
    if leaves[configs[CONFIG_W * k + CONFIG_PLACE] * LEAF_W + LEAF_DECODER] >> KIND != PLAIN:
        for e in range(trie[TRIE_FIRST_EDGE], trie[TRIE_W + TRIE_FIRST_EDGE]):
            if may_allow(c, s, edges[e] & 255) and try_below(c, edges[e] >> 8, s, out) < 0:
                return -1
        return 0
    n = decode_name(c, ext)
    if n < 0:
        return -1
    block = code[objects[state + O_BLOCK] + OBJ_EXCLUDED]
    excluded = code[block + STR_COUNT] + 0
    seen, which = objects[state + O_NAMES] + 0, 0
    while which < excluded or seen > UNKNOWN_NAMES:
        # BUFFER is used by the steps of the tokens that are tried: the name is put there again for each.
        n = decode_name(c, ext)
        if which < excluded:
            first = code[block + STR_OFFSETS + which]
            m = code[block + STR_OFFSETS + which + 1] - first
            if n + m > size(c, BUFFER):
                return request(c, FULL, BUFFER)
            for i in range(m):
                view(c, BUFFER)[n + i] = code[first + i]
            which += 1
        else:
            m = name_into_buffer(c, names[NAME_W * seen + NAME_VALUE], n)
            if m < 0:
                return -1
            seen = names[NAME_W * seen + NAME_PARENT] + 0
        is_equal = m >= n
        for i in range(min(n, m)):
            is_equal = is_equal and view(c, BUFFER)[i] == view(c, BUFFER)[n + i]
        if not is_equal:
            continue
        # The lower half of STACK is free: no walk is under way.
        stack = view(c, STACK)
        if m - n + 1 > size(c, STACK) // 2:
            return request(c, FULL, STACK)
        length, node = 0, 0
        for i in range(n, m + 1):
            stack[length] = node
            length += 1
            node = find_child(c, node, view(c, BUFFER)[n + i]) if i < m else -1
            if node < 0:
                break
        for i in range(length):
            node = stack[i] + 0
            if i > 0:
                for t in range(trie[TRIE_W * node + TRIE_FIRST_TOKEN], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_TOKEN]):
                    if try_token(c, s, view(c, TRIE_TOKENS)[ENTRY_W * t + ENTRY_TOKEN], out) < 0:
                        return -1
            escape = find_child(c, node, 92)
            if escape >= 0 and try_below(c, escape, s, out) < 0:
                return -1
    return 0


@kernel("int64(int64, int64, int64, int64)")
def add_name(c: Any, s: Any, k: Any, out: Any) -> Any:
    """OR in the tokens of an undeclared key as `add_leaf` does, without those that finish a forbidden name.

    Return 0 or -1.
    """
    configs = view(c, CONFIGS)
    config = CONFIG_W * k
    q, reg, ext = (
        configs[config + CONFIG_PLACE] + 0,
        configs[config + CONFIG_REGISTER] + 0,
        configs[config + CONFIG_EXTRA] + 0,
    )
    if ext == OPEN_NAME or not may_repeat(c, reg):
        return add_leaf(c, s, k, out, NO_LIMIT)
    leaves, trie, tokens = view(c, LEAVES), view(c, TRIE), view(c, TRIE_TOKENS)
    spare, mask = view(c, SPARE), at(out)
    words = view(c, TABLE)[T_WORDS] + 0
    for w in range(words):
        spare[w] = 0
    if add_leaf(c, s, k, address(c, SPARE), NO_LIMIT) < 0:
        return -1
    n = decode_name(c, ext)
    if n < 0:
        return -1
    kind = leaves[q * LEAF_W + LEAF_DECODER] >> KIND
    plain = kind == PLAIN or kind == RAW or kind == RAW_UNIFORM
    # Inside an escape what comes next is not the name as it stands: nothing is cleared, each token is tried below.
    n_excluded = 0
    if plain:
        n_excluded = clear_excluded(c, reg, n, address(c, SPARE))
        more = clear_seen(c, reg, n, address(c, SPARE))
        if n_excluded < 0 or more < 0:
            return -1
        n_excluded += more
    if n_excluded > 0 or not plain:
        # Escapes spell a name in many ways: the few tokens that hold one before the quote are tried one by one.
        root = leaves[q * LEAF_W + LEAF_SUFFIXES]
        first = trie[TRIE_W * root + TRIE_FIRST_TOKEN] if root >= 0 else 0
        last = trie[TRIE_W * leaves[q * LEAF_W + LEAF_SUFFIXES_END] + TRIE_FIRST_TOKEN] if root >= 0 else 0
        for t in range(first, last):
            token = tokens[ENTRY_W * t + ENTRY_TOKEN]
            escaped = tokens[ENTRY_W * t + ENTRY_CHARACTERS] & ESCAPED
            if spare[token >> 5] >> (token & 31) & 1 and (not plain or escaped):
                if try_token(c, s, token, address(c, SPARE)) < 0:
                    return -1
    if view(c, CODE)[configs[CONFIG_W * k + CONFIG_PC] + ARG_FINITE] and (n_excluded > 0 or not plain):
        if try_key_prefixes(c, s, k, address(c, SPARE)) < 0:
            return -1
    for w in range(words):
        mask[w] |= spare[w]
    return 0


@kernel("int64(int64, int64, int64, int64, int64)")
def clear_below(c: Any, root: Any, out: Any, least: Any, most: Any) -> Any:
    """Clear the tokens at a trie node and below it that left their leaf after least .. most characters. 0 or -1."""
    trie, edges, tokens, stack, mask = view(c, TRIE), view(c, TRIE_EDGES), view(c, TRIE_TOKENS), view(c, STACK), at(out)
    if root < size(c, TRIE_END):
        end = view(c, TRIE_END)[root]
        for k in range(trie[TRIE_W * root + TRIE_FIRST_TOKEN], trie[TRIE_W * end + TRIE_FIRST_TOKEN]):
            token = tokens[ENTRY_W * k + ENTRY_TOKEN]
            mask[token >> 5] &= ~(1 << (token & 31))
        return 0
    top = 0
    stack[0] = root
    while top >= 0:
        node = stack[top] + 0
        top -= 1
        for k in range(trie[TRIE_W * node + TRIE_FIRST_TOKEN], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_TOKEN]):
            if least <= tokens[ENTRY_W * k + ENTRY_CHARACTERS] & (ESCAPED - 1) <= most:
                token = tokens[ENTRY_W * k + ENTRY_TOKEN]
                mask[token >> 5] &= ~(1 << (token & 31))
        for e in range(trie[TRIE_W * node + TRIE_FIRST_EDGE], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE]):
            top += 1
            if top >= size(c, STACK):
                return request(c, FULL, STACK)
            stack[top] = edges[e] >> 8
    return 0


@kernel("int64(int64, int64, int64, int64, int64, int64, int64)")
def take_below(c: Any, node: Any, s: Any, origin: Any, out: Any, least: Any, most: Any) -> Any:
    """Set the bits of the tokens at a trie node, which set s has reached, and of those that it takes below. 0, -1."""
    sets = view(c, SETS)
    if sets[s * SET_W + SET_FLAGS] & (IS_NAMING | IS_MEMBER):
        s = make_keyless(c, s)
        if s < 0:
            return -1
    if sets[s * SET_W + SET_FLAGS] & (IS_UNSURE | IS_NAMED):
        return try_below(c, node, origin, out)
    take_tokens(c, node, out, least, most)
    return walk_trie(c, node, s, 0, origin, out, least, most)


@kernel("int64(int64, int64, int64)")
def check_worklist(c: Any, origin: Any, out: Any) -> Any:
    """Clear the tokens by which a member equal to an earlier one would end, or can only end so. Return 0 or -1.

    The mask is made as if each member were a new one. It is wrong only along bytes that keep the member like one that
    was there: those are followed with all that is known, and where they lead away from it the mask is made again.
    """
    head, sets, configs, later = view(c, HEAD), view(c, SETS), view(c, CONFIGS), view(c, WORKLIST)
    trie, edges = view(c, TRIE), view(c, TRIE_EDGES)
    while head[N_WORKLIST] > 0:
        head[N_WORKLIST] -= 1
        k = WORK_W * head[N_WORKLIST]
        node, s = later[k + WORK_NODE] + 0, later[k + WORK_SET] + 0
        least, most = later[k + WORK_LEAST] + 0, later[k + WORK_MOST] + 0
        if later[k + WORK_WALKED] == 0 and take_below(c, node, s, origin, out, least, most) < 0:
            return -1
        guard = configs[CONFIG_W * (sets[s * SET_W + SET_FIRST] + sets[s * SET_W + SET_COUNT]) + MEMBER_GUARD] + 0
        for e in range(trie[TRIE_W * node + TRIE_FIRST_EDGE], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE]):
            b, child = edges[e] & 255, edges[e] >> 8
            if not keeps_candidates(c, guard, b):
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
            if clear_below(c, child, out, least, most) < 0:
                return -1
            if after > 0 and not may_equal and take_below(c, child, after, origin, out, least, most) < 0:
                return -1
    return 0


@kernel("int64(int64, int64, int64, int64)")
def add_two_lexemes(c: Any, s: Any, q: Any, out: Any) -> Any:
    """OR in the tokens of two lexemes in the making, as `add_lexemes`; s holds no other configuration. Return 0 or -1.

    Before a byte that the longer one does not take, only the other counts. The few tokens that begin with a byte that
    it takes, or that ends it, are walked.
    """
    lists, code, trie, edges = view(c, LISTS), view(c, CODE), view(c, TRIE), view(c, TRIE_EDGES)
    block, state = lists[q + LIST_BLOCK] + 0, lists[q + LIST_FIRST + LEXEME_STATE] + 0
    row = code[code[block + P_ACCEPT] + state] >> 1
    tail = drop_first_lexeme(c, q)
    if tail < 0 or (tail > 0 and add_lexemes(c, s, tail, out) < 0):
        return -1
    for e in range(trie[TRIE_FIRST_EDGE], trie[TRIE_W + TRIE_FIRST_EDGE]):
        b, child = edges[e] & 255, edges[e] >> 8
        takes = code[code[block + P_DELTA] + 256 * state + b] >= 0
        if takes or code[code[block + P_VERDICTS] + 257 * row + b] >= 0:
            after = step_set(c, s, b)
            if after < 0 or clear_below(c, child, out, 0, NO_LIMIT) < 0:
                return -1
            if after > 0 and take_below(c, child, after, s, out, 0, NO_LIMIT) < 0:
                return -1
    return 0


@kernel("int64(int64, int64, int64, int64)")
def add_parsed(c: Any, s: Any, k: Any, out: Any) -> Any:
    """OR in the tokens that configuration k, a text that is being parsed, allows. Return 0 or -1.

    By readers if nothing follows the text and one lexeme is in the making, or two; else by a walk of the whole trie.
    """
    configs, code = view(c, CONFIGS), view(c, CODE)
    q = configs[CONFIG_W * k + CONFIG_PLACE] + 0
    if configs[CONFIG_W * k + CONFIG_NODE] == 0 and code[configs[CONFIG_W * k + CONFIG_PC] + 2] == END:
        if view(c, LISTS)[q] == 1:
            return add_lexemes(c, s, q, out)
        if view(c, LISTS)[q] == 2 and view(c, SETS)[s * SET_W + SET_COUNT] == 1:
            return add_two_lexemes(c, s, q, out)
    alone = select_configs(c, s, k)
    return -1 if alone < 0 else walk_trie(c, 0, alone, 1, s, out, 0, NO_LIMIT)


@kernel("int64(int64, int64, int64)")
def has_many_rows(c: Any, first: Any, last: Any) -> Any:
    """Return whether configurations first .. last are in more than MOST_ROWS leaf states that have rows."""
    configs, code, leaves, stack = view(c, CONFIGS), view(c, CODE), view(c, LEAVES), view(c, STACK)
    found = 0
    for k in range(first, last):
        op, q = code[configs[CONFIG_W * k + CONFIG_PC]], configs[CONFIG_W * k + CONFIG_PLACE] + 0
        if (op == LEAF or op == OTHER) and leaves[q * LEAF_W + LEAF_ROW] != -2:
            i = 0
            while i < found and stack[i] != q:
                i += 1
            if i == MOST_ROWS:
                return 1
            stack[i] = q
            found = max(found, i + 1)
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
    for w in range(words):
        mask[w] = 0
    if sets[r + SET_FLAGS] & IS_ACCEPTING:
        ends = view(c, ENDS)
        for k in range(size(c, ENDS)):
            mask[ends[k] >> 5] |= 1 << (ends[k] & 31)
    first = sets[r + SET_FIRST] + 0
    last = first + sets[r + SET_COUNT]
    rows, base, parsed = 0, NO_ROW, False
    if last - first > MOST_ROWS and has_many_rows(c, first, last):
        return request(c, SPENT, 0)
    for k in range(first, last):
        op = code[configs[CONFIG_W * k + CONFIG_PC]]
        if op == LEAF or op == OTHER:
            row = leaves[configs[CONFIG_W * k + CONFIG_PLACE] * LEAF_W + LEAF_ROW]
            if row == -1:
                return request(c, NEED_ROW, configs[CONFIG_W * k + CONFIG_PLACE])
            if row >= 0:
                rows += 1
                base = row + 0
        elif op == PARSE:
            rows += 1
            parsed = True
    flags = sets[r + SET_FLAGS] + 0
    head[N_WORKLIST], head[STEPS], head[N_QUESTIONS] = 0, 0, 0
    if flags & HAS_CANDIDATES and add_to_worklist(c, 0, s, 0, NO_LIMIT, 1) < 0:
        return -1
    if rows < last - first:
        narrow = s
        if rows > 0 or flags & IS_MEMBER:
            narrow = select_configs(c, s, -1 if rows > 0 else -2)
        if narrow < 0 or walk_trie(c, 0, narrow, 1, s, out, 0, NO_LIMIT) < 0:
            return -1
    for k in range(first, last):
        pc, q = configs[CONFIG_W * k + CONFIG_PC] + 0, configs[CONFIG_W * k + CONFIG_PLACE] + 0
        op = code[pc]
        if op == PARSE:
            if add_parsed(c, s, k, out) < 0:
                return -1
        elif op == OTHER and leaves[q * LEAF_W + LEAF_ROW] >= 0:
            if add_name(c, s, k, out) < 0:
                return -1
        elif op == LEAF and leaves[q * LEAF_W + LEAF_ROW] >= 0:
            high = code[pc + ARG_HIGH]
            if add_leaf(c, s, k, out, high - configs[CONFIG_W * k + CONFIG_EXTRA] if high >= 0 else NO_LIMIT) < 0:
                return -1
    if check_worklist(c, s, out) < 0:
        return -1
    if head[N_QUESTIONS] > 0:
        return request(c, NEED_ANSWERS, 0)
    allowed = 0
    for w in range(words):
        allowed |= mask[w]
    if allowed == 0 and flags & IS_ACCEPTING == 0 and head[MAY_LACK] == 0:
        return request(c, STUCK, 0)
    if flags & IS_MEMBER:  # what is written makes each such set unlike all others: it is not met again
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
def find_only_byte(c: Any, s: Any) -> Any:
    """Return the one byte that may follow set s; -2 if there are none or several, or the text may end; or -1."""
    if view(c, SETS)[s * SET_W + SET_FLAGS] & IS_ACCEPTING:
        return -2
    found = -2
    for b in range(256):
        after = step_set(c, s, b)
        if after < 0:
            return -1
        if after > 0:
            if found >= 0:
                return -2
            found = b
    return found


FORCED_STEPS = 1 << 16
"""Configurations that `find_forced_bytes` takes further, at most."""


@entry("int64(int64, int64, uint8[::1])")
def find_forced_bytes(c: Any, s: Any, out: Any) -> Any:
    """Write the bytes that must follow set s, as far as `out` holds them. Return how many, or -1."""
    steps = 0
    for i in range(len(out)):
        steps += view(c, SETS)[s * SET_W + SET_COUNT]
        if steps > FORCED_STEPS:
            return i
        b = find_only_byte(c, s)
        if b == -1:
            return -1
        if b < 0:
            return i
        out[i] = b
        s = step_set(c, s, b)
    return len(out)


@entry("int64(int64, int64, uint8[::1])")
def list_next_bytes(c: Any, s: Any, out: Any) -> Any:
    """Write into uint8[256] which bytes may follow set s. Return 0 or -1."""
    for b in range(256):
        after = step_set(c, s, b)
        if after < 0:
            return -1
        out[b] = 1 if after > 0 else 0
    return 0
