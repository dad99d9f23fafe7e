"""Automata of compiled kernels against the same in lists (`table_oracle`), which `test_dfa` checks by brute force.

Both are canonical, so equal languages must have equal arrays.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st

from constrain.automata import compiled_operations
from constrain.automata.dfa import Dfa, Table
from constrain.base.errors import LimitError
from constrain.base.work import work_budget
from tests.automata import table_oracle
from tests.grammar_strategies import dfas, tables

MOST = 10_000


@st.composite
def large_tables(draw: st.DrawFn, max_states: int = 60) -> Table:
    """Automata of up to `max_states` states, many of them equivalent: few successors are drawn for all states."""
    rng = draw(st.randoms(use_true_random=False))
    size, width, choices = rng.randint(1, max_states), rng.randint(1, 12), rng.randint(1, 6)
    bounds = [0, *sorted(rng.sample(range(1, 0xD800), rng.randint(width, 3 * width))), 0xD800, 0xE000]
    classes = [1 + rng.randrange(width) for _ in bounds[:-2]] + [0, 1]
    present = sorted(set(classes))
    classes = [present.index(c) for c in classes]
    targets = [rng.randrange(-1, size) for _ in range(choices)]
    rows = [[-1, *(rng.choice(targets) if rng.random() < 0.7 else state + 1 - size * (state + 1 == size)
             for _ in present[1:])] for state in range(size)]  # fmt: skip
    return Table(bounds, classes, rows, [rng.random() < 0.3 for _ in range(size)])


any_table = tables() | large_tables()
any_dfa = any_table.map(Dfa.from_table)


def same(dfa: Dfa, table: Table) -> bool:
    """Whether a Dfa has exactly the arrays of a canonical Table."""
    width = max(table.classes) + 1
    delta = np.array(table.rows, np.int32).reshape(len(table.rows), width)
    wanted = (table.bounds, table.classes, delta, table.accepting)
    return all(
        np.array_equal(one, other)
        for one, other in zip((dfa.bounds, dfa.classes, dfa.delta, dfa.accepting), wanted, strict=True)
    )


def canonical_product(first: Dfa, second: Dfa, accept: Callable[[bool, bool], bool]) -> Table:
    return table_oracle.canonicalize_table(table_oracle.product_of_tables(first.table, second.table, accept, MOST))


@given(any_table)
def test_minimal_automata(table: Table) -> None:
    assert same(Dfa.from_table(table), table_oracle.canonicalize_table(table))


@given(any_dfa, any_dfa)
def test_boolean_operations(a: Dfa, b: Dfa) -> None:
    assert same(a.union(b), canonical_product(a, b, operator.or_))
    assert same(a.intersect(b), canonical_product(a, b, operator.and_))
    assert same(a.subtract(b), canonical_product(a, b, operator.gt))
    assert same(a.complement(), table_oracle.canonicalize_table(table_oracle.complement_table(a.table)))
    assert a.meets(b) == table_oracle.has_common_text(a.table, b.table) == (not a.intersect(b).is_empty)


@given(any_dfa, any_dfa)
def test_concatenation(a: Dfa, b: Dfa) -> None:
    try:
        made = table_oracle.concatenate_tables(a.table, b.table, 500)
    except LimitError:
        with pytest.raises(LimitError, match="500 states"):
            a.concatenate(b, max_states=500)
        return
    assert same(a.concatenate(b, max_states=500), table_oracle.canonicalize_table(made))


@given(any_dfa, st.integers(0, 4), st.none() | st.integers(0, 5))
def test_repetition(dfa: Dfa, low: int, high: int | None) -> None:
    try:
        made = table_oracle.repeat_table(dfa.table, low, high, 500)
    except LimitError:
        with pytest.raises(LimitError, match="500 states"):
            dfa.repeat(low, high, max_states=500)
        return
    assert same(dfa.repeat(low, high, max_states=500), table_oracle.canonicalize_table(made))


@given(any_dfa, st.integers(0, 30), st.none() | st.integers(0, 40))
def test_lengths(dfa: Dfa, low: int, high: int | None) -> None:
    distances = table_oracle.find_distances(dfa.table)
    assert dfa.distances().tolist() == distances
    if not dfa.is_empty:
        assert dfa.lengths() == (distances[0], table_oracle.find_longest_length(dfa.table))
    counted = table_oracle.bound_lengths(dfa.table, low, high, distances, MOST)
    made = dfa.with_length(low, high)
    assert same(made, table_oracle.canonicalize_table(counted))
    if not made.is_empty:
        assert made.lengths()[1] == table_oracle.find_longest_length(made.table)


def test_deep_and_wide_automata() -> None:
    """Chains, words, and many classes: thousands of states and hundreds of classes, by identities."""
    digit = Dfa.from_ranges([(0x30, 0x39)])
    words = Dfa.from_strings([str(number) for number in range(0, 30_000, 7)])
    others = Dfa.from_strings([str(number) for number in range(0, 30_000, 11)])
    long = digit.repeat(0, 700)
    assert (
        words.subtract(others) == words.intersect(others.complement()) and words.union(others).intersect(words) == words
    )
    assert long.subtract(words).union(words) == long and long.lengths() == (0, 700)
    assert words.subtract(words).is_empty and words.meets(others) and not words.meets(long.complement())
    for dfa in (words, others, words.union(others), long.subtract(words)):
        assert same(dfa, table_oracle.canonicalize_table(dfa.table))
    letters = Dfa.from_strings([chr(0x4E00 + 2 * k) + chr(0x4E00 + k) for k in range(600)])
    assert same(letters.complement(), table_oracle.canonicalize_table(table_oracle.complement_table(letters.table)))


@pytest.mark.parametrize("seed", range(4))
def test_large_random_automata(seed: int) -> None:
    """Thousands of states in a random order, of which many are equivalent."""
    rng = random.Random(seed)
    table = Dfa.from_strings(["".join(rng.choices("abcdef", k=rng.randint(1, 7))) for _ in range(1_500)]).table
    size, copies = len(table.rows), 3
    names = list(range(1, size * copies))
    rng.shuffle(names)
    names = [0, *names]
    rows: list[list[int]] = [[] for _ in names]
    accepting = [False] * len(names)
    for state, name in enumerate(names):
        rows[name] = [names[t + size * rng.randrange(copies)] if t >= 0 else -1 for t in table.rows[state % size]]
        accepting[name] = table.accepting[state % size]
    assert same(Dfa.from_table(Table(table.bounds, table.classes, rows, accepting)), table)


@given(dfas(), dfas())
def test_work_does_not_depend_on_the_length_of_arrays(a: Dfa, b: Dfa) -> None:
    def build() -> tuple[list[Dfa], int]:
        with work_budget(1 << 40) as budget:
            made = [a.union(b), a.complement(), a.concatenate(b), a.repeat(0, 3), a.with_length(1, 9)]
            assert a.meets(b) or not b.meets(a)
            return made, budget.spent

    wanted = build()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_operations, "LEAST_LENGTH", 1)
        patch.setattr(compiled_operations, "_estimate_length", lambda *_: 1)
        assert build() == wanted


def test_limits_and_surrogates() -> None:
    many = Dfa.from_strings([str(number * number) for number in range(1, 3_000)])
    with pytest.raises(LimitError, match="more than 100 states"):
        many.intersect(Dfa.from_strings([str(number) for number in range(90_000)]), max_states=100)
    with (
        work_budget(100),
        pytest.raises(LimitError, match="A product of patterns needs more than Limits"),
    ):
        many.intersect(Dfa.from_strings([str(number) for number in range(90_000)]))
    size = 301
    rows = [[min(state + 1, size - 1)] for state in range(size)]
    with pytest.raises(ValueError, match="surrogates"):
        Dfa.from_table(Table([0], [0], rows, [state == size - 1 for state in range(size)]))
