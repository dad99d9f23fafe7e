"""Does time stay flat as the numbers in a schema grow? constrain and its peers, 10 to 100,000, in one run.

    python -m bench scaling

Each row is a schema with one growing size and a text that depends on it (`growing.py`). Every point is the median of
REPEATS new processes, forked after the engine is prepared and warm (of one process if it takes a second): from the text
of the schema to the first mask, and mean and maximum of a step (mask and advance) along the text. After a failure
(refusal, limit of time or memory, text rejected) an engine is not run with larger sizes. The verdict is by the slope of
log time against log size: flat is at most FLAT, linear at most LINEAR. Results are printed and written as JSON and SVG.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console

from .corpus import Case, Instance, Llama3
from .curves import draw_plot
from .engines import ENGINES, Engine
from .growing import ROWS, SIZES
from .measure import CLOCKS, WARM, Job, Result, measure_schema, tokenise_case
from .options import build_parser, split_names
from .record import write_result
from .tables import build_table, print_table
from .workers import Failure, Guard, run_guarded, stream_from_child

FLAT, LINEAR = 0.1, 1.1
REPEATS = 3
SLOW = 1_000_000_000
"""Nanoseconds after which a point is not repeated."""
FIGURES = ("first mask", "step mean", "step max")


@dataclass(frozen=True)
class Point:
    """µs of one engine at one size, or the failure."""

    row: str
    size: int
    engine: str
    times: dict[str, float] = field(default_factory=dict)
    failed: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return the exit code."""
    shared = ("vocabulary", "seconds", "mebibytes", "clock", "core", "results")
    parser = build_parser("scaling", __doc__, *shared, engines=ENGINES, mebibytes=4096)
    parser.add_argument("--rows", type=split_names(ROWS), default=list(ROWS), metavar="A,B", help=", ".join(ROWS))
    parser.add_argument("--most", type=int, default=max(SIZES), help="the largest size")
    options = parser.parse_args(arguments)
    console = Console(stderr=True)
    vocabulary = Llama3(options.vocabulary)
    jobs = {
        row: {size: build_job(row, size, vocabulary) for size in SIZES if size <= options.most} for row in options.rows
    }
    points: list[Point] = []
    for name in options.engines:
        with console.status(f"{name}: preparing") as status:
            for point in stream_from_child(partial(host_engine, name, jobs, vocabulary, options), name):
                points.append(point)
                status.update(f"{name}: {point.row}, {point.size:,}")
    rows = summarise_points(points)
    print_points(points, rows, Console())
    path = write_result(options, {"points": [vars(point) for point in points], "rows": rows})
    for figure in FIGURES:
        plot = path.with_name(f"{path.stem}-{figure.replace(' ', '-')}.svg")
        draw_plot(plot, f"{figure}, by size", "size", "µs", group_curves(points, figure))
    return 0


def build_job(row: str, size: int, vocabulary: Llama3) -> Job:
    """Return a schema of a size with its text."""
    grown = ROWS[row].make(size)
    return tokenise_case(Case(f"{row}, {size}", grown.schema, (Instance(grown.text, True),)), vocabulary)


def host_engine(
    name: str, jobs: dict[str, dict[int, Job]], vocabulary: Llama3, options: argparse.Namespace
) -> Iterator[Point]:
    """Prepare one engine and yield its points."""
    os.sched_setaffinity(0, {options.core})
    engine = ENGINES[name](vocabulary)
    measure_schema(engine, tokenise_case(WARM, vocabulary))
    for row, sizes in jobs.items():
        yield from grow_row(engine, name, row, sizes, vocabulary, options)


def grow_row(
    engine: Engine, name: str, row: str, sizes: dict[int, Job], vocabulary: Llama3, options: argparse.Namespace
) -> Iterator[Point]:
    """Yield the points of one engine and one row, up to the first failure."""
    guard = Guard(options.seconds, options.mebibytes << 20, options.clock)
    warm = tokenise_case(WARM, vocabulary)

    def begin() -> None:
        measure_schema(engine, warm)

    for size, one in sizes.items():
        outcomes = []
        for _, outcome in run_guarded(
            partial(measure_schema, engine, clock=CLOCKS[options.clock]),
            [one] * REPEATS,
            limits=guard,
            fresh=True,
            begin=begin,
        ):
            if failed := explain_failure(outcome, ROWS[row].whole):
                yield Point(row, size, name, failed=failed)
                return
            outcomes.append(outcome)
            if outcome.first + sum(outcome.steps) > SLOW:
                break
        yield Point(row, size, name, compute_medians(outcomes))


