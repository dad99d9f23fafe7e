"""The exponential race: enumerate tokens lazily in the order of sampling without replacement.

Every token has an independent clock, Exp(1) / p(token). The first arrival is a draw from p, the second a draw from p
without the first, and so on (Plackett-Luce, the distribution of Gumbel top-k). The vocabulary need not be sorted:
likely tokens have their own clocks, and all others share one whose rate is their total mass. When the shared clock is
first, their masses are summed (once: `kernels.draws`), and one of them is drawn and removed. Clocks are memoryless, so
those still running may be redrawn: once little mass is left, it is summed again rather than obtained by subtraction
from 1.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..kernels import entry_points
from ..kernels.call_layout import GROUP
from .core.language_model import describe_fault
from .core.token_masses import as_kernel_row, exclude_tokens

__all__ = ["FAINTEST", "ExponentialRace", "LikelyTokens", "Row", "list_likely"]

HEAD = 5e-4
"""Smallest share of the mass at which a token has its own clock; at most 2,000 tokens have one."""
ROOM = 1.25
"""Capacity of the list of likely tokens, as a multiple of the total mass; only a row that is not a distribution exceeds
it."""
USUAL, MOST = 64, int(ROOM / HEAD)
"""Numbers of likely tokens for which memory is taken: at first, and if there are more."""
SMALL = 1024
"""In rows up to this length every token has its own clock, which is as fast and needs no subtraction."""
BATCH = 256
"""Approximate number of tokens sorted at a time if every token has its own clock."""
FINE = 0.1
"""Share of the mass: when less than this is valid or unchecked, masses are summed again. A row of float32 sums to 1
within about 1e-6, which is still small relative to the rest."""
FAINT = 1e-17
"""Share of the mass below which tokens are listed rather than drawn from sums of float32, whose range ends at 1e-38."""
FAINTEST = -650.0
"""Tokens less likely than exp(FAINTEST) are left out, since division by their mass would overflow."""
TOLERANCE = 1e-2
"""Permitted relative error of the total mass of a row."""

Row = NDArray[np.floating[Any]]
Masses = NDArray[np.float64]

EMPTY, ONE_CLOCK, NO_TOKENS, NO_MASK = np.empty(0), np.zeros(1), np.empty(0, np.int64), np.empty(0, np.int32)


class LikelyTokens(NamedTuple):
    """The tokens of a row that have their own clocks.

    tokens: int64 [k], ascending. masses, edges: float64 [k], their masses and the cumulative sums of these. mass: their
    total. pool: the mass of all others.
    """

    tokens: NDArray[np.int64]
    masses: Masses
    edges: Masses
    mass: float
    pool: float


def list_likely(logs: Row, total: float = 1.0) -> LikelyTokens:
    """Find the likely tokens of a row (float [V], as kernels read it) in one pass.

    Raises ValueError for NaN, for a row without any mass, and for one that sums to more than `total`.
    """
    floor = logs.dtype.type(math.log(HEAD * total))
    for size in (USUAL, MOST):
        tokens, masses, edges = np.empty(size, np.int64), np.empty(size), np.empty(size)
        count = entry_points.list_above(logs, floor, tokens, masses, edges)
        if count <= size:
            break
    mass = float(edges[min(count, size) - 1]) if count else 0.0
    if not 0 < mass <= total:
        check_top(float((logs[tokens[:size][:count]] if count else logs).max()), total)
    if count > MOST:
        raise ArgumentError(f"the model's probabilities do not sum to 1 but to more than {ROOM}")
    return LikelyTokens(tokens[:count], masses[:count], edges[:count], mass, max(total - mass, 0.0))


def check_top(top: float, total: float) -> None:
    """Raise ValueError if the largest log is not that of a distribution of mass `total`."""
    if not -math.inf < top <= math.log(total) + TOLERANCE:
        raise ArgumentError(describe_fault(top))


class ExponentialRace:
    """One race over a row of the model.

    logs: float [V], logs of masses that sum to `total`. tokens: int64 [V], the tokens of `logs` (by default 0, 1, ...).
    likely: `list_likely` of the row, if it is known from another race over it.
    valid: mass of the tokens found valid; left: mass of those not taken yet. So valid <= Z <= valid + left, where Z is
    the mass of all valid tokens. Raises ValueError for NaN, for a row without any mass, and for one that does not sum
    to `total`.
    """

    __slots__ = (
        "_at",
        "_clocks",
        "_likely",
        "_logs",
        "_mask",
        "_masses",
        "_pool",
        "_pool_clock",
        "_pooled",
        "_suffix",
        "_sums",
        "_token_ids",
        "_tokens",
        "_unqueued",
        "left",
        "rng",
        "total",
        "valid",
    )  # fmt: skip

    def __init__(
        self,
        logs: Row,
        rng: np.random.Generator,
        *,
        tokens: NDArray[np.int64] | None = None,
        total: float = 1.0,
        likely: LikelyTokens | None = None,
    ) -> None:
        self.rng, self.total, self.valid, self.left = rng, total, 0.0, total
        self._logs, self._token_ids = as_kernel_row(logs), tokens
        self._at, self._clocks, self._tokens, self._masses = 0, EMPTY, NO_TOKENS, EMPTY
        self._unqueued = NO_TOKENS, EMPTY  # all tokens that are not in the queue, once no clock is shared
        self._pool, self._pool_clock, self._pooled = total, np.inf, True  # mass of the tokens that share a clock
        self._likely = NO_TOKENS  # tokens that never shared it
        self._mask, self._sums = (
            NO_MASK,
            EMPTY,
        )  # tokens that share it, and partial sums of their masses, made when needed
        if len(logs) > SMALL:
            self._start_clocks(likely or list_likely(self._logs, total))
        else:
            check_top(float(logs.max(initial=-np.inf)), total)
            self._split_pool()

    def take(self, count: int = 1) -> list[int]:
        """Return the next `count` tokens to arrive, or fewer if there are no more. `record` must be called for each
        before the next call.
        """
        if self._pooled and not len(self._sums) and self.valid + self.left < FINE * self.total:
            self._redraw_clocks()
        while True:
            end = self._at + count
            known = end <= len(self._clocks)
            if self._pooled:
                if known and self._clocks[end - 1] < self._pool_clock:
                    break
                if self._pool_clock < np.inf:
                    self._draw_from_pool()
                else:  # only a rounding error of the mass is left: list the remaining tokens
                    self._split_pool()
            elif known or not len(self._unqueued[0]):
                break
            else:
                self._queue_next()
        return self._to_token_ids(self._tokens[self._at : end])

    def take_largest(self) -> int | None:
        """Return the likeliest token not taken yet, regardless of its clock; None if there is none. `record` must be
        called for it.
        """
        while self._pooled and self._at == len(self._clocks):
            self._split_pool()
        tokens, masses = self._unqueued
        if len(tokens):
            index = int(np.argmax(masses))
            if masses[index] > self._masses[self._at :].max(initial=0.0):
                self._unqueued = np.delete(tokens, index), np.delete(masses, index)
                self._enqueue(ONE_CLOCK, tokens[index : index + 1], masses[index : index + 1])
                return self._to_token_ids(self._tokens[:1])[0]
        if self._at == len(self._clocks):
            return None
        index = self._at + int(np.argmax(self._masses[self._at :]))
        order = np.r_[index, self._at : index, index + 1 : len(self._clocks)]
        self._set_queue(self._clocks[order], self._tokens[order], self._masses[order])
        return self._to_token_ids(self._tokens[:1])[0]

    def record(self, ok: bool) -> float:
        """Record whether the oldest token that was taken but not recorded is valid. Return an estimate of Z.

        Given all tokens before, its mean is Z (Des Raj): valid + left if the token is valid, else valid, with the
        values before the call. This does not hold for a token from `take_largest`.
        """
        term = self.valid + self.left if ok else self.valid
        if ok:
            self.valid += float(self._masses[self._at])
        self._at += 1
        self.left = float(self._suffix[self._at]) + self._pool
        return term

    def masses(self) -> tuple[NDArray[np.int64], Masses]:
        """Return all tokens not taken and their masses, in no particular order: int64 [k], float64 [k]."""
        if self._pooled:
            self._split_pool()
        tokens = np.concatenate([self._tokens[self._at :], self._unqueued[0]])
        masses = np.concatenate([self._masses[self._at :], self._unqueued[1]])
        return tokens if self._token_ids is None else self._token_ids[tokens], masses

    # ---- clocks ----------------------------------------------------------------------------------------------------

    def _to_token_ids(self, tokens: NDArray[np.int64]) -> list[int]:
        named: list[int] = (tokens if self._token_ids is None else self._token_ids[tokens]).tolist()
        return named

    def _start_clocks(self, likely: LikelyTokens) -> None:
        """Draw clocks for the likely tokens, and one for all others."""
        tokens, masses, self._pool = likely.tokens, likely.masses, likely.pool
        clocks = self.rng.standard_exponential(len(tokens)) / masses
        self._restart_pool_clock()
        order = clocks.argsort()
        self._set_queue(clocks[order], tokens[order], masses[order])
        self._likely = tokens

    def _restart_pool_clock(self, now: float = 0.0) -> None:
        """Restart the shared clock at time `now`."""
        self._pool_clock = now + self.rng.standard_exponential() / self._pool if self._pool > 0 else np.inf

    def _sum_pool(self) -> None:
        """Sum the masses of the tokens that share a clock."""
        size = len(self._logs)
        words = -(-size // 32)
        everything = np.full(words, -1, np.int32)
        if size % 32:
            everything[-1] = (1 << size % 32) - 1
        self._mask = exclude_tokens(everything, self._likely)
        self._sums = np.empty(words + -(-words // GROUP))
        expected, self._pool = self.left, entry_points.sum_masses(self._logs, self._mask, self._sums)
        self.left = float(self._suffix[self._at]) + self._pool
        self._check_total(expected)

    def _draw_from_pool(self) -> None:
        """Let a token of the shared clock, which is first, arrive. If its mass was only a rounding error, give every
        token a clock.
        """
        if not len(self._sums):
            self._sum_pool()
        if not self._pool > FAINT * self.total:
            self._split_pool()
            return
        token, now = entry_points.find_token(self._logs, self._mask, self._sums, self.rng.random()), self._pool_clock
        self._pool = entry_points.remove_tokens(self._logs, self._mask, self._sums, np.array([token]))
        self._restart_pool_clock(now)
        mass, at = math.exp(self._logs[token]), self._at
        if at and (at == len(self._clocks) or now < self._clocks[at]):  # reuse the slot of the last token taken
            self._clocks[at - 1], self._tokens[at - 1], self._masses[at - 1] = now, token, mass
            self._suffix[at - 1] = self._suffix[at] + mass
            self._at, self.left = at - 1, float(self._suffix[at - 1]) + self._pool
            return
        index = at + int(self._clocks[at:].searchsorted(now))
        self._set_queue(
            np.concatenate([self._clocks[at:index], (now,), self._clocks[index:]]),
            np.concatenate([self._tokens[at:index], (token,), self._tokens[index:]]),
            np.concatenate([self._masses[at:index], (mass,), self._masses[index:]]),
        )

    def _redraw_clocks(self) -> None:
        """Sum the mass of the tokens that share a clock, and redraw all clocks."""
        self._sum_pool()
        masses, tokens = self._masses[self._at :], self._tokens[self._at :]
        clocks = self.rng.standard_exponential(len(masses)) / masses
        order = clocks.argsort()
        self._set_queue(clocks[order], tokens[order], masses[order])
        self._restart_pool_clock()

    def _check_total(self, expected: float) -> None:
        if abs(self.left - expected) > TOLERANCE * self.total:
            total = 1 + (self.left - expected) / self.total
            raise ArgumentError(f"the model's probabilities do not sum to 1 but to {total:.4g}")

    def _split_pool(self) -> None:
        """Give each remaining token its own new clock."""
        shared = self._logs > FAINTEST
        if len(self._sums):
            shared &= np.unpackbits(self._mask.view(np.uint8), bitorder="little")[: len(shared)].view(bool)
        else:
            shared[self._likely] = False
        tokens = np.flatnonzero(shared)
        masses = np.exp(self._logs[tokens], dtype=np.float64)
        expected, queued = self.left, slice(self._at, None)
        self._unqueued = np.concatenate([self._tokens[queued], tokens]), np.concatenate([self._masses[queued], masses])
        self._pool, self._pooled = 0.0, False
        self._set_queue(EMPTY, NO_TOKENS, EMPTY)
        self._check_total(expected)
        self._queue_next()

    def _queue_next(self) -> None:
        """Move about BATCH tokens, the next to arrive, from the bag to the queue. The others get new clocks later."""
        tokens, masses = self._unqueued
        clocks = self.rng.standard_exponential(len(tokens)) / masses
        if len(tokens) > SMALL:
            early = clocks <= max(BATCH / float(masses.sum()), float(clocks.min()))
            self._unqueued = tokens[~early], masses[~early]
            clocks, tokens, masses = clocks[early], tokens[early], masses[early]
        else:
            self._unqueued = NO_TOKENS, EMPTY
        order = np.argsort(clocks)
        queued = slice(self._at, None)
        self._set_queue(
            np.concatenate([self._clocks[queued], clocks[order]]),
            np.concatenate([self._tokens[queued], tokens[order]]),
            np.concatenate([self._masses[queued], masses[order]]),
        )

    def _enqueue(self, clock: Masses, token: NDArray[np.int64], mass: Masses) -> None:
        """Insert one token, given as arrays of length one, at the front of the queue."""
        queued = slice(self._at, None)
        self._set_queue(
            np.concatenate([clock, self._clocks[queued]]),
            np.concatenate([token, self._tokens[queued]]),
            np.concatenate([mass, self._masses[queued]]),
        )

    def _set_queue(self, clocks: Masses, tokens: NDArray[np.int64], masses: Masses) -> None:
        """Replace the queue, which is in order of arrival, and recompute the suffix sums of its masses, from the end
        backwards.
        """
        self._clocks, self._tokens, self._masses, self._at = clocks, tokens, masses, 0
        if len(self._unqueued[0]):
            self._pool = float(self._unqueued[1].sum())
        elif not self._pooled:
            self._pool = 0.0
        self._suffix = np.zeros(len(masses) + 1)
        masses[::-1].cumsum(out=self._suffix[-2::-1])
        self.left = float(self._suffix[0]) + self._pool
