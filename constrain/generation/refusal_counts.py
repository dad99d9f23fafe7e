"""Checks of complete texts that count what they refuse: long calls say so, and populations end by a rule.

Each particle of a population ends in a text that may be refused, and what is refused weighs nothing, so a check that
accepts nothing would keep populations growing up to their number of attempts, for hundreds of thousands of texts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ..base.errors import LimitError
from ..sampling import SAMPLERS, Checker

__all__ = ["MOST_REFUSED", "CountingCheck", "count_refusals"]

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
