"""Summarise a run of MaskBench: counts and quantiles per engine, as a table and as JSON.

    tables = summarise_runs(jobs, runs)     {"exactness": [row...], "time": [row...]}, JSON values only
    print_tables(tables, console)

There are two sets of times: over all schemas that the engine compiled, and over those that all engines compiled and
judged without a failure. Engines that refuse difficult schemas seem faster in the first; compare in the second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Union

import numpy as np
from rich.console import Console

from .measure import Job, Result
from .tables import build_table
from .workers import Failure

__all__ = ["compute_spread", "find_common", "list_failures", "print_tables", "summarise_runs"]

Runs = Mapping[tuple[str, str], Sequence[Union[Result, Failure]]]
QUANTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 99.9}
COLUMNS = ("passing", "refused", "valid rejected", "of them by key order alone", "invalid accepted", "crashes",
           "out of time", "out of memory")  # fmt: skip
MODE = ("engine", "mode")
IDLE = "preparation µs"
PREPARED = "prepared"
"""Column: mean µs of preparation in each step, which do not count for the step."""
OWN, COMMON = "all it compiled", "common to all"
WIDTH = 118
REASONS = 12
"""Maximum number of reasons of refusals that are printed per engine; the file has all."""


def summarise_runs(jobs: Sequence[Job], runs: Runs) -> dict[str, list[dict[str, Any]]]:
    """Return rows for the tables: exactness per engine and mode, times per engine, mode and set of schemas."""
    common = set(find_common(jobs, runs))
    times = []
    for scope, chosen in ((OWN, set(range(len(jobs)))), (COMMON, common)):
        for (name, mode), outcomes in runs.items():
            fields = [
                outcome
                for i, outcome in enumerate(outcomes)
                if i in chosen and isinstance(outcome, Result) and is_compiled(outcome)
            ]
            times.append({"engine": name, "mode": mode, "schemas": scope, **summarise_times(fields)})
    return {"exactness": [count_outcomes(*key, outcomes) for key, outcomes in runs.items()], "time": times}


def find_common(jobs: Sequence[Job], runs: Runs) -> list[int]:
    """Return the indices of the schemas that every engine compiled and completed, in every mode."""
    return [i for i in range(len(jobs)) if all(is_compiled(outcomes[i]) for outcomes in runs.values())]


def is_compiled(outcome: Result | Failure) -> bool:
    """Return whether the engine compiled the schema and completed all its instances."""
    return isinstance(outcome, Result) and outcome.refused is None and outcome.error is None


def count_outcomes(name: str, mode: str, outcomes: Sequence[Result | Failure]) -> dict[str, Any]:
    """Return counts of schemas by outcome; one may both reject a valid instance and accept an invalid one."""
    done = [outcome for outcome in outcomes if isinstance(outcome, Result)]
    failed = Counter(outcome.kind for outcome in outcomes if isinstance(outcome, Failure))
    good = [outcome for outcome in done if is_compiled(outcome)]
    whys = Counter(why for outcome in good for why in outcome.why)
    return {
        "engine": name,
        "mode": mode,
        "schemas": len(outcomes),
        "passing": sum(not outcome.rejected and not outcome.accepted for outcome in good),
        "refused": sum(outcome.refused is not None for outcome in done),
        "valid rejected": sum(bool(outcome.rejected) for outcome in good),
        "of them by key order alone": sum(
            bool(outcome.rejected) and set(outcome.why) == {"key order"} for outcome in good
        ),
        "invalid accepted": sum(bool(outcome.accepted) for outcome in good),
        "crashes": failed["crash"] + sum(outcome.error is not None for outcome in done),
        "out of time": failed["timeout"],
        "out of memory": failed["memory"],
        "valid instances rejected, by reason": dict(whys),
        "refusals": dict(Counter(outcome.refused[0] for outcome in done if outcome.refused).most_common()),
    }


def summarise_times(outcomes: Sequence[Result]) -> dict[str, Any]:
    """Return µs of the first mask and of a step over some schemas."""
    steps = np.concatenate([np.asarray(outcome.steps) for outcome in outcomes]) if outcomes else np.zeros(0)
    idle = np.concatenate([np.asarray(outcome.idle) for outcome in outcomes]) if outcomes else np.zeros(0)
    first = np.array([outcome.first for outcome in outcomes])
    return {
        "count": len(outcomes),
        "steps": len(steps),
        "step µs": compute_spread(steps),
        "first mask µs": compute_spread(first),
        IDLE: compute_spread(idle),
    }


def compute_spread(nanoseconds: np.ndarray[Any, Any]) -> dict[str, float]:
    """Return mean, quantiles and maximum in µs; empty without values."""
    if not len(nanoseconds):
        return {}
    values = nanoseconds / 1_000
    quantiles = {label: float(np.percentile(values, at)) for label, at in QUANTILES.items()}
    return {"mean": float(values.mean()), **quantiles, "max": float(values.max())}


def print_tables(tables: dict[str, list[dict[str, Any]]], console: Console) -> None:
    """Print the tables without wrapping lines."""
    console.width = max(console.width, WIDTH)
    counts = build_table(f"schemas, of {tables['exactness'][0]['schemas']:,}", MODE, COLUMNS)
    for row in tables["exactness"]:
        share = f"{row['passing']:,} ({row['passing'] / max(1, row['schemas']):.1%})"
        counts.add_row(row["engine"], row["mode"], share, *(f"{row[label]:,}" for label in COLUMNS[1:]))
    console.print(counts)
    alone = len({row["engine"] for row in tables["exactness"]}) == 1
    for scope in dict.fromkeys(row["schemas"] for row in tables["time"]):
        if scope == COMMON and alone:
            continue
        rows = [row for row in tables["time"] if row["schemas"] == scope]
        for measured, meaning in (("step µs", "mask and advance"), ("first mask µs", "from the text of the schema")):
            has_idle = measured == "step µs" and any(row[IDLE] for row in rows)
            columns = ("schemas", "steps", "mean", *QUANTILES, "max", *([PREPARED] if has_idle else []))
            times = build_table(f"{measured} ({meaning}), schemas {scope}", MODE, columns)
            for row in rows:
                values = [*row[measured].values()] or [None] * 6
                if has_idle:
                    values.append(row[IDLE].get("mean"))
                times.add_row(
                    row["engine"], row["mode"], f"{row['count']:,}", f"{row['steps']:,}", *map(format_time, values)
                )
            console.print(times)
    for line in compare_engines(tables["time"]):
        console.print(line, markup=False, highlight=False)
    for row in {row["engine"]: row for row in reversed(tables["exactness"])}.values():
        if row["refusals"]:
            console.print(f"{row['engine']} refuses {row['refused']:,}:", markup=False, highlight=False)
            for reason, count in list(row["refusals"].items())[:REASONS]:
                console.print(f"  {count:5,}  {reason}", markup=False, highlight=False)


def format_time(value: float | None) -> str:
    """Return µs for a table."""
    return "-" if value is None else f"{value:,.1f}" if value < 1_000 else f"{value:,.0f}"


def compare_engines(times: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the first engine's means and medians in parts of each other engine's, on the schemas common to all."""
    rows = [row for row in times if row["schemas"] == COMMON and row["count"]]
    lines = []
    for row in rows:
        first = next(other for other in rows if other["mode"] == row["mode"])
        if row is not first:
            parts = [
                f"{label} {first[measured][label] / row[measured][label]:.2f}"
                for measured in ("step µs", "first mask µs")
                for label in ("mean", "p50", "p99")
            ]
            lines.append(
                f"{first['engine']} in parts of {row['engine']}, {row['mode']}: "
                f"step {', '.join(parts[:3])}; first mask {', '.join(parts[3:])}"
            )
    return lines


def list_failures(jobs: Sequence[Job], runs: Runs) -> dict[str, dict[str, Any]]:
    """Return for each engine and mode the schemas that do not pass, with the reason."""
    return {
        f"{name}, {mode}": {
            job.case.id: shorten_outcome(outcome) for job, outcome in zip(jobs, outcomes) if is_notable(outcome)
        }
        for (name, mode), outcomes in runs.items()
    }


def is_notable(outcome: Result | Failure) -> bool:
    """Return whether a schema did not pass."""
    return not (isinstance(outcome, Result) and is_compiled(outcome) and not outcome.rejected and not outcome.accepted)


def shorten_outcome(outcome: Result | Failure) -> dict[str, Any]:
    """Return why a schema did not pass, without its times."""
    if isinstance(outcome, Failure):
        return asdict(outcome)
    fields = {"refused": outcome.refused and outcome.refused[1], "error": outcome.error, "rejected": outcome.rejected,
            "why": outcome.why, "accepted": outcome.accepted}  # fmt: skip
    return {key: value for key, value in fields.items() if value}
