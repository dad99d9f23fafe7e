"""The log-probability of one tokenisation of a text, token by token, under the model and under a constraint.

Masking changes the probability of a token from p(a | u) to p(a | u) / z(u), where z(u) is the mass of the tokens that
the mask allows after u. The product over a text is its probability under masked sampling, and the product of all z(u)
is its importance weight (see `sampling.core.masked_sampling`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError, LimitError, TokenRefused
from ..sampling.core.language_model import LanguageModel, rows_after
from ..sampling.core.results import log_sum
from ..sampling.core.token_masses import Masses, enumerate_tokens
from .option_trie import Ends

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..engine.matcher import Matcher
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["TokenScore", "check_acceptance", "score_tokens"]

ROWS = 64
"""Maximum number of positions that are evaluated in one call of the model; 64 rows of a 128k vocabulary are 64 MB."""
MOST_TOKENS = 2**15
"""Maximum number of tokens of a text that is scored: the prefixes that the model reads grow with their square."""


@dataclass(frozen=True, slots=True)
class TokenScore:
    """One token of a text.

    Attributes
    ----------
    token : int
        Its id; the first end token stands for all end tokens.
    text : str
        Its text, empty for an end token; incomplete characters are shown as U+FFFD.
    offset : int
        The number of bytes before it.
    logprob : float
        Its log-probability under the model, in nats; for an end token, that of all end tokens together.
    logmass : float
        Log of the mass that the constraint's mask leaves; 0 without a constraint.
    is_forced : bool
        Whether the mask allows only this token.
    """

    token: int
    text: str
    offset: int
    logprob: float
    logmass: float = 0.0
    is_forced: bool = False

    @property
    def masked_logprob(self) -> float:
        """Its log-probability among the tokens that the mask allows."""
        return self.logprob - self.logmass


def score_tokens(
    lm: LanguageModel,
    vocabulary: Vocabulary,
    tokens: Sequence[int],
    constraint: Constraint | None = None,
    *,
    ends: Ends = "token",
) -> tuple[TokenScore, ...]:
    """Return the scores of the tokens of a text, followed by that of the end token if `ends` is "token".

    The constraint must accept the text: call `check_acceptance` before. Raise LimitError for more than MOST_TOKENS.
    """
    if len(tokens) > MOST_TOKENS:
        raise LimitError(
            f"the text has {len(tokens):,} tokens, and at most {MOST_TOKENS:,} can be scored",
            hint="Score it in parts: the earlier ones belong to the prompt of the later ones.",
        )
    row_ends, first_end = list(vocabulary.eos_ids), vocabulary.eos_ids[0]
    matcher = None if constraint is None else constraint.matcher()
    sequence = [*tokens, *([first_end] if ends == "token" else [])]
    scores, offset = list[TokenScore](), 0
    for row, token in zip(iterate_rows(lm, list(tokens), len(sequence), vocabulary.size), sequence):
        chosen = row_ends if token == first_end else [token]
        logmass, is_forced = (0.0, False) if matcher is None else read_mask(matcher, row)
        logprob = log_sum(row[chosen].astype(np.float64))
        data = vocabulary.text((token,))
        scores.append(TokenScore(token, data.decode("utf-8", "replace"), offset, logprob, logmass, is_forced))
        offset += len(data)
        if matcher is not None:
            matcher.advance(token)
    return tuple(scores)


def iterate_rows(lm: LanguageModel, tokens: list[int], count: int, size: int) -> Iterator[NDArray[np.floating[Any]]]:
    """Yield the rows before each of the first `count` positions of a text, ROWS per call of the model."""
    for start in range(0, count, ROWS):
        yield from rows_after(lm, [tokens[:k] for k in range(start, min(start + ROWS, count))], size)


def read_mask(matcher: Matcher, row: NDArray[np.floating[Any]]) -> tuple[float, bool]:
    """Return the log of the mass that a mask leaves, and whether it allows a single token (all ends being one)."""
    mask = matcher.mask(None)
    allowed = enumerate_tokens(mask)
    ends = matcher.constraint.vocabulary.eos_ids
    is_forced = allowed is not None and (len(allowed) == 1 or bool(np.isin(allowed, ends).all()))
    return (log_sum(row[allowed].astype(np.float64)) if is_forced else Masses(row, mask).logmass), is_forced


def check_acceptance(constraint: Constraint, vocabulary: Vocabulary, text: bytes, ends: Ends) -> None:
    """Raise an error unless the constraint accepts a text, or a continuation of it if `ends` is "prefix".

    Raises
    ------
    ArgumentError
        If the constraint was compiled for another vocabulary.
    TokenRefused
        With the text, and the offset in characters of what is refused.
    """
    if constraint.vocabulary != vocabulary:
        raise ArgumentError(
            "the constraint was compiled for another vocabulary than the model's", hint="Compile it for the model."
        )
    matcher, shown = constraint.matcher(), text.decode("utf-8", "replace")
    try:
        matcher.advance_bytes(text)
    except TokenRefused as refused:
        position = len(text[: refused.position].decode("utf-8", "ignore"))
        raise TokenRefused(
            "the constraint refuses this text",
            source=shown,
            position=position,
            hint=describe_expected(matcher, text, refused.position or 0),
        ) from None
    if ends == "token" and not matcher.is_complete:
        raise TokenRefused(
            "the constraint refuses this text, because it is not complete",
            source=shown, position=len(shown), hint=describe_next(matcher),
        )  # fmt: skip


def describe_expected(matcher: Matcher, text: bytes, position: int) -> str:
    """Describe what may stand at an offset in bytes, up to which a new matcher accepts the text."""
    matcher.advance_bytes(text[:position])
    return describe_next(matcher)


def describe_next(matcher: Matcher) -> str:
    """Describe the bytes that may come next."""
    shown = sorted(repr(chr(byte)) if byte < 128 else f"byte {byte:#x}" for byte in matcher.next_bytes())
    if matcher.is_complete:
        shown.insert(0, "the end of the text")
    more = f" and {len(shown) - 12} others" if len(shown) > 12 else ""
    return f"Allowed here: {', '.join(shown[:12])}{more}." if shown else ""
