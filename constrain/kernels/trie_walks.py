"""Walks: which tokens of a trie a set of configurations accepts (kernels).

A walk descends only where `sets.step_set` has a set, led by the few bytes that the set allows or by the edges of the
trie, whichever are fewer. Steps are memoised, so a second walk is loads only. A mask is the union of

1. for a leaf state that allows many bytes (inside a string, a number, white space, a pattern): a prepared row of the
   tokens that stay inside the leaf, 16 KB that are copied (`add_row`);
2. for the tokens that leave such a leaf: a walk of the suffix trie of the leaf state, from the set that follows; and
3. for all other configurations: a walk of the main trie.
"""

from __future__ import annotations

from typing import Any

from .closure import begin_closure, emit_config
from .context_views import at, size, view
from .interned_names import request
from .jit.compilation import entry, inlined, kernel

from .layout import (  # isort: skip
    ARGUMENT, ARG_LOW, ARG_NEXT, BY_LENGTH, CODE, CONFIGS, CONFIG_EXTRA, CONFIG_NODE, CONFIG_PC, CONFIG_PLACE,
    CONFIG_REGISTER, CONFIG_W, DEAD, DECODED, ENTRY_CHARACTERS, ENTRY_TOKEN, ENTRY_W, ESCAPE, ESCAPED, FULL,
    HAS_CANDIDATES, HEAD, IS_MEMBER, IS_NAMED, IS_NAMING, IS_OPEN, IS_UNSURE, KIND, LARGE_SET, LEAF, LEAF_BY_LENGTH,
    LEAF_CLOSES, LEAF_DECODER, LEAF_FLAGS, LEAF_LONGEST, LEAF_ROW, LEAF_SUFFIXES, LEAF_W, LEAVES, LENGTH_CLASSES,
    MOST_STEPS, NAMED_IN, NAMES, NAME_PARENT, NAME_VALUE, NAME_W, NARROW, NEED_ANSWERS, NEED_BY_LENGTH,
    NEED_CANDIDATES, NEED_NAME_FREE, NEED_SUFFIXES, NO_NAMES, N_QUESTIONS, N_WORKLIST, OBJECTS, OBJ_EXCLUDED, OFFSETS,
    OPEN_NAME, OTHER, O_BLOCK, O_NAMES, PARSE, QUESTIONS, QUESTION_W, Q_ARGUMENT, Q_NAMED_IN, Q_SPELLING, Q_STATUS,
    Q_TEXT, ROUTE, ROWS, SETS, SET_ALLOWED, SET_BYTES, SET_COUNT, SET_FIRST, SET_FLAGS, SET_NEXT, SET_W, SPELLING,
    SPENT, STACK, STATUS, STEPS, STR_COUNT, STR_OFFSETS, TABLE, TEXT, TRIE, TRIE_EDGES, TRIE_END, TRIE_FIRST_EDGE,
    TRIE_FIRST_TOKEN, TRIE_TOKENS, TRIE_W, T_WORDS, UNKNOWN_NAMES, UNSURE, VISITED, WALK_BYTE, WALK_NODE, WALK_SET,
    WALK_W, WIDE, WORKLIST, WORK_LEAST, WORK_MOST, WORK_NODE, WORK_SET, WORK_W, WORK_WALKED,
)  # fmt: skip
from .sets import continue_config, intern_set, leave_text_open, make_keyless, step_set
from .string_cursors import find_bound
from .trie import byte_of

NO_LIMIT = 1 << 30
ROW_STEPS = 1_500
"""Steps that a row counts for, with the walk of its suffix trie, of up to 128,000 tokens."""
TRIED_AT_ONCE = 8
"""Configurations of a set that a token is tried from, for each step that is counted: most lead nowhere."""


@entry("int64(int64, int64, int64)")
def advance_token(c: Any, s: Any, token: Any) -> Any:
    """Return the set after set s and a token: its id, DEAD if the token is refused (or has no bytes), or -1."""
    offsets = view(c, OFFSETS)
    first, last = offsets[token], offsets[token + 1]
    if first == last:
        return DEAD
    for i in range(first, last):
        s = step_set(c, s, byte_of(c, i))
        if s <= 0:
            return s
    return s


