"""Masks: what a set of configurations allows next, and the other questions a Matcher asks (kernels).

`fill` puts a mask together from the parts in `walk`. Undeclared keys take most of the care: any name may begin, but
one that is declared, excluded or there already may not be finished, so the tokens that would finish it are cleared.
"""

from __future__ import annotations

from typing import Any

from .compiled import entry, kernel
from .layout import *  # noqa: F403  (constants only)
from .lexemes import add_lexemes, tail_of
from .members import keeps_watch
from .names import ask, decode_name, name_into_buffer
from .objects import may_repeat
from .points import bound
from .recipes import NO_ROW, follow, keep
from .sets import allows_perhaps, step, twin
from .trie import child_of
from .views import address, at, size, view
from .walk import NO_LIMIT, add_leaf, keep_for_later, only, put_off, take, try_below, try_token, walk

STAMP = "567ce764"

MOST_ROWS = 128
"""Leaf states that a mask is made of, at most: each may need a row and remainders, which take some 6 ms to make."""


@kernel("int64(int64, int64, int64, int64)")
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


@kernel("int64(int64, int64, int64, int64)")
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


@kernel("int64(int64, int64, int64, int64)")
def clear_seen(c: Any, state: Any, n: Any, out: Any) -> Any:
    """Clears the tokens that would finish an undeclared key which is there already: how many begin so, or -1."""
    names = view(c, NAMES)
    seen = view(c, OBJECTS)[state + O_NAMES] + 0
    found = 0
    while seen != NO_NAMES:
        m = name_into_buffer(c, names[3 * seen + 1], n)
        if m < 0:
            return -1
        seen = names[3 * seen] + 0
        found += clear_name(c, n, m, out)
    return found


@kernel("int64(int64, int64, int64, int64)")
def try_beginnings(c: Any, s: Any, k: Any, out: Any) -> Any:
    """Tries the tokens by which the key that configuration k spells goes on like a name that is taken. 0 or -1.

    For classes in which some text begins few names only: such a text may have no name left to become. Those tokens
    stand along the name as it is, or spell some character of it by an escape; inside an escape or a character any may.
    """
    configs, leaves, code, objects = view(c, CONFIGS), view(c, LEAVES), view(c, CODE), view(c, OBJECTS)
    names, trie, edges = view(c, NAMES), view(c, TRIE), view(c, TRIE_EDGES)
    state, ext = configs[5 * k + 3] + 0, configs[5 * k + 4] + 0
    if leaves[configs[5 * k + 1] * LEAF_W + LEAF_DECODER] >> KIND != PLAIN:
        for e in range(trie[0], trie[2]):
            if allows_perhaps(c, s, edges[e] & 255) and try_below(c, edges[e] >> 8, s, out) < 0:
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
                return ask(c, FULL, BUFFER)
            for i in range(m):
                view(c, BUFFER)[n + i] = code[first + i]
            which += 1
        else:
            m = name_into_buffer(c, names[3 * seen + 1], n)
            if m < 0:
                return -1
            seen = names[3 * seen] + 0
        alike = m >= n
        for i in range(min(n, m)):
            alike = alike and view(c, BUFFER)[i] == view(c, BUFFER)[n + i]
        if not alike:
            continue
        # The lower half of STACK is free: no walk is under way.
        stack = view(c, STACK)
        if m - n + 1 > size(c, STACK) // 2:
            return ask(c, FULL, STACK)
        length, node = 0, 0
        for i in range(n, m + 1):
            stack[length] = node
            length += 1
            node = child_of(c, node, view(c, BUFFER)[n + i]) if i < m else -1
            if node < 0:
                break
        for i in range(length):
            node = stack[i] + 0
            if i > 0:
                for t in range(trie[2 * node + 1], trie[2 * node + 3]):
                    if try_token(c, s, view(c, TRIE_TOKENS)[2 * t], out) < 0:
                        return -1
            escape = child_of(c, node, 92)
            if escape >= 0 and try_below(c, escape, s, out) < 0:
                return -1
    return 0


@kernel("int64(int64, int64, int64, int64)")
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
    if view(c, CODE)[configs[5 * k] + 5] and (alike > 0 or not plain):
        if try_beginnings(c, s, k, address(c, SPARE)) < 0:
            return -1
    for w in range(words):
        mask[w] |= spare[w]
    return 0


@kernel("int64(int64, int64, int64, int64, int64)")
def clear_below(c: Any, root: Any, out: Any, least: Any, most: Any) -> Any:
    """Clears the tokens at a trie node and below it that left their leaf after least .. most characters. 0 or -1."""
    trie, edges, tokens, stack, mask = view(c, TRIE), view(c, TRIE_EDGES), view(c, TRIE_TOKENS), view(c, STACK), at(out)
    if root < size(c, TRIE_END):
        for k in range(trie[2 * root + 1], trie[2 * view(c, TRIE_END)[root] + 1]):
            token = tokens[2 * k]
            mask[token >> 5] &= ~(1 << (token & 31))
        return 0
    top = 0
    stack[0] = root
    while top >= 0:
        node = stack[top] + 0
        top -= 1
        for k in range(trie[2 * node + 1], trie[2 * node + 3]):
            if least <= tokens[2 * k + 1] & (ESCAPED - 1) <= most:
                token = tokens[2 * k]
                mask[token >> 5] &= ~(1 << (token & 31))
        for e in range(trie[2 * node], trie[2 * node + 2]):
            top += 1
            if top >= size(c, STACK):
                return ask(c, FULL, STACK)
            stack[top] = edges[e] >> 8
    return 0


