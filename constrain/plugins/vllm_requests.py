"""What both plug-ins for vLLM share: the constraint of a request, its checks, and the Vocabulary of the served model.

A request carries its constraint in `SamplingParams.extra_args` (`vllm_xargs` over HTTP), as JSON text:

    extra_args={"constrain": '{"schema": {...}}'}         one of schema, regex, grammar, choices; also "style": {...}

vLLM validates requests in its front end (`validate_vllm_params`), where a refused or contradictory one becomes an error
of status 400. A worker process must not raise, because that would end the engine for everybody: a request that fails
there is closed, with an empty text and a line in the log. Nothing here imports vLLM or torch when it is loaded.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ..base.errors import ArgumentError, ConstrainError, VocabularyError, describe_value
from ..base.json_documents import parse_strictly
from ..base.options import Limits, Style
from ..compilation.constraint_compiler import compile
from ..engine.constraint import Constraint
from ..vocabulary.vocabulary import Vocabulary
from .request_matcher import RequestMatcher

__all__ = [
    "FIELD",
    "VllmRequest",
    "VllmRequests",
    "read_constraint_field",
    "read_vllm_vocabulary",
    "validate_vllm_params",
]

FIELD = "constrain"
"""The key of `extra_args`."""
SOURCES = ("schema", "regex", "grammar", "choices")
CONTRADICTIONS = {
    "structured_outputs": "two constraints on one text leave rows without any token",
    "ignore_eos": "the text would go on after its end",
    "min_tokens": "vLLM forbids the end token until then, and a complete text has nothing else",
    "stop": "it would cut the text short",
    "bad_words": "it may forbid every token that the constraint allows",
    "allowed_token_ids": "it may forbid every token that the constraint allows",
    "thinking_token_budget": "vLLM forces tokens after the mask",
    "trace_decode_token_ids": "vLLM forces tokens after the mask",
}
"""Sampling parameters that cannot be combined with a constraint, with the reason. Their neutral values are false."""
log = logging.getLogger(__name__)


def read_constraint_field(extra_args: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the arguments of `constrain.compile` in the extra arguments of a request; None if it has no constraint.

    Raises
    ------
    ArgumentError
        If the field is not JSON, or holds unknown or contradictory members. The message has a JSON pointer.
    """
    near = [key for key in extra_args or () if key != FIELD and key.lower().replace("-", "_").startswith(FIELD)]
    if near:
        raise ArgumentError(f"unknown extra argument {near[0]!r}", hint=f"The constraint is the JSON text {FIELD!r}.")
    if not extra_args or extra_args.get(FIELD) is None:
        return None
    value = extra_args[FIELD]
    if isinstance(value, str):
        try:
            value = parse_strictly(value, Limits().nesting)
        except ValueError as error:
            raise ArgumentError(f"{FIELD} is not JSON: {error}", pointer=f"/{FIELD}") from None
    if not isinstance(value, Mapping):
        raise ArgumentError(
            f"{FIELD} is {describe_value(value)}",
            pointer=f"/{FIELD}",
            hint='Give JSON text such as {"schema": {...}}; vllm_xargs takes no objects.',
        )
    unknown = [key for key in value if key not in (*SOURCES, "style")]
    if unknown:
        raise ArgumentError(
            f"unknown member {unknown[0]!r}",
            pointer=f"/{FIELD}/{unknown[0]}",
            hint=f"There are {', '.join(SOURCES)} and style.",
        )
    given = [key for key in SOURCES if value.get(key) is not None]
    if len(given) != 1:
        raise ArgumentError(
            f"{' and '.join(given) or 'no constraint'} given", pointer=f"/{FIELD}", hint="Give exactly one."
        )
    return {given[0]: value[given[0]], "style": read_style(value.get("style"))}


