"""Checks of the arguments of Vocabulary, with messages that say what to pass instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any

from ..base.errors import VocabularyError, check_count, check_type, describe_value, shorten_text

__all__ = ["MOST_TOKENS", "check_arguments", "check_ends", "check_id", "check_ids", "check_tokens"]

MOST_TOKENS = 1 << 23
"""Most tokens of a vocabulary, since kernels pack a token and a byte into an int32.

The largest known vocabularies have 262,144.
"""


def check_tokens(tokens: Iterable[bytes | None], size: int | None) -> list[bytes | None]:
    """Return the tokens as a list, padded with None or cut to `size` if that is given.

    Raise VocabularyError if a token is neither bytes nor None, or there are none or too many.
    """
    listed = list(tokens)
    if not set(map(type, listed)) <= {bytes, NoneType}:
        odd = next(i for i, token in enumerate(listed) if token is not None and type(token) is not bytes)
        raise VocabularyError(f"token {odd} is {type(listed[odd]).__name__}, not bytes or None")
    width = len(listed) if size is None else size
    if not 0 < width <= MOST_TOKENS:
        raise VocabularyError(
            f"a vocabulary needs at least one token, at most {MOST_TOKENS:,}, not {shorten_text(width, 40)}",
            hint="size= is the width of the logits.",
        )
    del listed[width:]
    listed += [None] * (width - len(listed))
    return listed


def check_id(name: str, value: Any) -> int:
    """Return a token id as an int. Raise TypeError if it is not an integer."""
    try:
        return check_count(name, value)
    except ValueError:
        return int(value)  # a negative id: the caller reports it


def check_ids(ids: Iterable[int]) -> list[int]:
    """Return token ids as ints. Raise TypeError if one is not an integer."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise TypeError(f"ids is {describe_value(ids)}: give a list of token ids")
    return [index if type(index) is int else check_id("a token id", index) for index in ids]


def check_arguments(special: object, encode: object, encode_prompt: object, name: object) -> None:
    """Raise TypeError if an argument of `from_tokens` has the wrong type."""
    check_type("special", special, (Mapping, NoneType), "give a dict of name -> token id")
    if isinstance(special, Mapping):
        for key, index in special.items():
            check_type("a name in special", key, str, "give a dict of name -> token id")
            check_id("an id in special", index)
    for what, function in (("encode", encode), ("encode_prompt", encode_prompt)):
        if function is not None and not callable(function):
            raise TypeError(f"{what} is {describe_value(function)}: give a function from text to token ids")
    check_type("name", name, str, "give a text")


def check_ends(eos_ids: Iterable[int], width: int) -> tuple[int, ...]:
    """Return the distinct end tokens, ascending. Raise VocabularyError if there are none, or one is not an id."""
    if isinstance(eos_ids, (str, bytes)) or not isinstance(eos_ids, Iterable):
        raise TypeError(f"eos_ids is {describe_value(eos_ids)}: give a list of token ids")
    ends = sorted({check_id("an id of eos_ids", index) for index in eos_ids})
    if not ends:
        raise VocabularyError(
            "there is no end token: a constrained text could never end",
            hint="Name the ids of the tokens that end a text with eos_ids=[...].",
        )
    for index in ends:
        if not 0 <= index < width:
            raise VocabularyError(
                f"end token {index} is not among the {width} tokens of the vocabulary",
                hint="eos_ids= names the right ones; size= is the width of the model's logits.",
            )
    return tuple(ends)
