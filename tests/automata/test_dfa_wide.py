"""Automata in arrays against the same in lists, which `test_dfa` checks against brute force."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given, strategies as st

from constrain.automata import boolean_operations, large_automata
from constrain.automata.dfa import Dfa, Table
from constrain.automata.table import canonicalize_table, find_distances
from constrain.base.errors import LimitError
from tests.grammar_strategies import dfas, tables


def arrays(table: Table) -> large_automata.DfaArrays:
    count = max(table.classes) + 1
    delta = np.array(table.rows, dtype="<i4").reshape(len(table.rows), count)
    return large_automata.DfaArrays(
        np.array(table.bounds), np.array(table.classes), delta, np.array(table.accepting, dtype=np.bool_)
    )


def same(made: large_automata.DfaArrays | None, table: Table) -> bool:
    assert made is not None
    return all(np.array_equal(one, other) for one, other in zip(made, arrays(table), strict=True))


@given(tables())
def test_canonical(table: Table) -> None:
    made = arrays(table)
    assert same(
        large_automata.canonicalize_arrays(table.bounds, table.classes, made.delta, made.accepting),
        canonicalize_table(table),
    )


@given(dfas(), dfas(), st.sampled_from([operator.or_, operator.and_, operator.gt]))
def test_product(first: Dfa, second: Dfa, accept: object) -> None:
    assert callable(accept)
    bounds, classes, pairs = boolean_operations.merge_ranges(first.table, second.table)
    delta, accepting = large_automata.product_of_arrays(
        arrays(first.table), arrays(second.table), pairs, accept, 10_000
    )
    wanted = canonicalize_table(boolean_operations.product_of_tables(first.table, second.table, accept, 10_000))
    assert same(large_automata.canonicalize_arrays(bounds, classes, delta, accepting), wanted)


@given(dfas())
def test_distances(dfa: Dfa) -> None:
    found = large_automata.find_array_distances(dfa.delta, dfa.accepting)
    assert found is not None and found.tolist() == find_distances(dfa.table)


def test_like_numbers_do_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """With equal random numbers the partition is not a congruence, and that is detected."""

    class Same:
        def integers(self, most: int, size: object, dtype: type) -> np.ndarray:  # type: ignore[type-arg]
            return np.ones(size, dtype=dtype)  # type: ignore[call-overload,no-any-return]

    seeds = []
    real = np.random.default_rng

    def generator(seed: int) -> object:
        seeds.append(seed)
        return Same() if seed < 2 else real(seed)

    monkeypatch.setattr(np.random, "default_rng", generator)
    table = Dfa.from_strings([f"{word:03}" for word in range(0, 1000, 7)]).table
    made = arrays(table)
    assert same(large_automata.canonicalize_arrays(table.bounds, table.classes, made.delta, made.accepting), table)
    assert seeds == [0, 1, 2]


def test_array_and_list_constructions_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    size = large_automata.WIDE + 50

    def build() -> list[Dfa]:
        digit = Dfa.from_ranges([(0x30, 0x39)])
        words = Dfa.from_strings([str(number) for number in range(0, 30_000, 7)])
        others = Dfa.from_strings([str(number) for number in range(0, 30_000, 11)])
        long = digit.repeat(0, size)
        made = [words, others, words.union(others), words.intersect(others), words.subtract(others), long]
        return [*made, long.subtract(words), words.complement(), Dfa.empty().union(words), words.subtract(words)]

    in_arrays = build()
    assert max(len(dfa.delta) for dfa in in_arrays) > large_automata.WIDE
    monkeypatch.setattr(large_automata, "WIDE", 1 << 30)
    in_lists = build()
    assert in_arrays == in_lists
    assert [dfa.distances().tolist() for dfa in in_arrays] == [dfa.distances().tolist() for dfa in in_lists]


def test_limits_and_surrogates() -> None:
    many = Dfa.from_strings([str(number * number) for number in range(1, 3_000)])
    assert len(many.delta) > large_automata.WIDE
    with pytest.raises(LimitError, match="more than 100 states"):
        many.intersect(Dfa.from_strings([str(number) for number in range(90_000)]), max_states=100)
    size = large_automata.WIDE + 1
    rows = [[min(state + 1, size - 1)] for state in range(size)]
    with pytest.raises(ValueError, match="surrogates"):
        Dfa.from_table(Table([0], [0], rows, [state == size - 1 for state in range(size)]))
