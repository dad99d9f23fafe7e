"""Leaf states: the product of a decoder and a DFA over characters, expanded to bytes on demand (kernels).

A Dfa of `automata.dfa` reads characters. Text encodes a character in UTF-8 (RFC 3629), the inside of a JSON string
also by escapes (RFC 8259 section 7). A leaf state is a pair (decoder state, DFA state). Inside a character, the decoder
holds the range of code points that its remaining bytes can encode, and a byte is refused if the DFA accepts none of
them. If all of them lead to one DFA state, only that state is stored (the *uniform* kinds): so "any text" has a dozen
states, although there are a million characters.

`expand_leaf` writes the 256 transitions of one state. The table only grows, and only its owner
(`vocabulary.mask_table`, under a lock) calls these kernels.
"""

from __future__ import annotations

from typing import Any

from .context_layout import DFAS, LEAF_HASH, LEAF_NEXT, LEAVES, MACHINES, N_LEAVES, TABLE
from .context_views import size, store_release, view
from .interned_names import decode_escape, hex_value, mix_hash
from .jit.compilation import entry, inlined, kernel

from .table_layout import (  # isort: skip
    BYTES, DONE, ESCAPE, HEX, HEX_UNIFORM, HIGH, HIGH_ESCAPE, HIGH_ESCAPE_UNIFORM, HIGH_UNIFORM, JSON_STRING, KIND,
    LEAF_ALLOWED, LEAF_BOUNDARY, LEAF_BYTES, LEAF_BY_LENGTH, LEAF_CLOSES, LEAF_DECODER, LEAF_EXITS, LEAF_EXPANDED,
    LEAF_FLAGS, LEAF_GAP, LEAF_MACHINE, LEAF_NEED, LEAF_ROW, LEAF_SHORT, LEAF_SLOT, LEAF_STATE, LEAF_SUFFIXES, LEAF_W,
    LEFT, LOW, LOW_UNIFORM, MACHINE_DFA, MACHINE_MODE, MACHINE_W, NUMBER, PLAIN, RAW, RAW_UNIFORM, UTF8, VALUE,
    WIDE_LEAF,
)  # fmt: skip

DEAD_END, MIXED = -1, -2


@inlined("int64(int64, int64, int64)")
def pack_decoder(kind: Any, left: Any, value: Any) -> Any:
    """Return a decoder state packed into one int."""
    return kind << KIND | left << LEFT | value


@inlined("UniTuple(int64, 2)(int64)")
def pending_range(decoder: Any) -> Any:
    """Return the least and greatest number that a decoder state inside a character can still encode."""
    kind, left, value = decoder >> KIND, (decoder >> LEFT) & 7, decoder & VALUE
    if kind == RAW:
        return value << 6 * left, ((value + 1) << 6 * left) - 1
    if kind == HEX:
        return value << 4 * left, ((value + 1) << 4 * left) - 1
    if kind == HIGH or kind == HIGH_ESCAPE:
        return 0x10000 + (value << 10), 0x10000 + (value << 10) + 0x3FF
    if kind == LOW:
        digits = value & 0xFFF
        first, final = max(digits << 4 * left, 0xDC00), min(((digits + 1) << 4 * left) - 1, 0xDFFF)
        base = 0x10000 + (value >> 12 << 10) - 0xDC00
        return base + first, base + final
    return 0, 0x10FFFF


