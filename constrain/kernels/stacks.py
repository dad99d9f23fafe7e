"""Stack nodes: the calls of a closure get ids by which equal stacks are equal (kernels).

A node is its edges: (return pc, register, node below). Nodes are interned from below; those on a cycle (left
recursion) refer to each other and are interned as one block.

In an ambiguous grammar a node can have as many edges as the text has bytes, most of them those of the node one byte
before. A node of many edges therefore has the older ones through other nodes, each of which holds some of them and
refers to the next: an edge to `RETURN`, where there is an END, by which a rule that ends here goes on as one that ends
there. Nodes share these, and a closure comes to each once, so that n bytes take O(n^2) time instead of O(n^3).
"""

from __future__ import annotations

from typing import Any

from .context_views import size, view
from .interned_names import ask, mix
from .jit.compilation import inlined, kernel
from .layout import *  # noqa: F403  (constants only)


@inlined("int64(int64, int64, int64)")
def is_before(c: Any, one: Any, other: Any) -> Any:
    """Whether the edge at `one` in BUFFER comes before that at `other`: by the node below, then pc, then register."""
    buffer = view(c, BUFFER)
    if buffer[one + 2] != buffer[other + 2]:
        return buffer[one + 2] < buffer[other + 2]
    if buffer[one] != buffer[other]:
        return buffer[one] < buffer[other]
    return buffer[one + 1] < buffer[other + 1]


@kernel("int64(int64, int64, int64)")
def sort_edges(c: Any, first: Any, n: Any) -> Any:
    """Sorts the n edges in BUFFER from `first` on (Shell 1959) and leaves out repeats: how many remain."""
    buffer = view(c, BUFFER)
    gap = n // 2
    while gap > 0:
        for k in range(gap, n):
            j = k
            while j >= gap and is_before(c, first + 3 * j, first + 3 * (j - gap)):
                for field in range(3):
                    one, other = first + 3 * j + field, first + 3 * (j - gap) + field
                    kept = buffer[one] + 0
                    buffer[one] = buffer[other]
                    buffer[other] = kept
                j -= gap
        gap = 1 if gap == 2 else gap * 5 // 11
    kept = 1
    for k in range(1, n):
        if is_before(c, first + 3 * (kept - 1), first + 3 * k):
            for field in range(3):
                buffer[first + 3 * kept + field] = buffer[first + 3 * k + field]
            kept += 1
    return kept


@kernel("int64(int64, int64, int64, int64)")
def intern_nodes(c: Any, start: Any, count: Any, end: Any) -> Any:
    """The `count` stack nodes written in BUFFER[start .. end), as one block: the id of the first, or -1."""
    head, nodes, edges, table = view(c, HEAD), view(c, NODES), view(c, EDGES), view(c, NODE_HASH)
    buffer, code = view(c, BUFFER), view(c, CODE)
    last = size(c, NODE_HASH) - 1
    h = mix(0, count)
    for k in range(start, end):
        h = mix(h, buffer[k])
    h &= last
    while True:
        base = table[h]
        if base <= 0 or base >= head[N_NODES] or nodes[4 * base + 3] != h:
            break
        same = nodes[4 * base + 2] & ~IN_MEMBER == count
        at = start
        for k in range(count if same else 0):
            n = buffer[at]
            at += 1
            same = same and nodes[4 * (base + k) + 1] == n
            for j in range(n if same else 0):
                e = 3 * (nodes[4 * (base + k)] + j)
                below = buffer[at + 3 * j + 2] + 0
                if below < 0:
                    below = base - below - 2
                same = same and edges[e] == buffer[at + 3 * j] and edges[e + 1] == buffer[at + 3 * j + 1]
                same = same and edges[e + 2] == below
            at += 3 * n
        if same:
            return base
        h = (h + 1) & last
    base = head[N_NODES] + 0
    if 4 * (base + count) > size(c, NODES) or 2 * base > last:
        return ask(c, FULL, NODES)
    if 3 * (head[N_EDGES] + end - start) > size(c, EDGES):
        return ask(c, FULL, EDGES)
    at, inside = start + 0, 0
    for _ in range(count):
        n = buffer[at]
        at += 1
        for j in range(n):
            below = buffer[at + 3 * j + 2] + 0
            if code[buffer[at + 3 * j]] == MEMBER_END or (below >= 0 and nodes[4 * below + 2] & IN_MEMBER):
                inside = IN_MEMBER
        at += 3 * n
    at = start + 0
    for k in range(count):
        n = buffer[at]
        at += 1
        node = 4 * (base + k)
        nodes[node] = head[N_EDGES]
        nodes[node + 1] = n
        nodes[node + 2] = (count if k == 0 else 0) | inside
        nodes[node + 3] = h if k == 0 else -1
        for _ in range(n):
            e = 3 * head[N_EDGES]
            below = buffer[at + 2] + 0
            edges[e] = buffer[at]
            edges[e + 1] = buffer[at + 1]
            edges[e + 2] = below if below >= 0 else base - below - 2
            at += 3
            head[N_EDGES] += 1
    table[h] = base
    head[N_NODES] = base + count
    return base


