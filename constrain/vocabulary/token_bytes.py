"""The bytes of the tokens of a vocabulary in one block, with names for special tokens, and their fingerprint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from ..base.errors import VocabularyError
from .token_names import FIRST, token_name

__all__ = ["MOST_BYTES", "fingerprint_tokens", "name_special_tokens", "spell_tokens"]

MOST_BYTES = (1 << 22) - 2
"""Most bytes of all tokens together. Each byte is a trie node, and kernels pack a node and a byte into an int32.

About as many nodes again are reserved for tries derived from it (`mask_table.TRIE_WORDS`). 262,144 tokens have about
2 MB.
"""


def name_special_tokens(special: Mapping[str, int], ends: Sequence[int]) -> dict[int, bytes]:
    """Return the name in bytes of each special token that is not an end token, by id."""
    within = sorted(set(special.values()) - set(ends))
    return {index: token_name(number) for number, index in enumerate(within)}


def spell_tokens(tokens: Sequence[bytes | None], names: Mapping[int, bytes]) -> tuple[bytes, NDArray[np.int32]]:
    """Return the bytes of all tokens, concatenated, and the offsets (see the attributes of Vocabulary).

    Raise VocabularyError if there are too many bytes.
    """
    spelled = [token or b"" for token in tokens]
    if FIRST in b"".join(spelled):
        spelled = [b"" if FIRST in token else token for token in spelled]
    for index, octets in names.items():
        spelled[index] = octets
    lengths = np.fromiter(map(len, spelled), np.int64, len(spelled))
    total = int(lengths.sum())
    if total > MOST_BYTES:
        raise VocabularyError(f"the tokens hold {total:,} bytes together; at most {MOST_BYTES:,} are read")
    offsets = np.zeros(len(spelled) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    offsets.flags.writeable = False
    return b"".join(spelled), offsets


def fingerprint_tokens(blob: bytes, offsets: NDArray[np.int32], ends: Sequence[int], special: Mapping[str, int]) -> str:
    """Return the hex digest of everything that masks depend on.

    The first field is the version of this serialisation.
    """
    out = blake2b(b"constrain vocabulary 2", digest_size=16)
    for part in (
        offsets.astype("<i4").tobytes(),
        blob,
        np.array(ends, "<i4").tobytes(),
        repr(sorted(special.items(), key=lambda item: (item[1], item[0]))).encode(),
    ):
        out.update(len(part).to_bytes(8, "little"))
        out.update(part)
    return out.hexdigest()
