"""What the mask of one step does to the distribution of the next token: raw and masked probabilities, and the mass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.constraint import Constraint
from ..engine.length_limits import make_full_error
from ..engine.matcher import Matcher
from ..sampling.core.language_model import LanguageModel, rows_after
from ..sampling.core.token_masses import allowed_tokens, draw_index
from ..vocabulary.vocabulary import Vocabulary

__all__ = ["MOST_BARS", "report_step"]

MOST_BARS = 24
"""Maximum number of likeliest tokens, of either distribution, that are reported."""


def report_step(
    lm: LanguageModel, constraint: Constraint, tokens: Sequence[int], *, bars: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Return the distribution of the next token after some tokens, as JSON data.

    text: the tokens as text. pieces: each of them. mass: the probability of all allowed tokens together; 0 if the text
    has ended. bars: the likeliest tokens of both distributions, those likeliest under the mask first, with `raw` and
    `masked` (0: not allowed). choices: the token that is likeliest under the mask, and one drawn from it.

    Raises
    ------
    TokenRefused
        If one of the tokens is not allowed.
    """
    vocabulary, matcher = constraint.vocabulary, constraint.matcher()
    for token in tokens:
        matcher.advance(token)
    shown = {
        "text": vocabulary.text(tokens).decode("utf-8", "replace"),
        "pieces": [show_token(vocabulary, token) for token in tokens],
        "is_complete": matcher.is_complete, "forced": matcher.forced().decode("utf-8", "ignore"),
    }  # fmt: skip
    if tokens and tokens[-1] in vocabulary.eos_ids:
        return {**shown, "has_ended": True, "mass": 1.0, "allowed": 0, "bars": [], "choices": None}
    check_positions(lm, tokens)
    row = np.exp(rows_after(lm, [list(tokens)], vocabulary.size)[0][: vocabulary.size].astype(np.float64))
    return {**shown, "has_ended": False, **compare_rows(vocabulary, matcher, row, bars, rng)}


def check_positions(lm: LanguageModel, tokens: Sequence[int]) -> None:
    """Raise LimitError if the context of the model has no position left for another token."""
    left: int | None = getattr(lm, "max_new_tokens", None)
    if left is not None and len(tokens) >= left:
        raise make_full_error("the text")


def compare_rows(
    vocabulary: Vocabulary, matcher: Matcher, row: NDArray[np.float64], bars: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Return the mass, the bars and the choices of a step. row: float64 [V], probabilities."""
    allowed = allowed_tokens(matcher.mask())
    mass = float(row[allowed].sum())
    masked = np.zeros_like(row)
    if mass > 0:
        masked[allowed] = row[allowed] / mass
    top = {*np.argsort(-row, kind="stable")[:bars].tolist()}
    top |= {token for token in np.argsort(-masked, kind="stable")[:bars].tolist() if masked[token] > 0}
    ordered = sorted(top, key=lambda token: (-masked[token], -row[token]))
    choices = None
    if mass > 0:
        choices = {"likeliest": int(masked.argmax()), "drawn": int(allowed[draw_index(row[allowed], rng)])}
    return {
        "mass": mass, "nats": None if mass <= 0 else max(0.0, -math.log(mass)), "allowed": len(allowed),
        "bars": [
            {
                "token": token, "piece": show_token(vocabulary, token), "raw": float(row[token]),
                "masked": float(masked[token]), "is_end": token in vocabulary.eos_ids,
                "is_allowed": bool(np.isin(token, allowed)),
            }
            for token in ordered
        ],
        "choices": choices,
    }  # fmt: skip


def show_token(vocabulary: Vocabulary, token: int) -> str:
    """Return a token as text; a special one by its name."""
    name = vocabulary.original_names.get(token)
    if token in vocabulary.eos_ids:
        return "end of text"
    return (vocabulary.text([token]) if name is None else name).decode("utf-8", "replace")