@kernel("int64(int64, int64, int64)")
def share_edges(c: Any, at: Any, n: Any) -> Any:
    """Puts all but the last of n edges, sorted, behind BUFFER[at] into nodes of their own. The place behind, or -1.

    Edges to nodes that have no final id yet come first, and stay.
    """
    buffer, first = view(c, BUFFER), at + 1
    if first + 6 * n + 3 * FEW_EDGES + 8 > size(c, BUFFER):
        return ask(c, FULL, BUFFER)
    own = 0
    while own < n and buffer[first + 3 * own + 2] < 0:
        own += 1
    done, shared, scratch = own + 0, own - own - 1, first + 3 * n
    while n - done > FEW_EDGES:
        end = scratch + 1
        if shared >= 0:
            buffer[end], buffer[end + 1], buffer[end + 2] = RETURN, 0, shared
            end += 3
        for k in range(3 * FEW_EDGES):
            buffer[end + k] = buffer[first + 3 * done + k]
        end += 3 * FEW_EDGES
        buffer[scratch] = (end - scratch) // 3
        shared = intern_nodes(c, scratch, 1, end)
        if shared < 0:
            return -1
        done += FEW_EDGES
    if shared >= 0:
        buffer[first + 3 * own], buffer[first + 3 * own + 1], buffer[first + 3 * own + 2] = RETURN, 0, shared
        own += 1
        for k in range(3 * (n - done)):
            buffer[first + 3 * own + k] = buffer[first + 3 * done + k]
        n = own + n - done
    buffer[at] = n
    return first + 3 * n


@kernel("int64(int64, int64, int64)")
def write_node(c: Any, which: Any, at: Any) -> Any:
    """The edges of call `which` into BUFFER at `at`: how many, then (pc, register, node) each. The place behind, or -1.

    Nodes below that have their final id are written as that, others as -index - 2 of LOCALS' visit order.
    """
    calls, ledges, buffer = view(c, LOCALS), view(c, LEDGES), view(c, BUFFER)
    n, first = 0, at + 1
    e = calls[4 * which + 1]
    while e >= 0:
        if first + 3 * n + 3 > size(c, BUFFER):
            return ask(c, FULL, BUFFER)
        pc, reg, below = ledges[5 * e], ledges[5 * e + 1], ledges[5 * e + 3] + 0
        if below < 0:
            below = calls[4 * (-below - 2) + 3]
        e = ledges[5 * e + 4]
        known = False
        for k in range(min(n, FEW_EDGES)):
            j = first + 3 * k
            known = known or (buffer[j] == pc and buffer[j + 1] == reg and buffer[j + 2] == below)
        if not known:
            j = first + 3 * n
            buffer[j] = pc
            buffer[j + 1] = reg
            buffer[j + 2] = below
            n += 1
    if n > FEW_EDGES:
        return share_edges(c, at, sort_edges(c, first, n))
    buffer[at] = n
    return first + 3 * n


@kernel("int64(int64, int64)")
def settle_cycle(c: Any, which: Any) -> Any:
    """As `settle`, for calls on a cycle: all that `which` reaches and that have no id yet become one block."""
    head, calls, ledges, stack = view(c, HEAD), view(c, LOCALS), view(c, LEDGES), view(c, PATH)
    for k in range(head[N_LOCALS]):
        if calls[4 * k + 3] < 0:
            calls[4 * k + 3] = 0
    # Numbered in the order in which they are reached: index i is written as -i - 2.
    calls[4 * which + 3] = -2
    stack[0] = which
    n, done = 1, 0
    while done < n:
        e = calls[4 * stack[done] + 1]
        done += 1
        while e >= 0:
            below = ledges[5 * e + 3]
            e = ledges[5 * e + 4]
            if below < 0 and calls[4 * (-below - 2) + 3] == 0:
                calls[4 * (-below - 2) + 3] = -n - 2
                stack[n] = -below - 2
                n += 1
    end = 0
    for k in range(n):
        end = write_node(c, stack[k], end)
        if end < 0:
            return -1
    base = intern_nodes(c, 0, n, end)
    if base < 0:
        return -1
    for k in range(n):
        calls[4 * stack[k] + 3] = base + k
    return 0


@kernel("int64(int64, int64)")
def settle(c: Any, which: Any) -> Any:
    """Gives call `which` and all below it their final ids, in LOCALS[., 3]: 0 or -1.

    Nodes are interned from below; where calls lie on a cycle (left recursion), all of the closure's calls that are
    reached are interned as one block.
    """
    calls, ledges, stack = view(c, LOCALS), view(c, LEDGES), view(c, PATH)
    if 2 * view(c, HEAD)[N_LOCALS] + 4 > size(c, PATH):
        return ask(c, FULL, PATH)
    # Visit states: 0 new, -1 being visited, > 0 final id. PATH holds (call, edge to look at next).
    top = 0
    stack[0], stack[1] = which, calls[4 * which + 1]
    calls[4 * which + 3] = -1
    while top >= 0:
        k, e = stack[2 * top] + 0, stack[2 * top + 1] + 0
        deeper = False
        while e >= 0 and not deeper:
            below = ledges[5 * e + 3]
            e = ledges[5 * e + 4] + 0
            if below < 0:
                state = calls[4 * (-below - 2) + 3]
                if state == -1:
                    return settle_cycle(c, which)
                if state == 0:
                    deeper = True
                    stack[2 * top + 1] = e
                    top += 1
                    stack[2 * top] = -below - 2
                    stack[2 * top + 1] = calls[4 * (-below - 2) + 1]
                    calls[4 * (-below - 2) + 3] = -1
        if deeper:
            continue
        end = write_node(c, k, 0)
        if end < 0:
            return -1
        final = intern_nodes(c, 0, 1, end)
        if final < 0:
            return -1
        calls[4 * k + 3] = final
        top -= 1
    return 0
