"""How exact and how fast are the masks? constrain and its peers on the schemas of MaskBench, in one run.

    python -m bench maskbench --sample 500 --engines constrain,llguidance,xgrammar

The engines process the same schemas, in worker processes on one core, with limits per schema (10 s, 2 GiB).
    warm    one worker processes all schemas, as a server does
    cold    a new process for every schema, forked after kernels are loaded and the vocabulary is prepared: what it
            adds is page faults, most of which are where CPython writes reference counts
Printed, and written to bench/results/ as JSON: schemas that pass, refusals and their reasons, valid instances that are
rejected and invalid ones that are accepted; µs of a step (mask and advance) and from schema text to first mask; the
targets (`verdicts.py`) that are met. Percentile curves are written as SVG. A schema passes if it compiles and all its
instances are judged correctly. Only rows of one run may be compared.

`constrain-idle` and `constrain-any-idle` prepare for at most `--idle-ms` in each step, as they do while a model runs.
This time does not count for the step; its mean is in the column `prepared`.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from rich.console import Console

from . import report, verdicts
from .corpus import Llama3
from .curves import draw_plot
from .engines import ENGINES, ConstrainIdle, Engine
from .measure import CLOCKS, WARM, Job, Result, accepts_instance, measure_schema, tokenise_case
from .options import build_parser, read_cases, split_names
from .percentiles import compute_tails
from .record import write_result
from .tables import build_progress
from .workers import Failure, Guard, run_guarded, stream_from_child

MODES = ("warm", "cold")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return the exit code."""
    options = read_options(arguments)
    console = Console(stderr=True)
    cases = read_cases(options)
    vocabulary = Llama3(options.vocabulary)
    with console.status(f"tokenising the instances of {len(cases):,} schemas"):
        jobs = [tokenise_case(case, vocabulary) for case in cases]
    runs = {
        (name, mode): run_engine(name, mode, jobs, vocabulary, options, console)
        for name in options.engines
        for mode in options.modes
        if mode != "cold" or name not in options.warm_only
    }
    tables = report.summarise_runs(jobs, runs)
    report.print_tables(tables, Console())
    tables["targets"] = verdicts.judge_targets(tables["time"])
    verdicts.print_verdicts(tables["targets"], Console())
    path = write_result(options, {**tables, "schemas that do not pass": report.list_failures(jobs, runs)})
    if panels := compute_tails(jobs, runs):
        draw_plot(path.with_suffix(".svg"), "MaskBench, schemas common to all engines", "fraction slower", "µs", panels)
    return 0


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    shared = ("data", "vocabulary", "sample", "all", "ids", "seed", "seconds", "mebibytes", "clock", "core", "results")
    parser = build_parser("maskbench", __doc__, *shared, engines=ENGINES, sample=500)
    parser.add_argument("--modes", type=split_names(MODES), default=list(MODES), metavar="A,B", help=", ".join(MODES))
    parser.add_argument(
        "--warm-only", type=split_names(ENGINES), default=[], metavar="A,B", help="engines without a cold run"
    )
    parser.add_argument("--idle-ms", type=float, default=5.0, help="ms in each step that the idle engines may prepare")
    return parser.parse_args(arguments)


def run_engine(
    name: str, mode: str, jobs: list[Job], vocabulary: Llama3, options: argparse.Namespace, console: Console
) -> list[Result | Failure]:
    """Run one engine on all jobs, in a process of its own that prepares it and forks the workers."""
    answers = stream_from_child(partial(host_engine, name, mode, jobs, vocabulary, options), name)
    outcomes: list[Any] = []
    with build_progress(console) as progress:
        task = progress.add_task(f"{name}, {mode}: preparing", total=len(jobs))
        next(answers)
        progress.update(task, description=f"{name}, {mode}")
        for outcome in islice(answers, len(jobs)):
            outcomes.append(outcome)
            progress.advance(task)
        for index, why in next(answers).items():
            outcomes[index].why = why
        next(answers, None)  # lets the child end
    return outcomes


def host_engine(
    name: str, mode: str, jobs: list[Job], vocabulary: Llama3, options: argparse.Namespace
) -> Iterator[str | Result | Failure | dict[int, list[str]]]:
    """Prepare one engine; yield "ready", the outcome of every job, and {index: reasons for rejecting
    valid instances}.
    """
    engine = prepare_engine(name, vocabulary, options.core)
    if isinstance(engine, ConstrainIdle):
        engine.idle_seconds = options.idle_ms / 1_000
    yield "ready"
    rejections = {}
    guard = Guard(options.seconds, options.mebibytes << 20, options.clock)
    begin = partial(warm_up, engine, tokenise_case(WARM, vocabulary)) if mode == "warm" else None
    work = partial(measure_schema, engine, clock=CLOCKS[options.clock])
    for index, outcome in run_guarded(work, jobs, limits=guard, fresh=mode == "cold", begin=begin):
        if isinstance(outcome, Result) and outcome.rejected:
            rejections[index] = outcome.rejected
        yield outcome
    # Computed last: during the measurement it would compete with the worker for its core and caches.
    whys = {}
    for index, rejected in rejections.items():
        answer = next(
            run_guarded(partial(explain_rejections, engine, rejected), [jobs[index]], limits=guard, fresh=True)
        )[1]
        whys[index] = [answer.kind] * len(rejected) if isinstance(answer, Failure) else answer
    yield whys


def prepare_engine(name: str, vocabulary: Llama3, core: int) -> Engine:
    """Pin this process to a core, create an engine and warm it up."""
    os.sched_setaffinity(0, {core})
    engine = ENGINES[name](vocabulary)
    warm_up(engine, tokenise_case(WARM, vocabulary))
    engine.forget()  # so that forked workers do not free memory that they share with this process
    gc.collect()
    gc.freeze()  # excludes prepared objects from later garbage collections, above all in the workers
    return engine


def explain_rejections(engine: Engine, rejected: list[int], job: Job) -> list[str]:
    """Return the reason for every rejected valid instance."""
    engine.compile(job.case.schema)
    answers = []
    for index in rejected:
        engine.start()
        answers.append(engine.why_rejected(job.case.schema, job.tokens[index]))
    return answers


def warm_up(engine: Engine, job: Job) -> None:
    """Process a small schema, without measuring it."""
    result = measure_schema(engine, job)
    if result.refused or result.error or result.rejected:
        raise RuntimeError(f"the warm-up schema failed: {result}")
    accepts_instance(engine, job.tokens[0], result.steps)


if __name__ == "__main__":
    sys.exit(main())
