"""Whether an estimate can be trusted, and the interval that is then stated.

An interval from draws alone is blind to what no draw reached. What is known for certain, found <= Z <= bound
(`core.mass_bounds`), completes it:

    log Z      [low, high] of the draws, with high raised by the gap, cut to [log found, log bound]
    mean of f  [low, high] of the draws, moved by the share of Z that is unseen towards the least and greatest f, cut to
               what the texts found and the unseen share allow

If what is known is narrower than the first interval, it is stated alone. It is also stated alone where the draws are
too uneven or too few for an error of their own, and the gap is at most LARGEST_GAP: it holds for certain, whatever was
drawn. Samplers that draw from p given L itself miss nothing systematically: their intervals are only cut. The interval
of the probability of an event is at least the exact one of a proportion, so one that never occurred in exact draws has
an upper bound and no doubt.

Where texts are too long for bounds, the populations of a learned twist say how much the states that no text has reached
could hold (`learned_twist.value_backups.measure_gap`). That is a statement about abstract states, not a bound; it
stands in for the gap and for the unseen share where it is smaller.

An estimate is trusted if the sampler gives no reason for doubt, the draws do not contradict what is known, their error
is believed or not needed, and (unless the sampler is exact) the gap is at most LARGEST_GAP. `python -m bench
faithful.coverage` measures how often trusted intervals cover the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .core.estimates import Estimate
from .core.interval_statistics import binomial_interval
from .core.mass_bounds import LARGEST_GAP, UNKNOWN, MassBounds
from .core.results import Draws
from .explored_mass import ExploredModel

__all__ = ["CONSTANT", "Knowledge", "find_sampler_doubts", "judge_estimate"]

CONSTANT = "f was the same for all draws: how often it is not cannot be seen"
"""The doubt that bounds can remove."""
START_BIAS = 0.02
"""Share of a chain's states, on average, that may still depend on its start: a tenth of an error with 20 draws."""
FEWEST_EFFECTIVE = 20
"""Effective draws below which the normal distribution of a mean is not trusted."""
MISSED = "the draws missed texts that the rows of the model, or scouts, show"
"""The doubt where draws contradict what is known."""
FAR = 4.0
"""Standard errors from what is known at which the draws contradict it."""
ROUNDING = 1e-6
"""Difference that rounding explains."""
MOST_TEXTS = 20_000
"""Texts for which f is computed to bound its mean."""

Interval = tuple[float, float]
Function = Callable[[str], float]


class Knowledge(NamedTuple):
    """What is known besides the draws.

    exact: whether the draws are from p given L itself. bounds: of Z. explored: the model with the texts found, if there
    is a record of it. unknown: why nothing is known, if the bounds say nothing. value_gap: the gap by learned values of
    states (`learned_twist.value_backups.measure_gap`), which is no bound, but is small for long texts, too.
    """

    exact: bool
    bounds: MassBounds = UNKNOWN
    explored: ExploredModel | None = None
    unknown: str = "nothing is known about the texts and prefixes never visited"
    value_gap: float = math.inf

    @property
    def gap(self) -> float:
        """By how many nats what was never visited could raise log Z."""
        return 0.0 if self.exact else min(self.bounds.gap, self.value_gap)

    @property
    def unseen(self) -> float:
        """The share of Z that texts never found could hold."""
        return min(self.bounds.unseen, -math.expm1(-self.value_gap))


def find_sampler_doubts(parts: list[Draws], options: dict[str, Any]) -> list[str]:
    """Return the reasons for doubt that a sampler and its options give by themselves."""
    doubts = []
    proposal = options.get("proposal", getattr(options.get("move"), "proposal", None))
    if proposal is not None and not proposal.covers_all:
        doubts.append("the proposal leaves tokens out (top_k, top_p, min_p or temperature 0), so draws miss texts")
    bias = max((part.stats.get("start_bias", 0.0) for part in parts), default=0.0)
    if bias > START_BIAS:
        doubts.append(
            f"a share of {bias:.2g} of the chain's states still depends on its start: raise burn or particles"
        )
    return doubts


def judge_estimate(
    estimated: Estimate, parts: list[Draws], f: Function | None, level: float, knowledge: Knowledge, doubts: list[str]
) -> Estimate:
    """Return the estimate with the interval and the verdict that the module describes.

    Parameters
    ----------
    estimated : Estimate
        From the draws alone, with its reason for doubt if there is one.
    parts : list of Draws
        The draws, by call.
    f : callable, optional
        The function whose mean is estimated; None for log Z.
    level : float
    knowledge : Knowledge
    doubts : list of str
        Further reasons for doubt, the most important first.
    """
    known = bound_log_z(knowledge.bounds) if f is None else bound_mean(f, parts, knowledge)
    low, high = complete_interval(estimated, f, level, knowledge, known)
    seen = list_draw_doubts(estimated, parts, knowledge, known)
    alone = bool(seen) and known.is_certain and knowledge.bounds.gap <= LARGEST_GAP and math.isfinite(estimated.value)
    apart = max(low, known.low) > min(high, known.high)
    missed = apart and is_contradicted(estimated, known)
    unseen = [] if knowledge.gap <= LARGEST_GAP else [describe_unseen(knowledge)]
    reasons = [*doubts, *([MISSED] if missed else []), *([] if alone else seen + unseen)]
    if alone or apart or known.high - known.low <= high - low:
        low, high = known.low, known.high
    else:
        low, high = max(low, known.low), min(high, known.high)
    value, error = estimated.value, estimated.error
    gap = knowledge.gap if estimated.distinct else knowledge.bounds.gap  # values learned from no text say nothing
    if math.isfinite(low) and math.isfinite(high):
        half = (high - low) / 2
        value, error = min(max(value, low), high), half if alone or math.isnan(error) else min(error, half)
    return replace(
        estimated, value=value, error=error, low=low, high=high, trusted=not reasons,
        reason=reasons[0] if reasons else "", gap=gap, bracket=knowledge.bounds.bracket,
    )  # fmt: skip


