"""How much memory do a prepared vocabulary and a Constraint take, beside the peers?

    python -m bench memory

Memory is the growth of the private pages of a process (Linux: Private of smaps_rollup): reserved pages that are never
written do not count, pages of numpy, Python and C++ do. Each engine has a process of its own. `prepared` is everything
from the file of ranks to the first mask, with packages loaded before. Then all schemas are compiled, matched along
their instances and retained: `a schema` is the growth of the process. As an allocator with free space does not grow,
see also the mean.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import tracemalloc
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .corpus import Llama3
from .engines import ENGINES
from .measure import WARM, Job, measure_schema, tokenise_case
from .options import build_parser, read_cases
from .process_figures import read_private_memory
from .record import write_result
from .tables import print_rows
from .workers import Failure, Guard, run_guarded, run_in_child

MEMORY = 64 << 30
QUANTILES = {"p50": 50, "p90": 90, "max": 100}
PACKAGES = {
    "constrain": ("constrain.engine.matcher",),
    "llguidance": ("llguidance", "tiktoken"),
    "xgrammar": ("xgrammar", "torch"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return the exit code."""
    shared = ("data", "vocabulary", "sample", "ids", "seed", "seconds", "results")
    chosen = ["constrain", "constrain-any", "llguidance", "xgrammar"]
    parser = build_parser("memory", __doc__, *shared, engines=ENGINES, engines_default=chosen, sample=100)
    options = parser.parse_args(arguments)
    cases = read_cases(options)
    vocabulary = Llama3(options.vocabulary)
    jobs = [tokenise_case(case, vocabulary) for case in cases]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CONSTRAIN_STORE"] = folder
        for name in options.engines:
            run_in_child(partial(measure_preparation, name, vocabulary))  # writes the files of the store
            row = run_in_child(partial(measure_preparation, name, vocabulary))
            rows.append({**row, **measure_schemas(name, jobs, vocabulary, options)})
        parts = run_in_child(partial(measure_parts, options.vocabulary))
    print_rows("MB of a process's own pages", rows)
    print_rows("of constrain's prepared vocabulary", [{"part": part, "MB": size} for part, size in parts.items()])
    write_result(options, {"rows": rows, "prepared, by part": parts})
    return 0


def measure_preparation(name: str, vocabulary: Llama3) -> dict[str, Any]:
    """Return the MB that an engine uses for the vocabulary, up to a first mask."""
    from importlib import import_module

    for package in PACKAGES[name.split("-")[0]]:
        import_module(package)
    if name.startswith("constrain"):
        from constrain import Vocabulary, compile

        compile(Vocabulary.bytes(), schema=WARM.schema).matcher().mask()
    else:
        vocabulary.tokens  # noqa: B018  loads the tokens
    gc.collect()
    begin = read_private_memory()
    engine = ENGINES[name](vocabulary)
    engine.compile("{}")
    engine.start()
    engine.mask()
    gc.collect()
    return {"engine": name, "prepared MB": (read_private_memory() - begin) / 1e6}


def measure_schemas(name: str, jobs: list[Job], vocabulary: Llama3, options: argparse.Namespace) -> dict[str, Any]:
    """Return the MB of a schema after its instances were matched."""
    engine = ENGINES[name](vocabulary)
    retained: list[Any] = []

    def begin() -> None:
        for _ in range(4):
            measure_growth(tokenise_case(WARM, vocabulary))

    def measure_growth(job: Job) -> float | None:
        gc.collect()
        before = read_private_memory()
        result = measure_schema(engine, job)
        if result.refused or result.error:
            return None
        retained.append(dict(vars(engine)))
        gc.collect()
        return (read_private_memory() - before) / 1e6

    guard = Guard(options.seconds, MEMORY, "cpu")
    outcomes = [outcome for _, outcome in run_guarded(measure_growth, jobs, limits=guard, fresh=False, begin=begin)]
    found = [outcome for outcome in outcomes if outcome is not None and not isinstance(outcome, Failure)]
    row = {"schemas": len(found), "a schema, MB: mean": float(np.mean(found))}
    return row | {label: float(np.percentile(found, at)) for label, at in QUANTILES.items()}


def measure_parts(ranks: Path) -> dict[str, float]:
    """Return the MB of a prepared vocabulary by part, as reported by Python and numpy."""
    from constrain import Vocabulary
    from constrain.compilation.compile_caches import recent
    from constrain.kernels import layout as at
    from constrain.vocabulary.mask_table_cache import find_mask_table

    Vocabulary.from_tiktoken(ranks)
    tracemalloc.start()
    vocabulary = Vocabulary.from_tiktoken(ranks)
    objects = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    table = find_mask_table(vocabulary)
    used = {slot: array.nbytes for slot, array in table.snapshot().items()}
    names = {
        "rows of bits": (at.ROWS,),
        "trie and remainders": (at.TRIE, at.TRIE_EDGES, at.TRIE_TOKENS, at.TRIE_END, at.BELOW),
    }
    parts = {"Vocabulary: tokens, blob, offsets": objects / 1e6}
    for name, slots in names.items():
        parts[name] = sum(used.pop(slot) for slot in slots) / 1e6
    parts["leaf states and the rest"] = sum(used.values()) / 1e6
    parts["bytes of the tokens once more, for kernels"] = table.arrays[at.BLOB].nbytes / 1e6
    parts["bound of all Constraints kept in a process"] = recent.most_bytes / 1e6
    return parts


if __name__ == "__main__":
    sys.exit(main())
