"""Parts of the samplers against their definitions, without statistics of draws."""

from __future__ import annotations

import math
import sys
from collections import Counter
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from constrain import Vocabulary, compile
from constrain.base.errors import ArgumentError, LimitError
from constrain.sampling import awrs, checkers, draw
from constrain.sampling.checkers import Stepwise, ValidatorChecker
from constrain.sampling.core.weight_statistics import weight_stats
from constrain.sampling.estimation import estimate_from, student_quantile
from constrain.sampling.exponential_race import SMALL, ExponentialRace
from constrain.sampling.particles import Awrs, Masked, Move, Mover, Prefixes
from constrain.sampling.populations import Settings
from constrain.sampling.post_filtering import PostFilter
from constrain.sampling.resampling import Resampler
from constrain.sampling.research.ngram import SMALLEST, NGram
from constrain.sampling.smc import grow_population
from constrain.sampling.success_trie import END, SuccessTrie, is_trie, trie_key
from tests.markov_factory import cases
from tests.model_factory import UniformModel

CASE = cases()["counting"]
BYTES = Vocabulary.bytes()


# ---- checkers --------------------------------------------------------------------------------------------------


def test_a_checker_counts_the_questions_that_it_asks() -> None:
    calls: list[bytes] = []

    def feed(state: bytes, more: bytes) -> bytes | None:
        calls.append(state + more)
        return None if b"bb" in state + more else state + more

    def accepted(state: bytes) -> bool:
        calls.append(state + b"$")
        return len(state) > 1

    checker = Stepwise(BYTES, b"", feed, accepted)
    assert checker.calls == 0
    for text in (b"ab", b"abb", b"ab", b"b", b"aa"):
        position = checker.matcher()
        for token in text:
            if position.allows(token):
                position.advance(token)
        position.allows(BYTES.eos_ids[0])
        assert checker.calls == len(calls) == len(set(calls))


def test_a_checker_evicts_the_oldest_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkers, "REMEMBERED", 3)
    checker = ValidatorChecker(BYTES, viable=lambda text: True)
    position = checker.matcher()
    for token in b"abcab":
        assert position.allows(token)
    assert checker.calls == 3 and len(checker.answers.known) == 3
    assert position.allows(ord("d")) and len(checker.answers.known) == 3
    assert position.allows(ord("b")) and checker.calls == 4
    assert position.allows(ord("a")) and checker.calls == 5


@pytest.mark.parametrize("sampler", ["asap", "without_replacement"])
@pytest.mark.parametrize("name", ["accepts", "viable"])
def test_validators_are_checked_before_the_model_is_called(sampler: str, name: str) -> None:
    model = UniformModel(BYTES.size)
    with pytest.raises(TypeError, match=f"{name} is .*a function of bytes"):
        draw(
            model, compile(BYTES, regex="a|b"), sampler=sampler, n=0, rng=np.random.default_rng(0), max_tokens=4,
            **{name: 3},  # type: ignore[arg-type]
        )  # fmt: skip
    assert not model.calls


def test_dead_tokens_are_stored_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[PostFilter.__module__], "REMEMBERED", 2)
    dead: dict[tuple[int, ...], set[int]] = {}
    behind = PostFilter(compile(BYTES, regex="[ab]*"), ValidatorChecker(BYTES), dead=dead)
    for prefix in ((97,), (98,), (97, 97), (97, 98), (98, 98), (BYTES.eos_ids[0],), ()):
        behind.mark_dead(prefix)
    assert dead == {(97,): {97, 98}, (98,): {98}}


def test_the_shortest_completion_under_a_checker_is_that_of_the_constraint() -> None:
    constraint = compile(BYTES, regex="ab*cd")
    position = PostFilter(constraint, ValidatorChecker(BYTES)).matcher()
    alone = constraint.matcher()
    for token in b"abb":
        assert position.shortest_completion() == alone.shortest_completion() is not None
        assert position.shortest_completion(1) == alone.shortest_completion(1)
        position.advance(token)
        alone.advance(token)


