"""Quoted subtrees: the parts of the trie below an opening quote, shortened for strings of any characters (kernels).

Where a value may be a string, a walk of the trie passes its opening quote in tokens such as `"` or ` "`. Most tokens
below stay inside the string, whatever follows it. So each such node with many tokens below has a copy, at whose root
all tokens are listed that stay inside, and whose edges lead only to the closing quotes, where the main trie continues.

The *closing paths* are such a copy of the whole trie, for texts that begin inside a string. A token closes a string
only at their ends, whatever characters the string may have: at some 190 nodes in a vocabulary of 128k.

Only the owner of the table (`vocabulary.mask_table`, under a lock) calls `write_quoted_subtrees` and `list_closings`.
"""

from __future__ import annotations

from typing import Any

from .context_views import load_acquire, size, store_release, view
from .jit.compilation import entry, kernel
from .leaves import expand_leaf
from .program_layout import ARG_FINITE, ARG_HIGH, ARG_LOW, LEAF, OTHER
from .vocabulary_trie import TABLE_IS_FULL

from .context_layout import (  # isort: skip
    CODE, CONFIGS, LEAF_NEXT, LEAVES, N_TRIE, N_TRIE_EDGES, N_TRIE_TOKENS, QUOTED, SETS, TABLE, TRIE, TRIE_EDGES,
    TRIE_END, TRIE_TEMP, TRIE_TOKENS,
)  # fmt: skip
from .record_layout import (  # isort: skip
    CONFIG_EXTRA, CONFIG_PC, CONFIG_STATE, CONFIG_W, OPEN_NAME, SET_COUNT, SET_FIRST, SET_FLAGS, SET_W,
)  # fmt: skip
from .table_layout import (  # isort: skip
    DESCENT_CHARACTERS, DESCENT_NODE, DESCENT_STATE, DESCENT_W, DONE, ENTRY_CHARACTERS, ENTRY_TOKEN, ENTRY_W, ESCAPE,
    ESCAPED, KIND, LEAF_BOUNDARY, LEAF_DECODER, LEAF_EXPANDED, LEAF_FLAGS, LEAF_W, MERGED_CHARACTERS, MERGED_FIRST,
    MERGED_NODE, MERGED_W, MOST_QUOTED, QUOTED_CLOSING, QUOTED_COPY, QUOTED_COUNT, QUOTED_FIRST, QUOTED_NODE,
    QUOTED_STATE, QUOTED_W, TRIE_FIRST_EDGE, TRIE_FIRST_TOKEN, TRIE_W,
)  # fmt: skip

QUOTE = 34
LEAST_TOKENS = 8
"""Least number of tokens below a node that has a copy."""
REFUSED, CLOSED, PASSED = -1, -2, -3
"""In place of a leaf state: after a refused byte, after the closing quote, and below such nodes."""
STAYS, LEADS = 0, 1
"""Whether a node inside the string leads to a closing quote."""
NODE_W = 3
NODE_STATE, NODE_LEADS, NODE_QUEUE = 0, 1, 2
"""TRIE_TEMP: a record for each node of the subtree. The queue is independent of the node."""


@kernel("int64(int64, int64, int64)")
def read_states(t: Any, root: Any, q: Any) -> Any:
    """Write the leaf state of each node below `root`, where the leaf state is q, to TRIE_TEMP, and whether it leads to
    a closing quote. Return 0, or TABLE_IS_FULL.
    """
    leaves, transitions, trie = view(t, LEAVES), view(t, LEAF_NEXT), view(t, TRIE)
    edges, temp, end = view(t, TRIE_EDGES), view(t, TRIE_TEMP), view(t, TRIE_END)
    stop = end[root] + 0
    for k in range(stop - root):
        temp[NODE_W * k + NODE_STATE], temp[NODE_W * k + NODE_LEADS] = PASSED, STAYS
    temp[NODE_STATE] = q
    for node in range(root, stop):  # in preorder: parents before children
        state = temp[NODE_W * (node - root) + NODE_STATE] + 0
        if state < 0:
            continue
        if leaves[state * LEAF_W + LEAF_FLAGS] & LEAF_EXPANDED == 0 and expand_leaf(t, state) < 0:
            return TABLE_IS_FULL
        for e in range(trie[TRIE_W * node + TRIE_FIRST_EDGE], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE]):
            after = transitions[256 * state + (edges[e] & 255)] + 0
            if after >= 0 and leaves[after * LEAF_W + LEAF_DECODER] >> KIND == DONE:
                after = CLOSED
            temp[NODE_W * ((edges[e] >> 8) - root) + NODE_STATE] = after
    for node in range(stop - 1, root - 1, -1):
        for e in range(trie[TRIE_W * node + TRIE_FIRST_EDGE], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE]):
            child = NODE_W * ((edges[e] >> 8) - root)
            if temp[child + NODE_STATE] == CLOSED or temp[child + NODE_LEADS] == LEADS:
                temp[NODE_W * (node - root) + NODE_LEADS] = LEADS
    return 0