@entry("int64(int64, int64, uint8[::1])")
def advance_bytes(c: Any, s: Any, text: Any) -> Any:
    """Return the set after set s and these bytes: its id; -1; or -2 - i if byte i is refused."""
    for i in range(len(text)):
        s = step_set(c, s, text[i])
        if s == DEAD:
            return -2 - i
        if s < 0:
            return s
    return s


@inlined("int64(int64, int64, int64, int64, int64)")
def take_tokens(c: Any, node: Any, out: Any, least: Any, most: Any) -> Any:
    """Set the bits of the tokens at a trie node that left their leaf after least .. most characters."""
    trie, tokens, mask = view(c, TRIE), view(c, TRIE_TOKENS), at(out)
    for k in range(trie[TRIE_W * node + TRIE_FIRST_TOKEN], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_TOKEN]):
        chars = tokens[ENTRY_W * k + ENTRY_CHARACTERS] & (ESCAPED - 1)
        if least <= chars <= most:
            token = tokens[ENTRY_W * k + ENTRY_TOKEN]
            mask[token >> 5] |= 1 << (token & 31)
    return 0


@kernel("int64(int64)")
def queue_question(c: Any) -> Any:
    """Queue a question about members or names that a step has asked, so that the walk can continue. Return 0 or -1.

    All that a mask cannot know is asked at once at its end (NEED_ANSWERS); after each question it would begin anew.
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
        after = step_set(c, after, byte_of(c, i))
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
def try_below(c: Any, root: Any, origin: Any, out: Any) -> Any:
    """Try every token of the subtree at `root` one by one from the set of the mask. Return 0 or -1."""
    trie, edges, tokens, stack = view(c, TRIE), view(c, TRIE_EDGES), view(c, TRIE_TOKENS), view(c, STACK)
    base = size(c, STACK) // 2  # the upper half: the lower one belongs to the walk that came here
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
def try_from(c: Any, root: Any, s: Any, out: Any) -> Any:
    """Try the tokens below a node of the main trie from set s, which has arrived there; edges are stepped once.

    Return 0 or -1.
    """
    head, sets, mask = view(c, HEAD), view(c, SETS), at(out)
    trie, edges, tokens, stack = view(c, TRIE), view(c, TRIE_EDGES), view(c, TRIE_TOKENS), view(c, STACK)
    base = size(c, STACK) // 2
    top = 0
    stack[base + WALK_NODE], stack[base + WALK_SET] = root, s
    while top >= 0:
        node, s = stack[base + 2 * top + WALK_NODE] + 0, stack[base + 2 * top + WALK_SET] + 0
        top -= 1
        if s == DEAD:  # Tokens stand in the order of the nodes: all below this one stand together.
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


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def add_to_worklist(c: Any, node: Any, s: Any, least: Any, most: Any, walked: Any) -> Any:
    """Add a set with candidates, met at a trie node, to the sets whose tokens are examined one by one.

    Return 0 or -1.
    """
    head, later = view(c, HEAD), view(c, WORKLIST)
    k = WORK_W * head[N_WORKLIST]
    if k + WORK_W > size(c, WORKLIST):
        return request(c, FULL, WORKLIST)
    later[k + WORK_NODE], later[k + WORK_SET] = node, s
    later[k + WORK_LEAST], later[k + WORK_MOST], later[k + WORK_WALKED] = least, most, walked
    head[N_WORKLIST] += 1
    return 0


@kernel("int64(int64, int64, int64)")
def step_along_route(c: Any, s: Any, depth: Any) -> Any:
    """Return the set after set s and the first bytes of ROUTE: its id, DEAD, or -1."""
    route = view(c, ROUTE)
    for i in range(depth):
        s = step_set(c, s, route[i])
        if s <= 0:
            return s
    return s


@kernel("int64(int64, int64)")
def may_escape(c: Any, s: Any) -> Any:
    """Return whether an undeclared key is being spelled in set s, a backslash being its last byte: 1 or 0."""
    sets, configs, code, leaves = view(c, SETS), view(c, CONFIGS), view(c, CODE), view(c, LEAVES)
    first = sets[s * SET_W + SET_FIRST]
    for k in range(first, first + sets[s * SET_W + SET_COUNT]):
        q = configs[CONFIG_W * k + CONFIG_PLACE]
        is_name = code[configs[CONFIG_W * k + CONFIG_PC]] == OTHER
        if is_name and leaves[q * LEAF_W + LEAF_DECODER] >> KIND == ESCAPE:
            return 1
    return 0


@kernel("int64(int64, int64, int64, int64)")
def is_new_name(c: Any, origin: Any, s: Any, depth: Any) -> Any:
    """Return whether the name that ends with byte `depth` of ROUTE, which follows set s, is surely not taken: 1 or 0.

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
        if code[configs[CONFIG_W * k + CONFIG_PC]] != OTHER:
            continue
        state = configs[CONFIG_W * k + CONFIG_REGISTER] + 0
        seen = objects[state + O_NAMES] + 0
        if configs[CONFIG_W * k + CONFIG_EXTRA] != OPEN_NAME or seen == UNKNOWN_NAMES:
            return 0
        block = code[objects[state + O_BLOCK] + OBJ_EXCLUDED]
        low, high = 0, code[block + STR_COUNT] + 0
        for i in range(start, end):
            if low < high:
                low = find_bound(c, block, low, high, i - start, route[i])
                high = find_bound(c, block, low, high, i - start, route[i] + 1)
        if low < high and code[block + STR_OFFSETS + low + 1] - code[block + STR_OFFSETS + low] == end - start:
            return 0
        while seen != NO_NAMES:
            i, at = end - 1, names[NAME_W * seen + NAME_VALUE] + 0
            while i >= start and at != DECODED and names[NAME_W * at + NAME_VALUE] == route[i]:
                at = names[NAME_W * at + NAME_PARENT] + 0
                i -= 1
            if i < start and at == DECODED:
                return 0
            seen = names[NAME_W * seen + NAME_PARENT] + 0
    return 1


