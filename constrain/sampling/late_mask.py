"""`LateMask` on long rows: one token is drawn and checked; the mask is computed only if that leaves something in doubt.

A row is split into its likely tokens, which are listed, and all others, of which one pass finds the mass. The first
token is drawn from these two parts. Where it is one of the others, or fails its check, the mask decides: the mass of
what it allows among the others is summed in one more pass, and serves for the weight, for the choice among them, and
for all draws at the same prefix. The law is that of `token_rejection.LateMask` with a patience of one token; a test
sums it exactly.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..kernels import entry_points
from .core.language_model import check_mass
from .core.token_masses import Masses, as_kernel_row, find_quantile
from .exponential_race import SMALL, LikelyTokens, Row, list_likely

__all__ = ["AllowedTokens", "SharedRow", "draw_late"]

Mask = NDArray[np.int32]

NO_TOKENS = LikelyTokens(np.empty(0, np.int64), np.empty(0), np.empty(0), 0.0, 1.0)


class AllowedTokens:
    """The tokens of the model's row (float [V]) that a mask (int32 [words]) allows.

    likely: the likely tokens of the row, none if they are not known; those allowed form one part, all others another.
    logmass: log of the mass of both, in nats. others_mass: mass of the others. Raises ValueError for NaN, and for a
    mass above 1.
    """

    __slots__ = ("_likely_edges", "_likely_mass", "_likely_tokens", "_others", "logmass", "others_mass")

    def __init__(self, logprobs: Row, mask: Mask, likely: LikelyTokens = NO_TOKENS) -> None:
        most = len(likely.tokens)
        others, tokens, edges = np.empty(len(mask), np.int32), np.empty(most, np.int64), np.empty(most)
        count = entry_points.split_mask(mask, likely.tokens, likely.masses, others, tokens, edges)
        self._others = Masses(logprobs, others) if count >= 0 else None
        count = count if count >= 0 else -1 - count
        self._likely_tokens, self._likely_edges = tokens[:count], edges[:count]
        self._likely_mass = float(edges[count - 1]) if count else 0.0
        self.logmass = -math.inf if self._others is None else self._others.logmass  # even where its exponential is 0
        check_mass(self.logmass)
        self.others_mass = math.exp(self.logmass)
        if self._likely_mass:
            self.logmass = math.log(self._likely_mass + self.others_mass)
            check_mass(self.logmass)

    def draw(self, rng: np.random.Generator) -> int:
        """Draw a token with one uniform number. logmass must be above -inf."""
        uniform = rng.random()
        if not self._likely_mass:
            return self._find_other(uniform)
        point = uniform * (self._likely_mass + self.others_mass) - self._likely_mass
        if point < 0 or not self.others_mass:  # rounding may exceed the likely ones
            return int(self._likely_tokens[find_quantile(self._likely_edges, 1 + point / self._likely_mass)])
        return self._find_other(point / self.others_mass)

    def draw_other(self, rng: np.random.Generator) -> int:
        """Draw one of the tokens that are not likely. others_mass must be above 0."""
        return self._find_other(rng.random())

    def _find_other(self, uniform: float) -> int:
        assert self._others is not None
        return self._others.token_at(uniform)


class SharedRow:
    """What all draws at one prefix have in common, each computed at the first one that needs it.

    length: number of tokens of the prefix, for messages.
    allowed: the distribution under the mask; None if no draw has needed it. It is right as long as the mask of the
    prefix is the same.
    """

    __slots__ = ("_length", "_likely", "allowed")

    def __init__(self, length: int | None = None) -> None:
        self._length, self._likely = length, NO_TOKENS
        self.allowed: AllowedTokens | None = None

    def find_likely(self, logprobs: Row) -> LikelyTokens | None:
        """Return the likely tokens of the model's row; None if it is so short that each token has its own clock.

        Raises ValueError as `list_likely`.
        """
        if len(logprobs) <= SMALL:
            return None
        if self._likely is NO_TOKENS:
            try:
                self._likely = list_likely(as_kernel_row(logprobs))
            except ArgumentError as error:
                if self._length is None:
                    raise
                raise ArgumentError(f"{error} (after {self._length} tokens)") from None
        return self._likely

    def find_allowed(self, logprobs: Row, mask: Callable[[], Mask]) -> AllowedTokens:
        """Return the distribution of the model's row under the mask that `mask` returns."""
        if self.allowed is None:
            self.allowed = AllowedTokens(logprobs, mask(), self._likely)
        return self.allowed

    def sum_allowed(self, logprobs: Row, mask: Callable[[], Mask], shift: float) -> float:
        """Return the mass of the allowed tokens, divided by exp(shift)."""
        return math.exp(self.find_allowed(logprobs, mask).logmass - shift)


def draw_late(
    logprobs: Row,
    likely: LikelyTokens,
    shared: SharedRow,
    check: Callable[[int], bool],
    mask: Callable[[], Mask],
    ends: tuple[int, ...],
    slack: float,
    rng: np.random.Generator,
) -> tuple[int | None, float, int]:
    """Draw a token by one check at most, and by the mask if need be.

    Parameters
    ----------
    logprobs : float [V]
        Logs of probabilities that sum to 1.
    likely : LikelyTokens
        Of this row.
    shared : SharedRow
        Of this row and mask.
    check, mask, ends
        As in `awrs.draw_token`.
    slack : float
        As in `token_rejection.LateMask`.
    rng : numpy.random.Generator

    Returns
    -------
    token : int or None
        None if the mask allows no token of positive probability.
    log_weight : float
        In nats; -inf without a token.
    checks : int
        0 or 1.
    """
    total = likely.mass + likely.pool
    index = bisect_right(likely.edges, rng.random() * total)
    is_likely = index < len(likely.edges)
    token = int(likely.tokens[index]) if is_likely else -1
    if is_likely and check(ends[0] if token in ends else token):
        valid = float(likely.masses[index])
        left, ceiling = total - valid, slack * valid
        if left <= 0 or (left < ceiling and rng.random() * ceiling >= left):
            return token, math.log(valid), 1
        rest = min(max(shared.sum_allowed(logprobs, mask, 0.0) - valid, 0.0), left)  # rounding may exceed these bounds
        return token, math.log(valid + rest * max(ceiling / left, 1.0)), 1
    allowed = shared.find_allowed(logprobs, mask)
    if allowed.logmass == -np.inf:
        return None, -np.inf, int(is_likely)
    if not is_likely and rng.random() * likely.pool < allowed.others_mass:  # the token drawn first is allowed
        return allowed.draw_other(rng), allowed.logmass, 0
    return allowed.draw(rng), allowed.logmass, int(is_likely)
