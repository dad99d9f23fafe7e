"""Our verdict on a text token by token, and on many edits of it without matching the whole text each time.

Matchers are stored every few bytes. An edited text is matched from the last one before the edit, until the state equals
the stored state at the same byte: equal states accept the same continuations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from constrain.base.errors import TokenRefused
from constrain.engine.constraint import Constraint
from constrain.engine.matcher import Matcher

from .edits import Edit

__all__ = ["Checkpoints", "Walk", "walk_text"]

STEP = 64
"""Bytes between two stored matchers."""


@dataclass(frozen=True, slots=True)
class Walk:
    """The outcome of `walk_text`. refused: index of the first token that the mask does not allow, or None."""

    refused: int | None
    complete: bool


def walk_text(constraint: Constraint, tokens: list[int]) -> Walk:
    """Advance a matcher token by token, up to the first token that is not in the mask."""
    matcher = constraint.matcher()
    words = np.empty((constraint.vocabulary.size + 31) // 32, np.int32)
    for index, token in enumerate(tokens):
        matcher.mask(words)
        if not words[token >> 5] >> (token & 31) & 1:
            return Walk(index, False)
        matcher.advance(token)
    return Walk(None, matcher.is_complete)


class Checkpoints:
    """Matchers along an accepted text, to judge edits of it."""

    def __init__(self, constraint: Constraint, text: bytes) -> None:
        self.constraint, self.text = constraint, text
        self._store_matchers()

    def _store_matchers(self) -> None:
        """Match the text and store matchers and their states."""
        matcher = self.constraint.matcher()
        self.forks: list[Matcher] = []
        for position in range(0, len(self.text) + 1, STEP):
            self.forks.append(matcher.fork())
            matcher.advance_bytes(self.text[position : position + STEP])
        self.epoch = matcher.state[0]
        self.states = [matcher.state for matcher in self.forks]

    def accepts(self, edit: Edit) -> bool:
        """Return whether the text with this edit is accepted."""
        if self.forks[0].state[0] != self.epoch:  # the state cache was evicted, so states have new numbers
            self._store_matchers()
        first = edit.start // STEP
        matcher = self.forks[first].fork()
        shift = len(edit.inserted) - edit.removed
        edited = edit.apply(self.text)
        position, index = first * STEP, first + 1
        while position < len(edited):
            stop = min(index * STEP + shift, len(edited))
            try:
                matcher.advance_bytes(edited[position:stop])
            except TokenRefused:
                return False
            position = stop
            if index < len(self.states) and index * STEP + shift == position and index * STEP > edit.start:
                if matcher.state == self.states[index]:
                    return True
            index += 1 if index - first < 16 else 16
        return matcher.is_complete
