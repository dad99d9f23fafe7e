"""How many masks are wrong, over and under, on the schemas of MaskBench? constrain and its peers in one run.

    python -m bench mask_errors --masks 1000000

Every schema gets the same number of masks, half along valid texts and half on random walks (see walks.py). Engines that
fix the order of keys and the spelling get texts in that order and the canonical spelling.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any

from rich.console import Console

from ..corpus import Case, Llama3
from ..engines import ENGINES
from ..options import build_parser, read_cases
from ..record import write_result
from ..tables import build_progress
from ..workers import Failure, Guard, fork_child, reap_child, run_guarded
from . import summary
from .walks import Findings, Plan, Walker

Job = tuple[Case, Plan]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return the exit code."""
    options = read_options(arguments)
    cases = read_cases(options)
    vocabulary = Llama3(options.vocabulary)
    vocabulary.encode("a")
    plan = Plan(-(-options.masks // max(1, len(cases))), options.seconds, options.compiling, options.seed)
    jobs = [(case, plan) for case in cases]
    runs = {name: run_engine(name, jobs, vocabulary, options, Console(stderr=True)) for name in options.engines}
    rows = summary.summarise_findings(runs)
    summary.print_findings(rows, cases, runs, Console())
    write_result(options, summary.collect_facts(rows, cases, runs))
    return 0


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line. --seconds is the time of walks for a schema."""
    shared = ("data", "vocabulary", "sample", "all", "ids", "seed", "seconds", "mebibytes", "jobs", "results")
    parser = build_parser("mask_errors", __doc__, *shared, engines=ENGINES, seconds=20.0)
    parser.add_argument("--masks", type=int, default=1_000_000, help="approximate number of masks for each engine")
    parser.add_argument("--compiling", type=float, default=10.0, help="maximum seconds to compile a schema")
    return parser.parse_args(arguments)


def run_engine(
    name: str, jobs: Sequence[Job], vocabulary: Llama3, options: argparse.Namespace, console: Console
) -> list[Findings | Failure]:
    """Run one engine on all jobs. Each of n workers has an engine of its own and every n-th job."""
    count = min(options.jobs, len(jobs))
    hosts = [fork_child(partial(host_engine, name, jobs[k::count], vocabulary, options)) for k in range(count)]
    outcomes: list[Any] = [None] * len(jobs)
    indices = {pipe: iter(range(k, len(jobs), count)) for k, (_, pipe) in enumerate(hosts)}
    ended = False
    try:
        with build_progress(console) as progress:
            task = progress.add_task(name, total=len(jobs))
            done = 0
            while done < len(jobs):
                for pipe in wait(list(indices)):
                    assert isinstance(pipe, Connection)
                    outcome = pipe.recv()
                    index = next(indices[pipe])
                    outcomes[index] = outcome
                    done += 1
                    progress.advance(task)
                    if index + count >= len(jobs):
                        del indices[pipe]
        ended = True
    except EOFError:
        raise SystemExit(f"{name} could not be run: see above") from None
    finally:
        for pid, pipe in hosts:
            pipe.close()
            reap_child(pid, kill=not ended)
    return outcomes


def host_engine(
    name: str, jobs: Sequence[Job], vocabulary: Llama3, options: argparse.Namespace, out: Connection
) -> None:
    """Prepare one engine and send the outcome of every job."""
    walker = Walker(name, ENGINES[name](vocabulary), vocabulary)
    gc.collect()
    gc.freeze()
    # A call that hangs (compiling, a pattern of jsonschema) is killed some time after its own limit.
    guard = Guard(3 * (options.seconds + options.compiling), options.mebibytes << 20)
    for _, outcome in run_guarded(walker, jobs, limits=guard, fresh=False):
        out.send(outcome)


if __name__ == "__main__":
    sys.exit(main())
