"""Bounds of Z = p(L) by the trie of the prefixes that particles have visited, see `core.mass_bounds`."""

from __future__ import annotations

import math

from .core.mass_bounds import ROUNDING, MassBounds
from .core.token_masses import Masses
from .late_mask import SharedRow
from .lookahead import Lookahead
from .particles import ParticleNode, TokenDistribution

__all__ = ["bound_by_particles"]


def bound_by_particles(root: ParticleNode, ends: tuple[int, ...]) -> MassBounds:
    """Return the bounds of Z by everything at and below the root, whatever moved the particles.

    A prefix whose distribution is not known (any more), as with `Awrs` where no mask was needed, counts as never
    visited, apart from its children.
    """
    nodes = [root]
    for node in nodes:  # grows while it is read: parents first
        nodes.extend(node.children.values())
    values = dict[ParticleNode, tuple[float, float]]()
    for node in reversed(nodes):
        if node.ended:
            values[node] = (1.0, 1.0)
            continue
        found = known = visited = 0.0
        for child in node.children.values():
            share, (least, most) = math.exp(child.logprob - node.logprob), values[child]
            found, known, visited = found + share * least, known + share * most, visited + share
        values[node] = found, min(known + sum_unvisited(node, ends, visited), 1.0)
    return MassBounds(*values[root])


def sum_unvisited(node: ParticleNode, ends: tuple[int, ...], visited: float) -> float:
    """Return the mass of the allowed next tokens of a prefix that were never taken; `visited` is that of the others."""
    distribution = node.distribution
    if isinstance(distribution, Masses):  # summed in the precision of the row
        return max(math.exp(distribution.logmass) - visited, 0.0) + ROUNDING
    if isinstance(distribution, Lookahead):
        return max(math.exp(distribution.log_mass) - visited, 0.0) + ROUNDING
    if isinstance(distribution, SharedRow) and distribution.allowed is not None:
        return max(math.exp(distribution.allowed.logmass) - visited, 0.0) + ROUNDING
    if not isinstance(distribution, TokenDistribution):  # not known (any more)
        return max(1 - visited, 0.0)
    taken = {ends[0] if token in ends else token for token in node.children}
    return math.fsum(
        math.exp(log)
        for token, log in zip(distribution.tokens.tolist(), distribution.logs.tolist())
        if token not in taken
    )
