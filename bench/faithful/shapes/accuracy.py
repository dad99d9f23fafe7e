"""Measure how often answers of a method are right, how likely they are under the model, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time

import numpy as np

from .methods import METHODS, Method
from .tasks import Task

__all__ = ["Row", "check_order", "measure_methods"]

BOOTSTRAP = 2000
"""Number of resamples."""


@dataclass(frozen=True)
class Row:
    """The figures of one method on one kind of task.

    right: share of right answers; low, high: its 95 % interval over tasks and answers. surprise: by how many nats its
    answers in L are less likely under the model than exact ones (mean over tasks); error: the standard error of it.
    evaluations: prefixes that the model evaluated, for each answer. ms: CPU time of an answer.
    """

    kind: str
    method: str
    right: float
    low: float
    high: float
    surprise: float
    error: float
    evaluations: float
    ms: float


@dataclass
class Tally:
    """The answers of one method to one task. right: 1 or 0 for each. logprob: of those in L. evaluations, seconds: of
    one answer.
    """

    right: list[float]
    logprob: list[float]
    evaluations: float
    seconds: float


def tally_answers(task: Task, method: Method, n: int, seed: int) -> Tally:
    """Draw n answers of one method to one task."""
    rng = np.random.default_rng([seed, len(method.name)])
    task.lm.evaluations, begin = 0, process_time()
    answers = method.answers(task, n, rng)
    seconds = process_time() - begin
    right = [float(a.text is not None and task.is_right(a.text)) for a in answers]
    likely = [a.logprob for a in answers if a.text is not None and task.is_in(a.text)]
    return Tally(right, likely, task.lm.evaluations / n, seconds / n)


def measure_methods(tasks: list[Task], n: int, seed: int) -> list[Row]:
    """Measure all methods on tasks of one kind. Cached rows of the model are dropped after each task."""
    found: dict[str, list[Tally]] = {method.name: [] for method in METHODS}
    for task in tasks:
        for method in METHODS:
            if task.twist is None and "twist" in method.name:
                continue
            found[method.name].append(tally_answers(task, method, n, seed))
        task.lm.rows.clear()
    best = [np.mean(t.logprob) if t.logprob else np.nan for t in found["exact"]]
    out = []
    for method in METHODS:
        tallies = found[method.name]
        if not tallies:
            continue
        low, high = compute_interval([t.right for t in tallies], seed)
        gaps = [at - np.mean(t.logprob) for at, t in zip(best, tallies) if t.logprob and not np.isnan(at)]
        out.append(
            Row(
                tasks[0].kind, method.name, float(np.mean([np.mean(t.right) for t in tallies])), low, high,
                float(np.mean(gaps)) if gaps else float("nan"),
                float(np.std(gaps) / np.sqrt(len(gaps))) if gaps else float("nan"),
                float(np.mean([t.evaluations for t in tallies])), 1e3 * float(np.mean([t.seconds for t in tallies])),
            )
        )  # fmt: skip
    return out


def compute_interval(right: list[list[float]], seed: int) -> tuple[float, float]:
    """Compute a 95 % bootstrap interval over tasks, and over answers to a task."""
    rng = np.random.default_rng([seed, 12])
    table = np.array(right)
    tasks = rng.integers(0, len(table), (BOOTSTRAP, len(table)))
    shares = rng.binomial(table.shape[1], table.mean(axis=1)[tasks]) / table.shape[1]
    low, high = np.quantile(shares.mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


CHAIN = ("exact", "AWRS-SMC 32", "AWRS-SMC 5", "SMC 10, judged", "best of 10", "model alone")
ORDER = [
    *((better, worse) for i, better in enumerate(CHAIN) for worse in CHAIN[i + 1 :]),
    ("masked, 1 of 10 by weight", "masked"), ("AWRS-SMC 5", "masked"), ("exact", "masked"),
]  # fmt: skip
"""Pairs (better, worse) as Lipkin et al. report. They also have masking below the methods without masks; ours is above
them wherever a mask is exact, because it has no dead ends."""


def check_order(made: list[Row]) -> tuple[bool, str]:
    """Return whether the methods are in ORDER, and a text with the pairs whose intervals contradict it."""
    by_name = {row.method: row for row in made}
    wrong = [f"{better} < {worse}" for better, worse in ORDER if by_name[better].high < by_name[worse].low]
    return not wrong, ", ".join(wrong)
