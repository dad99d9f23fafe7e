"""Stack nodes (kernels): equal sets of return addresses share one number, and each node leads to its callers.

Nodes are read back from NODES and EDGES. A node with many edges has some of them through others: `edges_of` follows
these, and finds the set that the node stands for.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings, strategies as st

from constrain.kernels import layout as at
from constrain.kernels.growth import rehash_table
from constrain.kernels.stacks import intern_call, intern_nodes, sort_edges
from tests.kernel_context_factory import MARK, Context

PLACES = 40
"""Length of CODE: pcs are below. At multiples of 7 stands the end of a member."""
Edge = tuple[int, int, int]
"""Return pc, register, node below."""


def small(
    rubbish: int, nodes: int = 2, edges: int = 4, places: int = 16, buffer: int = 8, path: int = 8, mark: int = 0
) -> Context:
    """Return a context with the given capacities, and `buffer` int32s of scratch."""
    lengths = {at.NODES: 4 * nodes, at.EDGES: 3 * edges, at.NODE_HASH: places, at.BUFFER: buffer, at.PATH: path}
    context = Context(lengths, rubbish, mark)
    context.put(at.CODE, [at.MEMBER_END if pc > 0 and pc % 7 == 0 else at.END for pc in range(PLACES)])
    return context


def records(context: Context, node: int) -> list[Edge]:
    """Return the edges of a node in stored order."""
    first, count = context[at.NODES][4 * node : 4 * node + 2].tolist()
    return [tuple(row) for row in context[at.EDGES][3 * first : 3 * (first + count)].reshape(-1, 3).tolist()]


def edges_of(context: Context, node: int) -> set[Edge]:
    """The edges of a node, those that it has through others included."""
    found = set[Edge]()
    for edge in records(context, node):
        found |= edges_of(context, edge[2]) if edge[0] == at.RETURN else {edge}
    return found


def provide(context: Context) -> None:
    """Grow the requested array."""
    status, slot = context.request
    assert status == at.FULL
    context.double(slot)
    if slot == at.NODES:
        context.double(at.NODE_HASH)
        rehash_table(context.address, at.NODE_HASH)


edge = st.tuples(st.integers(1, PLACES - 1), st.integers(0, 2), st.integers(0, 2))
rubbish = st.sampled_from([0, -1, 1, 2, 5, 1 << 30])


@settings(max_examples=40)
@given(st.lists(edge, min_size=1, max_size=70), st.integers(0, 3))
def test_edges_are_sorted_by_the_node_below(edges: list[Edge], first: int) -> None:
    """Then by pc and register; repeats are removed, and earlier records are unchanged."""
    context = small(0, buffer=3 * 70 + 4)
    flat = [number for one in edges for number in one]
    context[at.BUFFER][: first + len(flat)] = [9] * first + flat
    count = context.call(sort_edges, first, len(edges))
    found = context[at.BUFFER][first : first + 3 * count].reshape(-1, 3).tolist()
    assert [tuple(one) for one in found] == sorted(set(edges), key=lambda one: (one[2], one[0], one[1]))
    assert context[at.BUFFER][:first].tolist() == [9] * first


Block = tuple[tuple[Edge, ...], ...]
"""The edges of the nodes of a block. A node below of -i - 2 is node i of the block; else nodes known so far, modulo."""


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    """One node, or several that refer to each other."""
    count = draw(st.sampled_from([1, 1, 2, 3]))
    below = st.integers(0, 5) | (st.integers(-count - 1, -2) if count > 1 else st.nothing())
    one = st.tuples(st.integers(1, 8), st.integers(0, 1), below)
    return tuple(tuple(draw(st.lists(one, max_size=3))) for _ in range(count))


@settings(max_examples=35)
@given(st.lists(blocks(), min_size=1, max_size=24), rubbish)
def test_equal_blocks_of_nodes_have_one_number(wanted: list[Block], rubbish: int) -> None:
    """With any initial capacity, and again in the memory of a state cache that was cleared."""
    context = small(rubbish, buffer=64)
    for _ in range(2):
        known, inside, edges = dict[Block, int](), [False], 0
        for block in wanted + wanted:
            nodes = len(inside)
            block = tuple(tuple((pc, reg, below if below < 0 else below % min(nodes, 3)) for pc, reg, below in one)
                          for one in block)  # fmt: skip
            flat = [number for one in block for number in (len(one), *(field for edge in one for field in edge))]
            context[at.BUFFER][3 : 3 + len(flat)] = flat
            while (base := context.call(intern_nodes, 3, len(block), 3 + len(flat))) == -1:
                slot = context.request[1]
                fits = nodes + len(block) <= len(context[at.NODES]) // 4 and 2 * nodes < len(context[at.NODE_HASH])
                assert block not in known
                assert not fits if slot == at.NODES else 3 * (edges + len(flat)) > len(context[at.EDGES])
                provide(context)
            if block not in known:
                known[block] = nodes
                is_inside = any(pc % 7 == 0 or (below >= 0 and inside[below]) for one in block for pc, _, below in one)
                inside += [is_inside] * len(block)
                edges += sum(map(len, block))
            assert base == known[block]
            assert context.head[[at.N_NODES, at.N_EDGES]].tolist() == [len(inside), edges]
            for i, one in enumerate(block):
                read = [(pc, reg, base - below - 2 if below < 0 else below) for pc, reg, below in one]
                assert records(context, base + i) == read
                assert bool(context[at.NODES][4 * (base + i) + 2] & at.IN_MEMBER) == inside[base + i]
        context.reset()


@settings(max_examples=30)
@given(st.integers(1, 4), st.integers(1, 12), st.sampled_from([16, 32]))
def test_space_is_requested_only_where_nodes_do_not_fit(count: int, room: int, places: int) -> None:
    context, made = small(-1, nodes=1 + room, edges=500, places=places, buffer=64), 1
    while True:
        flat = [number for i in range(count) for number in (1, 1 + i, made, 0)]
        context[at.BUFFER][: len(flat)] = flat
        fits = made + count <= 1 + room and 2 * made < places
        assert (context.call(intern_nodes, 0, count, len(flat)) == made) == fits
        if not fits:
            assert context.request == (at.FULL, at.NODES)
            return
        made += count


Calls = Sequence[Sequence[Edge]]
"""The callers of each call of a closure; a node below of -k - 2 is call k."""


@st.composite
def closures(draw: st.DrawFn) -> Calls:
    """Calls, some of which return to each other; some with many callers, also the same more than once."""
    count = draw(st.integers(1, 5))
    is_acyclic = draw(st.booleans())
    calls = []
    for k in range(count):
        others = range(-count - 1, -k - 2) if is_acyclic else range(-count - 1, -1)
        below = st.integers(0, 3) | (st.sampled_from(others) if others else st.nothing())
        size = draw(st.sampled_from([1, 2, 4, 16, 17, 18, 33, 34, 60]))
        one = st.tuples(st.integers(1, PLACES - 1), st.integers(0, 2), below)
        callers = draw(st.lists(one, min_size=1, max_size=size))
        callers += [(pc, reg, 0) for pc in range(1, min(size, PLACES)) for reg in range(1 + size // PLACES)]
        calls.append(callers if size > 4 else callers[:size])
    return calls


def begin(context: Context, calls: Calls) -> None:
    """Write calls as `closure.call_rule` does: the callers of each are a linked list, the last one first."""
    edges = [(*edge, k) for k, callers in enumerate(calls) for edge in callers]
    first, pending_edges = [-1] * len(calls), list[int]()
    for e, (pc, reg, below, k) in enumerate(edges):
        pending_edges += [pc, reg, 0, below, first[k]]
        first[k] = e
    context.put(at.PENDING_EDGES, pending_edges)
    context.put(at.CALLS, [number for k in range(len(calls)) for number in (100 + k, first[k], 0, 0)])
    context.head[at.N_CALLS], context.head[at.N_PENDING_EDGES] = len(calls), len(edges)


def reached(calls: Calls, which: int) -> set[int]:
    """The calls that a call returns to, itself included."""
    found, todo = set[int](), [which]
    while todo:
        k = todo.pop()
        if k not in found:
            found.add(k)
            todo += [-below - 2 for _, _, below in calls[k] if below < 0]
    return found


@settings(max_examples=20)
@given(st.lists(closures(), min_size=1, max_size=3), rubbish, st.data())
def test_each_call_becomes_a_node_with_its_callers(several: list[Calls], rubbish: int, data: st.DataObject) -> None:
    """The same calls with small arrays that grow and with large ones give the same nodes."""
    grown, roomy = (
        small(rubbish),
        small(rubbish, nodes=4_000, edges=40_000, places=16_384, buffer=16_000, path=400, mark=MARK),
    )
    for context in (grown, roomy):
        for node in range(1, 4):  # what was there before
            context[at.BUFFER][:4] = [1, 8 * node, 0, 0]
            while context.call(intern_nodes, 0, 1, 4) == -1:
                provide(context)
    for calls in several:
        which = data.draw(st.integers(0, len(calls) - 1))
        before = {context: int(context.head[at.N_NODES]) for context in (grown, roomy)}
        for context in (grown, roomy):
            begin(context, calls)
            while context.call(intern_call, which) == -1:
                provide(context)
                context[at.CALLS][3::4] = 0
        for context in (grown, roomy):
            final = context[at.CALLS][3::4].tolist()
            for k in reached(calls, which):
                callers = {(pc, reg, below if below >= 0 else final[-below - 2]) for pc, reg, below in calls[k]}
                assert final[k] > 0
                assert edges_of(context, final[k]) == callers
                check_shape(context, final[k], len({below for _, _, below in calls[k] if below < 0}))
            if all(len(set(calls[k])) <= at.MOST_EDGES for k in reached(calls, which)):
                assert context.head[at.N_NODES] <= before[context] + len(reached(calls, which))
            begin(context, calls)
            made = int(context.head[at.N_NODES])
            assert context.call(intern_call, which) == 0
            assert context[at.CALLS][3::4].tolist()[which] == final[which]
            assert context.head[at.N_NODES] == made


def check_shape(context: Context, node: int, unsettled: int) -> None:
    """A node and those that it has edges through have a bounded number of edges, none of them twice."""
    edges = records(context, node)
    assert len(edges) == len(set(edges))
    assert len(edges) <= at.MOST_EDGES + 1 + PLACES * 3 * unsettled
    shared = [below for pc, _, below in edges if pc == at.RETURN]
    assert len(shared) <= 1 and all(reg == 0 for pc, reg, _ in edges if pc == at.RETURN)
    for below in shared:
        check_shape(context, below, 0)


@pytest.mark.parametrize("count", [1, 5, 60])
def test_calls_that_return_to_each_other_in_a_row(count: int) -> None:
    """However deep: each becomes a node, the last one first."""
    context = small(-1)
    calls = [[(1, 0, -k - 3), (2, 0, 0)] for k in range(count - 1)] + [[(1, 0, 0)]]
    begin(context, calls)
    while context.call(intern_call, 0) == -1:
        provide(context)
        context[at.CALLS][3::4] = 0
    assert context[at.CALLS][3::4].tolist() == list(range(count, 0, -1))
    assert context.head[at.N_NODES] == 1 + count


def test_nodes_share_the_edges_that_they_have_in_common() -> None:
    """n calls, each with the callers of the one before and one more, take some n^2 / 16 edges, not n^2 / 2."""
    context, count = small(-1, nodes=4_000, edges=40_000, places=16_384, buffer=16_000, path=4_000), 200
    callers: list[Edge] = []
    for n in range(count):
        callers.append((1, n, 0))
        begin(context, [callers])
        assert context.call(intern_call, 0) == 0
        assert edges_of(context, int(context[at.CALLS][3])) == set(callers)
    assert context.head[at.N_EDGES] < count * (at.MOST_EDGES + 4)
