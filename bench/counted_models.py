"""Models that count the prefixes that are evaluated, with a cache of rows or without one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrain.sampling import LanguageModel

__all__ = ["CachedModel", "CountedModel"]


class CountedModel:
    """Wrap a model and count the prefixes that it evaluates, in `evaluations`."""

    def __init__(self, lm: LanguageModel) -> None:
        self.lm, self.evaluations = lm, 0

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.floating[Any]]:
        """See `LanguageModel`."""
        self.evaluations += len(prefixes)
        return self.lm.next_logprobs(prefixes)


class CachedModel(CountedModel):
    """Wrap a model, count evaluations, and cache rows: repeating a measurement takes no forward pass."""

    def __init__(self, lm: LanguageModel) -> None:
        super().__init__(lm)
        self.rows: dict[tuple[int, ...], NDArray[np.floating[Any]]] = {}

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.floating[Any]]:
        """See `LanguageModel`. A prefix whose row is cached counts as an evaluation, too."""
        self.evaluations += len(prefixes)
        missing = [prefix for prefix in {tuple(prefix): None for prefix in prefixes} if prefix not in self.rows]
        for at in range(0, len(missing), 64):
            part = missing[at : at + 64]
            self.rows.update(zip(part, self.lm.next_logprobs([list(prefix) for prefix in part])))
        return np.array([self.rows[tuple(prefix)] for prefix in prefixes])
