"""ValueTable: estimates of h(u), the probability that a model continues a text u to one of L within the tokens left.

Texts share an estimate if they agree in a *slot*: the abstract state of the constraint (`engine.abstract_states`), a
band and a pace. The band says how scarce tokens are: tokens left minus a third of the least bytes to the end
(`find_band`). The pace says how readily the model leaves the state (`find_pace`, of the exit rate that `lookahead`
defines): a text that repeats itself within a string would seldom end in time. A second
table has values of (slot, last token). Where nothing is known, a value comes from the first of

    (slot, last token)                          learned from at least one text
    slot                                        learned
    the nearest other band of the same state    learned, at the same pace first
    the coarse state in the same column         learned from states that differ in registers and places only
    exp(a + b x), b <= 0                        x: least bytes to the end; least squares over all slots
    exp(-PRICE x)                               before anything is learned

Values are positive, so a twist made of them is proper whatever they are. All logs are natural.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from .state_numbers import StateNumbers

__all__ = ["BANDS", "COLUMNS", "ValueTable", "Values", "empty_table", "find_band", "find_pace", "fit_line"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EDGES = (2.0, 4.0, 7.0, 11.0, 16.0, 24.0, 40.0)
"""Tokens to spare at which bands end."""
BANDS = len(EDGES) + 1
RATES = (0.003, 0.02, 0.1)
"""Exit rates at which paces end."""
PACES = len(RATES) + 2
"""The first pace is that of texts whose last token led to another state."""
COLUMNS = PACES * BANDS
"""Columns of a state: slot = state * COLUMNS + pace * BANDS + band."""
BYTES_PER_TOKEN = 3.0
"""Bytes that a token of the rest of a text is taken to have."""
PRICE = 0.3
"""Nats per byte of the least completion, before anything is learned."""


@dataclass(frozen=True)
class ValueTable:
    """Learned values. Arrays are never changed; `value_backups` makes new tables.

    Attributes
    ----------
    numbers : StateNumbers
        The states. It grows while texts are visited; states beyond K are not in the arrays yet.
    size : int
        Tokens of the vocabulary.
    logs, counts : float64 [K, COLUMNS]
        Log of the mean value of the texts seen in each slot, NaN for none; number of these texts.
    coarse_logs : float64 [C, COLUMNS]
        The same by coarse state.
    pairs : int64 [m], ascending
        Codes of (slot, last token): slot * size + token.
    pair_logs, pair_counts : float64 [m]
        Log of the value of each pair, and number of texts.
    line : (float, float)
        a and b of exp(a + b x).
    populations : int
        How many populations have been learned from.
    has_fallen_back : bool
        Whether the last call found the flat twist better, see `fallback_rule`.
    """

    numbers: StateNumbers
    size: int
    logs: Floats
    counts: Floats
    coarse_logs: Floats
    pairs: Ints
    pair_logs: Floats
    pair_counts: Floats
    line: tuple[float, float] = (0.0, -PRICE)
    populations: int = 0
    has_fallen_back: bool = False

    @property
    def nbytes(self) -> int:
        """Size in memory: that of the arrays, and an estimate of that of the states."""
        arrays = (self.logs, self.counts, self.coarse_logs, self.pairs, self.pair_logs, self.pair_counts)
        return sum(one.nbytes for one in arrays) + self.numbers.nbytes

    def copy(self) -> ValueTable:
        """Return a copy whose states can grow independently."""
        return replace(self, numbers=self.numbers.copy())


def empty_table(numbers: StateNumbers, size: int) -> ValueTable:
    """Return a table that has learned nothing."""
    none, nothing = np.empty((0, COLUMNS)), np.empty(0)
    return ValueTable(numbers, size, none, none, none, np.empty(0, np.int64), nothing, nothing)


def find_band(least: int, left: int) -> int:
    """Return the band of texts that need at least `least` more bytes and have `left` tokens left."""
    return bisect_right(EDGES, left - least / BYTES_PER_TOKEN)


def find_pace(exit_rate: float) -> int:
    """Return the pace of texts with an exit rate: 0 for NaN."""
    return 0 if exit_rate != exit_rate else 1 + bisect_right(RATES, exit_rate)


def fit_line(least: Floats, logs: Floats) -> tuple[float, float]:
    """Return (a, b) of the least squares line a + b x through points (least, logs), with b at most 0."""
    spread = float(least.var()) if len(least) >= 3 else 0.0
    mean, middle = float(logs.mean()), float(least.mean())
    slope = min(0.0, float(((least - middle) * (logs - mean)).mean()) / spread) if spread > 0 else 0.0
    return mean - slope * middle, slope


@dataclass(frozen=True)
class Values:
    """The values of a table, as a function of slots and tokens.

    unseen: log-value of a state of which no text was seen in any band; None for the estimates of the table. 0 is what
    scouts use, and with 0 and -inf together `value_backups.measure_gap` brackets what was not seen.
    """

    table: ValueTable
    unseen: float | None = None
    _slots: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_slots", self._fill_slots())

    @property
    def slots(self) -> Floats:
        """Log-values by slot, without the last token: float64 [K * COLUMNS]."""
        return self._slots

    def of_slots(self, slots: Ints) -> Floats:
        """Return the log-value of each slot (int64 [n], also of states that are not in the table): float64 [n]."""
        known = len(self._slots)
        if not len(slots) or slots.max() < known:
            values: Floats = self._slots[slots]
            return values
        out = np.empty(len(slots))
        old = slots < known
        out[old] = self._slots[slots[old]]
        out[~old] = [self._guess(slot) for slot in slots[~old].tolist()]
        return out

    def of_pairs(self, slots: Ints, tokens: Ints) -> Floats:
        """Return the log-value after each of some tokens, which lead to these slots (both int64 [n]): float64 [n]."""
        out = self.of_slots(slots)
        table = self.table
        if len(table.pairs):
            codes = slots * table.size + tokens
            index = np.minimum(table.pairs.searchsorted(codes), len(table.pairs) - 1)
            known = table.pairs[index] == codes
            out[known] = table.pair_logs[index[known]]
        return out

    def _guess(self, slot: int) -> float:
        """Return the log-value of a slot of a state that is not in the table."""
        number, band = divmod(slot, COLUMNS)
        if self.unseen is not None:
            return self.unseen
        coarse = self.table.numbers.coarse_of(number)
        if coarse < len(self.table.coarse_logs):
            value = float(self.table.coarse_logs[coarse, band])
            if value == value:
                return value
        intercept, slope = self.table.line
        return min(0.0, intercept + slope * self.table.numbers.least_of(number))

    def _fill_slots(self) -> Floats:
        """Return the log-values of all slots of the table, unknown ones estimated."""
        table = self.table
        filled: Floats = table.logs.reshape(-1, PACES, BANDS).copy()
        _fill_along(filled, 2)
        _fill_along(filled, 1)
        filled = filled.reshape(-1, COLUMNS)
        rows, bands = np.nonzero(np.isnan(filled))
        if not len(rows):
            return filled.reshape(-1)
        if self.unseen is not None:
            filled[rows, bands] = self.unseen
            return filled.reshape(-1)
        intercept, slope = table.line
        guesses = np.minimum(0.0, intercept + slope * table.numbers.least[rows])
        if len(table.coarse_logs):
            coarse = table.numbers.coarse[rows]
            inside = coarse < len(table.coarse_logs)
            better = np.full(len(rows), np.nan)
            better[inside] = table.coarse_logs[coarse[inside], bands[inside]]
            guesses = np.where(np.isnan(better), guesses, better)
        filled[rows, bands] = guesses
        return filled.reshape(-1)


def _fill_along(filled: Floats, axis: int) -> None:
    """Replace NaN by the nearest number along an axis, that of a higher index first."""
    size = filled.shape[axis]
    known = filled.copy()
    for shift in (*range(1, size), *range(-1, -size, -1)):
        to, source = [slice(None)] * 3, [slice(None)] * 3
        to[axis] = slice(None, -shift) if shift > 0 else slice(-shift, None)
        source[axis] = slice(shift, None) if shift > 0 else slice(None, shift)
        part = filled[tuple(to)]
        missing = np.isnan(part)
        part[missing] = known[tuple(source)][missing]
