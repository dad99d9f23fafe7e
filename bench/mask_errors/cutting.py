"""Tokenisations of a text: the tokens that may follow at each byte, and random sequences of them.

All 256 single bytes must be tokens, so that every prefix of a tokenisation can be continued to the end of the text.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

__all__ = ["Cutter"]

STYLES = ("short", "long", "any")
"""Preferences for the length of tokens, one of which is drawn for each path."""


class Cutter:
    """The tokens of a vocabulary by their bytes. Raises ValueError if a single byte is not a token."""

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self.ids = {token: number for number, token in enumerate(tokens) if token}
        missing = [byte for byte in range(256) if bytes((byte,)) not in self.ids]
        if missing:
            raise ValueError(f"{len(missing)} bytes are not tokens")
        self.longest = max(map(len, self.ids))
        self.begun = {token[:end] for token in self.ids for end in range(1, len(token))}

    def list_tokens(self, text: bytes, position: int) -> list[tuple[int, int]]:
        """Return (token, length) of every token with which the text continues at a position, shortest first."""
        found = []
        for end in range(position + 1, min(len(text), position + self.longest) + 1):
            piece = text[position:end]
            number = self.ids.get(piece)
            if number is not None:
                found.append((number, end - position))
            if piece not in self.begun:
                break
        return found

    def draw_path(self, text: bytes, candidates: Sequence[Sequence[tuple[int, int]]], rng: random.Random) -> list[int]:
        """Return random tokens that spell the text. candidates: `list_tokens` of each position."""
        style, position, out = rng.choice(STYLES), 0, []
        while position < len(text):
            choice = candidates[position]
            weights = [
                1.0 if style == "any" else length**2 if style == "long" else 1 / length**2 for _, length in choice
            ]
            token, length = rng.choices(choice, weights)[0]
            out.append(token)
            position += length
        return out
