"""Write docs/comparison.md from the committed results of the benches: tables, and every row in which a peer is ahead.

    python -m bench pages.comparison --write docs/comparison.md

Nothing is measured here. Each table names its source file and the command that measures it again; of several results of
a bench the newest is used. Rows in which a peer is ahead are selected by their figures.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ..options import build_parser
from .comparison_tables import TABLES, ComparisonTable, Row

__all__ = ["write_comparison"]

TOP = """# Comparison with other libraries

Figures of `constrain` beside those of its peers, with every row in which a peer is ahead. This page is written by a
command from the results that are committed in `bench/results`, and a test checks that it is:

    python -m bench pages.comparison --write docs/comparison.md

Each table names its machine, versions, result file and command. Figures of different tables come from different runs
and often different machines: compare within a row only. The best figure of a row is bold. Which keywords of JSON
Schema each engine enforces is a page of its own, [JSON Schema, keyword by keyword](json-schema.md); the calls of other
libraries and ours are in [Move from other libraries](how-to/move-from-other-libraries.md).
"""
UNMEASURED = """
### What no table shows

- *The first use from source.* A wheel of `constrain` has compiled kernels for Linux and macOS. In a source checkout,
  and on other platforms, they are compiled once, which takes about half a minute on two cores. The libraries for macOS
  and for Linux on ARM have not been run yet.
- *What has to be installed.* `constrain` depends on numpy and five small packages of Python. llguidance is one compiled
  package of 8 MB without dependencies.
- *Engines.* vLLM and SGLang are distributed with XGrammar and llguidance and need no plug-in for them. Our
  [plug-ins](how-to/plug-into-engines.md) for vLLM and SGLang were tested with the classes of these engines, not on a
  GPU under load.
- *Languages.* llguidance can be called from Rust and C, XGrammar from C++ and JavaScript. `constrain` is for Python
  only.
- *Use in production.* XGrammar, llguidance and Outlines run in the products of many companies. `constrain` is new.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or print it. Return the exit code."""
    parser = build_parser("pages.comparison", __doc__)
    parser.add_argument("--write", type=Path, help="the file; without it the page is printed")
    options = parser.parse_args(arguments)
    page = write_comparison()
    if options.write:
        options.write.write_text(page, "utf-8")
    else:
        print(page, end="")
    return 0


def write_comparison() -> str:
    """Return the page as Markdown, from the newest committed result of each bench."""
    tables = [table for build in TABLES if (table := build()) is not None]
    parts = [TOP, "\n## Where a peer is ahead\n\n", *(line for table in tables for line in list_rows_behind(table))]
    parts.append(UNMEASURED)
    parts.extend(render_table(table) for table in tables)
    return "".join(parts)


def list_rows_behind(table: ComparisonTable) -> list[str]:
    """Return an item for a table with the rows in which a peer's figure is better than ours; none if there is none."""
    found = []
    for row in table.rows:
        theirs = row.find_best_peer()
        if theirs is None or row.is_ours_best():
            continue
        ours, best = (format_figure(row.figures[engine]) for engine in (row.find_ours(), theirs))
        found.append(f"    - {row.label}: {theirs} {best}, constrain {ours}\n")
    if not found:
        return []
    unit = "" if table.unit == "as named" else f", {table.unit}"
    return [f"- [{table.title}](#{table.anchor}){unit}:\n", *found]


def render_table(table: ComparisonTable) -> str:
    """Return a section: the heading, what was measured, the table with the best figure of each row in bold."""
    lines = [f"\n## {table.title}\n\n{table.text}\n\n"]
    lines.append(f"| {table.unit} | {' | '.join(table.engines)} |\n|---|{'---:|' * len(table.engines)}\n")
    for row in table.rows:
        lines.append(f"| {row.label} | {' | '.join(render_cell(row, engine) for engine in table.engines)} |\n")
    lines.append(f"\n{table.source}\n")
    return "".join(lines)


def render_cell(row: Row, engine: str) -> str:
    """Return the figure of an engine; bold where it is the best of several, - where there is none."""
    figure = row.figures.get(engine)
    if figure is None:
        return "-"
    text = format_figure(figure)
    return f"**{text}**" if len(row.figures) > 1 and row.is_best(figure) else text


def format_figure(value: float) -> str:
    """Return a figure with three significant digits, and commas in large ones."""
    if value == int(value):
        return f"{int(value):,}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main())
