"""A state cache grows, is evicted and serves one thread; the results of Matchers must not depend on that."""

from __future__ import annotations

import gc
import mmap
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import constrain
from constrain import LimitError, Limits, Style, Vocabulary, compile
from constrain.automata.dfa import Dfa
from constrain.engine import memory_block, state_cache
from constrain.kernels import layout as at
from constrain.vocabulary import mask_table
from constrain.vocabulary.learned_rows import NOT_MADE
from constrain.vocabulary.mask_table import MaskTable

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 40}},
    "required": ["name"],
}
TEXT = b'{"name": "Ann \\u00e9\xc3\xa9", "more": {"x": [1, 2.5, null]}, "other": {"y": "z", "name": 3}}'


def list_masks(constraint: constrain.Constraint, text: bytes) -> list[bytes]:
    """Return the mask before each byte of a text and after the last."""
    matcher = constraint.matcher()
    found = [matcher.mask().tobytes()]
    for byte in text:
        matcher.advance(byte)
        found.append(matcher.mask().tobytes())
    return found


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """State caches with minimal arrays: every array has to grow, and every hash table with it."""
    small = {slot: max(64, length // 256) for slot, length in memory_block.INITIAL_LENGTHS.items()}
    for slot in (*state_cache.HASHES.values(), state_cache.at.SEEN, state_cache.at.WIDE):
        small[slot] = 256
    monkeypatch.setattr(memory_block, "INITIAL_LENGTHS", small)


def test_growing_changes_nothing(tiny: None) -> None:
    vocabulary = Vocabulary.bytes()
    grown = list_masks(compile(vocabulary, schema=SCHEMA, style=Style.any()), TEXT)
    assert len(set(grown)) > 10
    fresh = Vocabulary.bytes()
    assert grown == list_masks(compile(fresh, schema=SCHEMA, style=Style.any()), TEXT)


def test_growing_arrays_give_the_masks_of_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = list_masks(compile(Vocabulary.bytes(), schema=SCHEMA), TEXT)
    small = {slot: 256 if length > 256 else length for slot, length in memory_block.INITIAL_LENGTHS.items()}
    monkeypatch.setattr(memory_block, "INITIAL_LENGTHS", small)
    assert wide == list_masks(compile(Vocabulary.bytes(), schema=SCHEMA), TEXT)


LONG = TEXT[:-1] + b"".join(b', "%d%d": [%d, {"a%d": "b"}]' % (k * k, k, k, k) for k in range(30)) + b"}"


@pytest.fixture
def few_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """State caches whose sets begin with four records and grow in place to some hundred, in more than a page."""
    small = {slot: 4 * at.SET_W if slot == at.SETS else length for slot, length in memory_block.INITIAL_LENGTHS.items()}
    monkeypatch.setattr(memory_block, "INITIAL_LENGTHS", small)
    monkeypatch.setattr(memory_block, "RESERVED", {at.SETS: 64})


def test_slots_grow_in_place_up_to_their_capacity(few_sets: None) -> None:
    constraint = compile(Vocabulary.bytes(), schema=SCHEMA)
    cache = constraint.state_cache()
    before, address, reserved = cache.bytes_used(), int(cache.context[2 * at.SETS]), cache.block.capacity(at.SETS)
    matcher, sizes = constraint.matcher(), list[int]()
    for byte in LONG:
        matcher.mask()
        matcher.advance(byte)
        sets, hashes = cache.arrays[at.SETS], cache.arrays[at.SET_HASH]
        sizes.append(sets.size)
        is_inside = sets.size <= reserved
        assert (int(cache.context[2 * at.SETS]) == address) == is_inside
        assert int(cache.context[2 * at.SETS + 1]) == sets.size
        assert cache.block.grown == ({at.SETS} if is_inside and sets.size > 4 * at.SET_W else set())
        outside = hashes.nbytes * (hashes.base is not cache.block.memory)
        grown = 4 * (sets.size - 4 * at.SET_W) if is_inside else sets.nbytes
        assert cache.bytes_used() - before == outside + grown, "what is reserved does not count"
    assert sizes[0] <= reserved < sizes[-1] and reserved in sizes


def test_growing_in_place_changes_nothing(few_sets: None, monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = Vocabulary.bytes()
    grown = list_masks(compile(vocabulary, schema=SCHEMA, style=Style.any()), LONG)
    again = list_masks(compile(vocabulary, schema=SCHEMA, style=Style.any()), LONG)  # in a block that was used
    monkeypatch.undo()
    assert grown == again == list_masks(compile(Vocabulary.bytes(), schema=SCHEMA, style=Style.any()), LONG)


@pytest.mark.parametrize("how", ["dropped", "evicted", "outgrown"])
def test_the_memory_of_growth_is_given_back(how: str, few_sets: None) -> None:
    vocabulary = Vocabulary.bytes()
    constraint = compile(vocabulary, schema=SCHEMA)
    cache = constraint.state_cache()
    matcher, block = constraint.matcher(), cache.block
    for byte in LONG:
        if how != "outgrown" and cache.arrays[at.SETS].size == block.capacity(at.SETS):
            break
        matcher.mask()
        matcher.advance(byte)
    first, page = block.slices[at.SETS].start, mmap.PAGESIZE // 4
    reserved = block.memory[first : first + block.capacity(at.SETS)]
    inside, following = reserved[4 * at.SET_W + page : -page], block.memory[first + reserved.size :].copy()
    if how == "evicted":
        assert inside.any()
        cache.reset()
    elif how == "dropped":
        assert inside.any()
        table = cache.table
        del matcher, cache, constraint
        gc.collect()
        assert block in table.spare
    assert not block.grown
    assert not inside.any() or not sys.platform.startswith("linux")  # others need not clear pages
    if how == "outgrown":
        assert (block.memory[first + reserved.size :] == following).all()


def test_a_matcher_replays_its_tokens_when_its_state_cache_is_evicted() -> None:
    constraint = compile(Vocabulary.bytes(), schema=SCHEMA)
    matcher = constraint.matcher()
    wanted = list_masks(compile(Vocabulary.bytes(), schema=SCHEMA), TEXT)
    for place, byte in enumerate(TEXT):
        assert matcher.mask().tobytes() == wanted[place]
        if place % 7 == 3:
            constraint.state_cache().reset()
        matcher.advance(byte)
    matcher.rollback(len(TEXT))
    assert matcher.mask().tobytes() == wanted[0]


def test_a_state_cache_too_small_for_one_text_raises() -> None:
    constraint = compile(Vocabulary.bytes(), choices=["x" * 20_000], limits=Limits(state_cache_bytes=1))
    matcher = constraint.matcher()
    with pytest.raises(LimitError, match="state_cache_bytes"):
        for _ in range(20_000):
            matcher.advance(ord("x"))


def test_a_state_cache_grows_within_its_budget() -> None:
    """The rows of sets take most of it: 1 KiB each, of which one is made for every byte of this text."""
    budget = 12 << 20
    constraint = compile(Vocabulary.bytes(), regex=".{60000}", limits=Limits(state_cache_bytes=budget))
    matcher, most = constraint.matcher(), 0
    with pytest.raises(LimitError, match="state_cache_bytes"):
        for _ in range(60_000):
            matcher.advance(ord("x"))
            matcher.next_bytes()
            most = max(most, matcher._state_cache.bytes_used())
    assert 0.8 * budget < most < 1.25 * budget  # a slot grows by a quarter at least
    assert len(matcher.tokens) > 8192


def test_threads_share_a_constraint() -> None:
    """Sets grow while masking: each thread has its own, and all see the same masks."""
    constraint = compile(Vocabulary.bytes(), schema=SCHEMA)
    wanted = list_masks(compile(Vocabulary.bytes(), schema=SCHEMA), TEXT)
    found: list[list[bytes]] = []
    threads = [threading.Thread(target=lambda: found.append(list_masks(constraint, TEXT))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 8


def test_a_matcher_may_go_on_in_another_thread() -> None:
    constraint = compile(Vocabulary.bytes(), schema=SCHEMA)
    matcher = constraint.matcher()
    matcher.advance_bytes(b'{"name": "A')
    result: list[np.ndarray] = []
    thread = threading.Thread(target=lambda: result.append(matcher.mask()))
    thread.start()
    thread.join()
    assert (result[0] == matcher.mask()).all()


def test_a_state_cache_grows_for_leaves_that_others_linked() -> None:
    """Rules are linked for all: also for a state cache made when there were few leaves, which runs the same code."""
    items = [{"type": "string", "pattern": f"^{chr(97 + k % 26)}{{{k // 26 + 1}}}[xyz]*$"} for k in range(70)]
    schema = {"type": "array", "prefixItems": items, "items": False}
    text = "[" + ",".join(f'"{chr(97 + k % 26) * (k // 26 + 1)}"' for k in range(70)) + "]"
    constraint = compile(Vocabulary.bytes(), schema=schema, style=Style(whitespace="compact"))
    early = constraint.matcher()
    early._move_to_slot(1)
    wanted = list_masks(compile(Vocabulary.bytes(), schema=schema, style=Style(whitespace="compact")), text.encode())
    assert list_masks(constraint, text.encode()) == wanted
    assert len(constraint.program.leaves) > 64
    for place, byte in enumerate(text.encode()):
        assert early.mask().tobytes() == wanted[place]
        early.advance(byte)


def test_a_row_does_not_move_while_its_suffix_trie_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other threads read it meanwhile, without a lock."""
    table = MaskTable(Vocabulary.bytes())
    state = table.start(Dfa.any_text(), at.UTF8)
    table.row(state)
    row = table.arrays[at.LEAVES][state * at.LEAF_W + at.LEAF_ROW]
    table.arrays[at.LEAVES][state * at.LEAF_W + at.LEAF_SUFFIXES] = NOT_MADE  # as of a learned row without one
    table.suffix_tries.clear()
    seen, make_rest = [], mask_table.make_suffix_trie

    def look(*arguments: int) -> int:
        seen.append((table.arrays[at.LEAVES][state * at.LEAF_W + at.LEAF_ROW], table.arrays[at.TABLE][at.N_ROWS]))
        return int(make_rest(*arguments))

    monkeypatch.setattr(mask_table, "make_suffix_trie", look)
    table.build_suffixes(state)
    assert seen == [(row, 1)] and table.arrays[at.LEAVES][state * at.LEAF_W + at.LEAF_SUFFIXES] >= 0


def test_dropped_state_caches_change_nothing() -> None:
    """Matchers in use go on in theirs, later ones have others, and no state of one is mistaken for one of another."""
    wanted = list_masks(compile(Vocabulary.bytes(), schema=SCHEMA, style=Style.any()), TEXT)
    constraint = compile(Vocabulary.bytes(), schema=SCHEMA, style=Style.any())
    states = dict[tuple[int, int], bytes]()
    old = constraint.matcher()
    for k in range(len(TEXT) + 1):
        if k % 7 == 0:
            constraint.drop_state_caches()
        if k == 40:
            old._state_cache.reset()  # evicted after it was dropped: its Matcher moves on to the present one
        new = constraint.matcher()
        new.advance_bytes(TEXT[:k])
        for matcher in (old, new):
            mask = matcher.mask().tobytes()
            assert mask == wanted[k]
            assert states.setdefault(matcher.state, mask) == mask
            assert matcher.shortest_completion() is not None
        assert (old._state_cache is new._state_cache) == (k in (40, 41))
        if k < len(TEXT):
            old.advance(TEXT[k])


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Objects are freed by their reference counts alone: a server collects garbage rarely."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("schema", [SCHEMA, {"type": "array", "uniqueItems": True, "minItems": 2}])
def test_dropping_frees_what_no_matcher_uses(schema: dict[str, Any]) -> None:
    constraint = compile(Vocabulary.bytes(), schema=schema)
    before = constraint.bytes_used
    matcher = constraint.matcher()
    matcher.advance_bytes(TEXT[:20] if schema is SCHEMA else b"[1, 2")
    assert matcher.forced() is not None
    assert matcher.shortest_completion() is not None
    assert matcher.fork().mask() is not None
    block = weakref.ref(matcher._state_cache)
    assert constraint.bytes_used > before
    constraint.drop_state_caches()
    assert constraint.bytes_used == constraint.program.code.nbytes
    assert block() is not None
    del matcher
    assert block() is None


def test_a_start_that_no_mask_table_can_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new table is full again at once, and so would be the next one."""
    vocabulary, start, full = Vocabulary.bytes(), MaskTable.start, [True]

    def fill(table: MaskTable, *leaf: Any) -> int:
        if full[0]:
            raise mask_table.TableFull
        return start(table, *leaf)

    monkeypatch.setattr(MaskTable, "start", fill)
    constraint = compile(vocabulary, regex="[a-k]+x")
    with pytest.raises(LimitError, match="do not fit into one mask table"):
        constraint.matcher()
    full[0] = False
    matcher = constraint.matcher()
    wanted = matcher.mask().tobytes()
    full[0] = True
    del vocabulary.__dict__["mask_table"]
    with pytest.raises(LimitError, match="do not fit into one mask table"):
        constraint.state_cache().reset()
    full[0] = False
    assert matcher.mask().tobytes() == constraint.matcher().mask().tobytes() == wanted
