"""The vocabulary as tries, and what it says to a leaf state: the tokens that stay inside, and those that leave.

The main trie is laid out depth-first (parents before children, children by byte), with the tokens of a subtree in
one run; a node's edges are a sorted run of (child, byte). From a leaf state, one walk of the main trie finds

- the *row*: the tokens that end inside the leaf, as a mask; and
- the places where the leaf may be left inside a token. What follows those places is merged into one small trie,
  the *remainders*: 1,312 tokens of a 128k vocabulary close a JSON string, but at few distinct places and with few
  distinct rests. A mask then walks the remainders once, with the set of configurations that really follows.

Only the owner of the table (tokens.mask_table, under a lock) calls these kernels.
"""

from __future__ import annotations

from typing import Any

from .compiled import entry, inlined, kernel
from .layout import *  # noqa: F403  (constants only)
from .leaves import expand
from .views import size, view

STAMP = "bcffb4f7"

NO_ROOM = -1
LONG = 4
"""Characters: many tokens are no longer, and are not looked at if none is refused for so long."""


@inlined("int64(int64, int64)")
def byte_of(t: Any, i: Any) -> Any:
    """Byte i of the vocabulary's tokens."""
    return (view(t, BLOB)[i >> 2] >> (8 * (i & 3))) & 255


@kernel("int64(int64, int64)")
def describe_below(t: Any, nodes: Any) -> Any:
    """Writes BELOW for all nodes of the main trie, from the last to the first: children come behind their parents."""
    trie, edges, below = view(t, TRIE), view(t, TRIE_EDGES), view(t, BELOW)
    for node in range(nodes - 1, -1, -1):
        for w in range(4):
            below[4 * node + w] = 0
        height = 0
        for e in range(trie[2 * node], trie[2 * node + 2]):
            b, child = edges[e] & 255, edges[e] >> 8
            for w in range(3):
                below[4 * node + w] |= below[4 * child + w]
            below[4 * node + 3] |= below[4 * child + 3] & OTHERS
            height = max(height, (below[4 * child + 3] & (OTHERS - 1)) + 1)
            if 32 <= b < 128:
                below[4 * node + (b >> 5) - 1] |= 1 << (b & 31)
            else:
                below[4 * node + 3] |= OTHERS
        below[4 * node + 3] |= height
    return 0


@kernel("int64(int64, int64)")
def find_loops(t: Any, q: Any) -> Any:
    """Writes which bytes lead from leaf state q back to q."""
    leaves, following = view(t, LEAVES), view(t, LEAF_NEXT)
    r = q * LEAF_W + LEAF_LOOPS
    for w in range(3):
        leaves[r + w] = 0
    for b in range(32, 128):
        if following[256 * q + b] == q:
            leaves[r + (b >> 5) - 1] |= 1 << (b & 31)
    leaves[r + 3] = 1
    return 0


