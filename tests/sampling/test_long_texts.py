"""What long forced texts and enumerated languages cost: backups of values beside their plain definition, how often they
are made, and chains that have nothing more to learn.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.base.errors import LimitError
from constrain.sampling import draw, estimate, population_schedule
from constrain.sampling.enumerated_texts import list_all_texts
from constrain.sampling.learned_twist import value_backups
from constrain.sampling.learned_twist.value_backups import (
    BASE,
    COARSE_SHRINK,
    REACH,
    SLOT_SHRINK,
    STATE_SHRINK,
    TINY,
)
from constrain.sampling.learned_twist.value_table import HORIZONS, MOST_RATIO, SMALLEST, count_horizons, guess_logs
from constrain.sampling.particles import Prefixes
from constrain.sampling.populations import Settings
from constrain.sampling.post_filtering import PostFilter, as_checker
from constrain.sampling.smc import open_populations
from tests.markov_factory import LETTERS, ChainModel, cases, g_test

EVEN = ChainModel(np.log(np.array([[0.3, 0.25, 0.25, 0.2]] * 5)), 1)


# ---- the backup beside its definition --------------------------------------------------------------------------------


def average_plainly(classes: Any, new: Any, means: Any, prior: Any, line: Any, left: int) -> Any:
    """The values of all slots, as `value_backups` defines them, with everything computed anew."""
    old = value_backups._earlier_values(classes, prior, left)
    counts = new + classes.earlier
    logs = np.log(np.maximum(new * means + classes.earlier * old, TINY) / np.maximum(counts, TINY))
    values = guess_logs(line, classes.least, left)
    for groups, shrink in zip(classes.groups, (COARSE_SHRINK, STATE_SHRINK)):
        ratios = np.exp(np.minimum(logs - values, MOST_RATIO))
        common = (np.bincount(groups, counts * ratios) + shrink) / (np.bincount(groups, counts) + shrink)
        values = values + np.log(common)[groups]
    ratios = np.exp(np.minimum(logs - values, -SMALLEST))
    values = values + np.log((counts * ratios + SLOT_SHRINK) / (counts + SLOT_SHRINK))
    return np.where((new == 0) & (classes.earlier > 0), old, np.exp(np.clip(values, SMALLEST, 0.0)))


def solve_plainly(layout: Any, classes: Any, prior: Any, table: Any) -> tuple[Any, Any, Any]:
    """The equation, for all slots and numbers of tokens left."""
    owners, targets, probs = value_backups._merge_edges(layout, classes, table)
    count, size, width = len(layout.texts), len(classes.slots), count_horizons(int(layout.lefts.max()))
    logs, own, slot_own = np.full((size, width), SMALLEST), np.zeros(count), np.zeros(count)
    values, before = np.zeros(size), np.zeros(count)
    for left in range(1, int(HORIZONS[width - 1]) + 1):
        sums = layout.ends + np.bincount(owners, probs * values[targets], count)
        if len(layout.children):
            sums += np.bincount(layout.child_owners, layout.child_probs * before[layout.children], count)
        before = np.minimum(sums, 1.0)
        used = layout.weights * (np.ones(count, np.bool_) if left == 1 else layout.lefts > 1)
        weights = used * (BASE + np.exp(-np.abs(layout.lefts - left) / REACH))
        shares, totals = (np.bincount(classes.texts, one, size) for one in (weights, weights * before))
        counts = classes.last if left == 1 else classes.counts
        values = average_plainly(classes, counts, totals / np.maximum(shares, TINY), prior, table.line, left)
        now = layout.lefts == left
        own[now], slot_own[now] = before[now], values[classes.texts[now]]
        if left in HORIZONS[:width]:
            logs[:, HORIZONS[:width].tolist().index(left)] = np.log(np.maximum(values, TINY))
    return np.minimum(logs, 0.0), own, slot_own


@pytest.mark.parametrize("name", [*cases(), "forced"])
def test_backups_are_those_of_the_definition(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a first call, and in a second one with what the first has kept."""
    solve, compared = value_backups._solve, list[int]()

    def compare(layout: Any, classes: Any, prior: Any, table: Any, unseen: Any) -> Any:
        found = solve(layout, classes, prior, table, unseen)
        if unseen is None:
            for one, plain in zip(found, solve_plainly(layout, classes, prior, table)):
                np.testing.assert_allclose(one, plain, rtol=0, atol=1e-12)
            compared.append(len(prior.slots))
        return found

    monkeypatch.setattr(value_backups, "_solve", compare)
    lm, constraint, most = EVEN, constrain.compile(LETTERS, regex="a{40}(b|c)"), 45
    if name != "forced":
        case = cases()[name]
        lm, constraint, most = (
            case.lm,
            constrain.compile_grammar(case.constraint.grammar, case.constraint.vocabulary),
            9,
        )
    for seed in range(2):
        draw(lm, constraint, sampler="smc", n=5, particles=4, rng=np.random.default_rng(seed), max_tokens=most)
    assert min(compared) == 0 < max(compared)


def test_backups_of_long_texts_take_as_long_as_a_few_of_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that are backed up, while a population of a forced text grows, relative to the text's length."""

    def count_texts(length: int) -> float:
        texts, backing = list[int](), population_schedule.back_up

        def count(visited: Any, *given: Any) -> Any:
            texts.append(len(visited))
            return backing(visited, *given)

        with monkeypatch.context() as patch:
            patch.setattr(population_schedule, "back_up", count)
            draw(EVEN, constrain.compile(LETTERS, regex=f"a{{{length}}}"), sampler="smc", n=1, particles=16,
                 rng=np.random.default_rng(0), max_tokens=length + 1)  # fmt: skip
        assert max(texts) == length + 1
        return sum(texts) / length

    assert count_texts(50) <= 7
    assert count_texts(200) <= 7


