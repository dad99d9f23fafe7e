"""The standard streams, each of which a caller may have closed (`<&-`, `2>&-`): Python has None in its place."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import TextIO
from weakref import WeakSet

from ..base.errors import ArgumentError
from .display import FILE_ATTRIBUTE

__all__ = ["discard_answer", "escape_missing_characters", "flush_answer", "open_closed_outputs", "open_stdin"]

JSON_ESCAPES = "constrain.json_escapes"
"""The name under which `replace_by_escapes` is registered."""


_read: WeakSet[TextIO] = WeakSet()
"""The stdin that an argument has read."""


def open_stdin() -> TextIO:
    """Return stdin. Raise ArgumentError if it is closed, or if another argument has read it."""
    if sys.stdin is None:
        raise _stdin_error("the stream is closed", "Give a file in place of -, or send the text through a pipe.")
    if sys.stdin in _read:
        raise _stdin_error("the stream is given twice (-), but can be read only once", "Give a file for one of them.")
    _read.add(sys.stdin)
    return sys.stdin


def _stdin_error(cause: str, hint: str) -> ArgumentError:
    error = ArgumentError(cause, hint=hint)
    setattr(error, FILE_ATTRIBUTE, "stdin")
    return error


def open_closed_outputs() -> None:
    """Open outputs that are closed: messages are dropped, and an answer cannot be written (EBADF), as in other
    programs, but a command that has none is done.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115


def escape_missing_characters() -> None:
    """Let outputs write the characters that their encoding lacks with the escapes of JSON, which leaves answers in JSON
    what they are.
    """
    codecs.register_error(JSON_ESCAPES, replace_by_escapes)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # not so where another program has replaced it
            stream.reconfigure(errors=JSON_ESCAPES)


def replace_by_escapes(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that cannot be encoded by the escapes of JSON, of their UTF-16 units."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    data = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[k]:02x}{data[k + 1]:02x}" for k in range(0, len(data), 2)), error.end


def flush_answer() -> OSError | None:
    """Flush stdout. Return the error if it cannot be written: it is closed, or the disk is full."""
    try:
        sys.stdout.flush()
    except OSError as error:
        return error
    return None


def discard_answer() -> None:
    """Let go of what stdout has not been able to write, which the interpreter would try to write again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
