"""Masks: which tokens a set of configurations takes (kernels), and the other questions a Matcher asks.

A mask is put together from three parts, chosen by what the configurations of the set wait for:

1. In a leaf from whose state many bytes are allowed (inside a string, a number, white space, a pattern), the tokens
   that stay inside are a prepared row of the vocabulary: 16 KB are copied.
2. The tokens that leave such a leaf are walked in the leaf's merged remainders, from the set that really follows.
3. For all other configurations the main trie is walked, led by the few bytes that they allow.

A walk goes down only where `sets.step` has a set; steps are remembered, so a second walk is loads only.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from .closure import begin, emit
from .layout import *  # noqa: F403  (constants only)
from .names import ask, decode_name
from .objects import may_repeat
from .points import bound
from .sets import continuation, intern, step, twin
from .trie import byte_of, child_of
from .views import address, at, kernel, size, view

STAMP = "3fbdfca1"

NO_LIMIT = 1 << 30


@njit("int64(int64, int64, int64)", **kernel)
def advance(c: Any, s: Any, token: Any) -> Any:
    """The set after set s and a token: its id, DEAD if the token is refused (or has no bytes), or -1."""
    offsets = view(c, OFFSETS)
    first, last = offsets[token], offsets[token + 1]
    if first == last:
        return DEAD
    for i in range(first, last):
        s = step(c, s, byte_of(c, i))
        if s <= 0:
            return s
    return s


@njit("int64(int64, int64, uint8[::1])", **kernel)
def advance_bytes(c: Any, s: Any, text: Any) -> Any:
    """The set after set s and these bytes: its id; -1; or -2 - i if byte i is refused."""
    for i in range(len(text)):
        s = step(c, s, text[i])
        if s == DEAD:
            return -2 - i
        if s < 0:
            return s
    return s


@njit("int64(int64, int64, int64, int64, int64)", **kernel)
def take(c: Any, node: Any, out: Any, least: Any, most: Any) -> Any:
    """Sets the bits of the tokens at a trie node that left their leaf after least .. most characters."""
    trie, tokens, mask = view(c, TRIE), view(c, TRIE_TOKENS), at(out)
    for k in range(trie[2 * node + 1], trie[2 * node + 3]):
        chars = tokens[2 * k + 1] & (ESCAPED - 1)
        if least <= chars <= most:
            token = tokens[2 * k]
            mask[token >> 5] |= 1 << (token & 31)
    return 0


@njit("int64(int64, int64, int64, int64)", **kernel)
def try_token(c: Any, s: Any, token: Any, out: Any) -> Any:
    """Sets or clears the bit of one token by taking it from set s: 0 or -1."""
    after = advance(c, s, token)
    mask = at(out)
    if after < 0:
        return -1
    if after > 0:
        mask[token >> 5] |= 1 << (token & 31)
    else:
        mask[token >> 5] &= ~(1 << (token & 31))
    return 0


@njit("int64(int64, int64, int64, int64)", **kernel)
def try_below(c: Any, root: Any, origin: Any, out: Any) -> Any:
    """Tries every token of the subtree at `root` one by one from the set that the mask is for: 0 or -1."""
    trie, edges, tokens, stack = view(c, TRIE), view(c, TRIE_EDGES), view(c, TRIE_TOKENS), view(c, STACK)
    base = size(c, STACK) // 2  # the upper half: the lower one belongs to the walk that came here
    top = 0
    stack[base] = root
    while top >= 0:
        node = stack[base + top] + 0
        top -= 1
        for k in range(trie[2 * node + 1], trie[2 * node + 3]):
            if try_token(c, origin, tokens[2 * k], out) < 0:
                return -1
        for e in range(trie[2 * node], trie[2 * node + 2]):
            top += 1
            if base + top >= size(c, STACK):
                return ask(c, FULL, STACK)
            stack[base + top] = edges[e] >> 8
    return 0


@njit("int64(int64, int64, int64, int64, int64, int64, int64)", **kernel)
def walk(c: Any, root: Any, s: Any, origin: Any, out: Any, least: Any, most: Any) -> Any:
    """Sets the bits of all tokens below trie node `root` that set s takes: 0 or -1.

    least, most: only tokens that left their leaf after that many characters. origin: the set that the mask is for.
    """
    sets, wide = view(c, SETS), view(c, WIDE)
    trie, edges, stack = view(c, TRIE), view(c, TRIE_EDGES), view(c, STACK)
    room = size(c, STACK) // 2 - 2 * 258
    top = 0
    stack[0], stack[1] = root, s
    while top >= 0:
        node, s = stack[2 * top] + 0, stack[2 * top + 1] + 0
        top -= 1
        r = s * SET_W
        n = sets[r + SET_ALLOWED]
        first, last = trie[2 * node] + 0, trie[2 * node + 2] + 0
        many = n > NARROW
        if 2 * top > room:
            return ask(c, FULL, STACK)
        # Led by the node's edges where many bytes are allowed, else by the allowed bytes.
        for k in range(last - first if many else n):
            if many:
                b, child = edges[first + k] & 255, edges[first + k] >> 8
                if sets[r + SET_NEXT + (b >> 5)] >> (b & 31) & 1 == 0:
                    continue
                after = wide[256 * sets[r + SET_BYTES] + b] + 0 if sets[r + SET_BYTES] >= 0 else -1
            else:
                b = (sets[r + SET_BYTES + (k >> 2)] >> (8 * (k & 3))) & 255
                after = sets[r + SET_NEXT + k] + 0
                if after == DEAD:
                    continue
                low, high = first, last
                while low < high:
                    middle = (low + high) >> 1
                    if edges[middle] & 255 < b:
                        low = middle + 1
                    else:
                        high = middle
                if low == last or edges[low] & 255 != b:
                    continue
                child = edges[low] >> 8
            if after < 0:
                after = step(c, s, b)
                if after < 0:
                    return -1
            if after == DEAD:
                continue
            if sets[after * SET_W + SET_FLAGS] & IS_NAMING:
                after = twin(c, after)
                if after < 0:
                    return -1
            if sets[after * SET_W + SET_FLAGS] & IS_UNSURE:
                if try_below(c, child, origin, out) < 0:
                    return -1
                continue
            take(c, child, out, least, most)
            if trie[2 * child] < trie[2 * child + 2] and sets[after * SET_W + SET_ALLOWED] > 0:
                top += 1
                stack[2 * top], stack[2 * top + 1] = child, after
    return 0


@njit("int64(int64, int64, int64)", **kernel)
def only(c: Any, s: Any, which: Any) -> Any:
    """The set of configuration `which` of set s alone, or, if -1, of those that wait for few bytes. Its id, or -1."""
    sets, configs, code, leaves = view(c, SETS), view(c, CONFIGS), view(c, CODE), view(c, LEAVES)
    begin(c)
    first = sets[s * SET_W + SET_FIRST]
    for k in range(first, first + sets[s * SET_W + SET_COUNT]):
        q = configs[5 * k + 1]
        op = code[configs[5 * k]]
        has_row = (op == LEAF or op == OTHER) and leaves[q * LEAF_W + LEAF_ROW] != -2
        if (which < 0 and not has_row) or k == which:
            if op == OTHER and view(c, OBJECTS)[configs[5 * k + 3] + O_NAMES] == UNKNOWN_NAMES:
                view(c, HEAD)[UNSURE] = 1
            if emit(c, configs[5 * k], q, configs[5 * k + 2], configs[5 * k + 3], configs[5 * k + 4]) < 0:
                return -1
    return intern(c)


@njit("int64(int64, int64, int64, int64)", **kernel)
def add_row(c: Any, q: Any, room: Any, out: Any) -> Any:
    """ORs the row of leaf state q into the mask: only tokens that need at most `room` characters. 0 or -1."""
    leaves, mask = view(c, LEAVES), at(out)
    words = view(c, TABLE)[T_WORDS] + 0
    row = view(c, ROWS)
    base = leaves[q * LEAF_W + LEAF_ROW] * words
    if room >= leaves[q * LEAF_W + LEAF_ROOM]:
        for w in range(words):
            mask[w] |= row[base + w]
        return 0
    if room < 0:
        return 0
    order = leaves[q * LEAF_W + LEAF_ORDER]
    if order < 0:
        return ask(c, NEED_ORDER, q)
    orders = view(c, ORDERS)
    for k in range(orders[order], orders[order + min(room, ROOMS - 2) + 1]):
        token = orders[order + ROOMS + 1 + k]
        mask[token >> 5] |= 1 << (token & 31)
    return 0


@njit("int64(int64, int64, int64, int64, int64)", **kernel)
def add_leaf(c: Any, s: Any, k: Any, out: Any, room: Any) -> Any:
    """ORs what configuration k, in a leaf that has a row, allows into the mask: 0 or -1."""
    configs, code, leaves, sets = view(c, CONFIGS), view(c, CODE), view(c, LEAVES), view(c, SETS)
    pc, q, ext = configs[5 * k], configs[5 * k + 1], configs[5 * k + 4]
    rest = leaves[q * LEAF_W + LEAF_REST]
    closes = leaves[q * LEAF_W + LEAF_FLAGS] & LEAF_CLOSES
    least = 0
    if code[pc] == OTHER:
        after = continuation(c, -k - 1, code[pc + 3])
    else:
        after = continuation(c, k, pc + 4)
        least = max(code[pc + 2] - ext, 0)
    if after < 0:
        return -1
    follows = closes or sets[after * SET_W + SET_ALLOWED] > 0
    if follows and rest == -1:
        return ask(c, NEED_REST, q)
    if follows and rest == -2:
        alone = only(c, s, k)
        return -1 if alone < 0 else walk(c, 0, alone, s, out, 0, NO_LIMIT)
    if add_row(c, q, room, out) < 0:
        return -1
    if not follows:
        return 0
    if closes:
        take(c, rest, out, least, room)
    return walk(c, rest, after, s, out, least, room)


@njit("int64(int64, int64, int64, int64)", **kernel)
def clear_name(c: Any, n: Any, m: Any, out: Any) -> Any:
    """Clears the tokens that spell BUFFER[n .. m), as it stands, and a closing quote. 1 if BUFFER[0 .. n) is its start.

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
        node = child_of(c, node, b)
        if node < 0:
            return 1
    node = child_of(c, node, 34)
    if node >= 0:
        for k in range(trie[2 * node + 1], trie[2 * end[node] + 1]):
            token = tokens[2 * k]
            mask[token >> 5] &= ~(1 << (token & 31))
    return 1


