"""The source of choices from which documents are drawn: Hypothesis or a pseudo-random generator."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Protocol

__all__ = ["HARDER", "TRIES", "Chooser", "NoMember", "Seeded"]

TRIES, HARDER = 4, 60
"""Numbers of attempts to draw a member that differs from others: with ordinary choices and, if all of these were
duplicates, with random choices."""


class NoMember(Exception):
    """No further member was found that differs from all others."""


class Chooser(Protocol):
    """A source of choices.

    `below(n)` returns an integer from 0 to n - 1; `span` runs the function that writes a part that may be left out.
    """

    def below(self, n: int) -> int: ...
    def span(self, work: Callable[[], None]) -> None: ...


class Seeded:
    """A pseudo-random source of choices, for members that only have to differ."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, n: int) -> int:
        return self._random.randrange(n)

    def span(self, work: Callable[[], None]) -> None:
        work()