def read_style(value: Any) -> Style:
    """Return the Style of a JSON object, whose members are the parameters of Style."""
    if value is None:
        return Style()
    known = [one.name for one in fields(Style)]
    pointer = f"/{FIELD}/style"
    if not isinstance(value, Mapping):
        raise ArgumentError(
            f"style is {describe_value(value)}", pointer=pointer, hint='Such as {"whitespace": "compact"}.'
        )
    unknown = [key for key in value if key not in known]
    if unknown:
        raise ArgumentError(f"unknown member {unknown[0]!r}", pointer=f"{pointer}/{unknown[0]}", hint=", ".join(known))
    try:
        return Style(**value)
    except (TypeError, ArgumentError) as error:
        raise ArgumentError(str(error), pointer=pointer) from None


def validate_vllm_params(params: Any) -> None:
    """Check the SamplingParams of a request, without the model: syntax, contradictions, and the constraint itself.

    Raises
    ------
    ArgumentError
        A ValueError, as vLLM expects. Also for a schema that is refused, with the message of its own error.
    """
    source = read_constraint_field(params.extra_args)
    if source is None:
        return
    for name, reason in CONTRADICTIONS.items():
        if getattr(params, name, None):
            raise ArgumentError(f"{name} cannot be combined with a constraint: {reason}", pointer=f"/{name}")
    try:
        compile(Vocabulary.bytes(), **source)
    except (ConstrainError, TypeError) as error:
        raise ArgumentError(str(error), pointer=f"/{FIELD}") from error


def read_vllm_vocabulary(vllm_config: Any) -> Vocabulary:
    """Return the Vocabulary of the served model, as wide as its logits.

    End tokens are those at which vLLM stops: the tokenizer's and those of the generation config
    (`SamplingParams.update_from_generation_config`).

    Raises
    ------
    VocabularyError
        If the bytes of the tokens cannot be derived, or vLLM was started without a tokenizer.
    """
    from vllm.tokenizers import cached_tokenizer_from_config

    config = vllm_config.model_config
    tokenizer = cached_tokenizer_from_config(config)
    if tokenizer is None:
        raise VocabularyError("vLLM runs without a tokenizer", hint="Start it without --skip-tokenizer-init.")
    ends = config.try_get_generation_config().get("eos_token_id")
    listed = {ends} if isinstance(ends, int) else set(ends or ())
    if tokenizer.eos_token_id is not None:
        listed.add(tokenizer.eos_token_id)
    return Vocabulary.from_tokenizer(tokenizer, size=config.get_vocab_size(), eos_ids=sorted(listed) or None)


class VllmRequest(RequestMatcher):
    """The position of a request, with a line in the log when it is closed: vLLM has no place for its error."""

    is_reported = False

    def report_error(self) -> None:
        """Log why the request was closed, once; nothing if it is open."""
        if self.error is not None and not self.is_reported:
            self.is_reported = True
            log.error("constrain: the text of a request is cut short: %s", self.error)


class VllmRequests:
    """Makes a VllmRequest of the parameters of a request. It raises nothing: what fails is a closed request."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def open_request(self, params: Any) -> VllmRequest | None:
        """Return the position of a new request; None if it has no constraint."""
        try:
            source = read_constraint_field(params.extra_args)
            if source is None:
                return None
            ends = self.vocabulary.eos_ids
            cutting = [one for one in params.stop_token_ids or () if one not in ends]
            if any(0 <= one < self.vocabulary.size and self.vocabulary.tokens[one] is not None for one in cutting):
                raise ArgumentError("stop_token_ids hold tokens of text, which would cut the answer short")
            return VllmRequest(self.compile(source), params.max_tokens)
        except Exception as error:
            log.error("constrain: a request is answered with an empty text: %s", error)
            return self.close_request()

    def compile(self, source: dict[str, Any]) -> Constraint:
        """Compile the source of a request; equal ones share a Constraint while it is in the cache."""
        return compile(self.vocabulary, **source)

    def close_request(self) -> VllmRequest:
        """Return a request that allows end tokens only."""
        return VllmRequest(compile(self.vocabulary, choices=[""]))
