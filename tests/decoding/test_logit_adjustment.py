"""Penalties, biases and min-p agree with transformers and with the formulas of the OpenAI API, and define the model."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from constrain import ArgumentError, compile, sampling
from constrain.decoding.logit_adjustment import (
    AdjustedModel,
    LogitAdjustment,
    adjust_logits,
    adjust_rows,
    renormalise,
    unite_ids,
)
from constrain.sampling.core.masked_sampling import Proposal, apply_proposal
from tests.markov_factory import PASS_ABOVE, TWO, ChainModel, g_test
from tests.model_factory import TableModel

SIZE = 12
TOKENS = st.lists(st.integers(0, SIZE - 1), max_size=8)
LOGITS = st.lists(st.floats(-6, 6, width=32), min_size=SIZE, max_size=SIZE).map(np.array)
BIASES = st.dictionaries(st.integers(0, SIZE - 1), st.floats(-5, 5), max_size=4)


def log_softmax(row: Any) -> Any:
    return row - np.logaddexp.reduce(row)


@given(LOGITS, TOKENS.filter(bool), st.integers(0, 8), st.floats(0.3, 3))
@settings(max_examples=60, deadline=None)
def test_the_repetition_penalty_is_that_of_transformers(row: Any, tokens: list[int], cut: int, penalty: float) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    oracle = transformers.RepetitionPenaltyLogitsProcessor(penalty)
    expected = oracle(torch.tensor([tokens]), torch.tensor(row[None]))[0].numpy()
    ours = adjust_logits(row, LogitAdjustment(repetition_penalty=penalty), tokens[:cut], tokens[cut:])
    assert np.array_equal(ours, expected)


@given(st.sets(st.integers(0, 20)), st.sets(st.integers(0, 20)))
def test_ids_are_united_as_sets(ids: set[int], others: set[int]) -> None:
    found = unite_ids(np.array(sorted(ids), np.int64), np.array(sorted(others), np.int64))
    assert found.tolist() == sorted(ids | others)


@given(LOGITS, BIASES.filter(bool), TOKENS.filter(bool))
@settings(max_examples=40, deadline=None)
def test_biases_are_those_of_transformers(row: Any, biases: dict[int, float], tokens: list[int]) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    oracle = transformers.SequenceBiasLogitsProcessor([[[token], bias] for token, bias in biases.items()])
    expected = oracle(torch.tensor([tokens]), torch.tensor(row[None], dtype=torch.float32))[0].numpy()
    ours = adjust_logits(row.astype(np.float32), LogitAdjustment(logit_bias=biases), (), tokens)
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)  # sums of float32 in another order


@given(LOGITS, st.floats(0, 1), st.floats(0.2, 3), st.none() | st.integers(1, SIZE), st.none() | st.floats(0.05, 1))
@settings(max_examples=150, deadline=None)
def test_min_p_is_that_of_transformers(row: Any, min_p: float, heat: float, k: int | None, top_p: float | None) -> None:
    """Together with temperature, top-k and top-p, in the order of transformers."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    scores = torch.tensor(log_softmax(row)[None]) / heat
    ids = torch.zeros((1, 1), dtype=torch.long)
    if k is not None:
        scores = transformers.TopKLogitsWarper(k)(ids, scores)
    expected = transformers.MinPLogitsWarper(min_p)(ids, scores).softmax(-1)[0].numpy()
    ours = apply_proposal(log_softmax(row), Proposal(heat, k, None, min_p))
    ties = len(set(row.tolist())) < SIZE
    close = np.abs(expected - min_p * expected.max()).min() < 1e-12  # on the threshold
    if not ties and not close:
        np.testing.assert_allclose(ours, expected, rtol=1e-9)
    both = apply_proposal(log_softmax(row), Proposal(heat, k, top_p, min_p))
    alone = apply_proposal(log_softmax(row), Proposal(heat, k, top_p))
    assert set(np.flatnonzero(both)) == set(np.flatnonzero((alone > 0) & (alone >= min_p * alone.max())))