@entry("int64(int64, int32[::1])")
def build_trie(t: Any, order: Any) -> Any:
    """Writes the main trie of the vocabulary's tokens, taken in `order` (sorted by bytes).

    Empty tokens must not be in `order`. Returns the number of nodes, or NO_ROOM.
    """
    counts, trie, edges, tokens = view(t, TABLE), view(t, TRIE), view(t, TRIE_EDGES), view(t, TRIE_TOKENS)
    end, path, offsets = view(t, TRIE_END), view(t, TRIE_TEMP), view(t, OFFSETS)
    # First the nodes in preorder: TRIE[., 0] counts children for now, path holds the open nodes by depth.
    nodes, entries, depth = 1, 0, 0
    trie[0], trie[1], path[0] = 0, 0, 0
    previous_at, previous_end, longest = 0, 0, 0
    for k in range(len(order)):
        token = order[k]
        at, stop = offsets[token], offsets[token + 1]
        common = 0
        limit = min(stop - at, previous_end - previous_at)
        while common < limit and byte_of(t, previous_at + common) == byte_of(t, at + common):
            common += 1
        if 2 * (nodes + stop - at + 1) > size(t, TRIE) or 2 * (entries + 1) > size(t, TRIE_TOKENS):
            return NO_ROOM
        while depth > common:
            end[path[depth]] = nodes
            depth -= 1
        while depth < stop - at:
            trie[2 * path[depth]] += 1
            depth += 1
            path[depth] = nodes
            trie[2 * nodes] = 0
            trie[2 * nodes + 1] = entries
            nodes += 1
        tokens[2 * entries] = token
        tokens[2 * entries + 1] = 0
        entries += 1
        longest = max(longest, stop - at)
        previous_at, previous_end = at, stop
    while depth >= 0:
        end[path[depth]] = nodes
        depth -= 1
    if nodes > size(t, TRIE_EDGES):
        return NO_ROOM
    # Then the edges: node 0's are the children counted, in order of their numbers, which is order of bytes.
    total = 0
    for node in range(nodes):
        n = trie[2 * node] + 0
        trie[2 * node] = total
        total += n
    trie[2 * nodes], trie[2 * nodes + 1] = total, entries
    for node in range(nodes):
        child = node + 1
        for e in range(trie[2 * node], trie[2 * node + 2]):
            edges[e] = child << 8
            child = end[child]
    # The byte of an edge is that of any token of the child's subtree at the child's depth.
    path[0] = 0
    for node in range(nodes):
        for e in range(trie[2 * node], trie[2 * node + 2]):
            child = edges[e] >> 8
            path[child] = path[node] + 1
            token = tokens[2 * trie[2 * child + 1]]
            edges[e] |= byte_of(t, offsets[token] + path[node])
    counts[N_TRIE], counts[N_TRIE_EDGES], counts[N_TRIE_TOKENS], counts[LONGEST] = nodes + 1, total, entries, longest
    describe_below(t, nodes)
    return nodes


