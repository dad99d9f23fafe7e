"""Compare a run of MaskBench with the targets, each a ratio to a peer on the schemas common to all engines.

    rows = judge_targets(times)      times: the rows "time" of `report.summarise_runs`; returns a row per target and
    print_verdicts(rows, console)    engine of ours

Where a target names several peers, the better one counts. A target whose peer or mode is absent is neither met nor
missed: the verdict names what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import Console

from .tables import build_table, print_table

__all__ = ["TARGETS", "Target", "judge_targets", "print_verdicts"]

PEERS = ("llguidance", "xgrammar")
STEP, FIRST = "step µs", "first mask µs"


class Target(NamedTuple):
    """A limit: at most `ratio` times the `figure` of the (best) peer, of what was `measured` in a mode."""

    measured: str
    mode: str
    figure: str
    ratio: float
    peers: tuple[str, ...]


TARGETS = (
    Target(STEP, "warm", "mean", 0.15, ("llguidance",)),
    Target(STEP, "warm", "p50", 0.3, ("xgrammar",)),
    Target(STEP, "warm", "p90", 0.2, PEERS),
    Target(STEP, "warm", "p99", 0.2, PEERS),
    Target(STEP, "warm", "p99.9", 0.2, PEERS),
    Target(STEP, "warm", "max", 0.5, PEERS),
    Target(FIRST, "warm", "p50", 0.3, ("llguidance",)),
    Target(FIRST, "warm", "p99", 0.5, ("llguidance",)),
    Target(FIRST, "cold", "mean", 0.3, ("llguidance",)),
    Target(FIRST, "cold", "p50", 0.3, ("llguidance",)),
    Target(FIRST, "cold", "p99", 0.5, ("llguidance",)),
)


def judge_targets(times: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each target and engine of ours: both values in µs, the ratio, its limit, and the verdict."""
    rows = {(row["engine"], row["mode"]): row for row in times if row["schemas"] == "common to all"}
    ours = [name for name in dict.fromkeys(name for name, _ in rows) if name not in PEERS]
    return [judge_target(rows, name, target) for name in ours for target in TARGETS]


def judge_target(rows: Mapping[tuple[str, str], Mapping[str, Any]], name: str, target: Target) -> dict[str, Any]:
    """Return the row of one target and one engine of ours."""
    values = {
        engine: rows[engine, target.mode][target.measured].get(target.figure)
        for engine in (name, *target.peers)
        if (engine, target.mode) in rows
    }
    values_found = {engine: value for engine, value in values.items() if value is not None}
    lacking = [engine for engine in (name, *target.peers) if engine not in values_found]
    row: dict[str, Any] = {"engine": name, **target._asdict(), "lacking": lacking}
    peers = [engine for engine in target.peers if engine in values_found]
    if name not in values_found or not peers:
        return row | {"verdict": "not judged"}
    best = min(peers, key=lambda engine: values_found[engine])
    part = values_found[name] / values_found[best]
    return row | {
        "ours": values_found[name],
        "peer": best,
        "theirs": values_found[best],
        "part": part,
        "verdict": "met" if part <= target.ratio else "missed",
    }


def print_verdicts(values_found: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print the table, and below it the missing figures."""
    if not values_found:
        return
    figures = ("ours, µs", "theirs, µs", "peer", "ratio", "at most", "verdict")
    table = build_table("targets, on the schemas common to all", ("engine", "what", "mode"), figures)
    for row in values_found:
        values = ("-",) * 4
        if "part" in row:
            values = (f"{row['ours']:,.1f}", f"{row['theirs']:,.1f}", row["peer"], f"{row['part']:.3f}")
        doubt = " (1 peer)" if row["lacking"] and "part" in row else ""
        what = f"{row['measured'].removesuffix(' µs')}, {row['figure']}"
        table.add_row(row["engine"], what, row["mode"], *values, f"{row['ratio']:g}", row["verdict"] + doubt)
    print_table(table, console)
    lacking = {(name, row["mode"]) for row in values_found for name in row["lacking"]}
    for name, mode in sorted(lacking):
        console.print(f"Lacking in this run: {name}, {mode}.", markup=False, highlight=False)