class Known(NamedTuple):
    """An interval that is known besides the draws, and what f can be: whether it is True or False, its least and
    greatest value (of the texts found, unless f is an event). is_certain: whether the interval needs no assumption
    about f of texts never found.
    """

    low: float
    high: float
    is_event: bool = False
    least: float = -math.inf
    greatest: float = math.inf
    is_certain: bool = True


def bound_log_z(bounds: MassBounds) -> Known:
    """Return the interval of log Z."""
    low, high = (math.log(mass) if mass > 0 else -math.inf for mass in bounds)
    return Known(low, high)


def bound_mean(f: Function, parts: list[Draws], knowledge: Knowledge) -> Known:
    """Return the interval of the mean of f, where f of texts never found is between its least and greatest value."""
    bounds, explored = knowledge.bounds, knowledge.explored
    if explored is None:
        drawn = {one.tokens: one for part in parts for one in part}.values()
        masses = dict.fromkeys((one.text for one in drawn), 0.0)
        for one in drawn:
            masses[one.text] += math.exp(one.logprob)
    else:
        masses = explored.sum_by_text(MOST_TEXTS)
    values = {text: f(text) for text in masses}
    is_event = bool(values) and all(isinstance(value, (bool, np.bool_)) for value in values.values())
    numbers = [float(value) for value in values.values()]
    least, greatest = (0.0, 1.0) if is_event else (min(numbers, default=-math.inf), max(numbers, default=math.inf))
    found = math.fsum(masses.values())
    if not found or not math.isfinite(bounds.gap):
        return Known(-math.inf, math.inf, is_event, least, greatest)
    total = math.fsum(mass * number for mass, number in zip(masses.values(), numbers))
    rest = max(bounds.bound - found, 0.0)
    low, high = ((total + rest * extreme) / (found + rest) for extreme in (least, greatest))
    is_certain = is_event or rest <= ROUNDING * found
    return Known(low, high, is_event, least, greatest, is_certain)


def list_draw_doubts(estimated: Estimate, parts: list[Draws], knowledge: Knowledge, known: Known) -> list[str]:
    """Return why the error of the draws cannot be believed, the most important reason first; [] if it can be."""
    bounded = known.is_event and (knowledge.gap <= LARGEST_GAP if not knowledge.exact else all(p.exact for p in parts))
    doubts = [estimated.reason] if estimated.reason and not (bounded and estimated.reason == CONSTANT) else []
    if not knowledge.exact and estimated.ess < FEWEST_EFFECTIVE:
        doubts.append(f"the draws are worth only {estimated.ess:.1f} independent ones")
    return doubts


def is_contradicted(estimated: Estimate, known: Known) -> bool:
    """Whether the draws are farther from what is known than chance explains."""
    distance = max(known.low - estimated.value, estimated.value - known.high)
    return distance > FAR * estimated.error + ROUNDING


def describe_unseen(knowledge: Knowledge) -> str:
    """Return the doubt about what was never visited, where the gap is too large."""
    if math.isfinite(knowledge.gap):
        return f"texts and prefixes never visited could multiply Z by exp({knowledge.gap:.2g})"
    return knowledge.unknown


def complete_interval(
    estimated: Estimate, f: Function | None, level: float, knowledge: Knowledge, known: Known
) -> Interval:
    """Return the interval of the draws, widened by what they may have missed if that is little."""
    low, high = cover_proportion(estimated, level) if known.is_event else (estimated.low, estimated.high)
    if knowledge.exact or knowledge.gap > LARGEST_GAP:
        return low, high
    return widen_interval(low, high, knowledge, None if f is None else known)


def cover_proportion(estimated: Estimate, level: float) -> Interval:
    """Return the interval of the probability of an event, at least the exact one of a proportion of the effective draws
    (those of equal weight are as many as there are).
    """
    n = int(estimated.ess)
    if not (n and math.isfinite(estimated.value)):
        return 0.0, 1.0
    successes = estimated.value * n
    exact_low = binomial_interval(math.floor(successes + ROUNDING), n, level)[0]
    exact_high = binomial_interval(math.ceil(successes - ROUNDING), n, level)[1]
    if not math.isfinite(estimated.high - estimated.low):
        return exact_low, exact_high
    return min(estimated.low, exact_low), max(estimated.high, exact_high)


def widen_interval(low: float, high: float, knowledge: Knowledge, known: Known | None) -> Interval:
    """Return an interval of the draws, widened by what they may have missed. known: of the mean; None for log Z."""
    if known is None:
        return low, high + knowledge.gap
    unseen = knowledge.unseen
    return (1 - unseen) * low + unseen * known.least, (1 - unseen) * high + unseen * known.greatest