# ---- estimates -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "terms"),
    [
        (0.9, (0.846584767123, 0.570890629839, 0.258517108282, 0.0543958362195)),
        (0.975, (2.3722712303, 2.82249861574, 2.55584967951, 1.58953405339)),
        (0.995, (4.91654759862, 8.83476207216, 12.1442957831, 12.0548243143)),
    ],
)
@pytest.mark.parametrize("freedom", [1.0, 3.0, 4.5, 20.0, 1e9])
def test_quantiles_of_students_t_distribution(p: float, terms: tuple[float, ...], freedom: float) -> None:
    """terms: of the quantile's expansion in 1 / freedom, found from exact quantiles of even degrees to 80 digits."""
    normal = {0.9: 1.2815515655446, 0.975: 1.95996398454005, 0.995: 2.5758293035489}[p]
    wanted = normal + sum(term / freedom ** (k + 1) for k, term in enumerate(terms))
    assert student_quantile(p, freedom) == pytest.approx(wanted, rel=1e-10)
    assert student_quantile(1 - p, freedom) == pytest.approx(-wanted, rel=1e-10)


def test_the_level_of_an_interval_is_a_number() -> None:
    draws = draw(CASE.lm, CASE.constraint, sampler="masked", n=8, rng=np.random.default_rng(0), max_tokens=4)
    with pytest.raises(TypeError, match="a number between 0 and 1"):
        estimate_from(draws, len, level="0.9")  # type: ignore[arg-type]
    for level in (0, 1, -0.5, 1.5):
        with pytest.raises(ArgumentError, match="level"):
            estimate_from(draws, len, level=level)


