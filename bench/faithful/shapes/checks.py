"""Does AWRS need more checks where the constraint removes more mass? Checks of a step against exp(KL) of that step.

The masked distribution has a divergence of KL = -log z nats from the model's, where z is the mass that the mask leaves.
To find one valid token takes 1 + sum over invalid r of p_r / (p_r + z) checks on average, which is at most 1 / z =
exp(KL).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from constrain.sampling.awrs import draw_token
from constrain.sampling.core import masked_sampling
from constrain.sampling.core.masked_sampling import allowed_tokens
from constrain.sampling.core.results import log_sum
from constrain.sampling.token_rejection import RECURSIVE

from .tasks import Task

__all__ = ["Steps", "correlate_ranks", "measure_steps_of_tasks"]

RACES = 8
"""Number of times that a step is sampled; its number of checks is the mean."""


@dataclass(frozen=True)
class Steps:
    """Arrays [steps]. kl: nats. checks: without those that only estimate the weight. task: the index of the task."""

    kl: NDArray[np.float64]
    checks: NDArray[np.float64]
    task: NDArray[np.int64]

    @property
    def by_step(self) -> float:
        """The rank correlation of KL and checks over all steps."""
        return correlate_ranks(self.kl, self.checks)

    @property
    def by_task(self) -> float:
        """The rank correlation of exp(KL) and checks, means of each task."""
        names = np.unique(self.task)
        means = [(np.exp(self.kl[self.task == i]).mean(), self.checks[self.task == i].mean()) for i in names]
        return correlate_ranks(*np.array(means).T)


def measure_steps_of_tasks(tasks: list[Task], draws: int, most: int, seed: int) -> Steps:
    """Measure steps along `draws` masked texts of each task, at most `most` steps of a task."""
    rng = np.random.default_rng([seed, 21])
    kl, checks, which = list[float](), list[float](), list[int]()
    for number, task in enumerate(tasks):
        found = masked_sampling.draw_masked(task.lm, task.mask, n=draws, rng=rng, max_tokens=task.max_tokens)
        prefixes = [draw.tokens[:length] for draw in found for length in range(len(draw.tokens) + 1)]
        prefixes = list(dict.fromkeys(prefix for prefix in prefixes if len(prefix) < task.max_tokens))
        for i in rng.permutation(len(prefixes))[:most]:
            matcher = task.mask.matcher()
            for token in prefixes[i]:
                matcher.advance(token)
            row = task.lm.next_logprobs([list(prefixes[i])])[0]
            mass = log_sum(row[allowed_tokens(matcher.mask())].astype(np.float64))
            if mass == -np.inf:
                continue
            spent = [
                draw_token(row, matcher.allows, rng, method=RECURSIVE, ends=task.mask.vocabulary.eos_ids).checks
                for _ in range(RACES)
            ]
            kl.append(max(-mass, 0.0))
            checks.append(float(np.mean(spent)) - 1)
            which.append(number)
        task.lm.rows.clear()
    return Steps(np.array(kl), np.array(checks), np.array(which))


def correlate_ranks(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return Spearman's rank correlation; equal values get their mean rank."""
    return float(np.corrcoef(compute_ranks(one), compute_ranks(other))[0, 1])


def compute_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank of each value, from 1; equal values get their mean rank."""
    _, place, counts = np.unique(np.round(values, 9), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[place], dtype=np.float64)
