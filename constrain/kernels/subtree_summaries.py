"""Summaries of subtrees and of leaf states, by which a row takes whole subtrees of the trie without a walk (kernels).

BELOW has, for each subtree of the main trie, the bytes in it: those of ASCII, and the first bytes of characters in
UTF-8. Subtrees are in the order of the edges that lead to them: a walk reads those of a node one after the other, and
does not wait for memory at each child. A leaf state has *staying bytes* of the same two kinds, none of which it refuses
for a number of bytes, nor any character that they begin. Where the former are among the latter, all tokens of the
subtree stay inside the leaf.

Only the owner of the table (`vocabulary.mask_table`, under a lock) calls these kernels.
"""

from __future__ import annotations

from typing import Any

from .context_layout import BELOW, DFAS, LEAF_NEXT, LEAVES, MACHINES, TRIE, TRIE_EDGES, TRIE_TEMP
from .context_views import size, view
from .jit.compilation import inlined, kernel

from .table_layout import (  # isort: skip
    BELOW_HEIGHT, BELOW_W, BYTES, HEIGHT, JSON_STRING, KIND, LEAF_DECODER, LEAF_EXITS, LEAF_FLAGS, LEAF_MACHINE,
    LEAF_NEED, LEAF_STATE, LEAF_STAYING, LEAF_STAYING_DEPTH, LEAF_STAYING_NEED, LEAF_W, MACHINE_DFA, MACHINE_MODE,
    MACHINE_W, NUMBER, PLAIN, TRIE_FIRST_EDGE, TRIE_W, UTF8, WELL_FORMED,
)  # fmt: skip

# States of a decoder of UTF-8 (RFC 3629 section 4): between characters; 1 to 3 bytes left; after E0, ED, F0 and F4,
# which restrict the next byte.
BOUNDARY, LEFT_1, LEFT_2, LEFT_3, AFTER_E0, AFTER_ED, AFTER_F0, AFTER_F4, DECODERS = 0, 1, 2, 3, 4, 5, 6, 7, 8
MOST_STATES = 24
"""Most states of a DFA that are followed. Those of a counted pattern form a chain: one for each character."""
SHORT = 4
"""Bytes for which self-loops are preferred, although fewer bytes stay in the state itself."""


@inlined("int64(int64, int64)")
def step_utf8(state: Any, b: Any) -> Any:
    """Return the state of the decoder of UTF-8 after byte b, -1 if it is ill-formed or a control character."""
    if state == BOUNDARY:
        if b < 0x80:
            return BOUNDARY if b >= 32 else -1
        if b < 0xC2 or b > 0xF4:
            return -1
        if b < 0xE0:
            return LEFT_1
        if b < 0xF0:
            return AFTER_E0 if b == 0xE0 else AFTER_ED if b == 0xED else LEFT_2
        return AFTER_F0 if b == 0xF0 else AFTER_F4 if b == 0xF4 else LEFT_3
    least = 0xA0 if state == AFTER_E0 else 0x90 if state == AFTER_F0 else 0x80
    most = 0x9F if state == AFTER_ED else 0x8F if state == AFTER_F4 else 0xBF
    if b < least or b > most:
        return -1
    if state == LEFT_3 or state == AFTER_F0 or state == AFTER_F4:
        return LEFT_2
    return BOUNDARY if state == LEFT_1 else LEFT_1


@inlined("int64(int64)")
def bit_of(b: Any) -> Any:
    """Return the place of byte b in the bit sets of BELOW and LEAF_STAYING, -1 for those that are not in them."""
    if 32 <= b < 128:
        return b - 32
    return b - 0xC0 + 96 if b >= 0xC0 else -1


