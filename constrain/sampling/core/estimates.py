"""Estimate: an estimated number with its uncertainty, and what is known about what the draws have not seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Estimate"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate with its uncertainty.

    Attributes
    ----------
    value, error : float
        The estimate and its standard error.
    low, high : float
        An interval that covers the truth with the probability that was requested, if the estimate is trusted.
    ess : float
        Effective sample size: the equivalent number of independent draws from p given L. Particles with a common
        ancestor, and states of a chain between two moves, count as one.
    n : int
        Draws made.
    trusted : bool
        Whether the interval can be believed; if not, `reason` says why.
    reason : str
        Why the estimate is not trusted; "" if it is.
    distinct : int
        Number of different texts among the draws.
    gap : float
        By how much, in nats, texts that were never seen could multiply Z at most (`core.mass_bounds`). inf if nothing
        is known; 0 for samplers that compute Z.
    bracket : tuple of float, optional
        Bounds of log Z that hold for certain, if they are narrow enough to help (less than 2 nats apart).
    """

    value: float
    error: float
    low: float
    high: float
    ess: float
    n: int
    trusted: bool
    reason: str = ""
    distinct: int = 0
    gap: float = math.inf
    bracket: tuple[float, float] | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """The pair (low, high)."""
        return self.low, self.high
