"""Slow obvious versions of what `constrain/kernels/cuda` computes: Python's own integers, token after token."""

from __future__ import annotations

import math

import numpy as np

UNIT = 2**44
M, W = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
WORD = 2**32


def philox(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """Philox4x32-10 of Salmon et al. 2011."""
    (a, b, c, d), (k, q) = counter, key
    for _ in range(10):
        (high0, low0), (high1, low1) = divmod(M[0] * a, WORD), divmod(M[1] * c, WORD)
        a, b, c, d = high1 ^ b ^ k, low1, high0 ^ d ^ q, low0
        k, q = (k + W[0]) % WORD, (q + W[1]) % WORD
    return a, b, c, d


def uniform(seed: int, step: int) -> int:
    """64 bits for a step."""
    high, low, _, _ = philox((step % WORD, step // WORD, 0, 0), (seed % WORD, seed // WORD))
    return high * WORD + low


def bits_allowed(bits: np.ndarray, width: int) -> np.ndarray:
    """bool [width] of int32 [words]; what is beyond them is not allowed."""
    flags = np.unpackbits(bits.view(np.uint8), bitorder="little").astype(bool)[:width]
    return np.concatenate([flags, np.zeros(width - len(flags), bool)])


def masses(x: np.ndarray, temperature: float) -> list[int]:
    """Of float32 [n]: integers, the best one's UNIT."""
    warmth = np.float32(1) / np.float32(temperature)
    return [int(float(np.float32(math.exp(np.float32(z) * warmth))) * UNIT + 0.5) for z in x - x.max()]


def cut_law(
    x: np.ndarray, allowed: np.ndarray, temperature: float, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0
) -> dict[int, int]:
    """token -> integer mass, of what temperature, top-k, top-p and min-p leave of the allowed tokens, in that order."""
    tokens = [int(token) for token in np.flatnonzero(allowed & (x > -np.inf))]
    if not tokens:
        return {}
    if temperature == 0:
        return {max(tokens, key=lambda token: (x[token], -token)): UNIT}
    mass = dict(zip(tokens, masses(x[tokens], temperature)))
    order = sorted(tokens, key=lambda token: (-x[token], token))
    if top_k:
        order = order[:top_k]
    if top_p < 1:
        goal = max(1, math.ceil(float(np.float32(top_p)) * float(sum(mass[token] for token in order))))
        nucleus, held = [], 0
        for token in order:
            if held >= goal:
                break
            nucleus.append(token)
            held += mass[token]
        order = nucleus
    if min_p > 0:
        best, warmth = x[order[0]], np.float32(1) / np.float32(temperature)
        order = [token for token in order if (x[token] - best) * warmth >= np.float32(math.log(np.float32(min_p)))]
    return {token: mass[token] for token in order if mass[token]}


def draw(law: dict[int, int], seed: int, step: int) -> int:
    """The token of a step: the first, by id, at which the sum of masses exceeds the random number."""
    target = uniform(seed, step) * sum(law.values()) >> 64
    for token in sorted(law):
        if target < law[token]:
            return token
        target -= law[token]
    raise AssertionError("the target is below the sum")


def exact_law(
    x: np.ndarray, allowed: np.ndarray, temperature: float, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0
) -> np.ndarray:
    """Return float64 [V]: the expected distribution, from exponentials in float64."""
    out = np.zeros(len(x))
    tokens = np.flatnonzero(allowed & (x > -np.inf))
    law = np.exp((x[tokens].astype(np.float64) - float(x[tokens].max())) / temperature)
    order = np.lexsort((tokens, -x[tokens].astype(np.float64)))
    law[order[top_k or len(order) :]] = 0
    held = np.cumsum(law[order]) - law[order]
    law[order[held >= top_p * law.sum()]] = 0
    law[law < min_p] = 0
    out[tokens] = law / law.sum()
    return out


def gumbel(token: int, seed: int, step: int) -> np.float32:
    """-log of an Exp(1) of 64 bits, in float32, as the card has it."""
    high, low, _, _ = philox((step % WORD, step // WORD, token, 1), (seed % WORD, seed // WORD))
    near, minus = (high, low), -1
    if high >= 2**31:
        near, minus = (WORD - 1 - high, WORD - 1 - low), 0
    part = np.float32(near[0]) * np.float32(2.0**-32) + (np.float32(near[1]) + np.float32(0.5)) * np.float32(2.0**-64)
    clock = -math.log1p(-part) if minus else -math.log(part)
    return np.float32(-math.log(np.float32(clock)))


def race(x: np.ndarray, allowed: np.ndarray, seed: int) -> list[int]:
    """All tokens of any mass in order of arrival: float32 [V] logits, bool [V]."""
    tokens = [int(token) for token in np.flatnonzero(allowed & (x > -np.inf))]
    clock = {token: (x[token] - x.max()) + gumbel(token, seed, 0) for token in tokens}
    return sorted(tokens, key=lambda token: (-clock[token], token))
