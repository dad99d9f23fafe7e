"""What all commands print with: rich on a terminal, plain text in a pipe, one JSON document with --json.

Answers go to stdout; progress, notes and errors to stderr, so that a pipe gets the answer alone.
"""

from __future__ import annotations

import json
import math
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
    locate_position,
    shorten_text,
)

__all__ = [
    "FINE", "NO", "TOO_MUCH", "WRONG", "answers", "as_json", "assembled", "code_of", "error_json", "fail", "facts",
    "harmless", "messages", "note", "plain", "say", "table", "working",
]  # fmt: skip

FINE, NO, WRONG, TOO_MUCH = 0, 1, 2, 3
"""Exit codes: fine; the answer is no; wrong usage or input; unsupported, or a limit was hit."""

CONTROLS = dict.fromkeys({*range(0x20), *range(0x7F, 0xA0)} - {0x09, 0x0A}, "\N{REPLACEMENT CHARACTER}")


def answers() -> Console:
    """Where answers go."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty(), emoji=False)


def messages() -> Console:
    """Where all else goes."""
    return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty(), emoji=False)


def say(*parts: str | tuple[str, str], end: str = "\n") -> None:
    """A line of the answer; a part may be (text, style). Nothing in it is markup."""
    answers().print(assembled(parts), end=end)


def note(*parts: str | tuple[str, str]) -> None:
    """A line that is no part of the answer."""
    messages().print(assembled(parts))


def assembled(parts: Sequence[str | tuple[str, str]]) -> Text:
    """The parts as one Text, harmless."""
    pairs = ((part, "") if isinstance(part, str) else part for part in parts)
    return Text.assemble(*((harmless(text), style) for text, style in pairs))


def harmless(text: str) -> str:
    """Text of others without the control characters by which it could steer a terminal, as UTF-8 can have it.

    Half a surrogate, such as Python makes of a byte of an argument that is not UTF-8, becomes an escape: \\udcff.
    """
    return as_utf8(text.translate(CONTROLS))


def as_utf8(text: str) -> str:
    """Return a text with escapes in place of half surrogates; in a string of JSON these mean the same."""
    return text.encode(errors="backslashreplace").decode()


@contextmanager
def working(what: str) -> Iterator[None]:
    """Says what takes a while, for as long as it does; on a terminal only."""
    if sys.stderr.isatty():
        with messages().status(Text(what)):
            yield
    else:
        yield


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, styles: Sequence[str] = ()) -> None:
    """Rows under headers; in a pipe, fields set apart by tabs, so that `cut` and `grep` can use them."""
    if not sys.stdout.isatty():
        for row in (headers, *rows):
            print("\t".join(" ".join(harmless(field).split()) for field in row))
        return
    grid = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    for number, header in enumerate(headers):
        grid.add_column(header, style=styles[number] if number < len(styles) else "", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(harmless(field)) for field in row))
    answers().print(grid)


def facts(rows: Sequence[tuple[str, str]]) -> None:
    """Names and what there is to say of them."""
    width = max((len(name) for name, _ in rows), default=0)
    if not sys.stdout.isatty():
        for name, value in rows:
            print(f"{name:{width}}  {harmless(value)}")
        return
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(Text(harmless(name)), Text(harmless(value)))
    answers().print(grid)


# ---- JSON --------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A value as `json.dumps` takes it: numbers beyond a float as they are near, infinities as null."""
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() and abs(value) < 10**400 else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def as_json(document: Any) -> None:
    """One JSON document, on one line."""
    print(as_utf8(json.dumps(plain(document), ensure_ascii=False, allow_nan=False)))


# ---- errors ------------------------------------------------------------------------------------------------------


def code_of(error: Exception) -> int:
    """The exit code of an error."""
    if isinstance(error, (UnsupportedError, LimitError)):
        return TOO_MUCH
    return NO if isinstance(error, (UnsatisfiableError, TokenRefused)) else WRONG


def fail(error: Exception, where: str = "") -> int:
    """Prints what is wrong, and where, to stderr: the exit code."""
    text = error.render() if isinstance(error, ConstrainError) else of_system(error)
    note(("error: ", "bold red"), *([(f"{shorten_text(where)}: ", "bold")] if where else []), text)
    return code_of(error)


def of_system(error: Exception) -> str:
    """An OSError in words."""
    if isinstance(error, OSError) and error.strerror:
        return f"{shorten_text(error.filename)}: {error.strerror}" if error.filename else error.strerror
    return shorten_text(error, MESSAGE) or type(error).__name__


def error_json(error: Exception, where: str = "") -> dict[str, Any]:
    """An error for machines."""
    found: dict[str, Any] = {"kind": type(error).__name__, "message": of_system(error)}
    if where:
        found["file"] = where
    if isinstance(error, ConstrainError):
        found |= {"message": error.cause, "pointer": error.pointer, "hint": error.hint or None}
        if error.source is not None and error.position is not None:
            found["line"], found["column"], *_ = locate_position(error.source, error.position)
    return found
