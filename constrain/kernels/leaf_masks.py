"""Masks of configurations inside a leaf: a row, and a walk of the suffix trie (kernels).

The tokens that stay inside a leaf are a prepared row of bits; those that leave it are found in the suffix trie of the
leaf state, from the set that follows. Undeclared keys of an object are the difficult leaf: any name may begin, but one
that is declared, excluded or present already may not be finished, so the tokens that would finish it are cleared.
"""

from __future__ import annotations

from typing import Any

from .context_views import address, at, copy_memory, load_acquire, size, view
from .exit_walks import walk_exits
from .interned_names import decode_name, decode_spelling, request, write_name_to_buffer
from .jit.compilation import kernel
from .object_states import is_taken, may_repeat
from .program_layout import ARG_FINITE, ARG_LOW, ARG_NEXT, LEAF, OBJ_EXCLUDED, OTHER, STR_COUNT, STR_OFFSETS
from .sets import continue_config, may_allow
from .string_cursors import find_bound
from .token_steps import try_subtree, try_token
from .trie_tokens import NO_LIMIT, take_tokens
from .trie_walks import ROW_STEPS, select_configs, walk_trie
from .vocabulary_trie import find_child, read_byte

from .context_layout import (  # isort: skip
    BUFFER, BY_LENGTH, CODE, CONFIGS, FULL, HEAD, LEAVES, NAMES, NEED_BY_LENGTH, NEED_SUFFIXES, OBJECTS, OFFSETS, ROWS,
    SETS, SPARE, STACK, STEPS, TABLE, TRIE, TRIE_EDGES, TRIE_END, TRIE_TOKENS, T_WORDS,
)  # fmt: skip
from .record_layout import (  # isort: skip
    CONFIG_EXTRA, CONFIG_PC, CONFIG_REGISTER, CONFIG_STATE, CONFIG_W, NAME_PARENT, NAME_VALUE, NAME_W, NO_NAMES,
    OPEN_NAME, O_BLOCK, O_NAMES, SET_ALLOWED, SET_W, UNKNOWN_NAMES,
)  # fmt: skip
from .table_layout import (  # isort: skip
    ENTRY_CHARACTERS, ENTRY_TOKEN, ENTRY_W, ESCAPED, KIND, LEAF_BY_LENGTH, LEAF_CLOSES, LEAF_DECODER, LEAF_ENDLESS,
    LEAF_FLAGS, LEAF_LONGEST, LEAF_NEED, LEAF_ROW, LEAF_SHORT, LEAF_SUFFIXES, LEAF_SUFFIXES_END, LEAF_W, LEAST_LISTED,
    LENGTH_CLASSES, LEVELS, LEVEL_BITS, LISTED_FROM, LISTED_OFFSETS, LISTED_TO, LISTED_TOKENS, LONG_LEVEL, PLAIN, RAW,
    RAW_UNIFORM, TRIE_FIRST_EDGE, TRIE_FIRST_TOKEN, TRIE_W,
)  # fmt: skip


