"""Stochastic beam search against sampling without replacement: order, inclusion probabilities, weights.

Seeds are fixed: G-tests at p > 1e-6, means within 5 standard errors.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import permutations

import numpy as np
import pytest

from constrain.base.errors import LimitError, UnsupportedError
from constrain.sampling.checkers import ValidatorChecker
from constrain.sampling.core.masked_sampling import draw_masked
from constrain.sampling.without_replacement import draw_without_replacement
from constrain.search import FoundAnswers, StochasticBeams, stochastic_beam_search
from tests.markov_factory import (
    ALL_BYTES,
    CONTROL_BELOW,
    LETTERS,
    PASS_ABOVE,
    Case,
    ChainModel,
    cases,
    empty,
    g_test,
    regular,
)

Tokens = tuple[int, ...]


def runs(case: Case, times: int, n: int, seed: int) -> Iterator[FoundAnswers]:
    rng = np.random.default_rng(seed)
    for _ in range(times):
        yield stochastic_beam_search(case.lm, case.constraint, n=n, rng=rng, max_tokens=case.max_tokens)


def masked_law(case: Case) -> dict[Tokens, float]:
    """q(x) of every text: the product of the model's probabilities, each renormalised by the mask."""
    found = {}
    for tokens in case.law():
        matcher, logq = case.constraint.matcher(), 0.0
        for k, token in enumerate((*tokens, -1)):
            row = np.exp(case.lm.next_logprobs([list(tokens[:k])])[0])
            allowed = [i for i in range(len(row)) if matcher.allows(i)]
            ends = list(case.constraint.vocabulary.eos_ids)
            if k == case.max_tokens - 1:
                allowed = [i for i in allowed if i in ends]
            chosen = row[ends].sum() if token < 0 else row[token]
            logq += math.log(chosen / row[allowed].sum()) if chosen else -math.inf
            if token >= 0:
                matcher.advance(token)
        if logq > -math.inf:
            found[tokens] = math.exp(logq)
    return found


def few() -> Case:
    """A language of eight texts, with a prefix that cannot end in time."""
    return regular("few", LETTERS, "a|ab|b[ab]|cc?|ca|cb|acaaa", 5, seed=2)


def test_the_fixture_has_a_dead_end() -> None:
    assert math.fsum(masked_law(few()).values()) < 0.9


@pytest.mark.parametrize("name", list(cases()))
def test_all_of_a_small_language_comes_out_once_with_its_own_mass(name: str) -> None:
    case = cases()[name]
    law = {tokens: p for tokens, p in case.law().items() if p > 0}
    (found,) = runs(case, 1, len(law) + 3, seed=1)
    assert Counter(answer.tokens for answer in found) == dict.fromkeys(law, 1)
    for answer in found:
        assert math.exp(answer.log_weight) / len(found) == pytest.approx(law[answer.tokens], rel=1e-9)
    assert found.stats["log_time"] == math.inf and found.stats["missing"] == 0


@pytest.mark.parametrize("name", ["brackets", "tiny mass", "traps"])
def test_there_are_always_n_different_valid_texts(name: str) -> None:
    case = cases()[name]
    for found in runs(case, 10, 7, seed=2):
        assert len({answer.tokens for answer in found}) == 7
        assert all(case.accepts(case.constraint.vocabulary.text(answer.tokens)) for answer in found)
        assert [answer.score for answer in found] == sorted((answer.score for answer in found), reverse=True)


def ordered_law(q: dict[Tokens, float], n: int) -> dict[tuple[Tokens, ...], float]:
    """P(first n texts in order) of sampling without replacement from q."""
    law, total = {}, math.fsum(q.values())
    for order in permutations(q, n):
        p, left = 1.0, total
        for tokens in order:
            p, left = p * q[tokens] / left, left - q[tokens]
        law[order] = p
    return law


def test_the_order_is_that_of_sampling_without_replacement() -> None:
    case = few()
    law = ordered_law(masked_law(case), 2)
    assert math.fsum(law.values()) == pytest.approx(1)
    counts = Counter(tuple(answer.tokens for answer in found) for found in runs(case, 800, 2, seed=3))
    assert g_test(counts, law) > PASS_ABOVE
    assert g_test(counts, ordered_law(case.exact(), 2)) < CONTROL_BELOW, "the order is that of q, not that of p given L"


def test_inclusion_probabilities_are_those_that_are_seen() -> None:
    """P(x is among the first 3), exactly; and given the time that was reached, 1 / inclusion has the mean 1."""
    case, times = few(), 600
    inclusion = Counter[Tokens]()
    for order, p in ordered_law(masked_law(case), 3).items():
        for tokens in order:
            inclusion[tokens] += p
    seen, inverse = Counter[Tokens](), Counter[Tokens]()
    for found in runs(case, times, 3, seed=4):
        for answer in found:
            seen[answer.tokens] += 1
            inverse[answer.tokens] += math.exp(answer.log_weight - answer.logprob) / len(found)
    for tokens, p in inclusion.items():
        assert abs(seen[tokens] / times - p) < 5 * math.sqrt(p * (1 - p) / times)
        assert inverse[tokens] / times == pytest.approx(1, abs=5 / math.sqrt(times * p))


