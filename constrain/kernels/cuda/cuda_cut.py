"""Where top-k and top-p cut a row: the rank of the last token that they keep, by radix selection.

The histogram of a row has BINS bins of tokens and mass, linear in the logit from the best one down (`bin_of`), in which
logits are spread evenly enough that few atomic additions collide. It tells in which bin a cut falls. The tokens of that
bin, and for top-k of all before it, are gathered (`gather`); if they are at most MOST_CANDIDATES, one block per row
selects among them, else in the whole row (`cut`). A pass of the selection makes a histogram of the ranks that are left,
of which one bin becomes the range of the next pass, until it holds one token.

Ranks are distinct and masses are integers, so the selection is exact and does not depend on the order of threads.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .cuda_arguments import (
    BROKEN,
    MOST_CANDIDATES,
    STRIDE,
    THREADS,
    TURNS,
    allows,
    compute_mass,
    find_bests,
    load_logit,
    load_tokens,
    open_row,
    read_choice,
    sum_chunks,
)  # fmt: skip
from .cuda_block import block_max, block_prefix
from .cuda_device import cuda, device, kernel
from .cuda_order import ID_BITS, rank_of, value_at
from .cuda_select import BINS, bin_of

__all__ = ["STEPS_PER_NAT", "cut", "gather"]

STEPS_PER_NAT = np.float32(8.0)
"""Linear bins per nat, after temperature: the last of 256 begins where masses are 0."""
ALL = 1 << 62
NOTHING, PREFIX, BIN, ROW = 0, 1, 2, 3
"""Where a cut is selected: there is none; among the tokens up to a bin; among those of a bin; in the row."""


@device
def find_goal_bin(
    counts: Any, masses: Any, count: Any, mass: Any, goal_count: Any, goal_mass: Any, scratch: Any, found: Any
) -> Any:
    """Return the first bin in which either goal is reached, BINS if none is; [BINS] arrays in shared memory.

    count, mass: of what comes before the first bin. found: int64 [5], written: (bin, count and mass before it, and of
    it).
    """
    thread, share = cuda.threadIdx.x, BINS // cuda.blockDim.x
    first = thread * share
    own_count, own_mass = np.int64(0), np.int64(0)
    for i in range(first, first + share):
        own_count += counts[i]
        own_mass += masses[i]
    before, _ = block_prefix(own_count, scratch)
    heavier, _ = block_prefix(own_mass, scratch)
    if thread == 0:
        found[0] = BINS
    cuda.syncthreads()
    count, mass = count + before, mass + heavier
    for i in range(first, first + share):
        more, further = count + counts[i], mass + masses[i]
        if count < goal_count and mass < goal_mass and (more >= goal_count or further >= goal_mass):
            found[0], found[1], found[2], found[3], found[4] = i, count, mass, counts[i], masses[i]
        count, mass = more, further
    cuda.syncthreads()
    return found[0]


@device
def clear_bins(counts: Any, masses: Any) -> None:
    """Set all bins to 0."""
    for i in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        counts[i] = 0
        masses[i] = 0
    cuda.syncthreads()


@device
def plan_cut(work: Any, row: Any, most: Any, share: Any, counts: Any, masses: Any, scratch: Any, found: Any) -> Any:
    """Return (where to select, bin, top_k that has an effect, mass to reach) from the histogram of a row.

    counts, masses: shared memory, to which the histogram is copied. found: as of `find_goal_bin`.
    """
    for i in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        counts[i] = work.counts[row, i]
        masses[i] = work.masses[row, i]
    cuda.syncthreads()
    none = np.int64(0)
    if most > 0:
        which = find_goal_bin(counts, masses, none, none, most, np.int64(ALL), scratch, found)
        if which < BINS:
            where = PREFIX if found[1] + found[3] <= MOST_CANDIDATES else ROW
            return where, which, most, none
    if not share < 1:
        return NOTHING, none, none, none
    goal = find_goal(share, sum_chunks(work.feasible, row, scratch))
    which = find_goal_bin(counts, masses, none, none, np.int64(ALL), goal, scratch, found)
    return (BIN if found[3] <= MOST_CANDIDATES else ROW), which, none, goal


@device
def find_goal(share: Any, total: Any) -> Any:
    """Return the least mass that is a share of a total, at least 1."""
    return max(np.int64(1), min(np.int64(math.ceil(np.float64(share) * np.float64(total))), total))


@kernel
def gather(rows: Any, parameters: Any, work: Any, results: Any) -> None:
    """Collect the candidates of the rows. Blocks: [B, chunks]."""
    scratch = cuda.shared.array(THREADS, np.int64)
    counts = cuda.shared.array(BINS, np.int32)
    masses = cuda.shared.array(BINS, np.int64)
    found = cuda.shared.array(5, np.int64)
    thread, row, chunk = cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockIdx.y
    is_valid, _, warmth, most, share, _ = read_choice(parameters, row)
    best_rank, top_rank = find_bests(work, row, scratch)
    if not is_valid or best_rank < 0 or top_rank >= BROKEN or (most <= 0 and not share < 1):
        return
    where, which, _, _ = plan_cut(work, row, most, share, counts, masses, scratch, found)
    if where != PREFIX and where != BIN:
        return
    best = value_at(best_rank >> ID_BITS)
    values, place = cuda.local.array(TURNS, np.float32), open_row(rows, row)
    for part in range(rows.parts):
        first = (np.int64(chunk) * rows.parts + part) * STRIDE + thread
        allowed = load_tokens(rows, place, first, THREADS, values)
        for turn in range(TURNS):
            if (allowed >> turn) & 1 != 0:
                bin_of_token = bin_of(values[turn], best, warmth * STEPS_PER_NAT)
                if bin_of_token == which or (where == PREFIX and bin_of_token < which):
                    rank = rank_of(values[turn], first + turn * THREADS)
                    work.candidates[row, cuda.atomic.add(work.found, row, 1)] = rank


@device
def fetch(rows: Any, work: Any, row: Any, place: Any, in_row: Any, i: Any) -> Any:
    """Return the rank of candidate i, or of token i of the row; -1 if it is not allowed. place: of `open_row`."""
    if not in_row:
        return work.candidates[row, i]
    if not allows(rows, place[1], place[2], i):
        return np.int64(-1)
    value = load_logit(rows, place[0], i)
    return rank_of(value, i) if value > -np.inf else np.int64(-1)


@device
def select(
    rows: Any, work: Any, row: Any, place: Any, in_row: Any, best: Any, warmth: Any, count: Any, mass: Any,
    goal_count: Any, goal_mass: Any, counts: Any, masses: Any, scratch: Any, found: Any,
) -> Any:  # fmt: skip
    """Return the least rank of the shortest prefix of the order that reaches a goal, which all together reach.

    count, mass: of what comes before the candidates. Then found[1] + found[3] and found[2] + found[4] are those of the
    prefix.
    """
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    number = np.int64(rows.width) if in_row else np.int64(work.found[row])
    high, low = np.int64(-1), np.int64(-ALL)
    for i in range(thread, number, threads):
        rank = fetch(rows, work, row, place, in_row, i)
        if rank >= 0:
            high, low = max(high, rank), max(low, -rank)
    high, low = block_max(high, scratch), -block_max(low, scratch)
    while True:
        shift = np.int64(0)
        while (high - low) >> shift >= BINS:
            shift += 1
        clear_bins(counts, masses)
        for i in range(thread, number, threads):
            rank = fetch(rows, work, row, place, in_row, i)
            if low <= rank <= high:
                which = (high - rank) >> shift
                cuda.atomic.add(counts, which, 1)
                cuda.atomic.add(masses, which, compute_mass(value_at(rank >> ID_BITS), best, warmth))
        cuda.syncthreads()
        which = find_goal_bin(counts, masses, count, mass, goal_count, goal_mass, scratch, found)
        high -= which << shift
        low = max(low, high - (np.int64(1) << shift) + 1)
        count, mass = found[1], found[2]
        if found[3] <= 1:
            return low


@kernel
def cut(rows: Any, parameters: Any, work: Any, results: Any) -> None:
    """Write the least rank that top-k and top-p keep, 0: all. Blocks: [B]."""
    scratch = cuda.shared.array(THREADS, np.int64)
    counts = cuda.shared.array(BINS, np.int32)
    masses = cuda.shared.array(BINS, np.int64)
    found = cuda.shared.array(5, np.int64)
    thread, row = cuda.threadIdx.x, cuda.blockIdx.x
    is_valid, _, warmth, most, share, _ = read_choice(parameters, row)
    best_rank, top_rank = find_bests(work, row, scratch)
    cutoff = np.int64(0)
    if is_valid and best_rank >= 0 and top_rank < BROKEN and (most > 0 or share < 1):
        best, place = value_at(best_rank >> ID_BITS), open_row(rows, row)
        where, _, most, goal = plan_cut(work, row, most, share, counts, masses, scratch, found)
        none, all_of_it = np.int64(0), np.int64(ALL)
        if most > 0:
            cutoff = select(
                rows, work, row, place, where == ROW, best, warmth, none, none, most, all_of_it,
                counts, masses, scratch, found,
            )  # fmt: skip
            goal = find_goal(share, found[2] + found[4])
            if share < 1:
                nucleus = select(
                    rows, work, row, place, where == ROW, best, warmth, none, none, all_of_it, goal,
                    counts, masses, scratch, found,
                )  # fmt: skip
                cutoff = max(cutoff, nucleus)
        elif where != NOTHING:
            count, mass = (found[1], found[2]) if where == BIN else (none, none)
            cutoff = select(
                rows, work, row, place, where == ROW, best, warmth, count, mass, all_of_it, goal,
                counts, masses, scratch, found,
            )  # fmt: skip
    if thread == 0:
        work.cutoffs[row] = cutoff