@kernel("int64(int64, int64, int64, int64, int64, int64, int64)")
def take_below(c: Any, node: Any, s: Any, origin: Any, out: Any, least: Any, most: Any) -> Any:
    """Sets the bits of the tokens at a trie node, which set s has reached, and of those that it takes below. 0, -1."""
    sets = view(c, SETS)
    if sets[s * SET_W + SET_FLAGS] & (IS_NAMING | IS_MEMBER):
        s = twin(c, s)
        if s < 0:
            return -1
    if sets[s * SET_W + SET_FLAGS] & (IS_UNSURE | IS_NAMED):
        return try_below(c, node, origin, out)
    take(c, node, out, least, most)
    return walk(c, node, s, 0, origin, out, least, most)


@kernel("int64(int64, int64, int64)")
def look_closely(c: Any, origin: Any, out: Any) -> Any:
    """Clears the tokens by which a watched set would end a member that was there, or could only end so. 0 or -1.

    The mask is made as if each member were a new one. It is wrong only along bytes that keep the member like one that
    was there: those are followed with all that is known, and where they lead away from it the mask is made again.
    """
    head, sets, configs, later = view(c, HEAD), view(c, SETS), view(c, CONFIGS), view(c, LATER)
    trie, edges = view(c, TRIE), view(c, TRIE_EDGES)
    while head[N_LATER] > 0:
        head[N_LATER] -= 1
        k = 5 * head[N_LATER]
        node, s, least, most = later[k] + 0, later[k + 1] + 0, later[k + 2] + 0, later[k + 3] + 0
        if later[k + 4] == 0 and take_below(c, node, s, origin, out, least, most) < 0:
            return -1
        guard = configs[5 * (sets[s * SET_W + SET_FIRST] + sets[s * SET_W + SET_COUNT]) + 2] + 0
        for e in range(trie[2 * node], trie[2 * node + 2]):
            b, child = edges[e] & 255, edges[e] >> 8
            if not keeps_watch(c, guard, b):
                continue
            after = step(c, s, b)
            if after < 0:
                if put_off(c) < 0:
                    return -1
                continue
            flags = sets[after * SET_W + SET_FLAGS] if after > 0 else 0
            watched = flags & IS_WATCHED
            if watched and keep_for_later(c, child, after, least, most, 0 if flags & IS_CUT else 1) < 0:
                return -1
            if watched and flags & IS_CUT == 0:
                continue
            if clear_below(c, child, out, least, most) < 0:
                return -1
            if after > 0 and not watched and take_below(c, child, after, origin, out, least, most) < 0:
                return -1
    return 0


@kernel("int64(int64, int64, int64, int64)")
def add_two(c: Any, s: Any, q: Any, out: Any) -> Any:
    """As `add_lexemes` for two lexemes in the making; s holds nothing else. 0 or -1.

    Before a byte that the longer one does not take, only the other counts. The few tokens that begin with a byte that
    it takes, or that ends it, are walked.
    """
    lists, code, trie, edges = view(c, LISTS), view(c, CODE), view(c, TRIE), view(c, TRIE_EDGES)
    block, state = lists[q + LIST_BLOCK] + 0, lists[q + LIST_FIRST + 1] + 0
    row = code[code[block + P_ACCEPT] + state] >> 1
    tail = tail_of(c, q)
    if tail < 0 or (tail > 0 and add_lexemes(c, s, tail, out) < 0):
        return -1
    for e in range(trie[0], trie[2]):
        b, child = edges[e] & 255, edges[e] >> 8
        takes = code[code[block + P_DELTA] + 256 * state + b] >= 0
        if takes or code[code[block + P_VERDICTS] + 257 * row + b] >= 0:
            after = step(c, s, b)
            if after < 0 or clear_below(c, child, out, 0, NO_LIMIT) < 0:
                return -1
            if after > 0 and take_below(c, child, after, s, out, 0, NO_LIMIT) < 0:
                return -1
    return 0


@kernel("int64(int64, int64, int64, int64)")
def add_parsed(c: Any, s: Any, k: Any, out: Any) -> Any:
    """ORs what configuration k, a text that is being parsed, allows into the mask: 0 or -1.

    By readers if nothing follows the text and one lexeme is in the making, or two; else by a walk of the whole trie.
    """
    configs, code = view(c, CONFIGS), view(c, CODE)
    q = configs[5 * k + 1] + 0
    if configs[5 * k + 2] == 0 and code[configs[5 * k] + 2] == END:
        if view(c, LISTS)[q] == 1:
            return add_lexemes(c, s, q, out)
        if view(c, LISTS)[q] == 2 and view(c, SETS)[s * SET_W + SET_COUNT] == 1:
            return add_two(c, s, q, out)
    alone = only(c, s, k)
    return -1 if alone < 0 else walk(c, 0, alone, 1, s, out, 0, NO_LIMIT)