@kernel("int64(int64, int64, int64, int64)")
def add_row(c: Any, q: Any, most: Any, out: Any) -> Any:
    """OR the row of leaf state q into the mask, restricted to tokens that need at most `most` characters.

    out: not SPARE, unless there is no such limit. Return 0 or -1.
    """
    leaves, mask = view(c, LEAVES), at(out)
    words = view(c, TABLE)[T_WORDS] + 0
    rows = view(c, ROWS)
    base = leaves[q * LEAF_W + LEAF_ROW] * words
    if most >= leaves[q * LEAF_W + LEAF_LONGEST]:
        for w in range(words):
            mask[w] |= rows[base + w]
        return 0
    if most < 0:
        return 0
    room = most - leaves[q * LEAF_W + LEAF_NEED]
    if room < 0:
        return 0
    by_length = view(c, BY_LENGTH)
    if room < LEAST_LISTED << LONG_LEVEL - 1:
        listed = load_acquire(leaves, q * LEAF_W + LEAF_SHORT)
        if listed < 0 or by_length[listed + LISTED_TO] < room:
            return request(c, NEED_BY_LENGTH, q << LEVEL_BITS | (0 if room < LEAST_LISTED else LONG_LEVEL - 1))
        tokens = listed + LISTED_TOKENS
        for k in range(tokens, tokens + by_length[listed + LISTED_OFFSETS + room + 1]):
            mask[by_length[k] >> 5] |= 1 << (by_length[k] & 31)
        return 0
    listed = load_acquire(leaves, q * LEAF_W + LEAF_BY_LENGTH)
    if listed < 0 or by_length[listed + LISTED_FROM] > room + 1:
        level = LEVELS - 1
        while level > LONG_LEVEL and LEAST_LISTED << level - LONG_LEVEL + 1 > room + 1:
            level -= 1
        return request(c, NEED_BY_LENGTH, q << LEVEL_BITS | level)
    # The row without the tokens that are too long.
    last_class = by_length[listed + LISTED_OFFSETS + LENGTH_CLASSES - 1] + 0
    longer = by_length[listed + LISTED_OFFSETS + min(room, LENGTH_CLASSES - 2) + 1] + 0
    end = by_length[listed + LISTED_OFFSETS + LENGTH_CLASSES] + 0
    tokens, spare = listed + LISTED_TOKENS, view(c, SPARE)
    copy_memory(address(c, SPARE), address(c, ROWS) + 4 * base, words)
    for k in range(longer, end):
        if k < last_class or by_length[tokens + end + k - last_class] > room:
            token = by_length[tokens + k]
            spare[token >> 5] &= ~(1 << (token & 31))
    for w in range(words):
        mask[w] |= spare[w]
    return 0


@kernel("int64(int64, int64, int64)")
def copy_row(c: Any, row: Any, out: Any) -> Any:
    """Write a row to the mask at address `out`, as its first part. Return 0."""
    words = view(c, TABLE)[T_WORDS] + 0
    return copy_memory(out, address(c, ROWS) + 4 * words * row, words)


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def add_leaf(c: Any, s: Any, k: Any, out: Any, most: Any, has_row: Any) -> Any:
    """OR in the tokens that configuration k of set s, in a leaf that has a row, allows. Return 0 or -1.

    most: characters that the leaf may still have. has_row: whether the mask has the tokens of the row already.
    """
    configs, code, leaves, sets = view(c, CONFIGS), view(c, CODE), view(c, LEAVES), view(c, SETS)
    config = CONFIG_W * k
    pc, q, ext = configs[config + CONFIG_PC], configs[config + CONFIG_STATE], configs[config + CONFIG_EXTRA]
    view(c, HEAD)[STEPS] += ROW_STEPS
    suffixes = load_acquire(leaves, q * LEAF_W + LEAF_SUFFIXES)
    closes = leaves[q * LEAF_W + LEAF_FLAGS] & LEAF_CLOSES
    least = 0
    if code[pc] == OTHER:
        after = continue_config(c, s, -k - 1, code[pc + ARG_NEXT])
    else:
        after = continue_config(c, s, k, pc + 4)
        least = max(code[pc + ARG_LOW] - ext, 0)
    if after < 0:
        return -1
    follows = closes or sets[after * SET_W + SET_ALLOWED] > 0
    if follows and suffixes == -1:
        return request(c, NEED_SUFFIXES, q)
    if has_row == 0 and add_row(c, q, most, out) < 0:
        return -1
    if not follows:
        return 0
    if suffixes == -2:
        if not closes:
            return walk_exits(c, q, after, code[pc] == LEAF, s, out, least, most)
        alone = select_configs(c, s, k)
        return -1 if alone < 0 else walk_trie(c, 0, alone, 1, s, out, 0, NO_LIMIT)
    if closes:
        take_tokens(c, suffixes, out, least, most)
    return walk_trie(c, suffixes, after, code[pc] == LEAF, s, out, least, most)


