"""`exact` stops early where it cannot succeed, and only there; what it says then; and what it evaluates only once."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain.base.errors import ArgumentError, ConstrainError, LimitError
from constrain.sampling import SamplingTarget, draw, trie_rejection
from constrain.sampling.attempt_forecast import (
    FIRST,
    HOPELESS,
    MARGIN,
    MassEstimate,
    count_expected_texts,
    describe_mass,
    estimate_mass,
    is_hopeless,
)
from constrain.sampling.critics import Guide
from constrain.sampling.success_trie import SMALLEST, SuccessTrie
from tests.markov_factory import Case, ChainModel, cases, g_test

LETTERS_AND_ZERO = constrain.Vocabulary.from_tokens([bytes([c]) for c in b"abcdefghijklmnopqrstuvwxyz0"] + [None], [27])


def rare_end(letters: int, zero: float) -> Case:
    """Five of some letters, then 0, which has a probability of `zero` everywhere: each of the prefixes before it loses
    nearly all of its mass, and is learned by itself.
    """
    row = np.full(28, 1e-30)
    row[:letters], row[26], row[27] = (1 - zero) / letters, zero, 0.1
    rows = np.tile(row / row.sum(), (29, 1))
    constraint = constrain.compile(LETTERS_AND_ZERO, regex=f"[a-{chr(96 + letters)}]{{5}}0")
    return Case("rare end", ChainModel(np.log(rows), 1), constraint, lambda text: False, 7)


def log_z(case: Case) -> float:
    """log p(L) of `rare_end`."""
    row = np.exp(case.lm.logs[0])
    return 5 * math.log(row[:26].sum()) + math.log(row[26]) + math.log(row[27])


def search(case: Case, seed: int = 0, **options: Any) -> Any:
    return draw(
        case.lm, case.constraint, sampler="exact", rng=np.random.default_rng(seed), max_tokens=case.max_tokens,
        **options,
    )  # fmt: skip


# ---- when the search stops -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_search_that_cannot_succeed_ends_early_and_says_why(seed: int) -> None:
    """12 million prefixes, one after the other of which would have to be learned: ten million attempts, not 2000."""
    case = rare_end(26, 1e-9)
    with pytest.raises(LimitError) as caught:
        search(case, seed, n=1)
    message = str(caught.value)
    assert "it stopped early: none of them is expected to succeed" in message
    said = float(message.split("p(L) is about ")[1].split(",")[0])
    assert said == pytest.approx(math.exp(log_z(case)), rel=0.3)
    assert "this call may make 2000" in message and 'sampler="smc"' in message
    attempts = int(message.split(" attempts")[0].split()[-1])
    assert FIRST <= attempts <= 4 * FIRST + 4  # at the first forecasts; four run side by side
    assert float(message.split("takes some ")[1].split()[0]) > 1e6


@pytest.mark.parametrize("seed", range(20))
def test_a_search_that_learns_its_way_is_not_ended(seed: int) -> None:
    """As unlikely, but of 243 prefixes only: it takes some hundreds of attempts, and then succeeds."""
    draws = search(rare_end(3, 1e-9), seed, n=1)
    assert len(draws) == 1 and draws.stats["attempts"] > 2 * FIRST
    assert draws.stats["missing"] == 0


def test_the_law_is_the_same_where_a_forecast_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """32 texts, and most are found after a forecast."""
    case = rare_end(2, 1e-6)
    known = MassEstimate(log_z(case), log_z(case) + MARGIN)
    monkeypatch.setattr(trie_rejection, "estimate_mass", lambda *given: (known, 0))
    drawn = [search(case, seed, n=1) for seed in range(100)]
    assert sum(one.stats["attempts"] > FIRST for one in drawn) > 60
    law = dict.fromkeys(product(range(2), repeat=5), 1 / 32)
    assert g_test(Counter(one[0].tokens[:5] for one in drawn), law, least=3) > 1e-6


def test_no_forecast_is_made_for_few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trie_rejection, "estimate_mass", lambda *given: pytest.fail("asked for an estimate"))
    with pytest.raises(LimitError, match=r"no text was found in 60 attempts; p\(L\) is at most"):
        search(rare_end(26, 1e-9), n=1, attempts=30)


def test_an_estimate_is_near_the_truth_also_with_a_checker() -> None:
    case = rare_end(26, 1e-9)
    given: dict[str, Any] = {"max_tokens": 7, "rng": np.random.default_rng(0)}
    found, _ = estimate_mass(case.lm, case.constraint, **given)
    assert found is not None and found.log_z == pytest.approx(log_z(case), abs=0.1)  # sd 0.025 over seeds
    assert found.largest >= found.log_z + MARGIN
    with pytest.raises(LimitError, match="it stopped early"):
        search(case, n=1, checker=lambda text: text[:1] < b"n")
    with pytest.raises(LimitError, match=r"in 400 attempts; p\(L\) is at most"):  # nothing lives: nothing is known
        search(case, n=1, attempts=200, checker=lambda text: False)


# ---- the forecast ----------------------------------------------------------------------------------------------------


def test_a_mass_that_does_not_fall_gives_attempts_over_needed() -> None:
    assert count_expected_texts(1e-6, [0.5] * 40, 1000) == pytest.approx(1000 * 1e-6 / 0.5, rel=1e-12)
    assert is_hopeless(MassEstimate(-20, math.log(HOPELESS / 1000 * 0.49)), [0.5] * 40, 1000)
    assert not is_hopeless(MassEstimate(-20, math.log(HOPELESS / 1000 * 0.51)), [0.5] * 40, 1000)


def test_the_expected_count_is_infinite_if_the_root_mass_may_fall_to_z() -> None:
    linear = [1 - i / 500 for i in range(64)]
    assert count_expected_texts(1e-199, linear, 1000) == math.inf
    assert count_expected_texts(1e-199, linear, 100) < 1e-190


def test_a_mass_below_all_bounds_of_the_trie_is_hopeless() -> None:
    """The trie raises bounds to SMALLEST, so not even one that knows every prefix accepts such texts."""
    linear = [1 - i / 500 for i in range(64)]
    assert count_expected_texts(1e-300, linear, 1000) <= 1000 * 1e-300 / SMALLEST
    forced = constrain.compile(LETTERS_AND_ZERO, regex="a{300}")
    lm = ChainModel(np.log(np.tile(np.array([0.2] + [0.8 / 27] * 27), (29, 1))), 1)
    with pytest.raises(LimitError, match=r"in 3[2-5] attempts: p\(L\) is about 6e-212.*it stopped early"):
        search(Case("forced", lm, forced, lambda text: False, 302), n=1)
    assert sum(lm.row_counts) <= 2 * 301


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_forecast_is_more_than_what_happens(seed: int) -> None:
    """Pieces of mass without texts, of sizes from equal to very unequal, are found in proportion to their size: the
    sum of p(L) / m(root) over 1000 further attempts is at most the forecast, or at least near it: MARGIN is a
    factor of 7.
    """
    rng = np.random.default_rng(seed)
    count, z = int(10 ** rng.uniform(1, 4.5)), 10 ** rng.uniform(-8, -3)
    sizes = [np.ones(count), rng.pareto(1.0, count) + 1e-9, np.exp(rng.normal(0, 3, count))][seed % 3]
    arrival = rng.exponential(size=count) / sizes  # the order of a draw without replacement by size
    left = sizes[np.argsort(arrival)] / sizes.sum()
    remaining = np.maximum(left[::-1].cumsum()[::-1], 0.0)
    made = FIRST << int(rng.integers(0, 3))
    masses = (np.concatenate([remaining, np.zeros(made + 1000)]) + z)[: made + 1000]
    expected = float((z / masses[made:]).sum())
    assert count_expected_texts(z, masses[:made].tolist(), 1000) > expected / 3


def test_numbers_beyond_floats_are_written_by_their_logs() -> None:
    assert describe_mass(-1391.2) == "exp(-1391)" and describe_mass(math.log(2e9)) == "2e+09"


# ---- what is evaluated once ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["counting", "sums", "palindromes"])
def test_no_prefix_is_evaluated_or_masked_twice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the attempts of one call, and by those of a later one with the same trie."""
    monkeypatch.setattr(trie_rejection, "estimate_mass", lambda *given: (None, 0))
    case, seen = cases()[name], Counter[tuple[int, ...]]()

    class Noting:
        def next_logprobs(self, prefixes: list[list[int]]) -> Any:
            seen.update(map(tuple, prefixes))
            return case.lm.next_logprobs(prefixes)

    trie, masks = SuccessTrie(case.max_tokens), 0
    for seed in range(2):
        draws = draw(
            Noting(), case.constraint, sampler="exact", n=150, rng=np.random.default_rng(seed),
            max_tokens=case.max_tokens, trie=trie,
        )  # fmt: skip
        masks += int(draws.stats["masks"])
    assert max(seen.values()) == 1
    assert masks == len(seen)