@given(LOGITS, TOKENS, TOKENS, BIASES, st.floats(-2, 2), st.floats(-2, 2), st.floats(0.5, 2))
@settings(max_examples=100, deadline=None)
def test_all_together_follow_the_formulas(
    row: Any, prompt: list[int], text: list[int], biases: dict[int, float], presence: float, frequency: float, r: float
) -> None:
    adjustment, counts = LogitAdjustment(r, presence, frequency, biases), Counter(text)
    expected = row.copy()
    for token in range(SIZE):
        value = row[token] + biases.get(token, 0.0)
        if token in prompt or token in text:
            value = value * r if value < 0 else value / r
        expected[token] = value - counts[token] * frequency - (counts[token] > 0) * presence
    before = row.copy()
    np.testing.assert_allclose(adjust_logits(row, adjustment, prompt, text), expected, rtol=1e-12, atol=1e-12)
    assert np.array_equal(row, before), "the model's row is not changed"
    two = adjust_rows(np.stack([row, row]), adjustment, [prompt, ()], [text, ()])
    np.testing.assert_allclose(two[0], expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(two[1], adjust_logits(row, adjustment, (), ()))


@given(LOGITS, TOKENS, BIASES, st.floats(-30, 30))
@settings(max_examples=100, deadline=None)
def test_rows_stay_distributions(row: Any, text: list[int], biases: dict[int, float], presence: float) -> None:
    row = log_softmax(row)
    adjustment = LogitAdjustment(presence_penalty=presence, logit_bias={token: 9 * b for token, b in biases.items()})
    after = adjust_logits(row, adjustment, (), text)
    changed = np.array(sorted({*text, *adjustment.logit_bias}), np.int64)
    np.testing.assert_allclose(renormalise(row, after, changed), log_softmax(after), rtol=1e-9, atol=1e-9)


def test_ids_beyond_the_row_are_ignored_and_minus_infinity_excludes() -> None:
    row = adjust_logits(np.zeros(3), LogitAdjustment(2.0, 1.0, 0.0, {1: -np.inf}), [7, 2], [9])
    assert row.tolist() == [0, -np.inf, 0]
    assert LogitAdjustment().is_empty
    assert LogitAdjustment(logit_bias={3: 0}).is_empty
    assert not LogitAdjustment(presence_penalty=1).is_empty
    with pytest.raises(ArgumentError, match="token 7: the vocabulary has 5"):
        LogitAdjustment(logit_bias={7: 1}).check_tokens(5)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"repetition_penalty": 0}, ArgumentError, "repetition_penalty must be above 0"),
        ({"repetition_penalty": "x"}, TypeError, "repetition_penalty is 'x'"),
        ({"presence_penalty": float("nan")}, ArgumentError, "presence_penalty is nan"),
        ({"frequency_penalty": None}, TypeError, "frequency_penalty is None"),
        ({"logit_bias": [1]}, TypeError, "logit_bias is"),
        ({"logit_bias": {"a": 1}}, TypeError, "logit_bias has the key 'a'"),
        ({"logit_bias": {-1: 1}}, ArgumentError, "logit_bias has the key -1"),
        ({"logit_bias": {1: np.inf}}, ArgumentError, r"logit_bias\[1\]"),
    ],
)
def test_wrong_values_are_named(wrong: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        LogitAdjustment(**wrong)


class LogitTable(TableModel):
    """A TableModel with logits on a scale of their own."""

    def next_logits(self, prefixes: list[list[int]]) -> Any:
        return self.next_logprobs(prefixes) + 7.5


def test_logits_are_adjusted_where_a_model_has_them() -> None:
    lm, adjustment = LogitTable(SIZE, 3), LogitAdjustment(repetition_penalty=1.7)
    rows = AdjustedModel(lm, adjustment, [4]).next_logprobs([[], [1], [1, 2]])
    for row, prefix in zip(rows, [[], [1], [1, 2]]):
        by_hand = adjust_logits(lm.next_logits([prefix])[0], adjustment, [4], prefix)
        np.testing.assert_allclose(row, log_softmax(by_hand))
    plain = AdjustedModel(TableModel(SIZE, 3), adjustment, [4]).next_logprobs([[1]])[0]
    assert not np.allclose(plain, rows[1]), "the scale matters"
    assert AdjustedModel(lm, adjustment).next_logprobs([]).shape[0] == 0


class ByHand:
    """A model of two letters that avoids what it has written: the distribution of `AdjustedModel`, written out."""

    def __init__(self, lm: ChainModel, presence: float, frequency: float) -> None:
        self.lm, self.presence, self.frequency = lm, presence, frequency

    def next_logprobs(self, prefixes: list[list[int]]) -> Any:
        rows = self.lm.next_logprobs(prefixes).copy()
        for row, prefix in zip(rows, prefixes):
            for token in set(prefix):
                row[token] -= self.presence + self.frequency * prefix.count(token)
            row -= np.logaddexp.reduce(row)
        return rows


def test_exact_samples_are_exact_under_the_adjusted_model() -> None:
    """Penalties define p: the sampler "exact" draws from the adjusted model given the constraint."""
    lm = ChainModel.random(TWO, 1, 4)
    constraint = compile(TWO, regex="(a|b){1,4}")
    adjusted = AdjustedModel(lm, LogitAdjustment(presence_penalty=0.7, frequency_penalty=0.4))
    by_hand, expected = ByHand(lm, 0.7, 0.4), {}
    for length in range(1, 5):
        for number in range(2**length):
            tokens = [number >> i & 1 for i in range(length)]
            rows = by_hand.next_logprobs([tokens[:i] for i in range(length + 1)])
            expected[tuple(tokens)] = float(np.exp(sum(row[t] for row, t in zip(rows, [*tokens, 2]))))
    total = sum(expected.values())
    draws = sampling.draw(adjusted, constraint, sampler="exact", n=2000, rng=np.random.default_rng(5), max_tokens=5)
    law = {tokens: p / total for tokens, p in expected.items()}
    assert g_test(Counter(tuple(one.tokens) for one in draws), law) > PASS_ABOVE
    one = draws.draws[0]
    assert one.logprob == pytest.approx(np.log(expected[tuple(one.tokens)]))
