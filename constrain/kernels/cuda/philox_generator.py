"""Counter-based random numbers: Philox4x32-10, so that every draw is reproducible.

    philox(c0, c1, c2, c3, k0, k1) -> four words of 32 bits

The generator has no state: the word for (seed, step, token) is the same on every GPU, in every batch and in the
simulator. Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 4.3:
ten rounds of two multiplications, with a Weyl sequence of keys; tested by its known answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cuda_device import device

__all__ = ["philox", "scale_to_total"]

LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
M0, M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
W0, W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
"""Increments of the keys: the golden ratio and the square root of 3, both less 1, times 2^32."""
ROUNDS = 10


@device
def philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Return four random words (uint64 below 2^32) for a counter of four words and a key of two."""
    for _ in range(ROUNDS):
        a, b = M0 * c0, M1 * c2
        c0, c1, c2, c3 = (b >> HALF) ^ c1 ^ k0, b & LOW, (a >> HALF) ^ c3 ^ k1, a & LOW
        k0, k1 = (k0 + W0) & LOW, (k1 + W1) & LOW
    return c0, c1, c2, c3


@device
def scale_to_total(high: Any, low: Any, total: Any) -> Any:
    """Return floor(u * total / 2^64), u = high * 2^32 + low of `philox`, 0 <= total < 2^63: int64 in [0, total).

    Each result comes from floor or ceil of 2^64 / total values of u: the error of a probability is below 2^-64.
    """
    total_bits = np.uint64(total)
    upper, lower = total_bits >> HALF, total_bits & LOW
    a, b, c = high * lower, low * upper, low * lower
    carry = ((c >> HALF) + (a & LOW) + (b & LOW)) >> HALF
    return np.int64(high * upper + (a >> HALF) + (b >> HALF) + carry)
