"""Populations that a critic guides token by token: reward-guided search with proper weights (Khanov et al. 2024, ARGS).

The proposal is q(a) in proportion to p(a | u) exp(prefix(ua) - prefix(u)) for the likeliest tokens, and to p(a | u) for
all others, which are not judged. Each move has the weight p / q, and the judgement of the text so far is a twist, which
is divided out again: the target has the critic's score of complete texts only (`critics`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .core.results import log_sum
from .critics import Guide, PrefixTwist
from .particles import Floats, Masked, ParticleNode, TokenDistribution

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["Guided", "guide_particles"]


class Guided(Masked):
    """Propose by the model's distribution under the mask and a Guide's judgement of the likeliest tokens."""

    def __init__(self, guide: Guide, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.guide, self.vocabulary = guide, vocabulary

    def cache_distribution(self, prefixes: Any, node: ParticleNode, left: int, *, listed: bool = True) -> None:
        """Cache the distribution as a TokenDistribution, since single tokens are judged."""
        super().cache_distribution(prefixes, node, left, listed=True)

    def build_distribution(
        self, tokens: NDArray[np.int64], logs: Floats, node: ParticleNode, left: int
    ) -> TokenDistribution:
        if not len(logs):
            return TokenDistribution(tokens, logs, -np.inf, logs)
        text, ends = self.vocabulary.decode(node.tokens), self.vocabulary.eos_ids
        here, judged = self.guide.judge_prefix(text), logs.copy()
        for index in np.argsort(-logs, kind="stable")[: self.guide.tokens].tolist():
            token = int(tokens[index])
            if token in ends:
                judged[index] += max(self.guide.judge(text), here - FAR) - here
            else:
                judged[index] += self.guide.judge_prefix(self.vocabulary.decode([*node.tokens, token])) - here
        proposal = np.exp(judged - log_sum(judged))
        return TokenDistribution(tokens, logs, log_sum(logs), np.cumsum(proposal), proposal)


FAR = 60.0
"""The end of a text that the critic excludes stays possible, with a factor of exp(-FAR): its weight is 0 then."""


def guide_particles(guide: Guide, vocabulary: Vocabulary, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `draw_smc` and `draw_pimh` with the critic; with a proposal and a twist by `Guide.prefix`,
    in place of learned values, unless others were given.
    """
    guided, twist = {**options, "critic": guide.judge}, options.get("twist")
    is_default = twist is None or isinstance(twist, str)  # of learned values
    if guide.prefix is not None and options.get("move") is None and is_default:
        guided.update(move=Guided(guide, vocabulary), twist=PrefixTwist(guide, vocabulary))
    return guided