@njit("int64(int64, int64, int64, int64)", **kernel)
def clear_excluded(c: Any, state: Any, n: Any, out: Any) -> Any:
    """Clears the tokens that would finish a name which no undeclared key may have: how many names begin so, or -1."""
    code, buffer = view(c, CODE), view(c, BUFFER)
    block = code[view(c, OBJECTS)[state + O_BLOCK] + OBJ_EXCLUDED]
    low, high = 0, code[block + STR_COUNT] + 0
    for i in range(n):
        low = bound(c, block, low, high, i, buffer[i])
        high = bound(c, block, low, high, i, buffer[i] + 1)
    for k in range(low, high):
        first = code[block + STR_OFFSETS + k]
        m = code[block + STR_OFFSETS + k + 1] - first
        if n + m > size(c, BUFFER):
            return ask(c, FULL, BUFFER)
        for i in range(m):
            buffer[n + i] = code[first + i]
        clear_name(c, n, m, out)
    return high - low


@njit("int64(int64, int64, int64, int64)", **kernel)
def clear_seen(c: Any, state: Any, n: Any, out: Any) -> Any:
    """Clears the tokens that would finish an undeclared key which is there already: how many begin so, or -1."""
    names, buffer = view(c, NAMES), view(c, BUFFER)
    seen = view(c, OBJECTS)[state + O_NAMES] + 0
    found = 0
    while seen != NO_NAMES:
        name = names[3 * seen + 1] + 0
        seen = names[3 * seen] + 0
        m, j = 0, name
        while j != DECODED:
            m += 1
            j = names[3 * j] + 0
        if n + m > size(c, BUFFER):
            return ask(c, FULL, BUFFER)
        j = name
        for i in range(m):
            buffer[n + m - 1 - i] = names[3 * j + 1]
            j = names[3 * j] + 0
        found += clear_name(c, n, m, out)
    return found


