"""Sample tokens from logits under packed masks: three kernels, or six where top-k, top-p or min-p may cut.

    mass       w(t) = round(2^44 exp((x(t) - best allowed x) / temperature)) for allowed t: an integer
    cut        the shortest of three prefixes of the order (larger x first, ties by id): top_k tokens; of those, as many
               as hold top_p of their mass; the tokens with at least min_p times the largest probability
    token      P(t) = w(t) / W, W the sum over the cut; by 64 bits of Philox under (seed, step)
    logprob    log P(token)
    logmass    log of the feasible mass: of allowed tokens in the tempered softmax over the row, before the cut

Each chunk of a row is a block (see `cuda_arguments`), so that a single row occupies half of a large GPU:

    find_bests_of_chunks    the best token of each chunk, of the allowed ones and of all
    add_masses              the mass of each chunk, and where there is a cut the histogram of the row
    gather, cut             where top-k and top-p cut (`cuda_cut`)
    keep_masses             the mass of each chunk after the cut
    draw                    one block for each row: the chunk in which the draw falls, then the token

Masses are integers, so every sum is exact in any order: the distribution is w / W to within 2^-64, and a draw is a
function of (row, mask, parameters, seed, step): the token at which the masses, added in the order of token ids, exceed
the random number. The reference in the tests always draws the same token. w differs from the real mass by half a unit
and the error of a float32 exp: |P - p| <= p (|z| + 6) 2^-23 + V 2^-44, z nats below the best. A token some 31 nats
below the best one is not drawn.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .cuda_arguments import (
    BROKEN,
    MOST_CHUNKS,
    STRIDE,
    THREADS,
    TURNS,
    compute_mass,
    find_bests,
    load_tokens,
    open_row,
    read_choice,
    sum_chunks,
)  # fmt: skip
from .cuda_block import block_max, block_prefix, block_sum
from .cuda_cut import STEPS_PER_NAT
from .cuda_device import cuda, device, kernel
from .cuda_order import ID_BITS, INFINITY, rank_of, token_of, value_at
from .cuda_rows import EXCLUDED, pick
from .cuda_select import BINS, bin_of
from .philox_generator import philox, scale_to_total

__all__ = ["add_masses", "draw", "find_bests_of_chunks", "keep_masses"]

LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


@kernel
def find_bests_of_chunks(rows: Any, parameters: Any, work: Any, results: Any) -> None:
    """Write the ranks of the best tokens of each chunk, and clear the histograms. Blocks: [B, chunks]."""
    scratch = cuda.shared.array(THREADS, np.int64)
    thread, row, chunk = cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockIdx.y
    values, place = cuda.local.array(TURNS, np.float32), open_row(rows, row)
    best, top, best_token, top_token, has_nan = EXCLUDED, EXCLUDED, np.int64(-1), np.int64(-1), 0
    for part in range(rows.parts):
        first = (np.int64(chunk) * rows.parts + part) * STRIDE + thread
        allowed = load_tokens(rows, place, first, THREADS, values)
        for turn in range(TURNS):
            value = values[turn]
            if not value < INFINITY:
                has_nan = 1
            if value > top:
                top, top_token = value, first + turn * THREADS
            if value > best and (allowed >> turn) & 1 != 0:
                best, best_token = value, first + turn * THREADS
    has_nan = cuda.syncthreads_or(has_nan)
    none = np.int64(-1)
    best_rank = block_max(rank_of(best, best_token) if best_token >= 0 else none, scratch)
    top_rank = block_max(rank_of(top, top_token) if top_token >= 0 else none, scratch)
    if thread == 0:
        work.bests[row, chunk] = best_rank
        work.tops[row, chunk] = BROKEN if has_nan != 0 else top_rank
    if chunk == 0 and work.counts.size > 0:
        for i in range(thread, BINS, THREADS):
            work.counts[row, i] = 0
            work.masses[row, i] = 0
        if thread == 0:
            work.found[row] = 0


@kernel
def add_masses(rows: Any, parameters: Any, work: Any, results: Any) -> None:
    """Write the masses of each chunk, and add to the histogram of the row if it is cut. Blocks: [B, chunks]."""
    scratch = cuda.shared.array(THREADS, np.int64)
    counts = cuda.shared.array(BINS, np.int32)
    masses = cuda.shared.array(BINS, np.int64)
    thread, row, chunk = cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockIdx.y
    is_valid, _, warmth, most, share, _ = read_choice(parameters, row)
    best_rank, top_rank = find_bests(work, row, scratch)
    if not is_valid or best_rank < 0 or top_rank >= BROKEN:
        return
    best, top = value_at(best_rank >> ID_BITS), value_at(top_rank >> ID_BITS)
    cuts = most > 0 or share < 1
    if cuts:
        for i in range(thread, BINS, THREADS):
            counts[i] = 0
            masses[i] = 0
        cuda.syncthreads()
    values, place = cuda.local.array(TURNS, np.float32), open_row(rows, row)
    full, feasible, mass_of_last, number_of_last = np.int64(0), np.int64(0), np.int64(0), 0
    for part in range(rows.parts):
        first = (np.int64(chunk) * rows.parts + part) * STRIDE + thread
        allowed = load_tokens(rows, place, first, THREADS, values)
        for turn in range(TURNS):
            value, mass = values[turn], np.int64(0)
            if value > EXCLUDED:
                mass = compute_mass(value, top, warmth)
                full += mass
            if (allowed >> turn) & 1 != 0:
                if best != top:
                    mass = compute_mass(value, best, warmth)
                feasible += mass
                if cuts:
                    which = bin_of(value, best, warmth * STEPS_PER_NAT)
                    if which == BINS - 1:  # most tokens: added once per thread, to avoid contention
                        number_of_last += 1
                        mass_of_last += mass
                    else:
                        cuda.atomic.add(counts, which, 1)
                        cuda.atomic.add(masses, which, mass)
    full, feasible = block_sum(full, scratch), block_sum(feasible, scratch)
    if thread == 0:
        work.full[row, chunk] = full
        work.feasible[row, chunk] = feasible
    if cuts:
        cuda.atomic.add(counts, BINS - 1, np.int32(number_of_last))
        cuda.atomic.add(masses, BINS - 1, mass_of_last)
        cuda.syncthreads()
        for i in range(thread, BINS, THREADS):
            if counts[i] > 0:
                cuda.atomic.add(work.counts, (row, i), counts[i])
                cuda.atomic.add(work.masses, (row, i), masses[i])


@device
def compute_kept_mass(value: Any, token: Any, best: Any, warmth: Any, cutoff: Any, coldest: Any) -> Any:
    """Return the integer mass of an allowed token, 0 if the cut removes it."""
    if rank_of(value, token) < cutoff or (value - best) * warmth < coldest:
        return np.int64(0)
    return compute_mass(value, best, warmth)


@device
def find_coldest(floor: Any) -> Any:
    """Return the least log-probability, relative to the best token's, that min_p keeps."""
    return np.float32(math.log(floor)) if floor > 0 else EXCLUDED


