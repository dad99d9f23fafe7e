"""What does a row of a batch cost: 1 to 512 texts at once, on one thread and on several, beside the peers?

    python -m bench batches

The rows are texts of the dev schemas, each at another position. A step makes the masks of all rows (timed) and advances
each row by a token (timed, too); for each step the fastest repeat counts, in wall time. `new`: schemas are compiled for
each repeat, so that no caches are filled (XGrammar's once: its matchers cache nothing). `known`: the schemas and the
same texts were processed before. The number of threads is the maximum that an engine may use.

Two threads need two idle cores. The last line of each table does not: both shares run one after the other, and the CPU
time of the longer one counts. This is the time that two threads take on an idle machine.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from time import perf_counter_ns, thread_time_ns
from typing import Any

import numpy as np

from .corpus import Case, Llama3
from .curves import draw_plot
from .engines import WORDS, ConstrainAny, Engine, Llguidance, Refused, Xgrammar, is_allowed
from .measure import accepts_instance
from .options import build_parser, read_cases
from .record import write_result
from .tables import build_table, print_table

SIZES = (1, 8, 64, 512)
STEPS = 24
LONGEST = 200
KINDS = {"16 schemas, new": (16, False), "16 schemas, known": (16, True), "one schema, known": (1, True)}
"""Number of schemas, and whether they were processed before."""
SHARES = -2
"""Instead of a number of threads: the two shares of ours, one after the other."""

Ints = np.ndarray[Any, Any]
Text = tuple[str, list[int]]
"""A schema and the tokens of an instance of it."""


class Batch:
    """Matchers of one engine, one for each row.

    fill: writes all masks to `words`, int32 [rows, WORDS]. advance: advances one row by a token. advance_all: advances
    each row by its token, with one call if the engine has such a function.
    """

    def __init__(
        self,
        fill: Callable[[], object],
        advance: Callable[[int, int], object],
        advance_all: Callable[[Sequence[int]], object] | None = None,
    ) -> None:
        self.fill, self.advance = fill, advance
        self.advance_all = self.advance_each if advance_all is None else advance_all

    def advance_each(self, tokens: Sequence[int]) -> None:
        """Advance one row after the other."""
        for index, token in enumerate(tokens):
            self.advance(index, token)


def build_constrain_batch(
    engine: ConstrainAny, known: dict[str, Any], texts: Sequence[Text], words: Ints, threads: int
) -> Batch:
    """Build a batch of constrain: fill_masks and advance_all, or single matchers if threads is 0."""
    from constrain import advance_all, fill_masks

    for schema, _ in texts:
        if schema not in known:
            engine.compile(schema)
            known[schema] = engine.constraint
    matchers = [known[schema].matcher() for schema, _ in texts]
    rows = list(words)

    def fill_each() -> None:
        for matcher, row in zip(matchers, rows):
            matcher.mask(row)

    fill_all = lambda: fill_masks(matchers, words, threads=abs(threads))  # noqa: E731
    return Batch(
        fill_all if threads else fill_each,
        lambda index, token: matchers[index].advance(token),
        (lambda tokens: advance_all(matchers, tokens)) if threads else None,
    )


@contextmanager
def run_shares_in_turn(spent: list[int]) -> Iterator[None]:
    """Run the shares of workers one after the other within the block, and append the ns of CPU time of
    each to `spent`.
    """
    fill: Any = import_module("constrain.engine.batches.parallel_fill")

    def run_in_turn(tasks: Sequence[Callable[[], object]]) -> None:
        for task in tasks:
            start = thread_time_ns()
            task()
            spent.append(thread_time_ns() - start)

    together, fill.run_together = fill.run_together, run_in_turn
    try:
        yield
    finally:
        fill.run_together = together


def build_llguidance_batch(
    engine: Llguidance, known: dict[str, Any], texts: Sequence[Text], words: Ints, threads: int
) -> Batch:
    """Build a batch of llguidance: LLExecutor, or single matchers if threads is 0."""
    from llguidance import LLExecutor

    for schema, _ in texts:
        if schema not in known:
            engine.compile(schema)
            known[schema] = engine.root
    matchers = [known[schema].deep_copy() for schema, _ in texts]
    executor = LLExecutor(max(1, threads))
    pairs = [(matcher, index) for index, matcher in enumerate(matchers)]
    width, address = words.strides[0], words.ctypes.data

    def fill_each() -> None:
        for index, matcher in enumerate(matchers):
            matcher.unsafe_compute_mask_ptr(address + width * index, width)

    fill_all = lambda: executor.unsafe_compute_mask_ptr(pairs, address, width, len(pairs))  # noqa: E731
    return Batch(
        fill_all if threads else fill_each,
        lambda index, token: matchers[index].consume_token(token),
        (lambda tokens: executor.consume_token_par(list(zip(matchers, tokens)))) if threads else None,
    )


def build_xgrammar_batch(
    engine: Xgrammar, known: dict[str, Any], texts: Sequence[Text], words: Ints, threads: int
) -> Batch:
    """Build a batch of XGrammar: BatchGrammarMatcher, or single matchers if threads is 0."""
    import torch
    import xgrammar

    known = engine.__dict__.setdefault("known", known)
    for schema, _ in texts:
        if schema not in known:
            engine.compile(schema)
            known[schema] = engine.compiled
    matchers = [xgrammar.GrammarMatcher(known[schema]) for schema, _ in texts]
    batch = xgrammar.BatchGrammarMatcher(max_threads=max(1, threads))
    bits = torch.from_numpy(words)

    def fill_each() -> None:
        for index, matcher in enumerate(matchers):
            matcher.fill_next_token_bitmask(bits, index)

    fill_all = lambda: batch.batch_fill_next_token_bitmask(matchers, bits)  # noqa: E731
    return Batch(
        fill_all if threads else fill_each,
        lambda index, token: matchers[index].accept_token(token),
        (lambda tokens: batch.batch_accept_token(matchers, tokens)) if threads else None,
    )


ENGINES: dict[str, tuple[Callable[[Llama3], Any], Callable[..., Batch]]] = {
    "constrain": (ConstrainAny, build_constrain_batch),
    "llguidance": (Llguidance, build_llguidance_batch),
    "xgrammar": (Xgrammar, build_xgrammar_batch),
}


def select_texts(cases: Sequence[Case], engines: Sequence[Engine], vocabulary: Llama3, count: int) -> list[Text]:
    """Return the first `count` schemas with a valid text of suitable length that all engines accept."""
    found: list[Text] = []
    for case in cases:
        for test in case.tests:
            tokens = vocabulary.encode(test.text)
            if (
                test.valid
                and 2 * STEPS <= len(tokens) <= LONGEST
                and all(accepts_text(one, case, tokens) for one in engines)
            ):
                found.append((case.schema, tokens))
                break
        if len(found) == count:
            return found
    raise SystemExit(f"only {len(found)} of {count} schemas have a text that all engines accept")


def accepts_text(engine: Engine, case: Case, tokens: list[int]) -> bool:
    """Return whether the engine compiles the schema and accepts the text."""
    try:
        engine.compile(case.schema)
    except Refused:
        return False
    return accepts_instance(engine, tokens, array("q"))


def measure_steps(
    make: Callable[..., Batch], engine: Engine, is_known: bool, texts: Sequence[Text], threads: int, repeats: int
) -> tuple[list[float], list[float]]:
    """Return µs per row at each step, of masks and of advancing, the fastest of the repeats.

    Each row begins at another position of its text.
    """
    words = np.zeros((len(texts), WORDS), np.int32)
    best = np.full((2, STEPS), np.inf)
    known: dict[str, Any] = {}
    spent: list[int] = []
    for repeat in range(repeats + is_known):
        batch = make(engine, known if is_known else {}, texts, words, threads)
        offsets = []
        for index, (_, tokens) in enumerate(texts):
            begin = 5 * index % (len(tokens) - STEPS)
            for token in tokens[:begin]:
                batch.advance(index, token)
            offsets.append(begin)
        batch.fill()  # threads and state caches are created once and not part of the cost of a row
        for step in range(STEPS):
            with run_shares_in_turn(spent) if threads == SHARES else nullcontext():
                spent.clear()
                start = perf_counter_ns()
                batch.fill()
                taken = perf_counter_ns() - start
            chosen = [tokens[offset + step] for offset, (_, tokens) in zip(offsets, texts)]
            for index, token in enumerate(chosen):
                assert is_allowed(words[index], token), "a mask without the next token"
            start = perf_counter_ns()
            batch.advance_all(chosen)
            advanced = perf_counter_ns() - start
            if repeat >= is_known:
                best[:, step] = np.minimum(best[:, step], (max(spent) if spent else taken, advanced))
    masked, advanced_rows = (best / len(texts) / 1_000).tolist()
    return masked, advanced_rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return the exit code."""
    shared = ("data", "vocabulary", "sample", "seed", "repeat", "results")
    parser = build_parser("batches", __doc__, *shared, sample=400, seed=7)
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    options = parser.parse_args(arguments)
    vocabulary = Llama3(options.vocabulary)
    engines = {name: make(vocabulary) for name, (make, _) in ENGINES.items()}
    most = max(count for count, _ in KINDS.values())
    texts = select_texts(read_cases(options), list(engines.values()), vocabulary, most)
    runs = []
    for kind, (schemas, is_known) in KINDS.items():
        for size in SIZES:
            rows = [texts[index % schemas] for index in range(size)]
            repeats = options.repeat if size > 64 else 3 * options.repeat
            for name, (_, make) in ENGINES.items():
                for threads in (0, *map(int, options.threads.split(",")), *([SHARES] if name == "constrain" else [])):
                    if threads == SHARES and size == 1:
                        continue
                    steps, advances = measure_steps(make, engines[name], is_known, rows, threads, repeats)
                    runs.append({"schemas": kind, "rows": size, "engine": name, "threads": threads,
                                 "mean µs": float(np.mean(steps)), "p50 µs": float(np.median(steps)),
                                 "advance mean µs": float(np.mean(advances))})  # fmt: skip
    print_batches(runs)
    path = write_result(options, {"steps": STEPS, "clock": "wall, fastest repeat of each step", "runs": runs})
    plot_batches(path.with_suffix(".svg"), runs)
    return 0


