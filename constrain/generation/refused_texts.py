"""Whether a finished text is accepted: by the constraint it is, by the type's validators and `check=` perhaps not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base.errors import ConstrainError, Refusal, ValueRefused, describe_value
from ..checking.verdicts import TextChecker, VerdictChecker
from ..decoding.outcomes import Outcome
from ..sampling import Checker
from ..sampling.core.numeric_functions import read_verdict
from ..sampling.post_filtering import as_checker
from .generation_result import Generation, as_generation

if TYPE_CHECKING:
    from ..captures.capture_program import CaptureProgram
    from ..vocabulary.vocabulary import Vocabulary
    from .answer_source import AnswerSource
    from .generation_arguments import Check, ConstraintRequest

__all__ = ["accept_text"]


def accept_text(
    outcome: Outcome,
    request: ConstraintRequest | None,
    check: Check | None,
    vocabulary: Vocabulary,
    captures: CaptureProgram | None = None,
    source: AnswerSource | None = None,
) -> Generation[Any]:
    """Return the Generation of a text. Raise ValueRefused if the type or the check refuses it.

    request: the constraint, or None for an unconstrained text. check: a function of the text, which returns whether it
    is accepted or raises a ValueError with the reason; or a Checker. captures: finds the captures of the
    text. source: where it came from.
    """
    generation = as_generation(outcome, request, captures, source)
    reason = "" if check is None else find_refusal(check, generation, vocabulary)
    if reason:
        error = ValueRefused(
            f"the text satisfies the constraint, but the check rejects it: {reason}",
            hint=f"The text is {generation.text[:60]!r}. State the condition in the constraint, or raise retries=.",
        )
        error.text, error.refusals = generation.text, (Refusal(generation.text, reason),)
        raise error
    return generation


def find_refusal(check: Check, generation: Generation[Any], vocabulary: Vocabulary) -> str:
    """Return why a check rejects a text, or ""."""
    text = generation.text
    if hasattr(check, "matcher"):
        return "" if is_accepted(as_checker(check, vocabulary), generation) else "the checker rejects it"
    if isinstance(check, TextChecker):
        return "" if is_accepted(VerdictChecker(vocabulary, check), generation) else "the checker rejects it"
    try:
        verdict = check(text)  # type: ignore[operator]
    except ValueError as error:
        return str(error) or "the check raised ValueError"
    except Exception as error:
        raise ConstrainError(
            f"the check failed on {text[-60:]!r}: {error.__class__.__name__}: {error}",
            hint="A check returns whether it accepts the text, or raises a ValueError with the reason.",
        ) from error
    return "" if read_verdict("the check", text, verdict) else f"the check returned {describe_value(verdict)}"


def was_healed(generation: Generation[Any], vocabulary: Vocabulary) -> bool:
    """Return whether the tokens of a text begin with bytes of the prompt (see `decoding.prompt_healing`)."""
    return len(vocabulary.transcript(generation.tokens).decode("utf-8", "replace")) > len(generation.text)


def is_accepted(checker: Checker, generation: Generation[Any]) -> bool:
    """Return whether a Checker accepts a text."""
    vocabulary, position = checker.vocabulary, checker.matcher()
    has_more = generation.stop is not None or was_healed(generation, vocabulary)  # its tokens are more than its text
    tokens = vocabulary.tokenize(generation.text.encode()) if has_more else list(generation.tokens)
    for token in tokens:
        if not position.allows(token):
            return False
        position.advance(token)
    return position.allows(vocabulary.eos_ids[0])
