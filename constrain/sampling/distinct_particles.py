"""A population without duplicate texts: resampling without replacement, similar to a beam search with correct weights.

The candidates of a step are all extensions of all texts. They are kept with probability in proportion to weight and
twist, the likely ones with certainty (`resampling.resample_without_replacement`). Two particles with the same text
carry no more information than one of their total weight, so for peaked models few distinct particles do better than
many copies. Source: Fearnhead & Clifford 2003; Lew et al. 2023.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .particles import Masked, Move, ParticleNode, Prefixes, TokenDistribution
from .populations import Population, Settings, log_potential
from .resampling import resample_without_replacement

__all__ = ["grow_distinct_population"]

CANDIDATES = 4
"""Number of candidates per particle for which a twist is computed."""

Floats = NDArray[np.float64]


def grow_distinct_population(
    prefixes: Prefixes, particles: int, settings: Settings, rng: np.random.Generator
) -> Population:
    """Grow a population of at most `particles` distinct texts. Each step extends all texts by all tokens and keeps at
    most that many candidates.
    """
    move = settings.move
    assert isinstance(move, Masked)
    nodes, log_weights = [prefixes.begin()], np.zeros(1)
    for left in range(settings.max_tokens, 0, -1):
        live = [node for node in nodes if not node.ended]
        if not live:
            break
        prefixes.fetch_rows(live)
        owner, token, logs = list_candidates(prefixes, move, nodes, left)
        prefixes.release_rows(live)
        capacity = particles if settings.twist is None else CANDIDATES * particles
        weights = log_weights[owner] + logs
        chosen, weights = thin_candidates(weights, weights, capacity, rng)
        is_new = np.array([not nodes[i].ended for i in owner[chosen]], dtype=bool)
        nodes = [
            prefixes.child(nodes[owner[k]], Move(int(token[k]), float(logs[k]), 0.0)) if new else nodes[owner[k]]
            for k, new in zip(chosen, is_new)
        ]
        values = np.array([log_potential(prefixes, node, left - 1, settings) for node in nodes])
        ended = np.array([node.ended for node in nodes], dtype=bool)
        weights += np.where(
            ended & is_new, values, 0.0
        )  # a critic is part of the weight; a twist only affects selection
        weights[values == -np.inf] = -np.inf
        chosen, log_weights = thin_candidates(weights, weights + np.where(ended, 0.0, values), particles, rng)
        nodes = [nodes[k] for k in chosen]
    if not nodes:
        return Population([prefixes.root], np.full(1, -np.inf), 0, settings.max_tokens)
    # Here the sum of the weights estimates Z; in a Population their mean does.
    return Population(nodes, log_weights + np.log(len(nodes)), len(nodes), settings.max_tokens)


def list_candidates(
    prefixes: Prefixes, move: Masked, nodes: list[ParticleNode], left: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return all extensions of all texts by one token: text indices (int64 [k]), tokens (int64 [k]) and
    log-probabilities (float64 [k]).

    A text that has ended is its own extension.
    """
    owner, token, logs = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
    for i, node in enumerate(nodes):
        if not node.ended and node.distribution is None:
            move.cache_distribution(prefixes, node, left, listed=True)
        distribution = node.distribution
        assert distribution is None or isinstance(distribution, TokenDistribution)
        tokens, steps = (
            (np.array([node.token]), np.zeros(1)) if distribution is None else (distribution.tokens, distribution.logs)
        )
        owner.append(np.full(len(tokens), i))
        token.append(tokens)
        logs.append(steps)
    return np.concatenate(owner), np.concatenate(token), np.concatenate(logs)


def thin_candidates(
    log_weights: Floats, logscores: Floats, n: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], Floats]:
    """Select at most n candidates of positive weight. Return their indices (int64) and new log-weights (float64)."""
    scores = np.where(log_weights > -np.inf, logscores, -np.inf)
    top = scores.max(initial=-np.inf)
    if top == -np.inf:
        return np.empty(0, np.int64), np.empty(0)
    # Every candidate of positive weight needs a positive score, even if it underflows relative to the largest.
    shares = np.where(scores > -np.inf, np.maximum(np.exp(scores - top), 1e-300), 0.0)
    chosen, probability = resample_without_replacement(shares, n, rng)
    return chosen, log_weights[chosen] - np.log(probability)
