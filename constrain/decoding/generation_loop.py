"""One text of one LanguageModel, by a scheduler of its own.

    until an end token:  log-probabilities  ->  mask  ->  sample  ->  advance  ->  check that a completion still fits

The parts of the loop are `scheduler` (batches), `sample_state` (one text) and `token_budget`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..checking.checked_sampling import TokenCheck
from ..sampling.core.language_model import LanguageModel
from ..sampling.core.masked_sampling import PLAIN, Proposal
from ..speculation.forced_drafts import LONGEST_DRAFT
from .language_model_runner import LanguageModelRunner
from .outcomes import FinishReason, Outcome, Piece, Stats
from .request_run import RequestRun
from .requests import GenerationRequest
from .scheduler import Scheduler
from .token_choice import ForcedText, TokenChoice

if TYPE_CHECKING:
    from ..engine.constraint import Constraint

__all__ = ["DRAFT", "FinishReason", "Outcome", "Piece", "Stats", "finish_runs", "generate_text"]

DRAFT = LONGEST_DRAFT


def generate_text(
    lm: LanguageModel,
    constraint: Constraint,
    *,
    rng: np.random.Generator,
    max_tokens: int,
    proposal: Proposal = PLAIN,
    stop: tuple[str, ...] = (),
    forced: ForcedText = "sample",
    stream: Callable[[Piece], None] | None = None,
    check: TokenCheck | None = None,
) -> Outcome:
    """Generate one text of `constraint` by masked sampling from `lm`.

    Parameters
    ----------
    lm : LanguageModel
        The model, after its prompt.
    constraint : Constraint
        What the text must satisfy.
    rng : numpy.random.Generator
        The only source of randomness.
    max_tokens : int
        Maximum number of tokens, end token included.
    proposal : Proposal
        How a token is chosen among the allowed ones.
    stop : tuple of str
        Strings that end the text where the constraint accepts what is before them, see `stop_strings`.
    forced : {"sample", "canonical", "unscored"}
        How forced text is written, see `TokenChoice`.
    stream : callable, optional
        Called with each `Piece` as it is generated.
    check : TokenCheck, optional
        What each token must pass besides the mask, see `checked_position`.

    Returns
    -------
    Outcome
        A complete text, unless its finish_reason is "length" or "dead_end".

    Raises
    ------
    LimitError
        Before anything is sampled, if the shortest text does not fit in max_tokens.
    """
    vocabulary = constraint.vocabulary
    listener = None if stream is None else lambda _, piece: stream(piece)
    request = GenerationRequest(
        vocabulary, [rng], constraint=constraint, max_tokens=max_tokens,
        choice=TokenChoice(proposal, stop=stop, forced=forced), listener=listener,
        check=check,
    )  # fmt: skip
    scheduler = Scheduler(LanguageModelRunner(lambda _: lm, vocabulary.size))
    run = scheduler.submit(request)
    finish_runs(scheduler, [run])
    (outcome,) = run.outcomes
    assert outcome is not None
    return outcome


def finish_runs(scheduler: Scheduler, runs: Sequence[RequestRun]) -> None:
    """Step a scheduler in this thread until all runs are done. Raise the first error of a text at once, after
    abandoning the others.
    """
    try:
        while True:
            for run in runs:
                if run.error is not None:
                    raise run.error
            if all(run.is_done for run in runs):
                return
            scheduler.step()
    except BaseException:
        scheduler.abort()
        raise
