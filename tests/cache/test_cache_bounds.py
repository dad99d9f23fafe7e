"""The cache of Constraints: what it evicts, and what is left of a block with other bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from constrain.cache.constraint_lru import LRU
from tests.engine.test_interrupts import run_interrupted


@dataclass
class Item:
    name: str
    bytes_used: int = 10
    vocabulary: Any = field(default="v")
    least: int = 10
    """Bytes that are left without state caches."""

    def drop_state_caches(self) -> None:
        self.bytes_used = min(self.bytes_used, self.least)


def names(cache: LRU[Item], asked: Iterable[str]) -> str:
    """Which of the names are cached."""
    return "".join(name for name in asked if cache.get("v", name) is not None)


def filled(most: int, most_bytes: int = 1000) -> LRU[Item]:
    cache: LRU[Item] = LRU(most, most_bytes)
    for name in "abcdef":
        cache.put(name, Item(name))
    return cache


def test_the_least_recently_used_is_evicted() -> None:
    cache = filled(3)
    assert (len(cache), names(cache, "abcdef")) == (3, "def")
    cache.get("v", "d")
    cache.put("g", Item("g"))
    assert names(cache, "abcdefg") == "dfg"


def test_bytes_are_bounded_except_for_the_last() -> None:
    cache = filled(10, 25)
    assert (len(cache), cache.bytes_used) == (3, 20), "the last one is measured when another one is used"
    assert cache.get("v", "d") is not None
    assert (len(cache), cache.bytes_used) == (2, 20)
    cache = LRU(10, 25)
    cache.put("large", Item("large", 1_000))
    assert len(cache) == 1


def test_constraints_that_grow_after_their_lookup_are_evicted() -> None:
    """A server asks for a Constraint once and uses it for seconds, while others are asked for."""
    cache = filled(10)
    grown = [cache.get("v", name) for name in "abc"]
    assert cache.get("v", "f") is not None
    for item in grown:
        assert item is not None
        item.bytes_used = 600
    for name in "efef":
        assert cache.get("v", name) is not None
    assert len(cache) == 6
    assert sum(item.bytes_used for item in grown if item) <= 620


def test_an_object_that_comes_back_is_measured_once_a_turn() -> None:
    cache = filled(3)
    for _ in range(10):
        for name in "abcdef":
            cache.put(name, Item(name))
    assert len(cache) == 3
    assert cache.bytes_used == 20
    assert len(cache._turns) == 3


def test_large_objects_go_where_those_of_others_drop_state_caches() -> None:
    """A source of megabytes must not cost a hundred small ones their state caches, nor stay for as long as they do."""
    cache: LRU[Item] = LRU(10, 1000)
    cache.put("large", Item("large", 200, least=20), held=100)
    for name in "abcd":
        cache.put(name, Item(name, 200))
    assert cache.get("v", "a") is not None
    assert cache.bytes_used == 800, "300 for the large one would be too many"
    assert names(cache, ["large", *"abcd"]) == "abcd"


@pytest.mark.parametrize(("most", "left"), [(0, ""), (2, "ef"), (9, "abcdef")])
def test_other_bounds_end_with_their_block(most: int, left: str) -> None:
    cache: LRU[Item] = LRU(most)
    with pytest.raises(KeyError), cache.resized(6, 1000):
        for name in "abcdef":
            cache.put(name, Item(name))
        assert (cache.most, cache.most_bytes, len(cache)) == (6, 1000, 6)
        raise KeyError
    assert (cache.most, cache.most_bytes) == (most, 128 << 20)
    assert names(cache, "abcdef") == left
    if not most:
        assert cache.bytes_used == 0
        cache.put("g", Item("g"))
        assert len(cache) == 0


def test_state_caches_are_dropped_before_objects_are_evicted() -> None:
    """Objects grow while they are found again and again, without a miss: the bound holds all the same."""
    cache: LRU[Item] = LRU(10, 800)
    items = {name: Item(name) for name in "abcd"}
    for name, item in items.items():
        cache.put(name, item)
    for name in "abcdbcdbcdbcd":
        assert cache.get("v", name) is items[name]
        assert cache.bytes_used <= 800
        items[name].bytes_used += 100
    assert len(cache) == 4
    assert items["a"].bytes_used == 10, "the least recently used one is the first whose state caches are dropped"
    assert items["d"].bytes_used > 100


def test_the_object_in_use_keeps_its_state_caches() -> None:
    cache: LRU[Item] = LRU(10, 100)
    items = [Item(name, bytes_used=1_000) for name in "ab"]
    for item in items:
        cache.put(item.name, item)
    assert cache.get("v", "b") is items[1]
    assert [item.bytes_used for item in items] == [10, 1_000]


def test_an_interrupt_at_any_line_leaves_a_cache_that_works() -> None:
    """Of an object that is cached, found, evicted or dropped: each of them is written to several dicts."""

    def work(cache: LRU[Item]) -> None:
        for name in "abcd":
            cache.put(name, Item(name, bytes_used=60, least=30), held=5)
        for name in "dcb":
            cache.get("v", name)
        cache.clear()
        cache.put("e", Item("e"))

    lines = run_interrupted(lambda: work(LRU(3, 150)), -1)
    assert lines > 100
    for place in range(1, lines + 1):
        cache: LRU[Item] = LRU(3, 150)
        run_interrupted(lambda one=cache: work(one), place)  # type: ignore[misc]
        for name in "wxyz" * 2:
            item = Item(name, bytes_used=20)
            item = cache.get("v", name) or cache.put(name, item, held=5)
            assert cache.get("v", name) is item
            assert len(cache) <= 3
        assert names(cache, "xyz") == "xyz", place
        assert cache.get("v", "y") is not None
        assert cache.bytes_used == 75, place
