"""Work is counted equally whether results were cached or not, and refused by name."""

from __future__ import annotations

import threading
from unittest.mock import patch

import pytest
from hypothesis import given, strategies as st

from constrain import LimitError
from constrain.base import work
from constrain.base.work import memoize_work, spend_work, work_budget

MOST = st.sampled_from([0, 5, 20, work.MOST_UNITS])
"""Units after which a cache is cleared."""


@given(st.lists(st.integers(0, 9)), st.integers(0, 9), MOST)
def test_a_cached_result_costs_what_it_cost_to_make(calls: list[int], nested: int, most: int) -> None:
    @memoize_work(4)  # smaller than the arguments' range, so that results are evicted
    def inner(n: int) -> int:
        spend_work(n, "inner work")
        return n

    @memoize_work(4)
    def outer(n: int) -> int:
        spend_work(1, "outer work")
        return inner(n) + inner(nested)

    for n in calls:
        with patch.object(work, "MOST_UNITS", most), work_budget(1_000) as budget:
            assert outer(n) == n + nested
            assert outer(n) == n + nested  # further uses are free
        assert budget.spent == 1 + sum({n, nested})


@given(st.lists(st.integers(0, 6)), st.lists(st.integers(0, 6), min_size=1), MOST)
def test_earlier_cache_contents_do_not_change_the_work(before: list[int], calls: list[int], most: int) -> None:
    @memoize_work(3)
    def triangle(n: int) -> int:
        spend_work(n, "a triangle")
        return n + triangle(n - 1) if n else 0

    for n in before:
        with work_budget(1_000):
            triangle(n)
    with patch.object(work, "MOST_UNITS", most), work_budget(1_000) as budget:
        assert list(map(triangle, calls)) == [n * (n + 1) // 2 for n in calls]
    assert budget.spent == max(calls) * (max(calls) + 1) // 2


def test_a_cache_is_bounded_by_the_work_of_its_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MOST_UNITS", 100)

    @memoize_work(1_000)
    def automaton(n: int) -> int:
        spend_work(10, "an automaton")
        return n

    sizes = []
    for n in range(100):
        assert automaton(n) == n
        sizes.append(automaton.cache_info().currsize)  # type: ignore[attr-defined]
    assert max(sizes) == 10
    assert sizes[-1] > 1


def test_a_budget_that_is_spent_names_the_construction_and_the_limit() -> None:
    with work_budget(10):
        spend_work(10, "a product of patterns")
        with pytest.raises(LimitError, match=r"A product of patterns needs more than Limits\.work = 10 units"):
            spend_work(1, "a product of patterns")


def test_a_hit_is_refused_where_making_it_would_be() -> None:
    @memoize_work(4)
    def automaton() -> int:
        spend_work(10, "an automaton")
        return 1

    assert automaton() == 1  # without a budget
    with work_budget(10):
        assert automaton() == automaton() == 1
    with work_budget(9), pytest.raises(LimitError):
        automaton()


def test_an_inner_budget_is_the_outer_one() -> None:
    with work_budget(5) as outer, work_budget(1_000) as inner:
        assert inner is outer


def test_threads_do_not_share_a_budget() -> None:
    found: list[bool] = []
    with work_budget(1):
        thread = threading.Thread(target=lambda: found.append(spend_work(1_000, "work") is None))
        thread.start()
        thread.join()
    assert found == [True]
