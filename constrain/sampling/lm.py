"""What a sampler asks of a model: the law of the next token, and nothing else."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["LanguageModel", "rows_after"]


@runtime_checkable
class LanguageModel(Protocol):
    """Anything that gives the law of the next token. The prompt is the model's own affair."""

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.floating[Any]]:
        """Natural logs of the next token's probability after each prefix: float [n, V], rows normalised.

        End tokens are included. A chain of prefixes, each extending the one before, is how the generation loop asks
        for all positions of a forced run at once: a model with a cache answers it in one pass.
        """
        ...


def rows_after(lm: LanguageModel, prefixes: list[list[int]], size: int) -> NDArray[np.floating[Any]]:
    """`next_logprobs`, its shape checked: float [len(prefixes), V], V >= size. Raises ValueError for another one."""
    rows = np.asarray(lm.next_logprobs(prefixes))
    if rows.ndim != 2 or len(rows) != len(prefixes) or rows.shape[1] < size or rows.dtype.kind != "f":
        raise ValueError(
            f"the model gave {rows.dtype}{list(rows.shape)} for {len(prefixes)} prefixes: "
            f"rows of at least {size} log-probabilities were asked for"
        )
    return rows
