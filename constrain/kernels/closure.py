"""Epsilon closure: follow the instructions that consume no byte (kernels).

Items are appended to a worklist and never removed, so that it is also the set of visited items and cycles terminate.
All calls of one rule within a closure share one stack node, whose edges are the callers: the graph-structured stack of
generalised LL parsing (Scott and Johnstone, 2010). Left recursion becomes a cycle of that graph, and a rule that ends
without consuming a byte returns to every caller, including those that are added after it ended.
"""

from __future__ import annotations

from typing import Any

from .context_views import load_acquire, size, view
from .interned_names import mix_config, request
from .jit.compilation import inlined, kernel
from .table_layout import LEAF_ALLOWED, LEAF_BOUNDARY, LEAF_CLOSES, LEAF_EXITS, LEAF_EXPANDED, LEAF_FLAGS, LEAF_W

from .context_layout import (  # isort: skip
    ACCEPTS, CALLS, CANDIDATES, CLOSURES, CODE, CUT, EDGES, FULL, HEAD, ITEMS, LEAVES, LISTS, MISSING, NAMED,
    NEED_LEAF, NEED_START, NODES, N_CALLS, N_ITEMS, N_MISSING, N_PENDING_EDGES, OBJECTS, PENDING_EDGES, SEEN, STARTS,
    TEXT, UNSURE,
)  # fmt: skip
from .program_layout import (  # isort: skip
    ARG_CAP, ARG_COUNT, ARG_ENDLESS, ARG_EQUAL, ARG_EXIT, ARG_FINITE, ARG_HIGH, ARG_LEAF, ARG_LEAST, ARG_LOW, ARG_MARK,
    ARG_MOST, ARG_NAME, ARG_OBJECT, ARG_PARSER, ARG_RULE, ARG_STRINGS, ARG_TARGET, ARG_TARGETS, CALL, COUNT, END, ENTER,
    INIT, JUMP, KEYS, LEAF, MEMBER, MEMBER_END, MORE, OBJ_KEYS, OTHER, PARSE, PASS, SET, SPLIT, STR_COUNT, STR_ESCAPES,
    STR_OFFSETS, TEST, UNIQUE,
)  # fmt: skip
from .record_layout import (  # isort: skip
    CALLED, CALL_EDGE, CALL_NODE, CALL_RETURNED, CALL_RULE, CALL_W, CONFIG_EXTRA, CONFIG_NODE, CONFIG_PC, CONFIG_STATE,
    CONFIG_REGISTER, CONFIG_W, EDGE_BELOW, EDGE_PC, EDGE_REGISTER, EDGE_W, MOST_EDGES, LIST_COMPLETE, NODE_EDGES,
    NODE_FIRST, NODE_W, NO_CANDIDATES, NO_MEMBERS, O_CLOSE, O_FLAGS, O_KEYS, O_MARK, O_NAMES, O_OTHER, PENDING_BELOW,
    PENDING_EXTRA, PENDING_NEXT, PENDING_PC, PENDING_REGISTER, PENDING_W, SEEN_ITEM, SEEN_STAMP, SEEN_W, SPELLED,
    UNKNOWN_NAMES,
)  # fmt: skip
from .object_states import is_name_free, may_set_mark, start_object
from .parsing import start_parse
from .string_cursors import intern_cursor
from .unique_members import begin_member, end_member


@kernel("int64(int64)")
def begin_closure(c: Any) -> Any:
    """Begin a closure: empty its worklist and reset its results in HEAD. Return 0."""
    head = view(c, HEAD)
    for k in (N_ITEMS, N_CALLS, N_PENDING_EDGES, N_MISSING, ACCEPTS, UNSURE, NAMED, CUT):
        head[k] = 0
    head[TEXT], head[CANDIDATES] = SPELLED, NO_CANDIDATES
    head[CLOSURES] += 1
    if head[CLOSURES] > 1 << 30:
        seen = view(c, SEEN)
        for k in range(size(c, SEEN)):
            seen[k] = 0
        head[CLOSURES] = 1
    return 0


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def push_item(c: Any, pc: Any, q: Any, node: Any, reg: Any, ext: Any) -> Any:
    """Add an item to the worklist of the closure unless it was added before. Return 0 or -1."""
    head, items, seen = view(c, HEAD), view(c, ITEMS), view(c, SEEN)
    last = size(c, SEEN) // 2 - 1
    n, closure_round = head[N_ITEMS], head[CLOSURES]
    h = mix_config(0, pc, q, node, reg, ext) & last
    while seen[SEEN_W * h + SEEN_STAMP] == closure_round:
        k = CONFIG_W * seen[SEEN_W * h + SEEN_ITEM]
        same = items[k + CONFIG_PC] == pc and items[k + CONFIG_STATE] == q and items[k + CONFIG_NODE] == node
        if same and items[k + CONFIG_REGISTER] == reg and items[k + CONFIG_EXTRA] == ext:
            return 0
        h = (h + 1) & last
    if CONFIG_W * (n + 1) > size(c, ITEMS) or 2 * n > last:
        return request(c, FULL, ITEMS)
    seen[SEEN_W * h + SEEN_STAMP] = closure_round
    seen[SEEN_W * h + SEEN_ITEM] = n
    k = CONFIG_W * n
    items[k + CONFIG_PC] = pc
    items[k + CONFIG_STATE] = q
    items[k + CONFIG_NODE] = node
    items[k + CONFIG_REGISTER] = reg
    items[k + CONFIG_EXTRA] = ext
    head[N_ITEMS] = n + 1
    return 0