@kernel("int64(int64, int64, int64, int64, int64, int64, int64, int64)")
def walk_trie(c: Any, root: Any, start: Any, exact: Any, origin: Any, out: Any, least: Any, most: Any) -> Any:
    """Set the bits of all tokens below trie node `root` that set `start` accepts. Return 0 or -1.

    exact: whether `start` knows all names. least, most: only tokens that left their leaf after that many characters.
    origin: the set that the mask is for.
    """
    head, sets, wide, route = view(c, HEAD), view(c, SETS), view(c, WIDE), view(c, ROUTE)
    trie, edges, stack = view(c, TRIE), view(c, TRIE_EDGES), view(c, STACK)
    room = size(c, STACK) // 2 - 3 * 258
    top = 0
    stack[0], stack[1], stack[2] = root, start, 0
    while top >= 0:
        node, s = stack[WALK_W * top + WALK_NODE] + 0, stack[WALK_W * top + WALK_SET] + 0
        depth = stack[WALK_W * top + WALK_BYTE] >> 8
        if depth > 0:
            route[depth - 1] = stack[WALK_W * top + WALK_BYTE] & 255
        depth += 1
        top -= 1
        head[VISITED] += 1
        r = s * SET_W
        n = sets[r + SET_ALLOWED]
        first, last = trie[TRIE_W * node + TRIE_FIRST_EDGE] + 0, trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE] + 0
        many = n > NARROW
        head[STEPS] += sets[r + SET_COUNT] if sets[r + SET_COUNT] > LARGE_SET else 1
        if head[STEPS] > head[MOST_STEPS]:
            return request(c, SPENT, 0)
        if WALK_W * top > room:
            return request(c, FULL, STACK)
        if depth > size(c, ROUTE):
            return request(c, FULL, ROUTE)
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
                    # What is on the way is taken with all that is known, or else each token is.
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
                            if try_below(c, child, origin, out) < 0:
                                return -1
                            continue
                        exactly = step_along_route(c, origin, depth)
                        if (queue_question(c) if exactly < 0 else try_from(c, child, exactly, out)) < 0:
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


