"""Rules of single samplers and their parts: counts, convergence of a chain, the largest tokens."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.authoring.samples import distinct_instances
from constrain.base.errors import LimitError
from constrain.sampling import SAMPLERS, awrs, draw, pimh
from constrain.sampling.core.masked_sampling import pick_token
from constrain.sampling.core.token_masses import as_kernel_row
from constrain.sampling.exponential_race import ExponentialRace
from constrain.sampling.research.hidden_markov import Hmm
from constrain.sampling.success_walks import DistributionSource
from constrain.sampling.token_rejection import (
    CheckBudget,
    Chunks,
    DesRaj,
    ExploreFlip,
    Geometric,
    HorvitzThompson,
    Method,
)
from tests.markov_factory import LETTERS, cases, regular

CASE = cases()["counting"]


class Counted:
    """A model that counts its calls."""

    def __init__(self, lm: Any) -> None:
        self.lm, self.calls = lm, 0

    def next_logprobs(self, prefixes: list[list[int]]) -> Any:
        self.calls += 1
        return self.lm.next_logprobs(prefixes)


@pytest.mark.parametrize("sampler", [name for name in SAMPLERS if name != "markov"])
def test_calls_of_the_model_are_counted(sampler: str) -> None:
    lm = Counted(CASE.lm)
    made = draw(
        lm, CASE.constraint, sampler=sampler, n=5, rng=np.random.default_rng(0), max_tokens=CASE.max_tokens
    )  # fmt: skip
    assert made.stats["model_calls"] == lm.calls > 0


@pytest.mark.parametrize("planned", [1, 2, 3, 5])
@pytest.mark.parametrize("chance", [0.4, 0.9])
def test_a_chain_goes_on_until_its_estimates_are_unbiased(planned: int, chance: float) -> None:
    """Populations that live with some chance and then estimate 1: over all runs the mean of those used is the chance.

    Those planned, and then until a second one lives; runs beyond 60 more are left out.
    """
    mean, runs = 0.0, [([], 1.0)]  # type: list[float], list[tuple[list[float], float]]
    while runs:
        log_zs, probability = runs.pop()
        lived = sum(value == 0 for value in log_zs)
        used = pimh.count_unbiased_estimates(log_zs, planned)
        assert (used is not None) == (len(log_zs) >= planned and lived >= 2)
        if used is not None:
            mean += probability * sum(value == 0 for value in log_zs[:used]) / used
        elif len(log_zs) < planned + 60:
            runs += [([*log_zs, 0.0], probability * chance), ([*log_zs, -math.inf], probability * (1 - chance))]
    assert mean == pytest.approx(chance, abs=1e-6)


@pytest.mark.parametrize(("burn", "thin", "n"), [(0, 1, 3), (2, 3, 4), (5, 2, 3)])
def test_a_chain_is_thinned(burn: int, thin: int, n: int) -> None:
    made = pimh.draw_pimh(
        CASE.lm, CASE.constraint, n=n, rng=np.random.default_rng(0), max_tokens=CASE.max_tokens, burn=burn, thin=thin
    )
    assert made.stats["populations"] == burn + 1 + (n - 1) * thin


def test_the_largest_come_by_size_from_a_flat_row() -> None:
    """No token is likely enough for a separate clock: the largest is among those that are not in the queue."""
    masses = 1 + np.random.default_rng(0).random(5000) / 10
    masses /= masses.sum()
    race = ExponentialRace(np.log(masses), np.random.default_rng(1))
    for count, token in enumerate(np.argsort(-masses)[:40]):
        assert race.take_largest() == token
        race.record(False)
        assert race.left == pytest.approx(np.sort(masses)[: 4999 - count].sum())
    rest, left = race.masses()
    assert len(rest) == len(set(rest.tolist())) == 4960
    assert left == pytest.approx(masses[rest])


def test_pick_token_distribution_with_nearly_all_tokens_allowed() -> None:
    """Of 128 tokens, all but a likely one; 4,000 draws, within 5 standard errors."""
    law = np.full(128, 0.4 / 126)
    law[[5, 9]] = 0.35, 0.25
    allowed, rng = np.delete(np.arange(128), 5), np.random.default_rng(0)
    picks = [pick_token(np.log(law), allowed, rng) for _ in range(4000)]
    share = 0.25 / 0.65
    assert abs(sum(one.token == 9 for one in picks) / 4000 - share) < 5 * math.sqrt(share * (1 - share) / 4000)
    assert not any(one.token == 5 for one in picks)
    for one in picks[:50]:
        assert one.logmass == pytest.approx(math.log(0.65))
        assert one.logprob == pytest.approx(math.log(law[one.token]))
        assert one.logproposal == pytest.approx(math.log(law[one.token] / 0.65))
    spoilt = np.log(law)
    spoilt[5] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        pick_token(spoilt, allowed, rng)


def test_rows_are_read_as_they_are_where_that_is_possible() -> None:
    for kind in (np.float32, np.float64):
        row = np.arange(6, dtype=kind)
        assert as_kernel_row(row) is row
        assert as_kernel_row(row[::2]).tolist() == [0, 2, 4]
        assert as_kernel_row(row[::2]).flags.carray
    half = as_kernel_row(np.arange(3, dtype=np.float16))
    assert half.dtype == np.float32
    assert half.tolist() == [0, 1, 2]


def test_one_check_is_budget_enough() -> None:
    case = regular("small", LETTERS, "(ab?)*c|b", 6, seed=2)
    made = awrs.draw_awrs(case.lm, case.constraint, n=20, rng=np.random.default_rng(0), max_tokens=6, budget=1)
    assert made.stats["checks"] <= made.stats["steps"]


def test_an_impossible_token_gives_a_uniform_posterior() -> None:
    """A token that no state emits says nothing: all states are as likely."""
    hmm = Hmm(np.array([0.7, 0.3]), np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]))
    assert hmm.after(np.array([0.7, 0.3]), 2).tolist() == [0.5, 0.5]
    belief = np.array([0.7, 0.15]) / 0.85
    assert hmm.after(np.array([0.7, 0.3]), 0) == pytest.approx(belief @ np.array([[0.9, 0.1], [0.2, 0.8]]))


@pytest.mark.parametrize("n", [1, 2, 4, 9])
def test_no_more_are_listed_than_requested(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the walk always comes to the same text, the others are listed."""
    monkeypatch.setattr(distinct_instances, "random_text", lambda *given, **more: b"3")
    constraint = constrain.compile(constrain.Vocabulary.bytes(), schema={"enum": [1, 2, 3, 4]})
    made = list(distinct_instances.distinct_texts(constraint, n, rng=np.random.default_rng(0)))
    assert made[0] == b"3"
    assert len(made) == len(set(made)) == min(n, 4)


@pytest.mark.parametrize("method", [DesRaj(), ExploreFlip(), Chunks(), Geometric(), HorvitzThompson()])
def test_without_checks_there_is_nothing(method: Method) -> None:
    asked: list[int] = []
    race = ExponentialRace(np.log(np.full(4, 0.25)), np.random.default_rng(0))
    choice = method(race, CheckBudget(lambda token: bool(asked.append(token)), None, 0))
    assert choice.token is None
    assert not asked


def test_distributions_have_at_least_one_token() -> None:
    assert DistributionSource(CASE.lm, CASE.constraint, None, 1).trie.max_tokens == 1
    for wrong in (0, -1):
        with pytest.raises(LimitError, match="max_tokens"):
            DistributionSource(CASE.lm, CASE.constraint, None, wrong)
