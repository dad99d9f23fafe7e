"""The learned twist: unbiased for all values, by playing all randomness through; exact where texts of a slot agree."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from constrain import sampling
from constrain.sampling import lookahead, pimh, smc, twisted_populations
from constrain.sampling.learned_twist import value_table
from constrain.sampling.learned_twist.constraint_tables import drop_table, keep_table, new_table
from constrain.sampling.learned_twist.value_backups import back_up, measure_gap
from constrain.sampling.learned_twist.value_table import Values, ValueTable
from constrain.sampling.particles import Prefixes
from constrain.sampling.population_schedule import open_schedule
from constrain.sampling.populations import Population, Settings
from constrain.sampling.resampling import resample_without_replacement
from constrain.sampling.twisted_populations import Flat, LearningTrie, grow_twisted_population
from tests.markov_factory import LETTERS, PIECES, TWO, Case, ChainModel, cases, outcomes, regular

SMALL = regular("small", LETTERS, "(ab?)*c|b", 5, seed=2)
SPELLED = regular("spelled", PIECES, "ab|abb|ba", 3, seed=5)
MANY = 5000


def settings_of(case: Case, **options: Any) -> Settings:
    return Settings.of(case.max_tokens, **{"threshold": 0.9, **options})


def fresh(case: Case) -> tuple[LearningTrie, ValueTable]:
    table = new_table(case.constraint)
    return LearningTrie(Prefixes(case.lm, case.constraint), table.numbers, MANY), table


def learn(case: Case, populations: int, particles: int = 2, **options: Any) -> tuple[LearningTrie, ValueTable]:
    """A trie and a table after some populations."""
    trie, prior = fresh(case)
    table, rng = prior, np.random.default_rng(7)
    for _ in range(populations):
        grow_twisted_population(trie, particles, settings_of(case, **options), Values(table), rng)
        table = back_up(trie.visited, prior, table)
    return trie, table


def spoil(table: ValueTable) -> ValueTable:
    """The table with values that are wrong on purpose, some of them by a factor of 20."""
    noise = np.sin(np.arange(table.logs.size) * 3.0).reshape(table.logs.shape)
    return replace(
        table, logs=table.logs + 3 * noise, pair_logs=table.pair_logs + np.sin(5.0 * np.arange(len(table.pairs)))
    )


def forget(table: ValueTable) -> ValueTable:
    """A warm table that knows every other slot only, and guesses that the others are worth 1."""
    return replace(
        table, slots=table.slots[::2], logs=table.logs[::2], counts=table.counts[::2], spreads=table.spreads[::2],
        line=(0.0, 0.0), populations=value_table.COLD,
    )  # fmt: skip


def add_masses(mass: dict[Any, float], probability: float, population: Population) -> None:
    for node, log_weight in zip(population.nodes, population.log_weights.tolist()):
        if log_weight > -math.inf:
            mass[tuple(node.tokens)] += probability * math.exp(log_weight) / len(population.nodes)


def assert_law(mass: dict[Any, float], wanted: dict[Any, float]) -> None:
    assert max(abs(mass.get(x, 0.0) - wanted.get(x, 0.0)) for x in {*mass, *wanted}) < 1e-12


# ---- all randomness played through -----------------------------------------------------------------------------------

TABLES: dict[str, Callable[[ValueTable], Values | Flat]] = {
    "learned": Values,
    "wrong": lambda table: Values(spoil(table)),
    "half": lambda table: Values(forget(table)),
    "scout": lambda table: Values(table, unseen=0.0),
    "flat": lambda table: Flat(),
}


@pytest.mark.parametrize("threshold", [0.0, pytest.param(0.5, marks=pytest.mark.slow), 0.9, 1.0])
@pytest.mark.parametrize("case", [SMALL, SPELLED], ids=lambda case: case.name)
@pytest.mark.parametrize("defensive", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("table", TABLES)
def test_populations_are_unbiased_whatever_the_values(
    table: str, defensive: float, case: Case, threshold: float
) -> None:
    trie, learned = learn(case, 3)
    values, mass = TABLES[table](learned), defaultdict[Any, float](float)
    for probability, population in outcomes(
        lambda rng: grow_twisted_population(trie, 2, settings_of(case, threshold=threshold), values, rng, defensive)
    ):
        add_masses(mass, probability, population)
    assert_law(mass, case.law())


@pytest.mark.parametrize("threshold", [0.0, 0.9])
@pytest.mark.parametrize("particles", [1, 3])
def test_populations_of_any_size_are_unbiased(particles: int, threshold: float) -> None:
    trie, learned = learn(SMALL, 3)
    values, mass, count = Values(spoil(learned)), defaultdict[Any, float](float), 0
    for probability, population in outcomes(
        lambda rng: grow_twisted_population(trie, particles, settings_of(SMALL, threshold=threshold), values, rng, 0.1)
    ):
        add_masses(mass, probability, population)
        count += 1
        assert len(population.nodes) == particles
    assert_law(mass, SMALL.law())
    assert count > 10


@pytest.mark.parametrize("threshold", [0.0, 0.9])
def test_populations_that_widen_are_unbiased(threshold: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where values are uncertain more texts go on than there are particles, and fewer again later."""
    monkeypatch.setattr(twisted_populations, "WIDEST", 2)
    monkeypatch.setattr(twisted_populations, "WIDEST_MEAN", 2)
    monkeypatch.setattr(twisted_populations, "STEP_VARIANCE", 0.02)
    _, learned = learn(SMALL, 3)
    uncertain = replace(spoil(learned), spreads=0.1 + np.arange(len(learned.slots)) % 3, populations=value_table.COLD)
    values, mass, widths = Values(uncertain), defaultdict[Any, float](float), set[tuple[int, ...]]()
    choose_width = twisted_populations._choose_width

    def watch(*given: Any) -> int:
        chosen.append(choose_width(*given))
        return chosen[-1]

    monkeypatch.setattr(twisted_populations, "_choose_width", watch)
    chosen: list[int] = []

    def grow(rng: Any) -> Population:
        chosen.clear()  # a trie without visited texts, whose values would be known
        trie = LearningTrie(Prefixes(SMALL.lm, SMALL.constraint), learned.numbers, 0)
        return grow_twisted_population(trie, 1, settings_of(SMALL, threshold=threshold), values, rng, 0.1)

    for probability, population in outcomes(grow):
        add_masses(mass, probability, population)
        widths.add(tuple(chosen))
        assert len(population.nodes) == 1
    assert_law(mass, SMALL.law())
    assert {width for one in widths for width in one} == {1, 2}
    assert any(wide == 2 and next_width == 1 for one in widths for wide, next_width in zip(one, one[1:]))


