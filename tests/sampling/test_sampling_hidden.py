"""Hmm: its distributions against sums over all hidden paths; crossed with an automaton, exact answers against
enumeration.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest

from constrain import compile
from constrain.base.errors import LimitError
from constrain.sampling import Hmm, draw
from constrain.sampling.research.hmm_product import HiddenProduct
from tests.markov_factory import LETTERS, PASS_ABOVE, TWO, cases, g_test

RNG = np.random.default_rng
CASE = cases()["counting"]
HMM = Hmm.random(3, TWO.size, rng=RNG(2), peaked=1.0)


def by_paths(hmm: Hmm, tokens: tuple[int, ...]) -> float:
    """P(a text begins with these tokens), by its definition: over all paths of hidden states."""
    total = 0.0
    for path in product(range(len(hmm.start)), repeat=len(tokens)):
        p = hmm.start[path[0]] if path else 1.0
        for i, (state, token) in enumerate(zip(path, tokens)):
            p *= hmm.emit[state, token] * (hmm.move[state, path[i + 1]] if i + 1 < len(path) else 1.0)
        total += p
    return float(total)


def test_its_distributions_are_sums_over_hidden_paths() -> None:
    prefixes = [list(p) for k in range(5) for p in product(range(2), repeat=k)]
    rows = HMM.next_logprobs(prefixes)
    assert np.allclose(np.exp(rows).sum(axis=1), 1.0)
    for prefix, row in zip(prefixes, rows):
        before = by_paths(HMM, tuple(prefix))
        for token in range(TWO.size):
            assert math.exp(row[token]) == pytest.approx(by_paths(HMM, (*prefix, token)) / before, rel=1e-12)
    assert by_matrices(HMM, (0, 1, 1, 2)) == pytest.approx(by_paths(HMM, (0, 1, 1, 2)), rel=1e-12)
    assert HMM.logprob([0, 1, 1, 2]) == pytest.approx(math.log(by_paths(HMM, (0, 1, 1, 2))), rel=1e-12)


def test_a_long_text_neither_underflows_nor_loses_its_state() -> None:
    text = RNG(0).integers(0, 2, 3000).tolist()
    hmm = Hmm(HMM.start, HMM.move, HMM.emit)
    direct = hmm.next_logprobs([text])
    assert np.isfinite(direct).all()
    assert np.allclose(hmm.next_logprobs([text[:10], text])[1], direct[0])


def by_matrices(hmm: Hmm, tokens: tuple[int, ...]) -> float:
    """The same as one product of matrices."""
    row = hmm.start * hmm.emit[:, tokens[0]]
    for token in tokens[1:]:
        row = (row @ hmm.move) * hmm.emit[:, token]
    return float(row.sum())


def law(hmm: Hmm) -> dict[tuple[int, ...], float]:
    """p(x) [x in L], for the language of CASE."""
    ends = list(TWO.eos_ids)
    return {
        tokens: sum(by_matrices(hmm, (*tokens, end)) for end in ends) for tokens in CASE.law() if len(tokens) < 8
    }  # fmt: skip


def test_the_product_has_the_distribution_of_enumeration() -> None:
    known = law(HMM)
    z = math.fsum(known.values())
    made = HiddenProduct(HMM, CASE.constraint, max_tokens=8)
    assert made.log_z == pytest.approx(math.log(z), abs=1e-12)
    draws = draw(HMM, CASE.constraint, sampler="markov", n=2000, rng=RNG(1), max_tokens=8)
    assert g_test(Counter(one.tokens for one in draws), {x: p / z for x, p in known.items()}) > PASS_ABOVE
    for one in draws[:20]:
        assert one.logprob == pytest.approx(math.log(known[one.tokens]), abs=1e-9)
        assert one.log_weight == made.log_z
    masked = draw(HMM, CASE.constraint, sampler="masked", n=2000, rng=RNG(1), max_tokens=8)
    alive = Counter(one.tokens for one in masked if one.log_weight > -math.inf)
    assert g_test(alive, {x: p / z for x, p in known.items()}) < PASS_ABOVE


def test_masses_far_below_the_least_float() -> None:
    hmm = Hmm(np.array([1.0]), np.array([[1.0]]), np.array([[1e-9, 0.9, 1e-9, 0.1 - 2e-9]]))
    made = HiddenProduct(hmm, compile(LETTERS, regex="a{60}b"), max_tokens=70)
    assert made.log_z == pytest.approx(60 * math.log(1e-9) + math.log(0.9) + math.log(0.1 - 2e-9))
    (one,) = made.sample(1, RNG(0))
    assert one.text == "a" * 60 + "b"
    assert one.logprob == pytest.approx(made.log_z)


def test_nothing_in_time_and_too_much() -> None:
    with pytest.raises(LimitError, match="max_tokens is 3; the shortest text found takes 5 tokens"):
        draw(HMM, CASE.constraint, sampler="markov", n=1, rng=RNG(0), max_tokens=3)
    with pytest.raises(LimitError, match="too many"):
        HiddenProduct(Hmm.random(400, 3, rng=RNG(0)), compile(TWO, regex="[ab]{300}"), max_tokens=400)


def test_baum_welch_never_makes_texts_less_likely() -> None:
    rng = RNG(5)
    texts = [[*rng.integers(0, 2, rng.integers(1, 9)).tolist(), 2] for _ in range(40)]
    hmm = Hmm.random(3, 3, rng=rng, peaked=1.0)
    scores = []
    for _ in range(15):
        scores.append(sum(hmm.logprob(text) for text in texts))
        hmm = hmm.reestimate(texts)
    assert all(b >= a - 1e-5 for a, b in zip(scores, scores[1:]))
    assert scores[-1] > scores[0] + 1


def test_fit_finds_a_hidden_alternation() -> None:
    """Letters come in pairs, aabbaabb: which of two is next is in the state, and two states are too few for it."""
    texts = [[0, 0, 1, 1] * k for k in range(1, 6)]
    score = {}
    for states in (1, 5):
        made = Hmm.fit(texts, states=states, end=2, size=3, rng=RNG(3), rounds=60)
        score[states] = sum(made.logprob([*text, 2]) for text in texts)
    assert score[5] > score[1] + 20


def test_invalid_distributions_are_refused() -> None:
    for given in ((np.ones(2), np.eye(2), np.eye(2)), (np.array([1.0]), np.eye(2), np.eye(2))):
        with pytest.raises(ValueError, match=r"sum to 1|must be"):
            Hmm(*given)
