"""Refuse a tokenizer.json on which the tokenizers package would abort the process instead of raising an error.

The package is written in Rust, where a failed allocation, and some out-of-range slices, abort the process. Each check
covers one such case; `python -m fuzz tokenizer-json` searches for more.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..base.errors import VocabularyError, shorten_text

__all__ = ["check_tokenizer_json"]


def check_tokenizer_json(document: Mapping[str, Any], path: Path) -> None:
    """Raise VocabularyError if a document must not be passed to the tokenizers package.

    Parameters
    ----------
    document : mapping
        The parsed tokenizer.json.
    path : Path
        Its path, for the message.
    """
    check_merges(document, path)
    check_charsmaps(document, path)


def check_merges(document: Mapping[str, Any], path: Path) -> None:
    """Check merges: the package slices the subword prefix off the second part of each without checking that it is
    there.
    """
    model = document.get("model")
    prefix = model.get("continuing_subword_prefix") if isinstance(model, dict) else None
    merges = model.get("merges") if isinstance(model, dict) else None
    if not isinstance(prefix, str) or not prefix or not isinstance(merges, list):
        return
    for merge in merges:
        parts = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(parts, list) or not parts or not str(parts[-1]).startswith(prefix):
            raise VocabularyError(
                f"{shorten_text(path)}: a merge lacks the prefix {shorten_text(prefix, 40)!r} of subwords"
            )


def check_charsmaps(document: Mapping[str, Any], path: Path) -> None:
    """Check precompiled normalizers: the package allocates the trie size that their first four bytes declare."""
    for text in find_charsmaps(document):
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            continue  # refused by the package itself, with an error
        if len(data) < 4 or int.from_bytes(data[:4], "little") > len(data) - 4:
            raise VocabularyError(
                f"{shorten_text(path)}: a precompiled_charsmap declares a trie that is larger than its data"
            )


def find_charsmaps(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield each precompiled_charsmap, in a normalizer or in a list of normalizers."""
    todo = [document.get("normalizer")]
    while todo:
        one = todo.pop()
        if isinstance(one, list):
            todo += one
        elif isinstance(one, dict):
            if isinstance(text := one.get("precompiled_charsmap"), str):
                yield text
            todo.append(one.get("normalizers"))
