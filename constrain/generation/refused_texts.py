"""Retries: a text whose value is refused is drawn again, a limited number of times, and the reasons are kept.

A text that satisfies the constraint may still be refused by a validator of the type or by `check=`. Drawing again until
one is accepted is rejection sampling (von Neumann 1951): every try is an independent draw, so an accepted text has the
distribution of the sampler given that it is accepted. With the sampler "exact" this is exactly p given the constraint
and the check; with "masked" it is biased as "masked" is.

Each requested text has its own tries. If the reason is put into the next prompt (`retry_prompt=`), the tries are not
draws from one distribution any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..base.errors import ConstrainError, Refusal, ValueRefused
from ..checking.verdicts import TextChecker, VerdictChecker
from ..decoding.generation_loop import Outcome
from ..sampling import Checker
from ..sampling.post_filtering import as_checker
from .generation_result import Generation, as_generation

if TYPE_CHECKING:
    from ..decoding.logit_adjustment import LogitAdjustment
    from ..sampling import LanguageModel
    from ..vocabulary.vocabulary import Vocabulary
    from .finished_texts import DrawOutcomes
    from .generation_arguments import Check, ConstraintRequest
    from .model_preparation import PreparedModel

__all__ = ["AcceptedTexts", "DrawTexts", "accept_text", "draw_accepted", "make_retrying_draw"]

DrawTexts = Callable[[Sequence[tuple[Refusal, ...]]], tuple[list[Outcome], int]]
"""Draws one text for each element, which has the refusals of its earlier tries. Returns those that ended, which are
fewer if there are no others, and the number of unfinished texts."""


@dataclass(slots=True)
class AcceptedTexts:
    """The accepted texts of a call. unfinished, refused: how many others were drawn."""

    generations: list[Generation] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    unfinished: int = 0
    refused: int = 0


def draw_accepted(draw: DrawTexts, accept: Callable[[Outcome], Generation], n: int, retries: int) -> AcceptedTexts:
    """Draw n texts, those that are refused again, each at most `retries` times.

    Parameters
    ----------
    draw : callable
        See `DrawTexts`.
    accept : callable
        Returns the Generation of a text, or raises ValueRefused.
    n, retries : int

    Returns
    -------
    AcceptedTexts
        In the order of the requested texts; fewer if `draw` returns fewer.

    Raises
    ------
    ValueRefused
        If the last try of a text is refused; its `refusals` are those of all tries.
    """
    found = AcceptedTexts()
    tries: list[tuple[Refusal, ...]] = [()] * n
    accepted: dict[int, tuple[Generation, Outcome]] = {}
    pending = list(range(n))
    while True:
        outcomes, unfinished = draw([tries[number] for number in pending])
        found.unfinished += unfinished
        drawn, pending = list(zip(pending, outcomes)), []
        for number, outcome in drawn:
            try:
                accepted[number] = replace(accept(outcome), refusals=tries[number]), outcome
            except ValueRefused as error:
                tries[number] = (*tries[number], *error.refusals)
                found.refused += 1
                if len(tries[number]) > retries:
                    raise give_up(error, tries[number]) from error.__cause__
                pending.append(number)
        if not pending:
            break
    for number in sorted(accepted):
        found.generations.append(accepted[number][0])
        found.outcomes.append(accepted[number][1])
    return found


def make_retrying_draw(
    draw: DrawOutcomes, lm: LanguageModel, prepared: PreparedModel, adjustment: LogitAdjustment
) -> DrawTexts:
    """Return a function that draws texts from the model; or, if there is a `retry_prompt`, from the model after a
    prompt with the reasons why the earlier tries of a text were refused.
    """

    def draw_texts(tries: Sequence[tuple[Refusal, ...]]) -> tuple[list[Outcome], int]:
        if prepared.retry_prompt is None or not any(tries):
            return draw(lm, len(tries))
        drawn = [draw(prepared.after_prompt(adjustment, refusals), 1) for refusals in tries]
        return [outcome for outcomes, _ in drawn for outcome in outcomes], sum(unfinished for _, unfinished in drawn)

    return draw_texts


def give_up(last: ValueRefused, refusals: tuple[Refusal, ...]) -> ValueRefused:
    """Return the error of a text whose last try was refused."""
    if len(refusals) == 1:
        return last
    error = ValueRefused(f"{len(refusals)} texts were drawn and refused; the last: {last.cause}", hint=last.hint)
    error.text, error.refusals = last.text, refusals
    return error


def accept_text(
    outcome: Outcome, request: ConstraintRequest, check: Check | None, vocabulary: Vocabulary
) -> Generation:
    """Return the Generation of a text. Raise ValueRefused if the type or the check refuses it.

    check: a function of the text, which returns whether it is accepted or raises a ValueError with the reason; or a
    Checker.
    """
    generation = as_generation(outcome, request)
    reason = "" if check is None else find_refusal(check, generation, vocabulary)
    if reason:
        error = ValueRefused(
            f"the text satisfies the constraint, but the check rejects it: {reason}",
            hint=f"The text is {generation.text[:60]!r}. State the condition in the constraint, or raise retries=.",
        )
        error.text, error.refusals = generation.text, (Refusal(generation.text, reason),)
        raise error
    return generation


def find_refusal(check: Check, generation: Generation, vocabulary: Vocabulary) -> str:
    """Return why a check rejects a text, or ""."""
    text = generation.text
    if hasattr(check, "matcher"):
        return "" if is_accepted(as_checker(check, vocabulary), generation) else "the checker rejects it"
    if isinstance(check, TextChecker):
        return "" if is_accepted(VerdictChecker(vocabulary, check), generation) else "the checker rejects it"
    try:
        return "" if check(text) else "the check returned False"  # type: ignore[operator]
    except ValueError as error:
        return str(error) or "the check raised ValueError"
    except Exception as error:
        raise ConstrainError(
            f"the check failed on {text[-60:]!r}: {error.__class__.__name__}: {error}",
            hint="A check returns whether it accepts the text, or raises a ValueError with the reason.",
        ) from error


def is_accepted(checker: Checker, generation: Generation) -> bool:
    """Return whether a Checker accepts a text."""
    vocabulary, position = checker.vocabulary, checker.matcher()
    stopped = generation.stop is not None  # its tokens are more than its text
    tokens = vocabulary.tokenize(generation.text.encode()) if stopped else list(generation.tokens)
    for token in tokens:
        if not position.allows(token):
            return False
        position.advance(token)
    return position.allows(vocabulary.eos_ids[0])
