"""`constrain.generate_remote`: valid answers from a model behind an API, which masks cannot reach.

    "retry"      request whole answers until one is valid. What is returned is a sample from the model's distribution
                 given the constraint (rejection sampling; von Neumann 1951), with whatever options the API was given
    "resample"   keep the longest valid prefix of an answer, choose another token in place of the one that the
                 constraint refuses, in proportion to the log-probabilities that the API returns, and request the rest.
                 Masked sampling, restricted to the likeliest few tokens. Needs an API that continues texts

If no answer is valid within the tries, the last one is repaired (`constrain.repair`), by a local model if one is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

import numpy as np

from ..base.errors import (
    ConstrainError,
    TokenRefused,
    ValueRefused,
    check_choice,
    check_count,
    check_type,
    shorten_text,
)
from ..base.json_documents import References
from ..base.options import Limits, Style
from ..correction.text_repair import Repair
from ..engine.constraint import Constraint
from ..engine.matcher import Matcher
from ..integrations.remote_models import RemoteModel, RemoteToken
from ..vocabulary.vocabulary import Vocabulary
from .answer_repair import repair
from .generation_arguments import ConstraintRequest, build_request
from .model_preparation import compile_request

__all__ = ["RemoteGeneration", "generate_remote"]

ALTERNATIVES = 5
"""Log-probabilities requested at each place; the most that OpenAI's completions return."""
EXCERPT = 60
"""Characters of a refused answer that its reason shows."""


@dataclass(frozen=True, slots=True)
class RemoteGeneration:
    """A valid answer of a remote model.

    Attributes
    ----------
    text : str
        The valid text.
    value : object
        The parsed text, as `Generation.value`.
    refusals : tuple of (str, str)
        The answers that were refused, each with the reason.
    requests : int
        Number of requests.
    replaced_tokens : int
        Tokens chosen in place of refused ones, by "resample".
    repair : Repair, optional
        How the last answer was repaired, if none was valid.
    """

    text: str
    value: Any
    refusals: tuple[tuple[str, str], ...] = ()
    requests: int = 0
    replaced_tokens: int = 0
    repair: Repair | None = None


def generate_remote(
    model: RemoteModel,
    prompt: Any,
    *,
    schema: Any = None,
    regex: str | None = None,
    grammar: Any = None,
    choices: Sequence[str] | None = None,
    type: Any = None,
    style: Style = Style.any(),
    registry: Mapping[str, Any] | None = None,
    base_uri: str = "",
    import_paths: Sequence[str | PathLike[str]] = (),
    limits: Limits = Limits(),
    method: Literal["retry", "resample"] = "retry",
    tries: int = 4,
    max_tokens: int = 512,
    invalid: Literal["repair", "raise"] = "repair",
    repair_model: Any = None,
    seed: int | None = None,
) -> RemoteGeneration:
    """Generate one valid answer with a model behind an API.

    Parameters
    ----------
    model : RemoteModel
        The model.
    prompt : str or list of messages
        What is requested; a text for an API that continues texts.
    schema, regex, grammar, choices, type, registry, base_uri, import_paths, limits
        The constraint, as in `generate`.
    style : Style
        How JSON may be written; by default in any way.
    method : {"retry", "resample"}
        See the module: exact and wasteful, or token by token.
    tries : int
        Maximum number of requests.
    max_tokens : int
        Maximum number of tokens of an answer.
    invalid : {"repair", "raise"}
        What to do if no answer is valid within the tries.
    repair_model : object, optional
        A local model that writes the last answer again; by default the fewest characters are changed.
    seed : int, optional
        For the tokens that "resample" chooses.

    Returns
    -------
    RemoteGeneration

    Raises
    ------
    ConstrainError
        If an argument is invalid, or the replies have not the shape of OpenAI's. Errors of the client are raised as
        they are.
    ValueRefused
        If no answer is valid and invalid="raise", or a validator of the type refuses the repaired one.
    """
    check_type("model", model, RemoteModel, "give a constrain.RemoteModel")
    check_choice("method", method, ("retry", "resample"))
    check_choice("invalid", invalid, ("repair", "raise"))
    tries, max_tokens = check_count("tries", tries, 1), check_count("max_tokens", max_tokens, 1)
    request = build_request(schema, regex, grammar, choices, type, import_paths)
    constraint = compile_request(Vocabulary.bytes(), request, style, References(registry, base_uri), limits)
    attempts = Attempts(constraint, request)
    if method == "retry":
        retry_answers(model, prompt, attempts, tries, max_tokens)
    else:
        check_type("prompt", prompt, str, "give the text that the model continues")
        resample_answer(model, prompt, attempts, tries, max_tokens, np.random.default_rng(seed))
    if attempts.text is None:
        repair_answer(attempts, invalid, repair_model, prompt if isinstance(prompt, str) else "", max_tokens)
    assert attempts.text is not None
    return RemoteGeneration(
        attempts.text, attempts.value, tuple(attempts.refusals), attempts.requests, attempts.replaced, attempts.repair
    )


