"""Do twists of distilled models help SMC on real constraints? N-gram and hidden Markov models, as GeLaTo and Ctrl-G do.

    python -m bench faithful.distilled [--data ../shared/data/maskbench-dev.jsonl.gz] [--schemas 3] [--grammars 1]

For each constraint, the demo model writes `--texts` masked texts, from which an n-gram and a hidden Markov model are
distilled. Each is intersected with the constraint, truncated at `--threshold`, and used as twist and proposal of
populations of `--particles`, which are compared with masks alone. Printed: log of the mean of Z-hat, its spread
(standard deviation of log Z-hat, in nats), populations that died, effective particles at the end; of the distilled
models, seconds of CPU to sample and fit, and for the product; its states, its own log Z, and log of the mass that it
lost.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter, process_time
from typing import Any

import numpy as np
from rich.console import Console

from constrain.base.errors import ConstrainError
from constrain.sampling import Hmm, NGram
from constrain.sampling.particles import Prefixes, Twisted
from constrain.sampling.populations import Settings
from constrain.sampling.smc import grow_population
from constrain.sampling.twists import Future

from ..checkpoints import load_checkpoint
from ..options import build_parser, read_cases
from ..record import write_result
from ..tables import build_table, print_table
from .real import measure_spread
from .real_tasks import RealTask, pick_grammars, pick_schemas
from .verdicts import Verdict, format_verdict

Distiller = Callable[[RealTask, np.random.Generator, argparse.Namespace], Any]


def distil_ngram(task: RealTask, rng: np.random.Generator, options: argparse.Namespace) -> NGram:
    """Return the n-gram model of a task."""
    given = {"n": options.texts, "rng": rng, "max_tokens": task.max_tokens}
    return NGram.distil(task.lm, task.constraint, order=3, contexts=2000, **given)


def distil_hmm(task: RealTask, rng: np.random.Generator, options: argparse.Namespace) -> Hmm:
    """Return the hidden Markov model of a task."""
    given = {"n": options.texts, "rng": rng, "max_tokens": task.max_tokens}
    return Hmm.distil(task.lm, task.constraint, states=options.states, rounds=options.rounds, **given)


METHODS: dict[str, Distiller | None] = {"masks": None, "n-gram": distil_ngram, "HMM": distil_hmm}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return 1 if the twist of hidden Markov models spreads more than masks alone, else 0."""
    parser = build_parser(
        "faithful.distilled", __doc__, "data", "seed", "checkpoint", "results", checkpoint="demo", seed=1
    )
    parser.add_argument("--schemas", type=int, default=3, help="number of schemas")
    parser.add_argument("--grammars", type=int, default=1, help="number of grammars")
    parser.add_argument("--particles", type=int, default=16, help="particles of a population")
    parser.add_argument("--populations", type=int, default=12, help="populations of each kind")
    parser.add_argument("--texts", type=int, default=256, help="texts to distil from")
    parser.add_argument("--states", type=int, default=48, help="hidden states")
    parser.add_argument("--rounds", type=int, default=30, help="rounds of Baum-Welch")
    parser.add_argument("--threshold", type=float, default=1e-3, help="truncation threshold of the products")
    parser.add_argument("--tokens", type=int, default=64, help="max_tokens")
    parser.set_defaults(sample=None)
    options = parser.parse_args(arguments)
    console, begin, rows = Console(), perf_counter(), list[dict[str, Any]]()
    model = load_checkpoint(options.checkpoint)
    for task in [
        *pick_schemas(read_cases(options), model, options.schemas, options.tokens, options.seed),
        *pick_grammars(model, options.grammars, options.tokens, options.seed),
    ]:
        for row in measure_task(task, options):
            rows.append(row)
            console.print(f"{perf_counter() - begin:.0f} s: {describe_row(row)}", highlight=False, soft_wrap=True)
    print_rows(rows, console)
    verdict = judge_rows(rows)
    console.print(format_verdict(verdict), highlight=False)
    write_result(options, {"rows": rows, "verdict": verdict._asdict()})
    return 0 if verdict.met else 1


def measure_task(task: RealTask, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the figures of each method on one constraint; "refused" is why a product could not be made."""
    for number, (name, distil) in enumerate(METHODS.items()):
        row: dict[str, Any] = {"task": task.name, "method": name}
        settings, rng = Settings.of(task.max_tokens), np.random.default_rng([options.seed, number])
        if distil is not None:
            begin = process_time()
            small = distil(task, rng, options)
            row["fit"] = process_time() - begin
            try:
                twist = Future.of(small, task.constraint, max_tokens=task.max_tokens, threshold=options.threshold)
            except ConstrainError as error:
                yield {**row, "refused": str(error).splitlines()[0]}
                continue
            row |= {
                "product": process_time() - begin - row["fit"], "states": len(twist.product.automaton),
                "log z": twist.product.log_z, "log lost": twist.product.log_lost,
            }  # fmt: skip
            settings = Settings.of(task.max_tokens, move=Twisted(twist), twist=twist)
        prefixes, begin = Prefixes(task.lm, task.constraint), process_time()
        row["spread"] = measure_spread(
            lambda: grow_population(prefixes, options.particles, settings, rng),  # noqa: B023
            task,
            options.populations,
        )
        yield {**row, "run": process_time() - begin}


def describe_row(row: dict[str, Any]) -> str:
    """Return the main figures in one line."""
    if "refused" in row:
        return f"{row['task']}, {row['method']}: {row['refused']}"
    spread = row["spread"]
    return f"{row['task']}, {row['method']}: log Z {spread.log_z:.2f}, sd {spread.sd:.2f}, dead {spread.dead:.0%}"


def is_worse(twisted: Any, masks: Any) -> bool:
    """Return whether populations die more often with the twist than with masks, or spread more (by over 0.1 nats)."""
    return bool(twisted.dead > masks.dead or twisted.sd > masks.sd + 0.1)


def judge_rows(rows: list[dict[str, Any]]) -> Verdict:
    """Return the verdict on hidden Markov models."""
    masks = {row["task"]: row["spread"] for row in rows if row["method"] == "masks"}
    wrong = [
        row["task"]
        for row in rows
        if row["method"] == "HMM" and ("refused" in row or is_worse(row["spread"], masks[row["task"]]))
    ]
    return Verdict("a distilled HMM spreads no more than masks alone", not wrong, ", ".join(wrong) or "nowhere")


def print_rows(rows: list[dict[str, Any]], console: Console) -> None:
    """Print all rows as a table."""
    columns = ["log Z", "sd", "dead", "ess", "run s", "fit s", "product s", "states", "own log Z", "log lost"]
    table = build_table("Twists of distilled models", ["constraint", "method"], columns)
    for row in rows:
        if "refused" in row:
            continue
        spread = row["spread"]
        cells = [f"{spread.log_z:.2f}", f"{spread.sd:.2f}", f"{spread.dead:.0%}", f"{spread.ess:.1f}"]
        cells.append(f"{row['run']:.1f}")
        if "fit" in row:
            cells += [f"{row['fit']:.1f}", f"{row['product']:.1f}", str(row["states"])]
            cells += [f"{row['log z']:.2f}", f"{row['log lost']:.2f}"]
        table.add_row(row["task"], row["method"], *cells, *[""] * (len(columns) - len(cells)))
    print_table(table, console)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ConstrainError as error:
        sys.exit(str(error))
