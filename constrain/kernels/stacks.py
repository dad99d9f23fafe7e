"""Stack nodes: a graph-structured stack whose nodes are interned, so that equal stacks have equal ids (kernels).

A node of the graph-structured stack (Tomita, 1986) is its edges: (return pc, register, node below). The calls of a
closure become nodes from the bottom up; those on a cycle (left recursion) refer to each other and are interned as one
block.

In an ambiguous grammar a node can have as many edges as the text has bytes, most of them those of the node one byte
before. A node with more than MOST_EDGES edges therefore moves the older ones to a chain of shared nodes, linked by an
edge to `RETURN`, which is an END instruction: a rule that returns to the node also returns to the chain. A closure
visits each node of a chain once, so n bytes take O(n^2) time instead of O(n^3).
"""

from __future__ import annotations

from typing import Any

from .context_views import size, view
from .interned_names import mix_hash, probe_slot, request
from .jit.compilation import inlined, kernel
from .program_layout import MEMBER_END

from .context_layout import (  # isort: skip
    BUFFER, CALLS, CODE, EDGES, FULL, HEAD, NODES, NODE_HASH, N_CALLS, N_EDGES, N_NODES, PATH, PENDING_EDGES,
)  # fmt: skip
from .record_layout import (  # isort: skip
    CALL_EDGE, CALL_NODE, CALL_W, EDGE_BELOW, EDGE_PC, EDGE_REGISTER, EDGE_W, MOST_EDGES, IN_MEMBER, NODE_BLOCK,
    NODE_EDGES, NODE_FIRST, NODE_SLOT, NODE_W, PENDING_BELOW, PENDING_NEXT, PENDING_PC, PENDING_REGISTER, PENDING_W,
    RETURN, VISIT_CALL, VISIT_EDGE, VISIT_W,
)  # fmt: skip


@inlined("int64(int64, int64, int64)")
def is_before(c: Any, one: Any, other: Any) -> Any:
    """Return whether the edge at `one` in BUFFER sorts before that at `other`: by node below, pc, register."""
    buffer = view(c, BUFFER)
    if buffer[one + EDGE_BELOW] != buffer[other + EDGE_BELOW]:
        return buffer[one + EDGE_BELOW] < buffer[other + EDGE_BELOW]
    if buffer[one + EDGE_PC] != buffer[other + EDGE_PC]:
        return buffer[one + EDGE_PC] < buffer[other + EDGE_PC]
    return buffer[one + EDGE_REGISTER] < buffer[other + EDGE_REGISTER]


@kernel("int64(int64, int64, int64)")
def sort_edges(c: Any, first: Any, n: Any) -> Any:
    """Sort the n edges in BUFFER from `first` on (Shell sort) and remove duplicates. Return how many remain."""
    buffer = view(c, BUFFER)
    gap = n // 2
    while gap > 0:
        for k in range(gap, n):
            j = k
            while j >= gap and is_before(c, first + EDGE_W * j, first + EDGE_W * (j - gap)):
                for field in range(EDGE_W):
                    one, other = first + EDGE_W * j + field, first + EDGE_W * (j - gap) + field
                    value = buffer[one] + 0
                    buffer[one] = buffer[other]
                    buffer[other] = value
                j -= gap
        gap = 1 if gap == 2 else gap * 5 // 11
    unique = 1
    for k in range(1, n):
        if is_before(c, first + EDGE_W * (unique - 1), first + EDGE_W * k):
            for field in range(EDGE_W):
                buffer[first + EDGE_W * unique + field] = buffer[first + EDGE_W * k + field]
            unique += 1
    return unique


