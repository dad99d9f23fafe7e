"""`sampling.estimation`: against enumerated answers, by every sampler; intervals hold the truth as often as they say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from constrain.sampling import SAMPLERS, Estimate, estimate, estimate_from
from constrain.sampling.estimation import FEWEST, student
from constrain.sampling.results import Draw, Draws
from tests.markov_made import cases

CASE = cases()["counting"]
NGRAM = CASE.lm.as_ngram()
TOKENS = CASE.constraint.vocabulary.tokens
LAW = {b"".join(TOKENS[t] or b"" for t in tokens).decode(): p for tokens, p in CASE.exact().items()}
FAR = 4.5
"""Standard errors: beyond it once in 150,000 times, for each estimate of the right kind."""


def length(text: str) -> float:
    return float(len(text))


def short(text: str) -> bool:
    return len(text) <= 6


TRUTH = {length: sum(p * len(t) for t, p in LAW.items()), short: sum(p for t, p in LAW.items() if short(t))}
MORE = {"smc": {"particles": 8, "n": 200}, "pimh": {"particles": 16, "n": 96, "batches": 8}}


def of(f: object, sampler: str, seed: int = 0, n: int = 480, **more: object) -> Estimate:
    given: dict[str, Any] = {"n": n, **MORE.get(sampler, {}), **more}
    return estimate(
        NGRAM, CASE.constraint, f, sampler=sampler, rng=np.random.default_rng(seed),  # type: ignore[arg-type]
        max_tokens=CASE.max_tokens, **given,
    )  # fmt: skip


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_means_events_and_log_z_by_every_sampler(sampler: str) -> None:
    for f in (length, short):
        found = of(f, sampler)
        # without_replacement sees the whole language: no error is left
        assert abs(found.value - TRUTH[f]) <= FAR * found.error + 1e-9
        assert found.low <= found.value <= found.high
        assert 0 < found.ess <= found.n + 1e-6
    found = of(None, sampler)
    assert abs(found.value - math.log(CASE.z)) <= FAR * found.error + 1e-9
    assert found.error == 0 or sampler != "markov"


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of 400 intervals of 90 %, binomially 360 give or take 6: fewer than 330 but once in a million times."""
    rng = np.random.default_rng(0)
    q, weights = rng.dirichlet(np.ones(8)), np.exp(rng.normal(0, 0.8, 8))
    z = float(q @ weights)
    truths = {
        length: float((q * weights) @ np.arange(8)) / z,
        short: float((q * weights)[:7].sum()) / z,
        None: math.log(z),
    }
    parts = [weighted(*[("a" * k, weights[k]) for k in rng.choice(8, size=60, p=q)]) for _ in range(400)]
    for f, truth in truths.items():
        made = [estimate_from(part, f, level=0.9) for part in parts]
        believed = [one for one in made if one.trusted]
        assert len(believed) > 300, f
        assert sum(one.low <= truth <= one.high for one in made) > 330, f
        assert sum(one.high < truth for one in made) < 60 > sum(one.low > truth for one in made), f


def test_masked_draws_that_are_far_off_are_not_believed() -> None:
    """Weights here are so uneven that of intervals of 90 % from 60 draws only 75 % hold the mean; all are flagged."""
    found = [of(length, "masked", seed, n=60) for seed in range(20)]
    assert not any(one.trusted for one in found)


def test_auto_is_chosen_once() -> None:
    assert of(None, "auto").error == 0


def weighted(*pairs: tuple[str, float]) -> Draws:
    return Draws.of(Draw((), text, 0.0, math.log(weight) if weight else -math.inf) for text, weight in pairs)


def test_by_hand() -> None:
    found = estimate_from(weighted(("a", 1.0), ("bbb", 3.0)), length)
    assert found.value == pytest.approx((1 + 9) / 4)
    # residuals w (f - value) are -1.5 and 1.5, the mean weight is 2
    assert found.error == pytest.approx(math.sqrt((1.5**2 + 1.5**2) / 2) / 2)
    assert found.ess == pytest.approx(16 / 10)
    assert found.interval == (found.low, found.high)


@pytest.mark.parametrize(
    ("draws", "f", "reason"),
    [
        (weighted(*[("a", 0.0)] * 30), length, "no draw weighs anything"),
        (weighted(*[("a", 1.0)] * (FEWEST - 1)), length, "too few"),
        (weighted(*[("a", 1.0), ("bb", 1.0)] * 20, ("ccc", 50.0)), length, "of all weight"),
        (weighted(*[("a", 1.0)] * 30), short, "the same for all"),
        (weighted(*[("a", 1.0), ("bb", 1.0)] * 20), length, ""),
    ],
)
def test_it_says_when_an_error_is_not_to_be_believed(draws: Draws, f: object, reason: str) -> None:
    found = estimate_from(draws, f)  # type: ignore[arg-type]
    assert found.trusted == (not reason)
    assert reason in found.reason


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        estimate_from(weighted(("a", 1.0)), lambda text: math.nan)
    with pytest.raises(ValueError, match="batches"):
        of(length, "exact", n=3)
    with pytest.raises(ValueError, match="level"):
        estimate_from(weighted(("a", 1.0)), length, level=1.0)


def test_students_quantiles() -> None:
    """Against printed tables."""
    for freedom, expected in ((3, 3.1824), (7, 2.3646), (15, 2.1314), (31, 2.0395), (10**6, 1.95997)):
        assert student(0.975, freedom) == pytest.approx(expected, rel=2e-3)
