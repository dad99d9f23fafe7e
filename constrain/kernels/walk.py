"""Walks: which tokens of a trie a set of configurations takes (kernels).

A walk goes down only where `sets.step` has a set, led by the few bytes that the set allows or by the edges of the
trie, whichever are fewer. Steps are remembered, so a second walk is loads only. What is added to a mask comes from

1. a leaf from whose state many bytes are allowed (inside a string, a number, white space, a pattern): the tokens that
   stay inside are a prepared row of the vocabulary, of which 16 KB are copied (`add_row`);
2. the tokens that leave such a leaf: a walk of the leaf's merged remainders, from the set that really follows; and
3. all other configurations: a walk of the main trie.
"""

from __future__ import annotations

from typing import Any

from .closure import begin, emit
from .compiled import entry, inlined, kernel
from .layout import *  # noqa: F403  (constants only)
from .names import ask
from .points import bound
from .sets import continuation, intern, leave_text_open, step, twin
from .trie import byte_of
from .views import at, size, view

STAMP = "f4380845"

NO_LIMIT = 1 << 30
ROW_STEPS = 1_500
"""Steps that a row counts for, with the walk of what follows its leaf, which is led by up to 128,000 remainders."""
TRIED_AT_ONCE = 8
"""Configurations of a set that a token is tried from, for each step that is counted: most lead nowhere."""


@entry("int64(int64, int64, int64)")
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


@entry("int64(int64, int64, uint8[::1])")
def advance_bytes(c: Any, s: Any, text: Any) -> Any:
    """The set after set s and these bytes: its id; -1; or -2 - i if byte i is refused."""
    for i in range(len(text)):
        s = step(c, s, text[i])
        if s == DEAD:
            return -2 - i
        if s < 0:
            return s
    return s


@inlined("int64(int64, int64, int64, int64, int64)")
def take(c: Any, node: Any, out: Any, least: Any, most: Any) -> Any:
    """Sets the bits of the tokens at a trie node that left their leaf after least .. most characters."""
    trie, tokens, mask = view(c, TRIE), view(c, TRIE_TOKENS), at(out)
    for k in range(trie[2 * node + 1], trie[2 * node + 3]):
        chars = tokens[2 * k + 1] & (ESCAPED - 1)
        if least <= chars <= most:
            token = tokens[2 * k]
            mask[token >> 5] |= 1 << (token & 31)
    return 0


@kernel("int64(int64)")
def put_off(c: Any) -> Any:
    """Keeps a question about members or names that a step has just asked, so that the walk can go on: 0 or -1.

    All that a mask cannot know is asked at once at its end (NEED_ANSWERS); after each question it would begin anew.
    """
    head, questions = view(c, HEAD), view(c, QUESTIONS)
    status = head[STATUS] + 0
    if status < NEED_WATCH or status > NEED_NAME:
        return -1
    k = QUESTION_W * head[N_QUESTIONS]
    if k > 0 and questions[k - QUESTION_W] == status and questions[k - QUESTION_W + Q_ARGUMENT] == head[ARGUMENT]:
        if (
            questions[k - QUESTION_W + Q_TEXT] == head[TEXT]
            and questions[k - QUESTION_W + Q_SPELLING] == head[SPELLING]
        ):
            return 0
    if k + QUESTION_W > size(c, QUESTIONS):
        return ask(c, NEED_ANSWERS, 0)
    questions[k + Q_STATUS], questions[k + Q_ARGUMENT], questions[k + Q_TEXT] = status, head[ARGUMENT], head[TEXT]
    questions[k + Q_SPELLING], questions[k + Q_NAMED_IN] = head[SPELLING], head[NAMED_IN]
    head[N_QUESTIONS] += 1
    return 0


