"""Steps of sets of configurations by a byte: lazy subset construction with stacks, memoised (kernels).

This is the subset construction (Rabin and Scott, 1959), computed lazily as text arrives, for a pushdown automaton:
equal stacks are shared as nodes of a graph-structured stack (Tomita, 1986). A configuration is (pc, state, node,
register, extra): an instruction that consumes a byte, the state inside its leaf, string block or parsed text (or -1),
the stack of callers, the register of the running rule, and a number that belongs to the instruction: characters
counted, or the name spelled so far. `step_set` moves every configuration of a set by a byte; `compute_closure` follows
the instructions that consume nothing (the epsilon closure); `intern_set` gives equal sets one id. (set, byte) -> set is
memoised, so most steps are one load.

A kernel that lacks something writes a request to HEAD[STATUS] and returns -1: the caller provides it and calls again.
Records that were appended stay valid; a memo is written only when its step is complete.
"""

from __future__ import annotations

from typing import Any

from .closure import begin_closure, compute_closure, emit_config, push_item
from .context_views import load_acquire, view
from .interned_names import extend_chain, request
from .interned_sets import UNKNOWN, UNKNOWN_TO_LEAVES, add_wide_row, intern_set
from .jit.compilation import entry, inlined, kernel
from .object_states import add_member, add_named_member, is_name_free, may_repeat
from .parsing import step_parse
from .program_layout import ARG_FINITE, ARG_HIGH, ARG_LOW, ARG_MARK, ARG_NEXT, LEAF, OTHER, PARSE, STR_ESCAPES
from .string_keys import step_cursor, step_escaped
from .unique_members import extend_text, may_keep_candidates

from .context_layout import (  # isort: skip
    ACCEPTS, CANDIDATES, CODE, CONFIGS, CURSORS, ENTRY, HEAD, LEAF_NEXT, LEAVES, MISSING, NAMED, NAMES,
    NEED_CANDIDATES, NEED_CAN_DIFFER, NEED_IS_UNIQUE, NEED_LEAF, NEED_RULES, N_MISSING, SETS, STATUS, TEXT, UNSURE,
    WIDE,
)  # fmt: skip
from .record_layout import (  # isort: skip
    CANNOT_DIFFER, CAN_DIFFER, CONFIG_EXTRA, CONFIG_NODE, CONFIG_PC, CONFIG_STATE, CONFIG_REGISTER, CONFIG_W,
    CURSOR_BLOCK, CURSOR_W, DEAD, HAS_CANDIDATES, HAS_KEYS, IS_ACCEPTING, IS_MEMBER, IS_NAMED, IS_NAMING,
    IS_OPEN, IS_UNSURE, MEMBER_CANDIDATES, MEMBER_GUARD, MEMBER_TEXT, MOST_STEP, NAME_VALUE, NAME_W, NARROW, NO_STEP,
    OPEN_NAME,
    SET_ALLOWED, SET_BYTES, SET_COUNT, SET_FIRST, SET_FLAGS, SET_KEYLESS, SET_NEXT, SET_W, UNKNOWN_NAMES,
)  # fmt: skip
from .table_layout import (  # isort: skip
    DONE, KIND, LEAF_BOUNDARY, LEAF_DECODER, LEAF_ENDLESS, LEAF_EXITS, LEAF_EXPANDED, LEAF_FLAGS, LEAF_NEED,
    LEAF_W,
)  # fmt: skip


SAME_STEP = -3
"""In WIDE while a step is stored: one of the bytes that move every leaf as the byte of that step does."""

MOST_AHEAD = 32
"""Most bytes that are followed to a unique member, one after the other."""


@entry("int64(int64)")
def start_set(c: Any) -> Any:
    """Return the set before any text, or -1."""
    head, code = view(c, HEAD), view(c, CODE)
    begin_closure(c)
    cell = head[ENTRY]
    if load_acquire(code, cell) == 0:
        view(c, MISSING)[0] = cell
        head[N_MISSING] = 1
        return request(c, NEED_RULES, 0)
    if push_item(c, code[cell], -1, 0, 0, 0) < 0 or compute_closure(c) < 0:
        return -1
    return intern_set(c)


