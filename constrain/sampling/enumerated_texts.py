"""Populations of a language that earlier populations have enumerated: all of its texts, with their probabilities.

Once every allowed next token of every prefix was followed, Z is known, and so is p given L. Further populations would
only visit the same prefixes again.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from .lookahead import Lookahead
from .particles import ParticleNode, Prefixes, TokenDistribution
from .populations import Population

__all__ = ["EnumeratingPopulations", "PopulationSource", "list_all_texts"]


class PopulationSource(Protocol):
    """A sequence of populations of one call."""

    def grow(self, rng: np.random.Generator) -> Population:
        """Grow the next population."""
        ...

    def freeze(self) -> None:
        """Let all further populations have the same law."""
        ...

    def finish(self) -> float:
        """Keep what was learned. Return the gap, in nats, by which states that no text reached could raise Z; NaN if
        that is not known.
        """
        ...


class EnumeratingPopulations:
    """The populations of a source, until they have enumerated the language; then all texts, as one population.

    Attributes
    ----------
    texts : list of ParticleNode, optional
        All texts of positive probability, once further populations consist of them. Each is then an exact draw.
    """

    def __init__(self, source: PopulationSource, prefixes: Prefixes, particles: int) -> None:
        self.source, self.prefixes, self.particles = source, prefixes, particles
        self.texts: list[ParticleNode] | None = None
        self._is_frozen = False

    def grow(self, rng: np.random.Generator) -> Population:
        """Grow the next population."""
        if self.texts is None and not self._is_frozen:
            self.texts = self.list_texts()
        if self.texts is None:
            return self.source.grow(rng)
        if not self.texts:
            return Population([self.prefixes.root] * self.particles, np.full(self.particles, -np.inf), 0, 0)
        log_weights = np.array([text.logprob for text in self.texts]) + math.log(len(self.texts))
        return Population(self.texts, log_weights, len(self.texts), 0)

    def list_texts(self) -> list[ParticleNode] | None:
        """Return all texts of positive probability, None if there may be others than those that were visited."""
        return list_all_texts(self.prefixes.root, self.prefixes.ends)

    def freeze(self) -> None:
        """Let all further populations have the same law: whether they grow is decided now, as what is enumerated later
        depends on the texts that were drawn.
        """
        if self.texts is None:
            self.texts = self.list_texts()
        self._is_frozen = True
        self.source.freeze()

    def finish(self) -> float:
        """Finish the source."""
        return self.source.finish()


def list_all_texts(root: ParticleNode, ends: tuple[int, ...]) -> list[ParticleNode] | None:
    """Return all texts of positive probability that begin with a prefix; None if there may be some that were not
    visited.
    """
    nodes, texts = [root], list[ParticleNode]()
    for node in nodes:  # grows while it is read: parents first
        if node.ended:
            texts.append(node)
            continue
        followed = list_next_tokens(node, ends)
        if followed is None or not node.children.keys() >= followed:
            return None
        nodes.extend(child for child in node.children.values() if child.logprob > -np.inf)
    return texts


def list_next_tokens(node: ParticleNode, ends: tuple[int, ...]) -> set[int] | None:
    """Return the allowed next tokens of positive probability, the first end token for all of them; None if they are not
    listed.
    """
    distribution = node.distribution
    if isinstance(distribution, TokenDistribution):
        return set(distribution.tokens[distribution.logs > -np.inf].tolist())
    if not isinstance(distribution, Lookahead) or distribution.rest_log > -np.inf:
        return None
    found = set(distribution.tokens[distribution.logs > -np.inf].tolist())
    return found | {ends[0]} if distribution.end_log > -np.inf else found
