"""Output of all commands: rich on a terminal, plain text in a pipe, one JSON document with --json.

Answers go to stdout; progress, notes and errors go to stderr, so that a pipe receives the answer alone.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..base.errors import (
    MESSAGE,
    ConstrainError,
    LimitError,
    TokenRefused,
    UnsatisfiableError,
    UnsupportedError,
    ValueRefused,
    locate_position,
    shorten_text,
)

__all__ = [
    "FILE_ATTRIBUTE",
    "FINE",
    "INTERRUPTED",
    "LONGEST",
    "NO",
    "TOO_MUCH",
    "WRONG",
    "answer_console",
    "as_json",
    "assemble_text",
    "code_of",
    "error_json",
    "find_widths",
    "print_error",
    "print_facts",
    "replace_controls",
    "message_console",
    "print_note",
    "to_plain_json",
    "print_answer",
    "print_table",
    "show_progress",
]

FINE, NO, WRONG, TOO_MUCH, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes: success; negative answer; wrong usage or input; unsupported, or a limit was exceeded; Ctrl-C."""

FILE_ATTRIBUTE = "constrain_file"
"""The attribute that holds the file of an error: `source_options.attribute_errors` sets it, `app.run_command` reads."""

LONGEST = 400
"""Number of characters of a shortest instance or sentence that are shown as text; --json contains all of them."""

POINTER_WIDTH = 20
"""Greatest width that a column of a table has to have for a single name in a JSON pointer."""
CONTROLS = dict.fromkeys({*range(0x20), *range(0x7F, 0xA0)} - {0x09, 0x0A}, "\N{REPLACEMENT CHARACTER}")