@kernel("int64(int64, int64, int64, int64, int64)")
def reach_states(t: Any, at: Any, state: Any, least: Any, most: Any) -> Any:
    """Return the state that the DFA at `at` reaches from `state` by every character in least .. most.

    Low half: that state, DEAD_END if all characters are refused, MIXED if they differ. High half: the least number of
    characters needed after any of them.
    """
    dfas = view(t, DFAS)
    n, classes, ranges = dfas[at], dfas[at + 1], dfas[at + 2]
    bounds = at + 3
    distance = bounds + 2 * ranges + 128 + n
    delta = distance + n
    low, high = 0, ranges  # binary search for the last range that begins at or before `least`
    while high - low > 1:
        middle = (low + high) >> 1
        if dfas[bounds + middle] <= least:
            low = middle
        else:
            high = middle
    target, need, some_die = DEAD_END, 0x3FFFFFFF, False
    for k in range(low, ranges):
        if dfas[bounds + k] > most:
            break
        after = dfas[delta + state * classes + dfas[bounds + ranges + k]]
        if after < 0:
            some_die = True
            continue
        need = min(need, dfas[distance + after])
        if target == DEAD_END:
            target = after
        elif target != after:
            target = MIXED
    if target >= 0 and some_die:
        target = MIXED
    return need << 32 | (target & 0xFFFFFFFF)


@kernel("int64(int64, int64, int64, int64)")
def count_needed(t: Any, at: Any, state: Any, decoder: Any) -> Any:
    """Return the least number of characters needed after the incomplete one of the decoder.

    Only characters that it can encode count: no overlong forms, no lone surrogates (RFC 3629 section 3).
    """
    kind, left, value = decoder >> KIND, (decoder >> LEFT) & 7, decoder & VALUE
    least, most = pending_range(decoder)
    if kind == RAW:
        if value == 0 and left >= 2:
            least = 0x800 if left == 2 else 0x10000
        if least < 0xD800 <= most:
            most = 0xD7FF
        return reach_states(t, at, state, least, min(most, 0x10FFFF)) >> 32
    if kind == HEX:
        need = reach_states(t, at, state, least, min(most, 0xFFFF)) >> 32
        first, final = max(least, 0xD800), min(most, 0xDBFF)
        if first > final:
            return need
        least, most = 0x10000 + ((first - 0xD800) << 10), 0x10000 + ((final - 0xD800) << 10) + 0x3FF
        return min(need, reach_states(t, at, state, least, most) >> 32)
    return reach_states(t, at, state, least, most) >> 32


@kernel("int64(int64, int64, int64, int64)")
def intern_leaf(t: Any, machine: Any, decoder: Any, state: Any) -> Any:
    """Intern the leaf state of a machine with a decoder state and a DFA state. Return its id, or -1: full."""
    counts, leaves, table, dfas = view(t, TABLE), view(t, LEAVES), view(t, LEAF_HASH), view(t, DFAS)
    last = size(t, LEAF_HASH) - 1
    h = mix_hash(mix_hash(mix_hash(0, machine), decoder), state) & last
    while table[h] > 0:
        q = table[h] - 1
        r = q * LEAF_W
        is_equal = leaves[r + LEAF_MACHINE] == machine and leaves[r + LEAF_DECODER] == decoder
        if is_equal and leaves[r + LEAF_STATE] == state:
            return q
        h = (h + 1) & last
    q = counts[N_LEAVES]
    if LEAF_W * (q + 1) > size(t, LEAVES) or 256 * (q + 1) > size(t, LEAF_NEXT) or 2 * q > last:
        return -1
    machines = view(t, MACHINES)
    mode, at = machines[MACHINE_W * machine + MACHINE_MODE], machines[MACHINE_W * machine + MACHINE_DFA]
    n, ranges = dfas[at], dfas[at + 2]
    accepting = at + 3 + 2 * ranges + 128
    kind = decoder >> KIND
    r = q * LEAF_W
    flags = 0
    if kind == DONE or (kind == PLAIN and mode != JSON_STRING and dfas[accepting + state]):
        flags |= LEAF_EXITS
    if kind == PLAIN:
        flags |= LEAF_BOUNDARY
    if mode == JSON_STRING:
        flags |= LEAF_CLOSES
    flags |= dfas[accepting + 2 * n + n * dfas[at + 1] + state]
    need = 0
    if kind == PLAIN or kind == RAW_UNIFORM or kind == HEX_UNIFORM or HIGH_UNIFORM <= kind <= LOW_UNIFORM:
        need = dfas[accepting + n + state]
    elif kind != DONE:
        need = count_needed(t, at, state, decoder)
    for w in range(LEAF_W):
        leaves[r + w] = 0
    leaves[r + LEAF_MACHINE] = machine
    leaves[r + LEAF_DECODER] = decoder
    leaves[r + LEAF_STATE] = state
    leaves[r + LEAF_FLAGS] = flags
    leaves[r + LEAF_NEED] = need
    leaves[r + LEAF_ROW] = -1
    leaves[r + LEAF_SUFFIXES] = -1
    leaves[r + LEAF_BY_LENGTH] = leaves[r + LEAF_SHORT] = -1
    leaves[r + LEAF_SLOT] = h
    table[h] = q + 1
    counts[N_LEAVES] = q + 1
    return q


