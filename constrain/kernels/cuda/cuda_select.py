"""Radix selection: the k-th of V tokens in their order, or the one at which their mass reaches a goal.

    build_selector(values_of, mass_of) -> count, select      the first pass, and those that follow

A token has a float32 value and an int64 mass; those of value -inf are ignored. Larger values come first, ties by token
id (see `cuda_order`). A pass makes a histogram of tokens and mass in BINS bins; the bin in which the goal is reached
becomes the range of the next pass, until it holds one token. The bins of the first pass are linear in the value, below
the best one, where logits are spread evenly enough that few atomic additions collide; later passes use 8 bits of the
rank. Masses are integers, so sums do not depend on the order of threads: the selection is exact and deterministic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .cuda_device import cuda, device
from .cuda_order import ID_BITS, rank_of, value_at
from .cuda_rows import EXCLUDED, LOADS

__all__ = ["BINS", "bin_of", "build_selector"]

BINS = 256
LAST_ORDINAL = (1 << 32) - 1


@device
def bin_of(value: Any, best: Any, step: Any) -> Any:
    """Return the linear bin of a value, 0 for the best; monotone in the value, because each operation is."""
    below = (best - value) * step
    return np.int64(below) if below < np.float32(BINS - 1) else np.int64(BINS - 1)


@device
def find_first_ordinal(which: Any, best: Any, step: Any) -> Any:
    """Return the lowest ordinal of a value in linear bin `which` or a better one, by bisection over all floats."""
    low, high = rank_of(np.float32(-np.inf), 0) >> ID_BITS, rank_of(best, 0) >> ID_BITS
    while low < high:
        middle = (low + high) // 2
        if bin_of(value_at(middle), best, step) <= which:
            high = middle
        else:
            low = middle + 1
    return low


@device
def find_goal_bin(counts: Any, masses: Any, first: Any, goal_count: Any, goal_mass: Any, found: Any) -> None:
    """Find the first bin, from the best one on, in which either goal is reached. Called by one thread.

    first: the best bin, 0 or BINS - 1: the direction of the scan.
    found: updated; [0] count and [1] mass before the bin; [2] the bin, BINS if no goal is reached; [3, 4] its count and
    mass. `select` writes its range of ranks to [5, 6].
    """
    found[2] = BINS
    for i in range(BINS):
        which = i if first == 0 else first - i
        count, mass = np.int64(counts[which]), masses[which]
        if found[0] + count >= goal_count or found[1] + mass >= goal_mass:
            found[2], found[3], found[4] = which, count, mass
            return
        found[0] += count
        found[1] += mass


def build_selector(values_of: Callable[..., Any], mass_of: Callable[..., Any]) -> Any:
    """Return the device functions `count` and `select` for given values and masses of tokens.

    values_of(row, first, threads): the values of four tokens, float32, as `load_values`; -inf: ignored.
    mass_of(row, value): the mass of a token, int64.
    """

    @device
    def count(row: Any, width: Any, ceiling: Any, best: Any, step: Any, counts: Any, masses: Any) -> None:
        """Write the number and mass of the tokens of ranks below `ceiling` in each linear bin."""
        thread, threads = cuda.threadIdx.x, cuda.blockDim.x
        for i in range(thread, BINS, threads):
            counts[i] = 0
            masses[i] = 0
        cuda.syncthreads()
        n_last = mass_last = np.int64(0)
        for first in range(thread, width, LOADS * threads):
            values = values_of(row, first, threads)
            for lane in range(LOADS):
                value = values[lane]
                if value > EXCLUDED and rank_of(value, first + lane * threads) < ceiling:
                    which, mass = bin_of(value, best, step), mass_of(row, value)
                    if which == BINS - 1:  # most tokens: summed per thread, to avoid contention
                        n_last += 1
                        mass_last += mass
                    else:
                        cuda.atomic.add(counts, which, 1)
                        cuda.atomic.add(masses, which, mass)
        cuda.atomic.add(counts, BINS - 1, np.int32(n_last))
        cuda.atomic.add(masses, BINS - 1, mass_last)
        cuda.syncthreads()

    @device
    def select(
        row: Any, width: Any, ceiling: Any, best: Any, step: Any, linear: Any, linear_mass: Any,
        goal_count: Any, goal_mass: Any, counts: Any, masses: Any, found: Any,
    ) -> Any:  # fmt: skip
        """Return the least rank of the shortest prefix of the order that has goal_count tokens or mass goal_mass.

        0 if all tokens together reach neither goal; else found[0] + found[3] and found[1] + found[4] are the count and
        mass of the prefix. ceiling: only ranks below it count. linear, linear_mass: written by `count`. counts, masses:
        scratch of the later passes, int32 and int64 [BINS]. found: int64 [7]. best: not below any value.
        """
        thread, threads = cuda.threadIdx.x, cuda.blockDim.x
        cuda.syncthreads()
        if thread == 0:
            found[0] = 0
            found[1] = 0
            find_goal_bin(linear, linear_mass, 0, goal_count, goal_mass, found)
            which = found[2]
            if which < BINS:
                found[5] = find_first_ordinal(which, best, step) << ID_BITS if which < BINS - 1 else 0
                top = (
                    find_first_ordinal(which - 1, best, step) << ID_BITS if which > 0 else (LAST_ORDINAL + 1) << ID_BITS
                )
                found[6] = min(top, ceiling) - 1
        cuda.syncthreads()
        if found[2] == BINS:
            return np.int64(0)
        while found[3] > 1:
            low, high, shift = found[5], found[6], np.int64(0)
            while (high - low) >> shift >= BINS:
                shift += 1
            for i in range(thread, BINS, threads):
                counts[i] = 0
                masses[i] = 0
            cuda.syncthreads()
            for first in range(thread, width, LOADS * threads):
                values = values_of(row, first, threads)
                for lane in range(LOADS):
                    rank = rank_of(values[lane], first + lane * threads)
                    if values[lane] > EXCLUDED and low <= rank <= high:
                        cuda.atomic.add(counts, (rank - low) >> shift, 1)
                        cuda.atomic.add(masses, (rank - low) >> shift, mass_of(row, values[lane]))
            cuda.syncthreads()
            if thread == 0:
                find_goal_bin(counts, masses, BINS - 1, goal_count, goal_mass, found)
                found[5] = low + (found[2] << shift)
                found[6] = min(high, found[5] + (np.int64(1) << shift) - 1)
            cuda.syncthreads()
        return found[5]

    return count, select