def test_errors_of_divergences_by_the_delta_method() -> None:
    """Each draw's influence by a small change of its share, where the stats say it in closed form."""

    def divergences(shares: NDArray[np.float64], logs: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = np.exp(logs)
        mean = float(shares @ weights)
        from_q = math.log(mean) - float(shares @ logs)
        return np.array([from_q, float(shares @ (weights * logs)) / mean - math.log(mean)])

    for seed in range(5):
        logs = np.random.default_rng(seed).normal(-3, 0.8, 40)
        n, step = len(logs), 1e-6
        even = np.full(n, 1 / n)
        here = divergences(even, logs)
        influence = [(divergences((1 - step) * even + step * np.eye(n)[i], logs) - here) / step for i in range(n)]
        errors = np.std(influence, axis=0) / math.sqrt(n)
        stats = weight_stats(np.append(logs, [-np.inf] * 10))
        assert stats["kl_to_target"] == pytest.approx(here[0]) and stats["kl_from_target"] == pytest.approx(here[1])
        assert stats["kl_to_error"] == pytest.approx(errors[0], rel=1e-3)
        assert stats["kl_from_error"] == pytest.approx(errors[1], rel=1e-3)
        assert stats["dead_ends"] == pytest.approx(0.2)
        assert stats["log_z"] == pytest.approx(math.log(np.exp(logs).sum() / 50))
        assert stats["ess"] == pytest.approx(np.exp(logs).sum() ** 2 / np.exp(2 * logs).sum())
        assert stats["largest"] == pytest.approx(np.exp(logs).max() / np.exp(logs).sum())


# ---- populations -----------------------------------------------------------------------------------------------


def weighing(given: list[float]) -> Mover:
    """Moves that weigh so much in the first of 4 steps, and nothing later."""
    left_of = iter(given)

    def move(prefixes: Any, node: Any, left: int, rng: Any) -> Move:
        return Masked()(prefixes, node, left, rng)._replace(log_weight=next(left_of) if left == 4 else 0.0)

    return move


def listening(seen: list[list[float]]) -> Resampler:
    """A resampler that selects the last particle, and records its arguments in `seen`."""

    def resample(weights: NDArray[np.float64], n: int, rng: Any) -> NDArray[np.int64]:
        seen.append(weights.tolist())
        return np.full(n, n - 1, np.int64)

    return resample


def test_a_population_is_resampled_where_its_effective_size_is_below_the_threshold() -> None:
    constraint, model = compile(BYTES, regex="[ab]{2}"), UniformModel(BYTES.size)
    for seed in range(40):
        random = Random(seed)
        given = [random.choice([-math.inf, 3 * random.random() - 5]) for _ in range(3)] + [-2.0]
        threshold = random.random()
        seen: list[list[float]] = []
        settings = Settings.of(4, move=weighing(given), resample=listening(seen), threshold=threshold)
        found = grow_population(Prefixes(model, constraint), 4, settings, np.random.default_rng(seed))
        weights = np.exp(given)
        size = weights.sum() ** 2 / (weights**2).sum()
        assert found.resampled == len(seen) == (size < threshold * 4)
        assert found.log_z == pytest.approx(math.log(weights.mean()))
        if seen:
            assert seen[0] == pytest.approx((weights / weights.sum()).tolist())
        assert found.lines == (1 if seen else sum(weights > 0))


def test_counts_of_a_population() -> None:
    with pytest.raises(LimitError, match="not even an end token fits"):
        Settings.of(0)
    with pytest.raises(ArgumentError, match="particles"):
        draw(
            CASE.lm, CASE.constraint, sampler="smc", n=0, rng=np.random.default_rng(0), max_tokens=4, particles=0,
        )  # fmt: skip


def test_checks_of_particles_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = []
    step = awrs.draw_token

    def counting(*arguments: Any, **options: Any) -> awrs.WeightedToken:
        made = step(*arguments, **options)
        spent.append(made.checks)
        return made

    monkeypatch.setattr(awrs, "draw_token", counting)
    draws = draw(
        CASE.lm, CASE.constraint, sampler="smc", n=6, rng=np.random.default_rng(0), max_tokens=CASE.max_tokens,
        move=Awrs(),
    )  # fmt: skip
    assert draws.stats["checks"] == sum(spent) > 0


# ---- races and rows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [5, SMALL + 1, 3 * SMALL])
@pytest.mark.parametrize("faint", [0.0, -40.0, -300.0])
def test_a_race_lets_every_possible_token_arrive_once(size: int, faint: float) -> None:
    logs = np.full(size, faint)
    logs[::7] = -np.inf
    logs[3] = 2.0
    logs -= np.log(np.exp(logs).sum())
    race = ExponentialRace(logs, np.random.default_rng(size))
    taken: list[int] = []
    while tokens := race.take():
        taken += tokens
        race.record(False)
    assert sorted(taken) == np.flatnonzero(logs > -np.inf).tolist()
    assert race.left == pytest.approx(0.0, abs=1e-9)


def test_tokens_without_probability_are_never_checked() -> None:
    logs = np.array([0.0, -np.inf, -800.0, -np.inf, -900.0, -np.inf])
    for valid in (2, 4, 5):
        asked: list[int] = []

        def check(token: int, valid: int = valid, asked: list[int] = asked) -> bool:
            asked.append(token)
            return token == valid

        step = awrs.draw_token(logs, check, np.random.default_rng(0))
        assert step.token == (valid if valid < 5 else None) and step.checks == len(asked)
        assert set(asked) <= {0, 2, 4} and len(set(asked)) == len(asked)
        assert step.log_weight == (-np.inf if valid == 5 else pytest.approx(logs[valid]))


# ---- n-grams ---------------------------------------------------------------------------------------------------


def test_distributions_of_an_n_gram_model_by_counting() -> None:
    size, end = 4, 3
    for seed in range(12):
        random = Random(seed)
        texts = [random.choices(range(end), k=random.randint(0, 5)) for _ in range(6)]
        order = random.randint(1, 3)
        model = NGram.of_texts(texts, end=end, size=size, order=order)
        after: dict[tuple[int, ...], Counter[int]] = {}
        for text in texts:
            for place, token in enumerate([*text, end]):
                for start in range(max(0, place - order), place + 1):
                    after.setdefault(tuple(text[start:place]), Counter())[token] += 1
        assert set(model.contexts) == set(after)
        laws: dict[tuple[int, ...], NDArray[np.float64]] = {}
        even = np.full(size, 1 / size)
        for context in sorted(after, key=len):
            lower = laws[context[1:]] if context else even
            counts = np.array([after[context][token] for token in range(size)], float)
            law = (counts + lower) / (counts.sum() + 1) + SMALLEST * even
            laws[context] = law / law.sum()
            assert np.exp(model.logs[model.contexts[context]]) == pytest.approx(laws[context], rel=1e-12)


def test_an_n_gram_model_of_a_large_vocabulary() -> None:
    texts = [[5, 4_999], [5, 7], []]
    large = NGram.of_texts(texts, end=3, size=5_000)
    law = np.exp(large.next_logprobs([[], [5], [7]]))
    assert law[0].argmax() in (3, 5) and law[1][[7, 4_999]].sum() > 0.6 and law[2].argmax() == 3
    assert law.sum(axis=1) == pytest.approx(1.0)


# ---- tries -----------------------------------------------------------------------------------------------------


def saved_trie() -> dict[str, Any]:
    """Arrays of a trie of three nodes."""
    masses = np.array([[1.0, 1.0, 0.0], [0.5, 0.2, -1.0], [0.5, 0.0, 1.01]])
    return {
        "parents": np.array([-1, 0, 0], np.int32), "tokens": np.array([END, 4, 0], np.int32), "masses": masses,
        "max_tokens": 1,
    }  # fmt: skip


@pytest.mark.parametrize("column", range(3))
@pytest.mark.parametrize("value", [0.0, 1.01, -1.0, 1.02, -0.001, -1.001, math.nan, math.inf])
def test_masses_of_a_saved_trie(column: int, value: float) -> None:
    arrays = saved_trie()
    assert is_trie(**arrays)
    arrays["masses"][1, column] = value
    assert is_trie(**arrays) == ((0 if column < 2 else -1) <= value <= 1.01)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("parents", np.array([-1, 0], np.int32)), ("parents", np.array([-1, 0, 2], np.int32)),
        ("parents", np.array([-1, -1, 0], np.int32)), ("parents", np.array([0, 0, 0], np.int32)),
        ("parents", np.array([-1, 0, 0], np.int64)), ("tokens", np.array([END, 4, 4], np.int32)),
        ("tokens", np.array([END, 4, END - 1], np.int32)), ("tokens", np.array([END, 4, 0], np.int64)),
        ("masses", np.zeros((3, 2))), ("masses", np.zeros((3, 3), np.float32)), ("max_tokens", 0),
    ],
)  # fmt: skip
def test_arrays_that_are_no_trie(name: str, value: Any) -> None:
    assert not is_trie(**{**saved_trie(), name: value})


