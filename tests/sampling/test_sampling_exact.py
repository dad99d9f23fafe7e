"""Trie rejection draws from exactly p given L, from the first draw on: by playing all outcomes, then by G-tests.

The G-tests have fixed seeds and fail at p < 1e-6, so a right sampler fails one of them with a probability of less than
2e-5 for a new choice of seeds; masking, drawn the same way, must fail them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pytest

from constrain.base.errors import ConstrainError, LimitError
from constrain.sampling import asap, trie_rejection
from constrain.sampling.core import masked_sampling
from constrain.sampling.success_trie import SuccessTrie
from constrain.sampling.success_walks import DistributionSource, Walk
from tests.markov_factory import LETTERS, ChainModel, Script, Tokens, cases, empty, g_test, outcomes, regular

NAMES = list(cases())
SMALL = ["a^n b^n", "sums", "single"]
HARMLESS = {"single", "only the end", "tiny mass", "brackets"}
"""Where masking has little to be wrong about: one text, texts from which the same is missing, or few that lose much."""


def attempt(source: DistributionSource, rng: Script) -> Tokens | None:
    """One attempt of the sampler."""
    walk, success = Walk(source), None
    while success is None:
        (law,) = source.distributions_at([(walk.node, walk.matcher)])
        ratio = walk.visit(law)
        alive = walk.node.parent is None or rng.random() < ratio
        success = walk.choose(law, rng) if alive else False
    return tuple(walk.matcher.tokens) if success else None


def taught(case, n: int) -> SuccessTrie:
    trie = SuccessTrie(case.max_tokens)
    asap.draw_asap(case.lm, case.constraint, n=n, rng=np.random.default_rng(5), max_tokens=case.max_tokens, trie=trie)
    return trie


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("known", [0, 1, 7])
def test_an_attempt_takes_each_text_with_its_share_of_the_mass_at_the_root(name: str, known: int) -> None:
    """P(takes x and survives) = p(x) [x in L] / m(root) for every x, by playing every outcome."""
    case = cases()[name]
    seen, total, mass = defaultdict[Tokens | None, float](float), 0.0, 1.0

    def run(rng: Script) -> Tokens | None:
        nonlocal mass
        trie = taught(case, known)
        source = DistributionSource(case.lm, case.constraint, trie, case.max_tokens)
        (law,) = source.distributions_at([(trie.root, case.constraint.matcher())])
        mass = float(trie.weights(trie.root, law).sum())
        return attempt(source, rng)

    for probability, text in outcomes(run):
        seen[text] += probability
        total += probability
    assert total == pytest.approx(1, abs=1e-12)
    rejected = seen.pop(None, 0.0)
    assert set(seen) == {text for text, p in case.law().items() if p > 0}
    for text, p in case.law().items():
        assert seen[text] == pytest.approx(p / mass, rel=1e-9, abs=1e-15)
    assert rejected == pytest.approx(1 - case.z / mass, abs=1e-12)


def small_case():
    return regular("small", LETTERS, "ab|ba?c", 4, seed=3)


def test_attempts_side_by_side_and_after_each_other_are_independent() -> None:
    """Two walks that learn from each other, turn by turn: both take (x, y) with probability p(x) p(y) / m^2; then a
    third one, with what they taught, given that both were lost, takes x with probability p(x) / its own m."""
    case = small_case()
    law, z = case.law(), case.z
    both, third = defaultdict[object, float](float), defaultdict[object, float](float)
    mass = 0.0

    def run(rng: Script) -> tuple[object, ...]:
        nonlocal mass
        source = DistributionSource(case.lm, case.constraint, None, case.max_tokens)
        walks: dict[int, Walk] = {0: Walk(source), 1: Walk(source)}
        ended: dict[int, Tokens | None] = {}
        while walks:
            for (number, walk), seen in zip(
                list(walks.items()), source.distributions_at([(w.node, w.matcher) for w in walks.values()])
            ):
                ratio = walk.visit(seen)
                if walk.node.parent is None:
                    mass = ratio
                alive = walk.node.parent is None or rng.random() < ratio
                success = walk.choose(seen, rng) if alive else False
                if success is not None:
                    ended[number] = tuple(walk.matcher.tokens) if success else None
                    del walks[number]
        if ended[0] is None and ended[1] is None:
            bound = source.trie.bound
            return None, None, attempt(source, rng), bound
        return ended[0], ended[1], None, 1.0

    for probability, (one, two, after, bound) in outcomes(run):
        both[one, two] += probability
        if one is None and two is None:
            third[after] += probability * bound
    for x, p in law.items():
        for y, q in law.items():
            assert both[x, y] == pytest.approx(p * q / mass**2, rel=1e-9)
        assert both[x, None] == pytest.approx(p / mass * (1 - z / mass), rel=1e-9)
        assert third[x] == pytest.approx(p * both[None, None], rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_draws_have_the_exact_distribution_and_masking_has_not(name: str) -> None:
    case = cases()[name]
    more = {"n": 2000, "max_tokens": case.max_tokens}
    draws = trie_rejection.draw_exact(case.lm, case.constraint, rng=np.random.default_rng(11), **more)
    assert g_test(Counter(draw.tokens for draw in draws), case.exact()) > 1e-6
    law = case.law()
    assert all(draw.logprob == pytest.approx(math.log(law[draw.tokens])) for draw in draws)
    assert len({draw.log_weight for draw in draws}) == 1
    assert draws.ess == pytest.approx(2000)
    assert math.exp(draws.log_z) == pytest.approx(case.z, rel=0.2)
    assert draws.stats["bound"] >= case.z * (1 - 1e-9)
    if name not in HARMLESS:
        biased = masked_sampling.draw_masked(case.lm, case.constraint, rng=np.random.default_rng(11), **more)
        valid = Counter(draw.tokens for draw in biased if draw.log_weight > -np.inf)
        assert g_test(valid, case.exact()) < 1e-12


def test_the_first_draw_of_a_fresh_trie_has_the_exact_distribution() -> None:
    """No draw is used up for learning: 600 times, the one draw of a trie that nobody taught."""
    case, rng = cases()["sums"], np.random.default_rng(2)
    more = {"rng": rng, "n": 1, "max_tokens": case.max_tokens}
    counts = Counter(trie_rejection.draw_exact(case.lm, case.constraint, **more)[0].tokens for _ in range(600))
    assert g_test(counts, case.exact()) > 1e-6


def test_the_weight_is_unbiased_and_independent_of_the_texts() -> None:
    """E[w f] = sum p f for f = 1 and for f = [text is the likeliest], fresh tries and n = 2: |z| < 5."""
    case, rng = cases()["a^n b^n"], np.random.default_rng(4)
    likeliest = max(case.law(), key=case.law().__getitem__)
    ones, those = [], []
    for _ in range(600):
        draws = trie_rejection.draw_exact(case.lm, case.constraint, n=2, rng=rng, max_tokens=case.max_tokens)
        ones.append(math.exp(draws[0].log_weight))
        those.append(np.mean([math.exp(d.log_weight) * (d.tokens == likeliest) for d in draws]))
    for values, truth in ((ones, case.z), (those, case.law()[likeliest])):
        assert abs(np.mean(values) - truth) < 5 * np.std(values) / math.sqrt(len(values))


def test_fewer_attempts_are_lost_the_more_is_known() -> None:
    case, trie, rng = cases()["counting"], SuccessTrie(10), np.random.default_rng(6)
    acceptance = [
        trie_rejection.draw_exact(case.lm, case.constraint, n=200, rng=rng, max_tokens=10, trie=trie).stats[
            "acceptance"
        ]
        for _ in range(4)
    ]
    assert acceptance[0] < 0.7 < 0.95 < acceptance[-1]
    done = trie_rejection.draw_exact(case.lm, case.constraint, n=200, rng=rng, max_tokens=10, trie=trie)
    assert done.stats["model_calls"] < 40, "source that are kept are not asked for again"


# ---- validators -----------------------------------------------------------------------------------------------------


def judged():
    """Any texts over a, b, c for the mask; a validator wants them to be read the same from both sides."""
    case = regular("any", LETTERS, "[abc]{2,}", 6, seed=1)
    law = {text: p for text, p in case.law().items() if text == text[::-1]}
    z = math.fsum(law.values())
    return case, {text: p / z for text, p in law.items()}, z


@pytest.mark.parametrize("late", [True, False], ids=["final only", "prefixes too"])
def test_a_validator_after_the_mask_changes_the_distribution_and_runs_once_a_text(late: bool) -> None:
    case, law, z = judged()
    asked: list[bytes] = []

    def accepts(text: bytes) -> bool:
        asked.append(text)
        return text == text[::-1] and not (not late and text.startswith(b"a"))

    def viable(text: bytes) -> bool:
        asked.append(text + b"...")
        return not text.startswith(b"a")

    if not late:
        law = {text: p for text, p in law.items() if text[:1] != (0,)}
        law = {text: p / math.fsum(law.values()) for text, p in law.items()}
    draws = trie_rejection.draw_exact(
        case.lm, case.constraint, n=2000, rng=np.random.default_rng(8), max_tokens=6, accepts=accepts,
        viable=None if late else viable,
    )  # fmt: skip
    assert g_test(Counter(draw.tokens for draw in draws), law) > 1e-6
    assert len(asked) == len(set(asked)) == draws.stats["checks"]
    if late:
        assert math.exp(draws.log_z) == pytest.approx(z, rel=0.2)
        assert draws.stats["attempts"] < 0.7 * 2000 / z, "what was refused is pruned for all later draws"
    else:
        assert not any(text.startswith(b"a") and len(text) > 4 for text in asked), "nothing behind a dead prefix"


def test_a_validator_that_raises_is_heard() -> None:
    case, _, _ = judged()

    def accepts(text: bytes) -> bool:
        raise ZeroDivisionError("the validator's own")

    with pytest.raises(ConstrainError, match="ZeroDivisionError: the validator's own"):
        trie_rejection.draw_exact(
            case.lm, case.constraint, n=1, rng=np.random.default_rng(0), max_tokens=6, accepts=accepts
        )


# ---- answers where there are none -----------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [trie_rejection.draw_exact, asap.draw_asap])
def test_nothing_in_time_is_an_error_that_is_proven(draw) -> None:
    case = empty()
    with pytest.raises(LimitError, match="max_tokens is 5; the shortest text found takes 7 tokens"):
        draw(case.lm, case.constraint, n=100, rng=np.random.default_rng(0), max_tokens=5)


def test_a_validator_that_refuses_all_ends_by_proof_or_by_budget() -> None:
    case, _, _ = judged()
    more = {"n": 1, "rng": np.random.default_rng(0), "max_tokens": 3, "accepts": lambda text: False}
    with pytest.raises(LimitError, match="with any probability"):
        trie_rejection.draw_exact(case.lm, case.constraint, **more)
    more["max_tokens"] = 6
    with pytest.raises(LimitError, match="no text was found in 20 attempts"):
        trie_rejection.draw_exact(case.lm, case.constraint, **more, attempts=10)
    with pytest.raises(LimitError, match="no text was found"):
        trie_rejection.draw_exact(case.lm, case.constraint, **more, seconds=0.0)


def test_an_exhausted_budget_returns_the_texts_found() -> None:
    case = cases()["counting"]
    draws = trie_rejection.draw_exact(
        case.lm, case.constraint, n=10, rng=np.random.default_rng(1), max_tokens=10, attempts=2
    )
    assert 0 < len(draws) < 10
    assert draws.stats["missing"] == 10 - len(draws)
    assert draws.stats["attempts"] == 22


def test_none_wanted_none_given() -> None:
    case = cases()["counting"]
    for draw in (trie_rejection.draw_exact, asap.draw_asap):
        assert len(draw(case.lm, case.constraint, n=0, rng=np.random.default_rng(0), max_tokens=5)) == 0


def test_the_same_seed_gives_the_same_draws() -> None:
    case = cases()["bytes"]
    one, two = (
        trie_rejection.draw_exact(case.lm, case.constraint, n=30, rng=np.random.default_rng(9), max_tokens=6)
        for _ in range(2)
    )
    assert list(one) == list(two)


class Faulty:
    """A model with one kind of invalid rows."""

    def __init__(self, row: object) -> None:
        self.row = row

    def next_logprobs(self, prefixes: list[list[int]]) -> object:
        return np.array([self.row] * len(prefixes))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([np.nan] * 4, "NaN"),
        ([-np.inf] * 4, "all minus infinity"),
        ([0.0] * 4, "sum to 1 but to 4"),
        ([-1.0] * 3, "rows of at least 4 log-probabilities"),
        (-1.0, "rows of at least 4 log-probabilities"),
    ],
)
def test_rows_that_are_not_distributions_are_errors(row: object, message: str) -> None:
    case = regular("letters", LETTERS, "[ab]+", 4)
    for draw in (trie_rejection.draw_exact, asap.draw_asap):
        with pytest.raises(ValueError, match=message):
            draw(Faulty(row), case.constraint, n=2, rng=np.random.default_rng(0), max_tokens=4)


def test_a_trie_of_another_length_is_refused() -> None:
    case = cases()["counting"]
    with pytest.raises(ValueError, match="learnt for max_tokens 9, not 10"):
        trie_rejection.draw_exact(
            case.lm, case.constraint, n=1, rng=np.random.default_rng(0), max_tokens=10, trie=SuccessTrie(9)
        )
    with pytest.raises(LimitError, match="not even an end token"):
        trie_rejection.draw_exact(case.lm, case.constraint, n=1, rng=np.random.default_rng(0), max_tokens=0)


def test_memory_is_bounded_and_the_distribution_unchanged() -> None:
    """A trie too small for the language evicts nodes repeatedly; the draws are still exact."""
    case, trie = cases()["palindromes"], SuccessTrie(9, max_bytes=1 << 16)
    draws = trie_rejection.draw_exact(
        case.lm, case.constraint, n=2500, rng=np.random.default_rng(3), max_tokens=9, trie=trie
    )
    assert g_test(Counter(draw.tokens for draw in draws), case.exact()) > 1e-6
    assert trie.nbytes <= (1 << 16) + 4 * 9 * 450


def test_half_precision_rows_are_taken() -> None:
    case = regular("letters", LETTERS, "[ab]{1,2}", 3, seed=2)
    half = ChainModel(case.lm.logs.astype(np.float16).astype(np.float32), 1)
    draws = trie_rejection.draw_exact(half, case.constraint, n=500, rng=np.random.default_rng(0), max_tokens=3)
    assert g_test(Counter(draw.tokens for draw in draws), case.exact()) > 1e-6