def test_a_step_widens_where_values_are_uncertain_and_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many texts as particles where values are certain, for scouts and cold tables; bounded everywhere."""
    _, learned = learn(SMALL, 3)
    fetch, counts = Prefixes.fetch_rows, list[int]()

    def count(prefixes: Prefixes, nodes: list[Any]) -> None:
        counts.append(len(nodes))
        fetch(prefixes, nodes)

    monkeypatch.setattr(Prefixes, "fetch_rows", count)

    def grow(spread: float, populations: int = value_table.COLD, unseen: float | None = None) -> list[int]:
        counts.clear()
        table = replace(learned, spreads=np.full(len(learned.slots), spread), populations=populations)
        trie = LearningTrie(Prefixes(SMALL.lm, SMALL.constraint), learned.numbers, 0)
        grow_twisted_population(trie, 1, settings_of(SMALL), Values(table, unseen), np.random.default_rng(0))
        return counts

    widest, mean = twisted_populations.WIDEST, twisted_populations.WIDEST_MEAN
    wide = grow(10.0)
    assert 1 < max(wide) <= widest
    assert all(sum(wide[: k + 1]) <= 1 + mean * k for k in range(len(wide)))  # the first step has one text
    for narrow in (grow(0.0), grow(10.0, unseen=0.0), grow(10.0, populations=value_table.COLD - 1)):
        assert max(narrow) == 1


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_tables_that_learned_nothing_are_unbiased(threshold: float) -> None:
    trie, table = fresh(SMALL)
    mass = defaultdict[Any, float](float)
    for probability, population in outcomes(
        lambda rng: grow_twisted_population(trie, 2, settings_of(SMALL, threshold=threshold), Values(table), rng)
    ):
        add_masses(mass, probability, population)
    assert_law(mass, SMALL.law())


def test_a_second_population_may_use_what_the_first_has_learned() -> None:
    first, second = defaultdict[Any, float](float), defaultdict[Any, float](float)
    case = replace(SMALL, max_tokens=3)

    def two(rng: Any) -> list[Population]:
        trie, prior = fresh(case)
        one = grow_twisted_population(trie, 2, settings_of(case), Values(prior), rng)
        table = back_up(trie.visited, prior, prior)
        return [one, grow_twisted_population(trie, 2, settings_of(case), Values(table), rng)]

    for probability, (one, other) in outcomes(two):
        add_masses(first, probability, one)
        add_masses(second, probability, other)
    assert_law(first, case.law())
    assert_law(second, case.law())


def test_a_population_may_use_what_it_has_learned_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twisted_populations, "RELEARN", 1)
    mass, case = defaultdict[Any, float](float), replace(SMALL, max_tokens=4)
    relearned = []

    def one(rng: Any) -> Population:
        trie, prior = fresh(case)

        def relearn() -> Values:
            relearned.append(len(trie.visited))
            return Values(back_up(trie.visited, prior, prior))

        return grow_twisted_population(trie, 2, settings_of(case), Values(prior), rng, 0.1, relearn)

    for probability, population in outcomes(one):
        add_masses(mass, probability, population)
    assert_law(mass, case.law())
    assert len(relearned) > 10 and max(relearned) > 1


@pytest.mark.parametrize("followed", [1, 2])
def test_tokens_that_are_not_followed_count_in_full(followed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookahead, "FOLLOWED", followed)
    trie, table = learn(SMALL, 3)
    mass = defaultdict[Any, float](float)
    for probability, population in outcomes(
        lambda rng: grow_twisted_population(trie, 2, settings_of(SMALL), Values(table), rng, 0.1)
    ):
        add_masses(mass, probability, population)
    assert_law(mass, SMALL.law())


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("case", [SMALL, SPELLED], ids=lambda case: case.name)
def test_with_a_particle_for_every_text_nothing_is_left_to_chance(case: Case, table: str) -> None:
    trie, learned = learn(case, 3)
    law = case.law()
    for seed in range(5):
        rng = np.random.default_rng(seed)
        population = grow_twisted_population(trie, 200, settings_of(case), TABLES[table](learned), rng)
        mass = defaultdict[Any, float](float)
        add_masses(mass, 1.0, population)
        assert_law(mass, law)
        assert len(population.nodes) == 200 and population.lines == len(law) and population.resampled == 0
        alone = settings_of(case, resample="without_replacement")
        one = grow_twisted_population(trie, 200, alone, TABLES[table](learned), rng)
        assert sorted(tuple(node.tokens) for node in one.nodes) == sorted(law)


def test_particles_of_one_text_share_its_weight_and_its_line() -> None:
    trie, table = learn(SMALL, 3)
    for seed in range(20):
        population = grow_twisted_population(trie, 5, settings_of(SMALL), Values(table), np.random.default_rng(seed))
        assert population.ancestors is not None
        places = dict[Any, set[tuple[float, int]]]()
        for node, log_weight, line in zip(population.nodes, population.log_weights, population.ancestors):
            places.setdefault(node, set()).add((float(log_weight), int(line)))
        assert len(population.nodes) == 5 and all(len(one) == 1 for one in places.values())
        assert population.lines == len(set(population.ancestors.tolist()))


def test_choices_are_spread_evenly_over_neighbours() -> None:
    """Candidates side by side, such as those of one text, get their share of the particles but for less than one."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores = rng.random(60) ** 4
        chosen, probabilities = resample_without_replacement(scores, 12, rng)
        assert len(set(chosen.tolist())) == 12
        drawn = np.isin(np.arange(60), chosen[probabilities < 1])
        tail = ~np.isin(np.arange(60), chosen[probabilities == 1])
        shares = np.where(tail, scores, 0.0) * drawn.sum() / scores[tail].sum()
        for first in range(0, 60, 10):
            part = slice(first, first + 10)
            assert abs(drawn[part].sum() - shares[part].sum()) < 1 + 1e-9