@kernel("int64(int64, int64, int64, int64, int64, int64, int64)")
def step_leaf(c: Any, pc: Any, q: Any, node: Any, reg: Any, ext: Any, b: Any) -> Any:
    """Step a configuration inside a leaf by byte b, adding its successor to the closure. Return 0 or -1."""
    code, leaves = view(c, CODE), view(c, LEAVES)
    after = view(c, LEAF_NEXT)[256 * q + b]
    if after < 0:
        return 0
    if code[pc] == OTHER:
        if load_acquire(leaves, after * LEAF_W + LEAF_FLAGS) & LEAF_EXPANDED == 0:
            return request(c, NEED_LEAF, after)
        if leaves[after * LEAF_W + LEAF_FLAGS] & LEAF_EXITS:
            if ext == OPEN_NAME:
                if may_repeat(c, reg):
                    view(c, HEAD)[NAMED] = 1
                state = add_member(c, reg, code[pc + ARG_MARK], UNKNOWN_NAMES)
                return -1 if state < 0 else push_item(c, code[pc + ARG_NEXT], -1, node, state, 0)
            state = add_named_member(c, reg, ext, code[pc + ARG_MARK])
            return state if state <= 0 else push_item(c, code[pc + ARG_NEXT], -1, node, state, 0)
        is_finite = code[pc + ARG_FINITE] and leaves[after * LEAF_W + LEAF_FLAGS] & LEAF_ENDLESS == 0
        if ext == OPEN_NAME:
            if is_finite and may_repeat(c, reg):
                view(c, HEAD)[UNSURE] = 1
            return emit_config(c, pc, after, node, reg, ext)
        ext = extend_chain(c, ext, b)
        if ext < 0:
            return -1
        if is_finite:
            is_free = is_name_free(c, pc, reg, ext)
            if is_free <= 0:
                return is_free
        return emit_config(c, pc, after, node, reg, ext)
    low, high = code[pc + ARG_LOW], code[pc + ARG_HIGH]
    is_closed = leaves[after * LEAF_W + LEAF_DECODER] >> KIND == DONE
    if leaves[q * LEAF_W + LEAF_FLAGS] & LEAF_BOUNDARY and not is_closed:
        ext += 1
    if is_closed:
        if ext < low:
            return 0
    elif high >= 0:
        if ext + leaves[after * LEAF_W + LEAF_NEED] > high:
            return 0
    elif ext > low:  # no upper bound: counting can stop at the lower one
        ext = low
    return push_item(c, pc, after, node, reg, ext)


NOT_MEMOISED, SINGLE_STEP = -(1 << 40), -(1 << 41)


@kernel("int64(int64, int64, int64)")
def find_memo(c: Any, s: Any, b: Any) -> Any:
    """Return where the step of set s by byte b is memoised: an offset in SETS, or -2 - offset in WIDE.

    -1: the byte is refused. NOT_MEMOISED: the set has no memo. SINGLE_STEP: at most one step was taken.
    """
    sets = view(c, SETS)
    r = s * SET_W
    n = sets[r + SET_ALLOWED]
    if n > NARROW:
        if sets[r + SET_NEXT + (b >> 5)] >> (b & 31) & 1 == 0:
            return -1
        row = sets[r + SET_BYTES] + 0
        if row <= NO_STEP:
            return SINGLE_STEP
        return -(256 * row + b) - 2 if row >= 0 else NOT_MEMOISED
    for k in range(n):
        if sets[r + SET_BYTES + (k >> 2)] >> (8 * (k & 3)) & 255 == b:
            return r + SET_NEXT + k
    return -1


@kernel("int64(int64, int64, int64)")
def extend_member_text(c: Any, s: Any, b: Any) -> Any:
    """Pass the text of a member, extended by byte b, from set s to the current closure. Return 0 or -1."""
    head, sets, configs = view(c, HEAD), view(c, SETS), view(c, CONFIGS)
    if sets[s * SET_W + SET_FLAGS] & IS_OPEN:
        head[TEXT] = OPEN_NAME
        return 0
    k = CONFIG_W * (sets[s * SET_W + SET_FIRST] + sets[s * SET_W + SET_COUNT])
    text = extend_text(c, configs[k + MEMBER_TEXT], b)
    if text < 0:
        return -1
    head[TEXT] = text
    if configs[k + MEMBER_GUARD] >= 0 and may_keep_candidates(c, configs[k + MEMBER_GUARD], b):
        head[CANDIDATES] = configs[k + MEMBER_CANDIDATES]
    return 0


