"""What `check --target` prints: for each product the verdict, then its findings, alike ones together."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table
from rich.text import Text

from . import display
from .schema_positions import Places
from .source_options import Source

if TYPE_CHECKING:
    from ..authoring.targets import Finding, Target

__all__ = ["tell_targets"]

STYLES = {"refused": "bold red", "limit": "red", "ignored": "yellow", "changed": "magenta"}
"""By verdict, the gravest first."""
MOST_PLACES = 4
"""Places that are listed of findings that are alike, without --all."""


def tell_targets(
    source: Source,
    registry: Mapping[str, Any],
    names: Sequence[str],
    where: Places,
    *,
    as_json: bool,
    everything: bool,
) -> int:
    """Prints what each target would make of the schema: the exit code, NO if one does not take it as it is."""
    from ..authoring import targets

    wanted = list(targets.TARGETS) if "all" in names else list(dict.fromkeys(names))
    for name in wanted:
        if name not in targets.TARGETS:
            known = ", ".join(targets.TARGETS)
            raise typer.BadParameter(f"{name!r} is none of {known}, all.", param_hint="'--target'")
    results = [
        (name, targets.target_of(source.text, name), targets.findings(source.text, name, registry=registry))
        for name in wanted
    ]
    if as_json:
        display.as_json({"schema": True, "targets": {n: document(table, found, where) for n, table, found in results}})
    elif sys.stdout.isatty():
        for number, (_, table, found) in enumerate(results):
            display.say(end="\n" if number else "")
            tell(table, found, where, everything)
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
                line(finding, where),
            )
            for name, _, found in results
            for finding in found
        ]
        display.table(headers, lines)
    return display.NO if any(found for _, _, found in results) else display.FINE


def document(table: Target, found: list[Finding], where: Places) -> dict[str, Any]:
    """For machines."""
    return {
        "title": table.title,
        "read": table.read,
        "sources": list(table.sources),
        "verdict": gravest(found),
        "findings": [finding._asdict() | {"line": where.lines.get(finding.pointer)} for finding in found],
    }


def gravest(found: list[Finding]) -> str:
    """The gravest verdict; "taken" if there is none."""
    return next((verdict for verdict in STYLES if any(finding.verdict == verdict for finding in found)), "taken")


def line(finding: Finding, where: Places) -> str:
    """The line that a finding is about."""
    return str(where.lines.get(finding.pointer, ""))


def tell(table: Target, found: list[Finding], where: Places, everything: bool) -> None:
    """Prints one target for people."""
    verdict = gravest(found)
    words = {"refused": "refuses it", "limit": "may refuse it", "taken": "takes it as it is"}
    does = words.get(verdict, "takes it, and enforces something else")
    display.say((table.title, "bold"), ": ", (does, STYLES.get(verdict, "green")), (f"  (read {table.read})", "dim"))
    alike: dict[tuple[str, str, str, str], list[Finding]] = {}
    for finding in found:
        alike.setdefault((finding.verdict, finding.keyword, finding.reason, finding.cure), []).append(finding)
    grid = Table(box=None, show_header=False, padding=(0, 0, 0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    order = list(STYLES)
    for (verdict, keyword, reason, cure), places in sorted(alike.items(), key=lambda item: order.index(item[0][0])):
        most = len(places) if everything else MOST_PLACES
        listed = [f"{finding.pointer or '(the root)'}:{line(finding, where)}" for finding in places[:most]]
        more = f", and {len(places) - most:,} more (--all)" if len(places) > most else ""
        lines = ((keyword, "bold"), f"  {reason}\n", (cure, "green"), "\n", (", ".join(listed) + more, "dim"))
        grid.add_row(Text(verdict, style=STYLES[verdict]), display.assembled(lines))
    if found:
        display.answers().print(grid)
    counts = Counter(str(finding.verdict) for finding in found)
    if len(found) > 1:
        display.say(("  " + ", ".join(f"{counts[name]} {name}" for name in STYLES if counts[name]), "dim"))
