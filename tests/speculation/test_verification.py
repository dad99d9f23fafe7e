"""Verification of drafted tokens against the target's distribution: every outcome with its probability."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest

from constrain.base.errors import ArgumentError
from constrain.sampling.core.masked_sampling import PLAIN, Proposal, apply_proposal, pick_token
from constrain.speculation.verification import draw_with_siblings, pick_drafted
from tests.markov_factory import outcomes


def sequences(weights: np.ndarray, count: int) -> Iterator[tuple[float, list[int]]]:
    """Every sequence of `count` draws without replacement, and its probability."""
    if count == 0 or not weights.any():
        yield 1.0, []
        return
    for index in np.flatnonzero(weights):
        rest = weights.copy()
        rest[index] = 0
        for p, tail in sequences(rest, count - 1):
            yield p * weights[index] / weights.sum(), [int(index), *tail]


def random_weights(rng: np.random.Generator, size: int, zeros: float) -> np.ndarray:
    weights = rng.dirichlet(np.full(size, 0.5)) * (rng.random(size) >= zeros)
    return weights / weights.sum() if weights.any() else np.eye(size)[0]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("zeros", [0, 0.4])
def test_the_token_has_exactly_the_target_distribution(count: int, zeros: float) -> None:
    """For all sequences of siblings and all uniform numbers, summed up."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        target, draft = random_weights(rng, 5, zeros), random_weights(rng, 5, zeros)
        law = np.zeros(5)
        for p, siblings in sequences(draft, count):
            for chance, index in outcomes(partial(draw_with_siblings, target, draft, siblings)):
                law[index] += p * chance
        assert law == pytest.approx(target, abs=1e-12)


def test_one_sibling_is_accepted_as_often_as_any_coupling_can() -> None:
    rng = np.random.default_rng(0)
    target, draft = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    accepted = sum(
        p * chance
        for p, (x,) in sequences(draft, 1)
        for chance, index in outcomes(lambda rng, x=x: draw_with_siblings(target, draft, [x], rng))
        if index == x
    )
    assert accepted == pytest.approx(np.minimum(target, draft).sum())


def test_equal_distributions_accept_everything() -> None:
    target = np.array([0.1, 0.2, 0.7])
    for sibling in range(3):
        assert list(outcomes(lambda rng, x=sibling: draw_with_siblings(target, target, [x], rng))) == [(1.0, sibling)]


ENDS = (0, 7)
ROWS = np.random.default_rng(3).normal(0, 1.2, (20, 9))
ROWS -= np.logaddexp.reduce(ROWS, axis=1, keepdims=True)
OPTIONS = [PLAIN, Proposal(0.5), Proposal(1.3, top_k=3), Proposal(1, top_p=0.6), Proposal(0)]


@pytest.mark.parametrize("proposal", OPTIONS, ids=str)
@pytest.mark.parametrize("count", [1, 2])
def test_picks_have_the_masked_law_and_its_log_probabilities(proposal: Proposal, count: int) -> None:
    """Also where the draft has tokens that are refused, end tokens, and probabilities that were never masked."""
    for row, other in zip(ROWS[:6], ROWS[6:]):
        allowed = np.array([0, 2, 3, 5, 7])
        draft, target = np.exp(other), apply_proposal(row[allowed], proposal)
        law: dict[int, float] = defaultdict(float)
        for p, siblings in sequences(draft, count):
            given = {"proposal": proposal, "ends": ENDS, "siblings": siblings, "draft": draft}
            for chance, pick in outcomes(partial(pick_drafted, row, allowed, **given)):
                law[pick.token] += p * chance
                same = [0, 7] if pick.token in ENDS else [pick.token]
                assert pick.logprob == pytest.approx(np.logaddexp.reduce(row[same]))
                assert np.exp(pick.logproposal) == pytest.approx(target[np.isin(allowed, same)].sum())
                assert pick.logmass == pytest.approx(np.logaddexp.reduce(row[allowed]))
        assert [law[int(token)] for token in allowed] == pytest.approx(target, abs=1e-12)


def test_deterministic_drafts_use_the_random_numbers_of_no_draft() -> None:
    allowed = np.arange(1, 8)
    for seed in range(30):
        plain = pick_token(ROWS[0], allowed, np.random.default_rng(seed), PLAIN, ENDS)
        assert pick_drafted(ROWS[0], allowed, np.random.default_rng(seed), PLAIN, ENDS, [3, 4], None) == plain
        assert pick_drafted(ROWS[0], allowed, np.random.default_rng(seed), PLAIN, ENDS, [], np.ones(9) / 9) == plain


def test_rows_that_are_no_distributions_are_refused() -> None:
    rng = np.random.default_rng(0)
    for row, message in ((np.full(9, np.nan), "NaN"), (np.zeros(9), "not a distribution")):
        with pytest.raises(ArgumentError, match=message):
            pick_drafted(row, np.arange(9), rng, PLAIN, ENDS, [3], np.ones(9) / 9)
    none = np.full(9, -np.inf)
    assert pick_drafted(none, np.arange(9), rng, PLAIN, ENDS, [3], np.ones(9) / 9).logprob == -np.inf
