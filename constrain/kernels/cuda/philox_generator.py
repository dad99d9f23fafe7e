"""Random numbers as a function: Philox4x32-10, a cipher of a counter, so that every draw can be had again.

    philox(c0, c1, c2, c3, k0, k1) -> four words of 32 bits

There is no state to keep, to copy or to race for: the word for (seed, step, token) is the same on every card, in every
batch and in the simulator. Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
2011, section 4.3: ten rounds of two multiplications, keys bumped by Weyl's constants; tested by its known answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cuda_device import device

__all__ = ["philox", "scale_to_total"]

LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
M0, M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
W0, W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
"""The golden ratio, and the square root of 3 less 1, times 2^32."""
ROUNDS = 10


@device
def philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Four words (uint64 below 2^32) of a counter of four words and a key of two."""
    for _ in range(ROUNDS):
        a, b = M0 * c0, M1 * c2
        c0, c1, c2, c3 = (b >> HALF) ^ c1 ^ k0, b & LOW, (a >> HALF) ^ c3 ^ k1, a & LOW
        k0, k1 = (k0 + W0) & LOW, (k1 + W1) & LOW
    return c0, c1, c2, c3


@device
def scale_to_total(high: Any, low: Any, total: Any) -> Any:
    """floor(u * total / 2^64), u = high * 2^32 + low of `philox`, 0 <= total < 2^63: int64 in [0, total).

    Each value is had from floor or ceil of 2^64 / total of the u: a probability is off by less than 2^-64.
    """
    total_bits = np.uint64(total)
    upper, lower = total_bits >> HALF, total_bits & LOW
    a, b, c = high * lower, low * upper, low * lower
    carry = ((c >> HALF) + (a & LOW) + (b & LOW)) >> HALF
    return np.int64(high * upper + (a >> HALF) + (b >> HALF) + carry)
