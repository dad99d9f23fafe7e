"""What is drawn from: the model, as wrapped, at a temperature, under the constraint, weighted by a critic.

    p(x) [x in L] exp(critic(x))        p: wrap(model) at the temperature; x: texts that end within max_tokens

A `SamplingTarget` is the one place where this is declared; `sampling.draw`, `sampling.estimate` and `generate` take it
for every sampler. L is the constraint with its Style, so how JSON may be written is part of the target, too, and so is
max_tokens. How tokens are proposed (`masked_sampling.Proposal`, twists) is not: it changes costs and weights, but not
what is drawn from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError, check_type, describe_value
from .core.language_model import LanguageModel
from .critics import Critic, Guide, as_guide

__all__ = ["MODEL_TARGET", "SamplingTarget", "TemperedModel"]


@dataclass(frozen=True, slots=True)
class SamplingTarget:
    """A target; the defaults leave the model as it is.

    Attributes
    ----------
    temperature : float
        Above 0. The model's log-probabilities are divided by it, at every token, and normalised again.
    critic : callable or Guide, optional
        Log-weight of a finished text in nats, such as a soft constraint, an energy, a reward or a classifier; a Guide
        may also judge texts so far. "smc" and "pimh" draw by it, and so does "exact", which needs an upper bound: 0,
        unless a Guide gives another. The draws of the other samplers get it as a weight. See `critics`.
    wrap : callable, optional
        A function of the model that returns the LanguageModel that is meant, such as one with penalties or a mixture.
        It is applied before the temperature.
    """

    temperature: float = 1.0
    critic: Critic | Guide | None = None
    wrap: Callable[[LanguageModel], LanguageModel] | None = None

    def __post_init__(self) -> None:
        check_type("temperature", self.temperature, (int, float, np.number), "give a number above 0")
        if isinstance(self.temperature, bool):
            raise TypeError("the temperature of a target is a bool: give a number above 0")
        if not (self.temperature > 0 and np.isfinite(self.temperature)):
            raise ArgumentError(f"the temperature of a target is above 0, not {describe_value(self.temperature)}")
        if self.critic is not None:
            as_guide(self.critic)
        if self.wrap is not None and not callable(self.wrap):
            raise TypeError(f"wrap is {describe_value(self.wrap)}: give a function of a model, or None")

    def change_model(self, lm: LanguageModel) -> LanguageModel:
        """Return the model that is meant."""
        wrapped = lm if self.wrap is None else self.wrap(lm)
        return wrapped if self.temperature == 1 else TemperedModel(wrapped, self.temperature)

    @property
    def guide(self) -> Guide | None:
        """The critic as a Guide."""
        return None if self.critic is None else as_guide(self.critic)


MODEL_TARGET = SamplingTarget()


class TemperedModel:
    """A LanguageModel at a temperature: rows proportional to p(a | u) ** (1 / temperature).

    Other attributes are those of the model, so that a Markov model stays one: its `logs` are tempered, too.
    """

    def __init__(self, lm: LanguageModel, temperature: float) -> None:
        self.lm, self.temperature = lm, temperature

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of the model itself."""
        return getattr(self.lm, name)

    @property
    def logs(self) -> NDArray[np.floating[Any]]:
        """The rows of a Markov model, by context."""
        markov: Any = self.lm
        return temper_rows(markov.logs, self.temperature)

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.floating[Any]]:
        """As every LanguageModel."""
        return temper_rows(np.asarray(self.lm.next_logprobs(prefixes)), self.temperature)


def temper_rows(rows: NDArray[np.floating[Any]], temperature: float) -> NDArray[np.floating[Any]]:
    """Return rows of log-probabilities (float [n, V]) divided by a temperature and normalised, in the same dtype.

    At temperatures that are extreme for their dtype, rows are the limits: all mass on the likeliest tokens, or the same
    on every possible token. Rows that are no distribution (NaN, or all -inf) are returned as they are, for the sampler
    to name.
    """
    top = rows.max(axis=1, keepdims=True)
    broken = ~np.isfinite(top)
    with np.errstate(over="ignore"):  # what is beyond the range of a float has the log -inf
        scaled = (rows - np.where(broken, 0, top)).astype(np.float64) / temperature
        scaled -= np.log(np.exp(scaled).sum(axis=1, keepdims=True), where=~broken, out=np.zeros(top.shape))
        normalised: NDArray[np.floating[Any]] = scaled.astype(rows.dtype)
    return np.where(broken, rows, normalised) if broken.any() else normalised
