"""What does a schema cost that was compiled before, from its text to the first mask, in this process or an earlier one?

    python -m bench.repeated --data ../shared/data/maskbench-dev.jsonl.gz \\
        --vocabulary ../shared/data/llama3.tiktoken --sample 500

Each engine takes the same schemas one after the other in a process where its vocabulary is prepared, each for the first
time and then again, another schema in between; constrain then in a second such process, which finds on disk what the
first has left. With --modes forked every schema has a process of its own, forked for it: then each engine pays for
pages of memory that it shares with its parent and writes to, constrain some 500 of them, whatever there is on disk.
XGrammar's cache is on; llguidance has none. Times are the CPU's. Only rows of one run may be compared.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from time import process_time_ns
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from . import report
from .corpus import Llama3, choose, load
from .engines import ENGINES, Constrain, Engine, Refused
from .measure import WARM
from .workers import Failure, Guard, guarded

AGAIN = 5
"""Times that a schema is compiled again; the median counts."""
WARMING = 10
MEMORY = 64 << 30
"""Address space that a process may reserve: constrain reserves more than it uses."""
COLD, SAME, DISK = "the first time", "again, same process", "again, later process"
QUANTILES = {"p50": 50, "p90": 90, "p99": 99}
Times = dict[str, list[int]]


def main(arguments: list[str] | None = None) -> int:
    """Runs it; 0."""
    options = parse(arguments)
    cases = choose(load(options.data), sample=options.sample, seed=options.seed)
    schemas = [case.schema for case in cases]
    vocabulary = Llama3(options.vocabulary)
    guard = Guard(options.seconds, MEMORY, "cpu")
    rows = []
    for mode in options.modes.split(","):
        found: dict[str, Times] = {}
        with tempfile.TemporaryDirectory() as folder:
            os.environ["CONSTRAIN_STORE"] = folder
            for name in options.engines.split(","):
                found[name] = run(ENGINES[name](vocabulary), schemas, guard, mode)
        rows += summarise(found, mode)
        show(rows, len(schemas), mode, Console())
    path = report.keep(options.results, "repeated", (__doc__ or "").splitlines()[0], {"rows": rows})
    Console().print(f"saved as {path}", highlight=False)
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.repeated", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = Path("../shared/data")
    parser.add_argument("--data", type=Path, default=data / "maskbench-dev.jsonl.gz", help="the cases")
    parser.add_argument("--vocabulary", type=Path, default=data / "llama3.tiktoken", help="the ranks of Llama 3")
    parser.add_argument("--sample", type=int, default=500, metavar="N", help="so many schemas (500)")
    parser.add_argument("--engines", default=",".join(ENGINES), metavar="A,B", help=", ".join(ENGINES))
    parser.add_argument("--modes", default="steady", metavar="A,B", help="steady, forked (steady)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (0)")
    parser.add_argument("--seconds", type=float, default=10.0, help="limit per schema (10)")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results", help="folder for the JSON")
    return parser.parse_args(arguments)


def run(engine: Engine, schemas: list[str], guard: Guard, mode: str) -> Times:
    """Nanoseconds by road, over the schemas that the engine takes."""
    if isinstance(engine, Constrain):
        engine.constrain.store.recent.most, engine.constrain.store.programs.most = 64, 1 << 20
    warm = partial(warm_up, engine)
    warm()
    work = partial(guarded, limits=guard, fresh=mode == "forked", begin=warm if mode == "steady" else None)
    times: Times = {COLD: [], SAME: []}
    for _, outcome in work(partial(twice, engine), schemas):
        if outcome is not None and not isinstance(outcome, Failure):
            times[COLD].append(outcome[0])
            times[SAME].append(outcome[1])
    if isinstance(engine, Constrain):
        later = work(partial(once, engine), schemas)
        times[DISK] = [outcome for _, outcome in later if outcome is not None and not isinstance(outcome, Failure)]
    return times


def warm_up(engine: Engine) -> None:
    """Imports, kernels and the pages of both are not a schema's cost."""
    for k in range(WARMING):
        first_mask(engine, WARM.schema.replace("name", f"name {k}"))


def first_mask(engine: Engine, schema: str) -> int:
    """Nanoseconds from the text of a schema to the first mask. Raises Refused."""
    begin = process_time_ns()
    engine.compile(schema)
    engine.start()
    engine.mask()
    return process_time_ns() - begin


def twice(engine: Engine, schema: str) -> tuple[int, int] | None:
    """The first time and again; None if the engine refuses the schema."""
    try:
        cold = first_mask(engine, schema)
    except Refused:
        return None
    again = []
    for _ in range(AGAIN):
        first_mask(engine, WARM.schema)
        again.append(first_mask(engine, schema))
    if isinstance(engine, Constrain):
        engine.constrain.store.programs.flush()
    return cold, int(np.median(again))


def once(engine: Constrain, schema: str) -> int | None:
    """In a process that knows of the schema only what is on disk."""
    try:
        return first_mask(engine, schema)
    except Refused:
        return None


def summarise(found: dict[str, Times], mode: str) -> list[dict[str, Any]]:
    """A row for each engine and road, in µs."""
    base = float(np.median(found["llguidance"][COLD])) if found.get("llguidance", {}).get(COLD) else None
    rows = []
    for name, times in found.items():
        for road, values in times.items():
            us = np.array(values) / 1_000
            row: dict[str, Any] = {"mode": mode, "engine": name, "road": road, "schemas": len(us)}
            row["mean"] = float(us.mean())
            row |= {label: float(np.percentile(us, at)) for label, at in QUANTILES.items()}
            row["p50 in parts of llguidance's first"] = None if base is None else row["p50"] * 1_000 / base
            rows.append(row)
    return rows


def show(rows: list[dict[str, Any]], schemas: int, mode: str, console: Console) -> None:
    """Prints the table."""
    title = f"µs (CPU) from the text of a schema to its first mask, of {schemas:,} schemas those that it takes; {mode}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for label in list(rows[0])[1:]:
        table.add_column(label, justify="left" if label in ("engine", "road") else "right")
    for row in (row for row in rows if row["mode"] == mode):
        values = [f"{v:,.2f}" if isinstance(v, float) and v < 10 else f"{v:,.0f}" if v is not None else "-"
                  for v in list(row.values())[3:]]  # fmt: skip
        table.add_row(row["engine"], row["road"], *values)
    console.width = max(console.width, 118)
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
