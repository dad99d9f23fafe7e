"""Do trusted intervals cover the truth as often as they say?

    python -m bench faithful.coverage [--models 200] [--draws 200]

`sampling.estimate` estimates log Z and the probability of a random event, with every sampler, on small random models:
half of them plain, the others with traps (`random_models`); every second pair without scouts. Printed for each sampler
and kind: runs, how many were trusted, how many of the trusted intervals cover the truth, and how many of all intervals
do; then the verdicts. Takes minutes on one core. The exit code is 1 if a target is missed.
"""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import process_time
from typing import NamedTuple

import numpy as np
from rich.console import Console

from constrain.base.errors import LimitError
from constrain.sampling import SAMPLERS, Estimate, estimate
from constrain.sampling.estimation import SCOUTS

from ..options import build_parser
from ..record import write_result
from ..tables import build_progress, build_table
from .random_models import KINDS, StudiedModel, make_model
from .verdicts import Verdict, format_verdict

__all__ = ["CoveredRun", "count_runs", "judge_coverage", "main", "study_model"]

LEVEL = 0.95
"""Confidence level of the intervals."""
TRUSTED = 0.5
"""Target for the share of trusted runs on plain models."""


class CoveredRun(NamedTuple):
    """One estimate. quantity: "log Z" or "event". covered: whether its interval contains the truth."""

    sampler: str
    kind: str
    quantity: str
    trusted: bool
    covered: bool
    reason: str
    truth: float
    low: float
    high: float


def make_event(seed: int) -> Callable[[str], bool]:
    """Return a random event: about half of all texts, chosen by a checksum."""
    return lambda text: bool(zlib.crc32(f"{seed} {text}".encode()) % 2)


def study_model(model: StudiedModel, seed: int, draws: int) -> Iterator[CoveredRun]:
    """Run every sampler on a model. Runs that raise an error because they found no text are left out."""
    event, scouts = make_event(seed), SCOUTS if seed % 4 < 2 else 0.0
    for number, name in enumerate(SAMPLERS):
        if name not in model.options:
            continue
        lm = model.case.lm.as_ngram() if name == "markov" else model.case.lm
        for quantity, f, truth in (("log Z", None, math.log(model.case.z)), ("event", event, model.probability(event))):
            rng = np.random.default_rng([seed, number, f is None])
            try:
                found = estimate(
                    lm, model.case.constraint, f, sampler=name, n=draws, level=LEVEL, rng=rng,
                    max_tokens=model.case.max_tokens, scouts=scouts, **model.options[name],
                )  # fmt: skip
            except LimitError:
                continue
            yield CoveredRun(
                name, model.kind, quantity, found.trusted, is_covered(found, truth), found.reason, truth, found.low,
                found.high,
            )  # fmt: skip


def is_covered(found: Estimate, truth: float) -> bool:
    """Return whether an interval contains the truth, up to rounding."""
    return found.low - 1e-9 <= truth <= found.high + 1e-9


class Counts(NamedTuple):
    """Numbers of runs: all, trusted, trusted and covered, covered."""

    runs: int
    trusted: int
    right: int
    covered: int


def count_runs(runs: Iterable[CoveredRun]) -> Counts:
    """Count runs by outcome."""
    listed = list(runs)
    trusted = [run for run in listed if run.trusted]
    return Counts(len(listed), len(trusted), sum(run.covered for run in trusted), sum(run.covered for run in listed))


def judge_coverage(runs: list[CoveredRun]) -> list[Verdict]:
    """Judge the coverage of trusted runs, by sampler and overall, the share of trusted runs on plain
    models, and traps.
    """
    samplers = list(dict.fromkeys(run.sampler for run in runs))
    counts = {name: count_runs(run for run in runs if run.sampler == name) for name in samplers}
    plain = {name: count_runs(run for run in runs if run.sampler == name and run.kind == "plain") for name in samplers}
    cut = count_runs(run for run in runs if run.kind == "truncated")
    low = [f"{name} {c.right} of {c.trusted}" for name, c in counts.items() if c.right < LEVEL * c.trusted]
    rare = [f"{name} {c.trusted} of {c.runs}" for name, c in plain.items() if c.trusted < TRUSTED * c.runs]
    every = count_runs(runs)
    return [
        Verdict(
            f"trusted intervals of {LEVEL:.0%} cover the truth that often, for every sampler", not low,
            "; ".join(low) or f"{every.right} of {every.trusted}, at least "
            + f"{min(c.right / max(c.trusted, 1) for c in counts.values()):.1%} of each sampler's",
        ),
        Verdict(
            "half of the runs on plain models are trusted, for every sampler", not rare,
            "; ".join(rare) or f"at least {min(c.trusted / max(c.runs, 1) for c in plain.values()):.0%}",
        ),
        Verdict("no run with a truncating proposal is trusted", not cut.trusted, f"{cut.trusted} of {cut.runs}"),
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study. Return 1 if a target is missed, else 0."""
    parser = build_parser("faithful.coverage", __doc__, "seed", "results", seed=1)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--draws", type=int, default=200, help="draws of each estimate")
    options = parser.parse_args(arguments)
    begin, console = process_time(), Console()
    runs: list[CoveredRun] = []
    first = 1000 * options.seed
    with build_progress(Console(stderr=True)) as progress:
        for seed in progress.track(range(first, first + options.models), description="models"):
            runs += study_model(make_model(seed), seed, options.draws)
    print_runs(console, runs)
    verdicts = judge_coverage(runs)
    facts = {"runs": [run._asdict() for run in runs], "verdicts": [verdict._asdict() for verdict in verdicts]}
    write_result(options, facts)
    console.print(f"{process_time() - begin:.0f} s of CPU time")
    for verdict in verdicts:
        console.print(format_verdict(verdict), highlight=False)
    return 0 if all(verdict.met for verdict in verdicts) else 1


def print_runs(console: Console, runs: list[CoveredRun]) -> None:
    """Print the counts by sampler and kind."""
    table = build_table(
        f"Coverage of intervals of {LEVEL:.0%}",
        ["sampler", "kind"],
        ["runs", "trusted", "of these cover", "of all cover"],
    )
    for sampler in SAMPLERS:
        for kind in KINDS:
            count = count_runs(run for run in runs if (run.sampler, run.kind) == (sampler, kind))
            if count.runs:
                right = f"{count.right / count.trusted:.1%}" if count.trusted else ""
                table.add_row(
                    sampler, kind, str(count.runs), str(count.trusted), right, f"{count.covered / count.runs:.1%}"
                )
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
