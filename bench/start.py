"""How long does a new process take to import constrain and make its first mask, and how much of it is numpy's import?

    python -m bench start

Each figure is the median over several new processes, wall and CPU time, with kernels compiled before and files in the
page cache. The import of numpy alone is the lower bound. Between `import constrain` and the first mask the library of
kernels is loaded, the vocabulary, the schema, with or without an entry of the store from an earlier process, and the
table of the vocabulary from the store. Bytecode is written as usual, unless PYTHONDONTWRITEBYTECODE is set.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from .options import build_parser
from .record import write_result
from .tables import build_table, print_table

SCHEMA = (
    '{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}'
)
PROGRAM = """
import json, sys, time
laps = {}
def lap(name, then=[time.perf_counter(), time.process_time()]):
    now = [time.perf_counter(), time.process_time()]
    laps[name] = [1e3 * (a - b) for a, b in zip(now, then)]
    then[:] = now
%s
json.dump(laps, sys.stdout)
"""
FLOOR = """
import numpy; lap("numpy")
"""
IMPORTS = """
import constrain; lap("import constrain")
import numpy; lap("numpy")
import constrain.kernels.entry_points; lap("kernels")
import constrain.engine.matcher; lap("engine")
"""
BYTES = """
vocabulary = constrain.Vocabulary.bytes(); lap("vocabulary")
"""
LLAMA = """
vocabulary = constrain.Vocabulary.from_tiktoken({ranks!r}); lap("vocabulary")
"""
COMPILE_SCHEMA = """
constraint = constrain.compile(vocabulary, schema={schema!r}); lap("compile")
"""
COMPILE_GRAMMAR = """
import constrain.grammars
constraint = constrain.compile(vocabulary, grammar=constrain.grammars.text("python")); lap("compile")
"""
MASK = """
from constrain.vocabulary.mask_table_cache import find_mask_table
find_mask_table(vocabulary); lap("table")
matcher = constraint.matcher(); lap("matcher")
matcher.mask(); lap("mask")
from constrain.compilation.compile_caches import flush_caches
flush_caches()
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return the exit code."""
    parser = build_parser("start", __doc__, "vocabulary", "results")
    parser.add_argument("--times", type=int, default=9, help="processes of each kind")
    options = parser.parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "CONSTRAIN_STORE": folder, "PYTHONDONTWRITEBYTECODE": ""}
        given = {"schema": SCHEMA, "ranks": str(options.vocabulary)}
        for what, text in (
            ("the floor: numpy", FLOOR),
            ("bytes as tokens", (IMPORTS + BYTES + COMPILE_SCHEMA + MASK).format(**given)),
            ("Llama 3", (IMPORTS + LLAMA + COMPILE_SCHEMA + MASK).format(**given)),
            ("Llama 3, python.lark", (IMPORTS + LLAMA + COMPILE_GRAMMAR + MASK).format(**given)),
        ):
            rows.append(measure_process(what, PROGRAM % text, environment, options.times))
    print_parts(rows)
    write_result(options, {"rows": rows})
    return 0


def measure_process(what: str, program: str, environment: dict[str, str], times: int) -> dict[str, Any]:
    """Return medians over several processes, {part: [wall ms, CPU ms]}; an additional first process fills the store."""
    found = []
    for _ in range(times + 1):
        said = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        found.append(json.loads(said.stdout))
    parts = {name: np.median([one[name] for one in found[1:]], axis=0).tolist() for name in found[0]}
    parts["all"] = np.median([np.sum(list(one.values()), axis=0) for one in found[1:]], axis=0).tolist()
    return {"process": what, "ms": parts, "first of all, ms": found[0]}


def print_parts(rows: list[dict[str, Any]]) -> None:
    """Print a table: parts down, processes across."""
    table = build_table("ms of a new process: wall (CPU)", ["part"], [row["process"] for row in rows])
    for name in dict.fromkeys(name for row in reversed(rows) for name in row["ms"]):
        cells = [row["ms"].get(name) for row in rows]
        table.add_row(name, *("" if cell is None else f"{cell[0]:,.1f} ({cell[1]:,.1f})" for cell in cells))
    print_table(table)


if __name__ == "__main__":
    sys.exit(main())
