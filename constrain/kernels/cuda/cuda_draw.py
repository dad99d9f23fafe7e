"""The last step of a draw: from the masses of the tiles of a row to a token.

A tile is drawn by its mass, and a token of it by its own, each by 64 bits of Philox under (seed, step). Masses are
added in the order of token ids, and the one at which the sum exceeds the random number is chosen.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .cuda_arguments import (
    THREADS,
    allows,
    compute_mass,
    find_row_best,
    find_scale,
    has_cut,
    load_logit,
    open_row,
    read_choice,
    scale_mass,
)  # fmt: skip
from .cuda_block import block_max, block_prefix, block_sum
from .cuda_device import cuda, device
from .cuda_order import INFINITY, rank_of
from .cuda_rows import EXCLUDED, pick
from .cuda_tiles import TILE
from .philox_generator import philox, scale_to_total

__all__ = ["compute_kept_mass", "draw_row", "find_coldest"]

EACH = TILE // THREADS
"""Tokens of a tile for each thread of a block."""
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


@device
def compute_kept_mass(value: Any, token: Any, best: Any, warmth: Any, scale: Any, cutoff: Any, coldest: Any) -> Any:
    """Return the integer mass of an allowed token, 0 if the cut removes it. scale: of `find_scale`."""
    if rank_of(value, token) < cutoff or (value - best) * np.float32(warmth) < coldest:
        return np.int64(0)
    return compute_mass(value, best, scale)


@device
def find_coldest(floor: Any) -> Any:
    """Return the least log-probability, relative to the best token's, that min_p keeps."""
    return np.float32(math.log(floor)) if floor > 0 else EXCLUDED


@device
def weigh_tiles(work: Any, row: Any, is_cut: Any, best: Any, top: Any, warmth: Any, weights: Any, scratch: Any) -> Any:
    """Return (mass of the allowed tokens of a row, of all tokens, of those that may be drawn). Called by a block.

    weights: int64 [MOST_TILES], shared memory, written: the masses of the tiles that may be drawn.
    """
    feasible, full, total = np.int64(0), np.int64(0), np.int64(0)
    for tile in range(cuda.threadIdx.x, work.bests.shape[1], cuda.blockDim.x):
        mass = scale_mass(work.feasible[row, tile], work.bests[row, tile], best, warmth)
        feasible += mass
        full += scale_mass(work.full[row, tile], work.tops[row, tile], top, warmth)
        weights[tile] = work.kept[row, tile] if is_cut else mass
        total += weights[tile]
    feasible, full = block_sum(feasible, scratch), block_sum(full, scratch)
    return feasible, full, block_sum(total, scratch)


@device
def find_tile(weights: Any, tiles: Any, target: Any, found: Any, scratch: Any) -> Any:
    """Return the tile at which the sum of masses exceeds a number. Called by a block."""
    thread, share = cuda.threadIdx.x, (tiles + cuda.blockDim.x - 1) // cuda.blockDim.x
    own = np.int64(0)
    for tile in range(thread * share, min((thread + 1) * share, tiles)):
        own += weights[tile]
    before, _ = block_prefix(own, scratch)
    left = target - before
    if 0 <= left < own:
        tile = np.int64(thread * share)
        while left >= weights[tile]:
            left -= weights[tile]
            tile += 1
        found[0] = tile
    cuda.syncthreads()
    return found[0]


@device
def find_best_token(rows: Any, work: Any, row: Any, best: Any, scratch: Any) -> Any:
    """Return the best allowed token of a row: the first of those with its value. Called by a block."""
    thread, tiles = cuda.threadIdx.x, work.bests.shape[1]
    last = np.int64(-tiles)
    for tile in range(thread, tiles, cuda.blockDim.x):
        if work.bests[row, tile] == best:
            last = max(last, np.int64(-tile))
    start, at, limit = open_row(rows, row)
    first, token = -block_max(last, scratch) * TILE, np.int64(-rows.width)
    for own in range(first + thread, min(first + TILE, np.int64(rows.width)), cuda.blockDim.x):
        if allows(rows, at, limit, own) and load_logit(rows, start, own) == best:
            token = max(token, np.int64(-own))
    return -block_max(token, scratch)


@device
def draw_row(
    rows: Any, parameters: Any, work: Any, results: Any, row: Any, weights: Any, found: Any, scratch: Any
) -> None:
    """Draw the token of a row, given the masses of its tiles. Called by a block, of THREADS.

    weights: as of `weigh_tiles`. found: int64 [1], shared memory.
    """
    thread = cuda.threadIdx.x
    is_valid, is_greedy, warmth, most, share, floor = read_choice(parameters, row)
    best, top = find_row_best(work.bests, row, scratch), find_row_best(work.tops, row, scratch)
    is_valid = is_valid and top < INFINITY
    if not is_valid or best == EXCLUDED:
        if thread == 0:
            results.tokens[row] = -1
            results.logprobs[row] = results.logmasses[row] = -math.inf if is_valid else math.nan
        return
    is_cut = has_cut(most, share, floor)
    feasible, full, total = weigh_tiles(work, row, is_cut, best, top, warmth, weights, scratch)
    if thread == 0:
        shift = (np.float64(best) - np.float64(top)) * warmth
        results.logmasses[row] = min(0.0, shift + math.log(np.float64(feasible) / np.float64(full)))
    if is_greedy:
        token = find_best_token(rows, work, row, best, scratch)
        if thread == 0:
            results.tokens[row] = token
            results.logprobs[row] = 0.0
        return

    seed = np.uint64(pick(parameters.seeds, parameters.one_seed, row))
    counter = np.uint64(pick(parameters.steps, parameters.one_step, row))
    a, b, c, d = philox(counter & LOW, counter >> HALF, np.uint64(0), np.uint64(0), seed & LOW, seed >> HALF)
    tile = find_tile(weights, work.bests.shape[1], scale_to_total(a, b, total), found, scratch)
    cutoff, coldest, reference, mass_of_tile = np.int64(0), EXCLUDED, work.bests[row, tile], work.feasible[row, tile]
    if is_cut:
        cutoff, coldest, reference, mass_of_tile = work.cutoffs[row], find_coldest(floor), best, weights[tile]
    start, at, limit = open_row(rows, row)
    masses, scale = cuda.local.array(EACH, np.int64), find_scale(warmth)
    first, own = tile * TILE + thread * EACH, np.int64(0)
    for i in range(EACH):
        masses[i] = 0
        if allows(rows, at, limit, first + i):
            value = load_logit(rows, start, first + i)
            masses[i] = compute_kept_mass(value, first + i, reference, warmth, scale, cutoff, coldest)
        own += masses[i]
    before, _ = block_prefix(own, scratch)
    left = scale_to_total(c, d, mass_of_tile) - before
    if 0 <= left < own:
        chosen, mass = np.int64(-1), np.int64(0)
        for i in range(EACH):
            if chosen < 0 and left < masses[i]:
                chosen, mass = first + i, masses[i]
            left -= masses[i]
        share_of_tile = np.float64(mass) / np.float64(mass_of_tile)
        results.tokens[row] = chosen
        results.logprobs[row] = math.log(share_of_tile * (np.float64(weights[tile]) / np.float64(total)))