@kernel("int64(int64, int64)")
def mark_text_unknown(c: Any, s: Any) -> Any:
    """Mark the text of a member as unknown in a closure that continues set s by an unknown text. Return 0."""
    if view(c, SETS)[s * SET_W + SET_FLAGS] & (IS_MEMBER | IS_OPEN):
        view(c, HEAD)[TEXT] = OPEN_NAME
    return 0


@kernel("int64(int64, int64, int64)")
def compute_step(c: Any, s: Any, b: Any) -> Any:
    """Return the set after set s and byte b, without the memo: its id, DEAD, or -1."""
    code, sets, configs, cursors = view(c, CODE), view(c, SETS), view(c, CONFIGS), view(c, CURSORS)
    begin_closure(c)
    if sets[s * SET_W + SET_FLAGS] & (IS_MEMBER | IS_OPEN) and extend_member_text(c, s, b) < 0:
        return -1
    first = sets[s * SET_W + SET_FIRST]
    for k in range(first, first + sets[s * SET_W + SET_COUNT]):
        config = CONFIG_W * k
        pc, q, node = configs[config + CONFIG_PC], configs[config + CONFIG_STATE], configs[config + CONFIG_NODE]
        reg, ext = configs[config + CONFIG_REGISTER], configs[config + CONFIG_EXTRA]
        op = code[pc]
        status = 0
        if op < 256:
            if op == b:
                status = push_item(c, pc + 1, -1, node, reg, 0)
        elif op == LEAF or op == OTHER:
            status = step_leaf(c, pc, q, node, reg, ext, b)
        elif op == PARSE:
            after = step_parse(c, q, b)
            status = after if after <= 0 else push_item(c, pc, after, node, reg, 0)
        elif code[cursors[CURSOR_W * q + CURSOR_BLOCK] + STR_ESCAPES] == 0:
            status = step_cursor(c, pc, q, node, reg, b)
        else:
            status = step_escaped(c, pc, q, node, reg, ext, b)
        if status < 0:
            return -1
    return -1 if compute_closure(c) < 0 else intern_set(c)


@kernel("int64(int64, int64, int64)")
def may_allow(c: Any, s: Any, b: Any) -> Any:
    """Return whether set s allows byte b: 0 is certain, 1 is an upper bound (a step decides)."""
    sets, r = view(c, SETS), s * SET_W
    n = sets[r + SET_ALLOWED]
    if n > NARROW:
        return sets[r + SET_NEXT + (b >> 5)] >> (b & 31) & 1
    for k in range(n):
        if sets[r + SET_BYTES + (k >> 2)] >> (8 * (k & 3)) & 255 == b:
            return 1
    return 0


@kernel("int64(int64, int64)")
def differs_after_byte(c: Any, s: Any) -> Any:
    """Return whether a byte that may follow set s, which has candidates, leaves none: 1, 0, or -1."""
    sets = view(c, SETS)
    last = sets[s * SET_W + SET_FIRST] + sets[s * SET_W + SET_COUNT]
    guard = view(c, CONFIGS)[CONFIG_W * last + MEMBER_GUARD] + 0
    for byte in range(256):
        if may_allow(c, s, byte) and not may_keep_candidates(c, guard, byte):
            after = compute_step(c, s, byte)
            if after < 0:
                return -1
            if after > 0 and sets[after * SET_W + SET_FLAGS] & HAS_CANDIDATES == 0:
                return 1
    return 0


@kernel("int64(int64, int64)")
def differs_within_string(c: Any, s: Any) -> Any:
    """Return whether a member that set s has not begun is without candidates after a quote and a byte: 1, 0, or -1."""
    sets, configs, names = view(c, SETS), view(c, CONFIGS), view(c, NAMES)
    last = CONFIG_W * (sets[s * SET_W + SET_FIRST] + sets[s * SET_W + SET_COUNT])
    register = names[NAME_W * configs[last + MEMBER_CANDIDATES] + NAME_VALUE]
    if names[NAME_W * register + NAME_VALUE] != configs[last + MEMBER_TEXT] or may_allow(c, s, 34) == 0:
        return 0
    quoted = compute_step(c, s, 34)
    if quoted <= 0 or sets[quoted * SET_W + SET_FLAGS] & HAS_CANDIDATES == 0:
        return min(quoted, 1)
    return differs_after_byte(c, quoted)