@inlined("int64(int64)")
def unpack_target(reached: Any) -> Any:
    """Return the state in the low half of a result of `reach_states`."""
    low = reached & 0xFFFFFFFF
    return low - 0x100000000 if low >= 0x80000000 else low


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def step_inside(t: Any, at: Any, state: Any, kinds: Any, left: Any, value: Any) -> Any:
    """Return decoder state << 32 | DFA state inside a character, -1 if no completion is accepted.

    kinds: kind << 8 | its uniform kind. left, value: of the decoder state, after the byte.
    """
    kind, uniform = kinds >> 8, kinds & 255
    decoder = pack_decoder(kind, left, value)
    least, most = pending_range(decoder)
    if kind == RAW:
        # No overlong forms, no surrogates, nothing beyond U+10FFFF (RFC 3629 section 3).
        is_clipped = False
        if left == 2 and value < 1:
            least, is_clipped = 0x800, True
        if left == 3 and value < 1:
            least, is_clipped = 0x10000, True
        if least <= 0xDFFF and most >= 0xD800:
            if least >= 0xD800:
                return -1
            most, is_clipped = 0xD7FF, True
        if most > 0x10FFFF:
            most, is_clipped = 0x10FFFF, True
        if least > most:
            return -1
        target = unpack_target(reach_states(t, at, state, least, most))
        if target == DEAD_END:
            return -1
        if target >= 0 and not is_clipped:
            return pack_decoder(uniform, left, 0) << 32 | target
        return decoder << 32 | state
    if kind == HEX:
        bmp_target = unpack_target(reach_states(t, at, state, least, min(most, 0xFFFF)))
        if most < 0xD800 or least > 0xDFFF:
            if bmp_target == DEAD_END:
                return -1
            if bmp_target >= 0:
                return pack_decoder(uniform, left, 0) << 32 | bmp_target
            return decoder << 32 | state
        astral_target = DEAD_END
        if least <= 0xDBFF:
            first, final = max(least, 0xD800), min(most, 0xDBFF)
            least, most = 0x10000 + ((first - 0xD800) << 10), 0x10000 + ((final - 0xD800) << 10) + 0x3FF
            astral_target = unpack_target(reach_states(t, at, state, least, most))
        return -1 if bmp_target == DEAD_END and astral_target == DEAD_END else decoder << 32 | state
    if least > most:
        return -1
    target = unpack_target(reach_states(t, at, state, least, most))
    if target == DEAD_END:
        return -1
    # A low surrogate must begin with the digits D and C .. F, so a uniform one is not reduced here.
    if target >= 0 and kind != LOW:
        return pack_decoder(uniform, left, 0) << 32 | target
    return decoder << 32 | state


@kernel("int64(int64, int64, int64, int64)")
def step_character(t: Any, at: Any, state: Any, x: Any) -> Any:
    """Return the pair (decoder state PLAIN, DFA state) after character x, or -1."""
    target = unpack_target(reach_states(t, at, state, x, x))
    return target if target >= 0 else -1  # decoder state PLAIN is 0


