"""What the disk caches take, by kind of file, beside the most that each may take.

Each kind is bounded by its own module when it writes, so the whole folder is bounded by the sum, of which it usually
takes a small part. Compiled kernels are elsewhere (`kernels.native.library_cache`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ..cache.sealed_files import remove_file
from ..frontends.lark import parser_cache
from ..program import program_cache
from ..vocabulary import learned_row_cache, lexeme_table_cache, mask_table_cache, vocabulary_cache
from .compile_caches import programs

__all__ = ["CacheKind", "CacheUsage", "clear_disk", "list_kinds", "measure_disk"]


class CacheKind(NamedTuple):
    """Files that end in `suffix`: what they hold, and the most files and bytes of them."""

    name: str
    suffix: str
    most_files: int
    most_bytes: int


class CacheUsage(NamedTuple):
    """The files of one kind in a folder, and their bytes."""

    kind: CacheKind
    files: int
    bytes_used: int


def list_kinds() -> list[CacheKind]:
    """Return all kinds of files in the folder of disk caches."""
    rows, tables = learned_row_cache, mask_table_cache
    return [
        CacheKind("vocabularies", vocabulary_cache.SUFFIX, vocabulary_cache.MOST_FILES, vocabulary_cache.MOST_BYTES),
        CacheKind("tables of vocabularies", tables.SUFFIX, tables.MOST_FILES, tables.MOST_BYTES),
        CacheKind("rows of patterns and formats", rows.SUFFIX, rows.MOST_FILES, rows.MOST_FILES * rows.MOST_BYTES),
        CacheKind("programs of schemas", program_cache.SUFFIX, programs.most, programs.most_bytes),
        CacheKind("parsers of grammars", parser_cache.SUFFIX, parser_cache.MOST_FILES, parser_cache.MOST_BYTES),
        CacheKind(
            "lexemes of grammars", lexeme_table_cache.SUFFIX, lexeme_table_cache.MOST_FILES,
            lexeme_table_cache.MOST_BYTES,
        ),
    ]  # fmt: skip


def measure_disk(folder: Path) -> list[CacheUsage]:
    """Return what each kind of file takes in a folder, which need not exist."""
    return [CacheUsage(kind, len(sizes), sum(sizes)) for kind, sizes in _list_sizes(folder).items()]


def clear_disk(folder: Path) -> int:
    """Remove the files of all kinds from a folder. Return their bytes. Other files are left alone."""
    before = sum(usage.bytes_used for usage in measure_disk(folder))
    for kind in list_kinds():
        for path in folder.glob(f"*{kind.suffix}"):
            remove_file(path)
    return before - sum(usage.bytes_used for usage in measure_disk(folder))


def _list_sizes(folder: Path) -> dict[CacheKind, list[int]]:
    """Return the sizes of the files of each kind."""
    sizes: dict[CacheKind, list[int]] = {kind: [] for kind in list_kinds()}
    try:
        entries = list(os.scandir(folder))
    except OSError:  # no such folder, or not ours to read
        return sizes
    for entry in entries:
        for kind, found in sizes.items():
            if entry.name.endswith(kind.suffix) and entry.is_file(follow_symlinks=False):
                found.append(entry.stat(follow_symlinks=False).st_size)
    return sizes
