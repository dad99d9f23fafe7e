"""A twist (see `twists`) that is estimated from samples: the mean future weight of masked texts in each state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .core.language_model import LanguageModel
from .particles import Masked, Prefixes

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..engine.matcher import Matcher

__all__ = ["Learnt"]


class Learnt:
    """The mean future weight of masked texts, by state of the constraint.

    From a prefix on, the expected weight of a masked text is h, so states from which much mass is lost are recognised.
    Unseen states get the overall mean, which is also included once in the mean of every other state as a prior.
    """

    def __init__(self) -> None:
        self.sums: dict[tuple[int, int], float] = {}
        self.counts: dict[tuple[int, int], int] = {}
        self.mean = 1.0

    @classmethod
    def of(
        cls, lm: LanguageModel, constraint: Constraint, *, n: int, rng: np.random.Generator, max_tokens: int
    ) -> Learnt:
        """Make the twist from n masked texts."""
        out = cls()
        out.learn(lm, constraint, n=n, rng=rng, max_tokens=max_tokens)
        return out

    def learn(
        self, lm: LanguageModel, constraint: Constraint, *, n: int, rng: np.random.Generator, max_tokens: int
    ) -> None:
        """Add n masked texts to the means."""
        prefixes, move = Prefixes(lm, constraint), Masked()
        paths = [[prefixes.begin()] for _ in range(n)]
        steps: list[list[float]] = [[] for _ in range(n)]
        live = list(range(n))
        for left in range(max_tokens, 0, -1):
            prefixes.fetch_rows([paths[i][-1] for i in live])
            unfinished = []
            for i in live:
                proposed = move(prefixes, paths[i][-1], left, rng)
                steps[i].append(proposed.log_weight)
                if proposed.token is not None and proposed.token not in prefixes.ends:
                    paths[i].append(prefixes.child(paths[i][-1], proposed))
                    unfinished.append(i)
            live = unfinished
        for path, weights in zip(paths, steps):
            for node, future in zip(path, np.cumsum(np.array(weights)[::-1])[::-1].tolist()):
                state = node.matcher.state
                self.sums[state] = self.sums.get(state, 0.0) + float(np.exp(future))
                self.counts[state] = self.counts.get(state, 0) + 1
        total, count = sum(self.sums.values()), sum(self.counts.values())
        self.mean = total / count if total > 0 else 1.0

    def __call__(self, matcher: Matcher, tokens: Sequence[int], left: int) -> float:
        state = matcher.state
        return float(np.log((self.sums.get(state, 0.0) + self.mean) / (self.counts.get(state, 0) + 1)))
