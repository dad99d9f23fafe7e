"""What is drawn from: the model, as wrapped, at a temperature, under the constraint, weighted by a critic.

    p(x) [x in L] exp(critic(x))        p: wrap(model) at the temperature; x: texts that end within max_tokens

A `SamplingTarget` is the one place where this is declared; `sampling.draw`, `sampling.estimate` and `generate` take it
for every sampler. L is the constraint with its Style, so how JSON may be written is part of the target, too, and so is
max_tokens. How tokens are proposed (`masked_sampling.Proposal`, twists) is not: it changes costs and weights, but not
what is drawn from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError, check_type, describe_value
from .language_model import LanguageModel
from .results import Draw, Draws

__all__ = ["MODEL_TARGET", "SamplingTarget", "TemperedModel"]


@dataclass(frozen=True, slots=True)
class SamplingTarget:
    """A target; the defaults leave the model as it is.

    Attributes
    ----------
    temperature : float
        Above 0. The model's log-probabilities are divided by it, at every token, and normalised again.
    critic : callable, optional
        Log-weight of a finished text in nats, such as a soft constraint, an energy or a classifier. "smc" and "pimh"
        draw by it; the draws of the other samplers get it as a weight.
    wrap : callable, optional
        A function of the model that returns the LanguageModel that is meant, such as one with penalties or a mixture.
        It is applied before the temperature.
    """

    temperature: float = 1.0
    critic: Callable[[str], float] | None = None
    wrap: Callable[[LanguageModel], LanguageModel] | None = None

    def __post_init__(self) -> None:
        check_type("temperature", self.temperature, (int, float, np.number), "give a number above 0")
        if not (self.temperature > 0 and np.isfinite(self.temperature)):
            raise ArgumentError(f"the temperature of a target is above 0, not {describe_value(self.temperature)}")
        for name in ("critic", "wrap"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise TypeError(f"{name} is {describe_value(getattr(self, name))}: give a function, or None")

    def change_model(self, lm: LanguageModel) -> LanguageModel:
        """Return the model that is meant."""
        wrapped = lm if self.wrap is None else self.wrap(lm)
        return wrapped if self.temperature == 1 else TemperedModel(wrapped, self.temperature)

    def weigh_draws(self, draws: Draws) -> Draws:
        """Multiply the weights of draws that a sampler made without the critic by exp(critic)."""
        if self.critic is None:
            return draws
        known = {draw.text: float(self.critic(draw.text)) for draw in draws if draw.log_weight > -np.inf}
        if any(np.isnan(value) or value == np.inf for value in known.values()):
            raise ArgumentError("critics give log-weights below infinity")
        weighed = tuple(add_weight(draw, known.get(draw.text, 0.0)) for draw in draws)
        stats = {name: value for name, value in draws.stats.items() if name not in WITHOUT_CRITIC}
        return replace(draws, draws=weighed, stats=stats, exact=False)


MODEL_TARGET = SamplingTarget()
WITHOUT_CRITIC = frozenset(
    "bound log_z ess gap steady trusted largest kl_to_target kl_to_error kl_from_target kl_from_error".split()
)
"""Stats of draws that are not true any more with other weights."""


def add_weight(draw: Draw, log_weight: float) -> Draw:
    """Return a draw with a log-weight added to its own."""
    return replace(draw, log_weight=draw.log_weight + log_weight)


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
    """Return rows of log-probabilities (float [n, V]) divided by a temperature and normalised, in the same dtype."""
    scaled = rows / rows.dtype.type(temperature)
    top = scaled.max(axis=1, keepdims=True)
    normalised: NDArray[np.floating[Any]] = scaled - top - np.log(np.exp(scaled - top).sum(axis=1, keepdims=True))
    return normalised
