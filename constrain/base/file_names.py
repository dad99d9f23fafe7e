"""Names that a file can have."""

from __future__ import annotations

import os

from .errors import ArgumentError, describe_value

__all__ = ["check_file_name"]


def check_file_name(path: str | os.PathLike[str]) -> None:
    """Raise ArgumentError unless the file system can encode a path, whether or not the file exists."""
    try:
        can_exist = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        can_exist = False
    if not can_exist:
        raise ArgumentError(f"path is {describe_value(path)}: no file can have this name")
