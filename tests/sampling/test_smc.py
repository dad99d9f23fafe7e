"""SMC and PIMH: complete runs enumerated, to test unbiasedness exactly; then distributions, by statistics."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from constrain.base.errors import LimitError, UnsupportedError
from constrain.sampling import pimh, smc
from constrain.sampling.core.masked_sampling import Proposal
from constrain.sampling.particles import Awrs, Masked, Prefixes, Twisted
from constrain.sampling.populations import Settings
from constrain.sampling.resampling import RESAMPLERS, find_inclusion_probabilities, resample_without_replacement
from constrain.sampling.research.markov_exact import Product
from constrain.sampling.research.ngram import NGram
from constrain.sampling.smc import grow_population
from constrain.sampling.twists import Future, Shortest
from tests.markov_factory import (
    LETTERS,
    PASS_ABOVE,
    PIECES,
    Case,
    cases,
    empty,
    g_test,
    masked_fails,
    outcomes,
    regular,
    resampled,
    total_variation,
)

SMALL = regular("small", LETTERS, "(ab?)*c|b", 3, seed=2)
SPELLED = regular("spelled", PIECES, "ab|abb|ba", 3, seed=5)
WEIGHTS = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 1.0]), min_size=1, max_size=5).filter(any)


def close(found: dict[Any, float], wanted: dict[Any, float]) -> bool:
    return all(abs(found.get(k, 0.0) - wanted.get(k, 0.0)) < 1e-12 for k in {*found, *wanted})


# ---- resampling ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RESAMPLERS)
@settings(max_examples=25, deadline=None)
@given(WEIGHTS, st.integers(1, 3))
def test_every_particle_lives_on_as_often_as_it_weighs(name: str, raw: list[float], n: int) -> None:
    weights = np.array(raw) / sum(raw)
    copies = np.zeros(len(weights))
    for probability, ancestors in outcomes(lambda rng: RESAMPLERS[name](weights, n, rng)):
        assert len(ancestors) == n
        assert sorted(ancestors) == list(ancestors)
        copies += probability * np.bincount(np.asarray(ancestors, np.int64), minlength=len(weights))
    assert copies == pytest.approx(n * weights, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(WEIGHTS, st.integers(1, 4))
def test_without_replacement_keeps_the_mean(raw: list[float], n: int) -> None:
    weights, means, included = np.array(raw), np.zeros(len(raw)), np.zeros(len(raw))
    for probability, (kept, chance) in outcomes(lambda rng: resample_without_replacement(weights, n, rng)):
        included[kept] += probability
        assert len(set(kept.tolist())) == len(kept) == min(n, np.count_nonzero(weights))
        means[kept] += probability * weights[kept] / chance
    assert means == pytest.approx(weights, abs=1e-9)
    assert included == pytest.approx(find_inclusion_probabilities(weights, n), abs=1e-9)


def test_numpy_agrees_with_the_script() -> None:
    weights, rng = np.array([0.5, 0.0, 0.3, 0.2]), np.random.default_rng(0)
    for resample in RESAMPLERS.values():
        counts = sum(np.bincount(resample(weights, 8, rng), minlength=4) for _ in range(2000)) / 16000
        assert counts == pytest.approx(weights, abs=0.01)


# ---- whole runs, played through --------------------------------------------------------------------------------------


def half_wrong(matcher: Any, tokens: list[int], left: int) -> float:
    """A twist that is right about nothing: any finite numbers will do."""
    return 0.7 * math.sin(sum(tokens) + left)


def shouting(text: str) -> float:
    """A critic."""
    return 0.4 * len(text) - 0.3 * text.count("b")


def means(case: Case, particles: int, **options: Any) -> tuple[float, dict[Any, float]]:
    """E[Z-hat] and E[mean of w 1{x}], over every outcome of a population."""
    chosen, z, mass = Settings.of(case.max_tokens, **options), 0.0, defaultdict(float)
    prefixes = Prefixes(case.lm, case.constraint)
    for probability, population in outcomes(lambda rng: grow_population(prefixes, particles, chosen, rng)):
        z += probability * math.exp(population.log_z)
        for node, log_weight in zip(population.nodes, population.log_weights):
            mass[tuple(node.tokens)] += probability * math.exp(log_weight) / len(population.nodes)
    return z, {tokens: m for tokens, m in mass.items() if m}


@pytest.mark.parametrize("resample", [*RESAMPLERS, "without_replacement"])
@pytest.mark.parametrize("case", [SMALL, SPELLED], ids=lambda case: case.name)
@pytest.mark.parametrize("twist", [None, half_wrong])
def test_complete_runs_are_unbiased(case: Case, resample: str, twist: Any) -> None:
    z, mass = means(case, 2, resample=resample, twist=twist, threshold=0.9)
    assert z == pytest.approx(case.z, abs=1e-12)
    assert close(mass, case.law())


@pytest.mark.parametrize("resample", ["systematic", "without_replacement"])
def test_a_critic_is_part_of_what_is_drawn_from(resample: str) -> None:
    wanted = {x: p * math.exp(shouting(SPELLED.constraint.vocabulary.decode(x))) for x, p in SPELLED.law().items()}
    z, mass = means(SPELLED, 2, resample=resample, critic=shouting, twist=half_wrong, threshold=1.0)
    assert z == pytest.approx(sum(wanted.values()), abs=1e-12)
    assert close(mass, wanted)


def test_temperatures_are_proposals() -> None:
    z, mass = means(SMALL, 2, move=Masked(Proposal(temperature=2.0)))
    assert z == pytest.approx(SMALL.z, abs=1e-12)
    assert close(mass, SMALL.law())


@pytest.mark.parametrize("twist", ["future", "flat future", "shortest"])
def test_the_twists_that_are_there_are_unbiased(twist: str) -> None:
    flat = NGram([()], np.log(np.full((1, LETTERS.size), 1 / LETTERS.size)))
    made = {
        "future": lambda: Future.of(SMALL.lm.as_ngram(), SMALL.constraint, max_tokens=3),
        "flat future": lambda: Future.of(flat, SMALL.constraint, max_tokens=3),
        "shortest": lambda: Shortest(0.5),
    }[twist]()  # fmt: skip
    z, mass = means(SMALL, 2, twist=made, threshold=0.9)
    assert z == pytest.approx(SMALL.z, abs=1e-12)
    assert close(mass, SMALL.law())
    if isinstance(made, Future):
        z, mass = means(SMALL, 2, move=Twisted(made), twist=made, threshold=0.9)
        assert z == pytest.approx(SMALL.z, abs=1e-12)
        assert close(mass, SMALL.law())


def test_a_step_of_the_chain_keeps_the_distribution() -> None:
    """(x0, Z0) of a first population, weighted by Z0, represents the target; so does x1 one step later."""
    chosen, prefixes = Settings.of(2, threshold=1.0), Prefixes(SMALL.lm, SMALL.constraint)
    law = {x: p for x, p in SMALL.law().items() if len(x) < 2}

    def two(rng: Any) -> tuple[float, Any]:
        first = grow_population(prefixes, 2, chosen, rng)
        start = pimh.ChainState(first.pick(rng), first.log_z)
        after = pimh.step_chain(start, grow_population(prefixes, 2, chosen, rng), rng)
        return start.log_z, after.node and tuple(after.node.tokens)

    mass: dict[Any, float] = defaultdict(float)
    for probability, (log_z, tokens) in outcomes(two):
        if log_z > -np.inf:
            mass[tokens] += probability * math.exp(log_z)
    assert close(mass, law)


# ---- laws, by statistics ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["traps", "pieces", "palindromes"])
def test_twisted_by_the_right_model_every_draw_is_exact(name: str) -> None:
    case = cases()[name]
    twist = Future(Product.of(case.lm.as_ngram(), case.constraint, max_tokens=case.max_tokens))
    draws = smc.draw_smc(
        case.lm, case.constraint, n=1500, rng=np.random.default_rng(3), max_tokens=case.max_tokens, particles=1,
        move=Twisted(twist), twist=twist,
    )  # fmt: skip
    assert np.ptp(draws.log_weights) < 1e-9
    assert draws.log_z == pytest.approx(math.log(case.z))
    assert g_test(Counter(draw.tokens for draw in draws), case.exact()) > PASS_ABOVE


@pytest.mark.slow
@pytest.mark.parametrize("name", ["traps", "sums"])
def test_the_chain_draws_from_the_exact_distribution_with_few_particles(name: str) -> None:
    case = cases()[name]
    draws = pimh.draw_pimh(
        case.lm, case.constraint, n=400, rng=np.random.default_rng(1), max_tokens=case.max_tokens, particles=4,
        thin=8, burn=40,
    )  # fmt: skip
    assert g_test(Counter(draw.tokens for draw in draws), case.exact()) > 1e-4
    assert draws.log_z == pytest.approx(math.log(case.z), abs=0.2)
    assert masked_fails(case, 400, np.random.default_rng(1))


@pytest.mark.parametrize("move", [Masked, Awrs], ids=["masked", "awrs"])
def test_more_particles_come_closer(move: Callable[[], Any]) -> None:
    case, far = cases()["pieces"], list[float]()
    for particles in (1, 4, 24):
        draws = smc.draw_smc(
            case.lm, case.constraint, n=250, rng=np.random.default_rng(7), max_tokens=case.max_tokens,
            particles=particles, move=move(), twist=None,
        )  # fmt: skip
        far.append(total_variation(Counter(d.tokens for d in draws if d.log_weight > -np.inf), case.exact()))
        weights = np.exp(draws.log_weights)
        assert abs(weights.mean() - case.z) < 5 * weights.std() / math.sqrt(len(weights))
    assert far[0] > far[1] + 0.05 > far[2] + 0.1


def test_one_population_is_a_weighted_set() -> None:
    case, rng = cases()["traps, trigram"], np.random.default_rng(2)
    sets = [smc.draw_smc(case.lm, case.constraint, n=24, rng=rng, max_tokens=case.max_tokens) for _ in range(60)]
    assert all(len(draws) == 24 for draws in sets)
    found = np.exp([draws.log_z for draws in sets])
    assert abs(found.mean() - case.z) < 5 * found.std() / math.sqrt(len(found)) + 1e-12
    picked = Counter(resampled(draws, rng) for draws in sets)
    assert total_variation(picked, case.exact()) < 0.35


# ---- what it costs, and what goes wrong -----------------------------------------------------------------------------


class Cached:
    """A model with a cache that is gathered: row i is a text's tokens so far, which must equal the requested prefix."""

    def __init__(self, lm: Any) -> None:
        self.lm, self.cache = lm, [[]]

    def reorder(self, rows: Any) -> None:
        self.cache = [self.cache[i] for i in rows]

    def next_logprobs(self, prefixes: list[list[int]]) -> Any:
        if prefixes == [[]]:
            self.cache = [[]]
        assert [prefix[:-1] if prefix else [] for prefix in prefixes] == self.cache
        self.cache = [list(prefix) for prefix in prefixes]
        return self.lm.next_logprobs(prefixes)