@entry("int64(int64, int64)")
def make_row(t: Any, q: Any) -> Any:
    """Writes the row of leaf state q; in TRIE_TEMP from 4 on, the places where the leaf may be left: how many.

    A place is (main trie node, characters so far | ESCAPED). A subtree all of whose bytes lead a state back to itself
    is taken whole: most of the vocabulary, where most characters are alike. Where no character is refused for a
    while, the row begins as that of any JSON string (IN_ROW): only what closes the string is walked, and tokens that
    are longer than that while. A row that is there already stays as it is. NO_ROOM if the table or scratch is full.
    """
    counts, leaves, following, rows = view(t, TABLE), view(t, LEAVES), view(t, LEAF_NEXT), view(t, ROWS)
    trie, edges, tokens, temp = view(t, TRIE), view(t, TRIE_EDGES), view(t, TRIE_TOKENS), view(t, TRIE_TEMP)
    below, end = view(t, BELOW), view(t, TRIE_END)
    words, row = counts[T_WORDS] + 0, counts[N_ROWS] + 0
    if words * (row + 1) > size(t, ROWS) or expand(t, q) < 0:
        return NO_ROOM
    base = words * row
    quoted = LEAF_BOUNDARY | LEAF_CLOSES
    # The row of any JSON string says what a token spells from between two characters: no use inside one.
    free = (counts[FREE_ROW] - 1) * words if leaves[q * LEAF_W + LEAF_FLAGS] & quoted == quoted else -1
    whole = free >= 0 and leaves[q * LEAF_W + LEAF_FLAGS] >> LEAF_SAFE >= LONG
    shared = whole and leaves[q * LEAF_W + LEAF_FLAGS] >> LEAF_SAFE >= below[3] & (OTHERS - 1)
    if not shared:
        for w in range(words):
            rows[base + w] = rows[free + w] if whole else 0
    # The walk's stack stands at the far end of the scratch and grows down: (node, leaf state, characters).
    places, top, far, room = 0, 1, size(t, TRIE_TEMP), 0
    temp[far - 3], temp[far - 2], temp[far - 1] = 0, q, IN_ROW if whole else 0
    # What is known of the state met last: the next one is mostly the same.
    last, flags, need, done, escape, more = -1, 0, 0, False, False, False
    # A token may stay inside while as many characters must still follow as after any.
    dfas, at = view(t, DFAS), view(t, MACHINES)[2 * leaves[q * LEAF_W + LEAF_MACHINE] + 1] + 0
    farthest = 0
    for k in range(dfas[at]):
        farthest = max(farthest, dfas[at + 3 + 2 * dfas[at + 2] + 128 + dfas[at] + k])
    while top > 0:
        at = far - 3 * top
        node, state, chars = temp[at] + 0, temp[at + 1] + 0, temp[at + 2] + 0
        top -= 1
        here = chars + (1 if leaves[state * LEAF_W + LEAF_FLAGS] & LEAF_BOUNDARY else 0)
        in_row, safe = chars & IN_ROW, leaves[state * LEAF_W + LEAF_FLAGS] >> LEAF_SAFE
        for e in range(trie[2 * node], trie[2 * node + 2]):
            edge = edges[e]
            child = edge >> 8
            if in_row and edge & 255 != 34 and below[4 * child] & QUOTE_BELOW == 0:
                if below[4 * child + 3] & (OTHERS - 1) < safe:
                    continue
            after = following[256 * state + (edge & 255)]
            if after < 0:
                if in_row and not shared:
                    for i in range(trie[2 * child + 1], trie[2 * end[child] + 1]):
                        rows[base + (tokens[2 * i] >> 5)] &= ~(1 << (tokens[2 * i] & 31))
                continue
            if after != last:
                r = after * LEAF_W
                if leaves[r + LEAF_FLAGS] & LEAF_EXPANDED == 0 and expand(t, after) < 0:
                    return NO_ROOM
                if leaves[r + LEAF_LOOPS + 3] == 0:
                    find_loops(t, after)
                last, flags, need = after, leaves[r + LEAF_FLAGS] + 0, leaves[r + LEAF_NEED] + 0
                done, escape = leaves[r + LEAF_DECODER] >> KIND == DONE, leaves[r + LEAF_DECODER] >> KIND == ESCAPE
                more = leaves[r + LEAF_ALLOWED] > 0
            count = chars if done else here
            if escape:
                count |= ESCAPED
            if flags & LEAF_EXITS:
                if 4 + 2 * (places + 1) + 3 * (top + 2) > far:
                    return NO_ROOM
                temp[4 + 2 * places], temp[5 + 2 * places] = child, count & ~IN_ROW
                places += 1
            elif in_row:
                pass
            elif free >= 0 and flags & quoted == quoted and flags >> LEAF_SAFE >= LONG:
                for i in range(trie[2 * child + 1], trie[2 * end[child] + 1]):
                    token = tokens[2 * i]
                    rows[base + (token >> 5)] |= rows[free + (token >> 5)] & 1 << (token & 31)
                room = max(room, (count & (ESCAPED - 1)) + (below[4 * child + 3] & (OTHERS - 1)) + farthest)
                count |= IN_ROW
            elif more and after == state:
                r, k = after * LEAF_W + LEAF_LOOPS, 4 * child
                strange = (below[k] & ~leaves[r]) | (below[k + 1] & ~leaves[r + 1]) | (below[k + 2] & ~leaves[r + 2])
                if strange == 0 and below[k + 3] & OTHERS == 0:
                    for i in range(trie[2 * child + 1], trie[2 * end[child] + 1]):
                        rows[base + (tokens[2 * i] >> 5)] |= 1 << (tokens[2 * i] & 31)
                    room = max(room, (count & (ESCAPED - 1)) + below[k + 3] + need)
                    continue
            if not done and count & IN_ROW == 0:
                for i in range(trie[2 * child + 1], trie[2 * child + 3]):
                    rows[base + (tokens[2 * i] >> 5)] |= 1 << (tokens[2 * i] & 31)
                if trie[2 * child + 1] < trie[2 * child + 3]:
                    room = max(room, (count & (ESCAPED - 1)) + need)
            if more and trie[2 * child] < trie[2 * child + 2]:
                if 4 + 2 * places + 3 * (top + 2) > far:
                    return NO_ROOM
                top += 1
                at = far - 3 * top
                temp[at], temp[at + 1], temp[at + 2] = child, after, count
    if leaves[q * LEAF_W + LEAF_ROW] >= 0:  # only the places were asked for
        return places
    if shared:
        row, room = counts[FREE_ROW] - 1, (below[3] & (OTHERS - 1)) + farthest
    else:
        counts[N_ROWS] = row + 1
        if whole:
            room = (below[3] & (OTHERS - 1)) + farthest
    leaves[q * LEAF_W + LEAF_ROOM] = room
    leaves[q * LEAF_W + LEAF_ROW] = row  # last: other threads read all that belongs to a row once they see it
    return places


