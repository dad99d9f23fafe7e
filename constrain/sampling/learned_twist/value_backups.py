"""Learning values from visited texts: the equation of the mass to come, applied from the longest texts to the root.

With p the model's next-token distribution after u, over all allowed tokens,

    V(u) = p(end | u) + sum over tokens a of p(a | u) v(ua)

where v(ua) is V(ua) if ua was visited, and else the value of its (slot, token) or slot. New values of slots are means
of V over the visited texts in each of them, and so on: `SWEEPS` times, each with the values of the sweep before. That
is fitted value iteration over a tree of samples; every row counts in full, not only the token that was drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .value_table import BANDS, COLUMNS, PACES, Values, ValueTable, fit_line
from .visited_prefixes import VisitedPrefix, VisitedPrefixes

__all__ = ["back_up", "compute_values", "measure_gap"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SWEEPS, FIRST_SWEEPS = 2, 6
"""Sweeps of a backup, and of the first one of a table."""
SHRINK = 0.5
"""Texts that the value of a slot counts for in the (geometric) mean of a (slot, token)."""
SMALLEST = 1e-250
"""Least value: values must be positive, and logs finite."""
PRIOR = 4.0
"""Most texts that values from earlier calls count for."""
DEAD = math.log(1e-200)
"""Log-mean below which no text seen could be completed."""
CAUTION = 3.0
"""n texts of small value lower an estimate by no more than (SHRINK / (n + SHRINK)) ** CAUTION: that one could hardly be
completed does not say that none can. A value far too small makes the weights of later texts jump up, one too large only
lets some particles die."""


@dataclass(frozen=True)
class _Layout:
    """Visited texts as arrays, the deepest first; row i of an edge array belongs to text `owner[i]`."""

    order: list[VisitedPrefix]
    levels: list[tuple[int, int]]  # spans of equal depth
    slots: Ints
    tokens: Ints
    ends: Floats
    rest_slots: Ints
    rest_probs: Floats
    edge_starts: Ints  # [n + 1]
    edge_slots: Ints
    edge_tokens: Ints
    edge_probs: Floats
    edge_children: Ints  # index of the visited child, -1
    outer: list[tuple[int, int, float]]  # visited children that were not followed: (owner, child, probability)

    @classmethod
    def of(cls, visited: VisitedPrefixes) -> _Layout:
        order = sorted(visited.listed, key=lambda one: -one.depth)
        index = {id(one): i for i, one in enumerate(order)}
        depths = np.array([one.depth for one in order])
        bounds = [0, *(np.flatnonzero(np.diff(depths)) + 1).tolist(), len(order)]
        starts = np.cumsum([0, *(len(one.tokens) for one in order)])
        edge_tokens = np.concatenate([one.tokens for one in order])
        children, outer = np.full(len(edge_tokens), -1, np.int64), list[tuple[int, int, float]]()
        for i, one in enumerate(order):
            for token, child in one.children.items():
                at = np.flatnonzero(one.tokens == token)
                if len(at):
                    children[starts[i] + at[0]] = index[id(child)]
                else:
                    outer.append((i, index[id(child)], child.prob))
        return cls(
            order, list(zip(bounds[:-1], bounds[1:])),
            np.array([one.slot for one in order], np.int64), np.array([one.token for one in order], np.int64),
            np.array([one.end_prob for one in order]),
            np.array([one.rest_slot for one in order], np.int64), np.array([one.rest_prob for one in order]),
            starts.astype(np.int64), np.concatenate([one.slots for one in order]), edge_tokens,
            np.concatenate([one.probs for one in order]), children, outer,
        )  # fmt: skip


class _Means(NamedTuple):
    """Logs of means by group, and how many members each mean has."""

    logs: Floats
    counts: Floats


def back_up(visited: VisitedPrefixes, prior: ValueTable, start: ValueTable, sweeps: int | None = None) -> ValueTable:
    """Return the table that visited texts and a prior table give, and store the value of each text in it.

    prior: table of earlier calls, whose texts count for at most PRIOR new ones per value; without values, none do.
    start: the table whose values the first sweep uses. sweeps: by default SWEEPS, FIRST_SWEEPS if `start` has learned
    nothing. The tables share their states.
    """
    if not len(visited):
        return start
    layout, table = _Layout.of(visited), start
    for _ in range(sweeps or (SWEEPS if start.populations else FIRST_SWEEPS)):
        values = compute_values(layout, Values(table))
        table = _average(layout, values, prior)
    for one, value in zip(layout.order, values.tolist()):
        one.value = value
    return replace(table, populations=start.populations + 1, has_fallen_back=start.has_fallen_back)


def measure_gap(visited: VisitedPrefixes, table: ValueTable) -> tuple[float, float]:
    """Return logs of the values of the empty text if states that were never visited are worth 0, and 1.

    log Z is between them under the abstraction: if texts of one slot had equal values.
    """
    bounds = list[float]()
    layout = _Layout.of(visited)
    for unseen in (-math.inf, 0.0):
        here = table
        for _ in range(SWEEPS):
            values = compute_values(layout, Values(here, unseen))
            here = _average(layout, values, here, capped=0.0)
        bounds.append(math.log(float(compute_values(layout, Values(here, unseen))[-1])))
    return bounds[0], max(bounds)


def compute_values(layout: _Layout, values: Values) -> Floats:
    """Return V of each text of a layout, between SMALLEST and 1: float64 [n]."""
    leaves = np.exp(values.of_pairs(layout.edge_slots, layout.edge_tokens))
    rests = np.exp(values.of_slots(layout.rest_slots))
    out: Floats = layout.ends + layout.rest_probs * rests
    outer: dict[int, list[tuple[int, float]]] = {}
    for owner, child, prob in layout.outer:
        outer.setdefault(owner, []).append((child, prob))
    for low, high in layout.levels:
        first, last = layout.edge_starts[low], layout.edge_starts[high]
        if last > first:
            children = layout.edge_children[first:last]
            worth = leaves[first:last]
            inner = children >= 0
            worth[inner] = out[children[inner]]
            spans = layout.edge_starts[low : high + 1] - first
            filled = np.flatnonzero(spans[1:] > spans[:-1])  # reduceat has no empty sums
            out[low + filled] += np.add.reduceat(worth * layout.edge_probs[first:last], spans[filled])
        for owner in range(low, high) if outer else ():
            for child, prob in outer.get(owner, ()):
                out[owner] += prob * (out[child] - rests[owner])
        np.clip(out[low:high], SMALLEST, 1.0, out=out[low:high])
    return out


def _average(layout: _Layout, values: Floats, prior: ValueTable, capped: float = PRIOR) -> ValueTable:
    """Return the table of the mean values of slots and pairs, each with its prior one."""
    numbers = prior.numbers
    states = len(numbers)
    slots = _mean_by(
        layout.slots, values, states * COLUMNS, _pad(prior.logs, states), _pad(prior.counts, states), capped
    )
    logs, counts = slots.logs.reshape(-1, COLUMNS), slots.counts.reshape(-1, COLUMNS)
    coarse = numbers.coarse
    coarse_slots = coarse[layout.slots // COLUMNS] * COLUMNS + layout.slots % COLUMNS
    size = int(coarse.max()) + 1
    coarse_logs = _mean_by(coarse_slots, values, size * COLUMNS, _pad(prior.coarse_logs, size), np.zeros(0), 0.0).logs
    known = slots.logs > DEAD
    coarse_logs[coarse_logs < DEAD] = np.nan
    least = np.repeat(numbers.least, COLUMNS)[known].astype(np.float64)
    line = fit_line(least, slots.logs[known]) if known.any() else prior.line
    table = replace(
        prior, logs=logs, counts=counts, coarse_logs=coarse_logs.reshape(-1, COLUMNS), line=line,
        pairs=np.empty(0, np.int64), pair_logs=np.empty(0), pair_counts=np.empty(0), populations=1,
    )  # fmt: skip
    table = replace(table, logs=_shrink_slots(logs, counts, table))
    return _average_pairs(layout, values, prior, table, capped)


def _average_pairs(layout: _Layout, values: Floats, prior: ValueTable, table: ValueTable, capped: float) -> ValueTable:
    """Return `table` with the mean values of (slot, token), drawn towards those of the slots."""
    drawn = layout.tokens >= 0
    seen = layout.slots[drawn] * prior.size + layout.tokens[drawn]
    codes = np.union1d(prior.pairs, seen)
    place = codes.searchsorted(prior.pairs)
    logs, counts = np.full(len(codes), np.nan), np.zeros(len(codes))
    logs[place], counts[place] = prior.pair_logs, prior.pair_counts
    means = _mean_by(codes.searchsorted(seen), values[drawn], len(codes), logs, counts, capped)
    fresh = np.bincount(codes.searchsorted(seen), minlength=len(codes)) > 0
    slot_logs = Values(table).of_slots(codes // prior.size)
    shrunk = _shrink(means.logs, means.counts, slot_logs)
    return replace(table, pairs=codes, pair_logs=np.where(fresh, shrunk, means.logs), pair_counts=means.counts)


def _shrink_slots(logs: Floats, counts: Floats, table: ValueTable) -> Floats:
    """Return logs of means of slots, drawn towards those of the same state and band at any pace, and these towards
    those of the same coarse state and band. float64 [K, COLUMNS], NaN where there is none.
    """
    numbers, split = table.numbers, (len(logs), PACES, BANDS)
    sums = np.where(np.isnan(logs), 0.0, counts * np.exp(logs)).reshape(split).sum(1)
    numbers_of = np.where(np.isnan(logs), 0.0, counts).reshape(split).sum(1)
    coarse = numbers.coarse[: len(logs)]
    size = int(coarse.max()) + 1
    coarse_sums, coarse_counts = np.zeros((size, BANDS)), np.zeros((size, BANDS))
    np.add.at(coarse_sums, coarse, sums)
    np.add.at(coarse_counts, coarse, numbers_of)
    intercept, slope = table.line
    guesses = np.minimum(0.0, intercept + slope * numbers.least[: len(logs), None].astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        wide = np.log(coarse_sums / coarse_counts)[coarse]
        wide = np.where(wide > DEAD, wide, guesses + CAUTION * np.log(SHRINK / (coarse_counts[coarse] + SHRINK)))
        state = _shrink(np.log(sums / numbers_of), numbers_of, wide)
    shrunk = _shrink(logs.reshape(split), counts.reshape(split), state[:, None, :])
    return np.where(np.isnan(logs), np.nan, shrunk.reshape(logs.shape))


def _shrink(logs: Floats, counts: Floats, towards: Floats) -> Floats:
    """Return weighted means of logs (means of `counts` texts) and of `towards`, which counts for SHRINK texts, but no
    less than (SHRINK / (counts + SHRINK)) ** CAUTION times `towards`.
    """
    with np.errstate(invalid="ignore"):
        means = (counts * logs + SHRINK * towards) / (counts + SHRINK)
    return np.maximum(means, towards + CAUTION * np.log(SHRINK / (counts + SHRINK)))


def _mean_by(groups: Ints, values: Floats, size: int, logs: Floats, counts: Floats, capped: float) -> _Means:
    """Return means by group, of values and a prior mean (logs, float64 [size], NaN for none) that counts for as many
    as it was made of, at most `capped`. Groups without values keep their prior.
    """
    new_counts, sums = np.bincount(groups, minlength=size), np.bincount(groups, values, minlength=size)
    old = np.full(size, np.nan)
    old[: logs.size] = logs.ravel()
    weights = np.zeros(size)
    weights[: counts.size] = counts.ravel()
    weights[np.isnan(old)] = 0.0
    used = np.where(new_counts > 0, np.minimum(weights, capped), weights)
    total = new_counts + used
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.log((sums + np.where(used > 0, used * np.exp(old), 0.0)) / total)
    return _Means(np.where(new_counts > 0, mean, old), np.where(new_counts > 0, total, weights))


def _pad(rows: Floats, count: int) -> Floats:
    """Return rows [n, COLUMNS] extended to `count` rows, by NaN for logs and counts alike."""
    missing = np.full((count - len(rows), COLUMNS), np.nan)
    return np.concatenate([rows, missing]) if len(missing) else rows