# ---- critics that fail -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", ["masked", "exact", "smc", "pimh", "asap", "without_replacement", "awrs"])
def test_a_critic_that_raises_is_called_a_critic(sampler: str) -> None:
    case = cases()["pieces"]

    def critic(text: str) -> float:
        raise ZeroDivisionError("mine")

    with pytest.raises(ArgumentError, match=r"^the critic failed on '.*': ZeroDivisionError: mine"):
        draw(
            case.lm, case.constraint, sampler=sampler, n=4, rng=np.random.default_rng(0), max_tokens=case.max_tokens,
            target=SamplingTarget(critic=critic),
        )  # fmt: skip


def test_a_validator_beside_a_critic_is_still_called_a_validator() -> None:
    case = cases()["pieces"]

    def accepts(text: bytes) -> bool:
        raise ZeroDivisionError("mine")

    with pytest.raises(ConstrainError, match=r"^the validator failed on b"):
        search(case, n=1, accepts=accepts, target=SamplingTarget(critic=lambda text: -1.0))
    with pytest.raises(ArgumentError, match=r"^the critic failed on"):
        draw(
            case.lm, case.constraint, sampler="smc", n=2, rng=np.random.default_rng(0), max_tokens=case.max_tokens,
            target=SamplingTarget(critic=Guide(lambda text: 0.0, lambda text: 1 / 0)),
        )  # fmt: skip
