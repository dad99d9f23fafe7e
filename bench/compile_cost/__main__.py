"""What does compiling cost where schemas are large or difficult? constrain and its peers in one run.

    python -m bench compile_cost [--only enum] [--engines constrain-any,llguidance]
    python -m bench compile_cost --dev ../shared/data/maskbench-dev.jsonl.gz

From the text of a schema to its first mask over Llama 3's 128,256 tokens: wall and CPU milliseconds (median of new
processes, each forked after kernels are loaded and the vocabulary is prepared), those of another compilation in the
same process ("again"), and the additional memory at the peak. `!` marks more than 100 ms of both wall and CPU time,
more than 256 MiB, and failures within the limits of 10 s and 2 GiB. With --dev, instead: the schemas of a file above
these limits, with a profile. Results are written to bench/results/ as JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from ..corpus import Llama3
from ..engines import ENGINES, Engine
from ..maskbench import prepare_engine
from ..options import build_parser, read_cases
from ..record import write_result
from ..tables import build_table, print_table
from ..workers import Guard, stream_from_child
from .cases import Growing, list_growing_cases
from .dev import Slow, find_slowest
from .trial import MEMORY, TIME, Cost, measure_cost

WIDTH = 160


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return the exit code."""
    shared = ("vocabulary", "only", "repeat", "sample", "ids", "seed", "seconds", "mebibytes", "core", "results")
    parser = build_parser("compile_cost", __doc__, *shared, engines=ENGINES)
    parser.add_argument(
        "--dev", type=Path, dest="data", metavar="FILE", help="find the slowest schemas of a file instead"
    )
    parser.add_argument("--limit", type=float, default=900.0, help="seconds of the first pass of --dev, per engine")
    options = parser.parse_args(arguments)
    console = Console()
    console.width = max(console.width, WIDTH)
    guard = Guard(options.seconds, options.mebibytes << 20, "cpu")
    vocabulary = Llama3(options.vocabulary)
    work: Callable[[Engine], Iterator[Any]]
    if options.data:
        chosen = read_cases(options)
        work = partial(find_slowest, cases=chosen, guard=guard, repeat=options.repeat, seconds=options.limit)
    else:
        growing = [case for case in list_growing_cases() if options.only in case.name]
        work = partial(run_trials, growing=growing, guard=guard, repeat=options.repeat)
    found: dict[str, list[Any]] = {}
    for name in options.engines:
        print(name, file=sys.stderr, flush=True)
        found[name] = []
        for one in stream_from_child(partial(host_work, name, vocabulary, work, options.core), name):
            found[name].append(one)
            if isinstance(one, (Slow, str)):
                console.print(format_line(one), markup=False, highlight=False)
    if not options.data:
        print_costs(growing, found, console)
    rows = {name: [plain_values(one) for one in outcomes] for name, outcomes in found.items()}
    units = {"wall": "ms", "cpu": "ms", "again": "ms", "mebibytes": "MiB"}
    write_result(options, {"units": units, "rows": rows}, "dev" if options.data else "")
    return 0


def run_trials(engine: Engine, growing: list[Growing], guard: Guard, repeat: int) -> Iterator[tuple[str, Cost]]:
    """Measure every case with an engine. After a failure, larger sizes are skipped."""
    failed: dict[str, str] = {}
    for case in growing:
        if case.group in failed:
            yield case.name, Cost(failed=f"not tried: {failed[case.group]} before")
            continue
        found = measure_cost(engine, case.text, guard, repeat)
        if found.failed:
            failed[case.group] = found.failed.partition(":")[0]
        yield case.name, found


def host_work(name: str, vocabulary: Llama3, work: Callable[[Engine], Iterator[Any]], core: int) -> Iterator[Any]:
    """Prepare one engine and yield what the work yields."""
    yield from work(prepare_engine(name, vocabulary, core))


def print_costs(growing: list[Growing], found: dict[str, list[tuple[str, Cost]]], console: Console) -> None:
    """Print a row for each case: for each engine the first compilation, its CPU time, another compilation, memory."""
    table = build_table("ms to the first mask: wall, CPU, again; MiB added", ["schema"], found)
    for index, case in enumerate(growing):
        table.add_row(case.name, *(format_cost(outcomes[index][1]) for outcomes in found.values()))
    print_table(table, console)
    for name, outcomes in found.items():
        over = [label for label, one in outcomes if one.exceeds_limit]
        refused = sum(bool(one.refused) for _, one in outcomes)
        console.print(
            f"{name}: {len(over)} of {len(outcomes)} above {TIME:g} ms or {MEMORY:g} MiB, {refused} refused",
            markup=False,
            highlight=False,
        )


def format_cost(one: Cost) -> str:
    """Return a cell."""
    if one.failed:
        return one.failed.partition(":")[0] + " !"
    if one.refused:
        return "refused"
    wall, cpu, again, added = (median(values) for values in (one.wall, one.cpu, one.again, one.mebibytes))
    return f"{wall:,.1f}  {cpu:,.1f}  {again:,.1f}  {added:,.1f}" + (" !" if one.exceeds_limit else "  ")


def format_line(one: Slow | str) -> str:
    """Return a line of the dev pass."""
    return one if isinstance(one, str) else f"{one.id}: {format_cost(one.cost)}; {', '.join(one.where)}"


def plain_values(one: Slow | str | tuple[str, Cost]) -> Any:
    """Return an outcome as a JSON value."""
    if isinstance(one, str):
        return one
    return asdict(one) if isinstance(one, Slow) else {"name": one[0], **asdict(one[1])}


if __name__ == "__main__":
    sys.exit(main())
