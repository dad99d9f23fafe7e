"""The arguments that all kernels of a draw share, in four named tuples, and what they derive from them.

    rows        logits and masks          parameters  temperature, top-k, ...: of each row, or of all
    work        memory between kernels    results     what is drawn

A row is divided into chunks, each of which is a block of THREADS threads; `row` and `chunk` are its place in the grid,
[B, chunks]. A chunk is `parts` times STRIDE tokens: one part where there are few rows, so that they occupy the
whole card, and more where there are many, since what a block does before and after its tokens costs as much as some
thousand of them. No result depends on it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .cuda_block import block_max, block_sum
from .cuda_device import SIMULATED, cuda, device
from .cuda_order import value_of
from .cuda_rows import EXCLUDED, compute_limit, find_mask, pick

__all__ = [
    "BROKEN", "STRIDE", "MOST_CANDIDATES", "MOST_CHUNKS", "THREADS", "TURNS", "Parameters", "Results", "Rows",
    "Workspace", "allows", "compute_mass", "divide_rows", "find_bests", "load_logit", "load_tokens", "open_row",
    "read_choice", "sum_chunks",
]  # fmt: skip

THREADS = 4 if SIMULATED else 256
"""Threads of a block, a power of 2. In the simulator they run on the host, so there are few."""
TURNS = 16 if SIMULATED else 8
"""Tokens that a thread loads at once, THREADS apart: adjacent threads load adjacent tokens."""
STRIDE = THREADS * TURNS
ENOUGH_BLOCKS, MOST_PARTS = (8, 4) if SIMULATED else (600, 16)
"""Blocks that occupy a large card, of 132 multiprocessors; most parts of a chunk."""
MOST_CHUNKS = 256
"""Most chunks of a row on a GPU: 2^19 tokens."""
MOST_CANDIDATES = 16 if SIMULATED else 2048
"""Most tokens of a row among which `cuda_cut` selects without looking at the whole row again."""
BROKEN = 1 << 62
"""Stands for the best token of a chunk in which a logit is NaN or infinite: above all ranks."""
UNIT = 2.0**44
"""Mass of the best token: the sum of 2^19 of them is below 2^63."""
COLDEST = np.float32(1e-30)
"""Temperatures below are taken as 0: greedy decoding."""
ONE = np.float32(1.0)
FIVE, WITHIN, BIT = np.uint64(5), np.uint64(31), np.uint64(1)


class Rows(NamedTuple):
    """Logits and masks.

    logits: int32 or int16, flat; stride, width: elements from row to row, tokens of a row (< 2^19); kind: float format.
    bits: int32 [masks * words]; sources: int32, see `find_mask`. parts: of a chunk.
    """

    logits: Any
    stride: Any
    width: Any
    kind: Any
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

    bests, tops: int64 [B, chunks], rank of the best allowed token and of the best of all, -1 if there is none;
    feasible, full, kept: int64 [B, chunks], mass of the allowed tokens, of all, and of those that the cut keeps;
    counts, masses: int32 and int64 [B, BINS], the histogram of a row; candidates: int64 [B, MOST_CANDIDATES], ranks;
    found: int32 [B], their number; cutoffs: int64 [B], the least rank that is kept. Without a cut those from `kept` on
    are [0, 0] and [0].
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


class Results(NamedTuple):
    """tokens: int32 [B], -1 if no token is feasible (logprob and logmass -inf), or if a logit or a parameter is NaN
    (logprob and logmass NaN). logprobs, logmasses: float64 [B], nats. Temperature 0: logprob 0, and the logmass of
    temperature 1.
    """  # fmt: skip

    tokens: Any
    logprobs: Any
    logmasses: Any


def divide_rows(count: int, width: int) -> tuple[int, int]:
    """Return (chunks of a row, parts of a chunk) for `count` rows of `width` tokens."""
    strides = -(-width // STRIDE)
    parts = max(1, min(MOST_PARTS, strides, count * strides // ENOUGH_BLOCKS))
    return -(-strides // parts), parts


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
def load_tokens(rows: Any, place: Any, first: Any, apart: Any, values: Any) -> Any:
    """Load TURNS tokens from `first` on, `apart` from each other. Return which the mask allows, as bits.

    values: float32 [TURNS], written; -inf beyond the row, where no token is allowed. All loads come before the first
    use of one, without a branch, so that they take about as long as one (memory-level parallelism): indices beyond the
    row and the mask are clamped. They are unsigned, since numba would ask whether others count from the end.
    """
    loaded = cuda.local.array(TURNS, np.int32)
    words = cuda.local.array(TURNS, np.int32)
    start, at, limit = place
    begin, last, end = np.uint64(start), np.uint64(rows.width - 1), np.uint64(max(limit - 1, 0))
    mask, step = np.uint64(max(at, 0)), np.uint64(apart)
    token = np.uint64(first)
    for turn in range(TURNS):
        loaded[turn] = rows.logits[begin + min(token, last)]
        words[turn] = -1
        token += step
    if at >= 0:
        token = np.uint64(first)
        for turn in range(TURNS):
            words[turn] = rows.bits[mask + (min(token, end) >> FIVE)]
            token += step
    allowed = 0
    token = np.uint64(first)
    for turn in range(TURNS):
        value = value_of(loaded[turn], rows.kind)
        values[turn] = value if token <= last else EXCLUDED
        if token < np.uint64(limit) and (np.uint64(words[turn]) >> (token & WITHIN)) & BIT != 0 and value > EXCLUDED:
            allowed |= 1 << turn
        token += step
    return allowed


@device
def compute_mass(value: Any, best: Any, warmth: Any) -> Any:
    """Return the integer mass of a value, relative to UNIT for the best one. warmth: 1 / temperature."""
    return np.int64(np.float64(np.float32(math.exp((value - best) * warmth))) * UNIT + 0.5)


@device
def read_choice(parameters: Any, row: Any) -> Any:
    """Return (is valid, is greedy, warmth, top_k, top_p, min_p) of a row. No cut: 0, 1 and 0, as where it is greedy."""
    heat = pick(parameters.temperature, parameters.one_temperature, row)
    share = pick(parameters.top_p, parameters.one_top_p, row)
    floor = pick(parameters.min_p, parameters.one_min_p, row)
    most = np.int64(pick(parameters.top_k, parameters.one_top_k, row))
    is_valid = heat >= 0 and share >= 0 and 0 <= floor <= 1
    if not is_valid or heat < COLDEST:
        return is_valid, True, ONE, np.int64(0), ONE, np.float32(0.0)
    return is_valid, False, ONE / heat, most, share, floor


@device
def find_bests(work: Any, row: Any, scratch: Any) -> Any:
    """Return (rank of the best allowed token, of the best of all) of a row; BROKEN if a logit is NaN or infinite."""
    best, top = np.int64(-1), np.int64(-1)
    for chunk in range(cuda.threadIdx.x, work.bests.shape[1], cuda.blockDim.x):
        best, top = max(best, work.bests[row, chunk]), max(top, work.tops[row, chunk])
    return block_max(best, scratch), block_max(top, scratch)


@device
def sum_chunks(masses: Any, row: Any, scratch: Any) -> Any:
    """Return the sum of the masses of the chunks of a row."""
    mass = np.int64(0)
    for chunk in range(cuda.threadIdx.x, masses.shape[1], cuda.blockDim.x):
        mass += masses[row, chunk]
    return block_sum(mass, scratch)
