"""`sampling.estimation` against enumerated answers, by every sampler; confidence intervals have their coverage."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import zip_longest
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import constrain.sampling.estimation
from constrain.sampling import SAMPLERS, Estimate, estimate, estimate_from
from constrain.sampling.core.results import Draw, Draws
from constrain.sampling.estimation import FEWEST, estimate_degrees, student_quantile
from constrain.sampling.success_trie import SuccessTrie
from tests.markov_factory import cases

CASE = cases()["counting"]
NGRAM = CASE.lm.as_ngram()
TOKENS = CASE.constraint.vocabulary.tokens
LAW = {b"".join(TOKENS[t] or b"" for t in tokens).decode(): p for tokens, p in CASE.exact().items()}
FAR = 4.5
"""Standard errors: beyond it once in 150,000 times, for each estimate of the right kind."""


def length(text: str) -> float:
    return float(len(text))


def short(text: str) -> bool:
    return len(text) <= 6


TRUTH = {length: sum(p * len(t) for t, p in LAW.items()), short: sum(p for t, p in LAW.items() if short(t))}
MORE = {"smc": {"particles": 8, "n": 200}, "pimh": {"particles": 16, "n": 96, "batches": 8}}


def of(f: object, sampler: str, seed: int = 0, n: int = 480, **more: object) -> Estimate:
    given: dict[str, Any] = {"n": n, **MORE.get(sampler, {}), **more}
    return estimate(
        NGRAM, CASE.constraint, f, sampler=sampler, rng=np.random.default_rng(seed),  # type: ignore[arg-type]
        max_tokens=CASE.max_tokens, **given,
    )  # fmt: skip


@pytest.mark.parametrize(
    "sampler", [pytest.param(name, marks=[pytest.mark.slow] if name in MORE else []) for name in SAMPLERS]
)
def test_means_events_and_log_z_by_every_sampler(sampler: str) -> None:
    for f in (length, short):
        found = of(f, sampler)
        # without_replacement sees the whole language: no error is left
        assert abs(found.value - TRUTH[f]) <= FAR * found.error + 1e-9
        assert found.low <= found.value <= found.high
        assert 0 < found.ess <= found.n + 1e-6
    found = of(None, sampler)
    assert abs(found.value - math.log(CASE.z)) <= FAR * found.error + 1e-9
    assert found.error == 0 or sampler != "markov"


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of 400 intervals of 90 %, binomially 360 give or take 6: fewer than 330 but once in a million times."""
    rng = np.random.default_rng(0)
    q, weights = rng.dirichlet(np.ones(8)), np.exp(rng.normal(0, 0.8, 8))
    z = float(q @ weights)
    truths = {
        length: float((q * weights) @ np.arange(8)) / z,
        short: float((q * weights)[:7].sum()) / z,
        None: math.log(z),
    }
    parts = [weighted(*[("a" * k, weights[k]) for k in rng.choice(8, size=60, p=q)]) for _ in range(400)]
    for f, truth in truths.items():
        made = [estimate_from(part, f, level=0.9) for part in parts]
        believed = [one for one in made if one.trusted]
        assert len(believed) > 300, f
        assert sum(one.low <= truth <= one.high for one in made) > 330, f
        assert sum(one.high < truth for one in made) < 60 > sum(one.low > truth for one in made), f


def test_masked_draws_that_are_far_off_are_not_believed() -> None:
    """Weights here are so uneven that of intervals of 90 % from 60 draws only 75 % hold the mean; all are flagged,
    unless scouts find so much that the draws are not needed."""
    found = [of(length, "masked", seed, n=60, scouts=0.0) for seed in range(20)]
    assert not any(one.trusted for one in found)
    known = [of(length, "masked", seed, n=60) for seed in range(20)]
    assert all(abs(one.value - TRUTH[length]) < 1e-9 for one in known if one.trusted)


def test_auto_is_chosen_once() -> None:
    assert of(None, "auto").error == 0


def weighted(*pairs: tuple[str, float]) -> Draws:
    return Draws.of(Draw((), text, 0.0, math.log(weight) if weight else -math.inf) for text, weight in pairs)


