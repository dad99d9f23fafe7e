"""Log-probabilities of the tokens of an answer: those of the model itself, before masks, penalties and temperature.

They are computed by one more pass of the model over the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..sampling.core.language_model import LanguageModel, rows_after
from ..vocabulary.vocabulary import Vocabulary

__all__ = ["LogprobReader", "TokenLogprob", "describe_logprobs", "list_completion_logprobs"]

MOST_ROWS = 64
"""Most rows, each as long as the vocabulary, that are in memory at a time."""
LOWEST = -9999.0
"""What stands for minus infinity, which JSON does not have."""


@dataclass(frozen=True)
class TokenLogprob:
    """A token of an answer, or of a prompt that is echoed.

    data: its bytes. logprob: in nats; None for the first token of a prompt, before which the model has read nothing.
    top: the likeliest tokens at its place, as pairs of bytes and log-probability. is_special: whether it is no part of
    the text.
    """

    data: bytes
    logprob: float | None
    top: tuple[tuple[bytes, float], ...] = ()
    is_special: bool = False


class LogprobReader:
    """Reads the log-probabilities of one answer while it grows.

    lm: the model after the prompt. count: number of alternatives at each token.
    """

    def __init__(self, lm: LanguageModel, vocabulary: Vocabulary, count: int) -> None:
        self.lm, self.vocabulary, self.count = lm, vocabulary, count
        self.tokens: list[int] = []

    def read(self, tokens: Sequence[int]) -> list[TokenLogprob]:
        """Return those of the next tokens."""
        found: list[TokenLogprob] = []
        for start in range(0, len(tokens), MOST_ROWS):
            part = list(tokens[start : start + MOST_ROWS])
            before = [[*self.tokens, *part[:number]] for number in range(len(part))]
            rows = rows_after(self.lm, before, self.vocabulary.size)
            self.tokens.extend(part)
            found += [self.describe(token, row) for token, row in zip(part, rows)]
        return found

    def describe_first(self, token: int) -> TokenLogprob:
        """Return that of the first token of a prompt."""
        return TokenLogprob(self.spell(token), None, is_special=self.vocabulary.tokens[token] is None)

    def describe(self, token: int, row: NDArray[np.floating[Any]]) -> TokenLogprob:
        """Return that of a token, given the row of its place."""
        row = row[: self.vocabulary.size]
        best = np.argsort(-row, kind="stable")[: self.count]
        top = tuple((self.spell(int(one)), finite(row[one])) for one in best)
        return TokenLogprob(self.spell(token), finite(row[token]), top, self.vocabulary.tokens[token] is None)

    def spell(self, token: int) -> bytes:
        """Return the bytes of a token; special ones by name."""
        return self.vocabulary.transcript((token,))


def finite(value: Any) -> float:
    """Return a log-probability that JSON can hold."""
    return max(float(value), LOWEST)


def describe_logprobs(found: Sequence[TokenLogprob]) -> list[dict[str, Any]]:
    """Return them in the shape of chat completions and responses."""
    return [
        {**describe_token(one.data, one.logprob), "top_logprobs": [describe_token(*other) for other in one.top]}
        for one in found
    ]


def describe_token(data: bytes, logprob: float | None) -> dict[str, Any]:
    """Return a token with its bytes, since one may end within a character."""
    return {"token": data.decode("utf-8", "replace"), "bytes": list(data), "logprob": logprob}


def list_completion_logprobs(found: Sequence[TokenLogprob], offset: int) -> dict[str, Any]:
    """Return them in the shape of completions. offset: the number of characters in front of the first token."""
    texts = [one.data.decode("utf-8", "replace") for one in found]
    lengths = [0 if one.is_special else len(text) for one, text in zip(found, texts)]
    offsets = [offset + before for before in accumulate(lengths, initial=0)][: len(found)]
    top = [
        None
        if one.logprob is None
        else {data.decode("utf-8", "replace"): logprob for data, logprob in reversed(one.top)}
        for one in found
    ]
    return {
        "tokens": texts,
        "token_logprobs": [one.logprob for one in found],
        "top_logprobs": top,
        "text_offset": offsets,
    }