@kernel("int64(int64, int64, int64, int64)")
def clear_name(c: Any, n: Any, m: Any, out: Any) -> Any:
    """Clear the tokens that finish a name, spelled without escapes, with its closing quote.

    BUFFER[0 .. n) holds the prefix spelled so far, BUFFER[n .. n + m) the name. Return 1 if the name has that prefix,
    else 0.
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
        if b < 32 or b == 34 or b == 92:  # cannot be written without an escape
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
    """Clear the tokens that would finish a name excluded for undeclared keys.

    Return the number of excluded names with the prefix in BUFFER[0 .. n), or -1.
    """
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

    Return the number of such keys with the prefix in BUFFER[0 .. n), or -1.
    """
    names = view(c, NAMES)
    name_list = view(c, OBJECTS)[state + O_NAMES] + 0
    count = 0
    while name_list != NO_NAMES:
        m = write_name_to_buffer(c, names[NAME_W * name_list + NAME_VALUE], n)
        if m < 0:
            return -1
        name_list = names[NAME_W * name_list + NAME_PARENT] + 0
        count += clear_name(c, n, m, out)
    return count


@kernel("int64(int64, int64, int64, int64)")
def finishes_taken_name(c: Any, state: Any, n: Any, token: Any) -> Any:
    """Return whether a token with a closing quote finishes a name that is excluded or present: 1, 0, or -1.

    BUFFER[0 .. n) holds the prefix spelled so far. The token may spell the rest with escapes.
    """
    offsets, buffer = view(c, OFFSETS), view(c, BUFFER)
    i, last = offsets[token] + 0, offsets[token + 1] + 0
    if n + last - i > size(c, BUFFER):
        return request(c, FULL, BUFFER)
    end, is_escaped = n, False
    while i < last and (is_escaped or read_byte(c, i) != 34):
        is_escaped = not is_escaped and read_byte(c, i) == 92
        buffer[end] = read_byte(c, i)
        end += 1
        i += 1
    return is_taken(c, state, decode_spelling(c, n, end, n))


@kernel("int64(int64, int64, int64, int64)")
def try_key_prefixes(c: Any, s: Any, k: Any, out: Any) -> Any:
    """Step exactly the tokens by which the key of configuration k continues like a name that is taken.

    For classes in which some prefix has finitely many completions, so that all of them may be taken. These tokens
    follow the name in the trie, or spell one of its characters by an escape; inside an escape or a multi-byte
    character, any token may. Return 0 or -1.
    """
    configs, leaves, code, objects = view(c, CONFIGS), view(c, LEAVES), view(c, CODE), view(c, OBJECTS)
    names, trie, edges = view(c, NAMES), view(c, TRIE), view(c, TRIE_EDGES)
    state, ext = configs[CONFIG_W * k + CONFIG_REGISTER] + 0, configs[CONFIG_W * k + CONFIG_EXTRA] + 0
    if leaves[configs[CONFIG_W * k + CONFIG_STATE] * LEAF_W + LEAF_DECODER] >> KIND != PLAIN:
        for e in range(trie[TRIE_FIRST_EDGE], trie[TRIE_W + TRIE_FIRST_EDGE]):
            if may_allow(c, s, edges[e] & 255) and try_subtree(c, edges[e] >> 8, s, out) < 0:
                return -1
        return 0
    n = decode_name(c, ext)
    if n < 0:
        return -1
    block = code[objects[state + O_BLOCK] + OBJ_EXCLUDED]
    excluded = code[block + STR_COUNT] + 0
    name_list, index = objects[state + O_NAMES] + 0, 0
    while index < excluded or name_list > UNKNOWN_NAMES:
        # Stepping tokens overwrites BUFFER: write the prefix again.
        n = decode_name(c, ext)
        if index < excluded:
            first = code[block + STR_OFFSETS + index]
            m = code[block + STR_OFFSETS + index + 1] - first
            if n + m > size(c, BUFFER):
                return request(c, FULL, BUFFER)
            for i in range(m):
                view(c, BUFFER)[n + i] = code[first + i]
            index += 1
        else:
            m = write_name_to_buffer(c, names[NAME_W * name_list + NAME_VALUE], n)
            if m < 0:
                return -1
            name_list = names[NAME_W * name_list + NAME_PARENT] + 0
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
            if escape >= 0 and try_subtree(c, escape, s, out) < 0:
                return -1
    return 0


