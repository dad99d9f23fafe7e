"""Race: tokens in the order in which they would be drawn without replacement, as few of them as are asked for.

Every token runs against a clock of its own, Exp(1) / p(token); who arrives first was drawn from p, who arrives next
from p without the first, and so on (Plackett-Luce, the law of Gumbel top-k). A vocabulary is not sorted for that: the
likely tokens have clocks, all others share one, that runs at the rate of their mass. Where it is first, their masses
are added up (once: `kernels.draws`), one of them is drawn by these sums, and leaves them. Because clocks have no
memory, all that still run may also be wound anew: so where little mass is left it is summed up, not subtracted from 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..kernels import draws
from .core.token_masses import as_kernel_row

__all__ = ["FAINTEST", "ExponentialRace", "Row"]

HEAD = 5e-4
"""Least part of the mass that a token with a clock of its own has: 2,000 have at most."""
ROOM = 1.25
"""Masses that there is room for among these; a row of more is no law."""
SMALL = 1024
"""In rows up to this long all tokens have clocks: as quick, and nothing is subtracted."""
BATCH = 256
"""Where all tokens have clocks, about this many are sorted at a time."""
FINE = 0.1
"""Part of the mass: when what may still be valid is below it, masses are summed. A row of float32 sums to 1 within
some 1e-6, which is then still small against what is left."""
FAINT = 1e-17
"""Part of the mass: less than that is not drawn by sums of float32, whose tokens end at 1e-38, but listed."""
FAINTEST = -650.0
"""Tokens less likely than exp(this) are left out: what is divided by their mass would overflow."""
TOLERANCE = 1e-2
"""By how much of it a row's mass may differ from what it is said to be."""

Row = NDArray[np.floating[Any]]
Masses = NDArray[np.float64]

EMPTY, ONE_CLOCK, NO_TOKENS, NO_MASK = np.empty(0), np.zeros(1), np.empty(0, np.int64), np.empty(0, np.int32)


