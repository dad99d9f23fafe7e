"""The keyword table of `check`, followed by notes.

On a terminal it has a line for each subschema, with its keywords under the mechanism that enforces them; in a pipe it
has a line for each keyword.

There are three mechanisms: the automaton; the frame of a string, array or object, which counts or stores the keys seen;
and a guard, which compares a value with those before it. All are exact; a guard can reject only at the end of a value.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from rich.table import Table
from rich.text import Text

from . import display
from .schema_positions import SchemaPositions

if TYPE_CHECKING:
    from ..frontends.json_schema.reports.keyword_report import KeywordRow
    from ..frontends.json_schema.reports.schema_faults import SchemaFault

__all__ = ["Note", "collect_notes", "print_keywords", "print_notes"]

HOW = {
    "mask": "by the automaton",
    "counter": "by a counter",
    "keys": "by the set of keys",
    "guard": "by a guard",
    "annotation": "asserts nothing",
    "structure": "holds schemas",
    "refused": "not supported",
}
COLUMNS = (
    ("automaton", ("mask",), "green"),
    ("frame", ("counter", "keys"), "cyan"),
    ("guard", ("guard",), "yellow"),
    ("not supported", ("refused",), "bold red"),
    ("asserts nothing", ("annotation", "structure"), "dim"),
)
"""Title, the values of `how` that it contains, style. A column without a keyword is not shown."""

MOST_LINES = 40
"""Maximum number of subschemas that are shown on a terminal without --all."""

EXPECTED = ("", "schemas that others refer to", "false asserts nothing")
"""Notes of annotations that need no mention."""
PLAIN = ("never", "ignored", "in a schema", "unknown keyword")
"""Beginnings of notes which already state that nothing is asserted."""


class Note(NamedTuple):
    """A remark on a keyword. kind: "guard", "nothing", "twice", "idle" or "impossible"."""

    kind: str
    pointer: str
    line: int | None
    text: str


def collect_notes(
    rows: list[KeywordRow], where: SchemaPositions, empty: list[str], faults: list[SchemaFault]
) -> list[Note]:
    """Return the notes in the order of the lines.

    empty: pointers of unsatisfiable subschemas. faults: those in unreachable parts are included, because they take
    effect as soon as these become reachable.
    """
    notes = [
        Note("twice", pointer, last, f"repeated key: line {last} overrides line {first}")
        for pointer, first, last in where.twice
    ]
    notes += [Note("impossible", pointer, where.lines.get(pointer), "nothing satisfies this part") for pointer in empty]
    notes += [
        Note("idle", pointer, where.lines.get(pointer), f"invalid, although nothing refers to it: {error.cause}")
        for error, reached in faults
        if not reached and (pointer := error.pointer)
    ]
    for row in rows:
        surprising = row.how == "annotation" and row.note not in EXPECTED
        if surprising or row.how == "guard":
            kind = "guard" if row.how == "guard" else "nothing"
            text = row.note if kind == "guard" or row.note.startswith(PLAIN) else f"asserts nothing: {row.note}"
            notes.append(Note(kind, row.pointer, where.lines.get(row.pointer), text))
    return sorted(notes, key=lambda note: note.line or 0)


def print_keywords(
    name: str, rows: list[KeywordRow], where: SchemaPositions, *, satisfiable: bool | None, everything: bool
) -> None:
    """Print a summary of the schema, and how its keywords are enforced."""
    verdict = ("satisfiable", "green") if satisfiable else ("not fully supported", "red")
    display.print_answer((name, "bold"), ": ", ("a JSON Schema", "green"), ", ", verdict)
    if not rows:
        display.print_answer("no keywords: every value satisfies it")
        return
    counts = Counter(HOW[row.how] for row in rows)
    summary = ", ".join(f"{n} {agree(how, n)}" for how, n in counts.most_common())
    display.print_answer(f"{len(rows)} keyword{'s' * (len(rows) != 1)}: {summary}")
    display.print_answer()
    if sys.stdout.isatty():
        by_subschema(rows, where, everything)
    else:
        lines = [(row.pointer, HOW[row.how], row.note, str(where.lines.get(row.pointer, ""))) for row in rows]
        display.print_table(("where", "how", "note", "line"), lines)
    display.print_answer()


def agree(how: str, count: int) -> str:
    """Return a value of HOW for a number of keywords: "asserts nothing", for two "assert nothing"."""
    verb, space, rest = how.partition(" ")
    return how if count == 1 or verb not in ("asserts", "holds") else verb[:-1] + space + rest


def by_subschema(rows: list[KeywordRow], where: SchemaPositions, everything: bool) -> None:
    """Print the table of keywords by subschema, for a terminal."""
    grouped: dict[str, list[KeywordRow]] = {}
    for row in rows:
        grouped.setdefault(row.pointer.rpartition("/")[0], []).append(row)
    columns = [column for column in COLUMNS if any(row.how in column[1] for row in rows)]
    most = len(grouped) if everything else MOST_LINES
    lines = []
    for pointer, members in list(grouped.items())[:most]:
        cells = [" ".join(row.keyword for row in members if row.how in hows) for _, hows, _ in columns]
        lines.append((str(where.lines.get(pointer, "")), pointer or "(the root)", *cells))
    headers = ("line", "where", *(title for title, *_ in columns))
    display.print_table(headers, lines, styles=("dim", "", *(style for *_, style in columns)))
    if len(grouped) > most:
        display.print_answer((f"… and {len(grouped) - most:,} more subschemas: --all shows them", "dim"))


STYLES = {"guard": "yellow", "nothing": "dim", "twice": "red", "idle": "yellow", "impossible": "red"}


def print_notes(notes: list[Note], *, everything: bool) -> None:
    """Print the notes, if any; on a terminal, equal notes at several locations are printed once."""
    if not notes:
        return
    if not sys.stdout.isatty():
        display.print_table(
            ("look at", "why", "line"), [(note.pointer, note.text, str(note.line or "")) for note in notes]
        )
        display.print_answer()
        return
    grouped: dict[tuple[str, ...], list[Note]] = {}
    for note in notes:
        name = note.pointer if everything else note.pointer.rpartition("/")[2]
        grouped.setdefault((note.kind, name, note.text), []).append(note)
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    grid.add_column("line", justify="right", style="dim", no_wrap=True)
    grid.add_column("worth a look", overflow="fold")
    grid.add_column("")
    for first, *others in grouped.values():
        label = display.assemble_text([first.pointer, (f" and {len(others):,} more" if others else "", "dim")])
        text = Text(display.replace_controls(first.text), style=STYLES[first.kind])
        grid.add_row(str(first.line or ""), label, text)
    display.answer_console().print(grid)
    display.print_answer()