@inlined("int64(int64)")
def is_comparison(status: Any) -> Any:
    """Return whether a request is one to compare members."""
    return status == NEED_CANDIDATES or status == NEED_IS_UNIQUE


@kernel("int64(int64, int64)")
def differs_further_on(c: Any, s: Any) -> Any:
    """Return whether a member without candidates is reached from set s by always the first byte that may follow.

    1, 0 (it is not known), or -1. Most members have a place where anything may follow, as a string, after keys that
    nothing else can follow. What only the caller can compare is left to its search.
    """
    head, sets = view(c, HEAD), view(c, SETS)
    for _ in range(MOST_AHEAD):
        after = DEAD
        for byte in range(33, 256):
            if byte != 92 and may_allow(c, s, byte):
                after = compute_step(c, s, byte)
                if after < 0:
                    return 0 if is_comparison(head[STATUS]) else -1
                if after > 0 and sets[after * SET_W + SET_FLAGS] & CANNOT_DIFFER == 0:
                    break
                after = DEAD
        if after == DEAD:
            return 0
        flags = sets[after * SET_W + SET_FLAGS] + 0
        if flags & HAS_CANDIDATES == 0 or flags & CAN_DIFFER:
            return 1
        differs = differs_after_byte(c, after)
        if differs != 0:
            return 0 if differs < 0 and is_comparison(head[STATUS]) else differs
        s = after
    return 0


@kernel("int64(int64, int64, int64)")
def compute_live_step(c: Any, s: Any, b: Any) -> Any:
    """Return the set after set s and byte b as `compute_step`, but DEAD if no unique member can follow.

    Usually a further byte makes the member unique, a quote and another one, or the first bytes that may follow; if
    not, the caller searches (NEED_CAN_DIFFER).
    """
    after = compute_step(c, s, b)
    sets = view(c, SETS)
    if (
        after <= 0
        or sets[after * SET_W + SET_FLAGS] & HAS_CANDIDATES == 0
        or sets[after * SET_W + SET_FLAGS] & CAN_DIFFER
    ):
        return after
    if sets[after * SET_W + SET_FLAGS] & CANNOT_DIFFER:
        return DEAD
    differs = differs_after_byte(c, after)
    if differs == 0:
        differs = differs_within_string(c, after)
    if differs == 0:
        differs = differs_further_on(c, after)
    if differs < 0:
        return -1
    if differs > 0:
        sets[after * SET_W + SET_FLAGS] |= CAN_DIFFER
        return after
    return request(c, NEED_CAN_DIFFER, after)


@kernel("int64(int64, int64, int64, int64)")
def store_step(c: Any, s: Any, b: Any, after: Any) -> Any:
    """Memoise in the row of set s in WIDE the step by byte b, and by all bytes with the same effect on leaves."""
    sets, configs, code, wide = view(c, SETS), view(c, CONFIGS), view(c, CODE), view(c, WIDE)
    transitions, row = view(c, LEAF_NEXT), 256 * sets[s * SET_W + SET_BYTES]
    if wide[row + b] == UNKNOWN or sets[s * SET_W + SET_FLAGS] & (IS_MEMBER | IS_OPEN):
        wide[row + b] = after
        return 0
    for x in range(256):
        wide[row + x] = SAME_STEP if wide[row + x] == UNKNOWN_TO_LEAVES else wide[row + x]
    first = sets[s * SET_W + SET_FIRST]
    for k in range(first, first + sets[s * SET_W + SET_COUNT]):
        op = code[configs[CONFIG_W * k + CONFIG_PC]]
        if op == LEAF or op == OTHER:
            leaf = 256 * configs[CONFIG_W * k + CONFIG_STATE]
            target = transitions[leaf + b]
            for x in range(256):
                differs = transitions[leaf + x] != target and wide[row + x] == SAME_STEP
                wide[row + x] = UNKNOWN_TO_LEAVES if differs else wide[row + x]
    for x in range(256):
        wide[row + x] = after if wide[row + x] == SAME_STEP else wide[row + x]
    return 0


