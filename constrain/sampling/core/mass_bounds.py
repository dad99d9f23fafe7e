"""Bounds of Z = p(L) that hold for certain: the mass of the texts that were found, and all that could still be there.

    found = sum of p(x) over the texts of L that were found               V_zero: what was never visited holds nothing
    bound = found + sum of p(u) over the prefixes never visited           V_one: every continuation of them is in L

so found <= Z <= bound, whatever was drawn and however. gap = log(bound / found) says by how much what was never visited
could multiply Z. It is a statement about all that is unknown, not an estimate: with few prefixes seen it is tens of
nats wide, and it then says only that the draws alone are to be believed or not.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import NamedTuple

__all__ = ["BRACKET", "LARGEST_GAP", "ROUNDING", "UNKNOWN", "MassBounds", "bound_by_proposal", "sum_found"]

LARGEST_GAP = 0.5
"""Nats: with a larger gap, what was never visited could change Z by more than most errors that are reported."""
BRACKET = 2.0
"""Nats: bounds of log Z that are closer than this are worth printing; otherwise only the gap is."""
ROUNDING = 1e-6
"""Resolution of sums of probabilities of single precision: no unseen mass below it can be told from 0."""


class MassBounds(NamedTuple):
    """found, bound: as in the module, probabilities with 0 <= found <= Z <= bound."""

    found: float
    bound: float

    @property
    def gap(self) -> float:
        """log(bound / found) in nats; inf if no text was found."""
        return math.log(max(self.bound / self.found, 1.0)) if self.found > 0 else math.inf

    @property
    def unseen(self) -> float:
        """The largest share of Z that texts never found can hold, from 0 to 1."""
        return max(1 - self.found / self.bound, 0.0) if self.bound > 0 else 1.0

    @property
    def bracket(self) -> tuple[float, float] | None:
        """Lower and upper bound of log Z in nats, or None if they are more than BRACKET apart."""
        return (math.log(self.found), math.log(self.bound)) if self.gap < BRACKET else None


UNKNOWN = MassBounds(0.0, 1.0)
"""What holds before anything was seen."""


def sum_found(texts: Iterable[tuple[Hashable, float]]) -> float:
    """Return the total probability of texts, given with their log-probabilities, each of which counts once."""
    return math.fsum({text: math.exp(logprob) for text, logprob in texts}.values())


def bound_by_proposal(draws: Iterable[tuple[Hashable, float, float]], rounding: float = ROUNDING) -> MassBounds:
    """Bound Z by independent draws of masking, given as text, log p(x) and log q(x).

    No text has a weight p(x) / q(x) above 1, so the unseen part of Z is at most the unseen part of q, which is 1 minus
    the sum of q over what was drawn. Valid for the plain proposal, and for masks that stay the same. A draw that did
    not end has log p = -inf, and the log q of its dead prefix (or -inf if that is not known). rounding: error of the
    sum of q, which is added.
    """
    logs = {text: (logprob, logproposal) for text, logprob, logproposal in draws}
    found = math.fsum(math.exp(logprob) for logprob, _ in logs.values())
    drawn = math.fsum(math.exp(logproposal) for _, logproposal in logs.values())
    return MassBounds(found, min(found + max(1 - drawn, 0.0) + rounding, max(1.0, found)))