@inlined("int64(int64, int64, int64, int64, int64, int64)")
def emit_config(c: Any, pc: Any, q: Any, node: Any, reg: Any, ext: Any) -> Any:
    """Add a configuration to the new set. Return 0 or -1."""
    return push_item(c, -pc - 1, q, node, reg, ext)


@kernel("int64(int64, int64)")
def find_call(c: Any, cell: Any) -> Any:
    """Return the index in CALLS of the call of rule `cell`, -1 if there is none.

    The first MOST_EDGES calls are searched linearly, the others are in the hash table SEEN.
    """
    head, calls, items, seen = view(c, HEAD), view(c, CALLS), view(c, ITEMS), view(c, SEEN)
    n = head[N_CALLS]
    for k in range(min(n, MOST_EDGES)):
        if calls[CALL_W * k + CALL_RULE] == cell:
            return k
    if n <= MOST_EDGES:
        return -1
    last = size(c, SEEN) // 2 - 1
    h = mix_config(0, -CALLED - cell, 0, 0, 0, 0) & last
    while seen[SEEN_W * h + SEEN_STAMP] == head[CLOSURES]:
        k = CONFIG_W * seen[SEEN_W * h + SEEN_ITEM]
        if items[k + CONFIG_PC] == -CALLED - cell:
            return items[k + CONFIG_STATE]
        h = (h + 1) & last
    return -1


@kernel("int64(int64, int64, int64)")
def add_call(c: Any, cell: Any, which: Any) -> Any:
    """Add call `which` to the hash table for `find_call`, as an item that is not a configuration. Return 0 or -1."""
    head, items, seen = view(c, HEAD), view(c, ITEMS), view(c, SEEN)
    last, n = size(c, SEEN) // 2 - 1, head[N_ITEMS] + 0
    if CONFIG_W * (n + 1) > size(c, ITEMS) or 2 * n > last:
        return request(c, FULL, ITEMS)
    h = mix_config(0, -CALLED - cell, 0, 0, 0, 0) & last
    while seen[SEEN_W * h + SEEN_STAMP] == head[CLOSURES]:
        h = (h + 1) & last
    seen[SEEN_W * h + SEEN_STAMP] = head[CLOSURES]
    seen[SEEN_W * h + SEEN_ITEM] = n
    items[CONFIG_W * n + CONFIG_PC] = -CALLED - cell
    items[CONFIG_W * n + CONFIG_STATE] = which
    for k in range(2, CONFIG_W):
        items[CONFIG_W * n + k] = 0
    head[N_ITEMS] = n + 1
    return 0


@kernel("int64(int64, int64, int64, int64, int64)")
def call_rule(c: Any, cell: Any, pc: Any, node: Any, packed: Any) -> Any:
    """Call rule `cell` from stack node `node`, to return to `pc`; all callers of a rule share its stack node.

    packed: register << 1 | whether this round of a repetition is still empty. Return 0 or -1.
    """
    head, code, calls, edges = view(c, HEAD), view(c, CODE), view(c, CALLS), view(c, PENDING_EDGES)
    reg, ext = packed >> 1, -(packed & 1)
    which = find_call(c, cell)
    if which < 0:
        which = head[N_CALLS]
        if CALL_W * (which + 1) > size(c, CALLS):
            return request(c, FULL, CALLS)
        if which >= MOST_EDGES and add_call(c, cell, which) < 0:
            return -1
        calls[CALL_W * which + CALL_RULE] = cell
        calls[CALL_W * which + CALL_EDGE] = -1
        calls[CALL_W * which + CALL_RETURNED] = 0
        calls[CALL_W * which + CALL_NODE] = 0
        head[N_CALLS] = which + 1
        if push_item(c, code[cell], -1, -which - 2, 0, 0) < 0:
            return -1
    e, seen_edges = calls[CALL_W * which + CALL_EDGE] + 0, 0
    while e >= 0 and seen_edges < MOST_EDGES:  # beyond, `stacks.write_edges` removes duplicates
        k = PENDING_W * e
        same = edges[k + PENDING_PC] == pc and edges[k + PENDING_REGISTER] == reg
        if same and edges[k + PENDING_EXTRA] == ext and edges[k + PENDING_BELOW] == node:
            return 0
        e = edges[k + PENDING_NEXT] + 0
        seen_edges += 1
    e = head[N_PENDING_EDGES]
    if PENDING_W * (e + 1) > size(c, PENDING_EDGES):
        return request(c, FULL, PENDING_EDGES)
    edges[PENDING_W * e + PENDING_PC] = pc
    edges[PENDING_W * e + PENDING_REGISTER] = reg
    edges[PENDING_W * e + PENDING_EXTRA] = ext
    edges[PENDING_W * e + PENDING_BELOW] = node
    edges[PENDING_W * e + PENDING_NEXT] = calls[CALL_W * which + CALL_EDGE]
    calls[CALL_W * which + CALL_EDGE] = e
    head[N_PENDING_EDGES] = e + 1
    if calls[CALL_W * which + CALL_RETURNED]:  # the rule has already ended without consuming a byte
        return push_item(c, pc, -1, node, reg, ext)
    return 0


