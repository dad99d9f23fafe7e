"""Who chooses: the one question that a document is made of, and its answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Protocol

__all__ = ["HARDER", "TRIES", "Chooser", "NoMember", "Seeded"]

TRIES, HARDER = 4, 60
"""Draws of a member that must differ from others, chosen; and, if all were there already, random ones."""


class NoMember(Exception):
    """No further member was found that differs from all others."""


class Chooser(Protocol):
    """Who chooses: `below(n)` gives a number from 0 to n - 1; `span` runs what writes a part that may be left out."""

    def below(self, n: int) -> int: ...
    def span(self, work: Callable[[], None]) -> None: ...


class Seeded:
    """A chooser that needs no one: for what must only differ."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, n: int) -> int:
        return self._random.randrange(n)

    def span(self, work: Callable[[], None]) -> None:
        work()
