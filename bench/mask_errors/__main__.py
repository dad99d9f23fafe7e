"""How many masks are wrong, over and under, on the schemas of MaskBench? constrain and its peers in one run.

    python -m bench.mask_errors --data ../shared/data/maskbench-dev.jsonl.gz \\
        --vocabulary ../shared/data/llama3.tiktoken --masks 1000000

Every schema gets the same share of the masks, half along valid texts and half on random walks (walks.py says how).
Engines with an order of keys or a spelling of their own get texts in that order and the canonical spelling.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ..corpus import Case, Llama3, choose, load
from ..engines import ENGINES
from ..maskbench import names
from ..workers import Failure, Guard, fork, guarded, reap
from . import summary
from .walks import Findings, Plan, Walker

Job = tuple[Case, Plan]


def main(arguments: list[str] | None = None) -> int:
    """Runs the benchmark; 0, or 2 for a mistake in the arguments."""
    options = parse(arguments)
    console = Console(stderr=True)
    try:
        cases = choose(load(options.data), sample=options.sample, seed=options.seed, ids=options.ids)
        vocabulary = Llama3(options.vocabulary)
        vocabulary.encode("a")
    except (OSError, ValueError) as error:
        console.print(f"[red]{error}[/]", highlight=False)
        return 2
    plan = Plan(-(-options.masks // max(1, len(cases))), options.seconds, options.compiling, options.seed)
    jobs = [(case, plan) for case in cases]
    runs = {name: run(name, jobs, vocabulary, options, console) for name in options.engines}
    rows = summary.summarise(runs)
    summary.show(rows, cases, runs, Console())
    console.print(f"saved as {summary.save(rows, cases, runs, options)}", highlight=False)
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.mask_errors", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = Path("../shared/data")
    parser.add_argument("--data", type=Path, default=data / "maskbench-dev.jsonl.gz", help="the cases")
    parser.add_argument("--vocabulary", type=Path, default=data / "llama3.tiktoken", help="the ranks of Llama 3")
    parser.add_argument("--engines", type=names(ENGINES), default=list(ENGINES), metavar="A,B", help=", ".join(ENGINES))
    parser.add_argument("--masks", type=int, default=1_000_000, help="about so many for each engine (1,000,000)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--sample", type=int, metavar="N", help="so many schemas, drawn with --seed (all)")
    what.add_argument("--ids", type=lambda text: text.split(","), default=[], metavar="A,B", help="these schemas")
    parser.add_argument("--seed", type=int, default=0, help="of the sample, the variants and the walks (0)")
    parser.add_argument("--workers", type=int, choices=(1, 2), default=1, help="processes side by side (1)")
    parser.add_argument("--seconds", type=float, default=20.0, help="of walking, most for a schema (20)")
    parser.add_argument("--compiling", type=float, default=10.0, help="of compiling, most for a schema (10)")
    parser.add_argument("--mebibytes", type=int, default=2048, help="limit per schema, beyond what was prepared (2048)")
    parser.add_argument("--output", type=Path, help="the JSON file (bench/results/mask-errors-<date>-<time>.json)")
    return parser.parse_args(arguments)


def run(
    name: str, jobs: Sequence[Job], vocabulary: Llama3, options: argparse.Namespace, console: Console
) -> list[Findings | Failure]:
    """One engine over all jobs, every worker with an engine of its own and every n-th job."""
    count = min(options.workers, len(jobs))
    hosts = [fork(partial(host, name, jobs[k::count], vocabulary, options)) for k in range(count)]
    outcomes: list[Any] = [None] * len(jobs)
    places = {pipe: iter(range(k, len(jobs), count)) for k, (_, pipe) in enumerate(hosts)}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
               TimeRemainingColumn())  # fmt: skip
    ended = False
    try:
        with Progress(*columns, console=console) as progress:
            task = progress.add_task(name, total=len(jobs))
            done = 0
            while done < len(jobs):
                for pipe in wait(list(places)):
                    assert isinstance(pipe, Connection)
                    outcome = pipe.recv()
                    place = next(places[pipe])
                    outcomes[place] = outcome
                    done += 1
                    progress.advance(task)
                    if place + count >= len(jobs):
                        del places[pipe]
        ended = True
    except EOFError:
        raise SystemExit(f"{name} could not be run: see above") from None
    finally:
        for pid, pipe in hosts:
            pipe.close()
            reap(pid, kill=not ended)
    return outcomes


def host(name: str, jobs: Sequence[Job], vocabulary: Llama3, options: argparse.Namespace, out: Connection) -> None:
    """Prepares one engine and sends its outcome for every job."""
    walker = Walker(name, ENGINES[name](vocabulary), vocabulary)
    gc.collect()
    gc.freeze()
    # What hangs in one call (compiling, a pattern of jsonschema) is ended from outside, some time after its own limit.
    guard = Guard(3 * (options.seconds + options.compiling), options.mebibytes << 20)
    for _, outcome in guarded(walker, jobs, limits=guard, fresh=False):
        out.send(outcome)


if __name__ == "__main__":
    sys.exit(main())
