"""Reductions and scans of one block of threads: sums, maxima, prefix sums, by trees in shared memory.

`scratch` is int64 or float64 [threads] of shared memory, threads a power of 2. Every function ends with a barrier,
after which `scratch` is free again. The order of additions is fixed, so sums of floats are deterministic too.
"""

from __future__ import annotations

from typing import Any

from .cuda_device import cuda, device

__all__ = ["MOST_THREADS", "block_max", "block_prefix", "block_sum"]

MOST_THREADS = 1024


@device
def block_sum(value: Any, scratch: Any) -> Any:
    """Return the sum of the values of all threads."""
    thread, half = cuda.threadIdx.x, cuda.blockDim.x // 2
    scratch[thread] = value
    cuda.syncthreads()
    while half > 0:
        if thread < half:
            scratch[thread] += scratch[thread + half]
        cuda.syncthreads()
        half //= 2
    total = scratch[0]
    cuda.syncthreads()
    return total


@device
def block_max(value: Any, scratch: Any) -> Any:
    """Return the largest of the values of all threads."""
    thread, half = cuda.threadIdx.x, cuda.blockDim.x // 2
    scratch[thread] = value
    cuda.syncthreads()
    while half > 0:
        if thread < half:
            scratch[thread] = max(scratch[thread], scratch[thread + half])
        cuda.syncthreads()
        half //= 2
    most = scratch[0]
    cuda.syncthreads()
    return most


@device
def block_prefix(value: Any, scratch: Any) -> Any:
    """Return (sum of the values of the threads before this one, sum of all): the scan of Hillis and Steele (1986)."""
    thread, threads, step = cuda.threadIdx.x, cuda.blockDim.x, 1
    scratch[thread] = value
    cuda.syncthreads()
    while step < threads:
        before = scratch[thread - step] if thread >= step else value - value
        cuda.syncthreads()
        scratch[thread] += before
        cuda.syncthreads()
        step *= 2
    upto, total = scratch[thread], scratch[threads - 1]
    cuda.syncthreads()
    return upto - value, total
