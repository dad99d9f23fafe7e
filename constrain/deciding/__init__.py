"""Decision rules: which of the valid answers is returned, by what the others say, where they lead, or a reward.

    minimum_risk          the answer that agrees best with all that may be drawn (minimum Bayes risk)
    foresight_decoding    blocks chosen by their continuations (φ-decoding)
    astar_decoding        best-first over blocks, by log-probability and a score of the text so far (A*-decoding)
    planned_decoding      Monte Carlo tree search by the reward of complete texts (PG-TD)
    superposed_decoding   several drafts with one row of the model per token
    rollout_values        values of texts so far by completing them (Transfer Q*), for critics

Each rule is a function of a LanguageModel and a constraint that returns `search.FoundAnswers`; `decision_options` holds
their options, `rollouts` what they share. All of them continue texts under the mask, so every answer is valid.
"""

from __future__ import annotations

from .answer_utilities import UTILITIES, compare_characters, compare_fields
from .astar_decoding import decide_by_astar
from .decision_options import (
    DECISIONS,
    AStarDecoding,
    Decision,
    MinimumBayesRisk,
    PhiDecoding,
    PlanningGuided,
    Superposed,
    find_decision,
)
from .decision_runs import decide_answers
from .foresight_decoding import decide_by_foresight
from .minimum_risk import decide_by_risk
from .planned_decoding import decide_by_planning
from .rollout_values import RolloutValue
from .superposed_decoding import SuperposingModel, decide_by_superposition

__all__ = [
    "DECISIONS", "UTILITIES", "AStarDecoding", "Decision", "MinimumBayesRisk", "PhiDecoding", "PlanningGuided",
    "RolloutValue", "Superposed", "SuperposingModel", "compare_characters", "compare_fields", "decide_answers",
    "decide_by_astar", "decide_by_foresight", "decide_by_planning", "decide_by_risk", "decide_by_superposition",
    "find_decision",
]  # fmt: skip
