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
        self.seen: dict[tuple[int, int], int] = {}
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
        roads = [[prefixes.begin()] for _ in range(n)]
        steps: list[list[float]] = [[] for _ in range(n)]
        live = list(range(n))
        for left in range(max_tokens, 0, -1):
            prefixes.ask([roads[i][-1] for i in live])
            still = []
            for i in live:
                made = move(prefixes, roads[i][-1], left, rng)
                steps[i].append(made.log_weight)
                if made.token is not None and made.token not in prefixes.ends:
                    roads[i].append(prefixes.child(roads[i][-1], made))
                    still.append(i)
            live = still
        for road, weights in zip(roads, steps):
            for node, rest in zip(road, np.cumsum(np.array(weights)[::-1])[::-1].tolist()):
                state = node.matcher.state
                self.sums[state] = self.sums.get(state, 0.0) + float(np.exp(rest))
                self.seen[state] = self.seen.get(state, 0) + 1
        total, count = sum(self.sums.values()), sum(self.seen.values())
        self.mean = total / count if total > 0 else 1.0

    def __call__(self, matcher: Matcher, tokens: Sequence[int], left: int) -> float:
        state = matcher.state
        return float(np.log((self.sums.get(state, 0.0) + self.mean) / (self.seen.get(state, 0) + 1)))