def test_by_hand() -> None:
    found = estimate_from(weighted(("a", 1.0), ("bbb", 3.0)), length)
    assert found.value == pytest.approx((1 + 9) / 4)
    # residuals w (f - value) are -1.5 and 1.5, the mean weight is 2
    assert found.error == pytest.approx(math.sqrt((1.5**2 + 1.5**2) / 2) / 2)
    assert found.ess == pytest.approx(16 / 10)
    assert found.interval == (found.low, found.high)


@pytest.mark.parametrize(
    ("draws", "f", "reason"),
    [
        (weighted(*[("a", 0.0)] * 30), length, "all draws have weight zero"),
        (weighted(*[("a", 1.0)] * (FEWEST - 1)), length, "too few"),
        (weighted(*[("a", 1.0), ("bb", 1.0)] * 20, ("ccc", 50.0)), length, "of all weight"),
        (weighted(*[("a", 1.0)] * 30), short, "the same for all"),
        (weighted(*[("a", 1.0), ("bb", 1.0)] * 20), length, ""),
    ],
)
def test_untrusted_estimates_give_a_reason(draws: Draws, f: object, reason: str) -> None:
    found = estimate_from(draws, f)  # type: ignore[arg-type]
    assert found.trusted == (not reason)
    assert reason in found.reason


@pytest.mark.parametrize("f", [None, length])
def test_draws_without_weight_leave_everything_possible(f: Any) -> None:
    found = estimate_from(weighted(*[("a", 0.0)] * 30), f)
    assert (found.low, found.high, found.trusted) == (-math.inf, math.inf, False)


def test_estimate_raises_for_invalid_values_and_options() -> None:
    for wrong, words in (
        (lambda text: math.nan, "nan: give finite"), (lambda text: None, "None"), (lambda text: "1", "'1'"),
        (lambda text: 1 // 0, "ZeroDivisionError"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"^f.*'a'.*{words}"):
            estimate_from(weighted(("a", 1.0)), wrong)
    with pytest.raises(ValueError, match="2 draws"):
        of(length, "exact", n=1)
    with pytest.raises(ValueError, match="2 batches"):
        of(length, "exact", n=3, batches=1)
    with pytest.raises(ValueError, match="level"):
        estimate_from(weighted(("a", 1.0)), length, level=1.0)


def test_few_draws_are_as_many_calls() -> None:
    for sampler in ("exact", "masked"):
        found = of(length, sampler, n=3)
        assert math.isfinite(found.value) and found.low <= found.value <= found.high


def test_students_quantiles() -> None:
    """Against printed tables."""
    for freedom, expected in ((3, 3.1824), (7, 2.3646), (15, 2.1314), (31, 2.0395), (10**6, 1.95997)):
        assert student_quantile(0.975, freedom) == pytest.approx(expected, rel=2e-3)


def cornish_fisher(orders: int) -> list[list[Fraction]]:
    """Polynomials in z (coefficients by power) whose sum over k of polynomial[k](z) / freedom^k is Student's quantile.

    q(z), where z is the normal quantile, satisfies density(q) q' = normal density(z). By its logarithmic derivative,
    with u = 1 / freedom,

        (1 + u q^2) (q'' + z q') = (1 + u) q q'^2,

    which is solved power by power of u: that of u^k is linear in polynomial[k], g'' - z g' - g = -(all others).
    """
    q = [[Fraction(0), Fraction(1)]]
    for k in range(1, orders + 1):
        q.append([])
        first = [derivative(one) for one in q]
        inner = [add(derivative(one), times([Fraction(0), Fraction(1)], one)) for one in first]
        squares = [at(q, q, i) for i in range(k + 1)]
        slopes = [at(first, first, i) for i in range(k + 1)]
        left = add(inner[k], at(squares, inner, k - 1))
        right = add(at(q, slopes, k), at(q, slopes, k - 1))
        rest = add(left, [-one for one in right])
        g = [Fraction(0)] * (len(rest) + 2)
        for j in reversed(range(len(rest))):
            g[j] = ((j + 2) * (j + 1) * g[j + 2] + rest[j]) / (j + 1)
        q[k] = g
    return q


Polynomial = list[Fraction]


def add(one: Polynomial, other: Polynomial) -> Polynomial:
    return [a + b for a, b in zip_longest(one, other, fillvalue=Fraction(0))]


def times(one: Polynomial, other: Polynomial) -> Polynomial:
    out = [Fraction(0)] * (len(one) + len(other))
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            out[i + j] += a * b
    return out


def derivative(one: Polynomial) -> Polynomial:
    return [i * a for i, a in enumerate(one)][1:]


def at(one: list[Polynomial], other: list[Polynomial], k: int) -> Polynomial:
    """The coefficient of u^k in the product of two series in u."""
    out: Polynomial = []
    for i in range(k + 1):
        out = add(out, times(one[i], other[k - i]))
    return out


@pytest.mark.parametrize("freedom", [0.1, 1.0, 3.0, 40.0])
def test_the_series_of_students_quantiles(freedom: float) -> None:
    """The four terms that are used, beside those that follow from the differential equation of the quantile."""
    terms = cornish_fisher(4)
    for p in (0.6, 0.9, 0.975, 0.9999):
        z = NormalDist().inv_cdf(p)
        wanted = sum(float(a) * z**i / freedom**k for k, term in enumerate(terms) for i, a in enumerate(term))
        assert student_quantile(p, freedom) == pytest.approx(wanted, rel=1e-10)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([-7.0, -1.0, -0.5, 0.0, 0.5, 1.0, 30.0]), min_size=1, max_size=60))
