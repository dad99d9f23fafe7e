"""The standard streams, each of which a caller may have closed (`<&-`, `2>&-`): Python has None in its place."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from ..base.errors import ArgumentError
from .display import FILE_ATTRIBUTE

__all__ = ["discard_answer", "flush_answer", "open_closed_outputs", "open_stdin"]


def open_stdin() -> TextIO:
    """Return stdin. Raise ArgumentError if it is closed."""
    if sys.stdin is None:
        error = ArgumentError(
            "the stream is closed", hint="Give a file in place of -, or send the text through a pipe."
        )
        setattr(error, FILE_ATTRIBUTE, "stdin")
        raise error
    return sys.stdin


def open_closed_outputs() -> None:
    """Open outputs that are closed: messages are dropped, and an answer cannot be written (EBADF), as in other
    programs, but a command that has none is done.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115


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
