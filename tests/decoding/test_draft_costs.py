"""Drafts are made in a step where they save more than they cost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from constrain.decoding.draft_costs import find_least_draft

PASS = 64


def cost_of_passes(widths: Sequence[int]) -> float:
    """The least cost of all divisions of the rows, sorted by width, into passes that cost PASS and n * width each."""
    order = sorted(widths)
    least = [0.0]
    for end in range(1, len(order) + 1):
        least.append(min(least[start] + PASS + (end - start) * order[end - 1] for start in range(end)))
    return least[-1]


@pytest.mark.parametrize(
    ("widths", "lengths", "least"),
    [
        ([1], [1], 1),  # a text alone saves a pass
        ([1] * 60, [0] * 59 + [5], 6),  # one of sixty saves nothing
        ([1] * 60, [0] * 59 + [62], 62),  # unless its draft is longer than the batch is wide
        ([1] * 59 + [90], [0] * 58 + [50, 0], 50),  # or a prompt is fed, whose pass has room
        ([1] * 60, [0] * 20 + [3] * 40, 3),  # or many have one
    ],
)
def test_a_draft_is_made_where_it_pays(widths: list[int], lengths: list[int], least: int) -> None:
    assert find_least_draft(widths, lengths, cost_of_passes) == least


def test_all_drafts_are_made_where_rows_cost_nothing() -> None:
    assert find_least_draft([1] * 40, [0, 1, 5] + [0] * 37, lambda _: 1.0) == 1


rows = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 30)), min_size=1, max_size=8).filter(
    lambda pairs: any(length for _, length in pairs)
)


@given(rows)
def test_no_other_length_gains_more(pairs: list[tuple[int, int]]) -> None:
    widths, lengths = [width for width, _ in pairs], [length for _, length in pairs]
    chosen = find_least_draft(widths, lengths, cost_of_passes)

    def cost_of_all(least: int) -> float:
        """Of this step, and of later ones, in which each token that is not drafted is a row of a batch of its size."""
        made = [length * (length >= least) for length in lengths]
        later = (sum(lengths) - sum(made)) * (PASS + len(pairs)) / len(pairs)
        return cost_of_passes([width + length for width, length in zip(widths, made)]) + later

    assert cost_of_all(chosen) == pytest.approx(min(cost_of_all(least) for least in range(1, 32)))
