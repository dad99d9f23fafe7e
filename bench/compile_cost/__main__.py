"""What does compiling cost where schemas are large or nasty? Ours beside the peers, in one run.

    python -m bench.compile_cost [--only enum] [--engines constrain-any,llguidance]
    python -m bench.compile_cost --dev ../shared/data/maskbench-dev.jsonl.gz

From the text of a schema to its first mask over Llama 3's 128,256 tokens: wall and CPU milliseconds (median of fresh
processes, each forked where kernels are loaded and the vocabulary is prepared), of another compile in the same process
("again"), and the physical memory added at the peak. `!` marks what is above 100 ms, on both clocks, or 256 MiB, or
failed within 10 s and 2 GiB. With --dev, instead: the schemas of a file that are above the mark, and where their time
goes. Saved as JSON in bench/results/.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ..corpus import Llama3, choose, load
from ..engines import ENGINES, Engine
from ..maskbench import names, warm_up
from ..measure import WARM, job_of
from ..report import commit, machine, versions
from ..workers import Guard, fork, reap
from .cases import Growing, cases
from .dev import Slow, slowest
from .trial import MEMORY, TIME, Cost, cost

WIDTH = 160


def main(arguments: list[str] | None = None) -> int:
    """Runs the benchmark; 0, or 2 for a mistake in the arguments."""
    options = parse(arguments)
    console = Console()
    console.width = max(console.width, WIDTH)
    guard = Guard(options.seconds, options.mebibytes << 20, "cpu")
    try:
        vocabulary = Llama3(options.vocabulary)
        work: Callable[[Engine], Iterator[Any]]
        if options.dev:
            chosen = choose(load(options.dev), sample=options.sample, seed=0, ids=options.ids)
            work = partial(slowest, cases=chosen, guard=guard, repeat=options.repeat, seconds=options.limit)
        else:
            growing = [case for case in cases() if options.only in case.name]
            work = partial(trials, growing=growing, guard=guard, repeat=options.repeat)
    except (OSError, ValueError) as error:
        console.print(f"[red]{error}[/]", highlight=False)
        return 2
    found: dict[str, list[Any]] = {}
    for name in options.engines:
        print(name, file=sys.stderr, flush=True)
        found[name] = []
        for one in run(name, vocabulary, work, options.core):
            found[name].append(one)
            if isinstance(one, (Slow, str)):
                console.print(line(one), markup=False, highlight=False)
    if not options.dev:
        show(growing, found, console)
    path = save("compile-cost-dev" if options.dev else "compile-cost", found, options)
    console.print(f"saved as {path}", highlight=False)
    return 0


def trials(engine: Engine, growing: list[Growing], guard: Guard, repeat: int) -> Iterator[tuple[str, Cost]]:
    """Every case through an engine; where the size before failed, the next ones are not tried."""
    failed: dict[str, str] = {}
    for case in growing:
        if case.group in failed:
            yield case.name, Cost(failed=f"not tried: {failed[case.group]} before")
            continue
        found = cost(engine, case.text, guard, repeat)
        if found.failed:
            failed[case.group] = found.failed.partition(":")[0]
        yield case.name, found


def run(name: str, vocabulary: Llama3, work: Callable[[Engine], Iterator[Any]], core: int) -> Iterator[Any]:
    """What `work` yields for an engine, from a process of its own that prepares it."""
    sys.stdout.flush()
    pid, pipe = fork(partial(host, name, vocabulary, work, core))
    ended = False
    try:
        while (one := pipe.recv()) is not None:
            yield one
        ended = True
    except EOFError:
        raise SystemExit(f"{name} could not be run: see above") from None
    finally:
        pipe.close()
        reap(pid, kill=not ended)


def host(name: str, vocabulary: Llama3, work: Callable[[Engine], Iterator[Any]], core: int, out: Connection) -> None:
    """Prepares one engine, sends what the work yields, then None."""
    os.sched_setaffinity(0, {core})
    engine = ENGINES[name](vocabulary)
    warm_up(engine, job_of(WARM, vocabulary))
    gc.collect()
    gc.freeze()
    for one in work(engine):
        out.send(one)
    out.send(None)


def show(growing: list[Growing], found: dict[str, list[tuple[str, Cost]]], console: Console) -> None:
    """The table: a row for each case, for each engine the first compile, CPU, another compile, memory."""
    table = Table(title="ms to the first mask: wall, CPU, again; MiB added", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("schema", no_wrap=True)
    for name in found:
        table.add_column(name, justify="right", no_wrap=True)
    for index, case in enumerate(growing):
        table.add_row(case.name, *(figures(outcomes[index][1]) for outcomes in found.values()))
    console.print(table, markup=False, highlight=False)
    for name, outcomes in found.items():
        over = [label for label, one in outcomes if one.over]
        refused = sum(bool(one.refused) for _, one in outcomes)
        console.print(
            f"{name}: {len(over)} of {len(outcomes)} above {TIME:g} ms or {MEMORY:g} MiB, {refused} refused",
            markup=False,
            highlight=False,
        )


def figures(one: Cost) -> str:
    """A cell."""
    if one.failed:
        return one.failed.partition(":")[0] + " !"
    if one.refused:
        return "refused"
    wall, cpu, again, added = (median(values) for values in (one.wall, one.cpu, one.again, one.mebibytes))
    return f"{wall:,.1f}  {cpu:,.1f}  {again:,.1f}  {added:,.1f}" + (" !" if one.over else "  ")


def line(one: Slow | str) -> str:
    """A line of the dev pass."""
    return one if isinstance(one, str) else f"{one.id}: {figures(one.cost)}; {', '.join(one.where)}"


def save(kind: str, found: dict[str, list[Any]], options: argparse.Namespace) -> Path:
    """Writes every figure, with the machine and the versions; the file's path."""
    now = datetime.datetime.now(datetime.timezone.utc)
    rows: dict[str, Any] = {}
    for name, outcomes in found.items():
        rows[name] = [
            one
            if isinstance(one, str)
            else asdict(one)
            if isinstance(one, Slow)
            else {"name": one[0], **asdict(one[1])}
            for one in outcomes
        ]
    document = {
        "question": "what does it cost from a schema's text to the first mask?",
        "command": " ".join(["python -m bench.compile_cost", *sys.argv[1:]]),
        "date": now.isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "versions": {"python": platform.python_version(), **versions()},
        "units": {"wall": "ms", "cpu": "ms", "again": "ms", "mebibytes": "MiB"},
        "rows": rows,
    }
    options.results.mkdir(parents=True, exist_ok=True)
    path: Path = options.results / f"{kind}-{now:%Y-%m-%d-%H%M}.json"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return path


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.compile_cost", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = Path("../shared/data")
    parser.add_argument("--vocabulary", type=Path, default=data / "llama3.tiktoken", help="the ranks of Llama 3")
    parser.add_argument("--engines", type=names(ENGINES), default=list(ENGINES), metavar="A,B", help=", ".join(ENGINES))
    parser.add_argument("--only", default="", metavar="WORD", help="cases with this in their name")
    parser.add_argument("--repeat", type=int, default=3, help="fresh processes per schema (3)")
    parser.add_argument("--dev", type=Path, metavar="FILE", help="look for the slowest schemas of a file instead")
    parser.add_argument("--sample", type=int, metavar="N", help="of --dev: so many schemas (all)")
    parser.add_argument("--ids", type=lambda text: text.split(","), default=[], metavar="A,B", help="of --dev: these")
    parser.add_argument("--limit", type=float, default=900.0, help="of --dev: seconds for the pass, per engine (900)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of CPU time, limit per schema (10)")
    parser.add_argument("--mebibytes", type=int, default=2048, help="limit per schema (2048)")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="pin the workers to this core")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent.parent / "results", help="for the JSON")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
