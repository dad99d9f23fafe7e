"""Summarise a run: wrong masks by kind and per million masks, a row for each engine; the first findings; JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Union

from rich.console import Console

from ..corpus import Case
from ..tables import build_table, print_table
from ..workers import Failure
from .walks import Findings

__all__ = ["KINDS", "collect_facts", "print_findings", "summarise_findings"]

KINDS = {
    "over": "a token that begins a valid text is masked",
    "under": "an end is allowed where the text is not valid",
    "stuck": "no token and no end",
    "no completion": "the engine's own completion knows no end",
    "key twice": "a key comes twice",
    "special token": "a special token in a mask",
    "crash": "the engine raised something else than a refusal",
    "slow to compile": "beyond --compiling seconds",
    "key order": "over, in an order of keys that the style does not have: exempt",
    "lone surrogate": "over, in a text with half a surrogate pair: counted apart",
    "in doubt": "under by jsonschema's floats and patterns only: valid by exact ones",
}
"""Kinds of wrong masks; the last three are not errors of the engine."""
COUNTED = ("masks", "texts", "walks", "finished", "unfinished", "ends", "unjudged", "variants tried", "variants kept",
           "judges differ")  # fmt: skip
SHOWN = 12
"""Maximum number of findings that are printed for each engine and kind."""
Outcomes = Sequence[Union[Findings, Failure]]


def summarise_findings(runs: Mapping[str, Outcomes]) -> list[dict[str, Any]]:
    """Return a row for each engine, as JSON values."""
    rows = []
    for name, outcomes in runs.items():
        done = [outcome for outcome in outcomes if isinstance(outcome, Findings)]
        total: Counter[str] = Counter()
        for outcome in done:
            total.update(outcome.counts)
        failed = Counter(outcome.kind for outcome in outcomes if isinstance(outcome, Failure))
        masks = max(1, total["masks"])
        rows.append({
            "engine": name,
            "schemas": len(outcomes),
            "refused": sum(outcome.refused is not None for outcome in done),
            "failures": dict(failed),
            **{label: total[label] for label in COUNTED},
            "wrong masks": {kind: total[kind] for kind in KINDS if total[kind]},
            "schemas with": {kind: sum(outcome.counts[kind] > 0 for outcome in done) for kind in KINDS if total[kind]},
            "over per million": total["over"] / masks * 1e6,
            "under per million": (total["under"] + total["stuck"]) / masks * 1e6,
            "refusals": dict(Counter(outcome.refused[0] for outcome in done if outcome.refused).most_common()),
        })  # fmt: skip
    return rows


def print_findings(
    rows: Sequence[dict[str, Any]], cases: Sequence[Case], runs: Mapping[str, Outcomes], console: Console
) -> None:
    """Print the table and the first findings."""
    figures = ("masks", "over /M", "under /M", "refused", "failed", "texts", "walks", "finished")
    table = build_table("wrong masks", ["engine"], figures)
    for row in rows:
        failed = sum(row["failures"].values())
        table.add_row(
            row["engine"], f"{row['masks']:,}", f"{row['over per million']:,.1f}",
            f"{row['under per million']:,.1f}", f"{row['refused']:,} of {row['schemas']:,}", f"{failed:,}",
            f"{row['texts']:,}", f"{row['walks']:,}", f"{row['finished']:,}",
        )  # fmt: skip
    print_table(table, console)
    for row in rows:
        for kind, count in row["wrong masks"].items():
            console.print(
                f"\n{row['engine']}, {kind}: {count:,} masks in {row['schemas with'][kind]:,} schemas ({KINDS[kind]})",
                markup=False, highlight=False,
            )  # fmt: skip
            for line in list_findings(cases, runs[row["engine"]], kind)[:SHOWN]:
                console.print("  " + line, markup=False, highlight=False, soft_wrap=True)
        for case, outcome in zip(cases, runs[row["engine"]]):
            if isinstance(outcome, Failure):
                console.print(f"  {case.id}: {outcome.kind}, {outcome.detail}", markup=False, highlight=False)


def list_findings(cases: Sequence[Case], outcomes: Outcomes, kind: str) -> list[str]:
    """Return one finding of each schema as text."""
    out = []
    for case, outcome in zip(cases, outcomes):
        if isinstance(outcome, Findings):
            one = next((finding for finding in outcome.kept if finding.kind == kind), None)
            if one is not None:
                out.append(f"{case.id}: {one.text[-70:]!r} {one.token!r} | {one.rest[:90]!r}")
    return out


def collect_facts(
    rows: Sequence[dict[str, Any]], cases: Sequence[Case], runs: Mapping[str, Outcomes]
) -> dict[str, Any]:
    """Return what is written to the file of results."""
    schemas = {
        name: {case.id: shorten_findings(outcome) for case, outcome in zip(cases, outcomes) if is_notable(outcome)}
        for name, outcomes in runs.items()
    }
    return {"kinds": KINDS, "engines": rows, "schemas": schemas}


def is_notable(outcome: Findings | Failure) -> bool:
    """Return whether an outcome has findings, or is a refusal or failure."""
    return isinstance(outcome, Failure) or bool(outcome.kept or outcome.refused)


def shorten_findings(outcome: Findings | Failure) -> dict[str, Any]:
    """Return the findings of a schema."""
    if isinstance(outcome, Failure):
        return asdict(outcome)
    if outcome.refused:
        return {"refused": outcome.refused[1]}
    return {
        "counts": {kind: outcome.counts[kind] for kind in KINDS if outcome.counts[kind]},
        "found": [asdict(finding) for finding in outcome.kept],
    }
