"""The caches of the compiler: programs, mask tables and vocabularies, in this process and on disk.

    recent         LRU of the Constraints of this process: compiling an equal source again is a lookup
    programs       linked rules of each source, on disk: a later process computes masks without a frontend
    tables         prepared mask tables on disk: rows, suffix tries and tries
    learned rows   rows and suffix tries of patterns, formats and numbers, on disk
    lexemes        what the scanners of grammars make of all tokens, on disk
    vocabularies   tokens of rank files on disk

How files are trusted, sealed, written and pruned is in `constrain.cache`. The folder is `~/.cache/constrain`; the
environment variable CONSTRAIN_STORE names another, or "off". Within a process, `recent.most = 0` and `programs.most =
0` disable these two, and `recent.clear()` evicts. Files may be removed at any time.
"""

from typing import Any

from ..cache.cache_folder import cache_folder_path
from ..cache.constraint_lru import LRU
from ..cache.source_keys import cache_key, copy_source
from ..program.program_cache import ProgramCache
from ..vocabulary import learned_row_cache, lexeme_table_cache
from ..vocabulary.mask_table_cache import find_mask_table, prepare_common_leaves

__all__ = [
    "LRU",
    "ProgramCache",
    "cache_key",
    "copy_source",
    "cache_folder_path",
    "flush_caches",
    "prepare_common_leaves",
    "programs",
    "recent",
    "find_mask_table",
]

recent: LRU[Any] = LRU()
programs = ProgramCache()


def flush_caches() -> None:
    """Write everything that is pending, which a thread would write within a second, or the process when it ends."""
    programs.flush()
    learned_row_cache.WRITING.flush()
    lexeme_table_cache.WRITING.flush()
