"""A text as tokens, in every way: which tokens may stand at a byte of it, and random roads through them.

A road ends exactly at the end of the text. With all 256 single bytes among the tokens, as here, there is always one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

__all__ = ["Cutter"]

STYLES = ("short", "long", "any")


class Cutter:
    """The tokens of a vocabulary as a dictionary of bytes. ValueError if a byte is no token."""

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self.ids = {token: number for number, token in enumerate(tokens) if token}
        missing = [byte for byte in range(256) if bytes((byte,)) not in self.ids]
        if missing:
            raise ValueError(f"{len(missing)} bytes are not tokens")
        self.longest = max(map(len, self.ids))
        self.begun = {token[:end] for token in self.ids for end in range(1, len(token))}

    def at(self, text: bytes, position: int) -> list[tuple[int, int]]:
        """(token, its length) of every token that the text goes on with at a place, short ones first."""
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
        """Random tokens that spell the text. ways: `at` of each place."""
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