@inlined("int64(int64, int64, int64)")
def child_of(t: Any, node: Any, b: Any) -> Any:
    """The child of a trie node by byte b, or -1."""
    trie, edges = view(t, TRIE), view(t, TRIE_EDGES)
    low, high = trie[2 * node] + 0, trie[2 * node + 2] + 0
    while low < high:
        middle = (low + high) >> 1
        if edges[middle] & 255 < b:
            low = middle + 1
        else:
            high = middle
    return edges[low] >> 8 if low < trie[2 * node + 2] and edges[low] & 255 == b else -1


@entry("int64(int64, int64, int64, int64)")
def make_rest(t: Any, q: Any, places: Any, budget: Any) -> Any:
    """Merges what follows the `places` that `make_row` left in TRIE_TEMP: the root, -2 if beyond budget, NO_ROOM.

    The merged trie is built breadth first: a node of it is a list of (main trie node, characters).
    """
    counts, leaves, trie, edges = view(t, TABLE), view(t, LEAVES), view(t, TRIE), view(t, TRIE_EDGES)
    tokens, temp, end = view(t, TRIE_TOKENS), view(t, TRIE_TEMP), view(t, TRIE_END)
    total = 0
    for p in range(places):
        node = temp[4 + 2 * p]
        total += trie[2 * end[node] + 1] - trie[2 * node + 1]
    if total > budget:
        leaves[q * LEAF_W + LEAF_REST] = -2
        return -2
    far = size(t, TRIE_TEMP)
    root, node, queued = counts[N_TRIE] + 0, counts[N_TRIE] + 0, counts[N_TRIE] + 1
    n_edges, n_tokens = counts[N_TRIE_EDGES] + 0, counts[N_TRIE_TOKENS] + 0
    # TRIE_TEMP: lists of (node, chars), each ended by -1; read from `read`, written at `write`.
    write = 4 + 2 * places
    temp[write] = -1
    read, write = 4, write + 1
    while node < queued:
        if 2 * (queued + 258) > size(t, TRIE) or n_edges + 256 > size(t, TRIE_EDGES):
            return NO_ROOM
        trie[2 * node], trie[2 * node + 1] = n_edges, n_tokens
        at = read
        low, high = 255, 0
        while temp[at] >= 0:
            m = temp[at] + 0
            # At the root stand the places themselves: a token that ends there is in the row, unless the leaf is done.
            if node > root or leaves[q * LEAF_W + LEAF_FLAGS] & LEAF_CLOSES:
                for k in range(trie[2 * m + 1], trie[2 * m + 3]):
                    if 2 * (n_tokens + 1) > size(t, TRIE_TOKENS):
                        return NO_ROOM
                    tokens[2 * n_tokens], tokens[2 * n_tokens + 1] = tokens[2 * k], temp[at + 1]
                    n_tokens += 1
            if trie[2 * m] < trie[2 * m + 2]:
                low, high = min(low, edges[trie[2 * m]] & 255), max(high, edges[trie[2 * m + 2] - 1] & 255)
            at += 2
        for b in range(low, high + 1):
            first = write
            k = read
            while temp[k] >= 0:
                child = child_of(t, temp[k], b)
                if child >= 0:
                    if write + 3 > far:
                        return NO_ROOM
                    temp[write], temp[write + 1] = child, temp[k + 1]
                    write += 2
                k += 2
            if write > first:
                temp[write] = -1
                write += 1
                edges[n_edges] = queued << 8 | b
                n_edges += 1
                queued += 1
        read = at + 1
        node += 1
    trie[2 * node], trie[2 * node + 1] = n_edges, n_tokens
    counts[N_TRIE], counts[N_TRIE_EDGES], counts[N_TRIE_TOKENS] = node + 1, n_edges, n_tokens
    leaves[q * LEAF_W + LEAF_REST_END] = node
    leaves[q * LEAF_W + LEAF_REST] = root
    return root