@kernel("int64(int64, int64, int64)")
def has_many_rows(c: Any, first: Any, last: Any) -> Any:
    """Whether configurations first .. last are in more than MOST_ROWS different leaf states that have rows: 1 or 0."""
    configs, code, leaves, stack = view(c, CONFIGS), view(c, CODE), view(c, LEAVES), view(c, STACK)
    found = 0
    for k in range(first, last):
        op, q = code[configs[5 * k]], configs[5 * k + 1] + 0
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
def fill(c: Any, s: Any, out: Any) -> Any:
    """Writes the mask of set s, end tokens included, to the int32 words at address `out`: 0 or -1."""
    head, sets, configs, code = view(c, HEAD), view(c, SETS), view(c, CONFIGS), view(c, CODE)
    leaves, mask = view(c, LEAVES), at(out)
    words = view(c, TABLE)[T_WORDS] + 0
    r = s * SET_W
    if sets[r + SET_MASK] >= 0:
        return follow(c, sets[r + SET_MASK], out)
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
        return ask(c, SPENT, 0)
    for k in range(first, last):
        op = code[configs[5 * k]]
        if op == LEAF or op == OTHER:
            row = leaves[configs[5 * k + 1] * LEAF_W + LEAF_ROW]
            if row == -1:
                return ask(c, NEED_ROW, configs[5 * k + 1])
            if row >= 0:
                rows += 1
                base = row + 0
        elif op == PARSE:
            rows += 1
            parsed = True
    flags = sets[r + SET_FLAGS] + 0
    head[N_LATER], head[STEPS], head[N_QUESTIONS] = 0, 0, 0
    if flags & IS_WATCHED and keep_for_later(c, 0, s, 0, NO_LIMIT, 1) < 0:
        return -1
    if rows < last - first:
        few = s
        if rows > 0 or flags & IS_MEMBER:
            few = only(c, s, -1 if rows > 0 else -2)
        if few < 0 or walk(c, 0, few, 1, s, out, 0, NO_LIMIT) < 0:
            return -1
    for k in range(first, last):
        pc, q = configs[5 * k] + 0, configs[5 * k + 1] + 0
        op = code[pc]
        if op == PARSE:
            if add_parsed(c, s, k, out) < 0:
                return -1
        elif op == OTHER and leaves[q * LEAF_W + LEAF_ROW] >= 0:
            if add_name(c, s, k, out) < 0:
                return -1
        elif op == LEAF and leaves[q * LEAF_W + LEAF_ROW] >= 0:
            high = code[pc + 3]
            if add_leaf(c, s, k, out, high - configs[5 * k + 4] if high >= 0 else NO_LIMIT) < 0:
                return -1
    if look_closely(c, s, out) < 0:
        return -1
    if head[N_QUESTIONS] > 0:
        return ask(c, NEED_ANSWERS, 0)
    allowed = 0
    for w in range(words):
        allowed |= mask[w]
    if allowed == 0 and flags & IS_ACCEPTING == 0 and head[MAY_LACK] == 0:
        return ask(c, STUCK, 0)
    if flags & IS_MEMBER:  # what is written makes each such set unlike all others: it is not met again
        return 0
    recipe = keep(c, base, out, parsed)
    if recipe == -1:
        return -1
    if recipe >= 0:
        view(c, SETS)[r + SET_MASK] = recipe
    return 0


@entry("int64(int64, int64, int32[::1])")
def mask(c: Any, s: Any, out: Any) -> Any:
    """Writes the mask of set s into `out`, int32[words]: 0 or -1."""
    return fill(c, s, out.ctypes.data)


@kernel("int64(int64, int64)")
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


FORCED_STEPS = 1 << 16
"""Configurations that `forced` takes further, at most."""


@entry("int64(int64, int64, uint8[::1])")
def forced(c: Any, s: Any, out: Any) -> Any:
    """Writes the bytes that must follow set s, as far as `out` holds them: how many, or -1."""
    steps = 0
    for i in range(len(out)):
        steps += view(c, SETS)[s * SET_W + SET_COUNT]
        if steps > FORCED_STEPS:
            return i
        b = only_byte(c, s)
        if b == -1:
            return -1
        if b < 0:
            return i
        out[i] = b
        s = step(c, s, b)
    return len(out)


@entry("int64(int64, int64, uint8[::1])")
def next_bytes(c: Any, s: Any, out: Any) -> Any:
    """Writes into uint8[256] which bytes may follow set s: 0 or -1."""
    for b in range(256):
        after = step(c, s, b)
        if after < 0:
            return -1
        out[b] = 1 if after > 0 else 0
    return 0
