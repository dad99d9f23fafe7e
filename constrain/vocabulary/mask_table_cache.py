"""Disk cache of MaskTables, so that a vocabulary is prepared once per machine.

A file contains one line of JSON (metadata and array lengths) followed by the flat arrays. It is named after the
fingerprint of the vocabulary. The rows of leaves that occur in nearly every schema are prepared in advance: arbitrary
strings, white space, integers and numbers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import cache
from ..base.options import Style
from ..kernels import layout as at
from .mask_table import MaskTable

if TYPE_CHECKING:
    from ..automata.dfa import Dfa
    from .vocabulary import Vocabulary

__all__ = ["MOST_FILES", "prepare_common_leaves", "find_mask_table"]

SUFFIX = ".table"
LEAST_TOKENS = 2_048
"""Smaller vocabularies are prepared faster than a file is read."""
MOST_FILES = 8
MOST_BYTES = 384 << 20
"""Most bytes of all files. The most recently written files are retained; each has about 14 MB for 128,000 tokens."""
HEAD = 4096
"""Most bytes that are searched for the end of the first line."""


def find_mask_table(vocabulary: Vocabulary) -> MaskTable:
    """Return the one MaskTable of a vocabulary in this process, loading it from disk or building and saving it."""
    table = vocabulary.__dict__.get("mask_table")
    if table is not None and table.is_broken:
        vocabulary.__dict__.pop("mask_table", None)
        table = None
    if table is None:
        table = _load(vocabulary) or _build(vocabulary)
        table.learned.is_used = vocabulary.size >= LEAST_TOKENS
        table = vocabulary.__dict__.setdefault("mask_table", table)
    return table  # type: ignore[no-any-return]


def prepare_common_leaves(table: MaskTable) -> None:
    """Build the rows of the common leaves."""
    for dfa, mode in _common_leaves():
        table.prepare(dfa, mode)


def _common_leaves() -> list[tuple[Dfa, int]]:
    """Return the leaves that occur in nearly every schema: Dfa and mode of each."""
    from ..automata.dfa import Dfa
    from ..frontends.json_schema.core.whitespace import flexible_gap, optional_space
    from ..frontends.json_schema.numbers.number_automata import number_dfa

    style = Style()
    return [
        (Dfa.any_text(), at.JSON_STRING),
        (flexible_gap().dfa, at.UTF8),
        (optional_space().dfa, at.UTF8),
        (number_dfa(integer=True, style=style), at.UTF8),
        (number_dfa(integer=False, style=style), at.UTF8),
    ]


def _build(vocabulary: Vocabulary) -> MaskTable:
    """Build the table of a vocabulary, and save it if the vocabulary is large.

    A large table is copied, as if it came from its file: the lengths of its arrays are known then, so that they get
    huge pages.
    """
    table = MaskTable(vocabulary)
    if vocabulary.size < LEAST_TOKENS:
        return table
    prepare_common_leaves(table)
    _save(table)
    return MaskTable(vocabulary, table.snapshot(), table.starts)


def _path(fingerprint: str) -> Path | None:
    """Return the path of the file of a vocabulary; None if caching is off."""
    folder = cache.cache_folder_path()
    return None if folder is None else folder / f"{fingerprint[:32]}-{cache.digest_code().hex()[:8]}{SUFFIX}"


def _save(table: MaskTable) -> None:
    """Write a table to its file."""
    path = _path(table.fingerprint)
    if path is None:
        return
    arrays = table.snapshot()
    head = {
        "fingerprint": table.fingerprint,
        "lengths": {str(slot): len(array) for slot, array in arrays.items()},
        "starts": [[key.hex(), mode, state] for (key, mode), state in table.starts.items()],
    }
    line = json.dumps(head).encode()
    parts: list[Any] = [line + b" " * (-len(line) % 4 + 3) + b"\n", *(array.data for array in arrays.values())]
    cache.write_sealed(path, cache.digest_code(), parts)
    cache.prune_folder(path.parent, SUFFIX, MOST_FILES, MOST_BYTES)


def _load(vocabulary: Vocabulary) -> MaskTable | None:
    """Return the table in the file of a vocabulary, or None."""
    path = _path(vocabulary.fingerprint) if vocabulary.size >= LEAST_TOKENS else None
    data = None if path is None else cache.read_sealed(path, cache.digest_code())
    if data is None:
        return None
    try:
        first = bytes(data[:HEAD]).index(b"\n") + 1
        head = json.loads(bytes(data[:first]))
        if head["fingerprint"] != vocabulary.fingerprint:
            return None
        arrays = {}
        for slot, length in head["lengths"].items():
            arrays[int(slot)] = np.frombuffer(data, np.int32, length, first)
            first += 4 * length
        if first != len(data):
            return None
        starts = {(bytes.fromhex(key), mode): state for key, mode, state in head["starts"]}
        return MaskTable(vocabulary, arrays, starts)
    except (ValueError, KeyError, TypeError):
        return None  # not a file of this format: rebuild the table
