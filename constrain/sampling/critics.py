"""Critics: log-weights of complete texts, such as energies, rewards and classifiers, as a part of the target.

    gamma(x) = p(x) [x in L] exp(critic(x))

A critic is a function of the text, or a `Guide`, which also judges texts so far. What it judges on the way only guides
proposals and is divided out again: the target depends on complete texts. So soft constraints written as energies (COLD,
Qin et al. 2022: the critic is minus the energy), rewards of prefixes (ARGS, Khanov et al. 2024), values by roll-outs
(Transfer Q*, Chakraborty et al. 2024; `deciding.RolloutValue`) and a model's judgement of its own text (Xie et al.
2023) all keep weights proper. How the samplers apply a critic:

    smc, pimh      in the weights of finished particles; a Guide also as twist and, token by token, in the proposal
    exact          as the probability with which a text is accepted, exp(critic - bound): draws are from gamma exactly
    all others     in the weights of the draws
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..base.errors import ArgumentError, check_count, describe_value
from .core.numeric_functions import call_function, read_number
from .core.results import Draws

if TYPE_CHECKING:
    from ..engine.matcher import Matcher
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["Critic", "Guide", "PrefixTwist", "as_guide", "grade_texts", "restore_bound", "reweigh_draws"]

Critic = Callable[[str], float]
"""Log-weight of a complete text in nats; -inf excludes it."""


@dataclass(frozen=True, slots=True)
class Guide:
    """A critic that also judges texts so far.

    Attributes
    ----------
    score : callable
        Log-weight of a complete text, in nats; it is part of the target.
    prefix : callable, optional
        Estimate of the score that a text so far will lead to, in nats, finite. It guides samplers and beams.
    bound : float
        No score is larger. `exact` and beams need it, and refuse larger scores. Scores that are minus an energy of 0 or
        more are at most 0.
    tokens : int
        Number of the likeliest next tokens that `prefix` judges at each step of a population.
    """

    score: Critic
    prefix: Critic | None = None
    bound: float = 0.0
    tokens: int = 8

    def __post_init__(self) -> None:
        for name in ("score", "prefix"):
            function = getattr(self, name)
            if not callable(function) and not (name == "prefix" and function is None):
                raise TypeError(f"{name} is {describe_value(function)}: give a function of a text")
        bound = read_number(self.bound)
        if not math.isfinite(bound):
            raise ArgumentError(f"bound is {describe_value(self.bound)}: it is a finite number")
        object.__setattr__(self, "bound", bound)
        object.__setattr__(self, "tokens", check_count("tokens", self.tokens, 1))

    def judge(self, text: str) -> float:
        """Return the score of a complete text. Raise ArgumentError unless it is a number below infinity."""
        score = call_function("the critic", self.score, text)
        value = read_number(score)
        if math.isnan(value) or value == math.inf:
            raise ArgumentError(f"the critic gives {text[:60]!r} {describe_value(score)}: give numbers below infinity")
        return value

    def judge_bounded(self, text: str) -> float:
        """Return the score of a complete text. Raise ArgumentError if it exceeds the bound as well."""
        value = self.judge(text)
        if value > self.bound:
            raise ArgumentError(
                f"the critic gives {text[:60]!r} {value}, which is more than its bound {self.bound}",
                hint="Give sampling.Guide(score, bound=...) with a number that no score exceeds.",
            )
        return value

    def judge_prefix(self, text: str) -> float:
        """Return the estimate for a text so far; 0 without `prefix`. Raise ArgumentError unless it is finite."""
        score = 0.0 if self.prefix is None else call_function("the critic", self.prefix, text)
        value = read_number(score)
        if not math.isfinite(value):
            shown = describe_value(score)
            raise ArgumentError(f"the critic gives the text so far {text[-60:]!r} {shown}: give finite numbers")
        return value


def as_guide(critic: Any) -> Guide:
    """Return a Guide unchanged, or one of a function of complete texts. Raise TypeError for anything else."""
    if isinstance(critic, Guide):
        return critic
    if not callable(critic):
        raise TypeError(f"critic is {describe_value(critic)}: give a function of a text, or a sampling.Guide")
    return Guide(critic)


@dataclass(frozen=True, slots=True)
class PrefixTwist:
    """The twist of a Guide, see `twists`: log psi of a text is what its prefix is judged to be."""

    guide: Guide
    vocabulary: Vocabulary

    def __call__(self, matcher: Matcher, tokens: Sequence[int], left: int) -> float:
        return self.guide.judge_prefix(self.vocabulary.decode(tokens))


def grade_texts(guide: Guide, accepts: Callable[[bytes], Any] | None) -> Callable[[bytes], float]:
    """Return the probability with which `exact` accepts a complete text: exp(score - bound), 0 where `accepts` refuses
    it.
    """

    def grade(text: bytes) -> float:
        if accepts is not None and not accepts(text):
            return 0.0
        return math.exp(guide.judge_bounded(text.decode("utf-8", "replace")) - guide.bound)

    return grade


def reweigh_draws(draws: Draws, guide: Guide) -> Draws:
    """Return draws that were made without a critic, with the scores of their texts added to their log-weights."""
    scores = {text: guide.judge(text) for text in {one.text for one in draws}}
    return replace(shift_draws(draws, [scores[one.text] for one in draws]), exact=False)


def restore_bound(draws: Draws, guide: Guide) -> Draws:
    """Return draws whose texts were accepted with probability exp(score - bound) as draws weighted by exp(score)."""
    return shift_draws(draws, [guide.bound] * len(draws))


def shift_draws(draws: Draws, shifts: Sequence[float]) -> Draws:
    """Return draws with a number added to the log-weight of each, without the stats that this makes wrong."""
    shifted = [replace(one, log_weight=one.log_weight + shift) for one, shift in zip(draws, shifts, strict=True)]
    stats = {name: value for name, value in draws.stats.items() if name not in WITHOUT_CRITIC}
    return replace(draws, draws=tuple(shifted), stats=stats)


WITHOUT_CRITIC = frozenset(
    "bound log_z ess gap steady trusted largest kl_to_target kl_to_error kl_from_target kl_from_error".split()
)
"""Stats of draws that are not true any more with other weights."""
