"""AWRS on tensors: E[w 1{token = a}] = p(a) [a valid], for many rows at once, as for `awrs.draw_token`."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

pytest.importorskip("torch")
import torch

from constrain.integrations.awrs_tensors import step_batch
from constrain.sampling import awrs
from constrain.sampling.token_rejection import DesRaj

P = np.array([0.4, 0.25, 0.2, 0.1, 0.04, 0.01])
VALID = {1, 3, 5}
GAMMA = np.array([p if a in VALID else 0.0 for a, p in enumerate(P)])
FAR = 4.5
N = 6000


def check(row: int, token: int) -> bool:
    return token in VALID


def rows(n: int = N, p: np.ndarray = P) -> torch.Tensor:
    return torch.tensor(np.log(p) + 3.0).expand(n, -1)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def sums(steps: list[awrs.WeightedToken]) -> tuple[np.ndarray, np.ndarray]:
    """The mean of w 1{token = a} for each a, and its standard error."""
    made = np.zeros((len(steps), len(P)))
    for i, one in enumerate(steps):
        if one.token is not None:
            made[i, one.token] = math.exp(one.log_weight)
    return made.mean(axis=0), made.std(axis=0) / math.sqrt(len(steps))


@pytest.mark.parametrize("few", [1, 2, 32])
@pytest.mark.parametrize("budget", [None, 1, 2, 3, 5])
@pytest.mark.parametrize("terms", [1, 4])
def test_every_row_is_weighted_properly(few: int, budget: int | None, terms: int) -> None:
    steps = step_batch(rows(), check, generator=seeded(), round_size=few, budget=budget, terms=terms)
    mean, error = sums(steps)
    assert (np.abs(mean - GAMMA) <= FAR * error + 1e-12).all()
    assert max(one.checks for one in steps) <= (budget or len(P))
    assert all(one.token in VALID for one in steps if one.token is not None)


class OneOrder:
    """A race in one given order: tokens `few` at a time."""

    def __init__(self, order: tuple[int, ...], few: int) -> None:
        self.order, self.few = list(order), few

    def arrivals(self, rows: list[int]) -> tuple[list[list[int]], list[list[float]], list[float]]:
        now, left = self.order[: self.few], math.fsum(P[self.order])
        self.order = self.order[self.few :]
        spare = self.few - len(now)
        return [now + [-1] * spare], [[*P[now].tolist(), *[0.0] * spare]], [left]


@pytest.mark.parametrize("few", [1, 2, 4, 32])
@pytest.mark.parametrize("budget", [None, 1, 2, 3, 5])
@pytest.mark.parametrize("terms", [1, 2, 4])
def test_weights_are_proper_over_all_orders(few: int, budget: int | None, terms: int) -> None:
    """Exactly, each order by its probability (Plackett and Luce): however many tokens cross to the host at a time."""
    found = np.zeros(len(P))
    for order in itertools.permutations(range(len(P))):
        left = np.cumsum(P[list(order)][::-1])[::-1]
        (step,) = step_batch(rows(1), check, terms=terms, budget=budget, race=OneOrder(order, few))
        if step.token is not None:
            found[step.token] += math.prod(P[list(order)] / left) * math.exp(step.log_weight)
    assert found == pytest.approx(GAMMA, rel=1e-9, abs=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_rows_may_stay_on_a_gpu() -> None:
    generator = torch.Generator(device="cuda").manual_seed(0)
    mean, error = sums(step_batch(rows().cuda(), check, generator=generator, round_size=2))
    assert (np.abs(mean - GAMMA) <= FAR * error).all()


def test_step_batch_has_the_distribution_of_draw_token() -> None:
    """Tokens, weights and checks: their means agree within errors, and so do the weights' squares."""
    rng = np.random.default_rng(1)
    method = DesRaj(terms=4, slack=0.0)
    there = step_batch(rows(), check, generator=seeded(2))
    here = [awrs.draw_token(np.log(P), lambda token: token in VALID, rng, method=method) for _ in range(N)]
    for measure in (
        lambda one: one.checks, lambda one: math.exp(one.log_weight), lambda one: math.exp(2 * one.log_weight),
        lambda one: one.token == 1, lambda one: one.token == 5,
    ):  # fmt: skip
        a, b = (np.array([float(measure(one)) for one in steps]) for steps in (there, here))
        assert abs(a.mean() - b.mean()) <= FAR * math.hypot(a.std(), b.std()) / math.sqrt(N)


