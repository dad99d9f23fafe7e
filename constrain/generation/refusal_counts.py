"""Checks and critics of complete texts that count what they refuse: calls say so, and populations end by a rule.

Each particle of a population ends in a text that may be refused, and what is refused weighs nothing, so a check that
accepts nothing would keep populations growing up to their number of attempts, for hundreds of thousands of texts.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..base.errors import LimitError
from ..sampling import SAMPLERS, Checker, Guide, SamplingTarget

__all__ = ["MOST_REFUSED", "CountingCheck", "CountingGuide", "count_exclusions", "count_refusals"]

REPORTED = 1000
"""Refused texts from which on it is logged that none was accepted, whenever their number has doubled."""
MOST_REFUSED = 10_000
"""Refused texts without an accepted one after which populations end."""

logger = logging.getLogger("constrain.generation")


class CountingCheck:
    """A check that counts the texts that it refuses until it has accepted one.

    Each doubling is logged as a warning, so that a program without a configuration of logging prints it to stderr.

    Parameters
    ----------
    check : callable
        Returns whether the bytes of a complete text are accepted.
    most : int, optional
        Number of refused texts after which it raises LimitError.
    """

    def __init__(self, check: Callable[[bytes], bool], most: int | None) -> None:
        self.check, self.most, self.refused, self.reported = check, most, 0, REPORTED
        self.has_accepted = False

    def __call__(self, text: bytes) -> bool:
        """Return whether a text is accepted."""
        accepted = self.check(text)
        self.has_accepted = self.has_accepted or accepted
        if self.has_accepted:
            return accepted
        self.refused += 1
        if self.refused == self.reported:
            self.reported *= 2
            logger.warning("constrain: the check has refused all of %d texts so far", self.refused)
        if self.most is not None and self.refused >= self.most:
            raise LimitError(
                f"the check refused all of {self.refused} texts",
                hint='See which texts it refuses, or state the condition in the constraint. sampler="exact" and '
                '"without_replacement" go on for longer.',
            )
        return False


def count_refusals(checker: Checker | Callable[[bytes], bool] | None, sampler: str) -> Any:
    """Return a check of complete texts with its count; None and checkers of the text so far unchanged."""
    if checker is None or hasattr(checker, "matcher"):
        return checker
    return CountingCheck(checker, MOST_REFUSED if SAMPLERS[sampler].takes_particles else None)  # type: ignore[arg-type]


class CountingGuide(Guide):
    """A critic that counts the texts it judges, and those that it excludes by a score of -inf.

    An excluded text has ended, but weighs nothing, so a sampler returns it no more than one that did not end.

    Parameters
    ----------
    guide : Guide
        The critic.
    most : int, optional
        Number of excluded texts, without another one, after which `judge` raises LimitError.
    """

    most: int | None
    counts: Counter[bool]

    def __init__(self, guide: Guide, most: int | None) -> None:
        super().__init__(guide.score, guide.prefix, guide.bound, guide.tokens)
        object.__setattr__(self, "most", most)
        object.__setattr__(self, "counts", Counter())

    def judge(self, text: str) -> float:
        """Return the score of a complete text, as every Guide."""
        score = super().judge(text)
        self.counts[score == -math.inf] += 1
        if self.counts[True] == self.most and (error := self.explain_missing()) is not None:
            raise error
        return score

    def explain_missing(self) -> LimitError | None:
        """Return the error of a call without a text, if the critic has excluded all that ended; otherwise None."""
        if self.counts[False] or not self.counts[True]:
            return None
        return LimitError(
            f"the critic excluded all of {self.counts[True]} texts that ended: it gave each the score -inf",
            hint="See which texts it excludes, give finite scores, or state the condition in the constraint.",
        )


def count_exclusions(target: SamplingTarget, sampler: str) -> tuple[SamplingTarget, Callable[[], LimitError | None]]:
    """Return a target whose critic counts what it excludes, and `CountingGuide.explain_missing` of it."""
    if target.guide is None:
        return target, lambda: None
    critic = CountingGuide(target.guide, MOST_REFUSED if SAMPLERS[sampler].takes_particles else None)
    return replace(target, critic=critic), critic.explain_missing