@kernel("int64(int64, int64)")
def summarise_subtrees(t: Any, nodes: Any) -> Any:
    """Write BELOW for all nodes of the main trie, in reverse preorder: children before parents. Return 0."""
    trie, edges, below, temp = view(t, TRIE), view(t, TRIE_EDGES), view(t, BELOW), view(t, TRIE_TEMP)
    temp[nodes] = 0  # from `nodes` on: the place of the summary of each node
    for e in range(trie[TRIE_FIRST_EDGE], trie[TRIE_W * nodes + TRIE_FIRST_EDGE]):
        temp[nodes + (edges[e] >> 8)] = 1 + e
    for node in range(nodes - 1, -1, -1):
        r = BELOW_W * temp[nodes + node]
        for w in range(BELOW_W):
            below[r + w] = 0
        # A bit for each state of the decoder: whether nothing below is ill-formed from there.
        well_formed, height = (1 << DECODERS) - 1, 0
        for e in range(trie[TRIE_W * node + TRIE_FIRST_EDGE], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE]):
            b, child = edges[e] & 255, edges[e] >> 8
            for w in range(BELOW_HEIGHT):
                below[r + w] |= below[BELOW_W * (1 + e) + w]
            height = max(height, (below[BELOW_W * (1 + e) + BELOW_HEIGHT] & HEIGHT) + 1)
            if bit_of(b) >= 0:
                below[r + (bit_of(b) >> 5)] |= 1 << (bit_of(b) & 31)
            for state in range(DECODERS):
                after = step_utf8(state, b)
                if after < 0 or temp[child] >> after & 1 == 0:
                    well_formed &= ~(1 << state)
        temp[node] = well_formed
        below[r + BELOW_HEIGHT] = height | (WELL_FORMED if well_formed >> BOUNDARY & 1 else 0)
    return 0


@inlined("int64(int64)")
def first_byte(x: Any) -> Any:
    """Return the first byte of character x beyond ASCII in UTF-8, less 0xC0."""
    return x >> 6 if x < 0x800 else (0x20 | x >> 12) if x < 0x10000 else 0x30 | x >> 18


@inlined("int64(int64, int64, int64)")
def first_bytes(t: Any, at: Any, k: Any) -> Any:
    """Return the first bytes of the characters beyond ASCII in range k of the DFA at `at`, as bits from 0xC0 on."""
    dfas = view(t, DFAS)
    first = max(dfas[at + 3 + k] + 0, 0x80)
    last = dfas[at + 3 + k + 1] - 1 if k + 1 < dfas[at + 2] else 0x10FFFF
    if last < 0x80 or (first >= 0xD800 and last <= 0xDFFF):
        return 0
    return (2 << first_byte(last)) - (1 << first_byte(first))


@inlined("int64(int64, int64)")
def is_syntax(mode: Any, b: Any) -> Any:
    """Return whether byte b is no character of itself in a leaf of this mode: the quote and the backslash of JSON."""
    return 1 if mode != UTF8 and mode != BYTES and (b == 34 or b == 92) else 0


@kernel("int64(int64, int64, int64, int64)")
def list_symbols(t: Any, q: Any, at: Any, loops: Any) -> Any:
    """Write the bytes that leaf state q allows as its staying bytes, and their classes to the middle of TRIE_TEMP.

    at: its DFA. loops: only bytes that lead back to q. Return the number of classes; some may be equal.
    """
    leaves, dfas, temp = view(t, LEAVES), view(t, DFAS), view(t, TRIE_TEMP)
    r = q * LEAF_W
    mode = view(t, MACHINES)[MACHINE_W * leaves[r + LEAF_MACHINE] + MACHINE_MODE]
    n, classes, ranges, state = dfas[at], dfas[at + 1], dfas[at + 2], leaves[r + LEAF_STATE]
    ascii_class, class_of_range = at + 3 + 2 * ranges, at + 3 + ranges
    row = ascii_class + 128 + 2 * n + state * classes
    for w in range(BELOW_HEIGHT):
        leaves[r + LEAF_STAYING + w] = 0
    symbols, count, latest = size(t, TRIE_TEMP) // 2, 0, -1
    for b in range(32, 128):
        c = dfas[ascii_class + b] + 0
        if dfas[row + c] < 0 or is_syntax(mode, b) or (loops and dfas[row + c] != state):
            continue
        leaves[r + LEAF_STAYING + (bit_of(b) >> 5)] |= 1 << (bit_of(b) & 31)
        if c != latest:
            latest = c
            temp[symbols + count] = c
            count += 1
    if mode == BYTES:
        return count
    staying = 0
    for k in range(ranges):
        staying |= first_bytes(t, at, k)
    for k in range(ranges):
        after = dfas[row + dfas[class_of_range + k]]
        if after < 0 or (loops and after != state):
            staying &= ~first_bytes(t, at, k)
    for k in range(ranges):
        if first_bytes(t, at, k) & staying:
            temp[symbols + count] = dfas[class_of_range + k]
            count += 1
    leaves[r + LEAF_STAYING + 3], leaves[r + LEAF_STAYING + 4] = staying, staying >> 32
    return count