@kernel("int64(int64, int64, int64, int64)")
def intern_nodes(c: Any, start: Any, count: Any, end: Any) -> Any:
    """Intern the `count` stack nodes in BUFFER[start .. end) as one block. Return the id of the first, or -1."""
    head, nodes, edges, table = view(c, HEAD), view(c, NODES), view(c, EDGES), view(c, NODE_HASH)
    buffer, code = view(c, BUFFER), view(c, CODE)
    last = size(c, NODE_HASH) - 1
    h = mix_hash(0, count)
    for k in range(start, end):
        h = mix_hash(h, buffer[k])
    h &= last
    while True:
        base = probe_slot(c, NODE_HASH, h, 1, head[N_NODES], NODES, NODE_W, NODE_SLOT)
        if base < 0:
            break
        is_equal = nodes[NODE_W * base + NODE_BLOCK] & ~IN_MEMBER == count
        at = start
        for k in range(count if is_equal else 0):
            n = buffer[at]
            at += 1
            is_equal = is_equal and nodes[NODE_W * (base + k) + NODE_EDGES] == n
            for j in range(n if is_equal else 0):
                e = EDGE_W * (nodes[NODE_W * (base + k) + NODE_FIRST] + j)
                below = buffer[at + EDGE_W * j + EDGE_BELOW] + 0
                if below < 0:
                    below = base - below - 2
                is_equal = is_equal and edges[e + EDGE_PC] == buffer[at + EDGE_W * j + EDGE_PC]
                is_equal = is_equal and edges[e + EDGE_REGISTER] == buffer[at + EDGE_W * j + EDGE_REGISTER]
                is_equal = is_equal and edges[e + EDGE_BELOW] == below
            at += EDGE_W * n
        if is_equal:
            return base
        h = (h + 1) & last
    base = head[N_NODES] + 0
    if NODE_W * (base + count) > size(c, NODES) or 2 * base > last:
        return request(c, FULL, NODES)
    if EDGE_W * (head[N_EDGES] + end - start) > size(c, EDGES):
        return request(c, FULL, EDGES)
    at, inside = start + 0, 0
    for _ in range(count):
        n = buffer[at]
        at += 1
        for j in range(n):
            below = buffer[at + EDGE_W * j + EDGE_BELOW] + 0
            returns_to = code[buffer[at + EDGE_W * j + EDGE_PC]]
            if returns_to == MEMBER_END or (below >= 0 and nodes[NODE_W * below + NODE_BLOCK] & IN_MEMBER):
                inside = IN_MEMBER
        at += EDGE_W * n
    at = start + 0
    for k in range(count):
        n = buffer[at]
        at += 1
        node = NODE_W * (base + k)
        nodes[node + NODE_FIRST] = head[N_EDGES]
        nodes[node + NODE_EDGES] = n
        nodes[node + NODE_BLOCK] = (count if k == 0 else 0) | inside
        nodes[node + NODE_SLOT] = h if k == 0 else -1
        for _ in range(n):
            e = EDGE_W * head[N_EDGES]
            below = buffer[at + EDGE_BELOW] + 0
            edges[e + EDGE_PC] = buffer[at + EDGE_PC]
            edges[e + EDGE_REGISTER] = buffer[at + EDGE_REGISTER]
            edges[e + EDGE_BELOW] = below if below >= 0 else base - below - 2
            at += 3
            head[N_EDGES] += 1
    table[h] = base
    head[N_NODES] = base + count
    return base


@kernel("int64(int64, int64, int64)")
def share_edges(c: Any, at: Any, n: Any) -> Any:
    """Move all but the last of the n sorted edges at BUFFER[at] to a chain of shared nodes.

    Edges to nodes without a final id come first and stay. Return the offset after the edges, or -1.
    """
    buffer, first = view(c, BUFFER), at + 1
    if first + 2 * EDGE_W * n + EDGE_W * MOST_EDGES + 8 > size(c, BUFFER):
        return request(c, FULL, BUFFER)
    own = 0
    while own < n and buffer[first + EDGE_W * own + EDGE_BELOW] < 0:
        own += 1
    done, shared, scratch = own + 0, own - own - 1, first + EDGE_W * n
    while n - done > MOST_EDGES:
        end = scratch + 1
        if shared >= 0:
            buffer[end + EDGE_PC], buffer[end + EDGE_REGISTER], buffer[end + EDGE_BELOW] = RETURN, 0, shared
            end += 3
        for k in range(EDGE_W * MOST_EDGES):
            buffer[end + k] = buffer[first + EDGE_W * done + k]
        end += EDGE_W * MOST_EDGES
        buffer[scratch] = (end - scratch) // 3
        shared = intern_nodes(c, scratch, 1, end)
        if shared < 0:
            return -1
        done += MOST_EDGES
    if shared >= 0:
        j = first + EDGE_W * own
        buffer[j + EDGE_PC], buffer[j + EDGE_REGISTER], buffer[j + EDGE_BELOW] = RETURN, 0, shared
        own += 1
        for k in range(EDGE_W * (n - done)):
            buffer[first + EDGE_W * own + k] = buffer[first + EDGE_W * done + k]
        n = own + n - done
    buffer[at] = n
    return first + EDGE_W * n


