"""AWRS: weights are proper for every method and every budget, tested over all orders; exponential races."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest

from constrain.sampling import awrs, draw, exponential_race as race_file, late_mask as late_file
from constrain.sampling.awrs import WeightedToken, draw_token
from constrain.sampling.core.token_masses import Masses, allowed_tokens, find_quantile, mask_of
from constrain.sampling.exponential_race import ExponentialRace
from constrain.sampling.late_mask import SharedRow
from constrain.sampling.particles import Awrs
from constrain.sampling.token_rejection import (
    RECURSIVE,
    CheckBudget,
    CheckedToken,
    Chunks,
    DesRaj,
    ExploreFlip,
    Geometric,
    HorvitzThompson,
    LateMask,
    Method,
)
from tests.markov_factory import Script, cases, g_test, outcomes

MANY = 6
"""Rejections in a row beyond which a played Geometric is cut off where a budget has ended the search long before."""


class Played:
    """A Script that also knows geometric numbers, as far as budgets distinguish them."""

    def __init__(self, script: Script) -> None:
        self.branch, self.random = script.branch, script.random

    def geometric(self, p: float) -> int:
        return 1 + self.branch([p * (1 - p) ** k for k in range(MANY)] + [(1 - p) ** MANY]) if p < 1 else 1


class PlayedRace:
    """An ExponentialRace whose order is played through: the next token is any that is left, by its mass."""

    def __init__(self, masses: list[float], script: Played) -> None:
        self.rest = dict(enumerate(masses))
        self.script = self.rng = script
        self.valid, self.total = 0.0, math.fsum(masses)
        self.taken: list[int] = []

    @property
    def left(self) -> float:
        return math.fsum(self.rest.values())

    def take(self, count: int = 1) -> list[int]:
        rest = dict(self.rest)
        for _ in range(min(count, len(rest))):
            tokens, total = list(rest), math.fsum(rest.values())
            token = tokens[self.script.branch([rest[t] / total for t in tokens])]
            del rest[token]
            self.taken.append(token)
        return list(self.taken)

    def take_largest(self) -> int | None:
        if not self.rest:
            return None
        self.taken.append(max(self.rest, key=lambda token: self.rest[token]))
        return self.taken[0]

    def record(self, ok: bool) -> float:
        term = self.valid + self.left * ok
        self.valid += self.rest.pop(self.taken.pop(0)) * ok
        return term

    def masses(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(list(self.rest)), np.array(list(self.rest.values()))


def expected(method: Method, masses: list[float], valid: tuple[int, ...], budget: float) -> tuple[list[float], float]:
    """E[w 1{token = a}] for every a, and the most checks that were ever made."""
    sums, most = [[] for _ in masses], 0

    def run(script: Script) -> tuple[CheckedToken, int]:
        seen: list[int] = []

        def check(token: int) -> bool:
            assert token not in seen, "asked twice"
            seen.append(token)
            return token in valid

        return method(PlayedRace(masses, Played(script)), CheckBudget(check, budget=budget)), len(seen)

    for probability, (choice, checks) in outcomes(run):
        most = max(most, checks)
        if choice.token is not None:
            assert choice.token in valid
            sums[choice.token].append(probability * choice.weight)
    return [math.fsum(parts) for parts in sums], most


LAWS = {
    "peaked": [0.97, 0.02, 0.009, 0.001],
    "flat": [0.25, 0.25, 0.25, 0.25],
    "steps": [0.5, 0.25, 0.15, 0.07, 0.03],
    "not normalised": [0.2, 0.1, 0.05],
    "faint": [0.7, 0.299999999, 1e-9],
    "six": [0.4, 0.25, 0.15, 0.1, 0.06, 0.04],
}
METHODS = {
    "Des Raj": DesRaj(slack=0.0),
    "Des Raj with slack": DesRaj(slack=0.3),
    "Des Raj of two": DesRaj(terms=2, slack=0.05),
    "recursive": RECURSIVE,
    "explore": ExploreFlip(slack=0.2),
    "explore all": ExploreFlip(slack=0.0),
    "chunks of one": Chunks(1),
    "chunks of three": Chunks(3),
    "Horvitz-Thompson": HorvitzThompson(3),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("law", LAWS)
def test_weights_are_proper_over_all_orders(name: str, law: str) -> None:
    """Every set of valid tokens (of six tokens: four sets), every budget: max |E[w 1{a}] - gamma(a)| < 1e-12."""
    masses, size = LAWS[law], len(LAWS[law])
    sets = [tuple(v) for k in range(size + 1) for v in itertools.combinations(range(size), k)]
    if size == 6:
        sets = [(0,), (2, 5), (1, 3, 4), (0, 1, 2, 3, 4, 5)]
    for valid in sets:
        for budget in (1, 2, 3, 4, math.inf) if size < 6 else (2, 4, math.inf):
            found, checks = expected(METHODS[name], masses, valid, budget)
            gamma = [mass * (token in valid) for token, mass in enumerate(masses)]
            assert max(abs(a - b) for a, b in zip(found, gamma)) < 1e-12, (valid, budget)
            assert checks <= budget


@pytest.mark.parametrize("law", LAWS)
def test_weights_with_a_late_mask_are_proper_over_all_orders(law: str) -> None:
    """As above, with a mask: it draws the token where the first checks fail, and settles the weight in doubt."""
    masses, size = LAWS[law], len(LAWS[law])
    for valid in (tuple(v) for k in range(size + 1) for v in itertools.combinations(range(size), k)):
        gamma = [mass * (token in valid) for token, mass in enumerate(masses)]
        for method in (LateMask(), LateMask(patience=2, slack=0.05), LateMask(patience=3, slack=0.0)):
            found, lost = [[0.0] for _ in masses], [0.0]
            for probability, (choice, check) in outcomes(partial(play_late_mask, method, masses, valid)):
                assert check.spent <= method.patience
                if choice.token is None:
                    assert check.lost
                    lost.append(probability)  # the mask draws: its weight is Z, its law gamma / Z
                else:
                    found[choice.token].append(probability * choice.weight)
            means = [math.fsum(parts) + math.fsum(lost) * g for parts, g in zip(found, gamma)]
            assert max(abs(a - b) for a, b in zip(means, gamma)) < 1e-12, (valid, method)
            assert valid or not any(any(parts) for parts in found)


def play_late_mask(
    method: LateMask, masses: list[float], valid: tuple[int, ...], script: Script
) -> tuple[CheckedToken, CheckBudget]:
    """One step, and the checks it made; the mask knows the mass of the valid tokens."""
    total = math.fsum(masses[token] for token in valid)
    check = CheckBudget(lambda token: token in valid, patience=method.patience, mass=lambda: total)
    return method(PlayedRace(masses, Played(script)), check), check


@pytest.mark.parametrize("slack", [0.0, 0.25, 2.0])
def test_a_late_mask_over_a_large_vocabulary_is_unbiased(slack: float) -> None:
    """With rows whose tail shares a clock, with and without a list of allowed tokens."""
    logs = np.random.default_rng(0).normal(0, 3, 3000)
    logs -= np.logaddexp.reduce(logs)
    valid = np.random.default_rng(1).random(3008) < 0.3
    valid[3000:] = False
    mask = np.packbits(valid, bitorder="little").view(np.int32)
    for allowed in (None, np.arange(0, 3000, 2)):
        both = valid[:3000] if allowed is None else valid[:3000] & (np.arange(3000) % 2 == 0)
        weights, steps = weights_of(
            800, logprobs=logs, check=lambda t: bool(valid[t]), mask=lambda: mask, allowed=allowed,
            method=LateMask(slack=slack),
        )  # fmt: skip
        assert {step.checks for step in steps} == ({1} if allowed is not None else {0, 1})
        assert all(both[step.token] for step in steps)
        exact = np.exp(logs)[both].sum()
        assert abs(weights.mean() - exact) < 5 * weights.std() / math.sqrt(800) + 1e-9
        if slack == 0:
            assert weights == pytest.approx(np.full(800, exact))


def find_listed_token(masses: Masses, uniform: Any) -> int:
    """The same as `Masses.token_at`, in Python, which takes the intervals of a Script."""
    tokens = allowed_tokens(masses.mask)
    return int(tokens[find_quantile(np.exp(masses.row[tokens]).cumsum(), uniform)])


@pytest.mark.parametrize("slack", [0.0, 0.25, 2.0])
def test_the_law_of_a_late_mask_on_long_rows_is_exact(slack: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """E[w 1{token = a}] = p(a) [a valid], for each valid set of 6 tokens, all random numbers played through.

    Tokens 0, 2 and 4 are likely, the others share their mass; token 5 has none.
    """
    monkeypatch.setattr(late_file, "SMALL", 0)
    monkeypatch.setattr(race_file, "HEAD", 0.15)
    monkeypatch.setattr(Masses, "token_at", find_listed_token)
    masses = np.array([0.45, 0.1, 0.2, 0.05, 0.2, 0.0])
    with np.errstate(divide="ignore"):
        row = np.log(masses)
    for pattern in range(64):
        valid = [token for token in range(6) if pattern >> token & 1]
        mask, found = mask_of(valid, 6), np.zeros(6)

        def run(script: Script, valid: list[int] = valid, mask: Any = mask) -> WeightedToken:
            return draw_token(row, valid.__contains__, script, mask=lambda: mask, method=LateMask(slack=slack))  # type: ignore[arg-type]

        for probability, step in outcomes(run):
            assert step.checks <= 1
            if step.token is not None:
                found[step.token] += probability * math.exp(step.log_weight)
        assert found == pytest.approx(masses * [token in valid for token in range(6)], abs=1e-12)


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_a_row_longer_than_the_mask_has_no_allowed_tokens_beyond_it(share: float) -> None:
    """Models pad their vocabularies; what a row gives to padding is never allowed, likely or not."""
    masses = np.r_[np.full(2000, (1 - share) / 2000), np.zeros(100), share]
    with np.errstate(divide="ignore"):
        row = np.log(masses)
    mask = mask_of(range(0, 2000, 2), 2000)
    for seed in range(20):
        step = draw_token(
            row,
            lambda t: t < 2000 and t % 2 == 0,
            np.random.default_rng(seed),
            mask=lambda: mask,
            method=LateMask(slack=0),
        )
        if share == 1:
            assert step.token is None
        else:
            assert step.token is not None and step.token < 2000 and step.token % 2 == 0
            assert step.log_weight == pytest.approx(math.log((1 - share) / 2))


def test_a_late_mask_is_computed_only_in_doubt() -> None:
    """A token that has nearly all of the mass needs no mask; one of a flat row always does."""
    calls: list[int] = []

    def mask() -> np.ndarray:
        calls.append(1)
        return np.full(2, -1, np.int32)

    sure = np.log(np.r_[1 - 63e-9, np.full(63, 1e-9)])
    for row, most in ((sure, 0), (np.full(64, -math.log(64)), 50)):
        calls.clear()
        rng = np.random.default_rng(0)
        for _ in range(50):
            assert math.exp(awrs.draw_token(row, lambda t: True, rng, mask=mask).log_weight) == pytest.approx(1)
        assert len(calls) == most


@pytest.mark.parametrize("accepts", [2, 3])
@pytest.mark.parametrize("law", ["peaked", "flat", "not normalised", "faint"])
def test_weights_of_the_geometric_method_are_proper_over_all_orders(law: str, accepts: int) -> None:
    masses, size = LAWS[law], len(LAWS[law])
    for valid in [tuple(v) for k in range(size + 1) for v in itertools.combinations(range(size), k)]:
        for budget in (1, 2, 3, 4):
            found, checks = expected(Geometric(accepts), masses, valid, budget)
            gamma = [mass * (token in valid) for token, mass in enumerate(masses)]
            assert max(abs(a - b) for a, b in zip(found, gamma)) < 1e-12, (valid, budget)
            assert checks <= budget


def test_a_wrong_weight_is_noticed() -> None:
    """The mean of a number of terms that is decided after seeing them is not Z."""

    def until_it_falls(race: ExponentialRace, ask: CheckBudget) -> CheckedToken:
        token, terms = None, []
        while taken := race.take():
            term = race.record(ok := ask(taken[0]))
            if token is not None:
                terms.append(term)
                if ok:
                    break
            token = taken[0] if ok and token is None else token
        return CheckedToken(token, math.fsum(terms) / len(terms) if terms else race.valid)

    found, _ = expected(until_it_falls, LAWS["steps"], (0, 3), math.inf)
    assert abs(found[0] - 0.5) > 1e-3


# ---- the race itself ---------------------------------------------------------------------------------------------


def plackett_luce(masses: np.ndarray, places: int) -> dict[tuple[int, ...], float]:
    """The chance of each beginning of an order."""
    out = {}
    for order in itertools.permutations(range(len(masses)), places):
        rest, p = float(masses.sum()), 1.0
        for token in order:
            p *= masses[token] / rest
            rest -= masses[token]
        out[order] = p
    return out


ROW = np.array([0.4, 0.2, 0.1, 0.3 * 0.6, 0.3 * 0.3, 0.3 * 0.1])
CUTS = {
    "all have clocks": {},
    "some share one": {"SMALL": 0, "HEAD": 0.15},
    "most share one": {"SMALL": 0, "HEAD": 0.3},
    "summed at once": {"SMALL": 0, "HEAD": 0.15, "FINE": 2.0},
    "all share one": {"SMALL": 0, "HEAD": 0.9},
    "few at a time": {"SMALL": 0, "BATCH": 1, "HEAD": 0.9, "FAINT": 2.0},
}


@pytest.mark.parametrize("cut", CUTS)
def test_a_race_does_not_depend_on_its_chunks(cut: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """G-test of the first four to arrive, 3,000 races, error 1e-6; order, masses and bounds agree at every position."""
    for name, value in CUTS[cut].items():
        monkeypatch.setattr(race_file, name, value)
    rng, counts = np.random.default_rng(5), Counter()
    for _ in range(3000):
        race, order, valid = ExponentialRace(np.log(ROW), rng), [], 0.0
        for _ in range(4):
            (token,) = race.take()
            left = 1 - ROW[order].sum()
            assert race.left == pytest.approx(left)
            assert race.valid == pytest.approx(valid)
            assert race.record(token % 2 == 0) == pytest.approx(valid + left * (token % 2 == 0))
            order.append(token)
            valid += ROW[token] * (token % 2 == 0)
        counts[tuple(order)] += 1
    assert g_test(counts, plackett_luce(ROW, 4)) > 1e-6
    wrong = plackett_luce(ROW**1.2 / (ROW**1.2).sum(), 4)
    assert g_test(counts, wrong) < 1e-6


@pytest.mark.parametrize("cut", CUTS)
def test_tokens_that_are_taken_together_are_in_order(cut: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, of three taken at once."""
    for name, value in CUTS[cut].items():
        monkeypatch.setattr(race_file, name, value)
    rng = np.random.default_rng(6)
    counts = Counter(tuple(ExponentialRace(np.log(ROW), rng).take(3)) for _ in range(3000))
    assert g_test(counts, plackett_luce(ROW, 3)) > 1e-6


