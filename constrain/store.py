"""The store: prepared MaskTables on disk, so that a vocabulary is prepared once per machine.

A table's arrays are flat, so a file is a line of JSON (what they are, lengths, checksum) and the arrays behind it.
The file is named after the vocabulary's fingerprint and the layout of the arrays; one that does not check is ignored
and written anew. Nothing in it is ever executed. What is prepared are the leaves that nearly every schema has: any
string, white space, integers and numbers.
"""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .kernels import layout as at
from .style import Style
from .tokens.mask_table import MaskTable

if TYPE_CHECKING:
    from .automata.dfa import Dfa
    from .tokens.vocabulary import Vocabulary

__all__ = ["folder", "prepare", "table_of"]

FORMAT = "constrain table 1"
LEAST_TOKENS = 2_048
"""Vocabularies below are prepared faster than a file is read."""
MOST_FILES = 16
"""Vocabularies kept, the latest used: some 15 MB each."""


def folder() -> Path:
    """Where tables are kept: may be removed at any time."""
    return Path.home() / ".cache" / "constrain"


def table_of(vocabulary: Vocabulary) -> MaskTable:
    """The one MaskTable of a vocabulary in this process: from the store, or made and stored."""
    table = vocabulary.__dict__.get("mask_table")
    if table is None:
        table = vocabulary.__dict__.setdefault("mask_table", _load(vocabulary) or _make(vocabulary))
    return table  # type: ignore[no-any-return]


def prepare(table: MaskTable) -> None:
    """Makes the rows of the common leaves."""
    for dfa, mode in _common():
        table.prepare(dfa, mode)


def _common() -> list[tuple[Dfa, int]]:
    from .automata.dfa import Dfa
    from .frontends.json_schema.numbers.numbers import number_dfa
    from .frontends.json_schema.spacing import blank

    style = Style()
    return [
        (Dfa.any_text(), at.JSON_STRING),
        (blank(style).dfa, at.UTF8),
        (number_dfa(integer=True, style=style), at.UTF8),
        (number_dfa(integer=False, style=style), at.UTF8),
    ]


def _make(vocabulary: Vocabulary) -> MaskTable:
    table = MaskTable(vocabulary)
    if vocabulary.size >= LEAST_TOKENS:
        prepare(table)
        _save(table)
    return table


def _path(fingerprint: str) -> Path:
    from .kernels.__main__ import ROOM, stamp

    return folder() / f"{fingerprint[:32]}-{stamp(ROOM / 'masks.py')}.table"


def _save(table: MaskTable) -> None:
    """Writes a table beside others, under its final name only when it is whole."""
    arrays = table.snapshot()
    body = b"".join(array.tobytes() for array in arrays.values())
    head = {
        "format": FORMAT,
        "fingerprint": table.fingerprint,
        "lengths": {str(slot): len(array) for slot, array in arrays.items()},
        "starts": [[key.hex(), mode, state] for (key, mode), state in table.starts.items()],
        "checksum": zlib.crc32(body),
    }
    try:
        folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = sorted(folder().glob("*.table"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in kept[MOST_FILES - 1 :]:
            old.unlink(missing_ok=True)
        handle, name = tempfile.mkstemp(dir=folder())
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(head).encode() + b"\n" + body)
        os.replace(name, _path(table.fingerprint))
    except OSError:
        return  # no home, no room, no right to write: the next process prepares again


def _load(vocabulary: Vocabulary) -> MaskTable | None:
    if vocabulary.size < LEAST_TOKENS:
        return None
    try:
        path = _path(vocabulary.fingerprint)
        with path.open("rb") as file:
            head = json.loads(file.readline())
            body = file.read()
        if (head["format"], head["fingerprint"], head["checksum"]) != (
            FORMAT,
            vocabulary.fingerprint,
            zlib.crc32(body),
        ):
            return None
        arrays, first = {}, 0
        for slot, length in head["lengths"].items():
            arrays[int(slot)] = np.frombuffer(body, np.int32, length, first)
            first += 4 * length
        starts = {(bytes.fromhex(key), mode): state for key, mode, state in head["starts"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None  # not there, or not ours: it is made anew
    return MaskTable(vocabulary, arrays, starts)
