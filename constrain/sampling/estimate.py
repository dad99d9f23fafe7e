"""Estimates with error bars: the mean of a function of the text, the probability of an event, log Z. By any sampler.

What a sampler gives is cut into units that are independent, or at least uncorrelated; unit k has a mean A of w f and a
mean B of w. Both are unbiased (see `base`), so the answer is a ratio of means, and the delta method gives its error:

    value = sum A / sum B        error^2 = sum (A - value B)^2 / (m (m - 1)) / (mean B)^2        m units

    masked, awrs, markov, and smc with particles=     a unit is a draw
    smc as one population, asap, without_replacement  a unit is a call of its own, of n / batches draws
    exact, pimh                                       the same with B = 1: they draw from the law, under one weight

For log Z the answer is the log of the mean B, in all cases with B the mean weight. Intervals are Student's, of as many
degrees as the spread of the squares allows (`degrees`): few where few units make the error.
Source: Owen, Monte Carlo theory, methods and examples, chapter 9 (ratio estimates).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, check_count, check_type, describe
from .base import Draws, log_sum
from .lm import LanguageModel
from .stats import LARGEST
from .success_trie import SuccessTrie

if TYPE_CHECKING:
    from ..compile import Constraint

__all__ = ["Estimate", "estimate", "estimate_from"]

FEWEST = 8
"""Units below which a standard error is itself a guess: of 8, it is off by a quarter either way."""
BY_DRAW = frozenset({"masked", "awrs", "markov"})
BY_LAW = frozenset({"exact", "pimh"})

LEARNING = frozenset({"exact", "asap", "without_replacement"})

Floats = NDArray[np.float64]
Function = Callable[[str], float]


@dataclass(frozen=True, slots=True)
class Estimate:
    """value with its standard error; low, high: an interval that holds the truth with the probability asked for.

    ess: how many draws from the right law the weights are worth; n: draws made. trusted: whether the error can be
    believed; if not, reason says why not.
    """

    value: float
    error: float
    low: float
    high: float
    ess: float
    n: int
    trusted: bool
    reason: str = ""

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high)."""
        return self.low, self.high


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
    **options: Any,
) -> Estimate:
    """The mean of f(text) under p given L; the probability of an event, where f gives bool; log p(L), where f is None.

    n: draws in all; batches: calls that they are shared among, for samplers whose draws depend on each other; level:
    of the interval. sampler, options: as of `sampling.draw`; "auto" is chosen once. Raises what the sampler raises,
    ValueError for values that are not finite, fewer than 2 batches, or n below that.
    """
    from . import draw

    check_count("n", n)
    check_count("batches", batches)
    check_type("sampler", sampler, str, "the name of a sampler")
    _check_of(f, level)
    if batches < 2 or n < batches:
        raise ArgumentError(f"batches must be 2 or more and n at least as many, not {batches!r} and {n!r}")
    given: dict[str, Any] = {"rng": rng, "max_tokens": max_tokens, **options}
    if sampler == "auto":
        from .auto import choose

        choice = choose(lm, constraint, rng=rng, max_tokens=max_tokens)
        sampler, given = choice.sampler, {**given, **choice.options}
    if sampler in BY_DRAW or (sampler == "smc" and given.get("particles") is not None):
        parts, kind = [draw(lm, constraint, sampler=sampler, n=n, **given)], "draws"
    else:
        if sampler in LEARNING:  # what one call learns makes the next one cheaper, and leaves it unbiased
            given.setdefault("trie", SuccessTrie(max_tokens))
        shares = [n // batches + (i < n % batches) for i in range(batches)]
        parts = [draw(lm, constraint, sampler=sampler, n=share, **given) for share in shares]
        kind = "laws" if sampler in BY_LAW and f is not None else "calls"
    found = _of(parts, f, kind, level)
    if sampler == "markov" and f is None:
        return Estimate(found.value, 0.0, found.value, found.value, found.ess, found.n, trusted=True)
    return found


def estimate_from(draws: Draws, f: Function | None = None, *, level: float = 0.95) -> Estimate:
    """The same from draws at hand that are independent of each other: those of "masked", "awrs", "exact", "markov", and
    of "smc" with particles=. (log Z by the latter two's weights has no error to be seen: `estimate` repeats them.)"""
    check_type("draws", draws, Draws, "give what sampling.draw returned")
    _check_of(f, level)
    return _of([draws], f, "draws", level)


def _check_of(f: object, level: float) -> None:
    """Raise TypeError or ArgumentError for arguments that say what is estimated, before the model is called."""
    if f is not None and not callable(f):
        raise TypeError(f"f is {describe(f)}: give a function of a text that returns a number, or None")
    check_type("level", level, (int, float), "a number between 0 and 1")
    if not 0 < level < 1:
        raise ArgumentError(f"level must be between 0 and 1, not {level!r}")


def _of(parts: list[Draws], f: Function | None, kind: str, level: float) -> Estimate:
    """kind: what a unit is, "draws", "calls" or "laws"."""
    logs = np.concatenate([np.append(part.logweights, np.full(part.unfinished, -np.inf)) for part in parts])
    found = [_values(part, f) for part in parts]
    values, event = np.concatenate([values for values, _ in found]), all(bools for _, bools in found)
    top = float(logs.max(initial=-np.inf))
    n = len(logs)
    if top == -np.inf:
        nothing = -math.inf if f is None else math.nan
        return Estimate(nothing, math.nan, nothing, nothing, 0.0, n, trusted=False, reason="no draw weighs anything")
    weights = np.exp(logs - top) if kind != "laws" else np.where(logs > -np.inf, 1.0, 0.0)
    if kind == "draws":
        above, below = weights * values, weights
    else:
        edges = np.cumsum([0, *(part.made for part in parts)])
        spans = [slice(a, b) for a, b in zip(edges[:-1], edges[1:]) if b > a]
        above = np.array([(weights[span] * values[span]).mean() for span in spans])
        below = np.array([weights[span].mean() for span in spans])
    m, mean = len(below), float(below.mean())
    value = float(above.sum() / below.sum())
    left = below - mean if f is None else above - value * below
    error = math.sqrt(float((left**2).sum()) / (m * (m - 1))) / mean if m > 1 else math.nan
    counted = values[weights > 0]
    ess = float(np.exp(2 * log_sum(logs) - log_sum(2 * logs)))
    if kind == "laws":
        spread = float(counted.var())
        ess = min(float(n), spread / error**2) if error > 0 else float(n)
    reason = _doubt(m, below / below.sum(), f is not None and len(set(counted.tolist())) == 1)
    reach = student(0.5 + level / 2, degrees(left)) * error if m > 1 else math.inf
    if f is None:
        value = math.log(mean) + top
    low, high = value - reach, value + reach
    if event:
        low, high = max(low, 0.0), min(high, 1.0)
    return Estimate(value, error, low, high, ess, n, trusted=not reason, reason=reason)


def _values(draws: Draws, f: Function | None) -> tuple[Floats, bool]:
    """f of each text that weighs anything, 0 for the others; each text is asked about once. Also whether all answers
    are bools."""
    if f is None:
        return np.ones(draws.made), False
    known: dict[str, float] = {}
    for draw in draws:
        if draw.logweight > -np.inf and draw.text not in known:
            known[draw.text] = f(draw.text)
    event = all(isinstance(value, (bool, np.bool_)) for value in known.values())
    numbers = {text: float(value) for text, value in known.items()}
    if not all(math.isfinite(value) for value in numbers.values()):
        raise ArgumentError("f gave a value that is not finite")
    found = [numbers.get(draw.text, 0.0) if draw.logweight > -np.inf else 0.0 for draw in draws]
    return np.array(found + [0.0] * draws.unfinished), event


def _doubt(m: int, shares: Floats, constant: bool) -> str:
    """Why an error is not to be believed; "" if it is. shares: of the weight, by unit."""
    if m < FEWEST:
        return f"{m} independent units are too few to see an error by"
    if shares.max() > max(LARGEST, 4 / m):
        return f"one of {m} units has {shares.max():.0%} of all weight"
    if constant:
        return "f was the same for all draws: how often it is not cannot be seen"
    return ""


def degrees(left: Floats) -> float:
    """Of freedom of the error made of residuals, float64 [m]: twice the squared mean of a sum of squares over its
    variance (Satterthwaite 1946), about m for a normal law and fewer for heavy tails; from 3 to m - 1."""
    squares = left**2
    total = float(squares.sum())
    spread = float((squares**2).sum()) - total**2 / len(left)
    found = 2 * total**2 / spread if spread > 0 else math.inf
    return max(3.0, min(found, len(left) - 1.0))


def student(p: float, freedom: float) -> float:
    """The quantile of Student's law, to 0.2 % from 3 degrees on: Cornish and Fisher's series (Abramowitz & Stegun
    26.7.5) with the four terms given there."""
    z = NormalDist().inv_cdf(p)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / freedom ** (i + 1) for i, term in enumerate(terms))
