"""What every sampler returns.

A `Draw` is one text drawn under a Constraint, with its log-probability under the model and a log-weight that says how
far the sampler's own law was from it; `Draws` is a set of them, with the estimates that the weights give.

    E[exp(logweight) f(text)] = sum over texts of p(text) [text in L] f(text)

holds for every sampler here (proper weighting), where p is the model and L the constraint. With f = 1 the mean weight
is an unbiased estimate of Z = p(L); self-normalised weights give expectations under p conditioned on L.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from . import answer_posterior

__all__ = ["Draw", "Draws", "log_sum"]


@dataclass(frozen=True, slots=True)
class Draw:
    """One text.

    tokens: without the end token; text: theirs, incomplete characters as U+FFFD. logprob: under the model, end token
    included; logweight: log of the weight with which this draw counts (both nats; -inf: it counts for nothing).
    """

    tokens: tuple[int, ...]
    text: str
    logprob: float
    logweight: float


@dataclass(frozen=True, slots=True)
class Draws(Sequence[Draw]):
    """Weighted draws from one law. stats: what they cost, as counts by name.

    sampler, reason: set where `sampler="auto"` chose it. unfinished: draws that did not end (or have no
    probability) and so are not among these; in every estimate they count as draws of weight 0.
    """

    draws: tuple[Draw, ...]
    stats: dict[str, float] = field(default_factory=dict)
    sampler: str = ""
    reason: str = ""
    unfinished: int = 0

    @classmethod
    def of(cls, draws: Iterable[Draw], **stats: float) -> Draws:
        """From any iterable."""
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

    def without_unfinished(self) -> Draws:
        """Return these draws without those that weigh nothing because they did not end, which are counted instead."""
        ended = tuple(draw for draw in self.draws if draw.logweight > -np.inf)
        missing = len(self.draws) - len(ended)
        stats = {**self.stats, "unfinished": self.unfinished + missing}
        return replace(self, draws=ended, stats=stats, unfinished=self.unfinished + missing)

    @property
    def made(self) -> int:
        """How many draws were made, those that did not end included."""
        return len(self.draws) + self.unfinished

    @property
    def logweights(self) -> NDArray[np.float64]:
        """float64 [n]."""
        return np.array([draw.logweight for draw in self.draws], dtype=np.float64)

    @property
    def log_z(self) -> float:
        """Log of the mean weight: its exponential is an unbiased estimate of p(L), so the log is biased low."""
        return log_sum(self.logweights) - float(np.log(self.made)) if self.draws else -np.inf

    @property
    def ess(self) -> float:
        """Effective sample size, (sum w)^2 / sum w^2: how many draws from the right law these are worth."""
        weights = self.logweights
        total = log_sum(weights)
        return float(np.exp(2 * total - log_sum(2 * weights))) if total > -np.inf else 0.0

    @property
    def weights(self) -> NDArray[np.float64]:
        """Normalised weights, float64 [n]; all zero if no draw counts."""
        logweights = self.logweights
        total = log_sum(logweights)
        return np.exp(logweights - total) if total > -np.inf else np.zeros_like(logweights)

    @property
    def distortion(self) -> float:
        """KL(q || p given L) in nats, of the law q these were drawn from: log E[w] - E[log w], a Jensen gap.

        Draws that did not end are left out: q is then the law of those that do.
        """
        logweights = self.logweights
        mean = log_sum(logweights) - float(np.log(max(len(logweights), 1)))
        return max(mean - float(logweights.mean()), 0.0) if len(logweights) else 0.0

    def by_text(self) -> dict[str, float]:
        """The part of all weight that each text has, the largest first: several token sequences may spell one text."""
        return answer_posterior.by_text(self)

    def by_value(self) -> list[tuple[Any, float]]:
        """The same for JSON values, the largest first: white space, the order of keys and 1 or 1.0 do not matter."""
        return answer_posterior.by_value(self)


def log_sum(values: NDArray[np.floating[Any]]) -> float:
    """log(sum(exp(values))) without overflow; -inf for nothing."""
    top = float(values.max(initial=-np.inf))
    return top + float(np.log(np.exp(values - top).sum())) if top > -np.inf else -np.inf
