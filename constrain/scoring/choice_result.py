"""The probabilities of options relative to each other, with bounds that follow from unresolved mass.

Let L(o) be the mass that was found of an option o, and F the unresolved mass. What is unresolved at a node of the trie
belongs to the options below this node. The normalised probability of o is largest if all that could belong to o does,
and everything else to nothing; smallest if all that could belong to others does:

    L(o) / (L + F not only of o)  <=  P(o) / sum of P  <=  (L(o) + F(o)) / (L + F(o))
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..base.errors import UnsatisfiableError
from ..sampling.core.results import log_sum
from .spelling_search import SpellingMasses

__all__ = ["ChoiceResult", "normalise_options"]


@dataclass(frozen=True, slots=True)
class ChoiceResult:
    """The probabilities of some options, given that the model writes one of them.

    Attributes
    ----------
    probabilities : Mapping of str to float
        The probability of each option, in the order in which the options were given. They sum to 1.
    log_probabilities : Mapping of str to float
        Their logarithms, in nats.
    bounds : Mapping of str to (float, float)
        A lower and an upper bound of each probability, which hold whatever the unresolved tokenisations are.
    log_total : float
        Log of the probability that the model writes any of the options, as far as it was summed up.
    unresolved : float
        The mass of the tokenisations that were not summed up, at most, as a share of everything: no interval in
        `bounds` is wider.
    spellings : Mapping of str to int
        The number of tokenisations that were summed up for each option.
    model_calls, rows : int
        Calls of the model, and positions that it evaluated.
    """

    probabilities: Mapping[str, float]
    log_probabilities: Mapping[str, float]
    bounds: Mapping[str, tuple[float, float]]
    log_total: float
    unresolved: float
    spellings: Mapping[str, int]
    model_calls: int
    rows: int

    @property
    def best(self) -> str:
        """The likeliest option; the first of equal ones."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    @property
    def is_certain(self) -> bool:
        """Whether the bounds prove that `best` is the likeliest option."""
        low, best = self.bounds[self.best][0], self.best
        return all(low >= high for option, (_, high) in self.bounds.items() if option != best)


def normalise_options(options: list[str], masses: SpellingMasses) -> ChoiceResult:
    """Return the probabilities of options from the masses of their texts, in the same order.

    Raises
    ------
    UnsatisfiableError
        If the model gives none of them any probability.
    """
    total = masses.log_found
    if total == -math.inf:
        raise UnsatisfiableError("the model gives none of the options any probability")
    logs = masses.found - total
    frontier = {node: log - total for node, log in masses.frontier.items()}
    share = math.exp(min(log_sum(np.array(list(frontier.values()))), 700.0))
    low, high = bound_options(np.exp(logs), frontier, masses)
    return ChoiceResult(
        probabilities=MappingProxyType(dict(zip(options, np.exp(logs).tolist()))),
        log_probabilities=MappingProxyType(dict(zip(options, logs.tolist()))),
        bounds=MappingProxyType(dict(zip(options, zip(low.tolist(), high.tolist())))),
        log_total=total,
        unresolved=share / (1 + share),
        spellings=MappingProxyType(dict(zip(options, masses.spellings.tolist()))),
        model_calls=masses.model_calls,
        rows=masses.rows,
    )


def bound_options(
    found: NDArray[np.float64], frontier: dict[int, float], masses: SpellingMasses
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper bounds (float64 [options]) of the normalised probabilities, see the module.

    found: shares of the options, summing to 1. frontier: log of the unresolved mass at each node, on the same scale.
    """
    possible, exclusive = np.zeros(len(found)), np.zeros(len(found))
    for node, log in frontier.items():
        below, mass = masses.trie.below[node], math.exp(min(log, 700.0))
        possible[below] += mass
        if len(below) == 1:
            exclusive[below[0]] += mass
    others = max(math.fsum(math.exp(min(log, 700.0)) for log in frontier.values()), 0.0) - exclusive
    return found / (1 + np.maximum(others, 0.0)), (found + possible) / (1 + possible)
