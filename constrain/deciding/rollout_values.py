"""Values of texts so far by completing them: the estimate of Transfer Q* (Chakraborty et al. 2024)."""

from __future__ import annotations

import math

import numpy as np

from ..base.errors import ConstrainError
from ..sampling import LanguageModel
from ..sampling.core.numeric_functions import compute_number
from ..sampling.core.results import log_sum
from ..sampling.critics import Critic
from ..search.hypotheses import Candidate, Searchable, SearchSpace
from .rollouts import Branch, continue_branches, open_space, start_branch

__all__ = ["RolloutValue"]


class RolloutValue:
    """An estimate of log E[exp(score)] of the texts that continue a prefix: a function for `sampling.Guide.prefix`.

    The prefix is completed several times by draws from a model under the constraint, and the complete texts are scored.
    In the paper the model is one that was aligned for another reward. Values are kept by text.

    Parameters
    ----------
    lm, constraint, max_tokens
        As in `search.beam_search`.
    score : callable
        Log-weight of a complete text, in nats.
    rollouts : int
        Completions of a prefix.
    seed : int
        The completions of a prefix depend on it and on the prefix only.
    floor : float
        The smallest value, also where no completion ends in time.
    """

    def __init__(
        self,
        lm: LanguageModel,
        constraint: Searchable,
        score: Critic,
        *,
        max_tokens: int,
        rollouts: int = 4,
        seed: int = 0,
        floor: float = -20.0,
    ) -> None:
        self.space = open_space(lm, constraint, max_tokens)
        self.score, self.rollouts, self.seed, self.floor = score, rollouts, seed, floor
        self.known: dict[str, float] = {}

    def __call__(self, text: str) -> float:
        if text not in self.known:
            self.known[text] = self.compute(text)
        return self.known[text]

    def compute(self, text: str) -> float:
        """Return the value of a text so far in nats."""
        start = find_branch(self.space, text)
        if start is None:
            return self.floor
        rng = np.random.default_rng([self.seed, *text.encode()])
        found = continue_branches(self.space, [start] * self.rollouts, self.space.max_tokens, rng)
        values = [compute_number("the score", self.score, one.text) for one in found if one.end is not None]
        mean = log_sum(np.array(values, np.float64)) - math.log(self.rollouts)
        return max(mean, self.floor)


def find_branch(space: SearchSpace, text: str) -> Branch | None:
    """Return the branch of a text in the fewest tokens; None if the constraint or the budget does not allow it."""
    branch = start_branch(space)
    try:
        tokens = space.vocabulary.fewest(text.encode())
    except ConstrainError:
        return None
    for token in tokens:
        candidate = Candidate(branch.head, token, 0.0, 0.0)
        if not branch.head.position.allows(token) or not space.admit(candidate):
            return None
        branch = Branch(candidate.extend())
    return branch if len(tokens) < space.max_tokens else None