@kernel("int64(int64, int64, int64)")
def write_copy(t: Any, root: Any, lists_tokens: Any) -> Any:
    """Append the copy of the subtree of `root`, after `read_states`. Return the node of its root, or TABLE_IS_FULL.

    lists_tokens: whether the tokens that stay inside are listed at its root.
    """
    counts, trie, edges, tokens = view(t, TABLE), view(t, TRIE), view(t, TRIE_EDGES), view(t, TRIE_TOKENS)
    temp, end = view(t, TRIE_TEMP), view(t, TRIE_END)
    first, n_edges, n_tokens = counts[N_TRIE] + 0, counts[N_TRIE_EDGES] + 0, counts[N_TRIE_TOKENS] + 0
    stop = end[root] + 0
    below = trie[TRIE_W * stop + TRIE_FIRST_TOKEN] - trie[TRIE_W * root + TRIE_FIRST_TOKEN] if lists_tokens else 0
    most = stop - root
    if TRIE_W * (first + most + 2) > size(t, TRIE) or n_edges + most > size(t, TRIE_EDGES):
        return TABLE_IS_FULL
    if ENTRY_W * (n_tokens + below) > size(t, TRIE_TOKENS):
        return TABLE_IS_FULL
    trie[TRIE_W * first + TRIE_FIRST_TOKEN] = n_tokens
    for node in range(root + 1, stop if lists_tokens else root):
        if temp[NODE_W * (node - root) + NODE_STATE] >= 0:
            for k in range(trie[TRIE_W * node + TRIE_FIRST_TOKEN], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_TOKEN]):
                tokens[ENTRY_W * n_tokens + ENTRY_TOKEN] = tokens[ENTRY_W * k + ENTRY_TOKEN]
                tokens[ENTRY_W * n_tokens + ENTRY_CHARACTERS] = 0
                n_tokens += 1
    temp[NODE_QUEUE] = root
    done, added = 0, 1
    while done < added:
        node = temp[NODE_W * done + NODE_QUEUE] + 0
        trie[TRIE_W * (first + done) + TRIE_FIRST_EDGE] = n_edges
        done += 1
        trie[TRIE_W * (first + done) + TRIE_FIRST_TOKEN] = n_tokens
        for e in range(trie[TRIE_W * node + TRIE_FIRST_EDGE], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE]):
            child = edges[e] >> 8
            if temp[NODE_W * (child - root) + NODE_STATE] == CLOSED:
                edges[n_edges] = edges[e]
                n_edges += 1
            elif temp[NODE_W * (child - root) + NODE_LEADS] == LEADS:
                edges[n_edges] = (first + added) << 8 | edges[e] & 255
                n_edges += 1
                temp[NODE_W * added + NODE_QUEUE] = child
                added += 1
    trie[TRIE_W * (first + done) + TRIE_FIRST_EDGE] = n_edges
    counts[N_TRIE], counts[N_TRIE_EDGES], counts[N_TRIE_TOKENS] = first + done + 1, n_edges, n_tokens
    return first


@entry("int64(int64, int64)")
def write_quoted_subtrees(t: Any, q: Any) -> Any:
    """Write the copies of the subtrees below a quote, for strings of any characters, and the closing paths. Return the
    number of copies, or TABLE_IS_FULL.

    q: the leaf state after the opening quote.
    """
    trie, edges, quoted, end = view(t, TRIE), view(t, TRIE_EDGES), view(t, QUOTED), view(t, TRIE_END)
    count = 0
    for e in range(trie[TRIE_W * end[0] + TRIE_FIRST_EDGE]):
        node = edges[e] >> 8
        below = trie[TRIE_W * end[node] + TRIE_FIRST_TOKEN] - trie[TRIE_W * node + TRIE_W + TRIE_FIRST_TOKEN]
        if edges[e] & 255 != QUOTE or below < LEAST_TOKENS or count == MOST_QUOTED:
            continue
        if NODE_W * (end[node] - node) > size(t, TRIE_TEMP) or read_states(t, node, q) < 0:
            return TABLE_IS_FULL
        copy = write_copy(t, node, 1)
        if copy < 0:
            return TABLE_IS_FULL
        record = QUOTED_FIRST + QUOTED_W * count
        quoted[record + QUOTED_NODE], quoted[record + QUOTED_COPY] = node, copy
        count += 1
    if NODE_W * end[0] <= size(t, TRIE_TEMP):
        if read_states(t, 0, q) < 0:
            return TABLE_IS_FULL
        paths = write_copy(t, 0, 0)
        if paths < 0:
            return TABLE_IS_FULL
        quoted[QUOTED_CLOSING] = paths
    quoted[QUOTED_STATE] = q
    store_release(quoted, QUOTED_COUNT, count)
    return count


