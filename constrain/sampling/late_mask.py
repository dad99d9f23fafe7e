"""`LateMask` on long rows: one token is drawn and checked; the mask is computed only if that leaves something in doubt.

A row is split into its likely tokens, which are listed, and all others, of which one pass finds the mass. The first
token is drawn from these two parts. Where it is one of the others, or fails its check, the mask decides: the mass of
what it allows among the others is summed in one more pass, and serves for the weight, for the choice among them, and
for all draws at the same prefix. The law is that of `token_rejection.LateMask` with a patience of one token; a test
sums it exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from .core.language_model import check_mass
from .core.results import log_sum
from .core.token_masses import Masses, are_allowed, as_kernel_row, enumerate_tokens, exclude_tokens, find_quantile
from .exponential_race import SMALL, LikelyTokens, Row, list_likely

__all__ = ["AllowedTokens", "SharedRow", "draw_late"]

Mask = NDArray[np.int32]
Tokens = NDArray[np.int64]


class ListedTokens:
    """Some tokens (int64 [k]) with logs of their masses (float64 [k]). logmass: log of their sum, in nats."""

    __slots__ = ("_edges", "logmass", "tokens")

    def __init__(self, tokens: Tokens, logs: NDArray[np.float64]) -> None:
        if np.isnan(logs).any():
            raise ArgumentError("the model's log-probabilities are not numbers (NaN)")
        self.tokens, self.logmass = tokens, log_sum(logs)
        self._edges = np.exp(logs - self.logmass).cumsum() if self.logmass > -np.inf else np.zeros(len(logs))

    def token_at(self, uniform: float) -> int:
        """Return the token at a quantile (from 0 to 1) of the mass. logmass must be above -inf."""
        return int(self.tokens[find_quantile(self._edges, uniform)])


class AllowedTokens:
    """The tokens of the model's row (float [V]) that a mask (int32 [words]) allows.

    likely: the likely tokens of the row, None if they are not known; those allowed form one part, all others another.
    logmass: log of the mass of both, in nats. others_mass: mass of the others. A few others are listed, more are summed
    in place (`Masses`). Raises ValueError for NaN, and for a mass above 1.
    """

    __slots__ = ("_likely_edges", "_likely_mass", "_likely_tokens", "_others", "logmass", "others_mass")

    def __init__(self, logprobs: Row, mask: Mask, likely: LikelyTokens | None = None) -> None:
        self._likely_mass = 0.0
        if likely is not None and len(likely.tokens):
            within = int(likely.tokens.searchsorted(32 * len(mask)))  # rows may be longer than the mask
            tokens = likely.tokens[:within]
            allowed = are_allowed(mask, tokens)
            self._likely_tokens, self._likely_edges = tokens[allowed], likely.masses[:within][allowed].cumsum()
            self._likely_mass = float(self._likely_edges[-1]) if len(self._likely_edges) else 0.0
            mask = exclude_tokens(mask, tokens)
        listed = enumerate_tokens(mask)
        self._others: Masses | ListedTokens
        if listed is None:
            self._others = Masses(logprobs, mask)
        else:
            self._others = ListedTokens(listed, logprobs[listed].astype(np.float64))
        self.logmass = self._others.logmass  # even where its exponential is 0
        check_mass(self.logmass)
        self.others_mass = math.exp(self.logmass)
        if self._likely_mass:
            self.logmass = math.log(self._likely_mass + self.others_mass)
            check_mass(self.logmass)

    def draw(self, rng: np.random.Generator) -> int:
        """Draw a token with one uniform number. logmass must be above -inf."""
        uniform = rng.random()
        if not self._likely_mass:
            return self._others.token_at(uniform)
        point = uniform * (self._likely_mass + self.others_mass) - self._likely_mass
        if point < 0 or not self.others_mass:  # rounding may exceed the likely ones
            return int(self._likely_tokens[find_quantile(self._likely_edges, 1 + point / self._likely_mass)])
        return self._others.token_at(point / self.others_mass)

    def draw_other(self, rng: np.random.Generator) -> int:
        """Draw one of the tokens that are not likely. others_mass must be above 0."""
        return self._others.token_at(rng.random())


class SharedRow:
    """What all draws at one prefix have in common, each computed at the first one that needs it.

    allowed: the distribution under the mask; None if no draw has needed it. It is right as long as the mask of the
    prefix is the same.
    """

    __slots__ = ("_likely", "allowed")

    def __init__(self) -> None:
        self._likely: LikelyTokens | None = None
        self.allowed: AllowedTokens | None = None

    def find_likely(self, logprobs: Row) -> LikelyTokens | None:
        """Return the likely tokens of the model's row; None if it is so short that each token has its own clock."""
        if self._likely is None and len(logprobs) > SMALL:
            self._likely = list_likely(as_kernel_row(logprobs))
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
    check, mask
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
    index = int(np.searchsorted(likely.edges, rng.random() * total, side="right"))
    is_likely = index < len(likely.edges)
    if is_likely and check(token := int(likely.tokens[index])):
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
