"""ValueTable: estimates of h(u), the probability that a model continues a text u to one of L within the tokens left.

Texts share an estimate if they agree in a *slot*: the abstract state of the constraint (`engine.abstract_states`) and a
pace (`find_pace`). The pace says how readily the model leaves the state, by the exit rate that `lookahead` defines,
whether the text has a line feed, and how often its last tokens repeat those before them: a model that has begun to
indent goes on to do so, and one that has repeated a word three times does so again. A slot has a value for every number
of tokens left, at the points `HORIZONS` and interpolated between them: a row of the model says what would follow with
any number of tokens left, not only with the one it was fetched for. The last token shifts the log-values of the slots
of a state (a *pair*). Where nothing is known, a value comes from the first of

    slot                                        learned, or once met as a next token's
    the mean of the slots of the same state
    `guess_logs`, exp(a + b x) with b <= 0 and x the least bytes to the end, less if tokens are too few for them; with
    the mean departure from it in the same coarse state, which differs in registers and places only

Values are positive, so a twist made of them is proper whatever they are. The *spread* of a slot is the mean square of
the relative departures of its texts' values from what the table says of them. All logs are natural.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ...base.cached_property import cached_property
from .state_numbers import StateNumbers

__all__ = ["COLD", "HORIZONS", "MOST_RATIO", "MOST_REPEATS", "PACES", "ValueTable", "Values", "count_horizons",
           "empty_table", "find_pace", "fit_line", "guess_log", "guess_logs"]  # fmt: skip

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RATES = (1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.2)
"""Exit rates at which paces end."""
SPEEDS = len(RATES) + 2
"""Paces of texts without a line feed that do not repeat themselves; as many again are those of texts with a line feed,
and twice as many each those of texts that repeat themselves once, twice, ..."""
MOST_REPEATS = 3
"""Repeats that paces tell apart."""
PACES = 2 * (1 + MOST_REPEATS) * SPEEDS
"""Slots of a state: slot = state * PACES + pace. The first pace is that of texts whose last token led to another
state."""
DENSE = 32
HORIZONS: Ints = np.array([*range(DENSE), *(DENSE * 2**k + 2 ** (k + 1) * i for k in range(16) for i in range(16))])
"""Numbers of tokens left of which values are kept: all below DENSE, then 16 from each power of two to the next."""
BYTES_PER_TOKEN = 3.0
"""Bytes that a token of the rest of a text is taken to have."""
PRICE = 0.3
"""Nats per byte of the least completion, before anything is learned."""
MOST_RATIO = 30.0
"""Largest log-ratio of a value to what is expected of its class: beyond it, one value would be all that a mean is made
of."""
LACK = 2.0
"""Nats per token that is missing for the least completion."""
COLD = 4
"""Populations of a table that learn while they grow. Until then all of its values are guesses, and none is limited."""
SMALLEST = -575.0
"""Least log-value: values must be positive."""


@dataclass(frozen=True)
class ValueTable:
    """Learned values. Arrays are never changed; `value_backups` makes new tables.

    Attributes
    ----------
    numbers : StateNumbers
        The states. It grows while texts are visited.
    size : int
        Tokens of the vocabulary.
    slots : int64 [n], ascending
        The slots that have values.
    logs : float64 [n, H]
        Log of the value of each, with HORIZONS[j] tokens left in column j. With more than in the last column it is as
        in that one.
    counts : float64 [n]
        Number of texts that were seen in each slot, by weight.
    spreads : float64 [n]
        Spread of each slot; where no text was seen, of its state, or of all.
    pairs : int64 [m], ascending
        Codes of (state, last token): state * size + token.
    pair_logs, pair_counts : float64 [m]
        What each pair adds to the log-values of slots, and number of texts, by weight.
    line : (float, float)
        a and b of exp(a + b x).
    populations : int
        How many populations have been learned from.
    has_fallen_back : bool
        Whether the last call found the flat twist better, see `fallback_rule`.
    """

    numbers: StateNumbers
    size: int
    slots: Ints
    logs: Floats
    counts: Floats
    spreads: Floats
    pairs: Ints
    pair_logs: Floats
    pair_counts: Floats
    line: tuple[float, float] = (0.0, -PRICE)
    populations: int = 0
    has_fallen_back: bool = False

    def __repr__(self) -> str:
        learned = f"{len(self.numbers)} states, {len(self.slots)} slots"
        return f"ValueTable({learned}, learned from {self.populations} populations, {self.nbytes} bytes)"

    @property
    def nbytes(self) -> int:
        """Size in memory: that of the arrays, and an estimate of that of the states."""
        arrays = (self.slots, self.logs, self.counts, self.spreads, self.pairs, self.pair_logs, self.pair_counts)
        return sum(one.nbytes for one in arrays) + self.numbers.nbytes

    def copy(self) -> ValueTable:
        """Return a copy whose states can grow independently."""
        return replace(self, numbers=self.numbers.copy())

    def logs_at(self, left: int) -> Floats:
        """Return the log-values of all slots with some tokens left: float64 [n]."""
        last = self.logs.shape[1] - 1
        if left >= HORIZONS[last]:
            return self.logs[:, last]
        column = int(HORIZONS.searchsorted(left, side="right")) - 1
        low, high = HORIZONS[column : column + 2].tolist()
        share = (left - low) / (high - low)
        if share == 0:
            return self.logs[:, column]
        mean: Floats = (1 - share) * self.logs[:, column] + share * self.logs[:, column + 1]
        return mean


def empty_table(numbers: StateNumbers, size: int) -> ValueTable:
    """Return a table that has learned nothing."""
    none, nothing = np.empty(0, np.int64), np.empty(0)
    return ValueTable(numbers, size, none, np.empty((0, 1)), nothing, nothing, none, nothing, nothing)


def count_horizons(left: int) -> int:
    """Return how many of HORIZONS reach to `left` tokens."""
    return int(HORIZONS.searchsorted(left)) + 1


def find_pace(exit_rate: float, has_newline: bool, repeats: int) -> int:
    """Return the pace of texts with an exit rate, NaN for a text whose last token led to another state. repeats: how
    often they repeat their end, at most MOST_REPEATS.
    """
    speed = 0 if exit_rate != exit_rate else 1 + bisect_right(RATES, exit_rate)
    return speed + SPEEDS * (has_newline + 2 * repeats)


def fit_line(least: Floats, logs: Floats) -> tuple[float, float]:
    """Return (a, b) of a line a + b x through points (least, logs), with b at most 0.

    By least squares if there is a point with x = 0: a text that could end was seen. Then it is raised until the mean
    ratio of values to it is 1: what is wanted of an unknown value is its mean, not the mean of logs. Until then a is 0,
    the value of a text of which nothing is missing, and b is the median of log-value per byte: a free line would fall
    without bound from pass to pass, as all values are made of what it says of the next tokens.
    """
    if not (least == 0).any():
        return 0.0, min(0.0, float(np.median(logs / least)))
    spread = float(least.var()) if len(least) >= 3 else 0.0
    mean, middle = float(logs.mean()), float(least.mean())
    slope = min(0.0, float(((least - middle) * (logs - mean)).mean()) / spread) if spread > 0 else 0.0
    ratios = np.exp(np.minimum(logs - np.minimum(0.0, mean + slope * (least - middle)), MOST_RATIO))
    return mean - slope * middle + max(0.0, float(np.log(ratios.mean()))), slope


def guess_logs(line: tuple[float, float], least: Floats, left: int) -> Floats:
    """Return log-values of states that are known by their least bytes to the end only: float64, as `least`."""
    missing = np.maximum(0.0, 1 + least / BYTES_PER_TOKEN - left)
    out: Floats = np.minimum(0.0, line[0] + line[1] * least) - LACK * missing
    return np.maximum(out, SMALLEST)


def guess_log(line: tuple[float, float], least: float, left: int) -> float:
    """Return the same as `guess_logs`, for one state."""
    missing = max(0.0, 1 + least / BYTES_PER_TOKEN - left)
    return max(min(0.0, line[0] + line[1] * least) - LACK * missing, SMALLEST)


@dataclass
class _Column:
    """Log-values with some number of tokens left.

    logs: of the table's slots (float64 [n]). by_coarse: their mean departures from `guess_logs` by coarse state (NaN
    for none), once they are needed. by_slot: what `Values.of_slots` returns for each slot that it was called for.
    """

    left: int
    logs: Floats
    by_coarse: Floats | None = None
    by_slot: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Values:
    """The values of a table, as a function of slots, last tokens, and the number of tokens left.

    unseen: log-value of a state of which no text was seen; None for the estimates of the table. 0 is what scouts use.
    """

    table: ValueTable
    unseen: float | None = None
    _columns: dict[int, _Column] = field(init=False, repr=False, default_factory=dict)

    def of_slots(self, slots: Ints, left: int) -> Floats:
        """Return the log-value of each slot (int64 [n], also of those that are not in the table): float64 [n]."""
        column = self._column(left)
        by_slot, logs = column.by_slot, list[float]()
        for slot in slots.tolist():
            value = by_slot.get(slot)
            if value is None:
                value = by_slot[slot] = self._find_value(slot, column)
            logs.append(value)
        return np.array(logs)

    def of_pairs(self, slots: Ints, tokens: Ints, left: int) -> Floats:
        """Return the log-value after each of some tokens, which lead to these slots (both int64 [n]): float64 [n]."""
        out = self.of_slots(slots, left)
        table = self.table
        if len(table.pairs):
            codes = slots // PACES * table.size + tokens
            index = np.minimum(table.pairs.searchsorted(codes), len(table.pairs) - 1)
            known = table.pairs[index] == codes
            out[known] = np.clip(out[known] + table.pair_logs[index[known]], SMALLEST, 0.0)
        return out

    def are_guesses(self, slots: Ints) -> NDArray[np.bool_]:
        """Return for each slot whether no text was seen in its state (bool [n]); False for all while a table is cold,
        and for -1.
        """
        if self.unseen is not None or self.table.populations < COLD or not len(self._seen):
            return np.zeros(len(slots), np.bool_)
        states = slots // PACES
        out: NDArray[np.bool_] = self._seen[np.minimum(self._seen.searchsorted(states), len(self._seen) - 1)] != states
        return out & (slots >= 0)

    @property
    def has_spreads(self) -> bool:
        """Whether `spreads_of` is known: not for scouts, nor while a table is cold."""
        return self.unseen is None and self.table.populations >= COLD and len(self._seen) > 0

    def spreads_of(self, slots: Ints) -> Floats:
        """Return the spread of each slot (int64 [n], also of those that are not in the table): float64 [n]."""
        known, spreads = self.table.slots, self.table.spreads
        index = np.minimum(known.searchsorted(slots), len(known) - 1)
        out: Floats = np.where(known[index] == slots, spreads[index], self._mean_spread)
        return out

    @cached_property
    def _mean_spread(self) -> float:
        """Mean spread of the slots, by the texts that were seen in each."""
        return float(np.average(self.table.spreads, weights=self.table.counts))

    @cached_property
    def _seen(self) -> Ints:
        """The states of which texts were seen: int64, ascending."""
        return np.unique(self.table.slots[self.table.counts > 0] // PACES)

    def _column(self, left: int) -> _Column:
        found = self._columns.get(left)
        if found is None:
            found = self._columns[left] = _Column(left, self.table.logs_at(left))
        return found

    def _find_value(self, slot: int, column: _Column) -> float:
        """Return the log-value of a slot."""
        table, state = self.table, slot // PACES
        first, at, end = table.slots.searchsorted((state * PACES, slot, (state + 1) * PACES)).tolist()
        if first == end:
            return self._guess(state, column) if self.unseen is None else self.unseen
        counts = table.counts[first:end]
        if self.unseen is not None and not counts.any():
            return self.unseen
        if at < end and table.slots[at] == slot:
            return float(column.logs[at])
        return float(np.average(column.logs[first:end], weights=counts + 1e-6))

    def _guess(self, state: int, column: _Column) -> float:
        """Return the log-value of a state that no slot of the table belongs to."""
        table = self.table
        coarse = table.numbers.coarse_of(state)
        if column.by_coarse is None:
            column.by_coarse = self._average_departures(column)
        value = guess_log(table.line, float(table.numbers.least_of(state)), column.left)
        if coarse < len(column.by_coarse) and not math.isnan(column.by_coarse[coarse]):
            value += float(column.by_coarse[coarse])
        return min(max(value, SMALLEST), 0.0)

    def _average_departures(self, column: _Column) -> Floats:
        """Return the mean departure of the table's slots from `guess_logs`, by coarse state; NaN for none."""
        table = self.table
        if not len(table.slots):
            return np.empty(0)
        weights, states = table.counts + 1e-6, table.slots // PACES
        coarse = table.numbers.coarse[states]
        departures = column.logs - guess_logs(table.line, table.numbers.least[states].astype(np.float64), column.left)
        with np.errstate(invalid="ignore"):
            means: Floats = np.bincount(coarse, weights * departures) / np.bincount(coarse, weights)
        return means