@entry("int64(int64, int64)")
def make_order(t: Any, q: Any) -> Any:
    """Orders the tokens of q's row by the room that each needs: characters, and what must follow them.

    Writes ROOMS + 1 offsets and the tokens into ORDERS: where, or NO_ROOM. The last room stands for all beyond it.
    """
    counts, leaves, following = view(t, TABLE), view(t, LEAVES), view(t, LEAF_NEXT)
    trie, edges, tokens = view(t, TRIE), view(t, TRIE_EDGES), view(t, TRIE_TOKENS)
    temp, orders = view(t, TRIE_TEMP), view(t, ORDERS)
    base, far = counts[N_ORDERS] + 0, size(t, TRIE_TEMP)
    n, top = 0, 1
    temp[far - 3], temp[far - 2], temp[far - 1] = 0, q, 0
    while top > 0:
        at = far - 3 * top
        node, state, chars = temp[at] + 0, temp[at + 1] + 0, temp[at + 2] + 0
        top -= 1
        if leaves[state * LEAF_W + LEAF_FLAGS] & LEAF_BOUNDARY:
            chars += 1
        for e in range(trie[2 * node], trie[2 * node + 2]):
            child, after = edges[e] >> 8, following[256 * state + (edges[e] & 255)]
            # A row that began as that of any string was made without a look at most states.
            if after >= 0 and leaves[after * LEAF_W + LEAF_FLAGS] & LEAF_EXPANDED == 0 and expand(t, after) < 0:
                return NO_ROOM
            if after < 0 or leaves[after * LEAF_W + LEAF_DECODER] >> KIND == DONE:
                continue
            if 4 + 2 * (n + trie[2 * child + 3] - trie[2 * child + 1]) + 3 * (top + 2) > far:
                return NO_ROOM
            for k in range(trie[2 * child + 1], trie[2 * child + 3]):
                temp[4 + 2 * n] = tokens[2 * k]
                temp[5 + 2 * n] = min(chars + leaves[after * LEAF_W + LEAF_NEED], ROOMS - 1)
                n += 1
            top += 1
            at = far - 3 * top
            temp[at], temp[at + 1], temp[at + 2] = child, after, chars
    if base + ROOMS + 1 + n > size(t, ORDERS):
        return NO_ROOM
    for room in range(ROOMS + 1):
        orders[base + room] = 0
    for k in range(n):
        orders[base + temp[5 + 2 * k] + 1] += 1
    for room in range(ROOMS):
        orders[base + room + 1] += orders[base + room]
    for k in range(n):
        room = base + temp[5 + 2 * k]
        orders[base + ROOMS + 1 + orders[room]] = temp[4 + 2 * k]
        orders[room] += 1
    for room in range(ROOMS, 0, -1):
        orders[base + room] = orders[base + room - 1]
    orders[base] = 0
    counts[N_ORDERS] = base + ROOMS + 1 + n
    leaves[q * LEAF_W + LEAF_ORDER] = base
    return base
