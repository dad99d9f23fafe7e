"""Output of `check --target`: for each product the verdict, then its findings, with equal findings grouped."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table
from rich.text import Text

from ..authoring import targets
from . import display
from .schema_positions import SchemaPositions
from .source_options import SchemaSource

if TYPE_CHECKING:
    from ..authoring.targets import Target, TargetFinding

__all__ = ["print_targets"]

STYLES = {"refused": "bold red", "limit": "red", "ignored": "yellow", "changed": "magenta"}
"""Style of each verdict, the most severe first."""
MOST_PLACES = 4
"""Maximum number of locations that are listed for equal findings, without --all."""


def print_targets(
    source: SchemaSource,
    registry: Mapping[str, Any],
    names: Sequence[str],
    where: SchemaPositions,
    *,
    as_json: bool,
    everything: bool,
) -> int:
    """Print what each target would do to the schema.

    Return the exit code, NO if one of them does not accept it unchanged.
    """

    selected = list(targets.TARGETS) if "all" in names else list(dict.fromkeys(names))
    for name in selected:
        if name not in targets.TARGETS:
            known = ", ".join(targets.TARGETS)
            raise typer.BadParameter(f"{name!r} is none of {known}, all.", param_hint="'--target'")
    results = [
        (
            name,
            targets.target_of(source.text, name),
            targets.find_incompatibilities(source.text, name, registry=registry),
        )
        for name in selected
    ]
    if as_json:
        display.as_json(
            {"schema": True, "targets": {n: target_json(table, findings, where) for n, table, findings in results}}
        )
    elif sys.stdout.isatty():
        for number, (_, table, findings) in enumerate(results):
            display.print_answer(end="\n" if number else "")
            print_target(table, findings, where, everything)
    else:
        headers = ("target", "verdict", "where", "keyword", "reason", "cure", "line")
        lines = [
            (
                name,
                finding.verdict,
                finding.pointer,
                finding.keyword,
                finding.reason,
                finding.cure,
                line_of(finding, where),
            )
            for name, _, findings in results
            for finding in findings
        ]
        display.print_table(headers, lines)
    return display.NO if any(findings for _, _, findings in results) else display.FINE


def target_json(table: Target, findings: list[TargetFinding], positions: SchemaPositions) -> dict[str, Any]:
    """Return the verdict of a target as JSON data."""
    return {
        "title": table.title,
        "read": table.read,
        "sources": list(table.sources),
        "verdict": gravest_verdict(findings),
        "findings": [finding._asdict() | {"line": positions.lines.get(finding.pointer)} for finding in findings],
    }


def gravest_verdict(findings: list[TargetFinding]) -> str:
    """Return the most severe verdict; "taken" if there are no findings."""
    return next((verdict for verdict in STYLES if any(finding.verdict == verdict for finding in findings)), "taken")


def line_of(finding: TargetFinding, where: SchemaPositions) -> str:
    """Return the line of a finding in the source."""
    return str(where.lines.get(finding.pointer, ""))


def print_target(table: Target, findings: list[TargetFinding], positions: SchemaPositions, everything: bool) -> None:
    """Print one target as text."""
    verdict = gravest_verdict(findings)
    summary = {"refused": "refuses it", "limit": "may refuse it", "taken": "takes it as it is"}
    does = summary.get(verdict, "takes it, and enforces something else")
    display.print_answer(
        (table.title, "bold"), ": ", (does, STYLES.get(verdict, "green")), (f"  (read {table.read})", "dim")
    )
    grouped: dict[tuple[str, str, str, str], list[TargetFinding]] = {}
    for finding in findings:
        grouped.setdefault((finding.verdict, finding.keyword, finding.reason, finding.cure), []).append(finding)
    grid = Table(box=None, show_header=False, padding=(0, 0, 0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    order = list(STYLES)
    for (verdict, keyword, reason, cure), pointers in sorted(grouped.items(), key=lambda item: order.index(item[0][0])):
        most = len(pointers) if everything else MOST_PLACES
        listed = [f"{finding.pointer or '(the root)'}:{line_of(finding, positions)}" for finding in pointers[:most]]
        more = f", and {len(pointers) - most:,} more (--all)" if len(pointers) > most else ""
        lines = ((keyword, "bold"), f"  {reason}\n", (cure, "green"), "\n", (", ".join(listed) + more, "dim"))
        grid.add_row(Text(verdict, style=STYLES[verdict]), display.assemble_text(lines))
    if findings:
        display.answer_console().print(grid)
    counts = Counter(str(finding.verdict) for finding in findings)
    if len(findings) > 1:
        display.print_answer(("  " + ", ".join(f"{counts[name]} {name}" for name in STYLES if counts[name]), "dim"))
