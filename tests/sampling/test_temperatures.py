"""Temperatures of a target, extreme ones too: rows are exact, or the limits, and never NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from constrain.base.errors import LimitError
from constrain.sampling import SAMPLERS, SamplingTarget, draw
from constrain.sampling.sampling_target import temper_rows
from tests.markov_factory import cases

EXTREME = [5e-324, 1e-300, 1e-46, 1e-30, 1e30, 1e46, 1e300, 1.7e308]
DTYPES = [np.float16, np.float32, np.float64]


def row(*probs: float, dtype: Any = np.float64) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(np.array([probs]) / sum(probs)).astype(dtype)


@pytest.mark.parametrize("temperature", [0.2, 0.7, 1.0, 1.9, 30.0])
def test_rows_are_powers_normalised(temperature: float) -> None:
    probs = np.random.default_rng(3).dirichlet(np.ones(50), 4)
    wanted = [[p ** (1 / temperature) for p in one] for one in probs.tolist()]
    found = np.exp(temper_rows(np.log(probs), temperature))
    for one, other in zip(found.tolist(), wanted):
        assert one == pytest.approx([p / math.fsum(other) for p in other], rel=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("temperature", EXTREME)
def test_extreme_temperatures_give_the_limits(temperature: float, dtype: Any) -> None:
    """The likeliest tokens share everything, or all possible ones do; an impossible token stays impossible."""
    given = row(0.4, 0.1, 0.0, 0.4, 0.1, dtype=dtype)
    wanted = [0.5, 0.0, 0.0, 0.5, 0.0] if temperature < 1 else [0.25, 0.25, 0.0, 0.25, 0.25]
    found = temper_rows(given, temperature)
    assert found.dtype == dtype
    assert np.exp(found.astype(np.float64))[0].tolist() == pytest.approx(
        wanted, abs=2e-3 if dtype == np.float16 else 1e-6
    )
    assert (found[0, 2], np.isnan(found).any()) == (-np.inf, False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("temperature", [1e-300, 0.5, 1e300])
def test_rows_that_are_no_distributions_stay_as_they_are(temperature: float, dtype: Any) -> None:
    rows = np.array([[-np.inf] * 3, [np.nan, -1.0, -2.0], [-1.0, -2.0, -np.inf]], dtype)
    found = temper_rows(rows, temperature)
    assert np.array_equal(found[:2], rows[:2], equal_nan=True)
    assert np.isfinite(found[2].max())


@pytest.mark.parametrize("temperature", [1e-300, 1e300])
@pytest.mark.parametrize("sampler", [name for name in SAMPLERS if name != "markov"])
def test_every_sampler_draws_at_extreme_temperatures(sampler: str, temperature: float) -> None:
    """In the limit of 0 only the likeliest tokens are possible; that of infinity is the uniform model."""
    case = cases()["single" if temperature > 1 else "pieces"]
    try:
        draws = draw(
            case.lm, case.constraint, sampler=sampler, n=20, rng=np.random.default_rng(0), max_tokens=case.max_tokens,
            target=SamplingTarget(temperature=temperature),
        )  # fmt: skip
    except LimitError:  # nothing but unlikely tokens
        assert temperature < 1
        return
    if temperature > 1:
        assert {one.text for one in draws} == {"abcab"}
        assert draws.log_z == pytest.approx(-6 * math.log(4), abs=1.5)  # exact and awrs estimate it
        assert all(one.logprob == pytest.approx(-6 * math.log(4), abs=1e-12) for one in draws)
    else:
        assert not np.isnan(draws.log_weights).any() and (draws.log_weights <= 1e-9).all()
