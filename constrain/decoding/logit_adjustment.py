"""Penalties and biases: adjustments of a model's logits that depend on the tokens so far.

They define the distribution p that a text is drawn from ("the model"), unlike temperature, top-k, top-p and min-p,
which only change how tokens are proposed (`sampling.core.masked_sampling`). So `Generation.logprob` is a
log-probability under the adjusted model, and a sampler that is exact for a model is exact for the adjusted one.

With l the logit of a token, c(prompt), c(text) how often it occurs in the prompt and in the text so far, the order is
that of transformers and vLLM:

    l <- l + bias                                                 logit_bias (OpenAI API)
    l <- l * r if l < 0 else l / r      where c(prompt) + c(text) > 0    repetition penalty r (Keskar et al. 2019, 4.1)
    l <- l - f * c(text) - d * [c(text) > 0]                      frequency penalty f, presence penalty d (OpenAI API)

The repetition penalty depends on the scale of the logits: log-probabilities, which are logits shifted by a constant,
are penalised differently. `AdjustedModel` therefore uses the logits of a model that has a method `next_logits`, as
models of the transformers library do, and its log-probabilities otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError, describe_value
from ..sampling.core.language_model import LanguageModel
from ..sampling.core.results import log_sum

__all__ = ["UNADJUSTED", "AdjustedModel", "LogitAdjustment", "adjust_logits", "adjust_rows"]

Row = NDArray[np.floating[Any]]
LARGEST = 1_000_000
"""Largest absolute value of a penalty or bias."""
CANCELLED = 0.1
"""Remaining probability of the unadjusted tokens below which a row is summed up again instead of by differences."""


@dataclass(frozen=True, slots=True)
class LogitAdjustment:
    """Penalties and biases; the defaults leave the model's distribution as it is.

    Attributes
    ----------
    repetition_penalty : float
        Above 0. Tokens of the prompt and of the text so far become less likely above 1, and likelier below.
    presence_penalty : float
        Subtracted from the logits of tokens of the text so far.
    frequency_penalty : float
        Subtracted from the logits of tokens of the text so far, once for each time that they occur in it.
    logit_bias : Mapping of int to float
        Added to the logits of tokens, by id; -inf excludes a token.
    biased, biases : ndarray
        The same as arrays, for each step: ids, int64 [n], ascending, and float64 [n].

    Raises
    ------
    ArgumentError
        If a number is out of range.
    TypeError
        If a value is not a number, or logit_bias is not a mapping from token ids to numbers.
    """

    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    biased: NDArray[np.int64] = field(init=False, repr=False, compare=False)
    biases: NDArray[np.float64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("repetition_penalty", "presence_penalty", "frequency_penalty"):
            object.__setattr__(self, name, check_logit(name, getattr(self, name)))
        if self.repetition_penalty <= 0:
            raise ArgumentError(f"repetition_penalty must be above 0, not {self.repetition_penalty!r}")
        if not isinstance(self.logit_bias, Mapping):
            raise TypeError(f"logit_bias is {describe_value(self.logit_bias)}: give a dict of biases by token")
        biases = {}
        for token, bias in self.logit_bias.items():
            if isinstance(token, bool) or not isinstance(token, (int, np.integer)):
                raise TypeError(f"logit_bias has the key {describe_value(token)}: give ids of tokens")
            if token < 0:
                raise ArgumentError(f"logit_bias has the key {token}: ids of tokens begin at 0")
            biases[int(token)] = check_bias(token, bias)
        kept = {token: biases[token] for token in sorted(biases) if biases[token]}
        object.__setattr__(self, "logit_bias", MappingProxyType(kept))
        object.__setattr__(self, "biased", np.array(list(kept), np.int64))
        object.__setattr__(self, "biases", np.array(list(kept.values()), np.float64))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is adjusted."""
        penalties = self.repetition_penalty, self.presence_penalty, self.frequency_penalty
        return penalties == (1.0, 0.0, 0.0) and not self.logit_bias

    def check_tokens(self, size: int) -> None:
        """Raise ArgumentError for a bias of a token that a vocabulary of `size` tokens does not have."""
        unknown = next((token for token in self.logit_bias if token >= size), None)
        if unknown is not None:
            raise ArgumentError(f"logit_bias has token {unknown}: the vocabulary has {size} tokens")


