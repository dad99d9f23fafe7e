"""Closures (kernels): which instructions are reached without a byte, and the state that they record.

Programs are written here word by word. A closure begins anew where it lacks room, and finds the same with more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings, strategies as st

from constrain.engine.state_cache import HASHES
from constrain.kernels import layout as at
from constrain.kernels.closure import (
    add_call,
    begin_closure,
    call_rule,
    compute_closure,
    find_call,
    push_item,
    return_to_callers,
)
from constrain.kernels.growth import rehash_table
from tests.kernel_context_factory import Context
from tests.kernels.test_kernel_object_states import Rules as ObjectRules, code_of, string_block

Config = tuple[int, int, int, int, int]
"""pc, point, node, register, extra."""
SMALL = {at.ITEMS: 5, at.SEEN: 8, at.CALLS: 4, at.PENDING_EDGES: 5, at.MISSING: 1, at.BUFFER: 64, at.STARTS: 4,
         at.LEAVES: 4 * at.LEAF_W}  # fmt: skip
ROOMY = SMALL | {at.ITEMS: 5 * 512, at.SEEN: 2 * 2048, at.CALLS: 4 * 64, at.PENDING_EDGES: 5 * 512, at.MISSING: 64}
A, B = 97, 98


def grown(context: Context) -> None:
    """Grow the array that a closure requests."""
    status, slot = context.request
    assert status == at.FULL
    context.double(slot)
    if slot == at.ITEMS:
        context.double(at.SEEN)
    if slot in HASHES:
        context.double(HASHES[slot])
        rehash_table(context.address, HASHES[slot])


def closed(context: Context, *items: Config) -> set[Config]:
    """The configurations to which these items lead, each of which is there once."""
    while True:
        context.call(begin_closure)
        results = [*[context.call(push_item, *item) for item in items], context.call(compute_closure)]
        if not any(results):
            break
        assert {*results} <= {0, -1}
        grown(context)
    count = int(context.head[at.N_ITEMS])
    rows = [tuple(row) for row in context[at.ITEMS][: 5 * count].reshape(-1, 5).tolist()]
    assert max(Counter(rows).values()) == 1
    return {(-pc - 1, *rest) for pc, *rest in rows if -at.CALLED < pc < 0}  # type: ignore[misc]


def both(code: Sequence[int], *items: Config) -> tuple[set[Config], Context]:
    """Return the result with minimal arrays, which must equal that with large ones."""
    contexts = []
    for lengths, rubbish in ((SMALL, -1), (ROOMY, 0), (ROOMY, 7)):
        context = Context(lengths, rubbish)
        context[at.STARTS][:] = -1
        context.put(at.CODE, code)
        context.head[at.CLOSURES] = 1000
        contexts.append((closed(context, *items), context))
    first, second, third = (found for found, _ in contexts)
    assert first == second == third
    assert len({int(context.head[at.ACCEPTS]) for _, context in contexts}) == 1
    return first, contexts[0][1]


registers = st.integers(0, 6)
extras = st.sampled_from([0, -1])


@settings(max_examples=60)
@given(registers, extras, st.integers(0, 5), st.integers(-1, 5))
def test_rounds_are_counted(reg: int, ext: int, low: int, high: int) -> None:
    """A repetition is left after enough rounds, and begins one more while there are not too many."""
    code = [at.TEST, low, high, 7, at.COUNT, 4, A, B]
    found, _ = both(code, (0, -1, 0, reg, ext))
    assert ((7, -1, 0, 0, 0) in found) == (reg >= low)
    # A round that was begun is empty until something is taken: COUNT refuses it.
    assert not any(pc == 6 for pc, *_ in found)
    code[4:6] = at.JUMP, 6
    found, _ = both(code, (0, -1, 0, reg, ext))
    assert ((6, -1, 0, reg, 0) in found) == (high < 0 or reg < high)
    assert len(found) == (reg >= low) + (high < 0 or reg < high)


@settings(max_examples=40)
@given(registers, extras, st.integers(0, 7))
def test_a_round_counts_unless_it_is_empty(reg: int, ext: int, cap: int) -> None:
    """No further than to the cap."""
    found, _ = both([at.COUNT, cap, A], (0, -1, 0, reg, ext))
    assert found == (set() if ext == -1 else {(2, -1, 0, min(reg + 1, cap), 0)})


@settings(max_examples=40)
@given(registers, extras, st.integers(0, 2), st.booleans())
def test_leaving_a_repetition_inside_another(reg: int, ext: int, low: int, jumps: bool) -> None:
    """A round of the outer one is empty if those of the inner one were: none, or the outer one was and none was."""
    code = (
        [at.JUMP, 2, at.TEST, low, 0, 6, at.COUNT, 9, A]
        if jumps
        else [at.SPLIT, 1, 3, at.TEST, low, 0, 7, at.COUNT, 9, A]
    )
    found, _ = both(code, (0, -1, 0, reg, ext))
    is_empty = ext == -1 and reg == 0
    assert found == ({(len(code) - 1, -1, 0, 1, 0)} if reg >= low and not is_empty else set())


@settings(max_examples=40)
@given(registers, extras, st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_edges_are_followed_once_each(reg: int, ext: int, ways: list[int]) -> None:
    first = 2 + len(ways)
    code = [at.SPLIT, len(ways), *[first + way for way in ways], A, A + 1, A + 2, A + 3, A + 4, A + 5]
    found, context = both(code, (0, -1, 3, reg, ext))
    assert found == {(first + way, -1, 3, reg, 0) for way in ways}
    assert context.head[at.N_ITEMS] == 1 + 2 * len(set(ways))


@settings(max_examples=40)
@given(registers, extras, st.integers(0, 15))
def test_objects_continue_as_their_state_allows(reg: int, ext: int, flags: int) -> None:
    """Another member comes only if some key may, and an object closes only if it may: then its register is empty."""
    code = [at.SPLIT, 3, 5, 8, 11, at.MORE, 0, A, at.CLOSE, 0, A, at.ENTER, at.COUNT, 9, A]
    context = Context(ROOMY)
    context.put(at.CODE, code)
    context[at.OBJECTS][4 + at.O_FLAGS] = flags
    found = closed(context, (0, -1, 0, 4, ext))
    more = {(7, -1, 0, 4, 0)} if flags & (at.O_KEYS | at.O_OTHER | at.O_MARK) else set()
    ends = {(10, -1, 0, 0, 0)} if flags & at.O_CLOSE else set()
    assert found == more | ends | ({(14, -1, 0, 1, 0)} if ext == 0 else set())


@settings(max_examples=150)
@given(
    st.integers(0, 4), st.integers(-1, 4), st.integers(-1, 5), extras, st.integers(0, 15), st.sampled_from([0, 1, 9])
)
def test_leaves_exit_after_enough_characters(
    low: int, high: int, count: int, ext: int, flags: int, allowed: int
) -> None:
    """And continue while more are allowed; a leaf that was just entered has none yet, and its round may be empty.

    count: characters in the leaf, -1: just come to.
    """
    code = [
        at.LEAF,
        1,
        low,
        high,
        at.CALL,
        9,
        at.COUNT,
        9,
        A,
        10,
        at.END,
    ]  # what the rule that is called takes is empty
    context = Context(ROOMY)
    context.put(at.CODE, code)
    context[at.STARTS][:] = 1, 2, 3, 0
    leaf = context[at.LEAVES][2 * at.LEAF_W :]
    leaf[at.LEAF_FLAGS], leaf[at.LEAF_ALLOWED] = flags | at.LEAF_EXPANDED, allowed
    is_new, count = count < 0, max(count, 0)
    found = closed(context, (0, -1 if is_new else 2, 0, 5, ext if is_new else count))
    is_full = 0 <= high <= count and flags & at.LEAF_BOUNDARY and not flags & at.LEAF_CLOSES
    inside = {(0, 2, 0, 5, count)} if allowed and not is_full else set()
    leaves = flags & at.LEAF_EXITS and count >= low
    is_empty_round = is_new and ext == -1
    assert found == inside | ({(8, -1, 0, 6, 0)} if leaves and not is_empty_round else set())


def test_unknown_leaves_are_requested() -> None:
    context = Context(ROOMY)
    context.put(at.CODE, [at.LEAF, 1, 0, -1, A])
    context[at.STARTS][:] = -1
    context.call(begin_closure)
    context.call(push_item, 0, -1, 0, 0, 0)
    assert context.call(compute_closure) == -1 and context.request == (at.NEED_START, 1)
    context[at.STARTS][1] = 3
    context[at.LEAVES][3 * at.LEAF_W + at.LEAF_FLAGS] = at.LEAF_EXITS | at.LEAF_BOUNDARY
    context.call(begin_closure)
    context.call(push_item, 0, -1, 0, 0, 0)
    assert context.call(compute_closure) == -1 and context.request == (at.NEED_LEAF, 3)


@settings(max_examples=30)
@given(st.integers(1, 12))
def test_all_missing_rules_are_requested_at_once(count: int) -> None:
    code = [at.SPLIT, 2 * count]
    cells = 2 + 2 * count + 6 * count
    for k in range(2 * count):
        code.append(2 + 2 * count + 3 * k)
    for k in range(count):
        code += [at.CALL, cells + k, at.COUNT, at.PASS, cells + count + k, at.END]
    code += [0] * (2 * count)
    found, context = both(code, (0, -1, 0, 0, 0))
    assert not found
    assert sorted(context[at.MISSING][: context.head[at.N_MISSING]].tolist()) == list(range(cells, cells + 2 * count))


# ---- rules that call each other

Rules = Sequence[Sequence[Sequence[int]]]
"""For each rule its ways: each a list of rules that are called, -1 is a byte, -2 one that is taken over (PASS)."""


@dataclass
class Program:
    """Return the code of rules: the addresses of the alternatives of each rule, and their cells."""

    code: list[int]
    cells: list[int] = field(default_factory=list)


def written(rules: Rules) -> Program:
    """Return the code of rules: a SPLIT into the alternatives of each, which end with END."""
    code = [at.END, *[0] * len(rules)]
    cells = list(range(1, 1 + len(rules)))
    for cell, ways in zip(cells, rules):
        code[cell] = len(code)
        start = len(code) + 2
        code += [at.SPLIT, len(ways), *[0] * len(ways)]
        for k, way in enumerate(ways):
            code[start + k] = len(code)
            for symbol in way:
                code += [A] if symbol == -1 else [at.CALL, cells[symbol]]
            code.append(at.END)
    return Program(code, cells)


class Reached:
    """What is reached: all rules applied until nothing is new. A node is the cell of the rule that was called, 0: none.

    items: (pc, node) of places; edges: of each cell (return pc, node); ended: cells whose rules end without a byte.
    """

    def __init__(self, program: Program) -> None:
        self.code = program.code
        self.items: set[tuple[int, int]] = {(self.code[program.cells[0]], 0)}
        self.edges: dict[int, set[tuple[int, int]]] = {}
        self.ended = set[int]()
        before = -1
        while before != self.size():
            before = self.size()
            for pc, node in list(self.items):
                self.follow(pc, node)

    def size(self) -> int:
        return len(self.items) + len(self.ended) + sum(map(len, self.edges.values()))

    def follow(self, pc: int, node: int) -> None:
        code, op = self.code, self.code[pc]
        if op == at.SPLIT:
            self.items |= {(way, node) for way in code[pc + 2 : pc + 2 + code[pc + 1]]}
        elif op == at.END:
            self.ended.add(node)
            self.items |= self.edges.get(node, set())
        elif op == at.CALL and code[pc + 2] == at.END:  # whoever called this rule is called back
            self.items.add((code[code[pc + 1]], node))
        elif op == at.CALL:
            self.edges.setdefault(code[pc + 1], set()).add((pc + 2, node))
            self.items.add((code[code[pc + 1]], code[pc + 1]))
            if code[pc + 1] in self.ended:
                self.items.add((pc + 2, node))


@st.composite
def some_rules(draw: st.DrawFn) -> Rules:
    """Sets of rules, some so large that calls are hashed, recursive on either side and through each other."""
    count = draw(st.sampled_from([1, 2, 3, 5, 20, 40]))
    # Many rules are called one by one, beside what is drawn.
    symbol = st.integers(-1, min(count - 1, 4)) | st.integers(0, count - 1)
    ways = st.lists(st.lists(symbol, max_size=3), min_size=1, max_size=3)
    rules = [draw(ways) for _ in range(min(count, 6))]
    rules += [[[k % 5, -1], [-1]] if k % 3 else [[], [k - 1, 0]] for k in range(len(rules), count)]
    if count > 6:
        rules[0] = [*rules[0], *[[k, -1] for k in range(1, count)]]
    return rules


@settings(max_examples=35)
@given(some_rules())
def test_rules_that_call_each_other(rules: Rules) -> None:
    """What is reached, who called whom, and whether the text may end."""
    program = written(rules)
    wanted = Reached(program)
    found, context = both(program.code, (program.code[program.cells[0]], -1, 0, 0, 0))
    count = int(context.head[at.N_CALLS])
    calls = context[at.CALLS][: 4 * count].reshape(-1, 4).tolist()
    node_of = {-k - 2: call[0] for k, call in enumerate(calls)} | {0: 0}
    assert sorted(call[0] for call in calls) == sorted(wanted.edges)
    assert {(pc, node_of[node]) for pc, _, node, *_ in found} == {
        (pc, node) for pc, node in wanted.items if program.code[pc] == A
    }
    assert all((point, reg, ext) == (-1, 0, 0) for _, point, _, reg, ext in found)
    assert context.head[at.ACCEPTS] == (0 in wanted.ended)
    for cell, first, ended, state in calls:
        assert state == 0
        assert bool(ended) == (cell in wanted.ended)
        edges = list[tuple[int, int]]()
        while first >= 0:
            pc, _, _, node, following = context[at.PENDING_EDGES][5 * first : 5 * first + 5].tolist()
            edges.append((pc, node_of[node]))
            first = following
        assert set(edges) == wanted.edges[cell]
        assert len(edges) == len(set(edges)) or len(edges) > at.MOST_EDGES
    for k, (cell, *_) in enumerate(calls):
        assert context.call(find_call, cell) == k
    assert context.call(find_call, 9_999) == -1


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 3), st.integers(0, 2), extras), max_size=60), st.booleans()
)
def test_calls_of_a_closure(wanted: list[tuple[int, int, int, int]], is_nullable: bool) -> None:
    """Each rule has one call with its callers; a caller that is added after it has ended continues at once."""
    context = Context(ROOMY)
    context.put(at.CODE, [at.END, *[100 + cell for cell in range(51)], at.END])
    context.call(begin_closure)
    known = dict[int, list[tuple[int, int, int, int]]]()
    ended = set[int]()
    for cell, pc, reg, ext in wanted:
        before = int(context.head[at.N_ITEMS])
        edge = (pc, reg, ext, 0)
        is_new = edge not in known.setdefault(1 + cell, [])
        first_call = not known[1 + cell]
        is_known_late = len(known[1 + cell]) > at.MOST_EDGES
        assert context.call(call_rule, 1 + cell, pc, 0, reg << 1 | (ext & 1)) == 0
        if is_new:
            known[1 + cell].append(edge)
        which = list(known).index(1 + cell)
        assert context.call(find_call, 1 + cell) == which
        if not is_known_late:
            assert context.head[at.N_PENDING_EDGES] == sum(map(len, known.values()))
        if first_call:
            added = 1 + (which >= at.MOST_EDGES)
            last = context[at.ITEMS][5 * (before + added - 1) : 5 * (before + added)].tolist()
            assert last == [100 + cell, -1, -which - 2, 0, 0]
            assert context.head[at.N_ITEMS] >= before + added
        if is_nullable and first_call:
            assert context.call(return_to_callers, -which - 2) == 0
            ended.add(1 + cell)
        if 1 + cell in ended:
            rows = context[at.ITEMS][: 5 * context.head[at.N_ITEMS]].reshape(-1, 5).tolist()
            assert [pc, -1, 0, reg, ext] in rows
    assert context.head[at.N_CALLS] == len(known)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_the_end_of_a_rule_goes_on_with_every_caller(count: int) -> None:
    """Of a node that was there before the closure began; the bottom is the end of the text."""
    context = Context(ROOMY | {at.NODES: 12, at.EDGES: 60})
    context.put(at.CODE, [at.END, *[A] * 9])
    context[at.NODES][8:12] = 2, count, 1, -1
    for k in range(10):
        context[at.EDGES][3 * k : 3 * k + 3] = 1 + k % 9, k % 4, 1
    found = closed(context, (0, -1, 2, 0, 0))
    assert found == {(1 + k, -1, 1, k % 4, 0) for k in range(2, 2 + count)}
    assert context.head[at.ACCEPTS] == 0
    assert closed(context, (0, -1, 0, 0, 0)) == set() and context.head[at.ACCEPTS] == 1


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(-3, 2), st.integers(-1, 2), st.integers(-3, 1), st.integers(0, 1), extras)))
def test_items_are_on_the_list_once(items: list[Config]) -> None:
    """In the order in which they came; as many as fit, and at most half the capacity of SEEN."""
    context = Context(SMALL)
    for stamp in (0, 1 << 30):
        context.head[at.CLOSURES] = stamp
        if stamp:  # stamps begin anew before they overflow
            context[at.SEEN][0::2] = 1
        context.call(begin_closure)
        assert context.head[at.CLOSURES] == 1
        known = list[Config]()
        for item in items:
            while True:
                fits = 5 * (len(known) + 1) <= len(context[at.ITEMS])
                fits = fits and 2 * len(known) <= len(context[at.SEEN]) // 2 - 1
                result = context.call(push_item, *item)
                assert result == (0 if fits or item in known else -1)
                if result == 0:
                    break
                grown(context)
                context.call(begin_closure)
                for one in known:
                    assert context.call(push_item, *one) == 0
            if item not in known:
                known.append(item)
            assert context.head[at.N_ITEMS] == len(known)
        assert [tuple(row) for row in context[at.ITEMS][: 5 * len(known)].reshape(-1, 5).tolist()] == known


def test_a_closure_begins_with_nothing() -> None:
    context = Context(ROOMY)
    fields = [
        at.N_ITEMS,
        at.N_CALLS,
        at.N_PENDING_EDGES,
        at.N_MISSING,
        at.ACCEPTS,
        at.UNSURE,
        at.NAMED,
        at.CUT,
    ]
    context.head[:] = 5
    context.call(begin_closure)
    assert not context.head[fields].any() and context.head[at.CLOSURES] == 6
    assert context.head[[at.TEXT, at.CANDIDATES]].tolist() == [at.SPELLED, at.NO_CANDIDATES]
    kept = [k for k in range(at.HEAD_W) if k not in (*fields, at.CLOSURES, at.TEXT, at.CANDIDATES)]
    assert (context.head[kept] == 5).all()


@pytest.mark.parametrize(("items", "places"), [(1, 8), (3, 4), (8, 8), (20, 8)])
def test_space_for_calls(items: int, places: int) -> None:
    """They are stored among the items, for which SEEN needs capacity."""
    context = Context(ROOMY | {at.ITEMS: 5 * items, at.SEEN: 2 * places}, rubbish=7)
    context.call(begin_closure)
    n = 0
    while context.call(add_call, 100 + n, n) == 0:
        n += 1
        assert context.head[at.N_ITEMS] == n
    assert context.request == (at.FULL, at.ITEMS)
    assert n == min(items, (places - 1) // 2 + 1)
    assert context[at.ITEMS][: 5 * n].reshape(-1, 5).tolist() == [[-at.CALLED - 100 - k, k, 0, 0, 0] for k in range(n)]


NONE_LEFT = {at.NAMES: 3 * at.ROOTS, at.OBJECTS: 1, at.CURSORS: 1} | SMALL | {at.BUFFER: 1}
"""No room for a record of any kind."""


@pytest.mark.parametrize("lengths", [NONE_LEFT, ROOMY | {at.NAMES: 300, at.OBJECTS: 300, at.CURSORS: 300}])
def test_registers_that_begin(lengths: dict[int, int]) -> None:
    """An object begins with no keys seen, an array with no members; both also with arrays that have to grow first."""
    block = code_of(ObjectRules(0, 2, 0, frozenset(), (frozenset(), frozenset()), True, False, 0, -1), [1, 0])
    start = len(block)
    context = Context(lengths)
    context.put(at.CODE, [*block, at.INIT, 1, at.COUNT, 1 << 20, A, at.UNIQUE, at.MEMBER, 0, B, at.MEMBER_END, 0, A])
    ((pc, _, node, state, _),) = closed(context, (start, -1, 3, 9, 0))
    assert (pc, node, state) == (start + 4, 3, 2)  # the first state of an object, 1, and one round more
    assert context[at.OBJECTS][1 + at.O_MEMBERS : 1 + at.O_NAMES + 1].tolist() == [0, at.NO_NAMES]
    ((pc, _, node, register, _),) = closed(context, (start + 5, -1, 3, 9, 0))
    assert (pc, node) == (start + 8, 3)
    assert context[at.NAMES][3 * register : 3 * register + 2].tolist() == [at.NO_MEMBERS, at.SPELLED]
    ((pc, _, node, after, _),) = closed(context, (start + 9, -1, 3, register, 0))
    assert (pc, node) == (start + 11, 3)
    assert context[at.NAMES][3 * after : 3 * after + 2].tolist() == [register, at.SPELLED]


@pytest.mark.parametrize("lengths", [NONE_LEFT, ROOMY | {at.CURSORS: 300}])
@pytest.mark.parametrize("strings", [[b"a", b"b"], [b"", b"a"], [b""]])
def test_strings_begin(lengths: dict[int, int], strings: list[bytes]) -> None:
    """At a point before them all; an empty one is over at once."""
    block = string_block(0, strings)
    context, start = Context(lengths), len(block)
    context.put(at.CODE, [*block, at.SET, 0, at.COUNT, 9, A])
    found = closed(context, (start, -1, 3, 5, 0))
    over = {(start + 4, -1, 3, 6, 0)} if b"" in strings else set()
    assert found == {(start, 0, 3, 5, 0)} | over
    assert context[at.CURSORS][:4].tolist() == [0, 0, len(strings), 0]