@pytest.mark.parametrize("resample", ["stratified", "without_replacement"])
def test_caches_are_gathered_and_change_nothing(resample: str) -> None:
    case = cases()["pieces"]
    options = {"n": 6, "max_tokens": case.max_tokens, "particles": 5, "resample": resample, "twist": "fresh"}
    plain = smc.draw_smc(case.lm, case.constraint, rng=np.random.default_rng(5), **options)
    cached = smc.draw_smc(Cached(case.lm), case.constraint, rng=np.random.default_rng(5), **options)
    assert list(plain) == list(cached)


def test_the_model_is_called_once_for_each_distinct_text() -> None:
    case = cases()["traps"]
    asked: list[tuple[int, ...]] = []

    class Listening:
        def next_logprobs(self, prefixes: list[list[int]]) -> Any:
            asked.extend(map(tuple, prefixes))
            return case.lm.next_logprobs(prefixes)

    draws = smc.draw_smc(
        Listening(),
        case.constraint,
        n=20,
        rng=np.random.default_rng(0),
        max_tokens=8,
        particles=16,
        resample="residual",
        twist="fresh",
    )
    assert len(set(asked)) == len(asked) == draws.stats["contexts"]
    assert draws.stats["model_calls"] <= 8 * 20
    again = smc.draw_smc(
        case.lm, case.constraint, n=20, rng=np.random.default_rng(0), max_tokens=8, particles=16, resample="residual",
        twist="fresh",
    )  # fmt: skip
    assert list(again) == list(draws)