@given(st.lists(st.tuples(st.floats(-9.0, 0.0), st.integers(1, 9)), min_size=1, max_size=8), st.integers(0, 30))
def test_particles_go_to_the_text_with_most_weight_per_particle(texts: list[tuple[float, int]], more: int) -> None:
    log_weights, most = np.array([one[0] for one in texts]), np.array([one[1] for one in texts])
    for limits in (np.full(len(texts), 99), most):
        wanted = [1] * len(texts)
        for _ in range(min(more, int(limits.sum()) - len(texts))):
            each = [
                log_weight - math.log(count) if count < limit else -np.inf
                for log_weight, count, limit in zip(log_weights, wanted, limits)
            ]
            wanted[each.index(max(each))] += 1
        found = twisted_populations.divide_particles(log_weights, len(texts) + more, limits)
        assert found.sum() == sum(wanted) and found.min() >= 1 and (found <= limits).all()
        shares = [np.sort(log_weights - np.log(counts)) for counts in (found, wanted)]
        assert shares[0] == pytest.approx(shares[1])
    without = twisted_populations.divide_particles(log_weights, len(texts) + more)
    assert without.sum() == len(texts) + more


@pytest.mark.parametrize("particles", [2, 5])
def test_ended_texts_keep_their_sum_and_leave_their_particles_to_others(particles: int) -> None:
    """All that can end is known before any choice, so a model that knows no other text leaves nothing to chance in the
    sum; the critic is asked about kept texts only."""
    case = regular("endings", TWO, "a*", 9, seed=4)
    judged = 0
    for seed in range(10):
        asked = list[str]()

        def critic(text: str) -> float:
            asked.append(text)  # noqa: B023
            return 0.0

        trie, table = fresh(case)
        rng = np.random.default_rng(seed)
        population = grow_twisted_population(trie, particles, settings_of(case, critic=critic), Values(table), rng)
        assert population.log_z == pytest.approx(math.log(case.z), abs=1e-12)
        assert len({tuple(node.tokens) for node in population.nodes}) == particles
        assert len(asked) == len(set(asked))
        judged += len(asked)
    assert 10 * particles <= judged < 10 * len(case.law())