@kernel("int64(int64, int64, int64, int64)")
def add_name(c: Any, s: Any, k: Any, out: Any) -> Any:
    """OR in the tokens of an undeclared key, as `add_leaf` does, without those that finish a forbidden name.

    Return 0 or -1.
    """
    configs = view(c, CONFIGS)
    config = CONFIG_W * k
    q, reg, ext = (
        configs[config + CONFIG_STATE] + 0,
        configs[config + CONFIG_REGISTER] + 0,
        configs[config + CONFIG_EXTRA] + 0,
    )
    if ext == OPEN_NAME or not may_repeat(c, reg):
        return add_leaf(c, s, k, out, NO_LIMIT, 0)
    leaves, trie, tokens = view(c, LEAVES), view(c, TRIE), view(c, TRIE_TOKENS)
    spare, mask = view(c, SPARE), at(out)
    words = view(c, TABLE)[T_WORDS] + 0
    copy_row(c, leaves[q * LEAF_W + LEAF_ROW], address(c, SPARE))
    if add_leaf(c, s, k, address(c, SPARE), NO_LIMIT, 1) < 0:
        return -1
    n = decode_name(c, ext)
    if n < 0:
        return -1
    kind = leaves[q * LEAF_W + LEAF_DECODER] >> KIND
    is_plain = kind == PLAIN or kind == RAW or kind == RAW_UNIFORM
    # Inside an escape the next bytes are not those of the name: nothing is cleared, each token is stepped below.
    n_excluded = 0
    if is_plain:
        n_excluded = clear_excluded(c, reg, n, address(c, SPARE))
        n_seen = clear_seen(c, reg, n, address(c, SPARE))
        if n_excluded < 0 or n_seen < 0:
            return -1
        n_excluded += n_seen
    if n_excluded > 0 or not is_plain:
        # A name has many spellings with escapes: of the few tokens with an escape before the quote, each is tested.
        root = leaves[q * LEAF_W + LEAF_SUFFIXES]
        first = trie[TRIE_W * root + TRIE_FIRST_TOKEN] if root >= 0 else 0
        last = trie[TRIE_W * leaves[q * LEAF_W + LEAF_SUFFIXES_END] + TRIE_FIRST_TOKEN] if root >= 0 else 0
        for t in range(first, last):
            if is_plain and tokens[ENTRY_W * t + ENTRY_CHARACTERS] & ESCAPED == 0:
                continue
            token = tokens[ENTRY_W * t + ENTRY_TOKEN]
            if spare[token >> 5] >> (token & 31) & 1 == 0:
                continue
            if not is_plain:
                if try_token(c, s, token, address(c, SPARE)) < 0:
                    return -1
            else:
                is_finished = finishes_taken_name(c, reg, n, token)
                if is_finished < 0:
                    return -1
                if is_finished:
                    spare[token >> 5] &= ~(1 << (token & 31))
    is_endless = leaves[q * LEAF_W + LEAF_FLAGS] & LEAF_ENDLESS
    is_finite = view(c, CODE)[configs[CONFIG_W * k + CONFIG_PC] + ARG_FINITE] and is_endless == 0
    if is_finite and (n_excluded > 0 or not is_plain):
        if try_key_prefixes(c, s, k, address(c, SPARE)) < 0:
            return -1
    for w in range(words):
        mask[w] |= spare[w]
    return 0
