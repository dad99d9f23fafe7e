"""The results of `generate`: one Generation per text, and the weight statistics of all texts of a call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf, isnan, log
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from ..authoring.answers import AnswerExplanation, draw_plain_text
from ..base.errors import ConstrainError, Refusal, ValueRefused
from ..base.keyword_names import explain_attributes
from ..decoding.outcomes import FinishReason, Outcome, Stats
from ..sampling import SAMPLERS
from ..sampling.core.masked_sampling import PLAIN
from ..sampling.core.mass_bounds import MassBounds, bound_by_proposal, sum_found
from ..sampling.core.weight_statistics import weight_stats
from ..sampling.sampling_target import MODEL_TARGET, SamplingTarget
from .answer_source import AnswerSource, explain_generated
from .captured_values import read_captures

if TYPE_CHECKING:
    from ..captures.capture_program import CaptureProgram
    from ..sampling.core.masked_sampling import Proposal
    from .generation_arguments import ConstraintRequest

__all__ = ["Generation", "as_generation", "refuse_values", "weigh_outcomes"]


T = TypeVar("T")

FOREIGN_ATTRIBUTES = {
    **dict.fromkeys(("parsed", "output_parsed", "output", "result", "data", "object"), "answer.value, the parsed text"),
    **dict.fromkeys(("model_dump", "dict"), "answer.value, the parsed text, which may have it"),
    **dict.fromkeys(("json", "model_dump_json", "content", "generated_text", "output_text"), "answer.text"),
    **dict.fromkeys(("choices", "outputs", "message", "generations"), "answer.text or answer.value of this one text"),
    **dict.fromkeys(("token_ids", "ids"), "answer.tokens"),
    **dict.fromkeys(("usage", "metrics"), "answer.stats"),
    **dict.fromkeys(("logprobs", "cumulative_logprob", "score"), "answer.logprob"),
}  # fmt: skip
"""What other libraries call the attributes of an answer."""


@explain_attributes(FOREIGN_ATTRIBUTES)
@dataclass(frozen=True, slots=True)
class Generation(Generic[T]):
    """One text generated under a constraint. T is the type of its value.

    Attributes
    ----------
    text : str
        The generated text; special tokens appear by name.
    value : object
        The parsed text: JSON for a schema; an instance for a Pydantic model, dataclass, NamedTuple or Enum; a dict for
        a TypedDict; the text itself for a regex, grammar or choice.
    tokens : tuple of int
        Token ids, without the end token; with those of a stop string.
    logprob : float
        Log-probability of the text under the model in nats, end token included; nan with forced="unscored".
    log_weight : float
        Log of the ratio of the model's probability to the probability with which the text was drawn, in nats (see
        `sampling.core.masked_sampling`); nan with forced="unscored".
    finish_reason : {"complete", "budget", "stop", "length"}
        "complete": the model ended the text. "budget": the text was closed, or kept short, to end within max_tokens.
        "stop": a stop string ended it. "length": an unconstrained text that was cut off. Unfinished texts under a
        constraint are never returned; they are drawn again and counted in ``stats.counts["unfinished"]``.
    stats : Stats
        Cost of the text.
    stop : str or None
        The stop string that ended the text; it is not part of it.
    refusals : tuple of Refusal
        The texts that were drawn before this one and refused by a validator or a check, with the reasons.
    captures : dict of str to object
        The parts of the text that named forms matched (`Form.named`), and the named groups of a regex: the text, or the
        value where the form is a schema: of the Python type that it was made of, otherwise the JSON value. A name that
        may occur several times has a list, in the order of the text. Names in alternatives that the text does not use
        are missing.
    source : AnswerSource or None
        The model and the constraint, for `explain`; None after copying, pickling, and for answers of other servers.
    """

    text: str
    value: T
    tokens: tuple[int, ...]
    logprob: float
    log_weight: float
    finish_reason: FinishReason
    stats: Stats = field(compare=False, repr=False)
    stop: str | None = None
    refusals: tuple[Refusal, ...] = ()
    captures: dict[str, Any] = field(default_factory=dict)
    source: AnswerSource | None = field(default=None, compare=False, repr=False)

    def explain(self) -> AnswerExplanation:
        """Explain the answer token by token: what the model wanted, what the constraint allowed, and what was taken.

        Nothing of this is recorded while an answer is generated. The model is run again over the prompt and the answer:
        with a key-value cache in one forward pass, much less than generating took. The latest explanation is kept.

        Returns
        -------
        AnswerExplanation
            A table as text (`str`), a page (`save_html`), or an output in a notebook.

        Raises
        ------
        ConstrainError
            If the answer was not constrained, or its model is not at hand (see `source`).
        """
        closing = self.stats.closing_tokens if self.finish_reason == "budget" else 0
        return explain_generated(self.source, self.tokens, self.finish_reason, self.refusals, closing)

    def _repr_html_(self) -> str:
        """Return the text coloured by who chose its tokens (which runs the model, see `explain`), for notebooks."""
        if self.source is None or self.source.constraint is None:
            return draw_plain_text(
                self.text,
                "The model is not at hand, so it is not known who chose the tokens."
                if self.source is None
                else "Without a constraint, the model chose every token.",
            )
        return self.explain()._repr_html_()


def as_generation(
    outcome: Outcome,
    request: ConstraintRequest | None,
    program: CaptureProgram | None = None,
    source: AnswerSource | None = None,
) -> Generation[Any]:
    """Convert an Outcome to a Generation, parsing its value and finding its captures with `program`, if it has any.

    request: the constraint, or None for an unconstrained text, which is its own value. Raise ValueRefused if the type
    rejects the value.
    """
    text = outcome.data.decode("utf-8", "replace")
    if request is None:
        return Generation(
            text, text, tuple(outcome.tokens), outcome.logprob, outcome.log_weight, outcome.finish_reason,
            outcome.stats, outcome.stop, source=source,
        )  # fmt: skip
    with refuse_values(text, "State the validator's condition in the schema, or raise retries=."):
        value = None if outcome.finish_reason == "length" else request.value(text)
        captures = {} if program is None else read_captures(program, outcome)
    return Generation(
        text, value, tuple(outcome.tokens), outcome.logprob, outcome.log_weight, outcome.finish_reason, outcome.stats,
        outcome.stop, captures=captures, source=source,
    )  # fmt: skip


@contextmanager
def refuse_values(text: str, cure: str) -> Iterator[None]:
    """Turn the ValueError of a type's validator, which may be Pydantic's, into ValueRefused. cure: ends its hint."""
    try:
        yield
    except ConstrainError:
        raise
    except ValueError as error:
        refused = ValueRefused(
            f"the text satisfies the schema, but the type rejects its value: {error}",
            hint=f"The text is {text[:60]!r}. {cure}",
        )
        refused.text, refused.refusals = text, (Refusal(text, str(error)),)
        raise refused from error


def weigh_outcomes(
    outcomes: list[Outcome],
    unfinished: int,
    proposal: Proposal,
    sampler: str,
    requested: int,
    target: SamplingTarget = MODEL_TARGET,
) -> dict[str, float]:
    """Compute the weight statistics of all texts of a call (`weight_stats`); unfinished texts, and those that a check
    or validator refused, count as weight 0. `distinct` is the number of different texts.

    Statistics are not trusted if the budget changed a text (`closed` is the share of such texts), if the proposal
    excludes tokens, or if texts that were not drawn can hold much (`bound_outcomes`), as they always can with a critic.
    They are always trusted if all draws have equal weight by construction.

    Texts are drawn until `requested` of them have ended. For independent draws, with n of m ended, (n - 1) / (m - 1) is
    then an unbiased estimate of the probability of ending (Haldane 1945), while n / m is biased upwards. With a single
    text there is no unbiased estimate above 0: log_z then uses n / m, is too large on average, and is never trusted.

    There are no statistics of texts whose weights are unknown (forced="unscored").
    """
    if (not outcomes and not unfinished) or any(isnan(outcome.log_weight) for outcome in outcomes):
        return {}
    log_weights = [outcome.log_weight for outcome in outcomes] + [-np.inf] * unfinished
    closed = sum(outcome.finish_reason == "budget" for outcome in outcomes) / max(len(outcomes), 1)
    runs = any(outcome.stats.forced_logprob < 0 for outcome in outcomes)  # other token strings are excluded
    row = SAMPLERS[sampler]
    equal = row.equal_weights and target.critic is None
    plain = proposal == PLAIN and not runs and not closed
    gap = 0.0 if equal else bound_outcomes(outcomes, row.known_proposal and plain).gap
    if target.critic is not None:
        gap = inf
    own = [-2 - number if outcome.stats.group < 0 else outcome.stats.group for number, outcome in enumerate(outcomes)]
    groups = [*own, *range(-2 - len(log_weights), -2 - len(outcomes))]
    stats = weight_stats(np.array(log_weights, np.float64), groups=groups, gap=gap)
    ended, total = len(outcomes), len(outcomes) + unfinished
    if row.unit == "draw" and unfinished and 1 < ended == requested:
        factor = (ended - 1) / (total - 1) * total / ended
        stats["log_z"] += log(factor)
        stats["dead_ends"] = 1 - (1 - stats["dead_ends"]) * factor
    stats["closed"] = closed
    stats["distinct"] = len({outcome.data for outcome in outcomes})
    if not proposal.covers_all or runs or closed:
        stats["steady"] = stats["trusted"] = 0.0
    elif equal:
        stats["trusted"] = 1.0
    return stats


def bound_outcomes(outcomes: list[Outcome], known_proposal: bool) -> MassBounds:
    """Return what the texts of a call say for certain about the probability of the constraint.

    known_proposal: whether each was drawn with probability exp(logprob - log_weight); otherwise the upper bound is that
    of the sampler, if it has one.
    """
    if known_proposal:
        return bound_by_proposal((tuple(one.tokens), one.logprob, one.logprob - one.log_weight) for one in outcomes)
    found = sum_found((tuple(one.tokens), one.logprob) for one in outcomes)
    bound = min((one.stats.counts.get("bound", 1.0) for one in outcomes), default=1.0)
    return MassBounds(found, max(found, bound))