def answer_console() -> Console:
    """Return the console for answers."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty(), emoji=False)


def message_console() -> Console:
    """Return the console for everything else."""
    return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty(), emoji=False)


def print_answer(*parts: str | tuple[str, str], end: str = "\n") -> None:
    """Print a line of the answer; a part may be (text, style). The text is not interpreted as markup."""
    answer_console().print(assemble_text(parts), end=end)


def print_note(*parts: str | tuple[str, str]) -> None:
    """Print a line that is not part of the answer."""
    message_console().print(assemble_text(parts))


def assemble_text(parts: Sequence[str | tuple[str, str]]) -> Text:
    """Join the parts to one Text, without control characters."""
    pairs = ((part, "") if isinstance(part, str) else part for part in parts)
    return Text.assemble(*((replace_controls(text), style) for text, style in pairs))


def replace_controls(text: str) -> str:
    """Replace the control characters by which foreign text could steer a terminal, and make it encodable as UTF-8.

    An unpaired surrogate, such as Python makes of a byte of an argument that is not UTF-8, becomes an escape: \\udcff.
    """
    return as_utf8(text.translate(CONTROLS))


def as_utf8(text: str) -> str:
    """Return a text with escapes in place of unpaired surrogates; in a JSON string these have the same meaning."""
    return text.encode(errors="backslashreplace").decode()


@contextmanager
def show_progress(action: str) -> Iterator[None]:
    """Show what takes a while, for as long as it takes; on a terminal only."""
    if sys.stderr.isatty():
        with message_console().status(Text(action)):
            yield
    else:
        yield


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, styles: Sequence[str] = ()) -> None:
    """Print rows under headers; in a pipe, fields are separated by tabs, for `cut` and `grep`."""
    if not sys.stdout.isatty():
        for row in (headers, *rows):
            print("\t".join(" ".join(replace_controls(field).split()) for field in row))
        return
    grid = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    widths = find_widths(headers, rows, answer_console().width)
    for number, header in enumerate(headers):
        style = styles[number] if number < len(styles) else ""
        grid.add_column(header, style=style, overflow="fold", width=widths[number])
    for row in rows:
        grid.add_row(*(Text(divide_pointer(field, width)) for field, width in zip(row, widths)))
    answer_console().print(grid)


def divide_pointer(field: str, width: int | None) -> str:
    """Return a field without control characters; if it is a JSON pointer, with line breaks between its names so that
    the lines fit in `width` columns. None: it fits.
    """
    field = replace_controls(field)
    if width is None or len(field) <= width or not field.startswith("/"):
        return field
    lines = [""]
    for name in re.findall("/[^/]*", field):
        if lines[-1] and len(lines[-1]) + len(name) > width:
            lines.append("")
        lines[-1] += name
    return "\n".join(lines)


def find_widths(headers: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int | None]:
    """Return the width of each column of a table in `width` columns, so that lines break between words.

    Only a JSON pointer may be divided, between its names. None for all columns of a table that fits without a break, or
    in which not even the longest words fit.
    """
    columns = [[header, *(row[number] for row in rows)] for number, header in enumerate(headers)]
    natural = [max(len(line) for field in column for line in field.split("\n")) for column in columns]
    least = [max(least_width(word) for field in column for word in field.split() or [""]) for column in columns]
    free = width - sum(least) - len(columns)  # a space after each column
    wanted = [full - short for full, short in zip(natural, least)]
    if free < 0 or sum(wanted) <= free:
        return [None] * len(columns)
    return [short + more * free // sum(wanted) for short, more in zip(least, wanted)]


def least_width(word: str) -> int:
    """Return the least width of a column that has this word; a JSON pointer may be divided between its names."""
    return min(max(map(len, re.findall("/[^/]*", word))), POINTER_WIDTH) if word.startswith("/") else len(word)


def print_facts(rows: Sequence[tuple[str, str]]) -> None:
    """Print names with their descriptions."""
    width = max((len(name) for name, _ in rows), default=0)
    if not sys.stdout.isatty():
        for name, value in rows:
            print(f"{name:{width}}  {replace_controls(value)}")
        return
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(Text(replace_controls(name)), Text(replace_controls(value)))
    answer_console().print(grid)


# ---- JSON --------------------------------------------------------------------------------------------------------


def to_plain_json(value: Any) -> Any:
    """Return a value that `json.dumps` accepts: numbers beyond a float are rounded, infinities become null."""
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() and abs(value) < 10**400 else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): to_plain_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain_json(item) for item in value]
    return value


def as_json(document: Any) -> None:
    """Print one JSON document, on one line."""
    print(as_utf8(json.dumps(to_plain_json(document), ensure_ascii=False, allow_nan=False)))


# ---- errors ------------------------------------------------------------------------------------------------------


def code_of(error: Exception) -> int:
    """Return the exit code of an error."""
    if isinstance(error, (UnsupportedError, LimitError)):
        return TOO_MUCH
    return NO if isinstance(error, (UnsatisfiableError, TokenRefused, ValueRefused)) else WRONG


def print_error(error: Exception, where: str = "") -> int:
    """Print an error and its location to stderr, and return the exit code."""
    text = error.render() if isinstance(error, ConstrainError) else of_system(error)
    print_note(("error: ", "bold red"), *([(f"{shorten_text(where)}: ", "bold")] if where else []), text)
    return code_of(error)


def of_system(error: Exception) -> str:
    """Describe an OSError in words."""
    if isinstance(error, OSError) and error.strerror:
        return f"{shorten_text(error.filename)}: {error.strerror}" if error.filename else error.strerror
    return shorten_text(error, MESSAGE) or type(error).__name__


def error_json(error: Exception, where: str = "") -> dict[str, Any]:
    """Return an error as JSON data."""
    data: dict[str, Any] = {"kind": type(error).__name__, "message": of_system(error)}
    if where:
        data["file"] = where
    if isinstance(error, ConstrainError):
        data |= {"message": error.cause, "pointer": error.pointer, "hint": error.hint or None}
        if error.source is not None and error.position is not None:
            data["line"], data["column"], *_ = locate_position(error.source, error.position)
    return data
