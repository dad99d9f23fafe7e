"""How much memory do a prepared vocabulary and a Constraint take, beside the peers, and what bounds what is kept?

    python -m bench.memory --data ../shared/data/maskbench-dev.jsonl.gz --vocabulary ../shared/data/llama3.tiktoken

Memory is growth of the pages that are a process's own (Linux: Private of smaps_rollup): what was reserved and never
written does not count, what numpy, Python or C++ holds does. Each engine has a process of its own: `prepared`
is all from the file of ranks to the first mask, packages loaded before. Then schema after schema is compiled, all its
instances are walked, and it is kept: `a schema` is by how much the process grew. An engine whose allocator has room
left from before grows by nothing now and then, so look at the mean too.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from . import report
from .corpus import Llama3, choose, load
from .engines import ENGINES
from .measure import WARM, Job, job_of, measure
from .vocabulary import in_process, private
from .workers import Failure, Guard, guarded

MEMORY = 64 << 30
QUANTILES = {"p50": 50, "p90": 90, "max": 100}
PACKAGES = {
    "constrain": ("numba", "constrain.engine.matcher"),
    "llguidance": ("llguidance", "tiktoken"),
    "xgrammar": ("xgrammar", "torch"),
}


def main(arguments: list[str] | None = None) -> int:
    """Runs it; 0."""
    options = parse(arguments)
    cases = choose(load(options.data), sample=options.sample, seed=options.seed)
    vocabulary = Llama3(options.vocabulary)
    jobs = [job_of(case, vocabulary) for case in cases]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CONSTRAIN_STORE"] = folder
        for name in options.engines.split(","):
            in_process(partial(prepared, name, vocabulary))  # what is kept on disk is there from now on
            rows.append({**in_process(partial(prepared, name, vocabulary)), **schemas(name, jobs, vocabulary, options)})
        parts = in_process(partial(taken_apart, options.vocabulary))
    show(rows, parts, Console())
    path = report.keep(
        options.results, "memory", (__doc__ or "").splitlines()[0], {"rows": rows, "prepared, by part": parts}
    )
    Console().print(f"saved as {path}", highlight=False)
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.memory", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = Path("../shared/data")
    parser.add_argument("--data", type=Path, default=data / "maskbench-dev.jsonl.gz", help="the cases")
    parser.add_argument("--vocabulary", type=Path, default=data / "llama3.tiktoken", help="the ranks of Llama 3")
    parser.add_argument("--engines", default=",".join(ENGINES), metavar="A,B", help=", ".join(ENGINES))
    parser.add_argument("--sample", type=int, default=100, metavar="N", help="so many schemas (100)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (0)")
    parser.add_argument("--seconds", type=float, default=10.0, help="limit per schema (10)")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results", help="folder for the JSON")
    return parser.parse_args(arguments)


def prepared(name: str, vocabulary: Llama3) -> dict[str, Any]:
    """MB that an engine takes for the vocabulary, up to a first mask."""
    from importlib import import_module

    for package in PACKAGES[name.removesuffix("-any")]:
        import_module(package)
    if name.startswith("constrain"):
        from constrain import Vocabulary, compile

        compile(Vocabulary.bytes(), schema=WARM.schema).matcher().mask()
    else:
        vocabulary.tokens  # noqa: B018  what its road begins with
    gc.collect()
    begin = private()
    engine = ENGINES[name](vocabulary)
    engine.compile("{}")
    engine.start()
    engine.mask()
    gc.collect()
    return {"engine": name, "prepared MB": (private() - begin) / 1e6}


def schemas(name: str, jobs: list[Job], vocabulary: Llama3, options: argparse.Namespace) -> dict[str, Any]:
    """MB that a schema takes, walked and kept."""
    engine = ENGINES[name](vocabulary)
    kept: list[Any] = []

    def begin() -> None:
        for _ in range(4):
            grown(job_of(WARM, vocabulary))

    def grown(job: Job) -> float | None:
        gc.collect()
        before = private()
        result = measure(engine, job)
        if result.refused or result.error:
            return None
        kept.append(dict(vars(engine)))
        gc.collect()
        return (private() - before) / 1e6

    guard = Guard(options.seconds, MEMORY, "cpu")
    outcomes = [outcome for _, outcome in guarded(grown, jobs, limits=guard, fresh=False, begin=begin)]
    found = [outcome for outcome in outcomes if outcome is not None and not isinstance(outcome, Failure)]
    row = {"schemas": len(found), "a schema, MB: mean": float(np.mean(found))}
    return row | {label: float(np.percentile(found, at)) for label, at in QUANTILES.items()}


def taken_apart(ranks: Path) -> dict[str, float]:
    """MB of a prepared vocabulary by part, as Python and numpy count them."""
    from constrain import Vocabulary
    from constrain.engine.caches import recent
    from constrain.kernels import layout as at
    from constrain.vocabulary.mask_table_cache import table_of

    Vocabulary.from_tiktoken(ranks)
    tracemalloc.start()
    vocabulary = Vocabulary.from_tiktoken(ranks)
    objects = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    table = table_of(vocabulary)
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


def show(rows: list[dict[str, Any]], parts: dict[str, float], console: Console) -> None:
    """Prints the tables."""
    console.width = max(console.width, report.WIDTH)
    table = Table(title="MB of a process's own pages", title_justify="left", box=SIMPLE_HEAD)
    for label in rows[0]:
        table.add_column(label, justify="left" if label == "engine" else "right")
    for row in rows:
        table.add_row(*(f"{v:,.2f}" if isinstance(v, float) else str(v) for v in row.values()))
    console.print(table)
    inner = Table(title="of constrain's prepared vocabulary", title_justify="left", box=SIMPLE_HEAD)
    inner.add_column("part")
    inner.add_column("MB", justify="right")
    for name, value in parts.items():
        inner.add_row(name, f"{value:,.1f}")
    console.print(inner)


if __name__ == "__main__":
    sys.exit(main())
