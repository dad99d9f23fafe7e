"""Hashes of rows, by which equal rows of a MaskTable are found (kernels)."""

from __future__ import annotations

from typing import Any

from .context_layout import ROWS, T_WORDS, TABLE
from .context_views import view
from .interned_names import mix_hash
from .jit.compilation import entry

LANES = 4
"""Words that are mixed independently of each other, so that a word does not wait for the product of the one before."""


@entry("int64(int64, int64)")
def hash_row(t: Any, row: Any) -> Any:
    """Return the hash of a row."""
    rows, words = view(t, ROWS), view(t, TABLE)[T_WORDS] + 0
    base, first, second, third, fourth = words * row, 1, 2, 3, 4
    for w in range(0, words - words % LANES, LANES):
        first, second = mix_hash(first, rows[base + w]), mix_hash(second, rows[base + w + 1])
        third, fourth = mix_hash(third, rows[base + w + 2]), mix_hash(fourth, rows[base + w + 3])
    for w in range(words - words % LANES, words):
        first = mix_hash(first, rows[base + w])
    return mix_hash(mix_hash(mix_hash(first, second), third), fourth)
