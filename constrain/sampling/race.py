"""Race: tokens in the order in which they would be drawn without replacement, as few of them as are asked for.

Every token runs against a clock of its own, Exp(1) / p(token); who arrives first was drawn from p, who arrives next
from p without the first, and so on (Plackett-Luce, the law of Gumbel top-k). A vocabulary is not sorted for that: the
likely tokens have clocks, all others share one, that runs at the rate of their mass. Where it is first, one of them is
drawn by rejection, or the next layer of tokens gets clocks, so shifted that the first of them goes off just then.
Because clocks have no memory, all that still run may also be wound anew: so where little mass is left, it is summed
up, not subtracted from 1, and clocks start again at the rates that are right.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import draws
from .masses import plain

__all__ = ["FAINTEST", "Race", "Row"]

LAYERS = (5e-4, 5e-5, 5e-6)
"""Least part of the mass that a token of each layer has: at most 2,000 tokens in the first, then ten times as many."""
SMALL = 1024
"""Rows up to this long are one layer: as quick, and nothing is subtracted."""
ROOM = 1.25
"""Masses that there is room for in the first two layers; a row of more is no law."""
TRIES = 512
"""Most tries, on average, for which one token is drawn by rejection: as quick as to look through the vocabulary."""
BATCH = 256
"""Where all tokens have clocks, about this many are sorted at a time."""
FINE = 0.1
"""Part of the mass: when what may still be valid is below it, masses are summed. A row of float32 sums to 1 within
some 1e-6, which is then still small against what is left."""
FINER = 1e-6
"""The same after they were summed: float64 keeps ten digits of what is left."""
FAINTEST = -650.0
"""Tokens less likely than exp(this) are left out: what is divided by their mass would overflow."""
TOLERANCE = 1e-2
"""By how much of it a row's mass may differ from what it is said to be."""

Row = NDArray[np.floating[Any]]
Masses = NDArray[np.float64]

EMPTY, ONE_CLOCK, NO_TOKENS = np.empty(0), np.zeros(1), np.empty(0, np.int64)


