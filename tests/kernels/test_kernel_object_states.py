"""Object states (kernels): a key may come if and only if the object can still be closed then.

The oracle tries every way to go on. Keys that nothing asks for are alike, and of those it tries the first only, so that
objects with more keys than a word has bits can be asked about too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pytest
from hypothesis import given, settings, strategies as st
from numba import njit

from constrain.kernels import layout as at
from constrain.kernels.interned_names import extend_chain
from constrain.kernels.jit.compilation import OPTIONS
from constrain.kernels.object_states import (
    add_member,
    add_named_member,
    first_allowed_key,
    is_excluded,
    is_name_free,
    is_taken_prefix,
    may_repeat,
    may_set_mark,
    start_object,
)
from tests.kernel_context_factory import Context

LENGTHS = {at.OBJECTS: 512, at.OBJECT_HASH: 32, at.NAMES: 64, at.NAME_HASH: 32, at.BUFFER: 16}
"""Little room, so that hash tables are crowded and scratch has to grow."""


@dataclass(frozen=True)
class Rules:
    """What an object asks for. plain: keys before all others that nothing asks for; keys: of the others.

    needs: for each of the others, keys that come with it. Numbers of keys count from the first plain one; marks, all of
    which are required, follow.
    """

    plain: int
    keys: int
    marks: int
    required: frozenset[int]
    needs: tuple[frozenset[int], ...]
    is_free: bool
    others: bool
    low: int
    high: int

    @property
    def count(self) -> int:
        return self.plain + self.keys

    def is_complete(self, seen: frozenset[int], members: int) -> bool:
        """Whether the object may close."""
        needed = set(self.required)
        while more := {one for key in seen | needed if self.plain <= key < self.count
                       for one in self.needs[key - self.plain]} - needed:  # fmt: skip
            needed |= more
        return needed <= seen and self.low <= members and (self.high < 0 or members <= self.high)

    def after(self, state: State, key: int) -> State:
        """The state after declared key `key`, mark `key`, or, if -1, an undeclared key without one."""
        following = 0 if self.is_free else key + 1 if 0 <= key < self.count else self.count
        members = state.members + 1 if self.high >= 0 else min(state.members + 1, self.low)
        return State(following, state.seen | {key} - {-1}, members)

    def next_keys(self, state: State) -> Iterator[int]:
        """Declared keys that have not come and are not passed over; marks that are not set; -1 if there are others."""
        yield from (key for key in range(state.following, self.count) if key not in state.seen)
        if self.others:
            yield from (mark for mark in range(self.count, self.count + self.marks) if mark not in state.seen)
            yield -1


@dataclass(frozen=True)
class State:
    following: int
    seen: frozenset[int]
    members: int


@lru_cache(maxsize=100_000)
def can_close(rules: Rules, state: State) -> bool:
    """Return whether some continuation ends in an object that may close."""
    if rules.high >= 0 and state.members > rules.high:
        return False
    if rules.is_complete(state.seen, state.members):
        return True
    keys = list(rules.next_keys(state))
    alike = [key for key in keys if 0 <= key < rules.plain]
    for key in alike[:1] + keys[len(alike) :]:
        after = rules.after(state, key)
        if after != state and can_close(rules, after):
            return True
    return False


def words_of(bits: Sequence[int] | frozenset[int], words: int) -> list[int]:
    """A bit set as int32s."""
    found = [0] * words
    for bit in bits:
        found[bit >> 5] |= 1 << (bit & 31)
    return [word - (word >> 31 << 32) for word in found]


def string_block(base: int, strings: Sequence[bytes]) -> list[int]:
    """Return a block of sorted strings for the address `base`."""
    offsets, texts = [base + at.STR_OFFSETS + len(strings) + 1], list[int]()
    for string in sorted(strings):
        texts += string
        offsets.append(offsets[0] + len(texts))
    return [len(strings), 0, *offsets, *texts]


def code_of(rules: Rules, ranks: Sequence[int], excluded: Sequence[bytes] = ()) -> list[int]:
    """Return the object block of these rules, for address 1 of CODE."""
    words = (rules.count + rules.marks + 31) // 32
    head, rest = [0] * at.OBJ_W, list[int]()

    def put(field: int, values: Sequence[int]) -> None:
        head[field] = 1 + at.OBJ_W + len(rest)
        rest.extend(values)

    head[at.OBJ_COUNT], head[at.OBJ_ORDER], head[at.OBJ_LOW] = rules.count, rules.is_free, rules.low
    head[at.OBJ_HIGH], head[at.OBJ_OTHERS], head[at.OBJ_WORDS] = rules.high, rules.others, words
    head[at.OBJ_COUNTED], head[at.OBJ_MARKS] = rules.low > 0 or rules.high >= 0, rules.marks
    put(at.OBJ_REQUIRED, words_of(rules.required, words))
    if any(rules.needs):
        sets = [frozenset[int]()] * rules.plain + list(rules.needs)
        put(at.OBJ_NEEDS, [word for one in sets for word in words_of(one, words)])
    put(at.OBJ_RANKS, ranks)
    put(at.OBJ_EXCLUDED, string_block(1 + at.OBJ_W + len(rest), excluded))
    return [0, *head, *rest]


@st.composite
def rules(draw: st.DrawFn) -> Rules:
    """Small objects, some after many keys. Members are counted from below only where others can make up for it:

    keys that come together might else overshoot the most members on the way to the least.
    """
    plain, keys, marks = draw(st.sampled_from([0, 0, 1, 29, 31, 34])), draw(st.integers(0, 4)), draw(st.integers(0, 2))
    others = marks > 0 or draw(st.booleans())
    asked = range(plain, plain + keys)
    some = st.frozensets(st.sampled_from(asked), max_size=2) if asked else st.just(frozenset[int]())
    every_mark = frozenset(range(plain + keys, plain + keys + marks))
    has_needs = draw(st.booleans())
    needs = tuple(draw(some) if has_needs else frozenset[int]() for _ in range(keys))
    counts_up = others or not any(needs)
    low = draw(st.sampled_from([0, 1, 2, plain, plain + keys, plain + keys])) if counts_up else 0
    high = draw(st.sampled_from([-1, low, low, low + 1, low + 3]))
    return Rules(plain, keys, marks, draw(some) | every_mark, needs, draw(st.booleans()), others, low, high)


@settings(max_examples=30)
@given(rules(), st.data())
def test_a_key_may_come_if_the_object_can_still_be_closed(rules: Rules, data: st.DataObject) -> None:
    ranks = data.draw(st.permutations(range(rules.count)))
    context = Context(LENGTHS, rubbish=-1)
    context.put(at.CODE, code_of(rules, ranks))
    state, known = State(0, frozenset(), 0), dict[State, int]()
    place = context.run(start_object, 1)
    for _ in range(6):
        record = context[at.OBJECTS][place:]
        flags, words = int(record[at.O_FLAGS]), int(context[at.CODE][1 + at.OBJ_WORDS])
        bits = record[at.O_BITS + words :]
        stored = {key for key in range(rules.count) if int(bits[ranks[key] >> 5]) >> (ranks[key] & 31) & 1}
        if can_close(rules, state):
            wanted = {key for key in rules.next_keys(state) if can_close(rules, rules.after(state, key))}
            declared = {key for key in wanted if 0 <= key < rules.count}
            assert stored == declared
            assert bool(flags & at.O_KEYS) == bool(declared)
            assert bool(flags & at.O_CLOSE) == rules.is_complete(state.seen, state.members)
            assert bool(flags & at.O_OTHER) == (-1 in wanted)
            for mark in range(rules.count, rules.count + rules.marks):
                if mark in wanted or mark not in state.seen:
                    assert context.run(may_set_mark, place, mark) == (mark in wanted)
            assert context.run(may_set_mark, place, -1) == (-1 in wanted)
            check_ranges(context, place, {ranks[key] for key in declared}, rules.count, data)
            choices = sorted(wanted)
        else:
            choices = list(rules.next_keys(state))  # where there is no way out, states still follow each other
        if not rules.is_free and not any(rules.needs):  # which keys were passed over does not matter
            marks_seen = frozenset(key for key in state.seen if key >= rules.count)
            assert known.setdefault(State(state.following, marks_seen, state.members), place) == place
        assert known.setdefault(state, place) == place
        if not choices:
            return
        key = data.draw(st.sampled_from(choices))
        place, state = context.run(add_member, place, key, at.NO_NAMES), rules.after(state, key)
        assert place > 0
        assert context[at.OBJECTS][place + at.O_NAMES] == at.NO_NAMES


def check_ranges(context: Context, place: int, allowed: set[int], count: int, data: st.DataObject) -> None:
    """`first_allowed_key` finds the first of any range."""
    for _ in range(3):
        low = data.draw(st.integers(0, count))
        high = data.draw(st.integers(low, count))
        wanted = min((rank for rank in allowed if low <= rank < high), default=-1)
        assert context.run(first_allowed_key, place, low, high) == wanted


def chained(context: Context, root: int, values: Sequence[int]) -> int:
    """The chain of these values."""
    for value in values:
        root = context.run(extend_chain, root, value)
        assert root > 0
    return root


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def repeats(c: int, state: int) -> int:
    """`may_repeat`, which is linked into its callers."""
    return may_repeat(c, state)  # type: ignore[no-any-return]


NAMES = st.lists(st.binary(max_size=3).map(lambda name: bytes(97 + b % 3 for b in name)), max_size=5, unique=True)


@settings(max_examples=30)
@given(NAMES, NAMES, NAMES, st.sampled_from([0, -1, 1 << 20]))
def test_names_that_are_taken(excluded: list[bytes], seen: list[bytes], asked: list[bytes], rubbish: int) -> None:
    """An undeclared key has neither an excluded name nor one that is present; a prefix of one may have no
    continuation.
    """
    context = Context(LENGTHS, rubbish)
    rules = Rules(0, 0, 1, frozenset(), (), True, True, 0, -1)
    context.put(at.CODE, code_of(rules, [], excluded))
    state, there = context.run(start_object, 1), list[bytes]()
    for name in seen:
        after = context.run(add_named_member, state, chained(context, at.SPELLED, name), -1)
        if name in excluded:
            assert after == 0
            continue
        there.append(name)
        assert after > 0 and context[at.OBJECTS][after + at.O_NAMES] > at.NO_NAMES
        state = after
        assert context.run(repeats, state) == 1
    assert context.run(repeats, state) == bool(excluded or there)
    taken = excluded + there
    for name in {*asked, *excluded, *there, *[one[:1] for one in taken], b""}:
        context[at.BUFFER][: len(name)] = list(name)
        assert context.run(is_excluded, state, len(name)) == (name in excluded)
        context[at.BUFFER][: len(name)] = list(name)
        assert context.run(is_taken_prefix, state, len(name)) == any(one.startswith(name) for one in taken)
        spelled = chained(context, at.SPELLED, name)
        context.head[at.STATUS] = 0
        way = context.run(is_name_free, 77, state, spelled)
        assert way == (-1 if any(one.startswith(name) for one in taken) else 1)
        if way < 0:
            assert context.request == (at.NEED_NAME_FREE, 77)
            assert context.head[[at.SPELLING, at.NAMED_IN]].tolist() == [spelled, state]
        after = context.run(add_named_member, state, spelled, 0)
        assert (after > 0) == (name not in taken)
        if after > 0:
            assert context[at.OBJECTS][after + at.O_BITS] == 1  # the mark is set
            assert context.run(add_named_member, after, spelled, -1) == 0
    unknown = context.run(add_member, state, -1, at.UNKNOWN_NAMES)
    for name in {b"a", *excluded}:  # of an object whose names are not known, only that stays known
        assert context.run(add_named_member, unknown, chained(context, at.SPELLED, name), -1) == unknown
        context[at.BUFFER][: len(name)] = list(name)
        assert context.run(is_taken_prefix, unknown, len(name)) == any(one.startswith(name) for one in excluded)
    assert context.run(repeats, unknown) == 1


@pytest.mark.parametrize("words", [1, 2, 5])
def test_space_for_the_bits_of_an_object(words: int) -> None:
    """BUFFER has to hold the keys seen and the required ones; no more is requested."""
    rules = Rules(32 * words, 0, 0, frozenset(), (), True, False, 0, -1)
    for length in range(2 * words, 2 * words + 16):
        context = Context(LENGTHS | {at.BUFFER: length})
        context.put(at.CODE, code_of(rules, range(rules.count)))
        result = context.call(start_object, 1)
        assert result > 0 or context.request == (at.FULL, at.BUFFER)
        assert (result > 0) == (length > 2 * words + 8)


@pytest.mark.parametrize("is_free", [True, False])
@pytest.mark.parametrize("high", range(7))
def test_keys_bring_what_they_need_in_turn(high: int, is_free: bool) -> None:
    """A key of a chain is allowed only if the remaining chain is."""
    needs = tuple(frozenset({k - 1} if is_free else {k + 1}) - {-1, 5} for k in range(5))
    rules = Rules(0, 5, 0, frozenset(), needs, is_free, False, 0, high)
    context = Context(LENGTHS)
    context.put(at.CODE, code_of(rules, range(5)))
    place = context.run(start_object, 1)
    for key in range(5):
        chain_length = key + 1 if is_free else 5 - key
        assert context.run(first_allowed_key, place, key, key + 1) == (key if chain_length <= high else -1)