@kernel("int64(int64, int64)")
def return_to_callers(c: Any, node: Any) -> Any:
    """Return from a rule with stack node `node` to every caller. Return 0 or -1."""
    head = view(c, HEAD)
    if node == 0:
        head[ACCEPTS] = 1
        return 0
    if node > 0:
        nodes, edges = view(c, NODES), view(c, EDGES)
        first = nodes[NODE_W * node + NODE_FIRST]
        for e in range(first, first + nodes[NODE_W * node + NODE_EDGES]):
            k = EDGE_W * e
            if push_item(c, edges[k + EDGE_PC], -1, edges[k + EDGE_BELOW], edges[k + EDGE_REGISTER], 0) < 0:
                return -1
        return 0
    calls, pending = view(c, CALLS), view(c, PENDING_EDGES)
    which = -node - 2
    calls[CALL_W * which + CALL_RETURNED] = 1
    e = calls[CALL_W * which + CALL_EDGE]
    while e >= 0:
        k = PENDING_W * e
        reg, ext = pending[k + PENDING_REGISTER], pending[k + PENDING_EXTRA]
        if push_item(c, pending[k + PENDING_PC], -1, pending[k + PENDING_BELOW], reg, ext) < 0:
            return -1
        e = pending[k + PENDING_NEXT]
    return 0


