"""How the tokens of a text are chosen: the adjusted model, the proposal, and the strings that end the text.

    logits -> adjustment (penalties, biases) -> p -> mask -> proposal (temperature, top-k, top-p, min-p) -> q -> token
                                                                                                              |
                                                        stop strings, end tokens: does the text end here? <---+

Weights are p / q (`sampling.core.masked_sampling`): penalties and biases belong to the model, the rest to the proposal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..sampling.core.masked_sampling import PLAIN, Proposal
from .logit_adjustment import UNADJUSTED, LogitAdjustment

__all__ = ["PLAIN_CHOICE", "ForcedText", "TokenChoice"]

ForcedText = Literal["sample", "canonical", "unscored"]


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """The options of a request that concern the choice of tokens; immutable, the defaults change nothing.

    Attributes
    ----------
    proposal : Proposal
        Temperature, top_k, top_p and min_p.
    adjustment : LogitAdjustment
        Penalties and biases.
    stop : tuple of str
        Strings that end the text, as `stop_strings.as_stop_strings` returns them.
    forced : {"sample", "canonical", "unscored"}
        How text that the constraint forces is written: its tokens are sampled, or are those that the tokenizer itself
        would choose, with their probabilities or without, see `forced_runs`; then there are no other drafts.
    """

    proposal: Proposal = PLAIN
    adjustment: LogitAdjustment = UNADJUSTED
    stop: tuple[str, ...] = ()
    forced: ForcedText = "sample"


PLAIN_CHOICE = TokenChoice()