@kernel("int64(int64, int64, int64, int64)")
def try_token(c: Any, s: Any, token: Any, out: Any) -> Any:
    """Sets or clears the bit of one token by taking it from set s: 0 or -1."""
    head, sets, offsets, mask = view(c, HEAD), view(c, SETS), view(c, OFFSETS), at(out)
    first, last = offsets[token], offsets[token + 1]
    after = s if first < last else DEAD
    for i in range(first, last):
        head[STEPS] += 1 + sets[after * SET_W + SET_COUNT] // TRIED_AT_ONCE
        after = step(c, after, byte_of(c, i))
        if after <= 0:
            break
    if head[STEPS] > head[MOST_STEPS]:
        return ask(c, SPENT, 0)
    if after < 0:
        return put_off(c)
    if after > 0:
        mask[token >> 5] |= 1 << (token & 31)
    else:
        mask[token >> 5] &= ~(1 << (token & 31))
    return 0


@kernel("int64(int64, int64, int64, int64)")
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


@kernel("int64(int64, int64, int64, int64)")
def try_from(c: Any, root: Any, s: Any, out: Any) -> Any:
    """As `try_below` for a node of the main trie where set s has arrived: each edge is stepped along once. 0 or -1."""
    head, sets, mask = view(c, HEAD), view(c, SETS), at(out)
    trie, edges, tokens, stack = view(c, TRIE), view(c, TRIE_EDGES), view(c, TRIE_TOKENS), view(c, STACK)
    base = size(c, STACK) // 2
    top = 0
    stack[base], stack[base + 1] = root, s
    while top >= 0:
        node, s = stack[base + 2 * top] + 0, stack[base + 2 * top + 1] + 0
        top -= 1
        if s == DEAD:  # Tokens stand in the order of the nodes: all below this one stand together.
            for k in range(trie[2 * node + 1], trie[2 * view(c, TRIE_END)[node] + 1]):
                mask[tokens[2 * k] >> 5] &= ~(1 << (tokens[2 * k] & 31))
            continue
        for k in range(trie[2 * node + 1], trie[2 * node + 3]):
            mask[tokens[2 * k] >> 5] |= 1 << (tokens[2 * k] & 31)
        for e in range(trie[2 * node], trie[2 * node + 2]):
            head[STEPS] += 1 + sets[s * SET_W + SET_COUNT] // TRIED_AT_ONCE
            after = step(c, s, edges[e] & 255)
            if after < 0:
                if put_off(c) < 0:
                    return -1
                continue
            top += 1
            if base + 2 * top + 1 >= size(c, STACK):
                return ask(c, FULL, STACK)
            stack[base + 2 * top], stack[base + 2 * top + 1] = edges[e] >> 8, after
        if head[STEPS] > head[MOST_STEPS]:
            return ask(c, SPENT, 0)
    return 0


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def keep_for_later(c: Any, node: Any, s: Any, least: Any, most: Any, walked: Any) -> Any:
    """Puts a watched set, met at a trie node, on the list of those whose tokens are looked at closely. 0 or -1."""
    head, later = view(c, HEAD), view(c, LATER)
    k = 5 * head[N_LATER]
    if k + 5 > size(c, LATER):
        return ask(c, FULL, LATER)
    later[k], later[k + 1], later[k + 2], later[k + 3], later[k + 4] = node, s, least, most, walked
    head[N_LATER] += 1
    return 0


@kernel("int64(int64, int64, int64)")
def along(c: Any, s: Any, depth: Any) -> Any:
    """The set after set s and the first bytes of ROUTE: its id, DEAD, or -1."""
    route = view(c, ROUTE)
    for i in range(depth):
        s = step(c, s, route[i])
        if s <= 0:
            return s
    return s


@kernel("int64(int64, int64)")
def may_escape(c: Any, s: Any) -> Any:
    """Whether an undeclared key is being spelled in set s, a backslash being its last byte: 1 or 0."""
    sets, configs, code, leaves = view(c, SETS), view(c, CONFIGS), view(c, CODE), view(c, LEAVES)
    first = sets[s * SET_W + SET_FIRST]
    for k in range(first, first + sets[s * SET_W + SET_COUNT]):
        if code[configs[5 * k]] == OTHER and leaves[configs[5 * k + 1] * LEAF_W + LEAF_DECODER] >> KIND == ESCAPE:
            return 1
    return 0


