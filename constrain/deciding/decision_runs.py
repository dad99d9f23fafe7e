"""`decide_answers`: run the decision rule that options belong to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..sampling import LanguageModel
from ..search.hypotheses import Searchable
from ..search.search_results import FoundAnswers
from .astar_decoding import decide_by_astar
from .decision_options import AStarDecoding, Decision, MinimumBayesRisk, PhiDecoding, PlanningGuided, Superposed
from .foresight_decoding import decide_by_foresight
from .minimum_risk import decide_by_risk
from .planned_decoding import decide_by_planning
from .superposed_decoding import decide_by_superposition

__all__ = ["decide_answers"]

RULES: Mapping[type[Any], Callable[..., FoundAnswers]] = {
    MinimumBayesRisk: decide_by_risk,
    PhiDecoding: decide_by_foresight,
    AStarDecoding: decide_by_astar,
    PlanningGuided: decide_by_planning,
    Superposed: decide_by_superposition,
}


def decide_answers(
    lm: LanguageModel, constraint: Searchable, options: Decision, *, n: int, rng: np.random.Generator, max_tokens: int
) -> FoundAnswers:
    """Return the answers of the rule that the options belong to; arguments as of that rule."""
    return RULES[type(options)](lm, constraint, options, n=n, rng=rng, max_tokens=max_tokens)
