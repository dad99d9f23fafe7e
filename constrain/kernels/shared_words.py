"""Words that one thread writes while others read them without a lock (kernels).

The table of a vocabulary and the code of a program are shared by threads, and grow under a lock. Kernels read them
without one, and without the GIL. What is new becomes visible through one word, its *publication*, that is written last:

| word | publishes |
|---|---|
| LEAF_FLAGS with LEAF_EXPANDED | the transitions of a leaf state, its allowed bytes, its successors |
| LEAF_ROW | a row, and LEAF_LONGEST |
| LEAF_SUFFIXES | a suffix trie, and LEAF_SUFFIXES_END |
| LEAF_BY_LENGTH, LEAF_SHORT | the tokens of a row by length |
| LEX_ROOTS, EXIT_READER | a reader, and the classes, exits and words of its results |
| the cell of a rule in CODE | the code of the rule |

Such a word is written by `store_release` and read by `load_acquire` where a kernel first depends on it. So what it
publishes is visible to who reads it, on processors that reorder loads and stores (C11, section 7.17.3), too. On x86-64
both are plain moves; on aarch64 they are `stlr` and `ldar`. All other words are of one thread, or are read and written
under the lock, or do not change after their publication.
"""

from __future__ import annotations

from typing import Any

from .context_views import at, store_release
from .jit.compilation import entry


@entry("int64(int64, int64, int64)", releases_gil=False)
def publish_word(address: Any, index: Any, value: Any) -> Any:
    """Write word `index` of the int32s at an address, after all that this thread has written before. Return 0."""
    return store_release(at(address), index, value)
