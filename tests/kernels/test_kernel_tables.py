"""Tables of interned records (kernels): equal keys get one number, however crowded, grown or dirty the memory is.

The oracle is a dict. A table asks for room exactly where the next record does not fit, or where more than half of its
hash table is filled; hash tables begin with rubbish, as a state cache begins in the memory of one that is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings, strategies as st
from numba import njit

from constrain.kernels import layout as at
from constrain.kernels.growth import rehash_table
from constrain.kernels.interned_names import extend_chain
from constrain.kernels.jit.compilation import OPTIONS
from constrain.kernels.member_guards import add_guard, find_guard
from constrain.kernels.parsing import intern_pair
from constrain.kernels.string_cursors import intern_cursor
from tests.kernel_context_factory import Context


@dataclass(frozen=True)
class Table:
    """A kernel that interns records. width: int32s of a record; arguments: fields of its key, which come first.

    allowance: a record more fits while twice the number of records is at most the last place of the hash table, or,
    if 1, at most the length of the hash table.
    """

    kernel: Callable[..., int]
    slot: int
    hash_slot: int
    count: int
    width: int
    arguments: int
    first: int = 0
    allowance: int = 0


TABLES = {
    "pairs": Table(intern_pair, at.PAIRS, at.PAIR_HASH, at.N_PAIRS, at.PAIR_W, 2, first=1),
    "names": Table(extend_chain, at.NAMES, at.NAME_HASH, at.N_NAMES, 3, 2, first=at.ROOTS),
    "string cursors": Table(intern_cursor, at.CURSORS, at.CURSOR_HASH, at.N_CURSORS, 5, 4),
}
rubbish = st.sampled_from([0, -1, 1, 2, 3, 7, 1 << 30])


def small(table: Table, rubbish: int) -> Context:
    """Return a context in which that table has minimal capacity, and hash tables hold rubbish."""
    return Context({table.slot: (table.first + 1) * table.width, table.hash_slot: 16}, rubbish)


def fits(table: Table, context: Context) -> bool:
    """Return whether one more record fits."""
    count = int(context.head[table.count])
    room = table.width * (count + 1) <= len(context[table.slot])
    return room and 2 * count <= len(context[table.hash_slot]) - 1 + table.allowance


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=25)
@given(st.data(), rubbish)
def test_equal_keys_have_one_number(name: str, data: st.DataObject, rubbish: int) -> None:
    table = TABLES[name]
    context = small(table, rubbish)
    values = st.integers(-2, 3) | st.sampled_from([1000, 1 << 20, -(1 << 31)])
    keys = data.draw(st.lists(st.tuples(*[values] * table.arguments), max_size=60))
    for _ in range(2):
        known: dict[tuple[int, ...], int] = {}
        for key in keys:
            is_new = key not in known
            while (number := context.call(table.kernel, *key)) == -1:
                assert context.request == (at.FULL, table.slot)
                assert is_new and not fits(table, context)
                context.double(table.slot)
                context.double(table.hash_slot)
                rehash_table(context.address, table.hash_slot)
                context.check()
            if is_new:
                known[key] = table.first + len(known)
            assert number == known[key]
            assert context.head[table.count] == table.first + len(known)
            record = context[table.slot][number * table.width :][: table.arguments]
            assert tuple(record.tolist()) == key
        rehash_table(context.address, table.hash_slot)
        assert [context.call(table.kernel, *key) for key in keys] == [known[key] for key in keys]
        context.reset()


@pytest.mark.parametrize("name", TABLES)
def test_space_is_requested_only_where_an_array_is_full(name: str) -> None:
    """Neither a record sooner nor one later: a hash table that is full would be searched for ever."""
    table = TABLES[name]
    for length, places in ((9, 32), (32, 16), (17, 32)):
        context = small(table, -1)
        context.put(table.slot, [-1] * (length * table.width))
        context.put(table.hash_slot, [-1] * places)
        context.reset()
        n = 0
        while True:
            had_room = fits(table, context)
            result = context.call(table.kernel, *[n] * table.arguments)
            assert (result >= 0) == had_room
            if not had_room:
                break
            n += 1
        assert n == min(length, (places + 1) // 2) - table.first


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def look_up(c: int, key: int, text: int, place: int) -> int:
    """`find_guard`, which is linked into its callers."""
    return find_guard(c, key, text, place)  # type: ignore[no-any-return]


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(-6, 3), st.integers(-2, 3), st.integers(0, 2), st.integers(0, 1)), max_size=40),
    rubbish,
)
def test_stored_answers_about_members_are_reused(questions: list[tuple[int, int, int, int]], rubbish: int) -> None:
    """By their key, text and place, with their bytes cleared; also after the table was rebuilt."""
    table = Table(add_guard, at.GUARDS, at.GUARD_HASH, at.N_GUARDS, at.GUARD_W, 2, allowance=1)
    context = small(table, rubbish)
    for _ in range(2):
        known: list[tuple[int, int, int]] = []
        for key, text, place, answer in questions:
            if (key, text, place) in known:
                continue
            while (number := context.call(add_guard, key, text, place, answer)) == -1:
                assert context.request == (at.FULL, at.GUARDS) and not fits(table, context)
                context.double(at.GUARDS)
                context.double(at.GUARD_HASH)
                rehash_table(context.address, at.GUARD_HASH)
            assert number == len(known)
            known.append((key, text, place))
            record = context[at.GUARDS][number * at.GUARD_W :][: at.GUARD_W].tolist()
            assert record[:3] == [key, text, answer] and record[at.GUARD_PLACE] == place
            assert record[at.GUARD_BYTES :] == [0] * 8
            assert context[at.GUARD_HASH][record[at.GUARD_SLOT]] == number
            assert context.head[at.N_GUARDS] == len(known)
        for number, (key, text, place) in enumerate(known):
            assert context.call(look_up, key, text, place) == number
            assert context.call(look_up, key + 10, text, place) < 0
            assert context.call(look_up, key, text, place + 3) < 0
        rehash_table(context.address, at.GUARD_HASH)
        context.reset()
