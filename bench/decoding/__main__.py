"""How fast is generation under constraints, and are answers valid? Our Engine, and the peers inside transformers.

    python -m bench decoding --parts plain,forced,drafts,batches,budgets --models demo,random-100m,random-1b

plain      tokens per second under a constraint over tokens per second without one, no drafts; with the peers
forced     the same on the structured half of the schemas, for each way to handle forced text, and what limits it
drafts     tokens per second with drafts over those without, on texts that copy much of their prompt (demo model)
batches    32 rows under 32 constraints: the share of time outside the forward pass and the softmax; n=8 over n=1
budgets    five token budgets for each schema, from the shortest answer upward: valid answers, exceeded budgets
           (--budget-schemas 1000 --peer-schemas 100 takes 15 minutes)

All parts take about 20 minutes on two idle cores, and 6 GB of memory; larger models run fewer schemas and tokens.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from rich.console import Console

from ..corpus import Case
from ..options import build_parser, read_cases, split_names
from ..record import write_result
from ..tables import build_progress, print_rows
from .batches import measure_batch, measure_samples
from .budgets import count_least, measure_budgets
from .drafts import build_record_tasks, find_document_tasks, measure_drafts
from .forced import find_structured_half, measure_documents, measure_own_texts
from .models import EFFORTS, MODELS, count_parameters, load_bench_model
from .plain import measure_plain
from .timing import open_free_engine

PARTS = ("plain", "forced", "drafts", "batches", "budgets")
ROWS = 32
Rows = list[dict[str, Any]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts. Return the exit code."""
    import torch

    shared = ("data", "vocabulary", "sample", "seed", "repeat", "checkpoint", "results")
    parser = build_parser("decoding", __doc__, *shared, sample=20)
    parser.add_argument("--parts", type=split_names(PARTS), default=list(PARTS), metavar="A,B", help=", ".join(PARTS))
    parser.add_argument(
        "--models", type=split_names(MODELS), default=list(MODELS), metavar="A,B", help=", ".join(MODELS)
    )
    parser.add_argument("--tokens", type=int, default=64, help="max_tokens")
    parser.add_argument("--budget-schemas", type=int, default=100, help="schemas of the part budgets")
    parser.add_argument("--peer-schemas", type=int, default=20, help="how many of these the peers run, too")
    options = parser.parse_args(arguments)
    for name in options.models:
        loaded = load_bench_model(name, options.vocabulary, options.checkpoint)
        print(f"{name}: {count_parameters(loaded.model):,} parameters, {loaded.vocabulary.size:,} tokens")
        for part in options.parts:
            if part in ("drafts", "budgets") and name != "demo":
                continue
            with torch.no_grad():
                rows = RUNNERS[part](loaded, options, name)
            print_rows(f"{part}, {name}", rows)
            write_result(options, {"rows": rows}, f"{part}-{name}")
    return 0


def run_plain(loaded: Any, options: Any, name: str) -> Rows:
    """Run the part "plain"."""
    effort = EFFORTS[name]
    cases = read_sample(options, min(effort.schemas, options.sample))
    with ProgressBlock(f"plain, {name}", 4 * len(cases)) as step:
        return measure_plain(
            loaded, cases, most=min(effort.tokens, options.tokens), repeat=min(effort.repeat, options.repeat),
            prompt=effort.prompt, seed=options.seed, progress=step,
        )  # fmt: skip


def run_forced(loaded: Any, options: Any, name: str) -> Rows:
    """Run the part "forced". Random models write given documents only: their own texts mean nothing."""
    import constrain

    effort = EFFORTS[name]
    cases = read_sample(options, options.sample)
    with constrain.Engine(loaded) as engine, ProgressBlock(f"forced, {name}", 2 * len(cases)) as step:
        half, missing = find_structured_half(engine.vocabulary, cases, step)
        print(f"the structured half: {len(half)} of {len(cases)} schemas; {missing} have no document to write")
        shortest = sorted(half, key=lambda document: len(document.data))
        rows = measure_documents(
            engine, half if len(half) <= effort.documents else shortest[: effort.documents], styles=effort.styles,
            prompt=effort.prompt, seed=options.seed, progress=step,
        )  # fmt: skip
        if name == "demo":
            with open_free_engine(loaded) as unbound:
                rows += measure_own_texts(
                    engine, unbound, half, most=3 * options.tokens, seed=options.seed, progress=step
                )
        return rows


def run_drafts(loaded: Any, options: Any, name: str) -> Rows:
    """Run the part "drafts"."""
    import constrain

    count = max(options.sample // 4, 4)
    documents = find_document_tasks(read_sample(options, 20 * count), count)
    tasks = {"records": build_record_tasks(count, options.seed), "documents": documents}
    rows: Rows = []
    with constrain.Engine(loaded) as engine, ProgressBlock("drafts", 4 * count) as step:
        for task, some in tasks.items():
            for temperature in (0.0, 1.0):
                made = measure_drafts(
                    engine, some, most=4 * options.tokens, seed=options.seed, temperature=temperature, progress=step
                )
                rows += [{"task": task, **row} for row in made]
    return rows


def run_batches(loaded: Any, options: Any, name: str) -> Rows:
    """Run the part "batches"."""
    import constrain

    cases = read_sample(options, 8 * ROWS)
    effort = EFFORTS[name]
    with constrain.Engine(loaded, slots=ROWS) as engine:
        most = min(effort.tokens, options.tokens)
        usable = find_usable(engine, cases, most, ROWS)
        batch = measure_batch(engine, usable, most=most, seed=options.seed)
        repeat = min(effort.repeat, options.repeat)
        samples = measure_samples(engine, usable[0], most=most, repeat=repeat, seed=options.seed)
    return [{"model": name, **batch, **samples}]


def run_budgets(loaded: Any, options: Any, name: str) -> Rows:
    """Run the part "budgets"."""
    import constrain

    cases = read_sample(options, options.budget_schemas)
    with constrain.Engine(loaded) as engine, ProgressBlock("budgets", len(cases)) as step:
        rows, wrong = measure_budgets(
            engine, cases, most=200, peers=options.peer_schemas, seed=options.seed, progress=step
        )
    for line in wrong:
        print("invalid:", line)
    return rows


def find_usable(engine: Any, cases: Sequence[Case], most: int, count: int) -> list[Case]:
    """Return the first `count` cases that compile and whose shortest text has at most `most` tokens."""
    import constrain

    def fits(case: Case) -> bool:
        try:
            least = count_least(constrain.compile(engine.vocabulary, schema=case.schema))
        except constrain.ConstrainError:
            return False
        return least is not None and least <= most

    return list(islice(filter(fits, cases), count))


def read_sample(options: Any, count: int) -> list[Case]:
    """Read a sample of `count` cases."""
    options.sample, before = count, options.sample
    try:
        return read_cases(options)
    finally:
        options.sample = before


class ProgressBlock:
    """A progress bar on stderr as a context manager; it yields a function that advances the bar."""

    def __init__(self, title: str, total: int) -> None:
        self.bar, self.title, self.total = build_progress(Console(stderr=True)), title, total

    def __enter__(self) -> Callable[[], None]:
        self.bar.start()
        task = self.bar.add_task(self.title, total=self.total)
        return lambda: self.bar.advance(task)

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


RUNNERS: dict[str, Callable[[Any, Any, str], Rows]] = {
    "plain": run_plain, "forced": run_forced, "drafts": run_drafts, "batches": run_batches, "budgets": run_budgets,
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
