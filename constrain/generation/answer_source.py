"""Where an answer came from: its model after its prompt, and its constraint, for `Generation.explain`.

A Generation refers to both, so the model stays in memory as long as one of its answers does. Nothing else is recorded
while an answer is generated. A pickled or copied Generation has no source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..authoring.answers import AnswerExplanation, explain_answer
from ..base.errors import ConstrainError, Refusal

if TYPE_CHECKING:
    from ..decoding.outcomes import FinishReason
    from ..engine.constraint import Constraint
    from ..sampling import LanguageModel

__all__ = ["AnswerSource", "explain_generated"]

OpenModel = Callable[[tuple[Refusal, ...]], "LanguageModel"]
"""Returns the model after the prompt, which may show the refusals of earlier answers."""


@dataclass(frozen=True, eq=False)
class AnswerSource:
    """The constraint of an answer, or None, and what opens its model after the prompt.

    latest: the explanation that was made last, by the tokens of its answer.
    """

    constraint: Constraint | None
    open_model: OpenModel
    latest: dict[tuple[Any, ...], AnswerExplanation] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return forget_source, ()

    def __deepcopy__(self, memo: dict[int, object]) -> None:
        return None


def forget_source() -> None:
    """Return what a pickled AnswerSource becomes: None."""


def explain_generated(
    source: AnswerSource | None,
    tokens: tuple[int, ...],
    finish_reason: FinishReason,
    refusals: tuple[Refusal, ...],
    closing_tokens: int,
) -> AnswerExplanation:
    """Explain an answer by running its model again, or return its explanation if it is the latest of its source.

    Raise ConstrainError if its source is not known, or it was not constrained.
    """
    if source is None:
        raise ConstrainError(
            "this answer cannot be explained: the model that wrote it is not at hand",
            hint="Only answers of constrain.generate and Engine can be, in the process that generated them; for others "
            "use constrain explain --answer, or constrain.authoring.answers.explain_answer.",
        )
    if source.constraint is None:
        raise ConstrainError(
            "this answer was generated without a constraint, so the model chose every token",
            hint="Give schema=, regex=, grammar=, choices= or type=.",
        )
    key = (tokens, finish_reason, refusals, closing_tokens)
    if key not in source.latest:
        explanation = explain_answer(
            source.open_model(refusals), source.constraint, tokens,
            ending="end" if finish_reason in ("complete", "budget") else "open", closing_tokens=closing_tokens,
        )  # fmt: skip
        source.latest.clear()
        source.latest[key] = explanation
    return source.latest[key]
