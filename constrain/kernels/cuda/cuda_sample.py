"""Sample tokens from logits under packed masks: two kernels, or five where top-k, top-p or min-p may cut.

    mass       w(t) = floor(2^44 exp((x(t) - best x) / temperature)) for allowed t: an integer, relative to the best
               allowed token of its tile of 1,024 tokens; the masses of a tile, scaled to the best token of the row,
               are one integer again
    cut        the shortest of three prefixes of the order (larger x first, ties by id): top_k tokens; of those, as many
               as hold top_p of their mass; the tokens with at least min_p times the largest probability. The masses of
               tokens in a row that may be cut are relative to the best token of the row
    token      P(t) = W(tile of t) / W * w(t) / w(tile of t), W the sum over the row, w that over the tile; after a cut
               w(t) / W, W the sum over the cut; by 128 bits of Philox under (seed, step)
    logprob    log P(token)
    logmass    log of the feasible mass: of allowed tokens in the tempered softmax over the row, before the cut

    measure_tiles   the best token and the mass of each tile, of the allowed tokens and of all
    draw            the tile in which the draw falls, then the token (`cuda_draw`); without a cut
    bound_rows, count_bins, gather, cut    where top-k and top-p cut, then as `draw` (`cuda_cut`)

A row is read once where nothing is cut, and once more for the token that is drawn: one tile. A warp has a tile, in
registers, and every tile its own best token as the reference of its masses, so no second pass has to wait for the best
token of the row.

Masses are integers, so every sum is exact in any order, and a draw is a function of (row, mask, parameters, seed,
step): the tile, and in it the token, at which the masses, added in the order of token ids, exceed the random number.
The reference in the tests always draws the same token. w differs from the real mass by less than a unit and the error
of a float32 exp: |P - p| <= p (|z| + 6) 2^-23 + V 2^-44, z nats below the best. A token some 31 nats below the best one
of its tile (of the row, after a cut) is not drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cuda_arguments import THREADS, compute_exponential, compute_mass, find_scale, open_row, read_choice
from .cuda_block import warp_max, warp_sum
from .cuda_device import LANES, cuda, kernel, larger
from .cuda_draw import draw_row
from .cuda_order import INFINITY
from .cuda_rows import EXCLUDED
from .cuda_select import BINS
from .cuda_tiles import MOST_TILES, OWN, load_tile

__all__ = ["draw", "measure_tiles"]


@kernel
def measure_tiles(rows: Any, parameters: Any, work: Any, results: Any) -> None:
    """Write the bests and masses of each tile, and clear the histograms. Blocks: [B, tiles / warps of a block]."""
    scratch = cuda.shared.array(LANES, np.int64)
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x & (LANES - 1)
    tile = (np.int64(cuda.blockIdx.y) * cuda.blockDim.x + cuda.threadIdx.x) // LANES
    tiles = work.bests.shape[1]
    if tile >= tiles:
        return
    _, _, warmth, _, _, _ = read_choice(parameters, row)
    values = cuda.local.array(OWN, np.float32)
    allowed = load_tile(rows, open_row(rows, row), tile, values, scratch)
    best, top = EXCLUDED, EXCLUDED
    for i in range(OWN):
        top = larger(top, values[i])
        best = larger(best, values[i] if (allowed >> i) & 1 != 0 else EXCLUDED)
    best, top = warp_max(best, scratch), warp_max(top, scratch)
    full, feasible, total = np.int64(0), np.int64(0), np.float32(0.0)
    if EXCLUDED < top < INFINITY:
        scale = find_scale(warmth)
        for i in range(OWN):
            real = compute_exponential(values[i], top, scale)
            mass = np.int64(real)
            total += real  # NaN if one is
            full += mass
            if (allowed >> i) & 1 != 0:
                feasible += mass
        if best != top:  # masses relative to another reference, of fewer tokens
            feasible = np.int64(0)
            if best > EXCLUDED and allowed != 0:
                for i in range(OWN):
                    if (allowed >> i) & 1 != 0:
                        feasible += compute_mass(values[i], best, scale)
    else:
        for i in range(OWN):
            if not values[i] < INFINITY:
                total = INFINITY
    full, feasible = warp_sum(full, scratch), warp_sum(feasible, scratch)
    if warp_sum(0 if total < INFINITY else 1, scratch) != 0:
        top = INFINITY
    if lane == 0:
        work.bests[row, tile] = best
        work.tops[row, tile] = top
        work.full[row, tile] = full
        work.feasible[row, tile] = feasible
    if work.counts.size > 0:
        for i in range(tile * LANES + lane, BINS, tiles * LANES):
            work.counts[row, i] = 0
            work.masses[row, i] = 0
        if tile == 0 and lane == 0:
            work.found[row] = 0


@kernel
def draw(rows: Any, parameters: Any, work: Any, results: Any) -> None:
    """Draw the token of each row, none of which is cut. Blocks: [B], of THREADS."""
    scratch = cuda.shared.array(THREADS, np.int64)
    weights = cuda.shared.array(MOST_TILES, np.int64)
    found = cuda.shared.array(1, np.int64)
    draw_row(rows, parameters, work, results, cuda.blockIdx.x, weights, found, scratch)
