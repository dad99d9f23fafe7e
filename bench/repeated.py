"""What does a schema cost that was compiled before, from its text to the first mask, in this process or an earlier one?

    python -m bench repeated --sample 500

Each engine compiles the same schemas in a process in which its vocabulary is prepared, each for the first time and then
again, with another schema in between; constrain also in a second such process, which uses the files that the first has
written. With --modes forked every schema has a forked process of its own: each engine then also pays for copying pages
that it shares with its parent and writes to (some 500 for constrain), with and without files. XGrammar's cache is on;
llguidance has none. Times are CPU times. Only rows of one run may be compared.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from time import process_time_ns
from typing import Any

import numpy as np

from .corpus import Llama3
from .engines import ENGINES, Constrain, Engine, Refused
from .measure import WARM, make_first_mask
from .options import build_parser, read_cases, split_names
from .record import write_result
from .tables import print_rows
from .workers import Failure, Guard, run_guarded

AGAIN = 5
"""Number of times that a schema is compiled again; the median counts."""
WARMING = 10
MEMORY = 64 << 30
"""Address space that a process may reserve: constrain reserves more than it uses."""
COLD, SAME, DISK = "the first time", "again, same process", "again, later process"
QUANTILES = {"p50": 50, "p90": 90, "p99": 99}
MODES = ("steady", "forked")
Times = dict[str, list[int]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return the exit code."""
    shared = ("data", "vocabulary", "sample", "ids", "seed", "seconds", "results")
    parser = build_parser("repeated", __doc__, *shared, engines=ENGINES, sample=500)
    parser.add_argument("--modes", type=split_names(MODES), default=["steady"], metavar="A,B", help=", ".join(MODES))
    options = parser.parse_args(arguments)
    schemas = [case.schema for case in read_cases(options)]
    vocabulary = Llama3(options.vocabulary)
    guard = Guard(options.seconds, MEMORY, "cpu")
    rows = []
    for mode in options.modes:
        found: dict[str, Times] = {}
        with tempfile.TemporaryDirectory() as folder:
            os.environ["CONSTRAIN_STORE"] = folder
            for name in options.engines:
                found[name] = time_schemas(ENGINES[name](vocabulary), schemas, guard, mode)
        rows += summarise_times(found, mode)
    print_rows(f"µs (CPU) from the text of a schema to its first mask, {len(schemas):,} schemas", rows, 3)
    write_result(options, {"rows": rows})
    return 0


def time_schemas(engine: Engine, schemas: list[str], guard: Guard, mode: str) -> Times:
    """Return nanoseconds by kind of compilation, over the schemas that the engine compiles."""
    if isinstance(engine, Constrain):
        from constrain.compilation.compile_caches import programs, recent

        recent.most, programs.most = 64, 1 << 20
    warm = partial(warm_up, engine)
    warm()
    work = partial(run_guarded, limits=guard, fresh=mode == "forked", begin=warm if mode == "steady" else None)
    times: Times = {COLD: [], SAME: []}
    for _, outcome in work(partial(time_twice, engine), schemas):
        if outcome is not None and not isinstance(outcome, Failure):
            times[COLD].append(outcome[0])
            times[SAME].append(outcome[1])
    if isinstance(engine, Constrain):
        later = work(partial(time_once, engine), schemas)
        times[DISK] = [outcome for _, outcome in later if outcome is not None and not isinstance(outcome, Failure)]
    return times


def warm_up(engine: Engine) -> None:
    """Compile small schemas: imports, kernels and their pages are not part of the cost of a schema."""
    for k in range(WARMING):
        time_first_mask(engine, WARM.schema.replace("name", f"name {k}"))


def time_first_mask(engine: Engine, schema: str) -> int:
    """Return nanoseconds from the text of a schema to the first mask. Raises Refused."""
    begin = process_time_ns()
    make_first_mask(engine, schema)
    return process_time_ns() - begin


def time_twice(engine: Engine, schema: str) -> tuple[int, int] | None:
    """Return nanoseconds of the first compilation and of another; None if the engine refuses the schema."""
    try:
        cold = time_first_mask(engine, schema)
    except Refused:
        return None
    again = []
    for _ in range(AGAIN):
        time_first_mask(engine, WARM.schema)
        again.append(time_first_mask(engine, schema))
    if isinstance(engine, Constrain):
        from constrain.compilation.compile_caches import programs

        programs.flush()
    return cold, int(np.median(again))


def time_once(engine: Constrain, schema: str) -> int | None:
    """Return nanoseconds of a compilation in a process that has only files of the schema; None if it is refused."""
    try:
        return time_first_mask(engine, schema)
    except Refused:
        return None


def summarise_times(found: dict[str, Times], mode: str) -> list[dict[str, Any]]:
    """Return a row for each engine and kind of compilation, in µs."""
    base = float(np.median(found["llguidance"][COLD])) if found.get("llguidance", {}).get(COLD) else None
    rows = []
    for name, times in found.items():
        for compilation, values in times.items():
            us = np.array(values) / 1_000
            row: dict[str, Any] = {"mode": mode, "engine": name, "compilation": compilation, "schemas": len(us)}
            row["mean"] = float(us.mean())
            row |= {label: float(np.percentile(us, at)) for label, at in QUANTILES.items()}
            row["p50 in parts of llguidance's first"] = None if base is None else row["p50"] * 1_000 / base
            rows.append(row)
    return rows


if __name__ == "__main__":
    sys.exit(main())
