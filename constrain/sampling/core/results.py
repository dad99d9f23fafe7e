"""Draw and Draws: the results of all samplers, with weights and the estimates that weights allow.

A `Draw` is one text drawn under a Constraint, with its log-probability under the model and a log-weight that corrects
for the distribution it was drawn from; `Draws` is a set of them. All samplers are properly weighted (Del Moral 2004):

    E[exp(log_weight) f(text)] = sum over texts of p(text) [text in L] f(text)

where p is the model and L the constraint. With f = 1, the mean weight is an unbiased estimate of Z = p(L);
self-normalised weights give expectations under p conditioned on L.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ...base.extensions import find_extension
from .answer_posterior import sum_by_text, sum_by_value
from .mass_bounds import MassBounds, sum_found

__all__ = ["Draw", "Draws", "effective_size", "group_weights", "log_sum"]


@dataclass(frozen=True, slots=True)
class Draw:
    """One text.

    Attributes
    ----------
    tokens : tuple of int
        Its tokens, without the end token.
    text : str
        Their text; incomplete characters are shown as U+FFFD.
    logprob : float
        Log-probability under the model in nats, end token included.
    log_weight : float
        Log of the importance weight in nats; -inf for a weight of 0.
    """

    tokens: tuple[int, ...]
    text: str
    logprob: float
    log_weight: float


@dataclass(frozen=True, slots=True)
class Draws(Sequence[Draw]):
    """Weighted draws from one sampler.

    Attributes
    ----------
    draws : tuple of Draw
    stats : dict of str to float
        What they cost, as counts by name; which ones depends on the sampler.
    sampler, reason : str
        The sampler that ``sampler="auto"`` chose, and why; otherwise empty.
    unfinished : int
        Number of draws that did not end (or have no probability) and so are not among these. Every estimate counts them
        as draws of weight 0.
    groups : tuple of int, optional
        A number for each draw: draws of the same group depend on each other (particles with a common ancestor, states
        of a chain between two moves). None if no two draws do.
    exact : bool
        Whether every draw is from p given L itself, so that no part of it can have been missed systematically.
    """

    draws: tuple[Draw, ...]
    stats: dict[str, float] = field(default_factory=dict)
    sampler: str = ""
    reason: str = ""
    unfinished: int = 0
    groups: tuple[int, ...] | None = None
    exact: bool = False

    @classmethod
    def of(cls, draws: Iterable[Draw], **stats: float) -> Draws:
        """Make Draws of an iterable of draws."""
        return cls(tuple(draws), dict(stats))

    def __len__(self) -> int:
        return len(self.draws)

    @overload
    def __getitem__(self, index: int) -> Draw: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Draw]: ...
    def __getitem__(self, index: int | slice) -> Draw | Sequence[Draw]:
        return self.draws[index]

    def __iter__(self) -> Iterator[Draw]:
        return iter(self.draws)

    def _repr_html_(self) -> str:
        """Return the likeliest texts and their shares, for notebooks."""
        shown: str = find_extension("show_draws")(self)
        return shown

    def without_unfinished(self) -> Draws:
        """Return these draws without those of weight 0, which did not end and are counted instead."""
        ended = [i for i, draw in enumerate(self.draws) if draw.log_weight > -np.inf]
        missing = len(self.draws) - len(ended)
        stats = {**self.stats, "unfinished": self.unfinished + missing}
        groups = None if self.groups is None else tuple(self.groups[i] for i in ended)
        draws = tuple(self.draws[i] for i in ended)
        return replace(self, draws=draws, stats=stats, unfinished=self.unfinished + missing, groups=groups)

    @property
    def made(self) -> int:
        """Number of draws made, including those that did not end."""
        return len(self.draws) + self.unfinished

    @property
    def log_weights(self) -> NDArray[np.float64]:
        """The log-weights: float64 [n], nats."""
        return np.array([draw.log_weight for draw in self.draws], dtype=np.float64)

    @property
    def log_z(self) -> float:
        """Log of the mean weight. Its exponential is an unbiased estimate of p(L), so the log is biased low."""
        return log_sum(self.log_weights) - float(np.log(self.made)) if self.draws else -np.inf

    @property
    def ess(self) -> float:
        """Effective sample size, see `effective_size`: the equivalent number of independent draws of equal weight."""
        return effective_size(self.log_weights, self.groups)

    @property
    def distinct(self) -> int:
        """Number of different texts among the draws of positive weight."""
        return len({draw.text for draw in self.draws if draw.log_weight > -np.inf})

    @property
    def bounds(self) -> MassBounds:
        """Bounds of p(L) that hold for certain, by the texts drawn and by ``stats["bound"]`` if the sampler has one."""
        found = sum_found((draw.tokens, draw.logprob) for draw in self.draws if draw.log_weight > -np.inf)
        return MassBounds(found, max(found, self.stats.get("bound", 1.0)))

    @property
    def weights(self) -> NDArray[np.float64]:
        """Normalised weights, float64 [n]; all zero if every draw has weight 0."""
        log_weights = self.log_weights
        total = log_sum(log_weights)
        return np.exp(log_weights - total) if total > -np.inf else np.zeros_like(log_weights)

    @property
    def distortion(self) -> float:
        """KL(q || p given L) in nats, where q is the distribution of these draws: log E[w] - E[log w] (a Jensen gap).

        Draws that did not end are left out: q is then the distribution of those that do.
        """
        log_weights = self.log_weights
        mean = log_sum(log_weights) - float(np.log(max(len(log_weights), 1)))
        return max(mean - float(log_weights.mean()), 0.0) if len(log_weights) else 0.0

    def by_text(self) -> dict[str, float]:
        """Return each text with its share of the weight, the largest first: the shares of all its tokenisations."""
        return sum_by_text((draw.text, weight) for draw, weight in zip(self.draws, self.weights.tolist()))

    def by_value(self) -> list[tuple[Any, float]]:
        """Return (JSON value, share of the weight) pairs, the largest first.

        White space, the order of keys, and whether a number is written 1 or 1.0 do not matter.
        """
        return sum_by_value((draw.text, weight) for draw, weight in zip(self.draws, self.weights.tolist()))


def log_sum(values: NDArray[np.floating[Any]]) -> float:
    """Return log(sum(exp(values))) without overflow; -inf for no values."""
    top = float(values.max(initial=-np.inf))
    return top + float(np.log(np.exp(values - top).sum())) if top > -np.inf else -np.inf


def effective_size(log_weights: NDArray[np.float64], groups: Sequence[int] | None = None) -> float:
    """Return the effective sample size (sum W)^2 / sum W^2 of log-weights (float64 [n], nats); 0.0 if all are -inf.

    W is the total weight of a group of draws that depend on each other; without groups, every draw is its own (Kong
    1992). Between groups, draws count as independent.

    For particles of one population, a group is the offspring of one particle of the first step: the genealogies that
    also estimate the variance of the population (Lee & Whiteley 2018; Olsson & Douc 2019). For a chain, it is a run of
    states without a move: with runs of lengths l, the size is (sum l)^2 / sum l^2, and n / (sum l^2 / sum l) is n over
    the integrated autocorrelation time of a chain that moves to an independent state, (2 - a) / a at acceptance a.
    """
    log_weights = group_weights(log_weights, groups)
    total = log_sum(log_weights)
    return float(np.exp(2 * total - log_sum(2 * log_weights))) if total > -np.inf else 0.0


def group_weights(log_weights: NDArray[np.float64], groups: Sequence[int] | None) -> NDArray[np.float64]:
    """Return the logs of the total weights of groups of draws, float64 [number of groups]; without groups, the
    log-weights themselves.
    """
    if groups is None or not len(groups):
        return log_weights
    _, index = np.unique(np.asarray(groups, np.int64), return_inverse=True)
    totals = np.full(int(index.max()) + 1, -np.inf)
    np.logaddexp.at(totals, index, log_weights)
    return totals