@kernel("int64(int64)")
def compute_closure(c: Any) -> Any:
    """Compute the epsilon closure: follow every item through the instructions that consume no byte. Return 0 or -1."""
    head, items, code = view(c, HEAD), view(c, ITEMS), view(c, CODE)
    starts, leaves, objects = view(c, STARTS), view(c, LEAVES), view(c, OBJECTS)
    done = 0
    while done < head[N_ITEMS]:
        k = CONFIG_W * done
        pc, q, node = items[k + CONFIG_PC] + 0, items[k + CONFIG_STATE] + 0, items[k + CONFIG_NODE] + 0
        reg, ext = items[k + CONFIG_REGISTER] + 0, items[k + CONFIG_EXTRA] + 0
        done += 1
        while pc >= 0:
            op = code[pc]
            if op < 256:
                if emit_config(c, pc, -1, node, reg, 0) < 0:
                    return -1
                break
            if op == LEAF:
                low, high = code[pc + ARG_LOW], code[pc + ARG_HIGH]
                count, mark = ext, 0
                if q < 0:
                    q = starts[code[pc + ARG_LEAF]]
                    if q < 0:
                        return request(c, NEED_START, code[pc + ARG_LEAF])
                    count, mark = 0, ext
                flags = load_acquire(leaves, q * LEAF_W + LEAF_FLAGS)
                if flags & LEAF_EXPANDED == 0:
                    return request(c, NEED_LEAF, q)
                at_end = high >= 0 and count >= high and flags & LEAF_BOUNDARY and flags & LEAF_CLOSES == 0
                if leaves[q * LEAF_W + LEAF_ALLOWED] > 0 and not at_end:
                    if emit_config(c, pc, q, node, reg, count) < 0:
                        return -1
                if flags & LEAF_EXITS and count >= low:
                    pc, q, ext = pc + 4, -1, mark
                    continue
                break
            if op == PARSE:
                mark = 0
                if q < 0:
                    mark, q = ext, start_parse(c, code[pc + ARG_PARSER])
                    if q < 0:
                        return -1
                if q == 0:
                    break
                if emit_config(c, pc, q, node, reg, 0) < 0:
                    return -1
                if view(c, LISTS)[q + LIST_COMPLETE]:
                    pc, q, ext = pc + 2, -1, mark
                    continue
                break
            if op == SPLIT:
                for k in range(code[pc + ARG_COUNT]):
                    if push_item(c, code[pc + ARG_TARGETS + k], -1, node, reg, ext) < 0:
                        return -1
                break
            if op == CALL or op == PASS:
                cell = code[pc + ARG_RULE]
                if load_acquire(code, cell) == 0:
                    if head[N_MISSING] >= size(c, MISSING):
                        return request(c, FULL, MISSING)
                    view(c, MISSING)[head[N_MISSING]] = cell
                    head[N_MISSING] += 1
                    break
                if op == PASS:
                    if push_item(c, code[cell], -1, node, reg, 0) < 0:
                        return -1
                    break
                if code[pc + 2] == END:  # a tail call returns to the caller's caller
                    if push_item(c, code[cell], -1, node, 0, 0) < 0:
                        return -1
                    break
                if call_rule(c, cell, pc + 2, node, reg << 1 | (ext & 1)) < 0:
                    return -1
                break
            if op == END:
                if return_to_callers(c, node) < 0:
                    return -1
                break
            if op == JUMP:
                pc = code[pc + ARG_TARGET]
            elif op == SET:
                block = code[pc + ARG_STRINGS]
                n = code[block + STR_COUNT]
                q = intern_cursor(c, block, 0, n, 0)
                if q < 0 or emit_config(c, pc, q, node, reg, 0) < 0:
                    return -1
                if code[block + STR_ESCAPES] or code[block + STR_OFFSETS] < code[block + STR_OFFSETS + 1]:
                    break  # with escapes, even an empty string has a quote yet to come
                pc, q = pc + 2, -1
            elif op == ENTER:
                reg = 0
                pc += 1
            elif op == TEST:
                if (
                    reg >= code[pc + ARG_LEAST]
                    and push_item(c, code[pc + ARG_EXIT], -1, node, 0, 0 if reg > 0 else ext) < 0
                ):
                    return -1
                if code[pc + ARG_MOST] >= 0 and reg >= code[pc + ARG_MOST]:
                    break
                ext = -1
                pc += 4
            elif op == COUNT:
                if ext == -1:  # an empty round adds nothing: stop
                    break
                reg = min(reg + 1, code[pc + ARG_CAP])
                pc += 2
            elif op == INIT:
                reg = start_object(c, code[pc + ARG_OBJECT])
                if reg < 0:
                    return -1
                pc += 2
            elif op == KEYS:
                if objects[reg + O_FLAGS] & O_KEYS:
                    block = code[code[pc + ARG_OBJECT] + OBJ_KEYS]
                    q = intern_cursor(c, block, 0, code[block + STR_COUNT], 0)
                    if q < 0 or emit_config(c, pc, q, node, reg, 0) < 0:
                        return -1
                break
            elif op == OTHER:
                if may_set_mark(c, reg, code[pc + ARG_MARK]):
                    q = starts[code[pc + ARG_NAME]]
                    if q < 0:
                        return request(c, NEED_START, code[pc + ARG_NAME])
                    if load_acquire(leaves, q * LEAF_W + LEAF_FLAGS) & LEAF_EXPANDED == 0:
                        return request(c, NEED_LEAF, q)
                    # A prefix with infinitely many completions can become a key that is not taken, whatever is known.
                    if code[pc + ARG_FINITE] and objects[reg + O_NAMES] == UNKNOWN_NAMES:
                        head[UNSURE] = 1
                    elif code[pc + ARG_FINITE]:
                        is_free = is_name_free(c, pc, reg, SPELLED)
                        if is_free <= 0:
                            if is_free < 0:
                                return -1
                            break
                    if emit_config(c, pc, q, node, reg, SPELLED) < 0:
                        return -1
                break
            elif op == UNIQUE:
                reg = NO_MEMBERS
                pc += 1
            elif op == MEMBER:
                reg = begin_member(c, reg, code[pc + ARG_ENDLESS])
                if reg < 0:
                    return -1
                pc += 2
            elif op == MEMBER_END:
                reg = end_member(c, reg)
                if reg < 0:
                    return -1
                if reg == 0:
                    pc = code[pc + ARG_EQUAL]
                    if pc == 0:
                        break
                else:
                    pc += 2
            elif op == MORE:
                if objects[reg + O_FLAGS] & (O_KEYS | O_OTHER | O_MARK) == 0:
                    break
                pc += 2
            else:  # CLOSE
                if objects[reg + O_FLAGS] & O_CLOSE == 0:
                    break
                reg = 0
                pc += 2
    return 0
