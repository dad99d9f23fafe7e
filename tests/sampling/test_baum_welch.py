"""Baum-Welch against sums over all paths of hidden states, with refused tokens and without."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from constrain.base.errors import ArgumentError
from constrain.sampling import Hmm
from constrain.sampling.research.baum_welch import (
    TrainingTexts,
    count_assigned,
    count_expected,
    share_states,
)  # fmt: skip
from constrain.sampling.research.hidden_markov import interpolate_states

TEXTS = [[0, 1, 1, 2], [2], [1, 0, 2], [0, 0, 0, 1, 2]]
REFUSED = [[1, -1, 0, 0], [-1], [2, 2, 0], [1, 2, 1, -1, 0]]
LEAKS = [[0.3, 0.0, 0.9, 0.5], [0.0], [0.25, 1.0, 0.1], [0.2, 0.6, 1e-3, 0.0, 0.4]]


def counts_by_paths(hmm: Hmm, refused: list[list[int]], leaks: list[list[float]]) -> tuple[list[np.ndarray], float]:
    """Expected counts and log-likelihood by their definition: over all paths of hidden states."""
    counts, likelihood = [np.zeros_like(rows) for rows in (hmm.start, hmm.move, hmm.emit)], 0.0
    for text, others, masses in zip(TEXTS, refused, leaks):
        weights = {}
        for path in product(range(len(hmm.start)), repeat=len(text)):
            weight = hmm.start[path[0]]
            for i, state in enumerate(path):
                weight *= hmm.emit[state, text[i]] ** (1 - masses[i]) * hmm.emit[state, others[i]] ** masses[i]
                weight *= hmm.move[state, path[i + 1]] if i + 1 < len(path) else 1.0
            weights[path] = weight
        total = math.fsum(weights.values())
        likelihood += math.log(total)
        for path, weight in weights.items():
            counts[0][path[0]] += weight / total
            for i, state in enumerate(path):
                counts[2][state, text[i]] += (1 - masses[i]) * weight / total
                counts[2][state, others[i]] += masses[i] * weight / total
                if i + 1 < len(path):
                    counts[1][state, path[i + 1]] += weight / total
    return counts, likelihood


@pytest.mark.parametrize("leaking", [False, True])
@pytest.mark.parametrize("states", [1, 3])
def test_expected_counts_are_sums_over_paths(states: int, leaking: bool) -> None:
    hmm = Hmm.random(states, 3, rng=np.random.default_rng(11), peaked=1.0)
    leaks = LEAKS if leaking else [[0.0] * len(row) for row in LEAKS]
    wanted, likelihood = counts_by_paths(hmm, REFUSED, leaks)
    found = count_expected(hmm.start, hmm.move, hmm.emit, TrainingTexts.of(TEXTS, REFUSED, leaks))
    assert found.log_likelihood == pytest.approx(likelihood, abs=1e-12)
    for one, other in zip((found.start, found.move, found.emit), wanted):
        assert np.abs(one - other).max() < 1e-12


def test_no_round_makes_texts_less_likely() -> None:
    rng = np.random.default_rng(4)
    texts = [rng.integers(0, 4, rng.integers(1, 12)).tolist() for _ in range(300)]  # more than one block
    refused = [rng.integers(-1, 4, len(text)).tolist() for text in texts]
    training = TrainingTexts.of(texts, refused, [rng.random(len(text)).tolist() for text in texts])
    model = Hmm.random(4, 4, rng=rng, peaked=1.0).improve(training, 25)
    assert len(model.log_likelihoods) == 26
    assert all(b >= a - 1e-6 * abs(a) for a, b in zip(model.log_likelihoods, model.log_likelihoods[1:]))
    assert model.log_likelihoods[-1] > model.log_likelihoods[0] + 1


def test_an_impossible_text_counts_for_nothing() -> None:
    emit = np.array([[0.5, 0.5, 0.0], [0.1, 0.9, 0.0]])
    given = np.array([0.3, 0.7]), np.full((2, 2), 0.5), emit
    with_it = count_expected(*given, TrainingTexts.of([[0, 1], [1, 2, 0]]))
    without = count_expected(*given, TrainingTexts.of([[0, 1]]))
    assert with_it.log_likelihood == -math.inf
    assert (with_it.emit == without.emit).all() and (with_it.move == without.move).all()
    assert (with_it.start == without.start).all()


def test_long_texts_do_not_underflow() -> None:
    rng = np.random.default_rng(0)
    hmm = Hmm.random(3, 5, rng=rng, peaked=1.0)
    text = rng.integers(0, 5, 4000).tolist()
    counts = count_expected(hmm.start, hmm.move, hmm.emit, TrainingTexts.of([text]))
    assert counts.log_likelihood == pytest.approx(hmm.logprob(text), rel=1e-12)
    assert counts.emit.sum() == pytest.approx(4000) and counts.move.sum() == pytest.approx(3999)


def test_classes_have_states_of_their_own() -> None:
    first, owned = share_states(np.array([5, 100, 1, 20]), 6)
    assert owned.sum() == 6 and (owned > 0).all() and owned[1] == 3
    assert sorted(first.tolist()) == [0, 1, 4, 5]
    first, owned = share_states(np.array([5, 100, 1, 20]), 3)
    assert owned.tolist() == [1, 1, 1, 1] and first[2] == first[0] != first[1]
    texts = TrainingTexts.of([[0, 1, 0, 1, 2]] * 4, classes=[[0, 1, 0, 1, 2]] * 4)
    counts = count_assigned(3, 3, texts, np.random.default_rng(0))
    assert (counts.emit == np.diag([8.0, 8.0, 4.0])).all() and (counts.start == [4, 0, 0]).all()
    assert counts.move.tolist() == [[0, 8, 0], [4, 0, 4], [0, 0, 0]]


def test_emissions_are_mixed_by_the_number_of_types() -> None:
    counts = np.array([[6.0, 2.0, 0.0], [0.0, 0.5, 0.0]])
    shared = (np.array([6.0, 2.5, 0.0]) + 2 * np.full(3, 1 / 3)) / 10.5
    wanted = np.stack([(counts[0] + 2 * shared) / 10, (counts[1] + 0.5 * shared) / 1.0])
    assert np.abs(interpolate_states(counts) - wanted).max() < 1e-15
    assert (interpolate_states(np.zeros((2, 4))) == 0.25).all()


def test_nothing_to_learn_from() -> None:
    with pytest.raises(ArgumentError, match="no text"):
        TrainingTexts.of([[], []])