@kernel("int64(int64, int64, int64)")
def step_once(c: Any, s: Any, b: Any) -> Any:
    """Step set s, of which at most one step is memoised: as `step_set`. The second step gives the set a row in WIDE."""
    sets, r = view(c, SETS), s * SET_W
    taken = NO_STEP - sets[r + SET_BYTES]
    if taken != 0 and taken & 255 == b:
        return taken >> 8
    after = compute_live_step(c, s, b)
    if after < 0:
        return -1
    if taken == 0 and after < MOST_STEP:
        sets[r + SET_BYTES] = NO_STEP - (after << 8 | b)
        return after
    row = add_wide_row(c, UNKNOWN)
    if row < 0:
        return -1
    wide = view(c, WIDE)
    if taken != 0:
        wide[256 * row + (taken & 255)] = taken >> 8
    wide[256 * row + b] = after
    sets[r + SET_BYTES] = row
    return after


@kernel("int64(int64, int64, int64)")
def step_set(c: Any, s: Any, b: Any) -> Any:
    """Return the set after set s and byte b: its id, DEAD if b is refused, or -1 (see HEAD[STATUS])."""
    memo = find_memo(c, s, b)
    if memo == -1:
        return DEAD
    if memo == NOT_MEMOISED:
        return compute_live_step(c, s, b)
    if memo == SINGLE_STEP:
        return step_once(c, s, b)
    memoised = view(c, SETS)[memo] if memo >= 0 else view(c, WIDE)[-memo - 2]
    if memoised >= 0:
        return memoised
    after = compute_live_step(c, s, b)
    if after >= 0:
        if memo >= 0:
            view(c, SETS)[memo] = after
        else:
            store_step(c, s, b, after)
    return after


@kernel("int64(int64, int64, int64, int64)")
def continue_config(c: Any, s: Any, k: Any, pc: Any) -> Any:
    """Return the set in which configuration k of set s has left its leaf and continues at `pc`: its id, or -1.

    k < 0: configuration -k - 1, an undeclared key that is unknown, so the list of names becomes UNKNOWN_NAMES.
    """
    configs = view(c, CONFIGS)
    which = k if k >= 0 else -k - 1
    node, reg = configs[CONFIG_W * which + CONFIG_NODE], configs[CONFIG_W * which + CONFIG_REGISTER] + 0
    begin_closure(c)
    mark_text_unknown(c, s)
    if k < 0:
        reg = add_member(c, reg, view(c, CODE)[configs[CONFIG_W * which + CONFIG_PC] + ARG_MARK], UNKNOWN_NAMES)
        if reg < 0:
            return -1
    return -1 if push_item(c, pc, -1, node, reg, 0) < 0 or compute_closure(c) < 0 else intern_set(c)


@kernel("int64(int64, int64)")
def make_keyless(c: Any, s: Any) -> Any:
    """Return the keyless variant of set s, in which spelled names and texts of members are unknown: its id, or -1.

    A walk steps through thousands of spellings, each of which would otherwise be a separate set.
    """
    sets, configs, code = view(c, SETS), view(c, CONFIGS), view(c, CODE)
    r = s * SET_W
    # Of a set with declared keys and no name, the field holds what `trie_walks.drop_keys` makes of it.
    is_own = sets[r + SET_FLAGS] & HAS_KEYS == 0 or sets[r + SET_FLAGS] & IS_NAMING
    is_wide = sets[r + SET_ALLOWED] > NARROW and is_own
    if is_wide and sets[r + SET_KEYLESS] >= 0:
        return sets[r + SET_KEYLESS]
    begin_closure(c)
    mark_text_unknown(c, s)
    head = view(c, HEAD)
    head[ACCEPTS] = sets[r + SET_FLAGS] & IS_ACCEPTING
    head[UNSURE], head[NAMED] = sets[r + SET_FLAGS] & IS_UNSURE, sets[r + SET_FLAGS] & IS_NAMED
    for k in range(sets[r + SET_FIRST], sets[r + SET_FIRST] + sets[r + SET_COUNT]):
        config = CONFIG_W * k
        pc, q, node = configs[config + CONFIG_PC], configs[config + CONFIG_STATE], configs[config + CONFIG_NODE]
        ext = OPEN_NAME if code[pc] == OTHER else configs[config + CONFIG_EXTRA]
        if emit_config(c, pc, q, node, configs[config + CONFIG_REGISTER], ext) < 0:
            return -1
    keyless = intern_set(c)
    if keyless >= 0 and is_wide:
        sets[r + SET_KEYLESS] = keyless
    return keyless
