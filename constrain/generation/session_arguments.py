"""The arguments of a session that no other call has: their checks."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.errors import ArgumentError, check_type, describe_value
from ..sampling.core.sampler_arguments import is_count
from ..vocabulary.vocabulary import Vocabulary

__all__ = ["check_max_tokens", "check_seed", "check_tokens", "encode_text"]


def check_max_tokens(max_tokens: object) -> int:
    """Return max_tokens. Raise ConstrainError unless it is a whole number from 1 on."""
    if not is_count(max_tokens) or int(str(max_tokens)) < 1:
        raise ArgumentError(f"max_tokens is {describe_value(max_tokens)}: give a whole number of 1 or more")
    return int(str(max_tokens))


def encode_text(name: str, text: str) -> bytes:
    """Return a text as UTF-8. Raise ArgumentError if it holds an unpaired surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        cause = f"{name} holds half of a surrogate pair at character {error.start}, which is not a character"
        raise ArgumentError(cause) from None


def check_seed(seed: object) -> int | None:
    """Return a seed. Raise ArgumentError unless it is None or a whole number from 0 on."""
    if seed is None:
        return None
    if not is_count(seed) or int(str(seed)) < 0:
        raise ArgumentError(f"seed is {describe_value(seed)}: give a whole number from 0 on, or None")
    return int(str(seed))


def check_tokens(prompt: object, vocabulary: Vocabulary) -> list[int]:
    """Return the token ids of a prompt. Raise TypeError or ArgumentError unless they are ids of the vocabulary."""
    check_type("prompt", prompt, Sequence, "give token ids")
    assert isinstance(prompt, Sequence)
    for token in prompt:
        if not is_count(token) or not 0 <= int(str(token)) < vocabulary.size:
            raise ArgumentError(f"the prompt contains {describe_value(token)}: give ids below {vocabulary.size}")
    return list(prompt)