class ExponentialRace:
    """One race over a row of the model.

    logs: float [V], logs of masses that sum to `total`; tokens: int64 [V], whose they are (else 0, 1, ...).
    valid: mass of the tokens found valid; left: mass of those not yet taken. So valid <= Z <= valid + left, with Z the
    mass of all valid tokens. Raises ValueError for NaN, for a row without any mass, and for one that does not sum up.
    """

    __slots__ = (
        "_at", "_bag", "_clocks", "_likely", "_logs", "_mask", "_masses", "_names", "_pool", "_pool_clock", "_pooled",
        "_suffix", "_sums", "_tokens", "left", "rng", "total", "valid",
    )  # fmt: skip

    def __init__(
        self, logs: Row, rng: np.random.Generator, *, tokens: NDArray[np.int64] | None = None, total: float = 1.0
    ) -> None:
        self.rng, self.total, self.valid, self.left = rng, total, 0.0, total
        self._logs, self._names = as_kernel_row(logs), tokens
        self._at, self._clocks, self._tokens, self._masses = 0, EMPTY, NO_TOKENS, EMPTY
        self._bag = NO_TOKENS, EMPTY  # all tokens that are not in the queue, once there is no pool
        self._pool, self._pool_clock, self._pooled = total, np.inf, True  # mass of the tokens that share a clock
        self._likely = NO_TOKENS  # those that never shared it
        self._mask, self._sums = NO_MASK, EMPTY  # which share it, and sums of their masses, once they are needed
        if len(logs) > SMALL:
            self._begin()
        else:
            self._look(float(logs.max(initial=-np.inf)))
            self._settle()

    def take(self, count: int = 1) -> list[int]:
        """The next tokens to arrive, fewer if there are no more. `record` is due for each before more are taken."""
        if self._pooled and not len(self._sums) and self.valid + self.left < FINE * self.total:
            self._sum_up()
        while True:
            end = self._at + count
            known = end <= len(self._clocks)
            if self._pooled:
                if known and self._clocks[end - 1] < self._pool_clock:
                    break
                if self._pool_clock < np.inf:
                    self._fire()
                else:  # the row's mass is used up, but for rounding: whatever is left is summed
                    self._settle()
            elif known or not len(self._bag[0]):
                break
            else:
                self._deal()
        return self._named(self._tokens[self._at : end])

    def take_largest(self) -> int | None:
        """The likeliest token that was not taken, whatever the clocks say; None if there is none. `record` is due."""
        while self._pooled and self._at == len(self._clocks):
            self._settle()
        tokens, masses = self._bag
        if len(tokens):
            place = int(np.argmax(masses))
            if masses[place] > self._masses[self._at :].max(initial=0.0):
                self._bag = np.delete(tokens, place), np.delete(masses, place)
                self._enqueue(ONE_CLOCK, tokens[place : place + 1], masses[place : place + 1])
                return self._named(self._tokens[:1])[0]
        if self._at == len(self._clocks):
            return None
        place = self._at + int(np.argmax(self._masses[self._at :]))
        order = np.r_[place, self._at : place, place + 1 : len(self._clocks)]
        self._line_up(self._clocks[order], self._tokens[order], self._masses[order])
        return self._named(self._tokens[:1])[0]

    def record(self, ok: bool) -> float:
        """Says whether the first token taken and not yet recorded is valid: what that tells about Z.

        Given all tokens before, the answer is Z on average (Des Raj): valid + left if it is, else valid, both as they
        were. Not so for a token that was taken as the largest.
        """
        term = self.valid + self.left if ok else self.valid
        if ok:
            self.valid += float(self._masses[self._at])
        self._at += 1
        self.left = float(self._suffix[self._at]) + self._pool
        return term

    def masses(self) -> tuple[NDArray[np.int64], Masses]:
        """All tokens that were not taken and their masses, in no order: int64 [k], float64 [k]."""
        if self._pooled:
            self._settle()
        tokens = np.concatenate([self._tokens[self._at :], self._bag[0]])
        masses = np.concatenate([self._masses[self._at :], self._bag[1]])
        return tokens if self._names is None else self._names[tokens], masses

    # ---- clocks ----------------------------------------------------------------------------------------------------

    def _named(self, tokens: NDArray[np.int64]) -> list[int]:
        named: list[int] = (tokens if self._names is None else self._names[tokens]).tolist()
        return named

    def _look(self, top: float) -> None:
        """At the largest log. ValueError for one that no law has."""
        if not -np.inf < top <= np.log(self.total) + TOLERANCE:
            what = "are not numbers (NaN)" if np.isnan(top) else "are all -inf" if top < 0 else f"go up to {top:.4g}"
            raise ArgumentError(f"the model's log-probabilities {what}")

    def _begin(self) -> None:
        """Clocks for the likely tokens, found in one look at the vocabulary, and one for all others."""
        logs, room = self._logs, np.empty(int(ROOM / HEAD), np.int64)
        count = draws.list_above(logs, logs.dtype.type(np.log(HEAD * self.total)), room)
        tokens = room[:count].copy()
        chosen = logs[tokens].astype(np.float64)
        self._look(float((chosen if count else logs).max()))
        if count > len(room):
            raise ArgumentError(f"the model's probabilities do not sum to 1 but to more than {ROOM}")
        masses = np.exp(chosen)
        clocks = self.rng.standard_exponential(count) / masses
        self._pool = max(self.total - float(masses.sum()), 0.0)
        self._wind()
        order = clocks.argsort()
        self._line_up(clocks[order], tokens[order], masses[order])
        self._likely = tokens

    def _wind(self, now: float = 0.0) -> None:
        """The common clock is started at a time."""
        self._pool_clock = now + self.rng.standard_exponential() / self._pool if self._pool > 0 else np.inf

    def _add_up(self) -> None:
        """The masses of the tokens that share a clock are added up."""
        size = len(self._logs)
        bits = np.zeros(-(-size // 32) * 32, np.uint8)
        bits[:size] = 1
        bits[self._likely] = 0
        self._mask = np.packbits(bits, bitorder="little").view(np.int32)
        words = len(self._mask)
        self._sums = np.empty(words + -(-words // draws.GROUP))
        expected, self._pool = self.left, draws.sum_masses(self._logs, self._mask, self._sums)
        self.left = float(self._suffix[self._at]) + self._pool
        self._compare(expected)

    def _fire(self) -> None:
        """The common clock is first: one of its tokens arrives. If there was no mass, only rounding, all are listed."""
        if not len(self._sums):
            self._add_up()
        if not self._pool > FAINT * self.total:
            self._settle()
            return
        token, now = draws.find_token(self._logs, self._mask, self._sums, self.rng.random()), self._pool_clock
        self._pool = draws.remove_token(self._logs, self._mask, self._sums, token)
        self._wind(now)
        mass, at = math.exp(self._logs[token]), self._at
        if at and (at == len(self._clocks) or now < self._clocks[at]):  # the place of the last one taken is free
            self._clocks[at - 1], self._tokens[at - 1], self._masses[at - 1] = now, token, mass
            self._suffix[at - 1] = self._suffix[at] + mass
            self._at, self.left = at - 1, float(self._suffix[at - 1]) + self._pool
            return
        place = at + int(self._clocks[at:].searchsorted(now))
        self._line_up(
            np.concatenate([self._clocks[at:place], (now,), self._clocks[place:]]),
            np.concatenate([self._tokens[at:place], (token,), self._tokens[place:]]),
            np.concatenate([self._masses[at:place], (mass,), self._masses[place:]]),
        )

    def _sum_up(self) -> None:
        """The mass of the tokens that share a clock is summed, and all clocks start again."""
        self._add_up()
        masses, tokens = self._masses[self._at :], self._tokens[self._at :]
        clocks = self.rng.standard_exponential(len(masses)) / masses
        order = clocks.argsort()
        self._line_up(clocks[order], tokens[order], masses[order])
        self._wind()

    def _compare(self, expected: float) -> None:
        if abs(self.left - expected) > TOLERANCE * self.total:
            total = 1 + (self.left - expected) / self.total
            raise ArgumentError(f"the model's probabilities do not sum to 1 but to {total:.4g}")

    def _settle(self) -> None:
        """All tokens that are left get new clocks."""
        shared = self._logs > FAINTEST
        if len(self._sums):
            shared &= np.unpackbits(self._mask.view(np.uint8), bitorder="little")[: len(shared)].view(bool)
        else:
            shared[self._likely] = False
        found = np.flatnonzero(shared)
        masses = np.exp(self._logs[found], dtype=np.float64)
        expected, rest = self.left, slice(self._at, None)
        self._bag = np.concatenate([self._tokens[rest], found]), np.concatenate([self._masses[rest], masses])
        self._pool, self._pooled = 0.0, False
        self._line_up(EMPTY, NO_TOKENS, EMPTY)
        self._compare(expected)
        self._deal()

    def _deal(self) -> None:
        """Some BATCH tokens of the bag, the next to arrive, join the queue. The others will be wound anew."""
        tokens, masses = self._bag
        clocks = self.rng.standard_exponential(len(tokens)) / masses
        if len(tokens) > SMALL:
            near = clocks <= max(BATCH / float(masses.sum()), float(clocks.min()))
            self._bag = tokens[~near], masses[~near]
            clocks, tokens, masses = clocks[near], tokens[near], masses[near]
        else:
            self._bag = NO_TOKENS, EMPTY
        order = np.argsort(clocks)
        rest = slice(self._at, None)
        self._line_up(
            np.concatenate([self._clocks[rest], clocks[order]]),
            np.concatenate([self._tokens[rest], tokens[order]]),
            np.concatenate([self._masses[rest], masses[order]]),
        )

    def _enqueue(self, clock: Masses, token: NDArray[np.int64], mass: Masses) -> None:
        """One token, an array of one each, before all others."""
        rest = slice(self._at, None)
        self._line_up(
            np.concatenate([clock, self._clocks[rest]]),
            np.concatenate([token, self._tokens[rest]]),
            np.concatenate([mass, self._masses[rest]]),
        )

    def _line_up(self, clocks: Masses, tokens: NDArray[np.int64], masses: Masses) -> None:
        """A new queue, first to arrive first. Suffix: the mass from each place on, summed from the far end."""
        self._clocks, self._tokens, self._masses, self._at = clocks, tokens, masses, 0
        if len(self._bag[0]):
            self._pool = float(self._bag[1].sum())
        elif not self._pooled:
            self._pool = 0.0
        self._suffix = np.zeros(len(masses) + 1)
        masses[::-1].cumsum(out=self._suffix[-2::-1])
        self.left = float(self._suffix[0]) + self._pool
