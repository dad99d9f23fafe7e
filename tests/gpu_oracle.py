"""Reference implementations of `constrain/kernels/cuda`, with Python's integers, token by token."""

from __future__ import annotations

import math

import numpy as np

from constrain.kernels.cuda.cuda_tiles import TILE

UNIT = 2**44
M, W = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
WORD = 2**32


def philox(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """Compute Philox4x32-10 (Salmon et al. 2011)."""
    (a, b, c, d), (k, q) = counter, key
    for _ in range(10):
        (high0, low0), (high1, low1) = divmod(M[0] * a, WORD), divmod(M[1] * c, WORD)
        a, b, c, d = high1 ^ b ^ k, low1, high0 ^ d ^ q, low0
        k, q = (k + W[0]) % WORD, (q + W[1]) % WORD
    return a, b, c, d


def uniform(seed: int, step: int) -> tuple[int, int]:
    """Return two random numbers of 64 bits for a step."""
    a, b, c, d = philox((step % WORD, step // WORD, 0, 0), (seed % WORD, seed // WORD))
    return a * WORD + b, c * WORD + d


def bits_allowed(bits: np.ndarray, width: int) -> np.ndarray:
    """Unpack int32 [words] to bool [width]; tokens beyond the mask are not allowed."""
    flags = np.unpackbits(bits.view(np.uint8), bitorder="little").astype(bool)[:width]
    return np.concatenate([flags, np.zeros(width - len(flags), bool)])


Law = list[tuple[int, dict[int, int]]]
"""Tiles, in order: the mass of each, and of each of its tokens; the token t of tile T has T / sum of all * t / sum."""


def masses(x: np.ndarray, temperature: float, best: float) -> list[int]:
    """Return the masses of float32 [n] logits as integers, UNIT for the largest."""
    exact = 1 / float(np.float32(temperature)) * math.log2(math.e)
    near = np.float32(exact)
    if float(near) > exact:
        near = np.nextafter(near, np.float32(0))
    rest = max(np.float32(exact - float(near)), np.float32(1e-37))
    below = [value - np.float32(best) for value in x]
    floats = [np.float32(2.0 ** float(one * near + one * rest)) * np.float32(UNIT) for one in below]
    return [int(one) for one in floats]


def tile_law(x: np.ndarray, tokens: list[int], temperature: float) -> Law:
    """Return the distribution of tokens in tiles of TILE tokens, each scaled by its largest logit."""
    best, warmth, law = x[tokens].max(), 1 / float(np.float32(temperature)), []
    for first in range(0, len(x), TILE):
        own = [token for token in tokens if first <= token < first + TILE]
        if own:
            top = x[own].max()
            mass = dict(zip(own, masses(x[own], temperature, top)))
            scale = math.exp((float(top) - float(best)) * warmth)
            law.append((int(float(sum(mass.values())) * scale), mass))
    return law


def cut_law(
    x: np.ndarray, allowed: np.ndarray, temperature: float, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0
) -> Law:
    """Return the distribution after temperature, top-k, top-p and min-p, in that order."""
    tokens = [int(token) for token in np.flatnonzero(allowed & (x > -np.inf))]
    if not tokens:
        return []
    if temperature == 0:
        return [(UNIT, {max(tokens, key=lambda token: (x[token], -token)): UNIT})]
    whole = tile_law(x, tokens, temperature)
    if not (top_k or top_p < 1 or min_p):
        return whole
    best = x[tokens].max()
    mass = dict(zip(tokens, masses(x[tokens], temperature, best)))
    order = sorted(tokens, key=lambda token: (-x[token], token))
    total = sum(one for one, _ in whole)
    if top_k and top_k <= len(order):
        order = order[:top_k]
        total = sum(mass[token] for token in order)
    if top_p < 1:
        goal = max(1, min(total, math.ceil(float(np.float32(top_p)) * float(total))))
        nucleus, held = [], 0
        for token in order:
            if held >= goal:
                break
            nucleus.append(token)
            held += mass[token]
        order = nucleus
    if min_p > 0:
        warmth = np.float32(1 / float(np.float32(temperature)))
        order = [token for token in order if (x[token] - best) * warmth >= np.float32(math.log(np.float32(min_p)))]
    tiles: dict[int, dict[int, int]] = {}
    for token in sorted(order):
        if mass[token]:
            tiles.setdefault(token // TILE, {})[token] = mass[token]
    return [(sum(one.values()), one) for _, one in sorted(tiles.items())]


def probabilities(law: Law) -> dict[int, float]:
    """Return the probability of each token."""
    total = sum(tile for tile, _ in law)
    return {token: tile / total * (own / sum(mass.values())) for tile, mass in law for token, own in mass.items()}


def draw(law: Law, seed: int, step: int) -> int:
    """Return the token of a step: the first tile, then the first token in it, at which the sum of masses exceeds the
    random number.
    """
    first, second = uniform(seed, step)
    target = first * sum(tile for tile, _ in law) >> 64
    for tile, mass in law:
        if target < tile:
            target = second * sum(mass.values()) >> 64
            for token in sorted(mass):
                if target < mass[token]:
                    return token
                target -= mass[token]
        target -= tile
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
    """Return -log of an Exp(1) of 64 bits in float32, as the GPU computes it."""
    high, low, _, _ = philox((step % WORD, step // WORD, token, 1), (seed % WORD, seed // WORD))
    near, minus = (high, low), -1
    if high >= 2**31:
        near, minus = (WORD - 1 - high, WORD - 1 - low), 0
    part = np.float32(near[0]) * np.float32(2.0**-32) + (np.float32(near[1]) + np.float32(0.5)) * np.float32(2.0**-64)
    clock = -math.log1p(-part) if minus else -math.log(part)
    return np.float32(-math.log(np.float32(clock)))


def race(x: np.ndarray, allowed: np.ndarray, seed: int) -> list[int]:
    """Return all tokens with mass in the order of the exponential race. x: float32 [V] logits. allowed: bool [V]."""
    tokens = [int(token) for token in np.flatnonzero(allowed & (x > -np.inf))]
    clock = {token: (x[token] - x.max()) + gumbel(token, seed, 0) for token in tokens}
    return sorted(tokens, key=lambda token: (-clock[token], token))