def test_a_long_race_ends_with_every_token_once() -> None:
    logs = np.random.default_rng(0).normal(0, 4, 5000)
    logs -= np.logaddexp.reduce(logs)
    logs[7] = -np.inf
    race = ExponentialRace(logs, np.random.default_rng(1))
    seen, terms = [], []
    while taken := race.take(3):
        seen += taken
        terms += [race.record(False) for _ in taken]
    assert sorted(seen) == [token for token in range(5000) if token != 7]
    assert race.left == 0
    assert terms == [0.0] * 4999


def test_a_mass_lost_to_rounding_ends_the_race(monkeypatch: pytest.MonkeyPatch) -> None:
    """The likely tokens have all the mass, but for rounding: the others are not drawn by sums."""
    fired: list[ExponentialRace] = []
    fire = ExponentialRace._draw_from_pool
    monkeypatch.setattr(ExponentialRace, "_draw_from_pool", lambda race: (fired.append(race), fire(race)))
    logs = np.full(5000, math.log(1e-12))
    logs[[3, 4000]] = math.log(0.5 + 1e-9)
    race, seen = ExponentialRace(logs, np.random.default_rng(1)), list[int]()
    while taken := race.take():
        seen += taken
        race.record(True)
    assert sorted(seen) == list(range(5000))
    assert set(seen[:2]) == {3, 4000}
    assert not fired


