"""When beam search ends, and how lengths are normalised.

The score of a text of log-probability l and length t (end token included) is l / t^a, or with the normalisation of Wu
et al. (2016, equation 14) l / ((5 + t) / 6)^a; a is the length penalty. The search keeps a pool of finished texts and
counts as complete when there are K = ceil(patience * width) of them (Kasai et al. 2022: beam search with a patience
factor; K = width is the common first-come-first-served rule). The rules are those of transformers:

    always      end as soon as the pool is complete
    heuristic   end when it is complete and no running hypothesis, scored at its present length, beats the worst of it
    never       as heuristic, but scored at the length that favours it most
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .search_options import BeamSearch
from .search_results import AnswerPool

__all__ = ["LengthScore", "StoppingRule"]


@dataclass(frozen=True, slots=True)
class LengthScore:
    """The score of a text, by its log-probability and its length."""

    exponent: float
    normalization: str

    def __call__(self, logprob: float, length: int) -> float:
        """Return the score of a text of `length` tokens, end token included."""
        if self.exponent == 0:
            return logprob
        size = length if self.normalization == "power" else (5 + length) / 6
        return float(logprob / size**self.exponent)


class StoppingRule:
    """Decides whether the search of a group of `width` hypotheses has ended."""

    def __init__(self, options: BeamSearch, width: int, max_tokens: int) -> None:
        self.score = LengthScore(options.length_penalty, options.normalization)
        self.rule, self.max_tokens = options.early_stopping, max_tokens
        self.capacity = math.ceil(options.patience * width)

    def has_ended(self, pool: AnswerPool, best: float, length: int) -> bool:
        """Return whether to end, with the log-probability of the best running hypothesis and its number of tokens."""
        if len(pool.groups) < self.capacity:
            return False
        if self.rule == "always":
            return True
        if self.rule == "never" and self.score.exponent > 0:
            length = self.max_tokens
        return self.score(best, max(length, 1)) <= pool.kth_score(self.capacity)