@kernel("int64(int64, int64)")
def list_closings(t: Any, q: Any) -> Any:
    """Write the exits of leaf state q to TRIE_TEMP, as `make_row` does. Return their number, or TABLE_IS_FULL.

    q: between two characters of a JSON string. There are closing paths.
    """
    leaves, transitions, trie, edges = view(t, LEAVES), view(t, LEAF_NEXT), view(t, TRIE), view(t, TRIE_EDGES)
    temp, end_of_temp, main = view(t, TRIE_TEMP), size(t, TRIE_TEMP), view(t, TRIE_END)[0] + 0
    n_exits, top = 0, 1
    at = end_of_temp - DESCENT_W
    temp[at + DESCENT_NODE], temp[at + DESCENT_STATE] = view(t, QUOTED)[QUOTED_CLOSING], q
    temp[at + DESCENT_CHARACTERS] = 0
    while top > 0:
        at = end_of_temp - DESCENT_W * top
        node, state = temp[at + DESCENT_NODE] + 0, temp[at + DESCENT_STATE] + 0
        before = temp[at + DESCENT_CHARACTERS] + 0  # characters, and ESCAPED
        top -= 1
        if leaves[state * LEAF_W + LEAF_FLAGS] & LEAF_EXPANDED == 0 and expand_leaf(t, state) < 0:
            return TABLE_IS_FULL
        characters = before + (1 if leaves[state * LEAF_W + LEAF_FLAGS] & LEAF_BOUNDARY else 0)
        for e in range(trie[TRIE_W * node + TRIE_FIRST_EDGE], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE]):
            child, after = edges[e] >> 8, transitions[256 * state + (edges[e] & 255)] + 0
            if after < 0:
                continue
            if child < main:  # after the closing quote, the main trie continues
                if MERGED_FIRST + MERGED_W * (n_exits + 1) > end_of_temp // 2:
                    return TABLE_IS_FULL
                k = MERGED_FIRST + MERGED_W * n_exits
                temp[k + MERGED_NODE], temp[k + MERGED_CHARACTERS] = child, before
                n_exits += 1
            else:
                if DESCENT_W * (top + 2) > end_of_temp // 4:
                    return TABLE_IS_FULL
                is_escape = leaves[after * LEAF_W + LEAF_DECODER] >> KIND == ESCAPE
                top += 1
                at = end_of_temp - DESCENT_W * top
                temp[at + DESCENT_NODE], temp[at + DESCENT_STATE] = child, after
                temp[at + DESCENT_CHARACTERS] = characters | (ESCAPED if is_escape else 0)
    return n_exits


@kernel("int64(int64, int64, int64)")
def find_quoted_subtree(c: Any, node: Any, s: Any) -> Any:
    """Return the copy of the subtree of a trie node; the node itself if it has none, or if set s is not a string, or an
    undeclared key that is unknown, of any characters alone.
    """
    sets, configs, code, quoted = view(c, SETS), view(c, CONFIGS), view(c, CODE), view(c, QUOTED)
    if sets[s * SET_W + SET_COUNT] != 1 or sets[s * SET_W + SET_FLAGS] != 0:
        return node
    config = CONFIG_W * sets[s * SET_W + SET_FIRST]
    pc, count = configs[config + CONFIG_PC] + 0, load_acquire(quoted, QUOTED_COUNT)
    if count == 0 or configs[config + CONFIG_STATE] != quoted[QUOTED_STATE]:
        return node
    if code[pc] == LEAF:
        is_free = code[pc + ARG_LOW] == 0 and code[pc + ARG_HIGH] < 0
    else:
        is_free = code[pc] == OTHER and code[pc + ARG_FINITE] == 0 and configs[config + CONFIG_EXTRA] == OPEN_NAME
    if not is_free:
        return node
    for k in range(QUOTED_FIRST, QUOTED_FIRST + QUOTED_W * count, QUOTED_W):
        if quoted[k + QUOTED_NODE] == node:
            return quoted[k + QUOTED_COPY]
    return node
