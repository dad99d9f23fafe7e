"""Masked sampling: the distribution is the model's on the allowed tokens, and the weight records the difference."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from constrain import sampling
from constrain.base.errors import LimitError, UnsupportedError
from constrain.sampling.core.language_model import LanguageModel
from constrain.sampling.core.masked_sampling import (
    PLAIN,
    Proposal,
    allowed_tokens,
    apply_proposal,
    draw_masked,
    pick_token,
)
from constrain.sampling.core.results import Draw, Draws, log_sum
from constrain.vocabulary.vocabulary import Vocabulary
from tests.finite_grammar_factory import FiniteConstraint
from tests.model_factory import TableModel

VOCABULARY = Vocabulary.from_tokens([b"a", b"b", b"ab", b"ba", b"abb", b"b", None, None], eos_ids=[6, 7])
TEXTS = [b"ab", b"abba", b"b", b"bab", b"aabb"]
CONSTRAINT = FiniteConstraint(VOCABULARY, TEXTS)


class Uniforms:
    """Stands in for a Generator whose next uniform number is known."""

    def __init__(self, *values: float) -> None:
        self.values = list(values)

    def random(self) -> float:
        return self.values.pop(0)


def sequences(constraint: FiniteConstraint) -> dict[tuple[int, ...], tuple[float, float]]:
    """Every token sequence of the constraint: log p (end included) and log q, by walking all of them."""
    model, out = TableModel(VOCABULARY.size), {}

    def walk(matcher, p: float, q: float) -> None:
        row = model.next_logprobs([matcher.tokens])[0]
        allowed = sorted(matcher.allowed())
        mass = log_sum(row[allowed])
        ends = [token for token in allowed if token in VOCABULARY.eos_ids]
        if ends:
            out[tuple(matcher.tokens)] = (p + log_sum(row[ends]), q + log_sum(row[ends]) - mass)
        for token in allowed:
            if token not in ends:
                further = matcher.fork()
                further.advance(token)
                walk(further, p + row[token], q + row[token] - mass)

    walk(constraint.matcher(), 0.0, 0.0)
    return out


@given(st.sets(st.integers(0, 95)))
def test_allowed_tokens_reads_the_bits_of_a_mask(tokens: set[int]) -> None:
    mask = np.zeros(3, np.uint32)
    for token in tokens:
        mask[token // 32] |= np.uint32(1 << (token % 32))
    assert allowed_tokens(mask.view(np.int32)).tolist() == sorted(tokens)


@given(st.lists(st.floats(-8, 0), min_size=1, max_size=12), st.data())
def test_pick_draws_from_the_distribution_it_declares(logs: list[float], data: st.DataObject) -> None:
    row = np.array(logs) - log_sum(np.array(logs))
    allowed = np.array(sorted(data.draw(st.sets(st.sampled_from(range(len(row))), min_size=1))))
    few, most = st.sampled_from([None, 1, 2, 3]), st.sampled_from([None, 0.3, 0.9])
    proposal = data.draw(st.builds(Proposal, st.sampled_from([0.5, 1.0, 2.0]), few, most))
    law = apply_proposal(row[allowed], proposal)
    edges = np.concatenate([[0.0], np.cumsum(law)])
    for token, low, high in zip(allowed, edges, edges[1:]):
        if high - low > 1e-9:
            choice = pick_token(row, allowed, Uniforms((low + high) / 2), proposal)
            assert choice.token == token
            assert choice.logprob == pytest.approx(row[token])
            assert choice.logproposal == pytest.approx(math.log(high - low))
            assert choice.logmass == pytest.approx(log_sum(row[allowed]))


@given(st.lists(st.floats(-8, 0), min_size=1, max_size=12))
def test_the_proposal_is_what_its_words_say(logs: list[float]) -> None:
    row = np.array(logs)
    assert apply_proposal(row, PLAIN) == pytest.approx(np.exp(row - log_sum(row)))
    assert apply_proposal(row, Proposal(temperature=0)).tolist() == [
        float(i == int(row.argmax())) for i in range(len(row))
    ]
    assert (apply_proposal(row, Proposal(top_k=2)) > 0).sum() == min(2, len(row))
    kept = apply_proposal(row, Proposal(top_p=0.7)) > 0
    law = np.exp(row - log_sum(row))
    assert law[kept].sum() >= 0.7 - 1e-9
    assert law[kept].sum() - law[kept].min() < 0.7 + 1e-9
    assert law[kept].min() >= law[~kept].max(initial=0)


def test_wrong_proposals_are_refused() -> None:
    for wrong in ({"temperature": -1}, {"temperature": math.nan}, {"top_k": 0}, {"top_p": 0.0}, {"top_p": 1.5}):
        with pytest.raises(ValueError, match="must be"):
            Proposal(**wrong)


def test_an_end_token_counts_for_all_of_them() -> None:
    row = np.log(np.array([0.1, 0.2, 0.3, 0.4]))
    choice = pick_token(row, np.array([1, 2, 3]), Uniforms(0.99), PLAIN, ends=(2, 3))
    assert choice.token == 3
    assert math.exp(choice.logprob) == pytest.approx(0.7)
    assert math.exp(choice.logproposal) == pytest.approx(0.7 / 0.9)


def test_without_any_probability_allowed_tokens_are_uniform_and_weigh_nothing() -> None:
    row = np.array([0.0, -np.inf, -np.inf])
    picks = [pick_token(row, np.array([1, 2]), Uniforms(u)) for u in (0.2, 0.8)]
    assert [choice.token for choice in picks] == [1, 2]
    assert all(choice.logprob == -np.inf and choice.logproposal == pytest.approx(math.log(0.5)) for choice in picks)


def test_nan_is_an_error() -> None:
    with pytest.raises(ValueError, match="NaN"):
        pick_token(np.array([0.0, np.nan]), np.array([0, 1]), Uniforms(0.5))


def test_draws_follow_the_masked_distribution_and_their_weights_correct_it() -> None:
    """G-test of the drawn sequences against q by enumeration; log p, log w by enumeration; mean weight against Z."""
    exact = sequences(CONSTRAINT)
    draws = draw_masked(TableModel(VOCABULARY.size), CONSTRAINT, n=4000, rng=np.random.default_rng(1), max_tokens=8)
    for one in draws:
        p, q = exact[one.tokens]
        assert one.logprob == pytest.approx(p)
        assert one.log_weight == pytest.approx(p - q)
        assert one.text.encode() in TEXTS
    seen = Counter(one.tokens for one in draws)
    expected = {tokens: len(draws) * math.exp(q) for tokens, (_, q) in exact.items()}
    common = [tokens for tokens, count in expected.items() if count >= 5]
    rest = len(draws) - sum(expected[tokens] for tokens in common)
    chi = sum((seen[t] - expected[t]) ** 2 / expected[t] for t in common)
    chi += (len(draws) - sum(seen[t] for t in common) - rest) ** 2 / max(rest, 1)
    freedom = len(common)
    assert chi < freedom + 6 * math.sqrt(2 * freedom), "4000 draws are not from the masked law"
    z = log_sum(np.array([p for p, _ in exact.values()]))
    weights = np.exp(draws.log_weights)
    assert abs(weights.mean() - math.exp(z)) < 5 * weights.std() / math.sqrt(len(weights))
    assert draws.log_z == pytest.approx(math.log(weights.mean()))
    assert 1 <= draws.ess <= len(draws)
    kl = sum(math.exp(q) * (q - p + z) for p, q in exact.values())
    assert draws.distortion == pytest.approx(kl, abs=0.15)


def test_a_text_out_of_tokens_ends_or_counts_for_nothing() -> None:
    """With at most 3 tokens the mean weight estimates the mass of the sequences that short."""
    exact = {tokens: p for tokens, (p, _) in sequences(CONSTRAINT).items() if len(tokens) < 3}
    draws = draw_masked(TableModel(VOCABULARY.size), CONSTRAINT, n=4000, rng=np.random.default_rng(2), max_tokens=3)
    assert all(one.tokens in exact for one in draws if one.log_weight > -np.inf)
    weights = np.exp(draws.log_weights)
    total = math.exp(log_sum(np.array(list(exact.values()))))
    assert abs(weights.mean() - total) < 5 * weights.std() / math.sqrt(len(weights))
    with pytest.raises(LimitError):
        draw_masked(TableModel(VOCABULARY.size), CONSTRAINT, n=1, rng=np.random.default_rng(0), max_tokens=0)


def test_draws_by_themselves() -> None:
    draws = Draws.of([Draw((1,), "b", -1.0, math.log(3)), Draw((0,), "a", -2.0, math.log(1))], checks=7)
    assert draws.log_z == pytest.approx(math.log(2))
    assert draws.weights == pytest.approx([0.75, 0.25])
    assert draws.ess == pytest.approx(16 / 10)
    assert len(draws) == 2
    assert draws[0].text == "b"
    assert draws.stats == {"checks": 7}
    dead = Draws.of([Draw((), "", -np.inf, -np.inf)])
    assert dead.log_z == -np.inf
    assert dead.ess == 0
    assert dead.weights.tolist() == [0.0]


def test_samplers_have_one_signature() -> None:
    lm, more = TableModel(VOCABULARY.size), {"n": 3, "max_tokens": 8}
    by_name = sampling.draw(lm, CONSTRAINT, sampler="masked", rng=np.random.default_rng(4), **more)
    assert list(by_name) == list(draw_masked(lm, CONSTRAINT, rng=np.random.default_rng(4), **more))
    with pytest.raises(UnsupportedError, match="no sampler 'magic'"):
        sampling.draw(lm, CONSTRAINT, sampler="magic", rng=np.random.default_rng(4), **more)


def test_a_model_is_known_by_its_method() -> None:
    assert isinstance(TableModel(4), LanguageModel)
    assert not isinstance("demo", LanguageModel)
