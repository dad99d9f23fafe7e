"""Bounded reading of files of models and tokenizers, which often come from untrusted sources.

Only regular files are read (a FIFO would block, a device never ends), up to MOST_BYTES, and JSON up to MOST_NESTING.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..base.errors import VocabularyError, shorten_text
from ..base.json_documents import find_deeper

__all__ = ["check_file", "parse_document", "read_bytes", "read_object"]

MOST_BYTES = 256 << 20
"""Largest file that is read. The largest known tokenizer files have 35 MB."""
MOST_NESTING = 256
"""Deepest nesting of a JSON document, as `Limits.nesting`."""


def check_file(path: Path) -> Path:
    """Return the path of a regular file of bounded size; VocabularyError for everything else."""
    try:
        regular, size = path.is_file(), path.stat().st_size if path.exists() else 0
    except (OSError, ValueError) as error:
        raise VocabularyError(f"{shorten_text(path)} cannot be read: {shorten_text(error)}") from error
    if not regular:
        raise VocabularyError(
            f"{shorten_text(path)} is not a regular file" if path.exists() else f"there is no file {shorten_text(path)}"
        )
    if size > MOST_BYTES:
        raise VocabularyError(f"{shorten_text(path)} has {size:,} bytes; at most {MOST_BYTES:,} are read")
    return path


def read_bytes(path: Path) -> bytes:
    """Return the contents of a regular file of bounded size."""
    try:
        return check_file(path).read_bytes()
    except OSError as error:
        raise VocabularyError(f"{shorten_text(path)} cannot be read: {shorten_text(error)}") from error


def parse_document(data: bytes, path: Path) -> Any:
    """Return the value of a JSON document.

    Raise VocabularyError if it is invalid or nested deeper than MOST_NESTING.
    """
    if find_deeper(data.decode("latin-1"), MOST_NESTING) >= 0:
        raise VocabularyError(f"{shorten_text(path)} is nested more than {MOST_NESTING} levels deep")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"{shorten_text(path)} is not JSON: {shorten_text(error)}") from error


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file, or an empty one if there is no such file."""
    if not path.exists() and not path.is_symlink():
        return {}
    document = parse_document(read_bytes(path), path)
    if not isinstance(document, dict):
        raise VocabularyError(f"{shorten_text(path)} is not a JSON object")
    return document
