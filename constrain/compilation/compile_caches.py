"""The store: compiled programs, mask tables and vocabularies are kept, in this process and for later ones.

    recent         Constraints compiled last in this process: compiling an equal source again is a lookup
    programs       what texts of a source have needed of it, on disk: a later process masks without a front end
    tables         prepared mask tables on disk: rows, remainders and tries
    vocabularies   tokens of rank files on disk

How files are trusted, sealed, written and pruned is in `constrain.cache`. The folder is `~/.cache/constrain`; the
environment variable CONSTRAIN_STORE names another, or "off". In a process, `recent.most = 0` and `programs.most = 0`
switch those two off, and `recent.clear()` evicts. Files may be removed at any time.
"""

from typing import Any

from ..cache.cache_folder import cache_folder_path
from ..cache.constraint_lru import LRU
from ..cache.source_keys import cache_key, copy_source
from ..program.program_cache import ProgramCache
from ..vocabulary.mask_table_cache import find_mask_table, prepare_common_leaves

__all__ = [
    "LRU",
    "ProgramCache",
    "cache_key",
    "copy_source",
    "cache_folder_path",
    "prepare_common_leaves",
    "programs",
    "recent",
    "find_mask_table",
]

recent: LRU[Any] = LRU()
programs = ProgramCache()
