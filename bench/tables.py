"""Print tables of results without frames: labels are left-aligned, figures right-aligned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

__all__ = ["build_progress", "build_table", "format_value", "print_rows", "print_table"]


def build_table(title: str, labels: Iterable[str], figures: Iterable[str]) -> Table:
    """Return an empty table: columns of `labels`, left-aligned and not wrapped, and right-aligned
    columns of `figures`.
    """
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for label in labels:
        table.add_column(label, no_wrap=True)
    for label in figures:
        table.add_column(label, justify="right")
    return table


def print_table(table: Table, console: Console | None = None) -> None:
    """Print a table without wrapping its lines."""
    console = console or Console()
    wanted = console.measure(table, options=console.options.update(width=1_000)).maximum
    console.width = max(console.width, wanted)
    console.print(table, markup=False, highlight=False)


def print_rows(title: str, rows: Sequence[Mapping[str, Any]], labels: int = 1, console: Console | None = None) -> None:
    """Print a row for each mapping. The first row names the columns, of which the first `labels` are labels."""
    columns = list(rows[0]) if rows else []
    table = build_table(title, columns[:labels], columns[labels:])
    for row in rows:
        table.add_row(*(format_value(row[column]) for column in columns))
    print_table(table, console)


def format_value(value: Any) -> str:
    """Return a cell: "-" for None, large numbers with commas, small ones with decimals."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 10 else f"{value:,.1f}" if abs(value) < 1_000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def build_progress(console: Console) -> Progress:
    """Return a progress bar with counts and times."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TimeRemainingColumn(), console=console)