@kernel("int64(int64, int64)")
def list_number_loops(t: Any, q: Any) -> Any:
    """Write the bytes that lead from leaf state q of a number back to q as its staying bytes. Return 0."""
    leaves, transitions = view(t, LEAVES), view(t, LEAF_NEXT)
    for w in range(BELOW_HEIGHT):
        leaves[q * LEAF_W + LEAF_STAYING + w] = 0
    for b in range(32, 128):
        if transitions[256 * q + b] == q:
            leaves[q * LEAF_W + LEAF_STAYING + (bit_of(b) >> 5)] |= 1 << (bit_of(b) & 31)
    return 0


@inlined("int64(int64, int64)")
def count_scratch(t: Any, at: Any) -> Any:
    """Return the most words from the middle of TRIE_TEMP that `find_staying_bytes` writes for the DFA at `at`."""
    return 2 * (96 + view(t, DFAS)[at + 2]) + MOST_STATES


@kernel("int64(int64, int64)")
def find_staying_bytes(t: Any, q: Any) -> Any:
    """Write the staying bytes of leaf state q, which must be expanded if it is one of a number. Return 0.

    They are the bytes that q allows, and the number of bytes is found by following the DFA breadth first, but not
    through states in which the leaf may end between characters; or, if that is small, the bytes of self-loops. The
    caller provides the scratch (`count_scratch`).
    """
    leaves, dfas, temp = view(t, LEAVES), view(t, DFAS), view(t, TRIE_TEMP)
    r = q * LEAF_W
    machine = MACHINE_W * leaves[r + LEAF_MACHINE]
    mode, at = view(t, MACHINES)[machine + MACHINE_MODE] + 0, view(t, MACHINES)[machine + MACHINE_DFA] + 0
    leaves[r + LEAF_STAYING_DEPTH], leaves[r + LEAF_STAYING_NEED] = HEIGHT, leaves[r + LEAF_NEED]
    if leaves[r + LEAF_DECODER] >> KIND != PLAIN or leaves[r + LEAF_FLAGS] & LEAF_EXITS:
        for w in range(BELOW_HEIGHT):
            leaves[r + LEAF_STAYING + w] = 0
        return 0
    if mode == NUMBER:
        return list_number_loops(t, q)
    n, classes = dfas[at] + 0, dfas[at + 1] + 0
    accepting = at + 3 + 2 * dfas[at + 2] + 128
    distance, delta = accepting + n, accepting + 2 * n
    count = list_symbols(t, q, at, 0)
    symbols = size(t, TRIE_TEMP) // 2
    queue, known, done, depth = symbols + count, 1, 0, 0
    temp[queue] = leaves[r + LEAF_STATE]
    need, is_limited = dfas[distance + temp[queue]] + 0, False
    while done < known and not is_limited:
        layer = known
        for i in range(done, layer):
            for j in range(count if known <= MOST_STATES else 0):
                after = dfas[delta + temp[queue + i] * classes + temp[symbols + j]] + 0
                k = 0
                while k < known and temp[queue + k] != after:
                    k += 1
                if k == known:
                    temp[queue + known] = after
                    known += 1
        if known > MOST_STATES:
            is_limited = True
            break
        done, may_end = layer, False
        for i in range(layer, known):
            after = temp[queue + i] + 0
            need = max(need, dfas[distance + after])
            may_end = may_end or (mode != JSON_STRING and dfas[accepting + after] != 0)
            for j in range(count):
                is_limited = is_limited or dfas[delta + after * classes + temp[symbols + j]] < 0
        is_limited = is_limited or may_end
        depth += 0 if may_end else 1
    if is_limited and depth < SHORT:
        list_symbols(t, q, at, 1)
    else:
        leaves[r + LEAF_STAYING_DEPTH] = min(depth, HEIGHT - 1) if is_limited else HEIGHT
        leaves[r + LEAF_STAYING_NEED] = need
    return 0


@inlined("int64(int64, int64, int64)")
def stays_inside(t: Any, q: Any, e: Any) -> Any:
    """Return whether all tokens below edge e of the main trie stay inside the leaf from state q, by the summaries."""
    leaves, below = view(t, LEAVES), view(t, BELOW)
    r, k = q * LEAF_W, BELOW_W * (1 + e)
    if below[k + BELOW_HEIGHT] & WELL_FORMED == 0 or below[k + BELOW_HEIGHT] & HEIGHT > leaves[r + LEAF_STAYING_DEPTH]:
        return 0
    refused = 0
    for w in range(BELOW_HEIGHT):
        refused |= below[k + w] & ~leaves[r + LEAF_STAYING + w]
    return 1 if refused == 0 else 0