def test_the_largest_come_by_size() -> None:
    logs = np.random.default_rng(0).normal(0, 3, 3000)
    logs -= np.logaddexp.reduce(logs)
    race = ExponentialRace(logs, np.random.default_rng(1))
    taken = []
    for _ in range(40):
        if len(taken) % 5 == 0:
            (token,) = race.take()
        else:
            token = race.take_largest()
            assert logs[token] == max(logs[t] for t in range(3000) if t not in taken)
        taken.append(token)
        race.record(False)
        assert race.left == pytest.approx(1 - np.exp(logs[taken]).sum())


def test_rows_that_are_not_distributions_are_refused() -> None:
    rng = np.random.default_rng(0)
    flat = np.full(2000, -math.log(2000))
    for row, words in (
        (np.full(5, np.nan), "NaN"), (np.full(5, -np.inf), "all -inf"), (np.array([3.0, -1.0]), "go up to 3"),
        (np.where(np.arange(2000) == 3, np.nan, flat), "NaN"), (np.log(np.array([0.4, 0.4])), "sum to 1 but to 0.8"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            awrs.draw_token(row, lambda token: True, rng)
    with pytest.raises(ValueError, match=r"do not sum to 1 but to 0\.5"):
        awrs.draw_token(flat - math.log(2), lambda token: False, rng)


# ---- one step --------------------------------------------------------------------------------------------------------


def weights_of(n: int, **options: object) -> tuple[np.ndarray, list[awrs.WeightedToken]]:
    rng = np.random.default_rng(3)
    steps = [awrs.draw_token(rng=rng, **options) for _ in range(n)]
    return np.exp([step.log_weight for step in steps]), steps


@pytest.mark.parametrize("method", [*METHODS.values(), Geometric()], ids=repr)
def test_a_step_over_a_large_vocabulary_is_unbiased(method: Method) -> None:
    """Mean weight against Z, by token too: within 5 standard errors."""
    logs = np.random.default_rng(0).normal(0, 3, 3000)
    logs -= np.logaddexp.reduce(logs)
    valid = np.random.default_rng(1).random(3000) < 0.3
    weights, steps = weights_of(800, logprobs=logs, check=lambda t: bool(valid[t]), method=method, budget=40)
    top = int(np.argmax(np.where(valid, logs, -np.inf)))
    for f, exact in ((np.ones(800), np.exp(logs)[valid].sum()), ([s.token == top for s in steps], np.exp(logs[top]))):
        each = weights * f
        assert abs(each.mean() - exact) < 5 * each.std() / math.sqrt(800) + 1e-9


def test_tiny_valid_mass_is_found_and_weighed() -> None:
    """The only valid token is less likely than any number of float64 can say."""
    for tiny in (-15.0, -200.0, -1500.0):
        logs = np.array([math.log(0.6), math.log(0.4), tiny, tiny - 3])
        _, steps = weights_of(20, logprobs=logs, check=lambda t: t >= 2, method=RECURSIVE)
        assert {step.token for step in steps} <= {2, 3}
        total = tiny + math.log1p(math.exp(-3))
        assert np.logaddexp.reduce([s.log_weight for s in steps]) - math.log(20) == pytest.approx(total, abs=0.1)
    assert awrs.draw_token(logs, lambda t: False, np.random.default_rng(0)) == (None, -math.inf, 4)


def test_two_stages_count_the_mass_of_the_mask() -> None:
    logs = np.log(np.array([0.3, 0.2, 0.1, 0.25, 0.15]))
    allowed = np.array([1, 2, 4])
    weights, steps = weights_of(400, logprobs=logs, check=lambda t: t != 4, allowed=allowed, method=RECURSIVE)
    assert {step.token for step in steps} == {1, 2}
    assert abs(weights.mean() - 0.3) < 5 * weights.std() / 20
    sure, _ = weights_of(5, logprobs=logs, check=lambda t: True, allowed=allowed)
    assert sure == pytest.approx(np.full(5, 0.45))


def test_a_mask_takes_over_where_checks_fail() -> None:
    logs = np.full(64, -math.log(64))
    mask = np.zeros(2, np.int32)
    mask[1] = 1 << 5
    for method, most, more in ((LateMask(), 1, 0), (LateMask(patience=4), 4, 0), (DesRaj(), awrs.PATIENCE, 4)):
        step = awrs.draw_token(logs, lambda t: False, np.random.default_rng(0), mask=lambda: mask, method=method)
        assert step == (37, pytest.approx(-math.log(64)), most)
        weights, steps = weights_of(3000, logprobs=logs, check=lambda t: t == 37, mask=lambda: mask, method=method)
        assert abs(weights.mean() - 1 / 64) < 5 * weights.std() / math.sqrt(3000) + 1e-12
        assert max(step.checks for step in steps) <= most + more


def test_several_end_tokens_are_one() -> None:
    logs = np.log(np.array([0.5, 0.2, 0.3]))
    weights, steps = weights_of(500, logprobs=logs, check=lambda t: t == 1, ends=(1, 2))
    assert {step.token for step in steps} == {1}
    assert abs(weights.mean() - 0.5) < 5 * weights.std() / math.sqrt(500) + 1e-12


def test_a_step_needs_a_budget() -> None:
    with pytest.raises(ValueError, match="budget must be 1"):
        awrs.draw_token(np.log(np.array([0.5, 0.5])), lambda t: True, np.random.default_rng(0), budget=0)
    for wrong in (lambda: DesRaj(0), lambda: DesRaj(slack=-1), lambda: LateMask(0), lambda: LateMask(slack=-1),
                  lambda: ExploreFlip(-1), lambda: Chunks(0),
                  lambda: Geometric(1), lambda: HorvitzThompson(0)):  # fmt: skip
        with pytest.raises(ValueError, match="must be"):
            wrong()


# ---- draws at one prefix share work ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [40, 3000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_draws_that_share_a_row_are_those_that_do_not(size: int, dtype: Any) -> None:
    """Token, weight and checks are equal bit for bit; fewer masks are asked for, as their mass is computed once."""
    rng = np.random.default_rng(7)
    logs = np.log(rng.dirichlet(np.full(size, 0.02)) + 1e-12)
    row = (logs - np.log(np.exp(logs).sum())).astype(dtype)
    allowed = rng.random(size) < 0.7
    mask = mask_of(np.flatnonzero(allowed), size)
    for ends in ((), (size - 2, size - 1)):
        shared, asked = SharedRow(), Counter[str]()

        def compute(name: str, asked: Counter[str] = asked) -> Any:
            asked[name] += 1
            return mask

        for seed in range(60):
            alone, together = (
                draw_token(
                    row, lambda token: bool(allowed[token]), np.random.default_rng(seed), mask=partial(compute, name),
                    ends=ends, shared=one,
                )
                for name, one in (("alone", None), ("shared", shared))
            )  # fmt: skip
            assert alone == together
        assert shared.allowed is not None
        assert shared.allowed.logmass == pytest.approx(
            math.log(np.exp(row[allowed].astype(np.float64)).sum()), abs=1e-6
        )
        assert asked["shared"] < asked["alone"]


@pytest.mark.parametrize("name", ["counting", "pieces", "sums"])
def test_bounds_of_awrs_particles_hold(name: str) -> None:
    """found <= Z <= bound, where some masks were needed and others not; rows that nobody visits again are dropped."""
    case = cases()[name]
    for seed in range(10):
        draws = draw(
            case.lm, case.constraint, sampler="smc", n=12, rng=np.random.default_rng(seed), max_tokens=case.max_tokens,
            move=Awrs(),
        )  # fmt: skip
        assert draws.bounds.found <= case.z * (1 + 1e-9) and draws.bounds.bound >= case.z * (1 - 1e-9)
        assert draws.bounds.bound < 1
