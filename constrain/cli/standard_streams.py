"""The standard streams, each of which a caller may have closed (`<&-`): Python has None in its place."""

from __future__ import annotations

import sys
from typing import TextIO

from ..base.errors import ArgumentError
from .display import FILE_ATTRIBUTE

__all__ = ["open_stdin"]


def open_stdin() -> TextIO:
    """Return stdin. Raise ArgumentError if it is closed."""
    if sys.stdin is None:
        error = ArgumentError(
            "the stream is closed", hint="Give a file in place of -, or send the text through a pipe."
        )
        setattr(error, FILE_ATTRIBUTE, "stdin")
        raise error
    return sys.stdin
