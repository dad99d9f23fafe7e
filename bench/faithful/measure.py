"""Measure samplers: tests of exactness, divergence by number of draws, particles needed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from constrain.sampling import trie_rejection
from constrain.sampling.core import masked_sampling
from constrain.sampling.success_trie import SuccessTrie
from tests.markov_factory import Tokens, g_test, total_variation

from .fixtures import Fixture
from .samplers import Sampler, Stream, build_masked_smc, build_twisted_smc

__all__ = [
    "STEPS",
    "Curve",
    "Floor",
    "measure_curve",
    "measure_first_draws",
    "compute_floor",
    "compute_g_test",
    "estimate_masking",
    "find_particles_needed",
]

STEPS = (1, 3, 10, 30, 100, 300)
"""Numbers of draws at which a curve is sampled."""


@dataclass(frozen=True)
class Curve:
    """The convergence of one sampler.

    evaluations, divergence: [repeat][step], model evaluations and KL(draws so far || p given L) in nats. short: whether
    a run ended before the last step.
    """

    sampler: str
    evaluations: list[list[int]]
    divergence: list[list[float]]
    short: bool


@dataclass(frozen=True)
class Floor:
    """What exact draws come to.

    mean, most: mean and 95th percentile of KL at each step, in nats. variation, deviation: mean and standard deviation
    of the total variation at `n` draws.
    """

    mean: list[float]
    most: list[float]
    variation: float
    deviation: float

    @property
    def bar(self) -> float:
        """The total variation up to which draws count as exact: mean and four standard deviations."""
        return self.variation + 4 * self.deviation


def compute_divergence(counts: Counter[Tokens], probabilities: dict[Tokens, float]) -> float:
    """Return KL(frequencies || probabilities) in nats; all draws must be in L."""
    n = sum(counts.values())
    return math.fsum(c / n * math.log(c / n / probabilities[x]) for x, c in counts.items())


def measure_curve(fixture: Fixture, sampler: Sampler, repeats: int, seed: int, steps: tuple[int, ...]) -> Curve:
    """Measure the divergence of new streams at each step. If a stream ends early its last steps are missing."""
    evaluations, divergences, short = [], [], False
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        fixture.lm.evaluations = 0
        stream, counts = sampler.open(fixture, rng), Counter[Tokens]()
        counts_of_evaluations, far = list[int](), list[float]()
        for step in (step for step in steps if step <= sampler.most):
            counts.update(stream(step - sum(counts.values())))
            if sum(counts.values()) < step:
                short = True
                break
            counts_of_evaluations.append(fixture.lm.evaluations)
            far.append(compute_divergence(counts, fixture.exact))
        evaluations.append(counts_of_evaluations)
        divergences.append(far)
    return Curve(sampler.name, evaluations, divergences, short)


def redraw_exactly(fixture: Fixture, n: int, rng: np.random.Generator) -> list[Tokens]:
    """Draw from the exact distribution itself."""
    texts, probabilities = list(fixture.exact), np.array(list(fixture.exact.values()))
    return [texts[i] for i in rng.choice(len(texts), n, p=probabilities / probabilities.sum())]


def compute_floor(fixture: Fixture, n: int, steps: tuple[int, ...], seed: int) -> Floor:
    """Compute the floor from 20 repeats of exact draws."""
    rng = np.random.default_rng([seed, 99])
    rows, variations = [], []
    for _ in range(20):
        drawn = redraw_exactly(fixture, max(n, steps[-1]), rng)
        rows.append([compute_divergence(Counter(drawn[:step]), fixture.exact) for step in steps])
        variations.append(total_variation(Counter(drawn[:n]), fixture.exact))
    table = np.array(rows)
    means, tops = table.mean(axis=0).tolist(), np.quantile(table, 0.95, axis=0).tolist()
    return Floor(means, tops, float(np.mean(variations)), float(np.std(variations)))


def compute_g_test(fixture: Fixture, stream: Stream, n: int) -> tuple[float, int]:
    """Return the p-value of a G-test against the exact distribution, and the number of draws."""
    drawn = stream(n)
    return g_test(Counter(drawn), fixture.exact) if drawn else math.nan, len(drawn)


def measure_first_draws(fixture: Fixture, n: int, seed: int) -> tuple[float, float]:
    """Return the p-value of n first draws of `exact`, each with a new trie, and the median over 20 tries of the
    attempts per draw over its first 100 draws.
    """
    rng = np.random.default_rng([seed, 7])
    lm, constraint, most = fixture.lm, fixture.constraint, fixture.max_tokens
    drawn = [trie_rejection.draw_exact(lm, constraint, n=1, rng=rng, max_tokens=most)[0].tokens for _ in range(n)]
    attempts = list[float]()
    for _ in range(20):
        trie = SuccessTrie(fixture.max_tokens)
        found = trie_rejection.draw_exact(lm, constraint, n=100, rng=rng, max_tokens=most, trie=trie)
        attempts.append(found.stats["attempts"] / 101)  # one more draw than requested is made, for the weight
    return g_test(Counter(drawn), fixture.exact), float(np.median(attempts))


def find_particles_needed(
    fixture: Fixture, floor: Floor, n: int, seed: int, counts: Iterable[int] = (1, 4, 16, 64)
) -> tuple[float, float]:
    """Return the least number of particles at which n draws count as exact, with masks alone and with the twist; inf if
    no number in `counts` is enough.
    """
    out = []
    for kind in (build_masked_smc, build_twisted_smc):
        least = math.inf
        for count in counts:
            stream = kind(count)(fixture, np.random.default_rng([seed, count]))
            drawn = stream(n)
            if len(drawn) == n and total_variation(Counter(drawn), fixture.exact) <= floor.bar:
                least = count
                break
        out.append(least)
    return out[0], out[1]


def estimate_masking(fixture: Fixture, n: int, seed: int) -> tuple[float, float, bool]:
    """Return KL(masking || p given L) as `masked` estimates it from n weights, its true value, and whether `masked`
    reports steady weights.
    """
    draws = masked_sampling.draw_masked(
        fixture.lm, fixture.constraint, n=n, rng=np.random.default_rng([seed, 3]), max_tokens=fixture.max_tokens
    )
    return draws.stats["kl_to_target"], fixture.distortion, bool(draws.stats["steady"])
