"""Random edits of one byte. Most make a text invalid, some do not; the parsers must agree on which."""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = ["Edit", "draw_edit"]

SYNTAX_BYTES = b"\"'\\\n\r\t #()[]{}:;.,=0ex_@*-+<>!|/"
"""Bytes on which lexers and indentation depend."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replacement of `removed` bytes (0 or 1) at byte `start` with `inserted` (no byte or one)."""

    start: int
    removed: int
    inserted: bytes

    def apply(self, text: bytes) -> bytes:
        """Return the text after the edit."""
        return text[: self.start] + self.inserted + text[self.start + self.removed :]


def draw_edit(text: bytes, rng: random.Random) -> Edit:
    """Replace, insert or remove a byte, one third each.

    The new byte is one of the text or of SYNTAX_BYTES (probability 3/8 each), or any byte (1/4).
    """
    kind = rng.randrange(3) if text else 1
    start = rng.randrange(len(text) + (kind == 1))
    if kind == 2:
        return Edit(start, 1, b"")
    share = rng.random()
    byte = (
        rng.choice(text) if share < 0.375 and text else rng.choice(SYNTAX_BYTES) if share < 0.75 else rng.randrange(256)
    )
    return Edit(start, int(kind == 0), bytes([byte]))
