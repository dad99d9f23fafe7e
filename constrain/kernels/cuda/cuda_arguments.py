"""The arguments that all kernels of a draw share, in four named tuples, and what they derive from them.

    rows        logits and masks          parameters  temperature, top-k, ...: of each row, or of all
    work        memory between kernels    results     what is drawn

A row is divided into tiles of as many tokens as a warp loads at once (`cuda_tiles`). Kernels that go through all tiles
have blocks of WARPS warps, each of which has `parts` tiles, one after the other: one where there are few rows, so that
they occupy the whole card, and more where there are many, since what a block does before and after its tokens costs as
much as some thousand of them. No result depends on it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .cuda_block import block_max, block_sum
from .cuda_device import LANES, SIMULATED, cuda, device, exp2, larger
from .cuda_order import ID_BITS, rank_of, value_at, value_of
from .cuda_rows import EXCLUDED, compute_limit, find_mask, pick

__all__ = [
    "MOST_CANDIDATES", "THREADS", "WARPS", "Parameters", "Results", "Rows", "Workspace", "allows",
    "compute_exponential", "compute_mass", "divide_rows", "find_row_best", "find_scale", "has_cut", "load_logit",
    "open_row", "read_choice", "scale_mass", "sum_tiles",
]  # fmt: skip

WARPS = 1 if SIMULATED else 8
"""Warps of a block. In the simulator threads run on the host, so there are few."""
THREADS = WARPS * LANES
ENOUGH_BLOCKS, MOST_PARTS = (8, 2) if SIMULATED else (600, 8)
"""Blocks that occupy a large card, of 132 multiprocessors; most tiles of a warp."""
MOST_CANDIDATES = 16 if SIMULATED else 2048
"""Most tokens of a row among which `cuda_cut` selects without looking at the whole row again."""
UNIT = np.float32(2.0**44)
"""Mass of the best token: the sum of 2^19 of them is below 2^63."""
COLDEST = np.float32(1e-30)
"""Temperatures below are taken as 0: greedy decoding."""
ONE = np.float32(1.0)
LOG2_E = 1.4426950408889634
BELOW = np.float32(1 - 2.0**-24)
"""A positive float32 times this is the one below it."""
LEAST = np.float32(1e-37)


class Rows(NamedTuple):
    """Logits and masks.

    logits: int32 or int16, flat; stride, width: elements from row to row, tokens of a row (< 2^19); kind: float format;
    aligned: 1 if four logits from every fourth one of a row on may be loaded by one access, else 0.
    bits: int32 [masks * words]; sources: int32, see `find_mask`. parts: tiles of a warp.
    """

    logits: Any
    stride: Any
    width: Any
    kind: Any
    aligned: Any
    bits: Any
    words: Any
    masks: Any
    sources: Any
    parts: Any


class Parameters(NamedTuple):
    """Parameters of the rows: temperature, top_p, min_p: float32 [B]; top_k: int32 [B]; seeds, steps: int64 [B].

    0 for top_k and min_p, 1 for top_p: no cut. Each may be [0]: then one_* is the value of all rows.
    """

    temperature: Any
    top_k: Any
    top_p: Any
    min_p: Any
    seeds: Any
    steps: Any
    one_temperature: Any
    one_top_k: Any
    one_top_p: Any
    one_min_p: Any
    one_seed: Any
    one_step: Any


class Workspace(NamedTuple):
    """What a kernel leaves for the next.

    bests, tops: float32 [B, tiles], value of the best allowed token and of the best of all, -inf if there is none; tops
    is infinite where a logit is NaN or infinite;
    feasible, full: int64 [B, tiles], masses of the allowed tokens relative to bests, and of all relative to tops;
    kept: int64 [B, tiles], of the tokens that the cut keeps, relative to the best of the row;
    counts, masses: int32 and int64 [B, BINS], the histogram of a row; candidates: int64 [B, MOST_CANDIDATES], ranks;
    found: int32 [B], their number; cutoffs: int64 [B], the least rank that is kept;
    totals: int64 [B], mass of the allowed tokens relative to the best of the row;
    limits: float32 [B, 3], the best value, -inf where nothing is cut, a value below which no token is kept, and linear
    bins for a difference of 1 between logits. Without a cut those from `kept` on have no rows.
    """

    bests: Any
    tops: Any
    feasible: Any
    full: Any
    kept: Any
    counts: Any
    masses: Any
    candidates: Any
    found: Any
    cutoffs: Any
    totals: Any
    limits: Any


class Results(NamedTuple):
    """tokens: int32 [B], -1 if no token is feasible (logprob and logmass -inf), or if a logit or a parameter is NaN
    (logprob and logmass NaN). logprobs, logmasses: float64 [B], nats. Temperature 0: logprob 0, and the logmass of
    temperature 1.
    """  # fmt: skip

    tokens: Any
    logprobs: Any
    logmasses: Any


def divide_rows(count: int, tiles: int) -> tuple[int, int]:
    """Return (blocks of a row, tiles of a warp) for `count` rows of `tiles` tiles."""
    blocks = -(-tiles // WARPS)
    parts = max(1, min(MOST_PARTS, blocks, count * blocks // ENOUGH_BLOCKS))
    return -(-blocks // parts), parts


@device
def open_row(rows: Any, row: Any) -> Any:
    """Return (start, at, limit): where the logits and the mask of a row begin; tokens from `limit` on are not allowed.

    at < 0: there is no mask.
    """
    at = find_mask(rows.sources, rows.masks, row) * rows.words
    return np.int64(row) * rows.stride, at, compute_limit(rows.width, at, rows.words)


@device
def load_logit(rows: Any, start: Any, token: Any) -> Any:
    """Return the logit of a token of the row as float32."""
    return value_of(rows.logits[start + token], rows.kind)


@device
def allows(rows: Any, at: Any, limit: Any, token: Any) -> Any:
    """Return whether the mask allows a token."""
    if token >= limit:
        return False
    return at < 0 or (rows.bits[at + (token >> 5)] >> (token & 31)) & 1 != 0


@device
def find_scale(warmth: Any) -> Any:
    """Return log2(e) / temperature as the sum of two float32 (larger one, rest), neither of which is negative.

    So products of both with the difference of two logits have the same sign, and no sum is infinity less infinity.
    """
    exact = np.float64(warmth) * LOG2_E
    near = np.float32(exact)
    if np.float64(near) > exact:
        near *= BELOW
    return near, larger(np.float32(exact - np.float64(near)), LEAST)


@device
def compute_exponential(value: Any, best: Any, scale: Any) -> Any:
    """Return UNIT exp((value - best) / temperature) as float32. scale: of `find_scale`."""
    below = value - best
    return exp2(below * scale[0] + below * scale[1]) * UNIT


@device
def compute_mass(value: Any, best: Any, scale: Any) -> Any:
    """Return the integer mass of a value, rounded down, relative to UNIT for the best one. scale: of `find_scale`."""
    return np.int64(compute_exponential(value, best, scale))


@device
def scale_mass(mass: Any, value: Any, best: Any, warmth: Any) -> Any:
    """Return a sum of masses relative to a value as one relative to the best one, rounded down."""
    if mass == 0:
        return np.int64(0)
    return np.int64(np.float64(mass) * math.exp((np.float64(value) - np.float64(best)) * warmth))


@device
def read_choice(parameters: Any, row: Any) -> Any:
    """Return (is valid, is greedy, warmth, top_k, top_p, min_p) of a row. No cut: 0, 1 and 0, as where it is greedy.

    warmth: 1 / temperature as float64, 1 where it is greedy.
    """
    heat = pick(parameters.temperature, parameters.one_temperature, row)
    share = pick(parameters.top_p, parameters.one_top_p, row)
    floor = pick(parameters.min_p, parameters.one_min_p, row)
    most = np.int64(pick(parameters.top_k, parameters.one_top_k, row))
    is_valid = heat >= 0 and share >= 0 and 0 <= floor <= 1
    if not is_valid or heat < COLDEST:
        return is_valid, True, 1.0, np.int64(0), ONE, np.float32(0.0)
    return is_valid, False, 1.0 / np.float64(heat), most, share, floor


@device
def has_cut(most: Any, share: Any, floor: Any) -> Any:
    """Return whether tokens of a row may be removed: by top_k, top_p or min_p."""
    return most > 0 or share < 1 or floor > 0


@device
def find_row_best(values: Any, row: Any, scratch: Any) -> Any:
    """Return the largest of the values [B, tiles] of a row. Called by a block."""
    best = EXCLUDED
    for tile in range(cuda.threadIdx.x, values.shape[1], cuda.blockDim.x):
        best = max(best, values[row, tile])
    return value_at(block_max(rank_of(best, 0), scratch) >> ID_BITS)


@device
def sum_tiles(work: Any, row: Any, best: Any, warmth: Any, scratch: Any) -> Any:
    """Return the mass of the allowed tokens of a row. Called by a block."""
    mass = np.int64(0)
    for tile in range(cuda.threadIdx.x, work.bests.shape[1], cuda.blockDim.x):
        mass += scale_mass(work.feasible[row, tile], work.bests[row, tile], best, warmth)
    return block_sum(mass, scratch)
