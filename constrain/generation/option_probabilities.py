"""`choose`: the probabilities that a model gives to some options, and the likeliest of them."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any, Literal

from ..base.errors import ArgumentError, check_choice, check_count, check_type, describe_value
from ..integrations.transformers_models import Prompt
from ..scoring.choice_result import ChoiceResult, normalise_options
from ..scoring.spelling_search import sum_spellings
from .generation_arguments import ConstraintRequest
from .model_preparation import prompt_model

__all__ = ["check_tolerance", "choose"]


def choose(
    model: Any,
    prompt: Prompt = None,
    options: Iterable[str] = (),
    *,
    tokenizer: Any = None,
    ends: Literal["token", "prefix"] = "token",
    tolerance: float = 1e-3,
    max_rows: int = 4096,
) -> ChoiceResult:
    """Return the probabilities of some options as the answer to a prompt, relative to each other.

    The probability of an option is summed over all tokenisations of its text, so neither the tokenizer's preferences
    nor the number of tokens distort the comparison. The canonical tokenisations of all options are evaluated in one
    call of the model, which usually suffices.

    Parameters
    ----------
    model, prompt, tokenizer
        As in `generate`. Include in the options the space or line break with which an answer to the prompt begins.
    options : iterable of str
        Different texts.
    ends : {"token", "prefix"}
        "token": the probabilities that the model writes an option and ends; an option may then be the beginning of
        another. "prefix": that its answer begins with an option, whatever follows; no option may then be the beginning
        of another.
    tolerance : float
        Stop when the tokenisations that were not summed up have together at most this share of the probability that
        was: no probability is then further off. 0 sums up all tokenisations, of which a long text has very many.
    max_rows : int
        Stop after so many positions were evaluated, even if the tolerance is not reached; `ChoiceResult.bounds` holds
        in any case.

    Returns
    -------
    ChoiceResult

    Raises
    ------
    ArgumentError
        If there are no options, two are equal, or one is the beginning of another and `ends` is "prefix".
    UnsatisfiableError
        If the model gives none of the options any probability.
    LimitError
        If an option does not fit into the positions that the model has left, or the options are too long to be compared
        (a single one of more than some 8,000 tokens).
    """
    listed = check_options(options, ends)
    tolerance, max_rows = check_tolerance(tolerance), check_count("max_rows", max_rows, 1)
    lm, vocabulary = prompt_model(model, tokenizer, prompt, ConstraintRequest(choices=listed))
    texts = [option.encode() for option in listed]
    masses = sum_spellings(
        lm,
        vocabulary,
        texts,
        ends=ends,
        tolerance=tolerance,
        max_rows=max_rows,
    )
    return normalise_options(listed, masses)


def check_options(options: object, ends: object) -> list[str]:
    """Return the options as a list; raise TypeError or ArgumentError as `choose` does."""
    check_choice("ends", ends, ("token", "prefix"))
    if isinstance(options, (str, bytes)) or not isinstance(options, Iterable):
        raise TypeError(f"options is {describe_value(options)}: give a list of texts")
    listed = list(options)
    for option in listed:
        check_type("options", option, str, "give a list of texts")
        check_encodable("options", option)
    if not listed:
        raise ArgumentError(
            "options is empty: give at least one text",
            hint="It comes after the prompt: choose(model, prompt, options).",
        )
    ordered = sorted(listed)
    for first, second in zip(ordered, ordered[1:]):
        if first == second:
            raise ArgumentError(f"options contains {first[:60]!r} twice")
        if ends == "prefix" and second.startswith(first):
            raise ArgumentError(
                f"the option {first[:60]!r} is the beginning of {second[:60]!r}, so they do not exclude each other",
                hint='Give ends="token", which compares complete answers.',
            )
    return listed


def check_encodable(name: str, text: str) -> None:
    """Raise ArgumentError for a text with half of a surrogate pair, which no tokens spell."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"{name} contains half of a surrogate pair at character {error.start}, which is not a character"
        ) from None


def check_tolerance(tolerance: object) -> float:
    """Return the tolerance as a float. Raise TypeError or ArgumentError unless it is a finite number from 0 on."""
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)):
        raise TypeError(f"tolerance is {describe_value(tolerance)}: it is a number from 0 on")
    if tolerance < 0 or (isinstance(tolerance, float) and not isfinite(tolerance)) or tolerance > 1e9:
        raise ArgumentError(f"tolerance is {describe_value(tolerance)}: it is a number from 0 on, such as 0.001")
    return float(tolerance)