# ---- enumerated languages --------------------------------------------------------------------------------------------


def count_grown(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which every population that grows from now on adds an item."""
    grown, growing = list[int](), population_schedule.grow_twisted_population

    def count(trie: Any, particles: int, *given: Any, **named: Any) -> Any:
        grown.append(particles)
        return growing(trie, particles, *given, **named)

    monkeypatch.setattr(population_schedule, "grow_twisted_population", count)
    return grown


def test_a_chain_that_has_enumerated_the_language_grows_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = count_grown(monkeypatch)
    forced = constrain.compile(LETTERS, regex="a{60}")
    draws = draw(EVEN, forced, sampler="pimh", n=20, rng=np.random.default_rng(0), max_tokens=62)
    log_z = 60 * math.log(0.3) + math.log(0.2)
    assert len(grown) == 1
    assert (draws.stats["populations"], draws.stats["start_bias"], draws.stats["acceptance"]) == (30, 0, 1)
    assert {round(one.log_weight, 9) for one in draws} == {round(log_z, 9)}
    assert draws.ess == pytest.approx(20)
    grown.clear()
    found = estimate(EVEN, forced, sampler="pimh", n=64, rng=np.random.default_rng(0), max_tokens=62)
    assert (found.trusted, len(grown)) == (True, 16)  # one population in each of 16 calls
    assert found.value == pytest.approx(log_z)


def test_its_draws_are_exact_and_independent() -> None:
    case = cases()["pieces"]
    draws = draw(case.lm, case.constraint, sampler="pimh", n=4000, particles=512, rng=np.random.default_rng(0),
                 max_tokens=case.max_tokens)  # fmt: skip
    assert draws.stats["start_bias"] == 0
    assert g_test(Counter(one.tokens for one in draws), case.exact()) > 1e-6
    assert draws.log_z == pytest.approx(math.log(case.z))


def test_a_chain_does_not_change_its_law_after_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is enumerated later depends on the texts that were drawn."""
    grown = count_grown(monkeypatch)
    few = constrain.compile(LETTERS, regex="a{5}|b{5}")
    given: dict[str, Any] = {"max_tokens": 6, "rng": np.random.default_rng(0), "n": 9}
    draw(EVEN, few, sampler="pimh", burn=1, **given)
    assert len(grown) == 11 - 1  # the empty start is frozen: all of 1 + 9 populations grow
    grown.clear()
    draw(EVEN, few, sampler="pimh", burn=2, **given)
    assert len(grown) == 1


def test_a_chain_without_a_text_ends_once_that_is_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = count_grown(monkeypatch)
    given: dict[str, Any] = {"sampler": "pimh", "n": 3, "rng": np.random.default_rng(0), "max_tokens": 12}
    with pytest.raises(LimitError, match="no text of at most 12 tokens"):
        draw(EVEN, constrain.compile(LETTERS, regex="a{5}|b{5}"), checker=lambda text: False, **given)
    assert len(grown) == 1
    with pytest.raises(LimitError, match="max_tokens is 12; the shortest text found takes 21 tokens"):
        draw(EVEN, constrain.compile(LETTERS, regex="a{20}"), **given)
    assert len(grown) == 2


def test_populations_find_the_whole_language_and_no_more() -> None:
    """Also with a checker; not while a token was not followed, and not with a critic, whose weights are not known."""
    settings, enumerated = Settings.of(9), 0
    for name, case in cases().items():
        limited: Any = PostFilter(
            case.constraint, as_checker(lambda text: len(text) != 2, case.constraint.vocabulary), dead={}
        )
        prefixes = Prefixes(case.lm, limited)
        source = open_populations(prefixes, 512, Settings.of(case.max_tokens), "fresh")
        assert list_all_texts(prefixes.root, prefixes.ends) is None
        for _ in range(4):
            source.grow(np.random.default_rng(0))
        texts = list_all_texts(prefixes.root, prefixes.ends)
        law = {t: p for t, p in case.law().items() if len(case.constraint.vocabulary.text(t)) != 2}
        if texts is not None:
            enumerated += 1
            assert {tuple(one.tokens): one.logprob for one in texts} == pytest.approx(
                {tokens: math.log(p) for tokens, p in law.items() if p > 0}
            ), name
        else:
            assert name in ("brackets", "palindromes"), name
    assert enumerated >= 9
    judged = open_populations(prefixes, 4, Settings.of(9, critic=lambda text: 0.0), "fresh")
    assert not hasattr(judged, "texts") and hasattr(open_populations(prefixes, 4, settings, "fresh"), "texts")


@pytest.mark.parametrize("sampler", ["exact", "asap", "without_replacement"])
def test_no_row_is_asked_for_where_only_an_end_would_be_in_time(sampler: str) -> None:
    """All 3^4 prefixes of four letters are visited or known to be dead ends, and their rows could not change that."""
    seen = Counter[int]()

    class Noting:
        def next_logprobs(self, prefixes: list[list[int]]) -> Any:
            seen.update(map(len, prefixes))
            return EVEN.next_logprobs(prefixes)

    rare, most = constrain.compile(LETTERS, regex="[ab]{3}c|[ab]{4}[abc]*c"), 5
    found = estimate(Noting(), rare, sampler=sampler, n=48, rng=np.random.default_rng(0), max_tokens=most)
    assert found.value == pytest.approx(math.log(0.55**3 * 0.25 * 0.2), abs=0.5)
    assert seen[4] <= 8 * 16  # the texts of L, once in each of 16 calls at most
    assert not seen[5]
