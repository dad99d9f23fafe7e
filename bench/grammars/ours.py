"""Our verdict on a text token by token, and on many edits of it without reading all of it again.

Matchers are kept every few bytes. After an edit the one before it goes on, until its state is that of the matcher that
was kept at the same place: equal states have the same future.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from constrain.base.errors import TokenRefused
from constrain.engine.constraint import Constraint
from constrain.engine.matcher import Matcher

from .edits import Edit

__all__ = ["Marks", "Walk", "accepts_text", "walk_text"]

STEP = 64
"""Bytes between matchers that are kept."""


@dataclass(frozen=True, slots=True)
class Walk:
    """How far a text came: `refused` is the number of the token that the mask does not allow, or None."""

    refused: int | None
    complete: bool


def walk_text(constraint: Constraint, tokens: list[int]) -> Walk:
    """Take a text token by token; each must be in the mask before it is taken."""
    matcher = constraint.matcher()
    words = np.empty((constraint.vocabulary.size + 31) // 32, np.int32)
    for index, token in enumerate(tokens):
        matcher.mask(words)
        if not words[token >> 5] >> (token & 31) & 1:
            return Walk(index, False)
        matcher.advance(token)
    return Walk(None, matcher.is_complete)


def accepts_text(constraint: Constraint, text: bytes) -> bool:
    """Return whether a whole text is accepted, byte by byte."""
    matcher = constraint.matcher()
    try:
        matcher.advance_bytes(text)
    except TokenRefused:
        return False
    return matcher.is_complete


class Marks:
    """Matchers kept along a text that is accepted."""

    def __init__(self, constraint: Constraint, text: bytes) -> None:
        self.constraint, self.text = constraint, text
        self._keep()

    def _keep(self) -> None:
        matcher = self.constraint.matcher()
        self.forks: list[Matcher] = []
        for position in range(0, len(self.text) + 1, STEP):
            self.forks.append(matcher.fork())
            matcher.advance_bytes(self.text[position : position + STEP])
        self.epoch = matcher.state[0]
        self.states = [mark.state for mark in self.forks]

    def accepts(self, edit: Edit) -> bool:
        """Return whether the text with this edit is accepted."""
        if self.forks[0].state[0] != self.epoch:  # the state cache forgot, so all states have new numbers
            self._keep()
        first = edit.start // STEP
        matcher = self.forks[first].fork()
        shift = len(edit.put) - edit.removed
        edited = edit.of(self.text)
        position, mark = first * STEP, first + 1
        while position < len(edited):
            stop = min(mark * STEP + shift, len(edited))
            try:
                matcher.advance_bytes(edited[position:stop])
            except TokenRefused:
                return False
            position = stop
            if mark < len(self.states) and mark * STEP + shift == position and mark * STEP > edit.start:
                if matcher.state == self.states[mark]:
                    return True
            mark += 1 if mark - first < 16 else 16
        return matcher.is_complete
