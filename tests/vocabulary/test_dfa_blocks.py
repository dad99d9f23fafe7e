"""The block of a DFA in the table of a vocabulary: a kernel writes what numpy computes."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from constrain.automata.dfa import Dfa
from constrain.automata.table import Table
from constrain.kernels import layout as at
from constrain.vocabulary.mask_table import _dfa_block

ROUNDS, ENDLESS = 64, 1 << 20

CHARACTERS = [(0, 0x7F), (0x30, 0x39), (0x61, 0x7A), (0x80, 0x10FFFF), (0, 0x10FFFF), (0xE000, 0xE010), (9, 13)]
RANGES = st.lists(st.sampled_from(CHARACTERS), min_size=1, max_size=3)
PARTS = st.tuples(RANGES, st.integers(0, 70), st.none() | st.integers(0, 70))


def count_safe(dfa: Dfa) -> NDArray[np.int32]:
    """Return for each state the number of arbitrary characters that are certainly accepted from it."""
    ends = np.append(dfa.bounds[1:], 0x110000)
    following = dfa.delta[:, sorted(set(dfa.classes[(dfa.bounds < 0xD800) | (ends > 0xE000)].tolist()))]
    safe = np.where((following < 0).any(axis=1), 0, ENDLESS).astype(np.int32)
    for length in count(1):
        reached = (safe == ENDLESS) & (safe[following] == length - 1).any(axis=1)
        if not reached.any():
            break
        safe[reached] = length
    return safe


def find_endless(dfa: Dfa) -> NDArray[np.int32]:
    """Return for each state whether every state that it leads to, in any number of steps, leads to a cycle."""
    states = len(dfa.delta)
    following = [{after for after in row if after >= 0} for row in dfa.delta.tolist()]
    reached = [set(one) for one in following]  # in one step or more
    for through in range(states):
        for one in reached:
            if through in one:
                one |= reached[through]
    in_cycle = [state in reached[state] for state in range(states)]
    is_infinite = [in_cycle[state] or any(in_cycle[one] for one in reached[state]) for state in range(states)]
    return np.array([is_infinite[s] and all(is_infinite[one] for one in reached[s]) for s in range(states)], np.int32)


@pytest.mark.parametrize("length", [10, 100])
def test_safe_characters_that_take_many_rounds(length: int) -> None:
    """Where each round finds the shortest path from one more state, no more characters than rounds are promised."""
    # From the first state, character k leads to state k; from there, any leads to the state before. State 1 is the end.
    rows = [tuple(range(1, length + 1)), (-1,) * length, *((k,) * length for k in range(1, length))]
    bounds, classes = [0, *range(0x100, 0xFF + length), 0xD800, 0xE000], [*range(length), length, 0]
    accepting = [False, True, *[False] * (length - 1)]
    dfa = Dfa.from_table(Table(bounds, classes, [(*row, -1) for row in rows], accepting))
    safe = np.array(_dfa_block(dfa)[-len(dfa.delta) :]) >> at.LEAF_SAFE
    expected = count_safe(dfa)
    assert expected.max() == length - 1
    assert safe.tolist() == (expected if length < ROUNDS else np.minimum(expected, ROUNDS)).tolist()


def test_endless_states_that_take_many_rounds() -> None:
    """None is marked if the states before the end of a longest text are found one in each round."""

    def build(length: int) -> Dfa:
        # a: one further, and at last the same; b: one back. From the first: c, to the end, and d, to any number of d.
        chain = [[min(k + 1, length - 1), k - 1, -1, -1] for k in range(length)]
        chain[0][2:] = length, length + 1
        rows = [*((*row, -1) for row in chain), (-1,) * 5, (-1, -1, -1, length + 1, -1)]
        return Dfa.from_table(Table([0, *range(97, 102)], [4, *range(5)], rows, [False] * length + [True, True]))

    for length in (10, 100):
        dfa = build(length)
        facts = np.array(_dfa_block(dfa)[-len(dfa.delta) :])
        expected = find_endless(dfa)
        assert expected.sum() == 1
        assert ((facts & at.LEAF_ENDLESS) != 0).sum() == (expected.sum() if length < ROUNDS else 0)


@given(st.lists(PARTS, min_size=1, max_size=2))
def test_the_block_of_a_dfa(parts: list[tuple[list[tuple[int, int]], int, int | None]]) -> None:
    repeated = []
    for ranges, low, more in parts:
        characters = Dfa.union_of(Dfa.from_ranges([one]) for one in ranges)
        repeated.append(characters.repeat(low, None if more is None else low + more))
    dfa = Dfa.union_of(repeated)
    for one in (dfa, dfa.complement(), Dfa.any_text()):
        ascii_class = one.classes[np.searchsorted(one.bounds, np.arange(128), side="right") - 1]
        facts = count_safe(one) << at.LEAF_SAFE | find_endless(one) * at.LEAF_ENDLESS
        expected = [
            *one.delta.shape, len(one.bounds), *one.bounds, *one.classes, *ascii_class, *one.accepting,
            *one.distances(), *one.delta.ravel(), *facts,
        ]  # fmt: skip
        assert _dfa_block(one).tolist() == [int(word) for word in expected]