@pytest.mark.parametrize("expected", [0.0, -1.0, -9.0])
def test_guesses_do_not_raise_what_a_text_is_worth(expected: float) -> None:
    limited = 0
    for case in (SMALL, SPELLED):
        trie, table = learn(case, 3)
        values = Values(forget(table))
        root = trie.begin()
        trie.prefixes.fetch_rows([root])
        ahead, _ = trie.look_ahead(root, case.max_tokens)
        guessed = np.append(values.are_guesses(np.append(ahead.slots, ahead.own_slot)), False)
        step = twisted_populations._prepare_step(ahead, None, values, case.max_tokens - 1, 0.0, expected)
        terms = np.exp(step.logs + step.psi)
        known, free = terms[~guessed].sum(), 1 - np.exp(step.psi[:-2][guessed[:-2]])
        assert terms[guessed].sum() <= max(known, math.exp(expected) - known) + 1e-12
        assert math.exp(step.log_ahead) == pytest.approx(terms.sum())
        limited += bool((free > 0).any())
        if not known:
            assert math.exp(step.log_ahead) <= math.exp(expected) + 1e-12
    assert limited, "no guess was lowered"


def test_no_value_of_a_cold_table_or_of_a_scout_counts_as_a_guess() -> None:
    _, table = learn(SMALL, 3)
    slots = np.arange(0, 40 * value_table.PACES, 7)
    warm = forget(table)
    guessed = Values(warm).are_guesses(slots)
    seen = set((warm.slots[warm.counts > 0] // value_table.PACES).tolist())
    assert guessed.tolist() == [slot // value_table.PACES not in seen for slot in slots.tolist()]
    assert guessed.any() and not guessed.all() and not Values(warm).are_guesses(np.array([-1])).any()
    cold = replace(warm, populations=value_table.COLD - 1)
    assert not Values(cold).are_guesses(slots).any() and not Values(warm, unseen=0.0).are_guesses(slots).any()


def test_a_critic_is_part_of_what_is_drawn_from() -> None:
    def shouting(text: str) -> float:
        return 0.4 * len(text) - 0.3 * text.count("b")

    wanted = {x: p * math.exp(shouting(SPELLED.constraint.vocabulary.decode(x))) for x, p in SPELLED.law().items()}
    trie, table = learn(SPELLED, 2, critic=shouting)
    mass = defaultdict[Any, float](float)
    for probability, population in outcomes(
        lambda rng: grow_twisted_population(trie, 2, settings_of(SPELLED, critic=shouting), Values(table), rng)
    ):
        add_masses(mass, probability, population)
    assert_law(mass, wanted)


# ---- what is learned -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["traps", "counting", "pieces", "palindromes"])
def test_learned_populations_spread_less_than_flat_ones(name: str) -> None:
    case = cases()[name]
    trie, table = learn(case, 12, particles=16)
    spreads = []
    for values in (Values(table), Flat()):
        rng = np.random.default_rng(1)
        log_zs = [grow_twisted_population(trie, 4, settings_of(case), values, rng).log_z for _ in range(60)]
        z = np.exp(log_zs)
        assert abs(z.mean() - case.z) < 6 * z.std() / math.sqrt(len(z)) + 1e-12
        spreads.append(float(z.std() / case.z))
    assert spreads[0] < 0.7 * spreads[1]


@pytest.mark.slow
def test_values_of_a_regular_language_and_a_markov_model_become_exact() -> None:
    """One letter a token, and tokens are not scarce, so (slot, last token) is all that matters: all weights agree."""
    case = replace(regular("loop", TWO, "(a|ba)*b", 60, seed=3), max_tokens=60)
    trie, table = learn(case, 40, particles=16)
    rng = np.random.default_rng(0)
    log_zs = [grow_twisted_population(trie, 8, settings_of(case), Values(table), rng).log_z for _ in range(20)]
    assert np.std(log_zs) < 0.01


def test_draws_use_the_table_and_keep_it() -> None:
    case = cases()["traps"]
    drop_table(case.constraint)
    options: dict[str, Any] = {"n": 12, "max_tokens": case.max_tokens, "particles": 1}
    first = smc.draw_smc(case.lm, case.constraint, rng=np.random.default_rng(0), **options)
    kept = case.constraint.learned[ValueTable]
    assert kept.populations >= 12 and len(kept.numbers) > 3
    again = smc.draw_smc(case.lm, case.constraint, rng=np.random.default_rng(0), **options)
    spreads = [np.std(draws.log_weights[draws.log_weights > -np.inf]) for draws in (first, again)]
    assert spreads[1] < 0.5 * spreads[0]
    assert first.stats["value_gap"] >= 0


def test_a_table_counts_as_memory_of_its_constraint() -> None:
    """So a cache of constraints sees it, and drops it with the state caches."""
    case = cases()["traps"]
    smc.draw_smc(case.lm, case.constraint, n=12, max_tokens=case.max_tokens, particles=8, rng=np.random.default_rng(0))
    table = case.constraint.learned[ValueTable]
    assert table.nbytes > table.logs.nbytes + table.counts.nbytes + 1000 * len(table.numbers)
    used = case.constraint.bytes_used
    drop_table(case.constraint)
    assert used - case.constraint.bytes_used == table.nbytes
    keep_table(case.constraint, table)
    case.constraint.drop_state_caches()
    assert not case.constraint.learned


def test_draws_from_a_given_table_are_the_same_again_and_leave_it_as_it_is() -> None:
    case = cases()["traps"]
    table = new_table(case.constraint)
    runs = [
        sampling.draw(
            case.lm, case.constraint, sampler="smc", n=5, rng=np.random.default_rng(3), max_tokens=case.max_tokens,
            particles=6, twist=table,
        )
        for _ in range(2)
    ]  # fmt: skip
    assert list(runs[0]) == list(runs[1])
    assert len(table.numbers) == 0 and table.populations == 0


def test_the_chain_does_not_learn_after_half_of_what_it_discards(monkeypatch: pytest.MonkeyPatch) -> None:
    case, learned_after = cases()["traps"], list[int]()
    from constrain.sampling import population_schedule

    drop_table(case.constraint)  # that other tests have left
    grown: list[int] = []
    backing, growing = population_schedule.back_up, population_schedule.grow_twisted_population

    def count_backups(*given: Any) -> Any:
        learned_after.append(len(grown))
        return backing(*given)

    def count_populations(*given: Any, **options: Any) -> Any:
        grown.append(1)
        return growing(*given, **options)

    monkeypatch.setattr(population_schedule, "back_up", count_backups)
    monkeypatch.setattr(population_schedule, "grow_twisted_population", count_populations)
    draws = pimh.draw_pimh(
        case.lm, case.constraint, n=30, rng=np.random.default_rng(0), max_tokens=case.max_tokens, burn=8,
        critic=lambda text: 0.0,  # with one, populations grow where the language was enumerated, too
    )  # fmt: skip
    scouts = len(grown) - int(draws.stats["populations"])
    assert scouts == 2, "one scout, and one probe"
    assert max(learned_after[:-1]) == 4 + scouts, "learned while the law must not change"
    assert learned_after[-1] == len(grown), "what the chain saw is kept at its end"
    assert draws.stats["acceptance"] > 0.6


# ---- hidden modes ----------------------------------------------------------------------------------------------------


@lru_cache
def hidden() -> Case:
    """Nearly all of Z begins with a token of probability 1e-7, next to which all others look more promising."""
    case = regular("hidden", LETTERS, "c{6}|(a[ab]){3}b{6}", 14, seed=1)
    rows = np.zeros((LETTERS.size + 1, LETTERS.size))
    rows[:, [0, 1, 2, LETTERS.eos_ids[0]]] = 0.949 - 1e-7, 0.05, 1e-7, 0.001
    rows[2] = 0.0
    rows[2, [2, LETTERS.eos_ids[0]]] = 0.9, 0.1
    with np.errstate(divide="ignore"):
        return replace(case, lm=ChainModel(np.log(rows), 1))


def test_scouts_find_what_is_hidden_and_the_gap_says_when_they_have() -> None:
    case, settings = hidden(), settings_of(hidden(), threshold=0.5)
    truth = math.log(case.z)
    low = smc.draw_smc(
        case.lm, case.constraint, n=1, rng=np.random.default_rng(0), max_tokens=14, particles=16, twist=None
    ).stats["log_z"]
    assert low < truth - 3, "masks alone do not find it"
    schedule = open_schedule(Prefixes(case.lm, case.constraint), 16, settings, False)
    rng = np.random.default_rng(0)
    log_zs = [schedule.grow(rng).log_z for _ in range(12)]
    assert np.logaddexp.reduce(log_zs[6:]) - math.log(6) == pytest.approx(truth, abs=0.05)
    assert log_zs[6:] == pytest.approx([truth] * 6, abs=0.15)
    assert schedule.finish() < 0.1


def test_without_scouts_the_gap_warns() -> None:
    """States that nothing was seen of are worth much less than 1 in the table: the other mode stays where it is."""
    case = hidden()
    trie, prior = fresh(case)
    table, rng = prior, np.random.default_rng(0)
    for _ in range(3):
        log_z = grow_twisted_population(trie, 2, settings_of(case), Flat(), rng, 0.0).log_z
        table = back_up(trie.visited, prior, table)
    low, high = measure_gap(trie.visited, table)
    assert log_z < math.log(case.z) - 3
    assert high - low > 3 and low < math.log(case.z) < high
