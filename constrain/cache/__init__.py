"""Caches in memory and on disk, independent of their content.

    cache_folder     the folder of cached files, and the digest of the code that writes them
    file_trust       the trust check: only this user or root can have written a file
    sealed_files     sealed files: a digest over the content, atomic writing, pruning
    constraint_lru   LRU of the Constraints of this process
    write_behind     deferred writing in a thread
    source_keys      cache keys of requests

What is cached and how it is serialised is defined where it is made: linked programs, prepared mask tables, learned
rows, lexeme tries and vocabularies (`constrain.compilation.compile_caches`), Lark parsers
(`frontends.lark.parser_cache`), machine code (`kernels.native.library_cache`). `compilation.disk_usage` lists all kinds
of files with their bounds.
"""

from .cache_folder import PACKAGE, VARIABLE, cache_folder_path, default_cache_folder, digest_code
from .constraint_lru import LRU
from .file_trust import is_trusted
from .sealed_files import prune_folder, read_sealed, remove_file, touch_file, write_sealed
from .source_keys import cache_key, copy_source
from .write_behind import WriteBehind

__all__ = [
    "LRU",
    "PACKAGE",
    "VARIABLE",
    "WriteBehind",
    "cache_key",
    "copy_source",
    "default_cache_folder",
    "cache_folder_path",
    "is_trusted",
    "digest_code",
    "prune_folder",
    "read_sealed",
    "remove_file",
    "touch_file",
    "write_sealed",
]