@njit("int64(int64, int64, int64, int64)", **kernel)
def add_name(c: Any, s: Any, k: Any, out: Any) -> Any:
    """As `add_leaf` for an undeclared key: without the tokens that would finish a key that may not be. 0 or -1."""
    configs = view(c, CONFIGS)
    q, reg, ext = configs[5 * k + 1] + 0, configs[5 * k + 3] + 0, configs[5 * k + 4] + 0
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
    alike = 0
    if plain:
        alike = clear_excluded(c, reg, n, address(c, SPARE))
        more = clear_seen(c, reg, n, address(c, SPARE))
        if alike < 0 or more < 0:
            return -1
        alike += more
    if alike > 0 or not plain:
        # Escapes spell a name in many ways: the few tokens that hold one before the quote are tried one by one.
        root = leaves[q * LEAF_W + LEAF_REST]
        first = trie[2 * root + 1] if root >= 0 else 0
        last = trie[2 * leaves[q * LEAF_W + LEAF_REST_END] + 1] if root >= 0 else 0
        for t in range(first, last):
            token = tokens[2 * t]
            if spare[token >> 5] >> (token & 31) & 1 and (not plain or tokens[2 * t + 1] & ESCAPED):
                if try_token(c, s, token, address(c, SPARE)) < 0:
                    return -1
    for w in range(words):
        mask[w] |= spare[w]
    return 0