class Race:
    """One race over a row of the model.

    logs: float [V], logs of masses that sum to `total`; tokens: int64 [V], whose they are (else 0, 1, ...).
    valid: mass of the tokens found valid; left: mass of those not yet taken. So valid <= Z <= valid + left, with Z the
    mass of all valid tokens. Raises ValueError for NaN, for a row without any mass, and for one that does not sum up.
    """

    __slots__ = (
        "_above", "_at", "_bag", "_clocks", "_drawn", "_layer", "_least", "_logs", "_masses", "_names", "_pool",
        "_pool_clock", "_pooled", "_ready", "_suffix", "_tokens", "left", "rng", "total", "valid",
    )  # fmt: skip

    def __init__(
        self, logs: Row, rng: np.random.Generator, *, tokens: NDArray[np.int64] | None = None, total: float = 1.0
    ) -> None:
        self._ready = NO_TOKENS, EMPTY  # the second layer, before it has clocks
        top = -np.inf
        if len(logs) > SMALL and LAYERS:
            logs = plain(logs)
            top = self._look(logs, total, LAYERS[:2][-1])
        if not len(self._ready[0]):
            top = float(logs.max(initial=-np.inf))
        if not -np.inf < top <= np.log(total) + TOLERANCE:
            what = "are not numbers (NaN)" if np.isnan(top) else "are all -inf" if top < 0 else f"go up to {top:.4g}"
            raise ValueError(f"the model's log-probabilities {what}")
        self.rng, self.total, self.valid, self.left = rng, total, 0.0, total
        self._logs, self._names = logs, tokens
        self._drawn: list[int] = []  # tokens that arrived from among those that share a clock
        self._least = FINE * total
        self._at, self._clocks, self._tokens, self._masses = 0, EMPTY, NO_TOKENS, EMPTY
        self._bag = NO_TOKENS, EMPTY  # all tokens that are not in the queue, once there is no pool
        self._layer, self._above = 0, np.inf
        self._pool, self._pool_clock, self._pooled = total, 0.0, True  # mass of the tokens that share a clock
        if len(logs) <= SMALL:
            self._settle()
        else:
            self._fire()

    def take(self, count: int = 1) -> list[int]:
        """The next tokens to arrive, fewer if there are no more. `record` is due for each before more are taken."""
        if self._pooled and self.valid + self.left < self._least:
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

    # ---- layers ----------------------------------------------------------------------------------------------------

    def _named(self, tokens: NDArray[np.int64]) -> list[int]:
        named: list[int] = (tokens if self._names is None else self._names[tokens]).tolist()
        return named

    def _below(self, floor: float) -> tuple[NDArray[np.int64], Masses]:
        """The tokens between the layers so far and a floor, and their masses."""
        self._rest()
        inside = self._logs > floor
        if self._layer:
            inside &= self._logs <= self._above
        found = np.flatnonzero(inside)
        return found, np.exp(self._logs[found], dtype=np.float64)

    def _look(self, logs: Row, total: float, part: float) -> float:
        """One look at the vocabulary, for the tokens of two layers: their largest log, or NaN if there is one."""
        room = np.empty(int(ROOM / part), np.int64)
        found = draws.above(logs, logs.dtype.type(np.log(part * total)), room)
        tokens = room[:found].copy()
        chosen = logs[tokens].astype(np.float64)
        top = float(chosen.max(initial=-np.inf))
        if found > len(room) and -np.inf < top <= np.log(total) + TOLERANCE:
            raise ValueError(f"the model's probabilities do not sum to 1 but to more than {ROOM}")
        self._ready = tokens, np.exp(chosen)
        return top

    def _floor(self, layer: int) -> float:
        """Logs above this are of a layer or one before."""
        return float(self._logs.dtype.type(np.log(LAYERS[layer] * self.total)))

    def _rest(self) -> None:
        """From now on the row is without the tokens that arrived from among those that share a clock."""
        if self._drawn:
            self._logs = self._logs.copy()
            self._logs[self._drawn] = -np.inf
            found, masses = self._ready
            new = ~np.isin(found, self._drawn)
            self._ready, self._drawn = (found[new], masses[new]), []

    def _fire(self) -> None:
        """The common clock is first: one of its tokens arrives, or the next layer gets clocks."""
        tries = len(self._logs) * float(np.exp(self._above)) / self._pool if self._layer else np.inf
        if tries > TRIES or not self._draw(int(1.5 * tries) + 16):
            if self._layer < len(LAYERS):
                self._open()
            else:
                self._fire_last()

    def _draw(self, tries: int) -> bool:
        """Draws a token that shares the common clock: any of the vocabulary, kept with probability p / (the most that
        one below the layers can have). It arrives when that clock goes off. False: none was kept, after many tries."""
        for _ in range(6):
            places = self.rng.integers(len(self._logs), size=tries)
            parts = np.exp(self._logs[places].astype(np.float64) - self._above)
            kept = np.flatnonzero((parts <= 1) & (self.rng.random(tries) < parts))
            if len(kept):
                place = places[kept[:1]]
                if self._drawn and int(place[0]) in self._drawn:
                    continue
                mass = np.exp(self._logs[place].astype(np.float64))
                self._drawn.append(int(place[0]))
                self._pool = max(self._pool - float(mass[0]), 0.0)
                self._enqueue(ONE_CLOCK + self._pool_clock, place, mass)
                self._pool_clock += self.rng.standard_exponential() / self._pool if self._pool > 0 else np.inf
                return True
        return False

    def _open(self) -> None:
        """The next layer of tokens gets clocks, the first of which goes off when the common clock does."""
        floor = self._floor(self._layer)
        if not self._layer:
            found, masses = self._ready
            first = self._logs[found] > floor
            self._ready = found[~first], masses[~first]
            found, masses = found[first], masses[first]
        elif self._layer == 1:
            self._rest()
            found, masses = self._ready
        else:
            found, masses = self._below(floor)
        clocks = self.rng.standard_exponential(len(found)) / masses
        self._pool = max(self._pool - float(masses.sum()), 0.0)
        pool_clock = self.rng.standard_exponential() / self._pool if self._pool > 0 else np.inf
        if self._layer:
            soonest = min(float(clocks.min(initial=np.inf)), pool_clock)
            shift = self._pool_clock - soonest if soonest < np.inf else 0.0
            clocks, pool_clock = clocks + shift, pool_clock + shift
            rest = slice(self._at, None)
            clocks = np.concatenate([self._clocks[rest], clocks])
            found = np.concatenate([self._tokens[rest], found])
            masses = np.concatenate([self._masses[rest], masses])
        self._pool_clock, self._layer, self._above = pool_clock, self._layer + 1, floor
        order = np.argsort(clocks)
        self._line_up(clocks[order], found[order], masses[order])

    def _fire_last(self) -> None:
        """The common clock is first, and it is one of the last layer: that one is drawn, all others are wound anew."""
        found, masses = self._below(FAINTEST)
        if not len(found):  # there was no mass, only rounding
            self._settle()
            return
        edges = np.cumsum(masses)
        place = min(int(np.searchsorted(edges, self.rng.random() * edges[-1], side="right")), len(found) - 1)
        others = np.delete(np.arange(len(found)), place)
        rest = slice(self._at, None)
        self._bag = (
            np.concatenate([self._tokens[rest], found[others]]),
            np.concatenate([self._masses[rest], masses[others]]),
        )
        self._pool, self._pooled = 0.0, False
        self._line_up(ONE_CLOCK, found[place : place + 1], masses[place : place + 1])

    def _sum_up(self) -> None:
        """The mass of the tokens that share a clock is summed, and all clocks start again."""
        self._rest()
        below = self._logs[self._logs <= self._above] if self._layer else self._logs
        expected, self._pool = self.left, float(np.exp(below, dtype=np.float64).sum())
        masses, tokens = self._masses[self._at :], self._tokens[self._at :]
        clocks = self.rng.standard_exponential(len(masses)) / masses
        order = np.argsort(clocks)
        self._line_up(clocks[order], tokens[order], masses[order])
        self._pool_clock = self.rng.standard_exponential() / self._pool if self._pool > 0 else np.inf
        self._least = FINER * (self.valid + self.left)
        self._compare(expected)

    def _compare(self, expected: float) -> None:
        if abs(self.left - expected) > TOLERANCE * self.total:
            total = 1 + (self.left - expected) / self.total
            raise ValueError(f"the model's probabilities do not sum to 1 but to {total:.4g}")

    def _settle(self) -> None:
        """All tokens that are left get new clocks."""
        found, masses = self._below(FAINTEST)
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
        np.cumsum(masses[::-1], out=self._suffix[-2::-1])
        self.left = float(self._suffix[0]) + self._pool