def check_logit(name: str, value: object) -> float:
    """Return a number as a float. Raise TypeError or ArgumentError unless it is one, and of at most LARGEST."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} is {describe_value(value)}: it is a number")
    if not -LARGEST <= value <= LARGEST:  # also NaN
        raise ArgumentError(f"{name} is {describe_value(value)}: it is a number from {-LARGEST:,} to {LARGEST:,}")
    return float(value)


def check_bias(token: object, bias: object) -> float:
    """Return the bias of a token as a float, which may be -inf. Raise TypeError or ArgumentError."""
    return -np.inf if isinstance(bias, float) and bias == -np.inf else check_logit(f"logit_bias[{token!r}]", bias)


UNADJUSTED = LogitAdjustment()


def adjust_logits(logits: Row, adjustment: LogitAdjustment, prompt: Iterable[int], text: Iterable[int]) -> Row:
    """Return adjusted logits of the next token.

    Parameters
    ----------
    logits : ndarray of float, shape (V,)
        Logits, or log-probabilities where there is no repetition penalty. Not modified.
    adjustment : LogitAdjustment
    prompt, text : iterable of int
        The tokens of the prompt and of the text so far; ids of V or more are ignored.

    Returns
    -------
    ndarray of the same shape and dtype
        Not normalised.
    """
    adjusted, _ = adjust_changed(logits, adjustment, set(prompt), Counter(text))
    return adjusted


def adjust_rows(
    logits: Row, adjustment: LogitAdjustment, prompts: Sequence[Iterable[int]], texts: Sequence[Iterable[int]]
) -> Row:
    """Return adjusted logits (float [n, V]) of a batch, as `adjust_logits` for each row, prompt and text."""
    rows = [adjust_logits(row, adjustment, *tokens) for row, *tokens in zip(logits, prompts, texts, strict=True)]
    return np.stack(rows) if rows else logits.copy()


def adjust_changed(
    logits: Row, adjustment: LogitAdjustment, prompt: set[int], counts: Mapping[int, int]
) -> tuple[Row, NDArray[np.int64]]:
    """Return adjusted logits (float [V]) and the ids that may have changed, ascending.

    prompt: the tokens of the prompt. counts: how often each token occurs in the text so far.
    """
    written = list_ids(counts, len(logits))
    seen = written
    if adjustment.repetition_penalty != 1:
        seen = unite_ids(list_ids(prompt, len(logits)), written)
    count = int(np.searchsorted(adjustment.biased, len(logits)))
    ids = unite_ids(adjustment.biased[:count], seen)
    values = logits[ids].astype(np.float64)
    values[np.searchsorted(ids, adjustment.biased[:count])] += adjustment.biases[:count]
    occurrences = np.zeros(len(ids))
    occurrences[np.searchsorted(ids, written)] = [counts[token] for token in written.tolist()]
    if adjustment.repetition_penalty != 1:
        was_seen = np.zeros(len(ids), np.bool_)
        was_seen[np.searchsorted(ids, seen)] = True
        penalised = np.where(values < 0, values * adjustment.repetition_penalty, values / adjustment.repetition_penalty)
        values = np.where(was_seen, penalised, values)
    values -= adjustment.frequency_penalty * occurrences + adjustment.presence_penalty * (occurrences > 0)
    adjusted = logits.copy()
    adjusted[ids] = values
    return adjusted, ids


def list_ids(tokens: Iterable[int], size: int) -> NDArray[np.int64]:
    """Return the different tokens below `size`, ascending."""
    return np.array(sorted({token for token in tokens if token < size}), np.int64)


def unite_ids(ids: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the ids of two ascending arrays without repetitions, ascending. Fast where the second one is short."""
    places = np.searchsorted(ids, others)
    is_new = np.append(ids, -1)[places] != others
    return np.insert(ids, places[is_new], others[is_new])


def renormalise(before: Row, after: Row, changed: NDArray[np.int64]) -> Row:
    """Return `after` as log-probabilities, where `before` is a row of log-probabilities that differs at `changed` only.

    The sum is computed from the differences unless too little of the row is unchanged.
    """
    old, new = before[changed].astype(np.float64), after[changed].astype(np.float64)
    rest = 1 - float(np.exp(old).sum())
    if rest < CANCELLED:
        return normalise_logits(after)
    return subtract(after, log_sum(np.append(new, np.log(rest))))


def normalise_logits(logits: Row) -> Row:
    """Return the log-probabilities (float [V]) of logits, in their dtype."""
    return subtract(logits, log_sum(logits.astype(np.float64)))


def subtract(row: Row, number: float) -> Row:
    """Return `row - number` in the dtype of the row; the row itself, if all its tokens are excluded."""
    difference: Row = row - row.dtype.type(number) if number > -np.inf else row
    return difference


class AdjustedModel:
    """A `LanguageModel` with penalties and biases: what a sampler is given in place of the model.

    Parameters
    ----------
    lm : LanguageModel
        The model after its prompt. If it has a method `next_logits(prefixes)`, logits are adjusted, otherwise
        log-probabilities.
    adjustment : LogitAdjustment
    prompt : iterable of int
        The tokens of its prompt, for the repetition penalty.
    """

    def __init__(self, lm: LanguageModel, adjustment: LogitAdjustment, prompt: Iterable[int] = ()) -> None:
        self.lm, self.adjustment, self.prompt = lm, adjustment, set(prompt)
        self.uses_logits = adjustment.repetition_penalty != 1 and hasattr(lm, "next_logits")

    @property
    def max_new_tokens(self) -> int | None:
        """Maximum number of tokens that the model has positions for, or None."""
        return getattr(self.lm, "max_new_tokens", None)

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.floating[Any]]:
        """Return the log-probabilities (nats) of the next token under the adjusted model, float [n, V]."""
        if self.uses_logits:
            rows = np.asarray(self.lm.next_logits(prefixes))  # type: ignore[attr-defined]
        else:
            rows = np.asarray(self.lm.next_logprobs(prefixes))
        return np.stack([self.adjust(row, prefix) for row, prefix in zip(rows, prefixes)]) if len(rows) else rows

    def adjust(self, row: Row, prefix: list[int]) -> Row:
        """Return the log-probabilities after a prefix, of a row of the model."""
        after, changed = adjust_changed(row, self.adjustment, self.prompt, Counter(prefix))
        if self.uses_logits:
            return normalise_logits(after)
        return renormalise(row, after, changed)
