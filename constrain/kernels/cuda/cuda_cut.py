"""Where top-k and top-p cut a row: the rank of the last token that they keep, by radix selection.

    bound_rows    a value below which a row is cut in any case
    count_bins    a histogram of each row: BINS bins of tokens and mass, linear in the logit from the best one down
    gather        the tokens of the bin in which the cut falls (for top-k of all before it too), and the masses of tiles
    cut           a block for each row: the cut by selection among them, then the draw (`cuda_draw`)

Logits are spread evenly enough over linear bins (`bin_of`) that few atomic additions collide. Tokens that cannot be
kept are not counted, and tiles without others are not read: those below the k-th largest best token of a tile; and
where V tokens below a value together have less mass than top-p removes, those below it. If more than MOST_CANDIDATES
tokens are in the bin, the selection is made in the whole row. A pass of the selection makes a histogram of the ranks
that are left, of which one bin becomes the range of the next pass, until it holds one token.

Ranks are distinct and masses are integers, so the selection is exact and does not depend on the order of threads.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .cuda_arguments import (
    MOST_CANDIDATES,
    THREADS,
    UNIT,
    WARPS,
    allows,
    compute_mass,
    find_row_best,
    find_scale,
    has_cut,
    load_logit,
    open_row,
    read_choice,
    sum_tiles,
)  # fmt: skip
from .cuda_block import block_max, block_prefix, warp_sum
from .cuda_device import LANES, cuda, device, kernel
from .cuda_draw import compute_kept_mass, draw_row, find_coldest
from .cuda_order import ID_BITS, INFINITY, LAST_ID, rank_of, token_of, value_at
from .cuda_rows import EXCLUDED
from .cuda_select import BINS, bin_of
from .cuda_tiles import MOST_TILES, OWN, TILE, load_tile, token_at

__all__ = ["bound_rows", "count_bins", "cut", "gather"]

STEPS_PER_NAT = np.float32(8.0)
"""Linear bins per nat, after temperature: the last of 256 begins where masses are 0."""
LAST_BIN, FINEST = np.float32(BINS - 2), np.float32(1024.0)
"""Of tokens that are counted where it is known which cannot be kept; and by how much bins may be finer then."""
ALL = 1 << 62
NOTHING, PREFIX, BIN, ROW = 0, 1, 2, 3
"""Where a cut is selected: there is none; among the tokens up to a bin; among those of a bin; in the row."""
BESTS = MOST_TILES + 1
BEST, FLOOR, STEPS = 0, 1, 2
"""Columns of `Workspace.limits`."""
LOWEST = np.float32(np.finfo(np.float32).min)
ROOM, MOST_SHARE = 0.1, 0.9999
"""Nats by which the bound of `find_floor` is lower than it must be, and the largest top_p for which there is one: the
masses of tokens and of tiles are rounded, by far less than the tokens have that the bound removes.
"""


@device
def find_floor(
    work: Any, row: Any, width: Any, most: Any, share: Any, best: Any, total: Any, warmth: Any, bests: Any
) -> Any:
    """Return a value below which top-k and top-p keep no token; -inf if none is known. Called by a block.

    total: mass of the allowed tokens. bests: float32 [BESTS], shared memory, written.
    """
    thread, threads, tiles = cuda.threadIdx.x, cuda.blockDim.x, work.bests.shape[1]
    if most <= 0:
        if share > MOST_SHARE:
            return EXCLUDED
        spare = (1.0 - np.float64(share)) * np.float64(total)
        nats = math.log(np.float64(width)) + math.log(np.float64(UNIT)) - math.log(spare) + ROOM
        return np.float32(np.float64(best) - nats / warmth)
    for tile in range(thread, tiles, threads):
        bests[tile] = work.bests[row, tile]
    if thread == 0:
        bests[MOST_TILES] = EXCLUDED
    cuda.syncthreads()
    if most <= tiles:
        for tile in range(thread, tiles, threads):
            value, better = bests[tile], 0
            for other in range(tiles):
                if bests[other] > value or (bests[other] == value and other < tile):
                    better += 1
            if better == most - 1:
                bests[MOST_TILES] = value
    cuda.syncthreads()
    return bests[MOST_TILES]


@device
def find_steps(best: Any, floor: Any, warmth: Any) -> Any:
    """Return how many linear bins a difference of 1 between logits is: no value from `floor` on is in the last bin.

    At least STEPS_PER_NAT, so that values in the last bin have no mass.
    """
    steps, below = np.float32(warmth) * STEPS_PER_NAT, best - floor
    if below * steps < LAST_BIN and below > 0:
        return min(LAST_BIN / below, steps * FINEST)
    return steps


@kernel
def bound_rows(rows: Any, parameters: Any, work: Any, results: Any) -> None:
    """Write `limits` and `totals` of each row. Blocks: [B], of THREADS."""
    scratch = cuda.shared.array(THREADS, np.int64)
    bests = cuda.shared.array(BESTS, np.float32)
    thread, row = cuda.threadIdx.x, cuda.blockIdx.x
    is_valid, _, warmth, most, share, least = read_choice(parameters, row)
    best, top = find_row_best(work.bests, row, scratch), find_row_best(work.tops, row, scratch)
    if not (is_valid and top < INFINITY and has_cut(most, share, least)):
        best = EXCLUDED
    if thread == 0:
        work.limits[row, BEST] = best
    if best == EXCLUDED:
        return
    total, floor = sum_tiles(work, row, best, warmth, scratch), EXCLUDED
    if most > 0 or share < 1:
        floor = find_floor(work, row, rows.width, most, share, best, total, warmth, bests)
    if thread == 0:
        work.limits[row, FLOOR] = max(floor, LOWEST)
        work.limits[row, STEPS] = find_steps(best, floor, warmth)
        work.totals[row] = total


@kernel
def count_bins(rows: Any, parameters: Any, work: Any, results: Any) -> None:
    """Add the tokens of rows that are cut to their histograms. Blocks: [B, blocks of a row], of THREADS."""
    scratch = cuda.shared.array(LANES, np.int64)
    counts = cuda.shared.array(BINS, np.int32)
    masses = cuda.shared.array(BINS, np.int64)
    thread, row = cuda.threadIdx.x, cuda.blockIdx.x
    _, _, warmth, most, share, _ = read_choice(parameters, row)
    best, floor, steps = work.limits[row, BEST], work.limits[row, FLOOR], work.limits[row, STEPS]
    if best == EXCLUDED or (most <= 0 and not share < 1):
        return
    scale = find_scale(warmth)
    clear_bins(counts, masses)
    values, place = cuda.local.array(OWN, np.float32), open_row(rows, row)
    first = (np.int64(cuda.blockIdx.y) * WARPS + thread // LANES) * rows.parts
    for tile in range(first, min(first + rows.parts, np.int64(work.bests.shape[1]))):
        best_of_tile = work.bests[row, tile]
        if best_of_tile >= floor:
            near = load_tile(rows, place, tile, values, scratch)
            for i in range(OWN):
                if not values[i] >= floor:
                    near &= ~(np.int64(1) << i)
            while near != 0:  # few: lanes go through their own ones side by side
                i = np.int64(cuda.ffs(near)) - 1
                near &= near - 1
                value = load_logit(rows, place[0], token_at(tile, i))
                which = bin_of(value, best, steps)
                cuda.atomic.add(counts, which, 1)
                cuda.atomic.add(masses, which, compute_mass(value, best, scale))
    cuda.syncthreads()
    for i in range(thread, BINS, THREADS):
        if counts[i] > 0:
            cuda.atomic.add(work.counts, (row, i), counts[i])
            cuda.atomic.add(work.masses, (row, i), masses[i])


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
            return where, np.int64(which), most, none
    if not share < 1:
        return NOTHING, none, none, none
    goal = find_goal(share, work.totals[row])
    which = find_goal_bin(counts, masses, none, none, np.int64(ALL), goal, scratch, found)
    if which == BINS:  # all of them have less, since each mass was rounded down
        return NOTHING, none, none, none
    return (BIN if found[3] <= MOST_CANDIDATES else ROW), np.int64(which), none, goal


@device
def find_goal(share: Any, total: Any) -> Any:
    """Return the least mass that is a share of a total, at least 1."""
    return max(np.int64(1), min(np.int64(math.ceil(np.float64(share) * np.float64(total))), total))


@kernel
def gather(rows: Any, parameters: Any, work: Any, results: Any) -> None:
    """Collect the candidates of rows that are cut, and add the masses of what is kept without a doubt, for each tile.

    Blocks: [B, blocks of a row], of THREADS.
    """
    scratch = cuda.shared.array(THREADS, np.int64)
    counts = cuda.shared.array(BINS, np.int32)
    masses = cuda.shared.array(BINS, np.int64)
    found = cuda.shared.array(5, np.int64)
    thread, row = cuda.threadIdx.x, cuda.blockIdx.x
    _, _, warmth, most, share, floor = read_choice(parameters, row)
    best, steps = work.limits[row, BEST], work.limits[row, STEPS]
    if best == EXCLUDED:
        return
    where, which, _, _ = plan_cut(work, row, most, share, counts, masses, scratch, found)
    if where == ROW:
        return
    coldest, cold, scale = find_coldest(floor), np.float32(warmth), find_scale(warmth)
    values, place = cuda.local.array(OWN, np.float32), open_row(rows, row)
    first = (np.int64(cuda.blockIdx.y) * WARPS + thread // LANES) * rows.parts
    for tile in range(first, min(first + rows.parts, np.int64(work.bests.shape[1]))):
        best_of_tile, mass = work.bests[row, tile], np.int64(0)
        is_near = (
            (best_of_tile - best) * cold >= coldest if where == NOTHING else bin_of(best_of_tile, best, steps) <= which
        )
        if best_of_tile > EXCLUDED and is_near:
            near = load_tile(rows, place, tile, values, scratch)
            for i in range(OWN):
                value = values[i]
                if where == NOTHING:
                    is_near = (value - best) * cold >= coldest
                else:
                    is_near = bin_of(value, best, steps) <= which
                if not (is_near and value > EXCLUDED):
                    near &= ~(np.int64(1) << i)
            while near != 0:
                i = np.int64(cuda.ffs(near)) - 1
                near &= near - 1
                token = token_at(tile, i)
                value = load_logit(rows, place[0], token)
                if where == PREFIX or (where == BIN and bin_of(value, best, steps) == which):
                    work.candidates[row, cuda.atomic.add(work.found, row, 1)] = rank_of(value, token)
                elif not (value - best) * cold < coldest:
                    mass += compute_mass(value, best, scale)
            mass = warp_sum(mass, scratch)
        if thread & (LANES - 1) == 0:
            work.kept[row, tile] = mass


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
    rows: Any, work: Any, row: Any, place: Any, in_row: Any, best: Any, scale: Any, count: Any, mass: Any,
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
                cuda.atomic.add(masses, which, compute_mass(value_at(rank >> ID_BITS), best, scale))
        cuda.syncthreads()
        which = find_goal_bin(counts, masses, count, mass, goal_count, goal_mass, scratch, found)
        high -= which << shift
        low = max(low, high - (np.int64(1) << shift) + 1)
        count, mass = found[1], found[2]
        if found[3] <= 1:
            return low


@device
def find_cutoff(
    rows: Any, work: Any, row: Any, where: Any, best: Any, scale: Any, most: Any, goal: Any, share: Any,
    counts: Any, masses: Any, scratch: Any, found: Any,
) -> Any:  # fmt: skip
    """Return the least rank that top-k and top-p keep, 0: all. where, most, goal, found: of `plan_cut`."""
    count = mass = cutoff = np.int64(0)
    if where == NOTHING:
        return cutoff
    if where == BIN:
        count, mass = found[1], found[2]
    goal_count, goal_mass = (most, np.int64(ALL)) if most > 0 else (np.int64(ALL), goal)
    place = open_row(rows, row)
    while True:  # once, or for top-k and for top-p: one call, so that its code is there once
        least = select(
            rows, work, row, place, where == ROW, best, scale, count, mass, goal_count, goal_mass,
            counts, masses, scratch, found,
        )  # fmt: skip
        cutoff = max(cutoff, least)
        if goal_count == ALL or not share < 1:
            return cutoff
        goal_count, goal_mass = np.int64(ALL), find_goal(share, found[2] + found[4])


@device
def keep_candidates(work: Any, row: Any, cutoff: Any, best: Any, warmth: Any, coldest: Any) -> None:
    """Add the masses of the candidates that are kept to those of their tiles."""
    scale = find_scale(warmth)
    for i in range(cuda.threadIdx.x, work.found[row], cuda.blockDim.x):
        rank = work.candidates[row, i]
        token = token_of(rank)
        mass = compute_kept_mass(value_at(rank >> ID_BITS), token, best, warmth, scale, cutoff, coldest)
        if mass > 0:
            cuda.atomic.add(work.kept, (row, token // TILE), mass)


@device
def keep_row(rows: Any, work: Any, row: Any, cutoff: Any, best: Any, warmth: Any, coldest: Any, scratch: Any) -> None:
    """Write the masses of all tiles after the cut."""
    values, place = cuda.local.array(OWN, np.float32), open_row(rows, row)
    thread, scale = cuda.threadIdx.x, find_scale(warmth)
    for tile in range(thread // LANES, work.bests.shape[1], WARPS):
        mass = np.int64(0)
        if rank_of(work.bests[row, tile], 0) | LAST_ID >= cutoff:
            allowed = load_tile(rows, place, tile, values, scratch)
            for i in range(OWN):
                if (allowed >> i) & 1 != 0:
                    mass += compute_kept_mass(values[i], token_at(tile, i), best, warmth, scale, cutoff, coldest)
            mass = warp_sum(mass, scratch)
        if thread & (LANES - 1) == 0:
            work.kept[row, tile] = mass


@kernel
def cut(rows: Any, parameters: Any, work: Any, results: Any) -> None:
    """Cut each row and draw its token. Blocks: [B], of THREADS."""
    weights = cuda.shared.array(MOST_TILES, np.int64)
    scratch = cuda.shared.array(THREADS, np.int64)
    counts = cuda.shared.array(BINS, np.int32)
    masses = cuda.shared.array(BINS, np.int64)
    found = cuda.shared.array(5, np.int64)
    thread, row = cuda.threadIdx.x, cuda.blockIdx.x
    _, _, warmth, most, share, floor = read_choice(parameters, row)
    best = work.limits[row, BEST]
    if best > EXCLUDED:
        where, _, most, goal = plan_cut(work, row, most, share, counts, masses, scratch, found)
        cutoff = find_cutoff(
            rows, work, row, where, best, find_scale(warmth), most, goal, share, counts, masses, scratch, found
        )  # fmt: skip
        if where == ROW:
            keep_row(rows, work, row, cutoff, best, warmth, find_coldest(floor), scratch)
        else:
            keep_candidates(work, row, cutoff, best, warmth, find_coldest(floor))
        if thread == 0:
            work.cutoffs[row] = cutoff
        cuda.syncthreads()
    draw_row(rows, parameters, work, results, row, weights, found, scratch)
