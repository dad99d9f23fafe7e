"""How often a method's answers are right, how good the model thinks they are, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time

import numpy as np

from .methods import METHODS, Method
from .tasks import Task

__all__ = ["Row", "check_order", "measure_methods"]

BOOTSTRAP = 2000


@dataclass(frozen=True)
class Row:
    """Of one method on one kind of task. right: share of answers, with a 95 % interval over tasks and answers;
    surprise: how much less likely, in nats, its answers in L are under the model than exact ones are (mean over
    tasks, with its standard error); asked: prefixes that the model was asked about, per answer; ms: of CPU."""

    kind: str
    method: str
    right: float
    low: float
    high: float
    surprise: float
    error: float
    asked: float
    ms: float


@dataclass
class Tally:
    right: list[float]
    logprob: list[float]
    asked: float
    seconds: float


def tally_answers(task: Task, method: Method, n: int, seed: int) -> Tally:
    """n answers of one method to one task."""
    rng = np.random.default_rng([seed, len(method.name)])
    task.lm.evaluations, begin = 0, process_time()
    answers = method.answers(task, n, rng)
    seconds = process_time() - begin
    right = [float(a.text is not None and task.is_right(a.text)) for a in answers]
    likely = [a.logprob for a in answers if a.text is not None and task.is_in(a.text)]
    return Tally(right, likely, task.lm.evaluations / n, seconds / n)


def measure_methods(tasks: list[Task], n: int, seed: int) -> list[Row]:
    """Measure all methods on tasks of one kind. The model's answers to a task are dropped when it is done."""
    found: dict[str, list[Tally]] = {method.name: [] for method in METHODS}
    for task in tasks:
        for method in METHODS:
            if task.guess is None and "twist" in method.name:
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
                float(np.mean([t.asked for t in tallies])), 1e3 * float(np.mean([t.seconds for t in tallies])),
            )
        )  # fmt: skip
    return out


def compute_interval(right: list[list[float]], seed: int) -> tuple[float, float]:
    """95 %, by drawing tasks anew, and answers within them."""
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
"""Better before worse, as Lipkin et al. report. They also have masking below the methods that only judge; ours is above
them wherever a mask is exact, because it has no dead ends."""


def check_order(made: list[Row]) -> tuple[bool, str]:
    """Return whether no method's interval is below that of one which should be no better; and which are."""
    by_name = {row.method: row for row in made}
    wrong = [f"{better} < {worse}" for better, worse in ORDER if by_name[better].high < by_name[worse].low]
    return not wrong, ", ".join(wrong)
