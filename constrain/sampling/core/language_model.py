"""The interface that samplers need of a model: the distribution of the next token."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError
from ...base.work import check_work

__all__ = ["TOLERANCE", "LanguageModel", "check_distribution", "check_mass", "describe_fault", "rows_after"]

TOLERANCE = 1e-2
"""Permitted deviation of the sum of a row from 1; half-precision models stay within it."""


@runtime_checkable
class LanguageModel(Protocol):
    """A model that returns the distribution of the next token. It holds its prompt itself.

    If it has an attribute `vocabulary`, samplers refuse constraints of other vocabularies.
    """

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.floating[Any]]:
        """Return natural logs of the next token's probability after each prefix: float [n, V], rows normalised.

        End tokens are included. The generation loop requests all positions of a forced run at once, as a chain of
        prefixes each of which extends the one before; a model with a cache answers it in one pass.
        """
        ...


def rows_after(
    lm: LanguageModel, prefixes: list[list[int]], size: int, *, maxima: bool = True
) -> NDArray[np.floating[Any]]:
    """Call `next_logprobs` and validate the rows: float [len(prefixes), V], V >= size, each with a finite maximum of at
    most 0. maxima: False if the caller validates the maximum of a row when it first reads the row.

    The row after the empty text, with which every sampler begins, must also sum to 1, so that unnormalised logits are
    detected at once; later rows cost one maximum each. Raises ValueError for another shape or dtype, NaN, numbers above
    0, rows of minus infinity, and a first row that does not sum to 1.
    """
    check_work()
    answer = lm.next_logprobs(prefixes)
    try:
        rows = np.asarray(answer)
    except ValueError:  # rows of different lengths
        rows = np.empty(0, object)
    if rows.ndim != 2 or len(rows) != len(prefixes) or rows.shape[1] < size or rows.dtype.kind != "f":
        raise ArgumentError(
            f"the model returned {rows.dtype}{list(rows.shape)} for {len(prefixes)} prefixes: "
            f"it must return floats, rows of at least {size} log-probabilities, one for each prefix"
        )
    for row, top in enumerate(rows.max(axis=1).tolist() if maxima else ()):
        if not -np.inf < top <= TOLERANCE:
            raise ArgumentError(f"{describe_fault(top)} (after {len(prefixes[row])} tokens)")
    if prefixes and not prefixes[0]:
        check_distribution(rows[0])
    return rows


def check_distribution(row: NDArray[np.floating[Any]]) -> None:
    """Raise ValueError unless `row` (float [V], natural logs) is a probability distribution."""
    top = float(row.max())
    if not -np.inf < top <= TOLERANCE:
        raise ArgumentError(describe_fault(top))
    single = row if row.dtype.itemsize >= 4 else row.astype(np.float32)  # half precision loses the tail
    total = float(np.exp(single).sum(dtype=np.float64))
    if abs(total - 1) > TOLERANCE:
        raise ArgumentError(
            f"the model's probabilities do not sum to 1 but to {total:.4g}: apply log_softmax to the logits"
        )


def check_mass(logmass: float) -> None:
    """Raise ValueError if `logmass`, the log of the summed probability of some tokens, is above 0."""
    if logmass > TOLERANCE:
        raise ArgumentError(
            f"the model's row is not a distribution: the allowed tokens alone sum to {np.exp(min(logmass, 700)):.4g}"
        )


def describe_fault(top: float) -> str:
    """Return an error message for a row whose largest number is `top`."""
    if np.isnan(top):
        return "the model's log-probabilities are not numbers (NaN)"
    if top == -np.inf:
        return "the model gives no token any probability: its log-probabilities are all minus infinity (all -inf)"
    return f"the model's log-probabilities go up to {top:.4g}, but are at most 0 in a distribution: apply log_softmax"