def build_label(run: dict[str, Any]) -> str:
    """Build the label of a run: engine and number of threads."""
    labels = {0: "one by one", 1: "1 thread", SHARES: "longer of 2 shares"}
    return f"{run['engine']}, {labels.get(run['threads'], str(run['threads']) + ' threads')}"


def print_batches(runs: Sequence[dict[str, Any]]) -> None:
    """Print a table for each kind of batch: µs per row of the mask + of advancing, means over the steps."""
    for kind in KINDS:
        title = f"µs of a row, mask + advance (means over {STEPS} steps), {kind}"
        table = build_table(title, ["engine"], [f"{size} rows" for size in SIZES])
        chosen = [run for run in runs if run["schemas"] == kind]
        for label in dict.fromkeys(map(build_label, chosen)):
            found = {
                run["rows"]: f"{run['mean µs']:,.2f} + {run['advance mean µs']:,.2f}"
                for run in chosen
                if build_label(run) == label
            }
            table.add_row(label, *(found.get(size, "") for size in SIZES))
        print_table(table)


def plot_batches(path: Path, runs: Sequence[dict[str, Any]]) -> None:
    """Plot µs per row against the number of rows."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {kind: {} for kind in KINDS}
    for run in runs:
        panels[run["schemas"]].setdefault(build_label(run), []).append((run["rows"], run["mean µs"]))
    draw_plot(path, "masks of a batch", "rows", "µs a row", panels)


if __name__ == "__main__":
    sys.exit(main())