def test_a_trie_belongs_to_what_it_was_learnt_under() -> None:
    constraint, other = compile(BYTES, regex="a|b"), compile(BYTES, regex="a|c")
    behind = PostFilter(constraint, ValidatorChecker(BYTES))
    for first, judged, same in ((constraint, False, False), (constraint, True, True), (behind, False, True)):
        trie = SuccessTrie(4)
        trie.belongs_to(first, validated=judged)
        trie.belongs_to(first, validated=judged)
        for judge in (False, True):
            if same:
                trie.belongs_to(behind, validated=judge)
            else:
                with pytest.raises(ArgumentError, match="without a validator"):
                    trie.belongs_to(behind, validated=judge)
        with pytest.raises(ArgumentError, match="another constraint"):
            trie.belongs_to(other, validated=judged)
        with pytest.raises(ArgumentError, match="with a validator" if same else "without a validator"):
            trie.belongs_to(constraint, validated=not same)


def test_keys_of_tries() -> None:
    keys = {
        trie_key(compile(BYTES, regex=regex), model=model, prompt=prompt, validators=validators)
        for regex, model, prompt, validators in product(("a", "b"), ("m", "n"), ("", "p"), ("", "v"))
    }
    assert len(keys) == 16 and all(len(bytes.fromhex(key)) == 16 for key in keys)
