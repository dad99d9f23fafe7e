"""Estimates with confidence intervals, from any sampler: the mean of a function of the text, a probability, or log Z.

Draws are grouped into units that are independent, or at least uncorrelated. Unit k has a mean A of w f and a mean B of
w. Both are unbiased (see `core.results`), so the estimate is a ratio of means, with a standard error by the delta
method:

    value = sum A / sum B        error^2 = sum (A - value B)^2 / (m (m - 1)) / (mean B)^2        m units

    masked, awrs, markov, and smc with particles=     a unit is a draw
    smc as one population, asap, without_replacement  a unit is a separate call, of n / batches draws
    exact, pimh                                       a unit is a call, with B = 1: equal weights, draws from p given L

For log Z the estimate is the log of the mean B, where B is always the mean weight. Intervals use Student's t
distribution with the degrees of freedom of `estimate_degrees`, which are few if few units dominate the error. Source:
Owen, Monte Carlo theory, methods and examples, chapter 9 (ratio estimates).

Draws do not show what they missed. So the model is recorded while a sampler uses it, scouts look for unlikely modes
(`explored_mass`), and what is then known for certain about p(L) widens or narrows the interval (`trusted_intervals`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError, check_count, check_type, describe_value
from .core.estimates import Estimate
from .core.interval_statistics import estimate_degrees, student_quantile
from .core.language_model import LanguageModel
from .core.numeric_functions import call_function, read_number
from .core.results import Draws, effective_size
from .core.sampler_arguments import check_common_arguments
from .core.weight_statistics import LARGEST
from .explored_mass import ExploredModel
from .sampler_choice import choose_sampler
from .sampler_table import SAMPLERS, add_post_filter, draw
from .sampling_target import MODEL_TARGET, SamplingTarget
from .success_trie import SuccessTrie
from .trusted_intervals import CONSTANT, Knowledge, find_sampler_doubts, judge_estimate

if TYPE_CHECKING:
    from ..engine.constraint import Constraint

__all__ = ["Estimate", "estimate", "estimate_from"]

FEWEST = 8
"""Number of units below which a standard error is not trusted: with 8 units it is itself uncertain by a quarter."""
SCOUTS = 0.5
"""Rows of the model that scouts visit, relative to those of the draws."""

Floats = NDArray[np.float64]
Function = Callable[[str], float]


def estimate(
    lm: LanguageModel,
    constraint: Constraint,
    f: Function | None = None,
    *,
    sampler: str = "masked",
    n: int = 400,
    batches: int = 16,
    level: float = 0.95,
    rng: np.random.Generator,
    max_tokens: int,
    scouts: float = SCOUTS,
    **options: Any,
) -> Estimate:
    """Estimate the mean of f(text) under p given L: a probability if f returns bool, and log p(L) if f is None.

    Parameters
    ----------
    lm : LanguageModel
        The model, after its prompt.
    constraint : Constraint
        What the texts must satisfy.
    f : callable, optional
        Function of a text that returns a finite number.
    sampler : str
        As in `sampling.draw`; "auto" is resolved once.
    n : int
        Total number of draws; at least 2.
    batches : int
        Calls among which the draws are divided, for samplers whose draws depend on each other; at least 2. With fewer
        draws there are as many calls as draws.
    level : float
        Level of the confidence interval, between 0 and 1.
    rng : numpy.random.Generator
    max_tokens : int
        Maximum number of tokens of a text, end token included.
    scouts : float
        Rows of the model that are spent on prefixes that the draws did not reach, relative to the rows of the draws
        (see `explored_mass`). They are no draws, and only teach what is known about the rest. 0 for none.
    **options
        Options of the sampler, and checker=, spellings= and target= as in `sampling.draw`.

    Returns
    -------
    Estimate
        Trusted if its interval covers the truth as often as its level says; `reason` says why it is not.

    Raises
    ------
    ValueError
        If f returns a number that is not finite, or n or batches is less than 2. Otherwise what the sampler raises.
    """
    check_count("n", n)
    check_count("batches", batches)
    check_type("sampler", sampler, str, "the name of a sampler")
    _check_arguments(f, level)
    if min(n, batches) < 2:
        raise ArgumentError(f"a standard error needs 2 draws and 2 batches or more, not {n!r} and {batches!r}")
    check_common_arguments(lm, constraint, n, rng, max_tokens)
    check_type("scouts", scouts, (int, float), "a number of 0 or more")
    if not 0 <= scouts < math.inf:
        raise ArgumentError(f"scouts must be a number of 0 or more, not {scouts!r}")
    critic = options.get("critic")
    if isinstance(target := options.pop("target", MODEL_TARGET), SamplingTarget):
        lm, critic = target.change_model(lm), critic if target.critic is None else target.critic
        target = SamplingTarget(critic=target.critic)
    arguments: dict[str, Any] = {"rng": rng, "max_tokens": max_tokens, "target": target, **options}
    if sampler == "auto":
        choice = choose_sampler(lm, constraint, rng=rng, max_tokens=max_tokens)
        sampler, arguments = choice.sampler, {**arguments, **choice.options}
    explored = None if critic is not None else record_model(lm, constraint, sampler, max_tokens, arguments)
    f = None if f is None else check_results(f)
    model = lm if explored is None else explored
    parts, kind = draw_units(model, constraint, sampler, n, batches, arguments)
    if kind == "equal calls" and (f is None or (critic is not None and SAMPLERS[sampler].critic == "weight")):
        kind = "calls"
    estimated = _compute_estimate(parts, f, kind, level)
    if sampler == "markov" and f is None and critic is None:
        return make_certain(estimated)
    exact = SAMPLERS[sampler].target == "exact" and arguments.get("order", "exact") == "exact"
    if critic is not None:
        knowledge = Knowledge(False, unknown="the critic of texts never seen may be any number")
    elif explored is not None:
        for one in (drawn for part in parts for drawn in part if explored.checked):
            explored.add_text(one.tokens)
        explored.explore(round(scouts * explored.rows))
        value_gap = parts[-1].stats.get("value_gap", math.inf)  # the last population has learned from all others
        knowledge = Knowledge(exact, explored.bounds(), explored, value_gap=value_gap)
    else:
        knowledge = Knowledge(exact)
    return judge_estimate(estimated, parts, f, level, knowledge, find_sampler_doubts(parts, arguments))


def draw_units(
    lm: LanguageModel, constraint: Constraint, sampler: str, n: int, batches: int, arguments: dict[str, Any]
) -> tuple[list[Draws], str]:
    """Return n draws in one call, if they are independent, or in several; and what a unit is, see `_compute_estimate`.

    arguments: further arguments of `draw` by name.
    """
    row = SAMPLERS.get(sampler)
    by_draw = row is not None and row.unit == "draw"
    if row is None or by_draw or (sampler == "smc" and arguments.get("particles") is not None):
        return [draw(lm, constraint, sampler=sampler, n=n, **arguments)], "draws"
    if row.uses_trie:  # calls share what they learn: later ones are cheaper, and still unbiased
        arguments = {"trie": SuccessTrie(arguments["max_tokens"]), **arguments}
    batches = min(batches, n)
    shares = [n // batches + (i < n % batches) for i in range(batches)]
    parts = [draw(lm, constraint, sampler=sampler, n=share, **arguments) for share in shares]
    return parts, "equal calls" if row.unit == "equal call" else "calls"


def record_model(
    lm: LanguageModel, constraint: Constraint, sampler: str, max_tokens: int, options: dict[str, Any]
) -> ExploredModel | None:
    """Return the model with a record of what a sampler asks of it; None if nothing could be concluded from that:
    without masks, and where the model is not called. (Nor with a critic, which may be any number for texts not seen.)
    """
    filtered = add_post_filter(constraint, "exact", options.get("checker"), options.get("spellings", "all"))
    if sampler == "markov" or not hasattr(filtered.matcher(), "mask"):
        return None
    checked = options.get("accepts") is not None or options.get("viable") is not None
    return ExploredModel(lm, filtered, max_tokens, checked=checked)


def make_certain(estimated: Estimate) -> Estimate:
    """Return an estimate of log Z that was computed and not estimated."""
    value = estimated.value
    return replace(
        estimated, error=0.0, low=value, high=value, trusted=True, reason="", gap=0.0, bracket=(value, value)
    )


def estimate_from(draws: Draws, f: Function | None = None, *, level: float = 0.95) -> Estimate:
    """Estimate as `estimate` does, from draws that are independent of each other.

    These are draws of "masked", "awrs", "exact", "markov", and of "smc" with particles=. For log Z, the equal weights
    of "exact" and "markov" show no error; `estimate` repeats these samplers instead. What the draws missed is judged by
    `Draws.bounds` only: `estimate`, which records the model and sends scouts, knows more.

    Parameters
    ----------
    draws : Draws
        What `sampling.draw` returned.
    f : callable, optional
        As in `estimate`.
    level : float
        Level of the confidence interval.

    Returns
    -------
    Estimate
    """
    check_type("draws", draws, Draws, "give what sampling.draw returned")
    _check_arguments(f, level)
    f = None if f is None else check_results(f)
    estimated = _compute_estimate([draws], f, "draws", level)
    if "bound" not in draws.stats and not draws.exact:  # made by hand: nothing is known, and nothing is said
        return estimated
    return judge_estimate(estimated, [draws], f, level, Knowledge(draws.exact, draws.bounds), [])


def _check_arguments(f: object, level: float) -> None:
    """Raise TypeError or ArgumentError for an invalid f or level, before the model is called."""
    if f is not None and not callable(f):
        raise TypeError(f"f is {describe_value(f)}: give a function of a text that returns a number, or None")
    check_type("level", level, (int, float), "a number between 0 and 1")
    if not 0 < level < 1:
        raise ArgumentError(f"level must be between 0 and 1, not {level!r}")


def check_results(f: Function) -> Function:
    """Return f with a cache. It raises ArgumentError where f fails or returns something else than a finite number."""

    @cache
    def checked(text: str) -> Any:
        value = call_function("f", f, text)
        if not math.isfinite(read_number(value)):
            raise ArgumentError(f"f({text[-60:]!r}) is {describe_value(value)}: give finite numbers")
        return value

    return checked


def _compute_estimate(parts: list[Draws], f: Function | None, kind: str, level: float) -> Estimate:
    """Compute the estimate. kind: what a unit is, "draws", "calls" or "equal calls"."""
    logs = np.concatenate([np.append(part.log_weights, np.full(part.unfinished, -np.inf)) for part in parts])
    evaluated = [_evaluate_function(part, f) for part in parts]
    values, is_event = np.concatenate([values for values, _ in evaluated]), all(bools for _, bools in evaluated)
    top = float(logs.max(initial=-np.inf))
    n = len(logs)
    if top == -np.inf:
        undefined = -math.inf if f is None else math.nan
        return Estimate(
            undefined, math.nan, -math.inf, math.inf, 0.0, n, trusted=False, reason="all draws have weight zero"
        )
    weights = np.exp(equalise_weights(logs) if kind == "equal calls" else logs - top)
    if kind == "draws":
        numerators, denominators = weights * values, weights
    else:
        edges = np.cumsum([0, *(part.made for part in parts)])
        spans = [slice(a, b) for a, b in zip(edges[:-1], edges[1:]) if b > a]
        numerators = np.array([(weights[span] * values[span]).mean() for span in spans])
        denominators = np.array([weights[span].mean() for span in spans])
    units, mean = len(denominators), float(denominators.mean())
    value = float(numerators.sum() / denominators.sum())
    residuals = denominators - mean if f is None else numerators - value * denominators
    error = math.sqrt(float((residuals**2).sum()) / (units * (units - 1))) / mean if units > 1 else math.nan
    counted = values[weights > 0]
    equal = kind == "equal calls"
    ess = pooled_size(parts, [equalise_weights(part.log_weights) if equal else part.log_weights for part in parts])
    if equal:
        spread = float(counted.var())
        ess = min(ess, spread / error**2) if error > 0 else ess
    reason = _explain_doubt(units, denominators / denominators.sum(), f is not None and len(set(counted.tolist())) == 1)
    half_width = student_quantile(0.5 + level / 2, estimate_degrees(residuals)) * error if units > 1 else math.inf
    if f is None:
        value = math.log(mean) + top
    low, high = value - half_width, value + half_width
    if is_event:
        low, high = max(low, 0.0), min(high, 1.0)
    distinct = len({one.text for part in parts for one in part if one.log_weight > -math.inf})
    return Estimate(value, error, low, high, ess, n, trusted=not reason, reason=reason, distinct=distinct)


def equalise_weights(log_weights: Floats) -> Floats:
    """Return log-weights of 0 in place of all that are above -inf."""
    return np.where(log_weights > -np.inf, 0.0, -np.inf)


def pooled_size(parts: list[Draws], log_weights: list[Floats]) -> float:
    """Return the effective sample size of the draws of several calls, which are independent of each other."""
    groups, first = list[int](), 0
    for part in parts:
        own = range(len(part)) if part.groups is None else np.unique(part.groups, return_inverse=True)[1].tolist()
        groups += [first + group for group in own]
        first += len(part)
    return effective_size(np.concatenate(log_weights), groups)


def _evaluate_function(draws: Draws, f: Function | None) -> tuple[Floats, bool]:
    """Return f of each text with positive weight, 0 for the others, and whether all values are bools. f is called once
    per text.
    """
    if f is None:
        return np.ones(draws.made), False
    cached: dict[str, float] = {}
    for one in draws:
        if one.log_weight > -np.inf and one.text not in cached:
            cached[one.text] = f(one.text)
    event = all(isinstance(value, (bool, np.bool_)) for value in cached.values())
    numbers = {text: float(value) for text, value in cached.items()}
    results = [numbers.get(one.text, 0.0) if one.log_weight > -np.inf else 0.0 for one in draws]
    return np.array(results + [0.0] * draws.unfinished), event


def _explain_doubt(m: int, shares: Floats, constant: bool) -> str:
    """Return why a standard error cannot be trusted, or "". shares: of the weight, by unit."""
    if m < FEWEST:
        return f"{m} independent units are too few to see an error by"
    if shares.max() > max(LARGEST, 4 / m):
        return f"one of {m} units has {shares.max():.0%} of all weight"
    if constant:
        return CONSTANT
    return ""
