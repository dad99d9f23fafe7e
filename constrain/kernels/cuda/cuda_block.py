"""Reductions and scans of the threads of one warp, by shuffles, and of one block, by those of its warps.

    warp_sum, warp_max, warp_prefix, from_lane     called by all threads of a warp
    block_sum, block_max, block_prefix             called by all threads of a block, a multiple of LANES, at most 1024

`scratch` is int64 or float64 [threads] of shared memory. A function of a block ends with a barrier, after which
`scratch` is free again. Those of a warp use it in the simulator only, where a block is one warp. The order of additions
is fixed, so sums of floats are deterministic too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cuda_device import LANES, SIMULATED, cuda, device
from .cuda_order import ID_BITS, rank_of, value_at

__all__ = ["MOST_THREADS", "block_max", "block_prefix", "block_sum", "from_lane", "warp_max", "warp_prefix", "warp_sum"]

MOST_THREADS = 1024
EVERY = 0xFFFFFFFF
"""All lanes of a warp."""

if SIMULATED:

    def block_sum(value: Any, scratch: Any) -> Any:
        """Return the sum of the values of all threads."""
        scratch[cuda.threadIdx.x] = value
        cuda.syncthreads()
        total = scratch[: cuda.blockDim.x].sum()
        cuda.syncthreads()
        return total

    def block_max(value: Any, scratch: Any) -> Any:
        """Return the largest of the values of all threads."""
        scratch[cuda.threadIdx.x] = value
        cuda.syncthreads()
        most = scratch[: cuda.blockDim.x].max()
        cuda.syncthreads()
        return most

    def block_prefix(value: Any, scratch: Any) -> Any:
        """Return (sum of the values of the threads before this one, sum of all)."""
        thread = cuda.threadIdx.x
        scratch[thread] = value
        cuda.syncthreads()
        before, total = scratch[:thread].sum(), scratch[: cuda.blockDim.x].sum()
        cuda.syncthreads()
        return before, total

    warp_sum, warp_prefix = block_sum, block_prefix

    def warp_max(value: Any, scratch: Any) -> Any:
        """Return the largest of the values of all lanes."""
        if isinstance(value, np.floating):  # scratch is of integers
            return value_at(block_max(rank_of(value, 0), scratch) >> ID_BITS)
        return block_max(value, scratch)

    def from_lane(value: Any, lane: Any, scratch: Any) -> Any:
        """Return the value, an int32, of a lane."""
        scratch[cuda.threadIdx.x] = value
        cuda.syncthreads()
        found = np.int32(scratch[lane])
        cuda.syncthreads()
        return found

else:

    @device
    def warp_sum(value: Any, scratch: Any) -> Any:
        """Return the sum of the values of all lanes."""
        for step in (16, 8, 4, 2, 1):
            value += cuda.shfl_xor_sync(EVERY, value, step)
        return value

    @device
    def warp_max(value: Any, scratch: Any) -> Any:
        """Return the largest of the values of all lanes."""
        for step in (16, 8, 4, 2, 1):
            value = max(value, cuda.shfl_xor_sync(EVERY, value, step))
        return value

    @device
    def warp_prefix(value: Any, scratch: Any) -> Any:
        """Return (sum of the values of the lanes before this one, sum of all)."""
        lane, upto = cuda.threadIdx.x & (LANES - 1), value
        for step in (1, 2, 4, 8, 16):
            before = cuda.shfl_up_sync(EVERY, upto, step)
            if lane >= step:
                upto += before
        return upto - value, cuda.shfl_sync(EVERY, upto, LANES - 1)

    @device
    def from_lane(value: Any, lane: Any, scratch: Any) -> Any:
        """Return the value, an int32, of a lane."""
        return cuda.shfl_sync(EVERY, value, lane)

    @device
    def block_sum(value: Any, scratch: Any) -> Any:
        """Return the sum of the values of all threads."""
        lane, warp = cuda.threadIdx.x & (LANES - 1), cuda.threadIdx.x // LANES
        value = warp_sum(value, scratch)
        if lane == 0:
            scratch[warp] = value
        cuda.syncthreads()
        value = scratch[lane] if lane < cuda.blockDim.x // LANES else value - value
        total = warp_sum(value, scratch)
        cuda.syncthreads()
        return total

    @device
    def block_max(value: Any, scratch: Any) -> Any:
        """Return the largest of the values of all threads."""
        lane, warp = cuda.threadIdx.x & (LANES - 1), cuda.threadIdx.x // LANES
        value = warp_max(value, scratch)
        if lane == 0:
            scratch[warp] = value
        cuda.syncthreads()
        value = scratch[lane] if lane < cuda.blockDim.x // LANES else value
        most = warp_max(value, scratch)
        cuda.syncthreads()
        return most

    @device
    def block_prefix(value: Any, scratch: Any) -> Any:
        """Return (sum of the values of the threads before this one, sum of all)."""
        lane, warp = cuda.threadIdx.x & (LANES - 1), cuda.threadIdx.x // LANES
        before, total = warp_prefix(value, scratch)
        if lane == 0:
            scratch[warp] = total
        cuda.syncthreads()
        value = scratch[lane] if lane < cuda.blockDim.x // LANES else value - value
        earlier, total = warp_prefix(value, scratch)
        before += cuda.shfl_sync(EVERY, earlier, warp)
        cuda.syncthreads()
        return before, total