def test_degrees_of_freedom_are_satterthwaites(left: list[float]) -> None:
    """A sum of m independent squares of mean s and variance v: 2 (m s)^2 / (m v)."""
    m, squares = len(left), [one**2 for one in left]
    mean = sum(squares) / m
    variance = sum((one - mean) ** 2 for one in squares) / m
    wanted = 2 * (m * mean) ** 2 / (m * variance) if variance > 0 else math.inf
    assert estimate_degrees(np.array(left)) == pytest.approx(max(3.0, min(wanted, m - 1.0)))


@pytest.mark.parametrize("level", ["0.9", None, [0.5]])
def test_a_level_is_a_number(level: object) -> None:
    with pytest.raises(TypeError, match="level"):
        estimate_from(weighted(("a", 1.0)), length, level=level)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="level"):
        of(length, "masked", level=level)


# ---- beside the formulas ---------------------------------------------------------------------------------------------

UNITS = {
    "masked": "draws",
    "markov": "draws",
    "smc": "calls",
    "asap": "calls",
    "exact": "equal calls",
    "pimh": "equal calls",
}
PAIR = st.tuples(st.sampled_from(["", "a", "ab", "abcd"]), st.sampled_from([0.0, 0.2, 1.0, 1.5, 7.0]))
LEVELS = st.sampled_from([0.5, 0.99])
FUNCTIONS = st.sampled_from([length, short, None])


def by_formula(parts: list[list[tuple[float, float]]], kind: str, mean_only: bool) -> tuple[float, float, float, int]:
    """value, error, ess and the number of units, of calls that gave pairs (weight, f), as the module defines them."""
    pairs = [pair for part in parts for pair in part]
    if kind == "equal calls":
        parts = [[(float(w > 0), f) for w, f in part] for part in parts]
    units = [[pair] for pair in pairs] if kind == "draws" else [part for part in parts if part]
    below = [sum(w for w, _ in unit) / len(unit) for unit in units]
    above = [sum(w * f for w, f in unit) / len(unit) for unit in units]
    m, mean = len(units), sum(below) / len(units)
    value = mean if mean_only else sum(above) / sum(below)
    left = [b - mean if mean_only else a - value * b for a, b in zip(above, below)]
    error = math.sqrt(sum(one**2 for one in left) / (m * (m - 1))) / mean
    ess = sum(w for w, _ in pairs) ** 2 / sum(w**2 for w, _ in pairs)
    if kind == "equal calls":
        counted = [f for w, f in pairs if w > 0]
        spread = sum(f**2 for f in counted) / len(counted) - (sum(counted) / len(counted)) ** 2
        ess = min(len(counted), spread / error**2) if error > 1e-9 else len(counted)
    return math.log(value) if mean_only else value, error, ess, m