@kernel("int64(int64, int64, int64)")
def write_edges(c: Any, which: Any, at: Any) -> Any:
    """Write the edges of call `which` to BUFFER at `at`: their number, then each.

    A node below without a final id is written as -2 - its index in the block. Return the offset after the edges, or -1.
    """
    calls, pending, buffer = view(c, CALLS), view(c, PENDING_EDGES), view(c, BUFFER)
    n, first = 0, at + 1
    e = calls[CALL_W * which + CALL_EDGE]
    while e >= 0:
        if first + EDGE_W * (n + 1) > size(c, BUFFER):
            return request(c, FULL, BUFFER)
        k = PENDING_W * e
        pc, reg, below = pending[k + PENDING_PC], pending[k + PENDING_REGISTER], pending[k + PENDING_BELOW] + 0
        if below < 0:
            below = calls[CALL_W * (-below - 2) + CALL_NODE]
        e = pending[PENDING_W * e + PENDING_NEXT]
        is_known = False
        for k in range(min(n, MOST_EDGES)):
            j = first + EDGE_W * k
            is_known = is_known or (
                buffer[j + EDGE_PC] == pc and buffer[j + EDGE_REGISTER] == reg and buffer[j + EDGE_BELOW] == below
            )
        if not is_known:
            j = first + EDGE_W * n
            buffer[j + EDGE_PC] = pc
            buffer[j + EDGE_REGISTER] = reg
            buffer[j + EDGE_BELOW] = below
            n += 1
    if n > MOST_EDGES:
        return share_edges(c, at, sort_edges(c, first, n))
    buffer[at] = n
    return first + EDGE_W * n


@kernel("int64(int64, int64)")
def intern_cycle(c: Any, which: Any) -> Any:
    """Intern the calls without an id that `which` reaches, some on a cycle, as one block. Return 0 or -1."""
    head, calls, pending, stack = view(c, HEAD), view(c, CALLS), view(c, PENDING_EDGES), view(c, PATH)
    for k in range(head[N_CALLS]):
        if calls[CALL_W * k + CALL_NODE] < 0:
            calls[CALL_W * k + CALL_NODE] = 0
    # Numbered in breadth-first order: index i is written as -i - 2.
    calls[CALL_W * which + CALL_NODE] = -2
    stack[0] = which
    n, done = 1, 0
    while done < n:
        e = calls[CALL_W * stack[done] + CALL_EDGE]
        done += 1
        while e >= 0:
            below = pending[PENDING_W * e + PENDING_BELOW]
            e = pending[PENDING_W * e + PENDING_NEXT]
            if below < 0 and calls[CALL_W * (-below - 2) + CALL_NODE] == 0:
                calls[CALL_W * (-below - 2) + CALL_NODE] = -n - 2
                stack[n] = -below - 2
                n += 1
    end = 0
    for k in range(n):
        end = write_edges(c, stack[k], end)
        if end < 0:
            return -1
    base = intern_nodes(c, 0, n, end)
    if base < 0:
        return -1
    for k in range(n):
        calls[CALL_W * stack[k] + CALL_NODE] = base + k
    return 0


@kernel("int64(int64, int64)")
def intern_call(c: Any, which: Any) -> Any:
    """Intern call `which` and all below it: write their final ids to CALL_NODE of CALLS. Return 0 or -1.

    Depth-first, so nodes are interned from the bottom up. If calls are on a cycle (left recursion), all calls that are
    reached are interned as one block.
    """
    calls, pending, stack = view(c, CALLS), view(c, PENDING_EDGES), view(c, PATH)
    if VISIT_W * (view(c, HEAD)[N_CALLS] + 2) > size(c, PATH):
        return request(c, FULL, PATH)
    # CALL_NODE: 0: not visited, -1: on the path, > 0: final id. PATH holds (call, next edge).
    top = 0
    stack[VISIT_CALL], stack[VISIT_EDGE] = which, calls[CALL_W * which + CALL_EDGE]
    calls[CALL_W * which + CALL_NODE] = -1
    while top >= 0:
        k, e = stack[VISIT_W * top + VISIT_CALL] + 0, stack[VISIT_W * top + VISIT_EDGE] + 0
        descends = False
        while e >= 0 and not descends:
            below = pending[PENDING_W * e + PENDING_BELOW]
            e = pending[PENDING_W * e + PENDING_NEXT] + 0
            if below < 0:
                state = calls[CALL_W * (-below - 2) + CALL_NODE]
                if state == -1:
                    return intern_cycle(c, which)
                if state == 0:
                    descends = True
                    stack[VISIT_W * top + VISIT_EDGE] = e
                    top += 1
                    stack[VISIT_W * top + VISIT_CALL] = -below - 2
                    stack[VISIT_W * top + VISIT_EDGE] = calls[CALL_W * (-below - 2) + CALL_EDGE]
                    calls[CALL_W * (-below - 2) + CALL_NODE] = -1
        if descends:
            continue
        end = write_edges(c, k, 0)
        if end < 0:
            return -1
        node = intern_nodes(c, 0, 1, end)
        if node < 0:
            return -1
        calls[CALL_W * k + CALL_NODE] = node
        top -= 1
    return 0
