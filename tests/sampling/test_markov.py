"""Exact answers of Markov models under constraints: all of them against brute force, texts by a G-test."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pytest

from constrain import sampling
from constrain.base.errors import LimitError, UnsupportedError
from constrain.compilation.constraint_compiler import compile as compile_constraint
from constrain.sampling.research import markov_exact
from constrain.sampling.research.markov_exact import Product
from constrain.sampling.research.ngram import NGram
from constrain.vocabulary.vocabulary import Vocabulary
from tests.markov_factory import (
    LETTERS,
    PASS_ABOVE,
    Case,
    ChainModel,
    cases,
    chi_square_tail,
    empty,
    g_test,
    masked_fails,
    outcomes,
)

every_case = pytest.mark.parametrize("case", cases().values(), ids=lambda case: case.name)


def product_of(case: Case) -> Product:
    return Product.of(case.lm.as_ngram(), case.constraint, max_tokens=case.max_tokens)


@every_case
def test_the_probability_of_the_language(case: Case) -> None:
    assert math.exp(product_of(case).log_z) == pytest.approx(case.z, rel=1e-12)


@every_case
def test_futures_of_all_prefixes(case: Case) -> None:
    """h(u) p(u) is the mass of the texts that begin with u, for every u that begins one."""
    mass: dict[tuple[int, ...], float] = defaultdict(float)
    for tokens, p in case.law().items():
        for length in range(len(tokens) + 1):
            mass[tokens[:length]] += p
    product = product_of(case)
    for prefix in sorted(mass)[:: 1 + len(mass) // 100]:
        matcher = case.constraint.matcher()
        log = 0.0
        for i, token in enumerate(prefix):
            log += case.lm.next_logprobs([list(prefix[:i])])[0][token]
            matcher.advance(token)
        found = product.future(matcher, prefix, case.max_tokens - len(prefix))
        assert found + log == pytest.approx(math.log(mass[prefix]), abs=1e-9)


@every_case
def test_the_likeliest_text(case: Case) -> None:
    law, best = case.law(), product_of(case).best()
    assert law[best.tokens] == pytest.approx(max(law.values()), rel=1e-12)
    assert math.exp(best.logprob) == pytest.approx(law[best.tokens], rel=1e-12)


@every_case
def test_marginals_and_gradient(case: Case) -> None:
    """Both against sums over all texts: an end counts for the end tokens as the model shares it."""
    rows, ends = np.exp(case.lm.logs), list(case.constraint.vocabulary.eos_ids)
    ngram = case.lm.as_ngram()
    places, uses = np.zeros((case.max_tokens, case.lm.size)), np.zeros_like(ngram.logs)
    for tokens, p in case.exact().items():
        for i, token in enumerate(tokens):
            places[i, token] += p
            uses[ngram.state(tokens[:i]), token] += p
        share = rows[case.lm.context(tokens), ends]
        places[len(tokens), ends] += p * share / share.sum()
        uses[ngram.state(tokens), ends] += p * share / share.sum()
    product = product_of(case)
    assert np.abs(product.marginals() - places).max() < 1e-12
    assert np.abs(product.gradient() - uses).max() < 1e-12


@pytest.mark.parametrize("name", ["traps", "pieces", "sums"])
def test_the_gradient_by_differences(name: str) -> None:
    case = cases()[name]
    gradient = product_of(case).gradient()
    for state, token in np.argwhere(gradient > 1e-3)[:12]:
        ends = []
        for step in (-1e-5, 1e-5):
            model = case.lm.as_ngram()
            model.logs = model.logs.copy()
            model.logs[state, token] += step
            ends.append(Product.of(model, case.constraint, max_tokens=case.max_tokens).log_z)
        assert gradient[state, token] == pytest.approx((ends[1] - ends[0]) / 2e-5, abs=1e-5)


@every_case
def test_draws_are_exact(case: Case) -> None:
    draws = product_of(case).sample(2000, np.random.default_rng(5))
    assert g_test(Counter(draw.tokens for draw in draws), case.exact()) > PASS_ABOVE
    law = case.law()
    for draw in draws[:50]:
        assert math.exp(draw.logprob) == pytest.approx(law[draw.tokens])
        assert math.exp(draw.log_weight) == pytest.approx(case.z)


def test_draws_by_playing_through_all_randomness() -> None:
    case = cases()["traps, trigram"]
    product, law = product_of(case), defaultdict(float)
    for probability, (draw,) in outcomes(lambda rng: product.sample(1, rng)):
        law[draw.tokens] += probability
    assert {k: pytest.approx(v, abs=1e-12) for k, v in case.exact().items()} == law


@pytest.mark.parametrize("name", ["counting", "traps", "traps, trigram", "pieces", "bytes", "sums", "palindromes"])
def test_masking_fails_the_same_test(name: str) -> None:
    assert masked_fails(cases()[name], 2000, np.random.default_rng(5))


def test_no_text_in_time() -> None:
    case = empty()
    product = product_of(case)
    assert product.log_z == -np.inf
    assert not product.marginals().any()
    for ask in (product.best, lambda: product.sample(1, np.random.default_rng(0))):
        with pytest.raises(LimitError, match="max_tokens is 5; the shortest text found takes 7 tokens"):
            ask()


def test_too_large_products_and_unsupported_models_raise() -> None:
    case = cases()["sums"]
    with pytest.raises(LimitError, match="more than 9 states"):
        Product.of(case.lm.as_ngram(), case.constraint, max_tokens=8, most_states=9)
    with pytest.raises(LimitError, match="not even an end token"):
        Product.of(case.lm.as_ngram(), case.constraint, max_tokens=0)
    with pytest.raises(UnsupportedError, match="last few tokens"):
        markov_exact.draw_markov(case.lm, case.constraint, n=1, rng=np.random.default_rng(0), max_tokens=8)


def test_an_ngram_backs_off_to_the_longest_context_it_knows() -> None:
    rows = np.log(np.full((4, 4), 0.25))
    model = NGram([(), (0,), (1,), (0, 1)], rows)
    assert [model.state(text) for text in ([], [0], [2, 1], [2, 0, 1], [0, 1, 2])] == [0, 1, 2, 3, 0]
    for state, name in enumerate(model.contexts):
        assert model.follow(state, np.arange(4)).tolist() == [model.state([*name, token]) for token in range(4)]
    for wrong in ([(), (0,), (1,), (2, 1, 1)], [(1,), (0,), (2,), (3,)]):
        with pytest.raises(ValueError, match="no context"):
            NGram(wrong, rows)
    with pytest.raises(ValueError, match="sum to 1"):
        NGram([()], np.zeros((1, 4)))
    with pytest.raises(ValueError, match="one row for each"):
        NGram([()], rows)


def test_an_ngram_of_texts_counts() -> None:
    model = NGram.of_texts([[0, 1], [0, 1], [0, 2]], end=3, size=4, order=1)
    law = np.exp(model.next_logprobs([[0], [1]]))
    assert law[0, 1] > law[0, 2] > law[0, 0]
    assert law[1, 3] > 0.7
    assert np.exp(model.logs).sum(axis=1) == pytest.approx(1)


def test_distilling_a_bigram_model_gives_it_back() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"c", None], eos_ids=[3])
    lm = ChainModel.random(vocabulary, 1, 3)
    constraint = compile_constraint(vocabulary=LETTERS, regex="[abc]{4,7}")
    model = NGram.distil(lm, constraint, n=3000, rng=np.random.default_rng(0), max_tokens=9, order=1)
    for token in range(3):
        found, right = np.exp(model.next_logprobs([[token]])[0]), np.exp(lm.next_logprobs([[token]])[0])
        assert np.abs(found - right).max() < 0.05
    assert sampling is not None


def test_the_tail_of_chi_square() -> None:
    """Against tables: the 1e-6 point of 5, 16, 30 degrees, and the median of 1 and 2."""
    assert chi_square_tail(0.45493642, 1) == pytest.approx(0.5, abs=1e-6)
    assert chi_square_tail(2 * math.log(2), 2) == pytest.approx(0.5, abs=1e-9)
    assert chi_square_tail(11.0704977, 5) == pytest.approx(0.05, abs=1e-6)
    assert chi_square_tail(31.9999269, 16) == pytest.approx(0.01, abs=1e-6)


def test_the_g_test_sees_what_is_drawn_too_often_though_rare() -> None:
    law = {(0,): 0.6, (1,): 0.3999, (2,): 0.0001}
    rng = np.random.default_rng(0)
    fair = [
        g_test(Counter({(i,): int(c) for i, c in enumerate(rng.multinomial(1000, list(law.values())))}), law)
        for _ in range(300)
    ]
    assert min(fair) > 1e-4
    assert g_test(Counter({(0,): 600, (1,): 390, (2,): 10}), law) < 1e-12
    assert g_test(Counter({(0,): 480, (1,): 520}), law) < 1e-12
    assert g_test(Counter({(0,): 600, (1,): 400, (3,): 1}), law) == 0
