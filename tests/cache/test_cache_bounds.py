"""The cache of Constraints: what it evicts, and what is left of a block with other bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from constrain.cache.constraint_lru import LRU


@dataclass
class Item:
    name: str
    bytes_used: int = 10
    vocabulary: Any = field(default="v")


def names(cache: LRU[Item], asked: str) -> str:
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
    assert names(filled(10, 25), "abcdef") in ("def", "ef")
    cache: LRU[Item] = LRU(10, 25)
    cache.put("large", Item("large", 1_000))
    assert len(cache) == 1


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
