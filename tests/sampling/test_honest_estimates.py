"""`trusted` means that the interval covers the truth at its level: the faults that were found, and a small study."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from bench.faithful.coverage import LEVEL, TRUSTED, count_runs, judge_coverage, make_event, study_model
from bench.faithful.random_models import KINDS, make_model
from constrain import compile as compile_constraint
from constrain.sampling import SAMPLERS, draw, estimate, estimate_from
from constrain.sampling.core.interval_statistics import binomial_interval
from constrain.sampling.core.masked_sampling import Proposal
from constrain.sampling.core.mass_bounds import LARGEST_GAP
from constrain.sampling.particles import Masked
from constrain.sampling.pimh import bound_start_bias
from constrain.sampling.trusted_intervals import FEWEST_EFFECTIVE, MISSED
from constrain.vocabulary.vocabulary import Vocabulary
from tests.markov_factory import cases


def length(text: str) -> float:
    return float(len(text))


def spell(tokens: tuple[int, ...]) -> str:
    return b"".join(cases()["counting"].constraint.vocabulary.tokens[token] or b"" for token in tokens).decode()


MODELS = 12
WITHOUT_MASS = [name for name in SAMPLERS if name not in ("markov", "exact", "without_replacement", "asap")]
"""Samplers that do not find a mode that the model hides, without a learned twist."""
LEARNING = ("smc", "pimh")


@pytest.mark.slow
def test_trusted_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """The study of `python -m bench faithful.coverage` in small: 12 models, all samplers, log Z and an event."""
    runs = [run for number in range(MODELS) for run in study_model(make_model(number), number, 80)]
    assert {run.kind for run in runs} == set(KINDS)
    assert {run.sampler for run in runs} == set(SAMPLERS)
    trusted = count_runs(run for run in runs if run.trusted)
    assert trusted.right >= LEVEL * trusted.trusted
    plain = count_runs(run for run in runs if run.kind == "plain")
    assert plain.trusted >= TRUSTED * plain.runs
    assert not any(run.trusted for run in runs if run.kind == "truncated")
    assert not any(run.trusted and not run.covered for run in runs if run.kind == "hidden mode")
    assert not any(run.trusted and abs(run.truth - run.low) > 1 for run in runs if run.quantity == "log Z"), (
        "nats off, and trusted"
    )
    assert len(judge_coverage(runs)) == 3


# ---- the faults of version 0.1.0 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scouts", [0.0, 0.5])
@pytest.mark.parametrize("sampler", ["masked", "smc"])
def test_a_proposal_that_cuts_tokens_off_is_not_trusted(sampler: str, scouts: float) -> None:
    """Of the likeliest token of each step alone there is one text: no spread, and an error of 0 far from the truth."""
    case, proposal = cases()["counting"], Proposal(top_k=1)
    options: dict[str, Any] = {"proposal": proposal} if sampler == "masked" else {"move": Masked(proposal)}
    for f in (None, make_event(1)):
        found = estimate(
            case.lm, case.constraint, f, sampler=sampler, rng=np.random.default_rng(0), max_tokens=case.max_tokens,
            scouts=scouts, **options,
        )  # fmt: skip
        assert not found.trusted
        assert "leaves tokens out" in found.reason
    covered = estimate(
        case.lm, case.constraint, sampler="masked", rng=np.random.default_rng(0), max_tokens=case.max_tokens,
        proposal=Proposal(top_k=1, defensive=0.3),
    )  # fmt: skip
    assert "leaves tokens out" not in covered.reason


def test_a_chain_that_hardly_moves_is_worth_few_draws() -> None:
    case = cases()["counting"]
    given: dict[str, Any] = {
        "rng": np.random.default_rng(0),
        "max_tokens": case.max_tokens,
        "particles": 2,
        "twist": None,
    }
    draws = draw(case.lm, case.constraint, sampler="pimh", n=200, **given)
    assert draws.stats["acceptance"] < 0.3
    assert draws.ess < 60 and draws.ess <= 1.5 * 200 * draws.stats["acceptance"]
    found = estimate(case.lm, case.constraint, make_event(0), sampler="pimh", n=200, **given)
    assert found.ess < 150 and not found.trusted


def test_copies_of_few_ancestors_are_worth_few_draws() -> None:
    """64 particles of one population, resampled at every step; they end as a few texts."""
    case = cases()["a^n b^n"]
    given: dict[str, Any] = {"rng": np.random.default_rng(0), "max_tokens": case.max_tokens, "twist": None}
    draws = draw(case.lm, case.constraint, sampler="smc", n=64, threshold=1.0, **given)
    assert np.ptp(draws.log_weights) < 1e-9  # the weights alone would say that all 64 count
    assert draws.distinct <= 4
    assert draws.groups is not None
    assert draws.ess <= len(set(draws.groups)) < 40
    independent = draw(case.lm, case.constraint, sampler="smc", n=64, particles=8, **given)
    assert independent.groups is None


@pytest.mark.parametrize("sampler", WITHOUT_MASS)
@pytest.mark.parametrize("scouts", [0.0, 0.5])
def test_a_mode_that_no_draw_reaches_is_not_overlooked(sampler: str, scouts: float) -> None:
    """Behind a token of probability 1e-7 and less there is most of Z: nats away, while all draws agree."""
    model = KINDS["hidden mode"](5)
    case, truth = model.case, math.log(model.case.z)
    options = {**model.options[sampler], **({"twist": None} if sampler in LEARNING else {})}
    found = estimate(
        case.lm, case.constraint, sampler=sampler, rng=np.random.default_rng(0), max_tokens=case.max_tokens,
        scouts=scouts, **options,
    )  # fmt: skip
    assert not found.trusted
    if scouts:
        assert found.low <= truth <= found.high and found.bracket is not None
        assert found.reason == MISSED
    else:
        assert abs(found.value - truth) > 0.3 and found.gap > LARGEST_GAP
        assert "could multiply Z" in found.reason


@pytest.mark.parametrize("seed", [5, 6, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (7, 8))])
@pytest.mark.parametrize("sampler", LEARNING)
def test_a_learned_twist_finds_the_mode_or_is_not_trusted(sampler: str, seed: int) -> None:
    model = KINDS["hidden mode"](seed)
    truth = math.log(model.case.z)
    found = estimate(
        model.case.lm, model.case.constraint, sampler=sampler, rng=np.random.default_rng(0),
        max_tokens=model.case.max_tokens, scouts=0.0, twist="fresh", **model.options[sampler],
    )  # fmt: skip
    assert found.low <= truth <= found.high or not found.trusted


def test_samplers_that_are_exact_find_the_hidden_mode() -> None:
    model = KINDS["hidden mode"](5)
    found = estimate(
        model.case.lm, model.case.constraint, sampler="exact", rng=np.random.default_rng(0), max_tokens=6, scouts=0.0
    )
    assert found.trusted and found.low <= math.log(model.case.z) <= found.high


# ---- parts ---------------------------------------------------------------------------------------------------------


def test_the_size_of_a_chain_is_that_of_its_variance() -> None:
    """The variance of a mean over 120 chains, beside p (1 - p) over their mean effective size: within 40 %."""
    case, event = cases()["sums"], make_event(2)
    means, sizes = [], []
    for seed in range(120):
        draws = draw(
            case.lm, case.constraint, sampler="pimh", n=60, rng=np.random.default_rng(seed),
            max_tokens=case.max_tokens, particles=4, burn=5, twist=None,
        )  # fmt: skip
        means.append(np.mean([event(one.text) for one in draws]))
        sizes.append(draws.ess)
    p = float(np.mean(means))
    assert 0.1 < p < 0.9
    assert np.var(means) == pytest.approx(p * (1 - p) / np.mean(sizes), rel=0.4)
    assert np.mean(sizes) < 45


def test_a_start_is_forgotten_at_the_rate_of_the_largest_weight() -> None:
    assert bound_start_bias([-3.0] * 5, [10, 11]) == 0
    assert bound_start_bias([math.log(3.0), math.log(1.0)], [1, 3]) == pytest.approx((1 / 3 + 1 / 27) / 2)
    assert bound_start_bias([], []) == bound_start_bias([-math.inf], [1]) == 1


def test_the_interval_of_a_proportion_covers_it() -> None:
    """Its coverage is a finite sum: for every n and p at least the level. And the rule of three."""
    for n in (1, 2, 5, 17):
        intervals = [binomial_interval(k, n, 0.9) for k in range(n + 1)]
        for p in np.linspace(0.001, 0.999, 60):
            covered = math.fsum(
                math.comb(n, k) * p**k * (1 - p) ** (n - k)
                for k, (low, high) in enumerate(intervals)
                if low <= p <= high
            )
            assert covered >= 0.9 - 1e-9
        assert intervals[0][0] == 0 and intervals[-1][1] == 1
        assert intervals[0][1] == pytest.approx(1 - 0.05 ** (1 / n), abs=1e-7)
    assert binomial_interval(0, 200, 0.95)[1] == pytest.approx(3.7 / 200, rel=0.02)


def test_fewer_texts_than_particles_are_counted() -> None:
    case = cases()["a^n b^n"]
    draws = draw(
        case.lm, case.constraint, sampler="smc", n=60, rng=np.random.default_rng(0), max_tokens=case.max_tokens,
        resample="without_replacement",
    )  # fmt: skip
    assert len(draws) == len({one.tokens for one in draws}) < 60
    assert draws.stats["missing"] + len(draws) + draws.unfinished == 60


def test_an_event_that_never_occurred_in_exact_draws_has_an_upper_bound() -> None:
    case = cases()["pieces"]
    found = estimate(
        case.lm.as_ngram(), case.constraint, lambda text: len(text) > 99, sampler="markov", n=100,
        rng=np.random.default_rng(0), max_tokens=case.max_tokens,
    )  # fmt: skip
    assert found.trusted and found.low == 0 and found.high == pytest.approx(0.036, abs=0.001)


def test_estimates_from_draws_are_judged_by_their_bounds() -> None:
    """40 masked draws have not seen much of 'counting', and all of a small language; exact ones need not have."""
    many, few = cases()["counting"], cases()["single"]
    drawn = {
        name: draw(one.lm, one.constraint, n=40, rng=np.random.default_rng(0), max_tokens=one.max_tokens)
        for name, one in (("many", many), ("few", few))
    }
    doubted = estimate_from(drawn["many"])
    assert not doubted.trusted and doubted.gap > LARGEST_GAP
    assert estimate_from(drawn["few"]).trusted
    markov = draw(
        many.lm.as_ngram(), many.constraint, sampler="markov", n=40, rng=np.random.default_rng(0),
        max_tokens=many.max_tokens,
    )  # fmt: skip
    assert markov.exact and estimate_from(markov, lambda text: len(text) < 8).trusted


@pytest.mark.parametrize("quantity", ["log Z", "event", "mean"])
def test_uneven_weights_leave_the_interval_that_is_certain(quantity: str) -> None:
    """Weights of 'counting' are too uneven for an error. Where scouts find every text, none is needed: the interval is
    the truth itself, to the rounding of sums. Without scouts the gap is large, and nothing is believed."""
    case, event = cases()["counting"], make_event(1)
    law = {spell(tokens): p for tokens, p in case.exact().items()}
    f, truth = {
        "log Z": (None, math.log(case.z)),
        "event": (event, math.fsum(p for text, p in law.items() if event(text))),
        "mean": (length, math.fsum(p * len(text) for text, p in law.items())),
    }[quantity]
    for seed in range(5):
        given: dict[str, Any] = {"n": 60, "rng": np.random.default_rng(seed), "max_tokens": case.max_tokens}
        known = estimate(case.lm, case.constraint, f, scouts=5.0, **given)
        assert known.trusted and known.value == pytest.approx(truth, rel=1e-11)
        assert known.low <= truth + 1e-12 and known.high >= truth - 1e-12
        blind = estimate(case.lm, case.constraint, f, scouts=0.0, **given)
        assert not blind.trusted and blind.gap > LARGEST_GAP


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.5]), st.sampled_from(["masked", "awrs"]))
def test_a_stated_certain_interval_never_misses(seed: int, scouts: float, sampler: str) -> None:
    """Few draws under random models: whenever draws are too few for an error, and the estimate is trusted all the same,
    the truth is inside."""
    model = KINDS["plain"](seed)
    for f, truth in ((None, math.log(model.case.z)), (make_event(seed), model.probability(make_event(seed)))):
        found = estimate(
            model.case.lm, model.case.constraint, f, sampler=sampler, n=24, rng=np.random.default_rng(seed),
            max_tokens=model.case.max_tokens, scouts=scouts,
        )  # fmt: skip
        if found.trusted and found.ess < FEWEST_EFFECTIVE:
            assert found.low - 1e-9 <= truth <= found.high + 1e-9
            assert found.gap <= LARGEST_GAP


def test_critics_leave_nothing_known() -> None:
    case = cases()["pieces"]
    found = estimate(
        case.lm, case.constraint, sampler="smc", critic=lambda text: -len(text), rng=np.random.default_rng(0),
        max_tokens=case.max_tokens,
    )  # fmt: skip
    assert not found.trusted and "critic" in found.reason


@pytest.mark.parametrize("sampler", ["masked", "asap", "smc"])
def test_draws_that_all_failed_do_not_make_z_zero(sampler: str) -> None:
    """Texts must end in `c`, which no draw reaches: log Z is not known to be minus infinity."""
    vocabulary = Vocabulary.from_tokens([b"a", b"c", None], eos_ids=[2])
    constraint = compile_constraint(vocabulary, regex="(a|c)*c")
    rows = np.log([1 - 2e-9, 1e-9, 1e-9])

    class Reluctant:
        def next_logprobs(self, prefixes: list[list[int]]) -> np.ndarray:
            return np.tile(rows, (len(prefixes), 1))

    found = estimate(
        Reluctant(), constraint, sampler=sampler, n=10, max_tokens=40, scouts=0, rng=np.random.default_rng(1)
    )
    truth = math.log(1e-9) * 2 + math.log(39)  # c and the end token, after 0 to 38 other tokens
    assert not found.trusted
    assert found.low <= truth <= found.high
    assert found.value > -math.inf or found.gap == math.inf


@pytest.mark.parametrize(
    "sampler", ["masked", pytest.param("smc", marks=pytest.mark.slow), "without_replacement", "asap"]
)
def test_the_interval_of_a_probability_below_the_smallest_double_contains_it(sampler: str) -> None:
    """exp(-753) is 0 in double precision; what is known of Z must not be taken for a proof that it is 0."""
    letters, length = Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2]), 250
    constraint = compile_constraint(letters, regex="a" * length)
    truth = -3.0 * (length + 1)
    rest = math.log1p(-2 * math.exp(-3))

    class Unlikely:
        def next_logprobs(self, prefixes: list[list[int]]) -> Any:
            return np.tile([-3.0, rest, -3.0], (len(prefixes), 1))

    found = estimate(Unlikely(), constraint, sampler=sampler, n=32, rng=np.random.default_rng(1), max_tokens=length + 1)
    assert found.low - 1e-6 <= truth <= found.high + 1e-6
    assert found.value == pytest.approx(truth)
    assert "missed" not in found.reason
