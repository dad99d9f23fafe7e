"""The block of a DFA in the table of a vocabulary: a kernel writes what numpy computes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from constrain.automata.dfa import Dfa
from constrain.frontends.json_schema.strings.string_languages import any_text
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
    for length in range(1, ROUNDS):
        reached = (safe == ENDLESS) & (safe[following] == length - 1).any(axis=1)
        if not reached.any():
            return safe
        safe[reached] = length
    return np.minimum(safe, ROUNDS)


@given(st.lists(PARTS, min_size=1, max_size=2))
def test_the_block_of_a_dfa(parts: list[tuple[list[tuple[int, int]], int, int | None]]) -> None:
    repeated = []
    for ranges, low, more in parts:
        characters = Dfa.union_of(Dfa.from_ranges([one]) for one in ranges)
        repeated.append(characters.repeat(low, None if more is None else low + more))
    dfa = Dfa.union_of(repeated)
    for one in (dfa, dfa.complement(), any_text()):
        ascii_class = one.classes[np.searchsorted(one.bounds, np.arange(128), side="right") - 1]
        expected = [
            *one.delta.shape, len(one.bounds), *one.bounds, *one.classes, *ascii_class, *one.accepting,
            *one.distances(), *one.delta.ravel(), *count_safe(one),
        ]  # fmt: skip
        assert _dfa_block(one).tolist() == [int(word) for word in expected]