def test_no_token_is_checked_twice_and_all_are_if_none_is_valid() -> None:
    asked: list[tuple[int, int]] = []

    def refuses(row: int, token: int) -> bool:
        asked.append((row, token))
        return False

    steps = step_batch(rows(5), refuses, generator=seeded(), round_size=2)
    assert steps == [awrs.WeightedToken(None, -math.inf, 6)] * 5
    assert sorted(asked) == [(row, token) for row in range(5) for token in range(6)]


def test_rows_differ_and_masks_come_first() -> None:
    """A sound mask: only what it leaves is checked, and its mass counts."""
    allowed = torch.tensor([[True, True, False, False, False, False], [False] * 6, [True] * 6]).repeat(2000, 1)
    steps = step_batch(rows(len(allowed)), check, generator=seeded(), allowed=allowed)
    mean, error = sums(steps[::3])
    assert (np.abs(mean - np.where(np.arange(6) == 1, P, 0)) <= FAR * error + 1e-12).all()
    assert all(one == awrs.WeightedToken(None, -math.inf, 0) for one in steps[1::3])
    mean, error = sums(steps[2::3])
    assert (np.abs(mean - GAMMA) <= FAR * error).all()


def test_a_valid_mass_of_next_to_nothing_is_found() -> None:
    p = np.array([1 - 3e-13, 1e-13, 1e-13, 1e-13, 0.0, 0.0])
    with np.errstate(divide="ignore"):
        logits = torch.tensor(np.log(p)).expand(50, -1)
    for one in step_batch(logits, lambda row, token: token == 2, generator=seeded(), round_size=2):
        assert one.token == 2
        assert math.exp(one.log_weight) <= 3.1e-13
    weights = [
        math.exp(one.log_weight) for one in step_batch(logits, lambda row, token: token == 2, generator=seeded())
    ]
    assert np.mean(weights) == pytest.approx(1e-13, rel=0.5)


def test_a_vocabulary_of_real_size() -> None:
    logits = (torch.randn(1, 128_256, generator=seeded(3)) * 3).expand(24, -1)
    steps = step_batch(logits, lambda row, token: token % 7 == 0, generator=seeded(4))
    assert all(one.token is not None and one.token % 7 == 0 for one in steps)
    weights = np.exp([one.log_weight for one in steps])
    z = float(torch.log_softmax(logits[0].double(), -1)[::7].exp().sum())
    assert abs(weights.mean() - z) <= FAR * weights.std() / math.sqrt(len(weights))
    assert np.median([one.checks for one in steps]) < 30


def test_the_same_seed_gives_the_same_steps() -> None:
    assert step_batch(rows(9), check, generator=seeded(5)) == step_batch(rows(9), check, generator=seeded(5))


@pytest.mark.parametrize(
    ("logits", "given", "message"),
    [
        (torch.zeros(3), {}, "rows, tokens"),
        (torch.zeros(2, 3, dtype=torch.int64), {}, "floats"),
        (torch.tensor([[0.0, math.nan]]), {}, "NaN"),
        (torch.full((1, 3), -math.inf), {}, "NaN"),
        (torch.zeros(1, 3), {"terms": 0}, "terms"),
        (torch.zeros(1, 3), {"budget": 0}, "budget"),
    ],
)
def test_bad_input(logits: torch.Tensor, given: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        step_batch(logits, check, **given)
