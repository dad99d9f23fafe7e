"""Sample a token from logits under a packed mask, in one kernel with a block of threads per row.

    mass       w(t) = round(2^44 exp((x(t) - best allowed x) / temperature)) for allowed t: an integer
    cut        the shortest of three prefixes of the order (larger x first, ties by id): top_k tokens; of those, as many
               as hold top_p of their mass; the tokens with at least min_p times the largest probability
    token      P(t) = w(t) / W, W the sum over the cut; by 64 bits of Philox under (seed, step)
    logprob    log P(token)
    logmass    log of the feasible mass: of allowed tokens in the tempered softmax over the row, before the cut

Masses are integers, so every sum is exact in any order: the distribution is w / W to within 2^-64, and a draw is a
function of (row, mask, parameters, seed, step) and of the number of threads of a block, which is 512 on all GPUs: the
cumulative sums are in the order of threads. The reference in the tests always draws the same token. w differs from the
real mass by half a unit and the error of a float32 exp: |P - p| <= p (|z| + 6) 2^-23 + V 2^-44, z nats below the best.
A token some 31 nats below the best one is not drawn.

Three passes: the maximum; masses and their sums; the tokens of the thread that owns the draw. A cut takes two more, and
about two for each of top_k and top_p (see `select_rank`). After the first pass the row is in the L2 cache; after the
second, excluded tokens are skipped.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .cuda_block import MOST_THREADS, block_max, block_prefix, block_sum
from .cuda_device import cuda, device, kernel
from .cuda_order import ID_BITS, INFINITY, rank_of, token_of, value_at
from .cuda_rows import EXCLUDED, LOADS, compute_limit, find_mask, load_value, load_values, pick
from .cuda_select import BINS, build_selector
from .philox_generator import philox, scale_to_total

__all__ = ["UNIT", "sample"]

UNIT = 2.0**44
"""Mass of the best token: the sum of 2^19 of them is below 2^63."""
COLDEST = np.float32(1e-30)
"""Temperatures below are taken as 0: greedy decoding."""
STEPS_PER_NAT = np.float32(8.0)
"""Linear bins per nat in the first pass of a cut: the last of 256 begins where masses are 0."""
ONE, ALL = np.float32(1.0), (1 << 62)
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


@device
def compute_mass(value: Any, best: Any, warmth: Any) -> Any:
    """Return the integer mass of a value, relative to UNIT for the best one. warmth: 1 / temperature."""
    return np.int64(np.float64(np.float32(math.exp((value - best) * warmth))) * UNIT + 0.5)


@device
def mass_of(row: Any, value: Any) -> Any:
    """Return the integer mass of a value in a row."""
    return compute_mass(value, row[7], row[8])


count_bins, select_rank = build_selector(load_values, mass_of)


@device
def compute_kept_mass(row: Any, value: Any, token: Any, cutoff: Any, coldest: Any) -> Any:
    """Return the integer mass of a token, 0 if the cut removes it."""
    if not value > EXCLUDED or rank_of(value, token) < cutoff or (value - row[7]) * row[8] < coldest:
        return np.int64(0)
    return compute_mass(value, row[7], row[8])


@kernel
def sample(
    logits: Any, stride: Any, width: Any, kind: Any, bits: Any, words: Any, masks: Any, rows: Any,
    temperature: Any, top_k: Any, top_p: Any, min_p: Any, seeds: Any, steps: Any,
    one_temperature: Any, one_top_k: Any, one_top_p: Any, one_min_p: Any, one_seed: Any, one_step: Any,
    tokens: Any, logprobs: Any, logmasses: Any,
) -> None:  # fmt: skip
    """Sample a token of each row. Blocks: B, of a power of 2 of threads, at least width / 1024 and at most 1024.

    logits: int32 or int16, flat; kind: float format; stride, width: elements from row to row, tokens of a row (< 2^19).
    bits: int32 [masks * words]; rows: as of `find_mask`. temperature, top_p, min_p: float32 [B]; top_k: int32 [B]; 0
    for top_k and min_p, 1 for top_p: no cut. seeds, steps: int64 [B]. Each of these six may be [0]: then one_* is the
    value of all rows.
    tokens: int32 [B], written; -1 if no token is feasible (logprob and logmass -inf), or if a logit or a parameter is
    NaN (logprob and logmass NaN). logprobs, logmasses: float64 [B], nats, written. Temperature 0: logprob 0, and the
    logmass of temperature 1.
    """
    scratch = cuda.shared.array(MOST_THREADS, np.int64)
    linear = cuda.shared.array(BINS, np.int32)
    linear_mass = cuda.shared.array(BINS, np.int64)
    counts = cuda.shared.array(BINS, np.int32)
    weights = cuda.shared.array(BINS, np.int64)
    found = cuda.shared.array(8, np.int64)
    thread, threads, batch = cuda.threadIdx.x, cuda.blockDim.x, cuda.blockIdx.x
    start, at = np.int64(batch) * stride, find_mask(rows, masks, batch) * words
    heat, most = pick(temperature, one_temperature, batch), np.int64(pick(top_k, one_top_k, batch))
    share, floor = pick(top_p, one_top_p, batch), pick(min_p, one_min_p, batch)

    best_rank, best_allowed, has_nan = np.int64(-1), np.int64(-1), 0
    unmasked = logits, start, width, kind, bits, np.int64(-1), np.int64(width), EXCLUDED, ONE
    allowed = logits, start, width, kind, bits, at, compute_limit(width, at, words), EXCLUDED, ONE
    for first in range(thread, width, LOADS * threads):
        values, under = load_values(unmasked, first, threads), load_values(allowed, first, threads)
        for lane in range(LOADS):
            value, rank = values[lane], rank_of(values[lane], first + lane * threads)
            if not value < INFINITY:
                has_nan = 1
            best_rank = max(best_rank, rank)
            if under[lane] > EXCLUDED:
                best_allowed = max(best_allowed, rank)
    has_nan = cuda.syncthreads_or(has_nan)
    best_rank, best_allowed = block_max(best_rank, scratch), block_max(best_allowed, scratch)
    is_valid = has_nan == 0 and heat >= 0 and share >= 0 and 0 <= floor <= 1
    if not is_valid or best_allowed < 0:
        if thread == 0:
            tokens[batch] = -1
            logprobs[batch] = logmasses[batch] = -math.inf if is_valid else math.nan
        return

    top, best = value_at(best_rank >> ID_BITS), value_at(best_allowed >> ID_BITS)
    warmth = ONE / heat if heat >= COLDEST else ONE
    row = logits, start, width, kind, bits, at, compute_limit(width, at, words), best, warmth
    cuts = heat >= COLDEST and (most > 0 or share < ONE)
    full_mass = own_mass = np.int64(0)
    for first in range(thread, width, LOADS * threads):
        values, under = load_values(unmasked, first, threads), load_values(row, first, threads)
        for lane in range(LOADS):
            full_mass += compute_mass(values[lane], top, warmth)
            own_mass += compute_mass(under[lane], best, warmth)
    full_mass, feasible = block_sum(full_mass, scratch), block_sum(own_mass, scratch)
    cutoff, total = np.int64(0), feasible
    if cuts:
        step = warmth * STEPS_PER_NAT
        count_bins(row, width, np.int64(ALL), best, step, linear, linear_mass)
        if most > 0:
            cutoff = select_rank(
                row, width, np.int64(ALL), best, step, linear, linear_mass, most, np.int64(ALL), counts, weights, found
            )
            if cutoff > 0:
                total = found[1] + found[4]
        if share < ONE:
            goal = max(np.int64(1), min(np.int64(math.ceil(np.float64(share) * np.float64(total))), total))
            nucleus = select_rank(
                row, width, np.int64(ALL), best, step, linear, linear_mass, np.int64(ALL), goal, counts, weights, found
            )
            cutoff = max(cutoff, nucleus)
    coldest = np.float32(math.log(floor)) if floor > 0 else EXCLUDED
    if cuts or floor > 0:
        own_mass = np.int64(0)
        for first in range(thread, width, LOADS * threads):
            values = load_values(row, first, threads)
            for lane in range(LOADS):
                own_mass += compute_kept_mass(row, values[lane], first + lane * threads, cutoff, coldest)

    before, total = block_prefix(own_mass, scratch)
    if thread == 0:
        seed, counter = np.uint64(pick(seeds, one_seed, batch)), np.uint64(pick(steps, one_step, batch))
        high, low, _, _ = philox(counter & LOW, counter >> HALF, np.uint64(0), np.uint64(0), seed & LOW, seed >> HALF)
        found[0] = scale_to_total(high, low, total)
    cuda.syncthreads()
    target = found[0]
    if before <= target < before + own_mass:
        found[1], found[2] = thread, target - before
    cuda.syncthreads()
    owner, target = found[1], found[2]
    parts = (width - owner + threads - 1) // threads
    for i in range(thread, parts, threads):
        token = owner + i * threads
        scratch[i] = compute_kept_mass(row, load_value(row, token), token, cutoff, coldest)
    cuda.syncthreads()
    if thread == 0:
        chosen, upto = np.int64(0), scratch[0]
        while upto <= target:
            chosen += 1
            upto += scratch[chosen]
        tokens[batch] = owner + chosen * threads
        logprobs[batch] = math.log(np.float64(scratch[chosen])) - math.log(np.float64(total))
        if heat < COLDEST:
            tokens[batch], logprobs[batch] = token_of(best_allowed), 0.0
        shift = (np.float64(best) - np.float64(top)) * np.float64(warmth)
        logmasses[batch] = min(0.0, shift + math.log(np.float64(feasible)) - math.log(np.float64(full_mass)))