@pytest.mark.parametrize("n", [2, 3])
def test_estimates_are_unbiased(n: int) -> None:
    """The mean weight against Z, of texts that end in time. (Of one text it is unbiased as well, but heavy-tailed.)"""
    case = few()
    totals = [np.mean([math.exp(answer.log_weight) for answer in found]) for found in runs(case, 800, n, seed=6)]
    assert abs(np.mean(totals) - case.z) < 5 * np.std(totals) / math.sqrt(len(totals))


def test_distribution_equals_draw_without_replacement() -> None:
    """The same distribution of pairs as `draw_without_replacement` in masked order, of texts with one spelling."""
    case = few()
    rng = np.random.default_rng(7)
    pairs = Counter(
        tuple(
            draw.tokens
            for draw in draw_without_replacement(
                case.lm, case.constraint, n=2, rng=rng, max_tokens=case.max_tokens, order="masked"
            )
        )
        for _ in range(400)
    )
    ours = Counter(tuple(answer.tokens for answer in found) for found in runs(case, 400, 2, seed=8))
    law = ordered_law(masked_law(case), 2)
    assert g_test(pairs, law) > PASS_ABOVE and g_test(ours, law) > PASS_ABOVE


def test_one_text_is_a_masked_draw_that_ended() -> None:
    case = cases()["a^n b^n"]
    draws = draw_masked(case.lm, case.constraint, n=500, rng=np.random.default_rng(0), max_tokens=case.max_tokens)
    q = {draw.tokens: math.exp(draw.logprob - draw.log_weight) for draw in draws if draw.log_weight > -math.inf}
    total = math.fsum(q.values())
    counts = Counter(found[0].tokens for found in runs(case, 400, 1, seed=9))
    assert g_test(counts, {tokens: p / total for tokens, p in q.items()}) > PASS_ABOVE


def test_without_dead_ends_each_step_is_one_call_of_the_model() -> None:
    case = regular("fixed", LETTERS, "[abc]{6}", 8, seed=10)
    for found in runs(case, 10, 5, seed=11):
        assert found.stats["model_calls"] == 7
        assert found.stats["rows"] <= 6 * 6 + 1


def test_children_beyond_those_listed_arrive_in_order() -> None:
    """95 texts of one byte, of which 60 are drawn: more than are listed at once. All orders of two are as likely as
    their law says."""
    case = regular("bytes", ALL_BYTES, "[ -~]", 2)
    lm = ChainModel.random(ALL_BYTES, 1, 5, peaked=5.0)
    rng = np.random.default_rng(12)
    options = StochasticBeams()
    found = stochastic_beam_search(lm, case.constraint, options, n=60, rng=rng, max_tokens=2)
    assert len({answer.text for answer in found}) == 60
    everything = stochastic_beam_search(lm, case.constraint, options, n=99, rng=rng, max_tokens=2)
    assert len(everything) == 95
    row = np.exp(lm.next_logprobs([[]])[0])
    allowed = [token for token in range(ALL_BYTES.size) if case.constraint.matcher().allows(token)]
    late: list[float] = []
    for _ in range(100):  # the 40th text is beyond the 32 that are listed first
        one = stochastic_beam_search(lm, case.constraint, options, n=39, rng=rng, max_tokens=2)
        late.append(len(one) * np.mean([math.exp(answer.log_weight - answer.logprob) for answer in one]) / len(one))
    assert np.mean(late) == pytest.approx(len(allowed), abs=5 * float(np.std(late)) / 10)
    assert row.sum() == pytest.approx(1)


def test_calls_that_are_used_up_leave_fewer_texts() -> None:
    case = cases()["brackets"]
    rng = np.random.default_rng(13)
    options = StochasticBeams(max_calls=3)
    try:
        found = stochastic_beam_search(case.lm, case.constraint, options, n=20, rng=rng, max_tokens=9)
        assert found.stats["missing"] == 20 - len(found) > 0
    except LimitError:
        pass


def test_invalid_arguments_and_too_small_budgets_raise() -> None:
    case, rng = empty(), np.random.default_rng(0)
    with pytest.raises(LimitError, match="the shortest text found takes 7"):
        stochastic_beam_search(case.lm, case.constraint, n=2, rng=rng, max_tokens=case.max_tokens)
    with pytest.raises(UnsupportedError, match="masks"):
        stochastic_beam_search(case.lm, ValidatorChecker(LETTERS), n=2, rng=rng, max_tokens=5)
    with pytest.raises(TypeError, match="rng"):
        stochastic_beam_search(case.lm, case.constraint, n=2, rng=5, max_tokens=5)  # type: ignore[arg-type]
