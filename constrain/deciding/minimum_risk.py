"""Minimum Bayes risk: of the answers drawn, the one of largest expected utility (Eikema & Aziz 2020).

    argmax over candidates y of  E[utility(y, y')],  y' from p given the constraint

The likeliest single answer may be one of its kind, unlike all others that the model gives; the answer with the largest
expected utility is the one that the others support. The expectation is estimated from weighted draws.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from ..base.errors import LimitError
from ..engine.length_limits import explain_short_limit
from ..sampling import LanguageModel, draw
from ..sampling.checkers import BothCheckers
from ..sampling.core.numeric_functions import compute_number
from ..sampling.core.results import log_sum
from ..search.hypotheses import Searchable, check_search_arguments
from ..search.search_results import FoundAnswer, FoundAnswers, FoundTokens
from .answer_utilities import UTILITIES
from .decision_options import MinimumBayesRisk

__all__ = ["decide_by_risk"]


def decide_by_risk(
    lm: LanguageModel,
    constraint: Searchable,
    options: MinimumBayesRisk = MinimumBayesRisk(),
    *,
    n: int = 1,
    rng: np.random.Generator,
    max_tokens: int = 512,
) -> FoundAnswers:
    """Draw answers, and return those of largest expected utility.

    Parameters
    ----------
    lm, constraint, max_tokens
        As in `sampling.draw`.
    options : MinimumBayesRisk
        The number of draws, the sampler and the utility.
    n : int
        Most answers that are returned; they have different texts.
    rng : numpy.random.Generator
        The only source of randomness.

    Returns
    -------
    FoundAnswers
        Largest expected utility first, which is their score. Of their spellings only the sum of the steps is known.

    Raises
    ------
    LimitError
        If no draw ended within max_tokens.
    """
    check_search_arguments(lm, constraint, n, max_tokens)
    first: Any = constraint.first if isinstance(constraint, BothCheckers) else constraint
    checker = constraint.second if isinstance(constraint, BothCheckers) else None
    drawn = draw(lm, first, sampler=options.sampler, n=options.samples, rng=rng, max_tokens=max_tokens, checker=checker)
    if not len(drawn):
        raise explain_short_limit(first, max_tokens) or LimitError(
            f"none of {options.samples} draws ended within {max_tokens} tokens",
            hint="Raise max_tokens or samples, or give MinimumBayesRisk(sampler=...).",
        )
    utility = options.utility if callable(options.utility) else UTILITIES[options.utility]
    shares, spellings = defaultdict[str, float](float), defaultdict[str, set[FoundTokens]](set)
    for one, weight in zip(drawn, drawn.weights.tolist()):
        shares[one.text] += weight
        spellings[one.text].add(FoundTokens(one.tokens, (one.logprob,)))
    answers = []
    for text, found in spellings.items():
        score = sum(
            weight * compute_number("the utility", utility, text, other, finite=True)
            for other, weight in shares.items()
        )
        likely = tuple(sorted(found, key=lambda tokens: -tokens.logprob))
        total = log_sum(np.array([tokens.logprob for tokens in likely]))
        answers.append(FoundAnswer(text, total, score, likely))
    answers.sort(key=lambda answer: (-answer.score, -answer.logprob))
    stats = {"model_calls": 0.0, **drawn.stats, "samples": float(drawn.made)}
    return FoundAnswers(tuple(answers[:n]), stats)
