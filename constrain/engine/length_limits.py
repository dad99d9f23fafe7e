"""Errors for a max_tokens within which texts of a constraint do not end: how many tokens the shortest text takes, and
whether the model's context is what has no room for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..base.errors import LimitError, VocabularyError

__all__ = [
    "TokenLimit",
    "explain_short_limit",
    "make_context_error",
    "make_full_error",
    "make_limit_error",
    "name_full_context",
]


class TokenLimit(NamedTuple):
    """The most tokens of a text, and what limits them.

    most: max_tokens, or what the prompt leaves of the model's context if that is less. positions_left: what it leaves;
    None if it is not limited.
    """

    most: int
    positions_left: int | None

    @property
    def is_of_context(self) -> bool:
        """Whether a greater max_tokens would not help."""
        return self.positions_left is not None and self.most >= self.positions_left

    @property
    def name(self) -> str:
        """The limit in words, after "within"."""
        if self.is_of_context:
            return f"the {self.most} tokens that the prompt leaves of the model's context"
        return f"max_tokens = {self.most}"

    @property
    def cure(self) -> str:
        """What allows longer texts."""
        return "shorten the prompt" if self.is_of_context else "raise max_tokens"

    def make_error(self, cause: str, hint: str) -> LimitError:
        """Return an error of this limit."""
        error = LimitError(cause, hint=hint)
        error.is_of_context = self.is_of_context
        return error


def make_limit_error(limit: int, least: int, data: bytes, name: str = "max_tokens") -> LimitError:
    """Return the error for a limit below the tokens of the shortest text, the end token included.

    name: of the argument. data: the bytes of that text.
    """
    error = LimitError(
        f"{name} is {limit}; the shortest text found takes {least} tokens, its end token included",
        hint=f"Give {name}={least} or more. That text begins with {show_start(data)}.",
    )
    error.shortest = limit, least, data
    return error


def make_context_error(limit: int, least: int, data: bytes) -> LimitError:
    """Return the error for a limit that is what the prompt leaves of the model's context; see `make_limit_error`."""
    error = LimitError(
        f"the prompt leaves {limit} tokens of the model's context; the shortest text found takes {least}, its end "
        "token included",
        hint=f"Shorten the prompt. That text begins with {show_start(data)}.",
    )
    error.shortest, error.is_of_context = (limit, least, data), True
    return error


def make_full_error(filler: str) -> LimitError:
    """Return the error for a context without a position for another token. filler: what fills it, in words."""
    return TokenLimit(0, 0).make_error(
        f"{filler} fills all the positions that the model has", hint="Shorten the prompt."
    )


@contextmanager
def name_full_context(positions_left: int | None) -> Iterator[None]:
    """Raise the error of `make_context_error` in place of that of `make_limit_error` where no max_tokens would help.

    positions_left: the number of tokens that the prompt leaves of the model's context; None if it is not limited.
    """
    try:
        yield
    except LimitError as error:
        if error.shortest is None or positions_left is None or error.shortest[1] <= positions_left:
            raise
        raise make_context_error(positions_left, *error.shortest[1:]) from None


def explain_short_limit(constraint: Any, max_tokens: int) -> LimitError | None:
    """Return the error for a constraint whose shortest text does not fit in max_tokens; None if it fits, or is not
    known.

    The shortest text is about the one with the fewest bytes; a longer one may take fewer tokens. So this explains why
    nothing was found, and does not show that there is nothing.
    """
    position = getattr(constraint, "first", constraint).matcher()
    data: bytes | None = position.shortest_completion(None) if hasattr(position, "shortest_completion") else None
    if data is None:
        return None
    try:
        least = len(constraint.vocabulary.fewest(data)) + 1
    except VocabularyError:
        return None
    return make_limit_error(max_tokens, least, data) if least > max_tokens else None


def show_start(data: bytes) -> str:
    """Return the beginning of a text, quoted, for an error message."""
    text = data.decode("utf-8", "replace")
    return repr(text if len(text) <= 60 else text[:59] + "…")