@pytest.mark.parametrize("sampler", UNITS)
@settings(max_examples=20, deadline=None)
@given(pairs=st.lists(PAIR, min_size=2, max_size=40), batches=st.integers(2, 6), f=FUNCTIONS, level=LEVELS)
def test_estimates_are_those_of_the_formulas(
    sampler: str, pairs: list[tuple[str, float]], batches: int, f: Any, level: float
) -> None:
    n = len(pairs)
    assume(n >= batches and any(weight for _, weight in pairs))
    kind = "calls" if UNITS[sampler] == "equal calls" and f is None else UNITS[sampler]
    made: list[list[tuple[str, float]]] = []

    def scripted(lm: Any, constraint: Any, *, sampler: str, n: int, option: str, **given: Any) -> Draws:
        assert option == "kept"
        assert isinstance(given.get("trie"), SuccessTrie) == (sampler in ("asap", "exact"))
        first = sum(map(len, made))
        made.append(pairs[first : first + n])
        return weighted(*made[-1]).without_unfinished()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constrain.sampling.estimation, "draw", scripted)
        patch.setattr(constrain.sampling.estimation, "judge_estimate", lambda estimated, *known: estimated)
        found = estimate(
            NGRAM, CASE.constraint, f, sampler=sampler, n=n, batches=batches, level=level,
            rng=np.random.default_rng(0), max_tokens=5, option="kept",
        )  # fmt: skip
    sizes = [len(part) for part in made]
    assert sum(sizes) == n == found.n
    assert len(sizes) == (1 if kind == "draws" else batches)
    assert max(sizes) - min(sizes) <= 1
    parts = [[(weight, 1.0 if f is None else float(f(text)) * (weight > 0)) for text, weight in part] for part in made]
    value, error, ess, units = by_formula(parts, kind, f is None)
    assert found.value == pytest.approx(value, abs=1e-9)
    if sampler == "markov" and f is None:
        assert (found.error, found.low, found.high, found.trusted) == (0, found.value, found.value, True)
        return
    assert found.error == pytest.approx(error, abs=1e-7)
    assert found.ess == pytest.approx(ess)
    assert found.trusted == (not found.reason)
    assert ("units are too few" in found.reason) == (units < FEWEST)
    reach = (found.high - found.low) / 2
    bounds = (0.0, 1.0) if f is short else (-math.inf, math.inf)
    if bounds[0] < found.low and found.high < bounds[1]:
        assert (found.low + found.high) / 2 == pytest.approx(found.value)
        assert student_quantile(0.5 + level / 2, max(units - 1.0, 3.0)) * error * 0.99 <= reach + 1e-9
        assert reach <= student_quantile(0.5 + level / 2, 3.0) * max(found.error, 1e-12) * 1.01 + 1e-9
    assert bounds[0] <= found.low <= found.high <= bounds[1]


@pytest.mark.parametrize("event", [False, True])
def test_only_the_probability_of_an_event_is_between_0_and_1(event: bool) -> None:
    """A number that was 0 or 1 for all draws may be another for others; a bool may not."""

    def first(text: str) -> float:
        return text == "a" if event else float(text == "a")

    for texts in ("aaaaaaaaab", "bbbbbbbbba"):
        found = estimate_from(weighted(*[(text, 1.0) for text in texts]), first)
        assert (found.high <= 1 and found.low >= 0) == event
        assert (found.high == 1 or found.low == 0) == event


def test_an_interval_is_students() -> None:
    """Of eight residuals in pairs of opposite sign, all the same size: as many degrees as there are."""
    found = estimate_from(weighted(*[("a", 1.0), ("abc", 1.0)] * 4), length, level=0.9)
    error = math.sqrt(8 / (8 * 7))
    assert (found.value, found.error) == (2.0, pytest.approx(error))
    assert found.high - 2 == pytest.approx(student_quantile(0.95, 7.0) * error)
    assert 2 - found.low == pytest.approx(student_quantile(0.95, 7.0) * error)
    lone = estimate_from(weighted(("a", 1.0)), length)
    assert (lone.low, lone.high, lone.trusted) == (-math.inf, math.inf, False)
    assert math.isnan(lone.error)