@kernel("int64(int64, int64, int64)")
def select_configs(c: Any, s: Any, which: Any) -> Any:
    """Return the set of configuration `which` of set s alone, or, if -1, of those that wait for few bytes; -2: of all.

    The text of members is left open. Its id, or -1.
    """
    sets, configs, code, leaves = view(c, SETS), view(c, CONFIGS), view(c, CODE), view(c, LEAVES)
    begin_closure(c)
    leave_text_open(c, s)
    first = sets[s * SET_W + SET_FIRST]
    for k in range(first, first + sets[s * SET_W + SET_COUNT]):
        q = configs[CONFIG_W * k + CONFIG_PLACE]
        op = code[configs[CONFIG_W * k + CONFIG_PC]]
        has_row = op == PARSE or ((op == LEAF or op == OTHER) and leaves[q * LEAF_W + LEAF_ROW] != -2)
        if (which == -1 and not has_row) or k == which or which == -2:
            if op == OTHER and view(c, OBJECTS)[configs[CONFIG_W * k + CONFIG_REGISTER] + O_NAMES] == UNKNOWN_NAMES:
                view(c, HEAD)[UNSURE] = 1
            config = CONFIG_W * k
            reg, ext = configs[config + CONFIG_REGISTER], configs[config + CONFIG_EXTRA]
            if emit_config(c, configs[config + CONFIG_PC], q, configs[config + CONFIG_NODE], reg, ext) < 0:
                return -1
    return intern_set(c)


@kernel("int64(int64, int64, int64, int64)")
def add_row(c: Any, q: Any, room: Any, out: Any) -> Any:
    """OR the row of leaf state q into the mask, restricted to tokens that need at most `room` characters.

    Return 0 or -1.
    """
    leaves, mask = view(c, LEAVES), at(out)
    words = view(c, TABLE)[T_WORDS] + 0
    row = view(c, ROWS)
    base = leaves[q * LEAF_W + LEAF_ROW] * words
    if room >= leaves[q * LEAF_W + LEAF_LONGEST]:
        for w in range(words):
            mask[w] |= row[base + w]
        return 0
    if room < 0:
        return 0
    order = leaves[q * LEAF_W + LEAF_BY_LENGTH]
    if order < 0:
        return request(c, NEED_BY_LENGTH, q)
    orders = view(c, BY_LENGTH)
    for k in range(orders[order], orders[order + min(room, LENGTH_CLASSES - 2) + 1]):
        token = orders[order + LENGTH_CLASSES + 1 + k]
        mask[token >> 5] |= 1 << (token & 31)
    return 0


@kernel("int64(int64, int64, int64, int64, int64)")
def add_leaf(c: Any, s: Any, k: Any, out: Any, room: Any) -> Any:
    """OR in the tokens that configuration k, in a leaf that has a row, allows. Return 0 or -1."""
    configs, code, leaves, sets = view(c, CONFIGS), view(c, CODE), view(c, LEAVES), view(c, SETS)
    config = CONFIG_W * k
    pc, q, ext = configs[config + CONFIG_PC], configs[config + CONFIG_PLACE], configs[config + CONFIG_EXTRA]
    view(c, HEAD)[STEPS] += ROW_STEPS
    rest = leaves[q * LEAF_W + LEAF_SUFFIXES]
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
    if follows and rest == -1:
        return request(c, NEED_SUFFIXES, q)
    if follows and rest == -2:
        alone = select_configs(c, s, k)
        return -1 if alone < 0 else walk_trie(c, 0, alone, 1, s, out, 0, NO_LIMIT)
    if add_row(c, q, room, out) < 0:
        return -1
    if not follows:
        return 0
    if closes:
        take_tokens(c, rest, out, least, room)
    return walk_trie(c, rest, after, code[pc] == LEAF, s, out, least, room)
