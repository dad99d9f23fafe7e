"""Different answers: in the order of drawing without replacement, with weights that undo the choice.

Statistical tests have fixed seeds: G-tests at p > 1e-6, means within 5 standard errors.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pytest

from constrain.base.errors import LimitError
from constrain.sampling import without_replacement as without
from constrain.sampling.core import masked_sampling
from constrain.sampling.success_trie import SuccessTrie
from tests.markov_factory import LETTERS, PIECES, TWO, Case, cases, empty, g_test, regular

Texts = dict[bytes, float]
LAWS = ["exact", "masked"]


def by_text(case: Case, law: dict[tuple[int, ...], float]) -> Texts:
    """Mass of each text, whatever its tokens."""
    found = defaultdict[bytes, float](float)
    for tokens, p in law.items():
        found[spelled(case, tokens)] += p
    return dict(found)


def spelled(case: Case, tokens: tuple[int, ...]) -> bytes:
    return b"".join(case.constraint.vocabulary.tokens[token] or b"" for token in tokens)


def runs(case: Case, times: int, n: int, seed: int = 0, **more):
    rng = np.random.default_rng(seed)
    for _ in range(times):
        yield without.draw_without_replacement(
            case.lm, case.constraint, n=n, rng=rng, max_tokens=case.max_tokens, **more
        )


def few() -> Case:
    """Ways to write ab, abb, b and bab in pieces."""
    return regular("few", PIECES, "ab|abb|b|bab", 4, seed=5)


@pytest.mark.parametrize("order", LAWS)
@pytest.mark.parametrize("name", list(cases()))
def test_all_of_a_small_language_come_out_once_with_their_own_mass(name: str, order: str) -> None:
    """n larger than the language: everything there is, once; weights that are p(x), and a mean that is Z."""
    case = cases()[name]
    masses = {text: p for text, p in by_text(case, case.law()).items() if p > 0}
    (draws,) = runs(case, 1, len(masses) + 3, order=order)
    assert Counter(spelled(case, d.tokens) for d in draws) == dict.fromkeys(masses, 1)
    for draw in draws:
        own = math.exp(draw.log_weight) / len(draws)
        assert own == pytest.approx(masses[spelled(case, draw.tokens)], rel=1e-9)
    assert math.exp(draws.log_z) == pytest.approx(case.z, rel=1e-9)
    assert draws.stats["log_time"] == np.inf
    assert draws.stats["missing"] == 0


@pytest.mark.parametrize("shared", [False, True], ids=["fresh tries", "one trie"])
def test_the_order_is_that_of_drawing_from_p_given_l_without_replacement(shared: bool) -> None:
    """The first two texts: p(x) p(y) / (Z (Z - p(x))), whether or not a trie is shared between runs."""
    case = few()
    masses = by_text(case, case.law())
    z = math.fsum(masses.values())
    pairs = {(x, y): p * q / (z * (z - p)) for x, p in masses.items() for y, q in masses.items() if x != y}
    assert math.fsum(pairs.values()) == pytest.approx(1)
    trie = SuccessTrie(case.max_tokens) if shared else None
    counts = Counter(tuple(spelled(case, d.tokens) for d in draws) for draws in runs(case, 800, 2, seed=1, trie=trie))
    assert g_test(counts, pairs) > 1e-6


def test_the_masked_order_is_that_of_the_masked_distribution() -> None:
    """The first answer is a masked draw that did not end nowhere; it is not one of p given L."""
    case = cases()["a^n b^n"]
    draws = masked_sampling.draw_masked(
        case.lm, case.constraint, n=1000, rng=np.random.default_rng(0), max_tokens=case.max_tokens
    )
    q = {d.tokens: math.exp(d.logprob - d.log_weight) for d in draws if d.log_weight > -np.inf}
    law = by_text(case, {tokens: p / math.fsum(q.values()) for tokens, p in q.items()})
    counts = Counter(spelled(case, d[0].tokens) for d in runs(case, 400, 1, seed=2, order="masked"))
    assert g_test(counts, law) > 1e-6
    assert g_test(counts, by_text(case, case.exact())) < 1e-12
    counts = Counter(spelled(case, d[0].tokens) for d in runs(case, 400, 1, seed=2))
    assert g_test(counts, by_text(case, case.exact())) > 1e-6


@pytest.mark.parametrize("order", LAWS)
def test_estimates_are_unbiased(order: str) -> None:
    """The mean weight against Z, and the weight of one text against its mass, over 500 runs of 3 answers."""
    case = few()
    masses = by_text(case, case.law())
    rare = min(masses, key=masses.__getitem__)
    totals, rares = [], []
    for draws in runs(case, 500, 3, seed=3, order=order):
        assert len({spelled(case, d.tokens) for d in draws}) == 3
        totals.append(math.exp(draws.log_z))
        rares.append(sum(math.exp(d.log_weight) for d in draws if spelled(case, d.tokens) == rare) / 3)
    for values, truth in ((totals, case.z), (rares, masses[rare])):
        assert abs(np.mean(values) - truth) < 5 * np.std(values) / math.sqrt(len(values))


def test_inclusion_probabilities_are_those_that_are_seen() -> None:
    """Given the time that was reached, a sequence of mass p is in time with probability 1 - exp(-t p): for a text that
    is written in one way, the mean of that over runs is how often it was in."""
    case = regular("one way", LETTERS, "a[bc]{1,2}", 4, seed=2)
    law = case.law()
    expected, seen = defaultdict[tuple[int, ...], float](float), Counter[tuple[int, ...]]()
    times = 800
    for draws in runs(case, times, 2, seed=4):
        seen.update(draw.tokens for draw in draws)
        for draw in draws:  # Horvitz-Thompson: 1 / inclusion of those that are in has the mean 1
            expected[draw.tokens] += 1 / math.exp(
                without.log_inclusion(math.log(law[draw.tokens]), draws.stats["log_time"])
            )
    for tokens in law:
        if seen[tokens] > 100:
            assert expected[tokens] / times == pytest.approx(1, abs=0.35)


def test_logs_of_inclusions_are_right_at_both_ends() -> None:
    assert without.log_inclusion(-800.0, 10.0) == pytest.approx(-790.0)
    assert without.log_inclusion(-1.0, math.inf) == 0
    assert without.log_inclusion(-2.0, 2.0) == pytest.approx(math.log(1 - math.exp(-1)))
    assert without.log_inclusion(-32.0, 1.0) == pytest.approx(math.log(-math.expm1(-math.exp(-31.0))))


def test_answers_arrive_in_rounds_of_the_model() -> None:
    """A beam asks for several prefixes at once: fewer calls, hardly more rows."""
    case = cases()["palindromes"]
    wide, narrow = [next(runs(case, 1, 8, seed=6, together=k, order="masked")) for k in (8, 1)]
    assert narrow.stats["model_calls"] == narrow.stats["rows"]
    assert wide.stats["model_calls"] < 0.5 * narrow.stats["model_calls"]
    assert wide.stats["rows"] < 2 * narrow.stats["rows"]


def test_a_trie_saves_what_was_learnt() -> None:
    case, trie = cases()["counting"], SuccessTrie(10)
    first = next(runs(case, 1, 20, seed=7, trie=trie))
    second = next(runs(case, 1, 20, seed=8, trie=trie))
    assert second.stats["model_calls"] < 0.5 * first.stats["model_calls"]
    assert case.z <= second.stats["bound"] <= first.stats["bound"]


def test_validators_prune() -> None:
    case = regular("any", TWO, "[ab]{2,}", 6, seed=1)
    asked: list[bytes] = []

    def accepts(text: bytes) -> bool:
        asked.append(text)
        return text == text[::-1]

    draws = next(runs(case, 1, 100, seed=9, accepts=accepts, viable=lambda text: not text.startswith(b"b")))
    found = {spelled(case, d.tokens) for d in draws}
    assert found == {
        spelled(case, t) for t in case.law() if spelled(case, t) == spelled(case, t)[::-1] and t[:1] != (1,)
    }
    assert len(asked) == len(set(asked))
    assert not any(text.startswith(b"b") for text in asked)


@pytest.mark.parametrize("order", LAWS)
def test_a_search_without_a_text_raises_limit_error(order: str) -> None:
    with pytest.raises(LimitError, match="max_tokens is 5; the shortest text found takes 7 tokens"):
        next(runs(empty(), 1, 3, order=order))
    case = cases()["counting"]
    with pytest.raises(LimitError, match="no text was found after 3 prefixes"):
        next(runs(case, 1, 3, order=order, prefixes=3))
    some = next(runs(case, 1, 50, seed=1, order=order, prefixes=300 if order == "exact" else 130))
    assert 0 < len(some) < 50
    assert some.stats["missing"] == 50 - len(some)
    assert len(next(runs(case, 1, 0, order=order))) == 0
    with pytest.raises(LimitError, match="not even an end token"):
        without.draw_without_replacement(case.lm, case.constraint, n=1, rng=np.random.default_rng(0), max_tokens=0)


def test_the_same_seed_gives_the_same_answers() -> None:
    case = cases()["bytes"]
    one, two = (next(runs(case, 1, 10, seed=3)) for _ in range(2))
    assert list(one) == list(two)