class Attempts:
    """The answers so far. text, value: of the valid one."""

    def __init__(self, constraint: Constraint, request: ConstraintRequest) -> None:
        self.constraint, self.request = constraint, request
        self.text: str | None = None
        self.value: Any = None
        self.refusals: list[tuple[str, str]] = []
        self.requests = self.replaced = 0
        self.repair: Repair | None = None

    def judge(self, text: str) -> None:
        """Take a text as the valid one, or note why it is refused."""
        reason = find_refusal(self.constraint, text)
        if reason is None:
            try:
                self.value = self.request.value(text)
            except ConstrainError:
                raise
            except ValueError as error:  # a validator of the type
                reason = str(error)
        if reason is None:
            self.text = text
        else:
            self.refusals.append((text, reason))


def find_refusal(constraint: Constraint, text: str) -> str | None:
    """Return why a constraint over bytes refuses a text, or None if it accepts it."""
    matcher, data = constraint.matcher(), text.encode("utf-8", "replace")
    try:
        matcher.advance_bytes(data)
    except TokenRefused as error:
        place = len(data[: error.position].decode("utf-8", "ignore"))
        before, refused = text[max(0, place - EXCERPT) : place], text[place : place + 1]
        return f"character {place} is refused after {before!r}: {refused!r}"
    return None if matcher.is_complete else f"the text ends too early, after {text[-EXCERPT:]!r}"


def retry_answers(model: RemoteModel, prompt: Any, attempts: Attempts, tries: int, max_tokens: int) -> None:
    """Request answers until one is valid (rejection sampling)."""
    while attempts.text is None and attempts.requests < tries:
        attempts.requests += 1
        answer = model.answer(prompt, max_tokens)
        attempts.judge(answer.text)


def resample_answer(
    model: RemoteModel, prompt: str, attempts: Attempts, tries: int, max_tokens: int, rng: np.random.Generator
) -> None:
    """Write one answer: continue its longest valid prefix, with another token in place of each refused one."""
    matcher, written, left = attempts.constraint.matcher(), b"", max_tokens
    while attempts.requests < tries and left > 0 and not matcher.is_finished:
        attempts.requests += 1
        answer = model.continue_text(prompt + written.decode("utf-8", "ignore"), left, alternatives=ALTERNATIVES)
        for token in answer.tokens or (RemoteToken(answer.text.encode("utf-8", "replace"), 0.0),):
            left -= 1
            taken = take_token(matcher, token, rng)
            written += taken
            if taken != token.data:
                attempts.replaced += 1
                break
        else:
            if answer.is_ended and matcher.is_complete:
                break
            if answer.is_ended:  # the end is refused: go on with what the constraint forces, or its shortest end
                written += force_text(matcher)
    text = written.decode("utf-8", "replace")
    attempts.judge(text)


def take_token(matcher: Matcher, token: RemoteToken, rng: np.random.Generator) -> bytes:
    """Advance the Matcher with a token, or with another one in its place. Return the bytes taken.

    Where the constraint refuses the token, one of the alternatives that it allows is drawn in proportion to their
    probabilities; without any, the constraint continues the text.
    """
    if can_follow(matcher, token.data):
        matcher.advance_bytes(token.data)
        return token.data
    allowed = [(data, logprob) for data, logprob in token.alternatives if data and can_follow(matcher, data)]
    if not allowed:
        return force_text(matcher)
    weights = np.exp(np.array([logprob for _, logprob in allowed]) - max(logprob for _, logprob in allowed))
    data = allowed[int(rng.choice(len(allowed), p=weights / weights.sum()))][0]
    matcher.advance_bytes(data)
    return data


def can_follow(matcher: Matcher, data: bytes) -> bool:
    """Return whether bytes may follow the text of a Matcher."""
    trial = matcher.fork()
    try:
        trial.advance_bytes(data)
    except TokenRefused:
        return False
    return True


def force_text(matcher: Matcher) -> bytes:
    """Advance the Matcher with forced text, or else with the first character of a shortest completion; return it."""
    data = matcher.forced()
    if not data:
        data = (matcher.shortest_completion() or b"").decode("utf-8", "ignore")[:1].encode()
    matcher.advance_bytes(data)
    return data


def repair_answer(attempts: Attempts, invalid: str, repair_model: Any, prompt: str, max_tokens: int) -> None:
    """Repair the last refused answer, or raise ValueRefused."""
    text, reason = attempts.refusals[-1]
    if invalid == "raise":
        error = ValueRefused(
            f"none of {attempts.requests} answers is valid; the last one: {shorten_text(reason)}",
            hint='Raise tries, or give invalid="repair".',
        )
        error.text = text
        raise error
    attempts.repair = repair(text, attempts.constraint, model=repair_model, prompt=prompt, max_tokens=max_tokens)
    attempts.text = attempts.repair.text
    attempts.value = attempts.request.value(attempts.text)
