"""Disk cache of vocabularies: the tokens of a rank file, parsed once for all processes.

A file contains one line of JSON (special tokens, tokens whose bytes differ from the blob, lengths), the offsets, the
bytes of all tokens, and the `struct` format that splits them: 128,000 tokens in 4 ms. It is named by a digest of the
source file and of all other arguments.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from .. import cache
from .token_bytes import name_special_tokens
from .vocabulary import Vocabulary

__all__ = ["CachedVocabulary", "LEAST_BYTES"]

SUFFIX = ".vocabulary"
LEAST_BYTES = 1 << 16
"""Smaller files are parsed faster than looked up."""
MOST_FILES = 16
MOST_BYTES = 64 << 20
HEAD = 1 << 22
"""Most bytes of the first line."""


@dataclass(frozen=True)
class CachedVocabulary:
    """A cache entry. `data` is the source file, `arguments` the other arguments of the request, as JSON values."""

    data: bytes
    arguments: Any

    def path(self) -> Path | None:
        """Return the path of the cache file, whether or not it exists; None if caching is off."""
        folder = cache.cache_folder_path()
        if folder is None:
            return None
        digest = blake2b(self.data, digest_size=16, key=cache.digest_code())
        digest.update(json.dumps(self.arguments).encode())
        return folder / f"{digest.hexdigest()}{SUFFIX}"

    def fetch(self) -> tuple[Vocabulary, Mapping[str, Any]] | None:
        """Return the vocabulary, without `encode`, and the data saved with it; None if it is not cached."""
        path = self.path()
        data = None if path is None else cache.read_sealed(path, cache.digest_code())
        if data is None:
            return None
        try:
            first = bytes(data[:HEAD]).index(b"\n") + 1
            head = json.loads(bytes(data[:first]))
            size, length = head["size"], head["bytes"]
            offsets = np.frombuffer(data, np.int32, size + 1, first).copy()
            offsets.flags.writeable = False
            first += offsets.nbytes
            blob = bytes(data[first : first + length])
            tokens: list[bytes | None] = list(struct.unpack(bytes(data[first + length :]), blob))
            for index in head["none"]:
                tokens[index] = None
            for index, text in head["others"]:
                tokens[index] = bytes.fromhex(text)
            special = dict(head["special"])
            ends = tuple(head["ends"])
            found = Vocabulary(
                tokens=tuple(tokens),
                eos_ids=ends,
                special=MappingProxyType(special),
                names=MappingProxyType(name_special_tokens(special, ends)),
                blob=blob,
                offsets=offsets,
                fingerprint=head["fingerprint"],
                name=head["name"],
            )
        except (ValueError, KeyError, TypeError, IndexError, struct.error):
            return None  # not a file of this format: parse the source again
        return found, head["extra"]

    def store(self, vocabulary: Vocabulary, extra: Mapping[str, Any]) -> None:
        """Save a vocabulary with additional data, a JSON value that `fetch` returns with it."""
        path = self.path()
        if path is None:
            return
        offsets, blob = vocabulary.offsets, vocabulary.blob
        cut = "s".join(map(str, np.diff(offsets).tolist())).encode() + b"s"
        tokens, ends = vocabulary.tokens, offsets.tolist()
        spelled = [blob[first:last] for first, last in zip(ends, ends[1:])]
        body = [offsets.tobytes(), blob, cut]
        head = {
            "name": vocabulary.name,
            "size": vocabulary.size,
            "bytes": len(blob),
            "special": list(vocabulary.special.items()),
            "ends": vocabulary.eos_ids,
            "none": [i for i, token in enumerate(tokens) if token is None],
            "others": [[i, t.hex()] for i, (t, s) in enumerate(zip(tokens, spelled)) if t is not None and t != s],
            "fingerprint": vocabulary.fingerprint,
            "extra": extra,
        }
        line = json.dumps(head).encode()
        if len(line) < HEAD - 4:
            cache.write_sealed(path, cache.digest_code(), [line + b" " * (-len(line) % 4 + 3) + b"\n", *body])
            cache.prune_folder(path.parent, SUFFIX, MOST_FILES, MOST_BYTES)
