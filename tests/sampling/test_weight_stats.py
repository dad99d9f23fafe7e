"""What weights say about draws, beside the definitions: in plain probabilities, errors by influence functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from constrain.sampling.core.mass_bounds import LARGEST_GAP
from constrain.sampling.core.results import effective_size
from constrain.sampling.core.weight_statistics import LARGEST, NONE, WEIGHT_STATISTICS, WITHIN, weight_stats

WEIGHTS = st.lists(st.sampled_from([0.0, 0.05, 0.3, 0.9, 1.0, 1.3, 4.0, 60.0]), min_size=1, max_size=40)


def to_target(weights: np.ndarray, shares: np.ndarray) -> float:
    """KL(q || pi), each weight being of some share of the draws."""
    return math.log(shares @ weights) - float(shares @ np.log(weights))


def from_target(weights: np.ndarray, shares: np.ndarray) -> float:
    """KL(pi || q)."""
    mean = float(shares @ weights)
    return float(shares @ (weights / mean * np.log(weights / mean)))


def error(divergence: object, weights: np.ndarray) -> float:
    """The standard error by the delta method: what each draw changes, by differences."""
    n, step = len(weights), 1e-5
    shares = np.full(n, 1 / n)
    change = [
        (divergence(weights, (1 - h) * shares + h * np.eye(n)[i]))  # type: ignore[operator]
        for i in range(n)
        for h in (step, -step)
    ]
    influence = (np.array(change[::2]) - np.array(change[1::2])) / (2 * step)
    return math.sqrt(float((influence**2).mean()) / n)


@settings(max_examples=60, deadline=None)
@given(raw=WEIGHTS.filter(any), scale=st.sampled_from([-700.0, 0.0, 300.0]))
def test_statistics_are_what_they_are_defined_to_be(raw: list[float], scale: float) -> None:
    with np.errstate(divide="ignore"):
        found = weight_stats(np.log(raw) + scale)
    alive = np.array([weight for weight in raw if weight])
    n, shares = len(alive), np.full(len(alive), 1 / len(alive))
    wanted = {
        "log_z": math.log(sum(raw) / len(raw)) + scale,
        "ess": alive.sum() ** 2 / (alive**2).sum(),
        "kl_to_target": to_target(alive, shares),
        "kl_to_error": error(to_target, alive),
        "kl_from_target": from_target(alive, shares),
        "kl_from_error": error(from_target, alive),
        "dead_ends": 1 - n / len(raw),
        "largest": alive.max() / alive.sum(),
    }
    assert {name: found[name] for name in wanted} == pytest.approx(wanted, rel=1e-5, abs=1e-8)
    assert set(found) == {*wanted, "gap", "steady", "trusted"}
    small = [found[f"kl_{way}_error"] <= WITHIN * max(found[f"kl_{way}_target"], NONE) for way in ("to", "from")]
    assert found["steady"] == (found["largest"] <= LARGEST and all(small))
    assert (found["gap"], found["trusted"]) == (math.inf, 0)
    with np.errstate(divide="ignore"):
        known = weight_stats(np.log(raw) + scale, gap=0.1)
    assert known == {**found, "gap": 0.1, "trusted": found["steady"]}


def test_nothing_says_nothing() -> None:
    assert weight_stats(np.empty(0)) == {}
    found = weight_stats(np.full(3, -np.inf))
    assert (found["log_z"], found["ess"], found["dead_ends"], found["trusted"]) == (-math.inf, 0, 1, 0)
    assert all(math.isnan(found[name]) for name in ("kl_to_target", "kl_from_error", "largest"))


def test_many_even_weights_are_trusted() -> None:
    assert weight_stats(np.zeros(20), gap=LARGEST_GAP)["trusted"] == 1
    assert weight_stats(np.zeros(20), gap=LARGEST_GAP + 0.01)["trusted"] == 0
    assert weight_stats(np.zeros(19), gap=0)["trusted"] == 0


def test_draws_of_a_group_count_as_one() -> None:
    """Runs of a chain of lengths 3, 1 and 2: (3 + 1 + 2)^2 / (9 + 1 + 4) of 6; the longest has half of the weight."""
    found = weight_stats(np.full(6, -5.0), groups=[4, 4, 4, 7, 9, 9])
    assert found["ess"] == pytest.approx(36 / 14)
    assert found["largest"] == pytest.approx(0.5)
    assert effective_size(np.log([1.0, 3.0, 2.0]), [0, 0, 1]) == pytest.approx(36 / 20)
    assert effective_size(np.full(2, -np.inf), [0, 1]) == 0


@pytest.mark.parametrize("weights", [[0.0, -1.0], [-math.inf]])
def test_the_names_are_those_of_the_statistics(weights: list[float]) -> None:
    assert set(weight_stats(np.array(weights))) == set(WEIGHT_STATISTICS)