def explain_failure(outcome: Result | Failure, whole: bool) -> str:
    """Return the failure of a point, or "". whole: whether the text must be accepted to its end."""
    if isinstance(outcome, Failure):
        return {"timeout": "out of time", "memory": "out of memory", "crash": f"crash: {outcome.detail}"}[outcome.kind]
    if outcome.refused:
        return f"refused: {outcome.refused[0]}"
    if outcome.error:
        return outcome.error
    return "rejected the text" if outcome.rejected and whole else ""


def compute_medians(outcomes: list[Result]) -> dict[str, float]:
    """Return medians over the repeats, in µs."""
    steps = [np.asarray(outcome.steps) / 1_000 for outcome in outcomes]
    return {
        "first mask": float(np.median([outcome.first / 1_000 for outcome in outcomes])),
        "step mean": float(np.median([values.mean() for values in steps])),
        "step max": float(np.median([values.max() for values in steps])),
    }


def compute_slope(sizes: list[int], values: list[float]) -> float | None:
    """Return the least-squares slope of log value against log size; None for fewer than three points."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0]) if len(sizes) >= 3 else None


def summarise_points(points: list[Point]) -> list[dict[str, Any]]:
    """Return a row for each kind of growth and engine: the sizes reached, the slopes, and the verdict."""
    rows = []
    for row, engine in dict.fromkeys((point.row, point.engine) for point in points):
        mine = [point for point in points if (point.row, point.engine) == (row, engine)]
        done = [point for point in mine if point.times]
        slopes = {
            figure: compute_slope([point.size for point in done], [point.times[figure] for point in done])
            for figure in FIGURES
        }
        limits = {"first mask": FLAT if ROWS[row].constant else LINEAR, "step mean": FLAT}
        over = [
            figure for figure, most in limits.items() if (found := slopes[figure]) is not None and not found <= most
        ]
        lacking = any(slopes[figure] is None for figure in limits)
        rows.append({
            "row": row, "engine": engine, "reached": done[-1].size if done else 0,
            "failed": next((point.failed for point in mine if point.failed), ""), "slopes": slopes, "at most": limits,
            "verdict": "not judged" if lacking else "grows: " + ", ".join(over) if over else "met",
        })  # fmt: skip
    return rows


def group_curves(points: list[Point], figure: str) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Return a panel for each kind of growth, with a curve for each engine; one without points retains its colour."""
    engines = list(dict.fromkeys(point.engine for point in points))
    return {
        row: {
            engine: [
                (float(point.size), point.times[figure])
                for point in points
                if point.row == row and point.engine == engine and point.times
            ] or [(float("nan"), float("nan"))]
            for engine in engines
        }
        for row in dict.fromkeys(point.row for point in points)
    }  # fmt: skip


def print_points(points: list[Point], rows: list[dict[str, Any]], console: Console) -> None:
    """Print a table of times, and one of slopes with their verdicts."""
    sizes = sorted({point.size for point in points})
    found = {(point.row, point.engine, point.size): point for point in points}
    title = "first mask / mean of a step / slowest step, in µs where no other unit stands"
    table = build_table(title, ("row", "engine"), [f"{size:,}" for size in sizes])
    for row in rows:
        cells = (format_point(found.get((row["row"], row["engine"], size))) for size in sizes)
        table.add_row(row["row"], row["engine"], *cells)
    print_table(table, console)
    table = build_table("slope of log time against log size", ("row", "engine"), (*FIGURES, "up to"))
    table.add_column("verdict")
    table.add_column("why no further")
    for row in rows:
        slopes = ("-" if value is None else f"{value:.2f}" for value in row["slopes"].values())
        table.add_row(row["row"], row["engine"], *slopes, f"{row['reached']:,}", row["verdict"], row["failed"][:60])
    print_table(table, console)


def format_point(point: Point | None) -> str:
    """Return a point as text."""
    if point is None or not point.times:
        return "-" if point is None else "failed"
    return " / ".join(format_microseconds(value) for value in point.times.values())


def format_microseconds(us: float) -> str:
    """Return µs as text: "6.8", "540", "27 ms", "1.8 s"."""
    for least, unit in ((1e6, " s"), (1e4, " ms")):
        if us >= least:
            value = us * (1e-6 if unit == " s" else 1e-3)
            return f"{value:.1f}{unit}" if value < 10 else f"{value:.0f}{unit}"
    return f"{us:,.0f}" if us >= 10 else f"{us:.1f}"


if __name__ == "__main__":
    sys.exit(main())
