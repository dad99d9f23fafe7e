"""What is known for certain about Z holds, whatever was drawn and however; scouts only add to it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from constrain.base.errors import LimitError
from constrain.sampling import SAMPLERS, NGram, draw
from constrain.sampling.core.masked_sampling import Proposal, allowed_tokens
from constrain.sampling.core.mass_bounds import BRACKET, UNKNOWN, MassBounds, bound_by_proposal
from constrain.sampling.explored_mass import ENOUGH, ExploredModel
from constrain.sampling.particle_bounds import bound_by_particles
from constrain.sampling.particles import Awrs, Masked, Prefixes
from tests.markov_factory import Case, cases

EXACT = 1e-12
"""Relative error of sums in double precision."""
CALLED = [name for name in SAMPLERS if name != "markov"]


def assert_bounded(bounds: MassBounds, case: Case, slack: float = EXACT) -> None:
    assert 0 <= bounds.found * (1 - slack) <= case.z <= bounds.bound * (1 + slack), case.name


@pytest.mark.parametrize("sampler", CALLED)
@pytest.mark.parametrize("name", cases())
def test_bounds_hold_and_scouts_only_narrow_them(sampler: str, name: str) -> None:
    case = cases()[name]
    model = ExploredModel(case.lm, case.constraint, case.max_tokens, checked=False)
    assert model.bounds() == UNKNOWN and model.explore(10) == 0
    given: dict[str, Any] = {"attempts": 3} if sampler == "pimh" else {}
    try:
        draws = draw(
            model, case.constraint, sampler=sampler, n=20, rng=np.random.default_rng(0), max_tokens=case.max_tokens,
            **given,
        )  # fmt: skip
    except LimitError:  # nothing was found, but much was seen
        draws = None
    last = model.bounds()
    assert_bounded(last, case)
    if draws is not None:
        assert {one.tokens for one in draws} <= set(model.list_texts())
        assert_bounded(draws.bounds, case)
    for rows in (1, 40, 10_000):
        assert model.explore(rows) <= rows
        now = model.bounds()
        assert_bounded(now, case)
        assert now.found >= last.found and now.bound <= last.bound * (1 + EXACT)
        last = now
    assert last.unseen <= 2 * ENOUGH
    law, texts = case.law(), model.list_texts()
    assert texts == pytest.approx({tokens: law[tokens] for tokens in texts}, rel=1e-9)
    assert model.explore(10) == 0


def test_texts_that_a_validator_may_refuse_are_found_when_they_are_given() -> None:
    case = cases()["pieces"]
    model = ExploredModel(case.lm, case.constraint, case.max_tokens, checked=True)
    draws = draw(model, case.constraint, n=30, rng=np.random.default_rng(0), max_tokens=case.max_tokens)
    assert model.bounds().found == 0 and model.list_texts() == {}
    for one in draws:
        model.add_text(one.tokens)
    assert set(model.list_texts()) == {one.tokens for one in draws}
    assert model.bounds().found == pytest.approx(draws.bounds.found)
    assert_bounded(model.bounds(), case)


def test_a_full_trie_stops_learning_and_stays_right() -> None:
    case = cases()["counting"]
    model = ExploredModel(case.lm, case.constraint, case.max_tokens, checked=False, max_bytes=1 << 16)
    draw(model, case.constraint, n=50, rng=np.random.default_rng(0), max_tokens=case.max_tokens)
    model.explore(10_000)
    assert model.trie.full
    assert_bounded(model.bounds(), case)
    assert model.bounds().unseen > 0


class Reordered:
    """A model with a cache that has to be reordered."""

    def __init__(self, lm: Any) -> None:
        self.lm, self.orders = lm, 0

    def next_logprobs(self, prefixes: list[list[int]]) -> Any:
        return self.lm.next_logprobs(prefixes)

    def reorder(self, rows: Any) -> None:
        self.orders += 1


def test_a_model_with_a_cache_keeps_it_and_gets_no_scouts() -> None:
    case = cases()["pieces"]
    lm = Reordered(case.lm)
    model = ExploredModel(lm, case.constraint, case.max_tokens, checked=False)
    draw(model, case.constraint, sampler="smc", n=4, rng=np.random.default_rng(0), max_tokens=case.max_tokens)
    assert lm.orders > 0
    assert model.explore(10) == 0
    assert_bounded(model.bounds(), case)


OPTIONS: dict[str, dict[str, Any]] = {
    "masked": {"sampler": "masked"},
    "hot and defensive": {"sampler": "masked", "proposal": Proposal(2.0, defensive=0.3)},
    "cut": {"sampler": "masked", "proposal": Proposal(top_k=1)},
    "population": {"sampler": "smc"},
    "populations": {"sampler": "smc", "particles": 4},
    "cut population": {"sampler": "smc", "move": Masked(Proposal(top_k=1))},
    "checks": {"sampler": "smc", "move": Awrs()},
    "distinct": {"sampler": "smc", "resample": "without_replacement"},
    "chain": {"sampler": "pimh", "particles": 4},
}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("name", [name for name in cases() if name != "tiny mass"])
@pytest.mark.parametrize("kind", OPTIONS)
def test_bounds_reported_by_draws_hold(name: str, kind: str, seed: int) -> None:
    case = cases()[name]
    try:
        draws = draw(
            case.lm,
            case.constraint,
            n=30,
            rng=np.random.default_rng(seed),
            max_tokens=case.max_tokens,
            **OPTIONS[kind],
        )
    except LimitError:
        return
    assert_bounded(draws.bounds, case)
    assert draws.stats["bound"] >= case.z * (1 - EXACT)


def test_bounds_by_hand() -> None:
    """Two texts of p = 0.1 and 0.2, drawn with q = 0.5 and 0.3: the others have q = 0.2, so at most that."""
    draws = [("a", math.log(0.1), math.log(0.5)), ("b", math.log(0.2), math.log(0.3)), ("a", math.log(0.1), 9.0)][:2]
    found = bound_by_proposal([*draws, draws[0]], rounding=0.0)
    assert found == pytest.approx((0.3, 0.5))
    assert (found.gap, found.unseen) == pytest.approx((math.log(5 / 3), 0.4))
    assert found.bracket == pytest.approx((math.log(0.3), math.log(0.5)))
    dead = ("ab", -math.inf, math.log(0.15))
    assert bound_by_proposal([*draws, dead], rounding=0.0) == pytest.approx((0.3, 0.35))
    assert MassBounds(0.1, 0.1 * math.exp(BRACKET + 0.01)).bracket is None
    assert (UNKNOWN.gap, UNKNOWN.unseen, UNKNOWN.bracket) == (math.inf, 1, None)


def test_particles_know_what_they_visited() -> None:
    """At the root: all that the mask allows there is unvisited, and nothing is found; one step later, the same less
    what the mask forbids after it.
    """
    case = cases()["pieces"]
    prefixes, move = Prefixes(case.lm, case.constraint), Masked()
    assert bound_by_particles(prefixes.root, prefixes.ends) == UNKNOWN
    prefixes.fetch_rows([prefixes.root])
    move.cache_distribution(prefixes, prefixes.root, case.max_tokens)
    row = np.exp(case.lm.next_logprobs([[]])[0])
    first = allowed_tokens(case.constraint.matcher().mask())
    whole = math.fsum(row[first])
    assert bound_by_particles(prefixes.root, prefixes.ends) == pytest.approx((0, whole))
    child = prefixes.child(prefixes.root, move(prefixes, prefixes.root, case.max_tokens, np.random.default_rng(0)))
    prefixes.fetch_rows([child])
    move.cache_distribution(prefixes, child, case.max_tokens - 1)
    lost = row[child.token] * (1 - math.exp(child.distribution.mass))  # type: ignore[union-attr]
    assert bound_by_particles(prefixes.root, prefixes.ends) == pytest.approx((0, whole - lost))


def test_an_explored_ngram_model_remains_a_markov_model() -> None:
    case = cases()["pieces"]
    lm = case.lm.as_ngram()
    model = ExploredModel(lm, case.constraint, case.max_tokens, checked=False)
    assert isinstance(lm, NGram) and model.follow == lm.follow
