"""How exact and how fast are the masks? constrain and its peers on the schemas of MaskBench, in one run.

    python -m bench.maskbench --data ../shared/data/maskbench-dev.jsonl.gz \\
        --vocabulary ../shared/data/llama3.tiktoken --sample 500 --engines constrain,llguidance,xgrammar

Each engine takes the same schemas in turn, in worker processes on one core, with limits per schema (10 s, 2 GiB).
    warm    one worker takes schema after schema, as a server does
    cold    every schema in a fresh process, forked where kernels are loaded and the vocabulary is prepared
Printed, and saved as JSON in bench/results/: what passes, what is refused and why, which valid instances are rejected
and which invalid ones accepted; µs of a step (mask and advance) and from schema text to first mask; which of the
targets (`verdicts.py`) are met. Percentile curves lie beside the JSON as SVG. A schema passes
if it compiles and every one of its instances is judged right. Only rows of one run may be compared.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from . import report, verdicts
from .corpus import Llama3, choose, load
from .curves import draw
from .engines import ENGINES, Engine
from .measure import CLOCKS, WARM, Job, Result, accepts, job_of, measure
from .percentiles import tails
from .workers import Failure, Guard, fork, guarded, reap

MODES = ("warm", "cold")


def main(arguments: list[str] | None = None) -> int:
    """Runs the benchmark; 0, or 2 for a mistake in the arguments."""
    options = parse(arguments)
    console = Console(stderr=True)
    try:
        cases = choose(
            load(options.data), sample=None if options.all else options.sample, seed=options.seed, ids=options.ids
        )
        vocabulary = Llama3(options.vocabulary)
        with console.status(f"tokenising the instances of {len(cases):,} schemas"):
            jobs = [job_of(case, vocabulary) for case in cases]
    except (OSError, ValueError) as error:
        console.print(f"[red]{error}[/]", highlight=False)
        return 2
    guard = Guard(options.seconds, options.mebibytes << 20, options.clock)
    runs = {}
    for name in options.engines:
        for mode in options.modes:
            if mode == "cold" and name in options.warm_only:
                continue
            runs[name, mode] = run(name, mode, jobs, vocabulary, guard, options.core, options.clock, console)
    tables = report.summarise(jobs, runs)
    report.show(tables, Console())
    tables["targets"] = verdicts.judge(tables["time"])
    verdicts.show(tables["targets"], Console())
    path = report.save(tables, jobs, runs, options)
    console.print(f"saved as {path}", highlight=False)
    if panels := tails(jobs, runs):
        plot = path.with_suffix(".svg")
        draw(plot, "MaskBench, schemas common to all engines", "fraction slower", "µs", panels)
        console.print(f"drawn as {plot}", highlight=False)
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.maskbench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = Path("../shared/data")
    parser.add_argument(
        "--data", type=Path, default=data / "maskbench-dev.jsonl.gz", help="the cases (.jsonl or .jsonl.gz)"
    )
    parser.add_argument("--vocabulary", type=Path, default=data / "llama3.tiktoken", help="the ranks of Llama 3")
    parser.add_argument("--engines", type=names(ENGINES), default=list(ENGINES), metavar="A,B", help=", ".join(ENGINES))
    parser.add_argument("--modes", type=names(MODES), default=list(MODES), metavar="A,B", help="warm, cold (both)")
    parser.add_argument(
        "--warm-only", type=names(ENGINES), default=[], metavar="A,B", help="of these no cold run, for it takes long"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--sample", type=int, default=500, metavar="N", help="so many schemas, drawn with --seed (500)")
    what.add_argument("--all", action="store_true", help="every schema")
    what.add_argument(
        "--ids", type=lambda text: text.split(","), default=[], metavar="A,B", help="the schemas of these ids"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the sample (0)")
    parser.add_argument("--seconds", type=float, default=10.0, help="limit per schema (10)")
    parser.add_argument("--mebibytes", type=int, default=2048, help="limit per schema, beyond what was prepared (2048)")
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu: on a busy machine, see bench/measure.py (wall)"
    )
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="pin the workers to this core")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results", help="folder for the JSON")
    return parser.parse_args(arguments)


def names(known: Any) -> Any:
    """An argument type: names of `known`, separated by commas."""

    def read(text: str) -> list[str]:
        chosen = text.split(",")
        wrong = [name for name in chosen if name not in known]
        if wrong:
            raise argparse.ArgumentTypeError(f"{', '.join(wrong)}: not one of {', '.join(known)}")
        return chosen

    return read


def run(
    name: str,
    mode: str,
    jobs: list[Job],
    vocabulary: Llama3,
    guard: Guard,
    core: int,
    clock: str,
    console: Console,
) -> list[Result | Failure]:
    """One engine over all jobs, in a process of its own that prepares it and forks the workers."""
    sys.stdout.flush()
    pid, pipe = fork(partial(host, name, mode, jobs, vocabulary, guard, core, clock))
    outcomes: list[Any] = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    ended = False
    try:
        with Progress(*columns, console=console) as progress:
            task = progress.add_task(f"{name}, {mode}: preparing", total=len(jobs))
            pipe.recv()
            progress.update(task, description=f"{name}, {mode}")
            for _ in jobs:
                outcomes.append(pipe.recv())
                progress.advance(task)
            for index, why in pipe.recv().items():
                outcomes[index].why = why
        ended = True
    except EOFError:
        raise SystemExit(f"{name} could not be run: see above") from None
    finally:
        pipe.close()
        reap(pid, kill=not ended)
    return outcomes


def host(
    name: str, mode: str, jobs: list[Job], vocabulary: Llama3, guard: Guard, core: int, clock: str, out: Connection
) -> None:
    """Prepares one engine and sends "ready", its outcome for every job, and {index: why it rejected what is valid}."""
    os.sched_setaffinity(0, {core})
    engine = ENGINES[name](vocabulary)
    warm = partial(warm_up, engine, job_of(WARM, vocabulary))
    warm()
    gc.collect()
    gc.freeze()  # what was prepared is not searched for garbage again, in the workers least of all
    out.send("ready")
    rejections = {}
    begin = warm if mode == "warm" else None
    for index, outcome in guarded(
        partial(measure, engine, clock=CLOCKS[clock]), jobs, limits=guard, fresh=mode == "cold", begin=begin
    ):
        if isinstance(outcome, Result) and outcome.rejected:
            rejections[index] = outcome.rejected
        out.send(outcome)
    # Asked only now: a question while a worker measures would take its core and its caches.
    whys = {}
    for index, rejected in rejections.items():
        answer = next(guarded(partial(reasons, engine, rejected), [jobs[index]], limits=guard, fresh=True))[1]
        whys[index] = [answer.kind] * len(rejected) if isinstance(answer, Failure) else answer
    out.send(whys)


def reasons(engine: Engine, rejected: list[int], job: Job) -> list[str]:
    """For every valid instance that was rejected: why."""
    engine.compile(job.case.schema)
    answers = []
    for index in rejected:
        engine.start()
        answers.append(engine.why_rejected(job.case.schema, job.tokens[index]))
    return answers


def warm_up(engine: Engine, job: Job) -> None:
    """A small schema, uncounted."""
    result = measure(engine, job)
    if result.refused or result.error or result.rejected:
        raise RuntimeError(f"the warm-up schema failed: {result}")
    accepts(engine, job.tokens[0], result.steps)


if __name__ == "__main__":
    sys.exit(main())