@kernel
def keep_masses(rows: Any, parameters: Any, work: Any, results: Any) -> None:
    """Write the masses of each chunk after the cut. Blocks: [B, chunks]."""
    scratch = cuda.shared.array(THREADS, np.int64)
    thread, row, chunk = cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockIdx.y
    is_valid, _, warmth, _, _, floor = read_choice(parameters, row)
    best_rank, top_rank = find_bests(work, row, scratch)
    if not is_valid or best_rank < 0 or top_rank >= BROKEN:
        return
    best, cutoff, coldest = value_at(best_rank >> ID_BITS), work.cutoffs[row], find_coldest(floor)
    values, place = cuda.local.array(TURNS, np.float32), open_row(rows, row)
    mass = np.int64(0)
    for part in range(rows.parts):
        first = (np.int64(chunk) * rows.parts + part) * STRIDE + thread
        allowed = load_tokens(rows, place, first, THREADS, values)
        for turn in range(TURNS):
            if (allowed >> turn) & 1 != 0:
                mass += compute_kept_mass(values[turn], first + turn * THREADS, best, warmth, cutoff, coldest)
    mass = block_sum(mass, scratch)
    if thread == 0:
        work.kept[row, chunk] = mass


@kernel
def draw(rows: Any, parameters: Any, work: Any, results: Any) -> None:
    """Draw the token of each row. Blocks: [B]."""
    scratch = cuda.shared.array(THREADS, np.int64)
    chunks = cuda.shared.array(MOST_CHUNKS, np.int64)
    found = cuda.shared.array(4, np.int64)
    thread, row = cuda.threadIdx.x, cuda.blockIdx.x
    is_valid, is_greedy, warmth, _, _, floor = read_choice(parameters, row)
    best_rank, top_rank = find_bests(work, row, scratch)
    is_valid = is_valid and top_rank < BROKEN
    if not is_valid or best_rank < 0:
        if thread == 0:
            results.tokens[row] = -1
            results.logprobs[row] = results.logmasses[row] = -math.inf if is_valid else math.nan
        return
    best, top = value_at(best_rank >> ID_BITS), value_at(top_rank >> ID_BITS)
    feasible, full = sum_chunks(work.feasible, row, scratch), sum_chunks(work.full, row, scratch)
    if thread == 0:
        shift = (np.float64(best) - np.float64(top)) * np.float64(warmth)
        results.logmasses[row] = min(0.0, shift + math.log(np.float64(feasible)) - math.log(np.float64(full)))
        if is_greedy:
            results.tokens[row] = token_of(best_rank)
            results.logprobs[row] = 0.0
    if is_greedy:
        return

    is_cut = work.cutoffs.size > 0
    for chunk in range(thread, work.feasible.shape[1], THREADS):
        chunks[chunk] = work.kept[row, chunk] if is_cut else work.feasible[row, chunk]
    cuda.syncthreads()
    if thread == 0:
        total = np.int64(0)
        for chunk in range(work.feasible.shape[1]):
            total += chunks[chunk]
        seed = np.uint64(pick(parameters.seeds, parameters.one_seed, row))
        counter = np.uint64(pick(parameters.steps, parameters.one_step, row))
        high, low, _, _ = philox(counter & LOW, counter >> HALF, np.uint64(0), np.uint64(0), seed & LOW, seed >> HALF)
        target, chosen = scale_to_total(high, low, total), 0
        while target >= chunks[chosen]:
            target -= chunks[chosen]
            chosen += 1
        found[0], found[1], found[2] = chosen, target, total
    cuda.syncthreads()
    cutoff, coldest = work.cutoffs[row] if is_cut else np.int64(0), find_coldest(floor)
    values, place = cuda.local.array(TURNS, np.float32), open_row(rows, row)
    masses = cuda.local.array(TURNS, np.int64)
    passed, target = np.int64(0), found[1]
    for part in range(rows.parts):
        # Here a thread has adjacent tokens, so that threads are in the order of their tokens.
        first = (found[0] * rows.parts + part) * STRIDE + np.int64(thread) * TURNS
        allowed = load_tokens(rows, place, first, 1, values)
        own = np.int64(0)
        for turn in range(TURNS):
            masses[turn] = 0
            if (allowed >> turn) & 1 != 0:
                masses[turn] = compute_kept_mass(values[turn], first + turn, best, warmth, cutoff, coldest)
            own += masses[turn]
        before, total = block_prefix(own, scratch)
        before += passed
        if before <= target < before + own:
            left, turn = target - before, 0
            while left >= masses[turn]:
                left -= masses[turn]
                turn += 1
            results.tokens[row] = first + turn
            results.logprobs[row] = math.log(np.float64(masses[turn])) - math.log(np.float64(found[2]))
        passed += total
        if passed > target:
            return