@kernel("int64(int64, int64, int64, int64)")
def is_free(c: Any, origin: Any, s: Any, depth: Any) -> Any:
    """Whether the name that ends with byte `depth` of ROUTE, which follows set s, is surely not taken: 1 or 0.

    The name stands between the last two quotes; with an escape in it, or begun before the route, it is not looked at.
    origin: the set that the route begins in.
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
        if code[configs[5 * k]] != OTHER:
            continue
        state = configs[5 * k + 3] + 0
        seen = objects[state + O_NAMES] + 0
        if configs[5 * k + 4] != OPEN_NAME or seen == UNKNOWN_NAMES:
            return 0
        block = code[objects[state + O_BLOCK] + OBJ_EXCLUDED]
        low, high = 0, code[block + STR_COUNT] + 0
        for i in range(start, end):
            if low < high:
                low = bound(c, block, low, high, i - start, route[i])
                high = bound(c, block, low, high, i - start, route[i] + 1)
        if low < high and code[block + STR_OFFSETS + low + 1] - code[block + STR_OFFSETS + low] == end - start:
            return 0
        while seen != NO_NAMES:
            i, at = end - 1, names[3 * seen + 1] + 0
            while i >= start and at != DECODED and names[3 * at + 1] == route[i]:
                at = names[3 * at] + 0
                i -= 1
            if i < start and at == DECODED:
                return 0
            seen = names[3 * seen] + 0
    return 1


@kernel("int64(int64, int64, int64, int64, int64, int64, int64, int64)")
def walk(c: Any, root: Any, start: Any, exact: Any, origin: Any, out: Any, least: Any, most: Any) -> Any:
    """Sets the bits of all tokens below trie node `root` that set `start` takes: 0 or -1.

    exact: whether `start` knows all names. least, most: only tokens that left their leaf after that many characters.
    origin: the set that the mask is for.
    """
    head, sets, wide, route = view(c, HEAD), view(c, SETS), view(c, WIDE), view(c, ROUTE)
    trie, edges, stack = view(c, TRIE), view(c, TRIE_EDGES), view(c, STACK)
    room = size(c, STACK) // 2 - 3 * 258
    top = 0
    stack[0], stack[1], stack[2] = root, start, 0
    while top >= 0:
        node, s, depth = stack[3 * top] + 0, stack[3 * top + 1] + 0, stack[3 * top + 2] >> 8
        if depth > 0:
            route[depth - 1] = stack[3 * top + 2] & 255
        depth += 1
        top -= 1
        head[VISITED] += 1
        r = s * SET_W
        n = sets[r + SET_ALLOWED]
        first, last = trie[2 * node] + 0, trie[2 * node + 2] + 0
        many = n > NARROW
        head[STEPS] += sets[r + SET_COUNT] if sets[r + SET_COUNT] > LARGE_SET else 1
        if head[STEPS] > head[MOST_STEPS]:
            return ask(c, SPENT, 0)
        if 3 * top > room:
            return ask(c, FULL, STACK)
        if depth > size(c, ROUTE):
            return ask(c, FULL, ROUTE)
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
            flags = sets[after * SET_W + SET_FLAGS] + 0
            if flags & IS_WATCHED:
                if keep_for_later(c, child, after, least, most, 0) < 0:
                    return -1
                continue
            if flags & (IS_NAMING | IS_MEMBER):
                after = twin(c, after)
                if after < 0:
                    return -1
                flags = sets[after * SET_W + SET_FLAGS] + 0
            if flags & (IS_UNSURE | IS_NAMED):
                route[depth - 1] = b
                if flags & IS_UNSURE or is_free(c, start, s, depth) == 0:
                    # What is on the way is taken with all that is known, or else each token is.
                    flags = IS_MEMBER
                    if exact:
                        after = along(c, start, depth)
                        if after < 0:
                            return -1
                        if after == DEAD:
                            continue
                        flags = sets[after * SET_W + SET_FLAGS] + 0
                    if flags & (IS_MEMBER | IS_OPEN | IS_UNSURE):
                        if root > 0:
                            if try_below(c, child, origin, out) < 0:
                                return -1
                            continue
                        exactly = along(c, origin, depth)
                        if (put_off(c) if exactly < 0 else try_from(c, child, exactly, out)) < 0:
                            return -1
                        continue
                    if flags & IS_NAMING:
                        after = twin(c, after)
                        if after < 0:
                            return -1
            take(c, child, out, least, most)
            if trie[2 * child] < trie[2 * child + 2] and sets[after * SET_W + SET_ALLOWED] > 0:
                top += 1
                stack[3 * top], stack[3 * top + 1], stack[3 * top + 2] = child, after, depth << 8 | b
    return 0


@kernel("int64(int64, int64, int64)")
def only(c: Any, s: Any, which: Any) -> Any:
    """The set of configuration `which` of set s alone, or, if -1, of those that wait for few bytes; -2: of all.

    The text of members is left open. Its id, or -1.
    """
    sets, configs, code, leaves = view(c, SETS), view(c, CONFIGS), view(c, CODE), view(c, LEAVES)
    begin(c)
    leave_text_open(c, s)
    first = sets[s * SET_W + SET_FIRST]
    for k in range(first, first + sets[s * SET_W + SET_COUNT]):
        q = configs[5 * k + 1]
        op = code[configs[5 * k]]
        has_row = op == PARSE or ((op == LEAF or op == OTHER) and leaves[q * LEAF_W + LEAF_ROW] != -2)
        if (which == -1 and not has_row) or k == which or which == -2:
            if op == OTHER and view(c, OBJECTS)[configs[5 * k + 3] + O_NAMES] == UNKNOWN_NAMES:
                view(c, HEAD)[UNSURE] = 1
            if emit(c, configs[5 * k], q, configs[5 * k + 2], configs[5 * k + 3], configs[5 * k + 4]) < 0:
                return -1
    return intern(c)


@kernel("int64(int64, int64, int64, int64)")
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


@kernel("int64(int64, int64, int64, int64, int64)")
def add_leaf(c: Any, s: Any, k: Any, out: Any, room: Any) -> Any:
    """ORs what configuration k, in a leaf that has a row, allows into the mask: 0 or -1."""
    configs, code, leaves, sets = view(c, CONFIGS), view(c, CODE), view(c, LEAVES), view(c, SETS)
    pc, q, ext = configs[5 * k], configs[5 * k + 1], configs[5 * k + 4]
    view(c, HEAD)[STEPS] += ROW_STEPS
    rest = leaves[q * LEAF_W + LEAF_REST]
    closes = leaves[q * LEAF_W + LEAF_FLAGS] & LEAF_CLOSES
    least = 0
    if code[pc] == OTHER:
        after = continuation(c, s, -k - 1, code[pc + 3])
    else:
        after = continuation(c, s, k, pc + 4)
        least = max(code[pc + 2] - ext, 0)
    if after < 0:
        return -1
    follows = closes or sets[after * SET_W + SET_ALLOWED] > 0
    if follows and rest == -1:
        return ask(c, NEED_REST, q)
    if follows and rest == -2:
        alone = only(c, s, k)
        return -1 if alone < 0 else walk(c, 0, alone, 1, s, out, 0, NO_LIMIT)
    if add_row(c, q, room, out) < 0:
        return -1
    if not follows:
        return 0
    if closes:
        take(c, rest, out, least, room)
    return walk(c, rest, after, code[pc] == LEAF, s, out, least, room)
