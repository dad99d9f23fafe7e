"""The first arrivals of an exponential race on the GPU: the tokens that adaptive rejection sampling (AWRS) checks.

Each token has a clock Exp(1) / p. The first arrival is a draw from p, the second one from p without the first, and so
on: sampling without replacement by Gumbel top-k (see `sampling.exponential_race`). Minus the log of a clock is log p
plus Gumbel noise, and the noise is Philox of (seed, step, token), so a later round can continue the race: the tokens of
ranks from `ceiling` on have arrived, and no list of them is stored.

The kernel writes the log mass of every arrival, and per row the mass of all tokens that had not arrived before this
round, summed explicitly to avoid cancellation. Clocks are float32 logs of 64 random bits: the relative error of a
probability is about 1e-6, and tokens of p >= 1e-17 remain possible.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .cuda_block import MOST_THREADS, block_max, block_sum
from .cuda_device import cuda, device, kernel
from .cuda_order import ID_BITS, INFINITY, rank_of, token_of, value_at, value_of
from .cuda_rows import EXCLUDED, LOADS, compute_limit, find_mask, load_values
from .cuda_select import BINS, build_selector
from .philox_generator import philox

__all__ = ["MOST_ARRIVALS", "find_arrivals"]

MOST_ARRIVALS = 256
"""Most arrivals of a row in one round."""
ALL = 1 << 62
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
MIDDLE = np.uint64(1 << 31)
FINE, FINER = np.float32(2.0**-32), np.float32(2.0**-64)
STEPS_PER_NAT = np.float32(8.0)


@device
def draw_gumbel(token: Any, seed: Any, step: Any) -> Any:
    """Return Gumbel noise -log(E), E ~ Exp(1), float32: 64 bits, counted from the nearer end for accurate tails."""
    high, low, _, _ = philox(step & LOW, step >> HALF, np.uint64(token), np.uint64(1), seed & LOW, seed >> HALF)
    if high < MIDDLE:
        clock = -math.log1p(-(np.float32(high) * FINE + (np.float32(low) + np.float32(0.5)) * FINER))
    else:
        clock = -math.log(np.float32(LOW - high) * FINE + (np.float32(LOW - low) + np.float32(0.5)) * FINER)
    return np.float32(-math.log(np.float32(clock)))


@device
def draw_clock(row: Any, value: Any, token: Any) -> Any:
    """Return the perturbed log-probability of a token (larger: earlier arrival); -inf if it is excluded."""
    return (value - row[7]) + draw_gumbel(token, row[8], row[9]) if value > EXCLUDED else EXCLUDED


@device
def draw_clocks(row: Any, first: Any, threads: Any) -> Any:
    """Return the results of `draw_clock` for the four tokens of `load_values`."""
    a, b, c, d = load_values(row, first, threads)
    return (
        draw_clock(row, a, first), draw_clock(row, b, first + threads),
        draw_clock(row, c, first + 2 * threads), draw_clock(row, d, first + 3 * threads),
    )  # fmt: skip


@device
def ignore_mass(row: Any, value: Any) -> Any:
    """Return 0: arrivals are selected by their number, not by mass."""
    return np.int64(0)


count_bins, select_rank = build_selector(draw_clocks, ignore_mass)


@kernel
def find_arrivals(
    logits: Any, stride: Any, width: Any, kind: Any, bits: Any, words: Any, masks: Any, rows: Any, which: Any,
    wanted: Any, seeds: Any, steps: Any, ceilings: Any, tokens: Any, logs: Any, lefts: Any,
) -> None:  # fmt: skip
    """Find the next arrivals of the rows in `which` (int32): a block each, of 2^k <= 1024 threads.

    logits, stride, width, kind, bits, words, masks, rows, seeds, steps: as in `cuda_arguments`. wanted: at most MOST.
    ceilings: int64 [B], the least rank that has arrived, 2^62 at first; updated for the next round.
    tokens: int32 [n, wanted], in order, then -1; logs: float64 [n, wanted], nats, of the softmax over all tokens;
    lefts: float64 [n], the mass that had not arrived before; NaN where a logit is NaN or no logit is above -inf.
    """
    scratch = cuda.shared.array(MOST_THREADS, np.int64)
    sums = cuda.shared.array(MOST_THREADS, np.float64)
    linear = cuda.shared.array(BINS, np.int32)
    linear_mass = cuda.shared.array(BINS, np.int64)
    counts = cuda.shared.array(BINS, np.int32)
    weights = cuda.shared.array(BINS, np.int64)
    found = cuda.shared.array(8, np.int64)
    thread, threads, block = cuda.threadIdx.x, cuda.blockDim.x, cuda.blockIdx.x
    batch = which[block]
    start, at = np.int64(batch) * stride, find_mask(rows, masks, batch) * words
    seed, counter, ceiling = np.uint64(seeds[batch]), np.uint64(steps[batch]), ceilings[batch]

    best, has_nan = np.int64(-1), 0
    none = np.int64(-1)
    unmasked = logits, start, width, kind, bits, none, np.int64(width), EXCLUDED, seed, counter
    for first in range(thread, width, LOADS * threads):
        values = load_values(unmasked, first, threads)
        for lane in range(LOADS):
            if not values[lane] < INFINITY:
                has_nan = 1
            best = max(best, rank_of(values[lane], first + lane * threads))
    has_nan = cuda.syncthreads_or(has_nan)
    top = value_at(block_max(best, scratch) >> ID_BITS)
    for i in range(thread, wanted, threads):
        tokens[block, i] = -1
        logs[block, i] = -math.inf
    if has_nan != 0 or top == EXCLUDED:
        if thread == 0:
            lefts[block] = math.nan
        return

    row = logits, start, width, kind, bits, at, compute_limit(width, at, words), top, seed, counter
    full_mass, left_mass, earliest = 0.0, 0.0, np.int64(-1)
    for first in range(thread, width, LOADS * threads):
        values, times = load_values(unmasked, first, threads), draw_clocks(row, first, threads)
        for lane in range(LOADS):
            mass = math.exp(np.float64(values[lane]) - np.float64(top))
            full_mass += mass
            rank = rank_of(times[lane], first + lane * threads)
            if times[lane] > EXCLUDED and rank < ceiling:
                left_mass += mass
                earliest = max(earliest, rank)
    full_mass, left_mass, earliest = (
        block_sum(full_mass, sums),
        block_sum(left_mass, sums),
        block_max(earliest, scratch),
    )
    if thread == 0:
        lefts[block] = left_mass / full_mass
    if earliest < 0:
        return
    best_time = value_at(earliest >> ID_BITS)
    count_bins(row, width, ceiling, best_time, STEPS_PER_NAT, linear, linear_mass)
    cutoff = select_rank(
        row, width, ceiling, best_time, STEPS_PER_NAT, linear, linear_mass, np.int64(wanted), np.int64(ALL),
        counts, weights, found,
    )  # fmt: skip

    cuda.syncthreads()
    if thread == 0:
        found[0] = 0
    cuda.syncthreads()
    for first in range(thread, width, LOADS * threads):
        times = draw_clocks(row, first, threads)
        for lane in range(LOADS):
            rank = rank_of(times[lane], first + lane * threads)
            if times[lane] > EXCLUDED and cutoff <= rank < ceiling:
                scratch[cuda.atomic.add(found, 0, 1)] = rank
    cuda.syncthreads()
    arrived = found[0]
    for i in range(thread, arrived, threads):
        earlier = 0
        for j in range(arrived):
            if scratch[j] > scratch[i]:
                earlier += 1
        token = token_of(scratch[i])
        tokens[block, earlier] = token
        value = np.float64(value_of(logits[start + token], kind))
        logs[block, earlier] = value - np.float64(top) - math.log(full_mass)
        if earlier == arrived - 1:
            ceilings[batch] = scratch[i]
