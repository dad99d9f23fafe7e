"""Races by the kernel: the order, the masses and what is left, number for number; and AWRS on top of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from constrain.integrations.awrs_tensors import step_batch
from constrain.integrations.cuda.device_race import KernelRace, pack_masks
from constrain.kernels.cuda.cuda_device import SIMULATED
from constrain.sampling.awrs import WeightedToken
from tests.gpu_oracle import race

P = np.array([0.4, 0.25, 0.2, 0.1, 0.04, 0.01])
FAR = 4.5


def seeded(device: str, seed: int = 0) -> torch.Generator:
    return torch.Generator(device=device).manual_seed(seed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_tokens_arrive_in_the_order_of_their_clocks(dtype: torch.dtype, device: str) -> None:
    """Round after round, without a token twice, until none is left; with a mask; masses are those of the softmax."""
    rng = np.random.default_rng(1)
    logits = torch.from_numpy(rng.normal(size=(2, 40)).astype(np.float32) * 4).to(dtype)
    logits[0, 3] = -torch.inf
    allowed = torch.from_numpy(rng.random((2, 40)) < 0.5)
    found = KernelRace(logits.to(device), seeded(device), allowed.to(device), 9)
    x = logits.float().numpy()
    law = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    law /= law.sum(axis=1, keepdims=True)
    orders = [race(x[row], allowed[row].numpy(), int(found.seeds[row])) for row in range(2)]
    for start in range(0, 27, 9):
        tokens, masses, left = found.arrivals([1, 0])
        for row, listed, weighed, rest in zip((1, 0), tokens, masses, left):
            want = orders[row][start : start + 9]
            if SIMULATED:  # on a card the log is off by an ulp or two, and two clocks may be nearer than that
                assert listed == want + [-1] * (9 - len(want))
            assert weighed == pytest.approx([*law[row, listed[: len(want)]], *[0.0] * (9 - len(want))], rel=1e-6)
            assert rest == pytest.approx(law[row, orders[row][start:]].sum(), rel=1e-6, abs=1e-300)


def test_the_reference_draws_from_the_distribution() -> None:
    """The first token, and the second one after the likeliest, by the Plackett-Luce model: chi-squares below
    1 - 1e-6.
    """
    x, everything = np.log(P).astype(np.float32), np.ones(6, bool)
    orders = [race(x, everything, seed) for seed in range(5000)]
    first = np.bincount([order[0] for order in orders], minlength=6)
    assert ((first - 5000 * P) ** 2 / (5000 * P)).sum() < 36.5
    behind = np.bincount([order[1] for order in orders if order[0] == 0], minlength=6)[1:]
    want = behind.sum() * P[1:] / P[1:].sum()
    assert ((behind - want) ** 2 / want).sum() < 34


class Played:
    """Races as the reference runs them."""

    def __init__(self, orders: list[list[int]], law: np.ndarray, few: int) -> None:
        self.orders, self.law, self.few, self.at = orders, law, few, [0] * len(orders)

    def arrivals(self, rows: list[int]) -> tuple[list[list[int]], list[list[float]], list[float]]:
        tokens, masses, left = [], [], []
        for row in rows:
            order = self.orders[row][self.at[row] :]
            tokens.append(order[: self.few] + [-1] * max(0, self.few - len(order)))
            masses.append([self.law[token] for token in order[: self.few]] + [0.0] * max(0, self.few - len(order)))
            left.append(math.fsum(self.law[order]))
            self.at[row] += self.few
        return tokens, masses, left


def valid(row: int, token: int) -> bool:
    return token in (1, 3, 5)


def test_awrs_by_the_kernel_is_awrs_by_the_reference(device: str) -> None:
    """Tokens, checks and weights: whose distribution is tested over all orders in test_awrs_tensors.py."""
    count = 4 if SIMULATED else 100
    logits = torch.tensor(np.log(P) + 3.0, dtype=torch.float32, device=device).expand(count, -1)
    there = KernelRace(logits, seeded(device), None, 2)
    x, everything = logits[0].cpu().numpy(), np.ones(6, bool)
    played = Played([race(x, everything, seed) for seed in there.seeds.tolist()], P, 2)
    steps, want = (step_batch(logits, valid, terms=2, race=one) for one in (there, played))
    assert [(one.token, one.checks) for one in steps] == [(one.token, one.checks) for one in want]
    assert [one.log_weight for one in steps] == pytest.approx([one.log_weight for one in want], rel=1e-6)


@pytest.mark.skipif(SIMULATED, reason="6,000 rows take a card")
def test_awrs_on_a_card_is_weighted_properly(device: str) -> None:
    """E[w 1{token = a}] = p(a) [a valid]."""
    logits = torch.tensor(np.log(P) + 3.0, dtype=torch.float32, device=device).expand(6000, -1)
    steps = step_batch(logits, valid, race=KernelRace(logits, seeded(device), None, 2))
    weights = np.zeros((6000, 6))
    for row, one in enumerate(steps):
        weights[row, one.token] = math.exp(one.log_weight)
    error = weights.std(axis=0) / math.sqrt(6000)
    assert (np.abs(weights.mean(axis=0) - np.where(np.arange(6) % 2, P, 0)) <= FAR * error).all()


def test_tiny_valid_mass_is_found(device: str) -> None:
    """By sums of the remaining mass; no token is checked twice."""
    rare = torch.tensor(np.log([1 - 3e-13, 1e-13, 1e-13, 1e-13]), dtype=torch.float32, device=device).expand(2, -1)
    for one in step_batch(rare, lambda row, token: token == 2, race=KernelRace(rare, seeded(device), None, 4)):
        assert one.token == 2 and math.exp(one.log_weight) <= 3.1e-13
    asked: list[tuple[int, int]] = []
    steps = step_batch(
        rare, lambda row, token: asked.append((row, token)) is not None, race=KernelRace(rare, seeded(device), None, 3)
    )
    assert steps == [WeightedToken(None, -math.inf, 4)] * 2 and len(set(asked)) == len(asked) == 8


def test_bits_are_packed_and_bad_rows_refused(device: str) -> None:
    allowed = torch.from_numpy(np.random.default_rng(0).random((3, 70)) < 0.5)
    flags = np.unpackbits(pack_masks(allowed).numpy().view(np.uint8), axis=1, bitorder="little")[:, :70]
    assert (flags.astype(bool) == allowed.numpy()).all()
    with pytest.raises(ValueError, match="NaN"):
        KernelRace(torch.tensor([[0.0, math.nan]], device=device), seeded(device), None, 2).arrivals([0])
    with pytest.raises(ValueError, match="round_size"):
        KernelRace(torch.zeros((1, 4), device=device), seeded(device), None, 257)