def test_nothing_in_time_weighs_nothing() -> None:
    case = empty()
    for particles in (None, 3):
        draws = smc.draw_smc(
            case.lm, case.constraint, n=4, rng=np.random.default_rng(0), max_tokens=5, particles=particles
        )
        assert draws.log_z == -np.inf
        assert draws.stats["log_z"] == -np.inf
    with pytest.raises(LimitError, match="max_tokens is 5; the shortest text found takes 7 tokens"):
        pimh.draw_pimh(case.lm, case.constraint, n=1, rng=np.random.default_rng(0), max_tokens=5, attempts=7)


def test_wrong_settings_and_models_are_refused() -> None:
    case, rng = SMALL, np.random.default_rng(0)
    more = {"n": 2, "rng": rng, "max_tokens": 3}
    with pytest.raises(UnsupportedError, match="no resampling 'magic'"):
        smc.draw_smc(case.lm, case.constraint, resample="magic", **more)
    with pytest.raises(UnsupportedError, match="candidate"):
        smc.draw_smc(case.lm, case.constraint, resample="without_replacement", move=Awrs(), **more)
    with pytest.raises(ValueError, match="threshold"):
        smc.draw_smc(case.lm, case.constraint, threshold=1.5, **more)
    with pytest.raises(ValueError, match="particles"):
        smc.draw_smc(case.lm, case.constraint, particles=0, **more)
    with pytest.raises(LimitError, match="not even an end token"):
        smc.draw_smc(case.lm, case.constraint, n=2, rng=rng, max_tokens=0)
    with pytest.raises(ValueError, match="below infinity"):
        smc.draw_smc(case.lm, case.constraint, critic=lambda text: math.inf, **more)
    with pytest.raises(ValueError, match="thin"):
        pimh.draw_pimh(case.lm, case.constraint, thin=0, **more)

    class Broken:
        def __init__(self, row: Any) -> None:
            self.row = row

        def next_logprobs(self, prefixes: list[list[int]]) -> Any:
            return np.array([self.row] * len(prefixes))

    for row, message in (
        ([math.nan] * 4, "NaN"),
        ([0.0] * 3, "rows of at least 4"),
        ([-math.inf] * 4, "all minus infinity"),
    ):
        with pytest.raises(ValueError, match=message):
            smc.draw_smc(Broken(row), case.constraint, **more)


def test_a_twist_steers_where_masks_are_blind() -> None:
    """At every step the b is a trap: what must follow it does not fit. A price on what is still to write shows it."""
    case = regular("blind", LETTERS, "([ac]|bb{9}){4}", 6, seed=7)
    alive = []
    for twist in (None, Shortest(1.0)):
        draws = smc.draw_smc(
            case.lm, case.constraint, n=100, rng=np.random.default_rng(0), max_tokens=6, particles=6, twist=twist
        )
        alive.append(sum(draw.log_weight > -np.inf for draw in draws))
    assert alive[1] > 2 * alive[0]