@njit("int64(int64, int64, int64)", **kernel)
def fill(c: Any, s: Any, out: Any) -> Any:
    """Writes the mask of set s, end tokens included, to the int32 words at address `out`: 0 or -1."""
    head, sets, configs, code = view(c, HEAD), view(c, SETS), view(c, CONFIGS), view(c, CODE)
    leaves, masks, mask = view(c, LEAVES), view(c, MASKS), at(out)
    words = view(c, TABLE)[T_WORDS] + 0
    r = s * SET_W
    slot = sets[r + SET_MASK] + 0
    if slot >= 0:
        for w in range(words):
            mask[w] = masks[slot * words + w]
        return 0
    for w in range(words):
        mask[w] = 0
    if sets[r + SET_FLAGS] & IS_ACCEPTING:
        ends = view(c, ENDS)
        for k in range(size(c, ENDS)):
            mask[ends[k] >> 5] |= 1 << (ends[k] & 31)
    first = sets[r + SET_FIRST] + 0
    last = first + sets[r + SET_COUNT]
    rows = 0
    for k in range(first, last):
        op = code[configs[5 * k]]
        if op == LEAF or op == OTHER:
            row = leaves[configs[5 * k + 1] * LEAF_W + LEAF_ROW]
            if row == -1:
                return ask(c, NEED_ROW, configs[5 * k + 1])
            if row >= 0:
                rows += 1
    if rows == 0:
        return walk(c, 0, s, s, out, 0, NO_LIMIT)
    if rows < last - first:
        few = only(c, s, -1)
        if few < 0 or walk(c, 0, few, s, out, 0, NO_LIMIT) < 0:
            return -1
    for k in range(first, last):
        pc, q = configs[5 * k] + 0, configs[5 * k + 1] + 0
        op = code[pc]
        if (op != LEAF and op != OTHER) or leaves[q * LEAF_W + LEAF_ROW] < 0:
            continue
        if op == OTHER:
            if add_name(c, s, k, out) < 0:
                return -1
        else:
            high = code[pc + 3]
            if add_leaf(c, s, k, out, high - configs[5 * k + 4] if high >= 0 else NO_LIMIT) < 0:
                return -1
    slot = head[N_MASKS] + 0
    if words * (slot + 1) <= size(c, MASKS):
        for w in range(words):
            masks[slot * words + w] = mask[w]
        sets[r + SET_MASK] = slot
        head[N_MASKS] = slot + 1
    return 0


@njit("int64(int64, int64, int32[::1])", **kernel)
def mask(c: Any, s: Any, out: Any) -> Any:
    """Writes the mask of set s into `out`, int32[words]: 0 or -1."""
    return fill(c, s, out.ctypes.data)


@njit("int64(int64, int64)", **kernel)
def only_byte(c: Any, s: Any) -> Any:
    """The one byte that may follow set s; -2 if there are none or several, or the text may end; or -1."""
    if view(c, SETS)[s * SET_W + SET_FLAGS] & IS_ACCEPTING:
        return -2
    found = -2
    for b in range(256):
        after = step(c, s, b)
        if after < 0:
            return -1
        if after > 0:
            if found >= 0:
                return -2
            found = b
    return found


@njit("int64(int64, int64, uint8[::1])", **kernel)
def forced(c: Any, s: Any, out: Any) -> Any:
    """Writes the bytes that must follow set s, as far as `out` holds them: how many, or -1."""
    for i in range(len(out)):
        b = only_byte(c, s)
        if b == -1:
            return -1
        if b < 0:
            return i
        out[i] = b
        s = step(c, s, b)
    return len(out)


@njit("int64(int64, int64, uint8[::1])", **kernel)
def next_bytes(c: Any, s: Any, out: Any) -> Any:
    """Writes into uint8[256] which bytes may follow set s: 0 or -1."""
    for b in range(256):
        after = step(c, s, b)
        if after < 0:
            return -1
        out[b] = 1 if after > 0 else 0
    return 0
