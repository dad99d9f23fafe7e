"""Populations of particles: how they grow (`Settings`), and their final state (`Population`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError, LimitError, UnsupportedError
from .core.results import log_sum
from .critics import Critic
from .particles import Masked, Mover, ParticleNode, Prefixes
from .resampling import RESAMPLERS, Resampler

if TYPE_CHECKING:
    from .twists import Twist

__all__ = ["Critic", "Population", "Settings", "log_potential"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """How a population grows.

    threshold: the population is resampled when its effective sample size falls below this share of its size. resample:
    a function as in `resampling.RESAMPLERS`; None for a population of distinct texts, see `distinct_particles`.
    """

    max_tokens: int
    move: Mover
    resample: Resampler | None
    threshold: float = 0.5
    twist: Twist | None = None
    critic: Critic | None = None

    @classmethod
    def of(
        cls,
        max_tokens: int,
        *,
        move: Mover | None = None,
        resample: str | Resampler = "systematic",
        threshold: float = 0.5,
        twist: Twist | None = None,
        critic: Critic | None = None,
    ) -> Settings:
        """Make Settings, resolving names and validating numbers."""
        if max_tokens < 1:
            raise LimitError(f"max_tokens is {max_tokens}: not even an end token fits")
        if not 0 <= threshold <= 1:
            raise ArgumentError(f"threshold must be between 0 and 1, not {threshold!r}")
        known: dict[str, Resampler | None] = {**RESAMPLERS, "without_replacement": None}
        if isinstance(resample, str) and resample not in known:
            raise UnsupportedError(f"there is no resampling {resample!r}", hint=f"There is {', '.join(known)}.")
        move = Masked() if move is None else move
        if not isinstance(resample, str) and not callable(resample):
            raise TypeError(f"resample is {resample!r}: it is a name ({', '.join(known)}) or a Resampler")
        chosen = known[resample] if isinstance(resample, str) else resample
        if chosen is None and not isinstance(move, Masked):
            raise UnsupportedError(
                "Without replacement every token that may come is a candidate.", hint="Leave out move=, or use masks."
            )
        return cls(max_tokens, move, chosen, threshold, twist, critic)


@dataclass(frozen=True)
class Population:
    """A finished population. log_weights: float64 [particles], -inf for dead ones; resampled: number of resampling
    steps; ancestors: int64 [particles], the first-step particle that each descends from, or the first choice left to
    chance (`twisted_populations`), None if each counts as its own; lines: how many ancestors have offspring here.
    """

    nodes: list[ParticleNode]
    log_weights: Floats
    lines: int
    resampled: int
    ancestors: NDArray[np.int64] | None = None

    @property
    def log_z(self) -> float:
        """Log of the mean weight, which is an unbiased estimate of Z."""
        return log_sum(self.log_weights) - float(np.log(len(self.nodes)))

    def pick(self, rng: np.random.Generator) -> ParticleNode | None:
        """Draw one particle by weight; return None if all are dead."""
        total = log_sum(self.log_weights)
        if total == -np.inf:
            return None
        edges = np.cumsum(np.exp(self.log_weights - total))
        index = int(np.searchsorted(edges, rng.random() * edges[-1], side="right"))
        return self.nodes[min(index, int(np.flatnonzero(self.log_weights > -np.inf)[-1]))]


def log_potential(prefixes: Prefixes, node: ParticleNode, left: int, settings: Settings) -> float:
    """Return log psi of an unfinished text, or the critic's log-weight of a finished one; cached at its node."""
    if node.value is None:
        node.value = 0.0
        if node.ended and settings.critic is not None:
            node.value = float(settings.critic(prefixes.constraint.vocabulary.decode(node.tokens)))
        elif not node.ended and settings.twist is not None:
            node.value = float(settings.twist(node.matcher, node.tokens, left))
        if np.isnan(node.value) or node.value == np.inf:
            raise ArgumentError(f"twists and critics give log-weights below infinity, not {node.value}")
    return node.value