@kernel("int64(int64, int64, int64, int64, int64)")
def step_decoder(t: Any, mode: Any, at: Any, pair: Any, b: Any) -> Any:
    """Return the pair decoder state << 32 | DFA state after `pair` and byte b, or -1."""
    decoder, state = pair >> 32, pair & 0xFFFFFFFF
    kind, left, value = decoder >> KIND, (decoder >> LEFT) & 7, decoder & VALUE
    dfas = view(t, DFAS)
    if mode == BYTES:
        return step_character(t, at, state, b)
    if kind == PLAIN:
        if mode != UTF8:
            if b == 34:
                accepting = at + 3 + 2 * dfas[at + 2] + 128
                return pack_decoder(DONE, 0, 0) << 32 if mode == JSON_STRING and dfas[accepting + state] else -1
            if b == 92:
                any_target = unpack_target(reach_states(t, at, state, 0, 0x10FFFF))
                return -1 if any_target == DEAD_END else pack_decoder(ESCAPE, 0, 0) << 32 | state
            if b < 32:
                return -1
        if b < 128:
            ascii_class = at + 3 + 2 * dfas[at + 2]
            n, classes = dfas[at], dfas[at + 1]
            delta = ascii_class + 128 + 2 * n
            return dfas[delta + state * classes + dfas[ascii_class + b]]
        if 0xC2 <= b <= 0xDF:
            return step_inside(t, at, state, RAW << 8 | RAW_UNIFORM, 1, b & 31)
        if 0xE0 <= b <= 0xEF:
            return step_inside(t, at, state, RAW << 8 | RAW_UNIFORM, 2, b & 15)
        if 0xF0 <= b <= 0xF4:
            return step_inside(t, at, state, RAW << 8 | RAW_UNIFORM, 3, b & 7)
        return -1
    if kind == RAW or kind == RAW_UNIFORM:
        if b >> 6 != 2:
            return -1
        if kind == RAW_UNIFORM:
            return state if left == 1 else pack_decoder(RAW_UNIFORM, left - 1, 0) << 32 | state
        value = value << 6 | b & 63
        if left == 1:
            overlong = value < 0x80 or 0xD800 <= value <= 0xDFFF or value > 0x10FFFF
            return -1 if overlong else step_character(t, at, state, value)
        # Overlong three- and four-byte forms are detected at the second byte.
        if (left == 2 and value < 0x20) or (left == 3 and value < 0x10) or (left == 3 and value > 0x10F):
            return -1
        return step_inside(t, at, state, RAW << 8 | RAW_UNIFORM, left - 1, value)
    if kind == ESCAPE:
        if b == 117:
            return step_inside(t, at, state, HEX << 8 | HEX_UNIFORM, 4, 0)
        x = decode_escape(b)
        return step_character(t, at, state, x) if x >= 0 else -1
    if kind == HIGH or kind == HIGH_UNIFORM:
        return -1 if b != 92 else pack_decoder(kind + 1, 0, value) << 32 | state
    if kind == HIGH_ESCAPE:
        return -1 if b != 117 else pack_decoder(LOW, 4, value << 12) << 32 | state
    if kind == HIGH_ESCAPE_UNIFORM:
        return -1 if b != 117 else pack_decoder(LOW_UNIFORM, 4, 0) << 32 | state
    digit = hex_value(b)
    if kind == DONE or digit < 0:
        return -1
    if kind == HEX_UNIFORM:
        return state if left == 1 else pack_decoder(HEX_UNIFORM, left - 1, 0) << 32 | state
    if kind == LOW_UNIFORM:
        if (left == 4 and digit != 13) or (left == 3 and digit < 12):
            return -1
        return state if left == 1 else pack_decoder(LOW_UNIFORM, left - 1, 0) << 32 | state
    if kind == LOW:
        value = (value & ~0xFFF) | ((value & 0xFFF) << 4 | digit) & 0xFFF
        if left > 1:
            return step_inside(t, at, state, LOW << 8 | LOW, left - 1, value)
        low = 0xD000 | (value & 0xFFF)
        if low < 0xDC00:
            return -1
        return step_character(t, at, state, 0x10000 + (value >> 12 << 10) + (low - 0xDC00))
    value = value << 4 | digit  # HEX
    if left > 1:
        return step_inside(t, at, state, HEX << 8 | HEX_UNIFORM, left - 1, value)
    if 0xD800 <= value <= 0xDBFF:
        return step_inside(t, at, state, HIGH << 8 | HIGH_UNIFORM, 0, value - 0xD800)
    return -1 if 0xDC00 <= value <= 0xDFFF else step_character(t, at, state, value)


@kernel("int64(int64, int64, int64)")
def allows_gap(t: Any, q: Any, at: Any) -> Any:
    """Return whether leaf state q, in a leaf of plain text, allows white space only, and after some of it more.

    at: its DFA.
    """
    leaves, transitions, dfas = view(t, LEAVES), view(t, LEAF_NEXT), view(t, DFAS)
    r = q * LEAF_W + LEAF_BYTES
    others = (leaves[r] & ~(1 << 9 | 1 << 10 | 1 << 13)) | (leaves[r + 1] & ~1)
    for w in range(2, 8):
        others |= leaves[r + w]
    if others != 0:
        return 0
    n, classes, ascii_class = dfas[at], dfas[at + 1], at + 3 + 2 * dfas[at + 2]
    for b in range(9, 33):
        after = transitions[256 * q + b]
        if after >= 0:
            row = ascii_class + 128 + 2 * n + leaves[after * LEAF_W + LEAF_STATE] * classes
            for x in (9, 10, 13, 32):
                if dfas[row + dfas[ascii_class + x]] >= 0:
                    return 1
    return 0


@kernel("int64(int64, int64)")
def expand_leaf(t: Any, q: Any) -> Any:
    """Write the transitions of leaf state q, interning its successors. Return 0, or -1 if the table is full.

    Those of a number are written by the owner of the table; a state without transitions refuses all bytes.
    """
    leaves, transitions = view(t, LEAVES), view(t, LEAF_NEXT)
    r = q * LEAF_W
    if leaves[r + LEAF_FLAGS] & LEAF_EXPANDED:
        return 0
    machine = leaves[r + LEAF_MACHINE]
    machines = view(t, MACHINES)
    mode, at = machines[MACHINE_W * machine + MACHINE_MODE], machines[MACHINE_W * machine + MACHINE_DFA]
    if mode == NUMBER:
        return 0
    pair = (leaves[r + LEAF_DECODER] + 0) << 32 | leaves[r + LEAF_STATE]
    n = 0
    for w in range(8):
        leaves[r + LEAF_BYTES + w] = 0
    for b in range(256):
        after = step_decoder(t, mode, at, pair, b)
        if after >= 0:
            after = intern_leaf(t, machine, after >> 32, after & 0xFFFFFFFF)
            if after < 0:
                return -1
            leaves[r + LEAF_BYTES + (b >> 5)] |= 1 << (b & 31)
            n += 1
        transitions[256 * q + b] = after
    leaves[r + LEAF_ALLOWED] = n
    if n < WIDE_LEAF:
        leaves[r + LEAF_ROW] = -2
        if mode == UTF8 and allows_gap(t, q, at):
            leaves[r + LEAF_FLAGS] |= LEAF_GAP
    store_release(leaves, r + LEAF_FLAGS, leaves[r + LEAF_FLAGS] | LEAF_EXPANDED)
    return 0


@entry("int64(int64, int64, int64)")
def expand_leaves(t: Any, q: Any, most: Any) -> Any:
    """Expand q and, breadth first, up to `most` new states. Return 0, or -1 if the table is full."""
    counts = view(t, TABLE)
    first = counts[N_LEAVES] + 0
    if expand_leaf(t, q) < 0:
        return -1
    k = first
    while k < counts[N_LEAVES] and k < first + most:
        if expand_leaf(t, k) < 0:
            return -1
        k += 1
    return 0
