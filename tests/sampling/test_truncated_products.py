"""Truncated products against walks over every text that they have, and over every text that there is."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest

from constrain.base.errors import ArgumentError
from constrain.sampling import Hmm
from constrain.sampling.particles import Prefixes, Twisted
from constrain.sampling.populations import Settings
from constrain.sampling.research.hmm_product import HiddenProduct
from constrain.sampling.research.markov_exact import Product
from constrain.sampling.smc import grow_population
from constrain.sampling.twists import Future
from tests.markov_factory import LETTERS, PASS_ABOVE, TWO, Case, cases, g_test, outcomes, regular

CASES = [cases()["counting"], cases()["pieces"], regular("pairs", LETTERS, "(a|bb|c[ab]){1,3}", 6, seed=4)]
THRESHOLDS = [1e-9, 0.01, 0.1, 0.4]


def mass_left(step: Any, start: Any, max_tokens: int) -> tuple[float, float]:
    """p of the texts of a product, and of all that leaves it, by a walk over every path of tokens.

    step: from a state to the probability of its end, what it drops, and (probability, state) for each token.
    """
    z, lost, layer = 0.0, 0.0, [(1.0, start)]
    for left in range(max_tokens, 0, -1):
        after = []
        for p, state in layer:
            end, dropped, edges = step(state)
            z += p * end
            if left > 1:
                lost += p * dropped
                after += [(p * q, target) for q, target in edges]
        layer = after
    return z, lost


def walk_product(made: Product) -> tuple[float, float]:
    """The same for a Product."""

    def step(state: int) -> tuple[float, float, list[tuple[float, int]]]:
        edges = range(made.first_edge[state], made.first_edge[state + 1])
        arcs = [(math.exp(made.arc[i]), int(made.target[e])) for e in edges
                for i in range(made.first_arc[e], made.first_arc[e + 1])]  # fmt: skip
        return math.exp(made.end[state]), math.exp(made.dropped[state]), arcs

    return mass_left(step, 0, made.max_tokens)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_sums_of_a_truncated_product(case: Case, threshold: float) -> None:
    made = Product.of(case.lm.as_ngram(), case.constraint, max_tokens=case.max_tokens, threshold=threshold)
    z, lost = walk_product(made)
    assert math.exp(made.log_z) == pytest.approx(z, abs=1e-12)
    assert math.exp(made.log_lost) == pytest.approx(lost, abs=1e-12)
    assert math.exp(made.log_z) <= case.z + 1e-12 <= math.exp(made.log_z) + math.exp(made.log_lost) + 2e-12


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_dropped_mass_is_that_of_allowed_tokens_without_an_edge(case: Case) -> None:
    """So nothing is lost beside what `dropped` says: each state's end, edges and rest are all that may follow."""
    made = Product.of(case.lm.as_ngram(), case.constraint, max_tokens=case.max_tokens, threshold=0.05)
    assert made.log_lost > -math.inf
    for pair, (model, state) in enumerate(made.pairs.tolist()):
        allowed = math.fsum(np.exp(made.lm.logs[model])[made.automaton.allowed(state)])
        edges = slice(made.first_edge[pair], made.first_edge[pair + 1])
        there = math.fsum(np.exp(made.weight[edges])) + math.exp(made.dropped[pair])
        assert there == pytest.approx(allowed, abs=1e-12) if edges.start < edges.stop else there >= allowed - 1e-12


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nothing_is_lost_below_every_probability(case: Case) -> None:
    lm, given = case.lm.as_ngram(), {"max_tokens": case.max_tokens}
    whole, cut = Product.of(lm, case.constraint, **given), Product.of(lm, case.constraint, threshold=1e-12, **given)
    assert cut.log_z == pytest.approx(whole.log_z, abs=1e-12) and cut.log_lost == whole.log_lost == -math.inf
    hmm = Hmm.random(3, case.constraint.vocabulary.size, rng=np.random.default_rng(1), peaked=1.0)
    all_of_it = HiddenProduct(hmm, case.constraint, **given)
    most = HiddenProduct(hmm, case.constraint, threshold=1e-12, **given)
    assert most.log_z == pytest.approx(all_of_it.log_z, abs=1e-12)
    assert most.log_lost == all_of_it.log_lost == -math.inf


def walk_hidden(made: HiddenProduct) -> tuple[float, float]:
    """The same walk for a HiddenProduct: a state of the walk is one of the automaton and a mass by hidden state."""
    lm = made.lm

    def step(at: tuple[int, Any]) -> tuple[float, float, list[tuple[float, Any]]]:
        state, belief = at
        tokens, after = made.arcs[state]
        edges = []
        for token, target in zip(tokens.tolist(), after.tolist()):
            joint = belief * lm.emit[:, token]
            edges.append((float(joint.sum()), (target, joint / joint.sum() @ lm.move)))
        end = float(belief @ made.ending) if made.automaton.accepting[state] else 0.0
        return end, float(belief @ made.dropped[state]), edges

    return mass_left(step, (0, lm.start), made.max_tokens)


@pytest.mark.parametrize("case", CASES[:2], ids=lambda case: case.name)
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_sums_of_a_truncated_hidden_product(case: Case, threshold: float) -> None:
    hmm = Hmm.random(3, case.constraint.vocabulary.size, rng=np.random.default_rng(3), peaked=1.0)
    limit = min(case.max_tokens, 6)
    made = HiddenProduct(hmm, case.constraint, max_tokens=limit, threshold=threshold)
    z, lost = walk_hidden(made)
    assert math.exp(made.log_z) == pytest.approx(z, abs=1e-12)
    assert math.exp(made.log_lost) == pytest.approx(lost, abs=1e-12)
    truth = math.exp(HiddenProduct(hmm, case.constraint, max_tokens=limit).log_z)
    assert math.exp(made.log_z) <= truth + 1e-12 <= math.exp(made.log_z) + math.exp(made.log_lost) + 2e-12


def test_futures_of_a_hidden_product_are_sums_over_texts() -> None:
    case, limit = CASES[0], 6
    hmm = Hmm.random(3, TWO.size, rng=np.random.default_rng(3), peaked=1.0)
    made = HiddenProduct(hmm, case.constraint, max_tokens=limit)
    for prefix in ((), (0,), (1, 0), (0, 0, 1)):
        matcher, left = case.constraint.matcher(), limit - len(prefix)
        for token in prefix:
            matcher.advance(token)
        before = hmm.logprob(prefix) if prefix else 0.0
        texts = [
            (*prefix, *rest)
            for k in range(left)
            for rest in product(range(2), repeat=k)
            if case.accepts(b"".join(TWO.tokens[token] or b"" for token in (*prefix, *rest)))
        ]
        wanted = math.fsum(math.exp(hmm.logprob([*text, 2]) - before) for text in texts)
        found = made.future(matcher, prefix, left)
        assert math.exp(found) == pytest.approx(wanted, abs=1e-12)
        tokens, values = made.futures(matcher, prefix, left)
        for token, value in zip(tokens.tolist(), values.tolist()):
            child = matcher.fork()
            child.advance(token)
            assert value == pytest.approx(made.future(child, [*prefix, token], left - 1), abs=1e-9)


@pytest.mark.parametrize("kind", ["ngram", "hmm"])
def test_truncated_products_are_twists_that_keep_estimates_unbiased(kind: str) -> None:
    case = regular("small", TWO, "a{1,2}b|ba", 4, seed=2)
    model: Any = case.lm.as_ngram()
    if kind == "hmm":
        model = Hmm.random(2, TWO.size, rng=np.random.default_rng(5), peaked=1.0)
    twist = Future.of(model, case.constraint, max_tokens=4, threshold=0.4)
    assert twist.product.log_lost > -math.inf
    settings, prefixes = (
        Settings.of(4, move=Twisted(twist), twist=twist, threshold=0.9),
        Prefixes(case.lm, case.constraint),
    )
    z, mass = 0.0, dict[Any, float]()
    for probability, population in outcomes(lambda rng: grow_population(prefixes, 2, settings, rng)):
        z += probability * math.exp(population.log_z)
        for node, log_weight in zip(population.nodes, population.log_weights.tolist()):
            tokens = tuple(node.tokens)
            mass[tokens] = mass.get(tokens, 0.0) + probability * math.exp(log_weight) / 2
    law = case.law()
    assert z == pytest.approx(case.z, abs=1e-12)
    assert all(abs(mass.get(x, 0.0) - law.get(x, 0.0)) < 1e-12 for x in {*mass, *law})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_truncated_states_are_estimated_by_similar_ones(case: Case) -> None:
    made = Product.of(case.lm.as_ngram(), case.constraint, max_tokens=case.max_tokens, threshold=0.1)
    values, means = (np.exp(one) for one in made.completed)
    visits = np.exp(made.forward)
    for left in range(1, case.max_tokens + 1):
        weights = visits[case.max_tokens - left] + 1e-6 * visits.sum(axis=0)
        with_edges = [s for s in range(len(made.pairs)) if made.first_edge[s] < made.first_edge[s + 1]]
        for state, (_, number) in enumerate(made.pairs.tolist()):
            edges = slice(made.first_edge[state], made.first_edge[state + 1])
            wanted = math.exp(made.end[state])
            if state in with_edges:
                wanted += (np.exp(made.weight[edges]) * values[left - 1][made.target[edges]]).sum()
                wanted += math.exp(made.dropped[state]) * values[left - 1][state]
            else:
                like = [s for s in with_edges if made.pairs[s, 1] == number] or with_edges
                mean = (weights[like] * values[left][like]).sum() / weights[like].sum()
                assert means[left][number] == pytest.approx(mean, abs=1e-12)
                wanted += mean
            assert values[left][state] == pytest.approx(wanted, abs=1e-12)
    assert (values >= np.exp(made.backward) - 1e-12).all()
    whole = Product.of(case.lm.as_ngram(), case.constraint, max_tokens=case.max_tokens)
    assert whole.completed[0] is whole.backward and whole.mean_future(case.constraint.matcher(), 3) == -math.inf


def test_hidden_products_estimate_what_was_left_out() -> None:
    hmm = Hmm.random(3, LETTERS.size, rng=np.random.default_rng(3), peaked=0.5)
    made = HiddenProduct(hmm, CASES[2].constraint, max_tokens=6, threshold=0.1)
    assert made.log_lost > -math.inf
    h, scale = made.completed
    values, lower = h * np.exp(scale)[:, :, None], made.h * np.exp(made.scale)[:, :, None]
    assert (values >= lower - 1e-12).all() and (values > lower + 1e-6).any()
    for left in range(1, 7):
        for state, (targets, weights) in enumerate(made.edges):
            if len(targets):
                wanted = made.ending * made.automaton.accepting[state]
                wanted = wanted + (weights * (values[left - 1][targets] @ hmm.move.T)).sum(axis=0)
                wanted = wanted + made.dropped[state] * (hmm.move @ values[left - 1][state])
                assert np.abs(values[left, state] - wanted).max() < 1e-12


@pytest.mark.parametrize("threshold", [-0.1, 1.0, math.nan])
def test_a_threshold_is_a_share(threshold: float) -> None:
    case = CASES[0]
    with pytest.raises(ArgumentError, match="threshold"):
        Product.of(case.lm.as_ngram(), case.constraint, max_tokens=5, threshold=threshold)
    with pytest.raises(ArgumentError, match="threshold"):
        HiddenProduct(
            Hmm.random(2, 3, rng=np.random.default_rng(0)), case.constraint, max_tokens=5, threshold=threshold
        )


@pytest.mark.parametrize("kind", ["ngram", "hmm"])
def test_samples_are_from_the_texts_of_the_product(kind: str) -> None:
    case = CASES[2]
    given: dict[str, Any] = {"max_tokens": case.max_tokens, "threshold": 0.05}
    made: Product | HiddenProduct
    if kind == "ngram":
        lm: Any = case.lm.as_ngram()
        made = Product.of(lm, case.constraint, **given)
    else:
        lm = Hmm.random(3, LETTERS.size, rng=np.random.default_rng(8), peaked=0.3)
        made = HiddenProduct(lm, case.constraint, **given)
    law = {tokens: math.exp(log) for tokens, log in list_texts(made, lm).items()}
    assert math.log(math.fsum(law.values())) == pytest.approx(made.log_z, abs=1e-12)
    draws = made.sample(3000, np.random.default_rng(2))
    assert all(one.logprob == pytest.approx(math.log(law[one.tokens]), abs=1e-9) for one in draws)
    assert all(one.log_weight == made.log_z for one in draws)
    total = math.fsum(law.values())
    assert g_test(Counter(one.tokens for one in draws), {x: p / total for x, p in law.items()}) > PASS_ABOVE


def list_texts(made: Product | HiddenProduct, lm: Any) -> dict[tuple[int, ...], float]:
    """Every text of a product, with its log-probability under the model."""
    found, ends = dict[tuple[int, ...], float](), list(made.automaton.constraint.vocabulary.eos_ids)
    stack: list[tuple[tuple[int, ...], int, float]] = [((), 0, 0.0)]
    while stack:
        tokens, state, log = stack.pop()
        row = lm.next_logprobs([list(tokens)])[0]
        accepting = made.automaton.accepting[int(made.pairs[state, 1]) if isinstance(made, Product) else state]
        if accepting:
            found[tokens] = log + float(np.logaddexp.reduce(row[ends]))
        if len(tokens) + 1 < made.max_tokens:
            stack += [((*tokens, token), target, log + float(row[token])) for token, target in list_arcs(made, state)]
    return found


def list_arcs(made: Product | HiddenProduct, state: int) -> list[tuple[int, int]]:
    """The tokens of a state of a product, and the states that they lead to."""
    if isinstance(made, HiddenProduct):
        return list(zip(made.arcs[state][0].tolist(), made.arcs[state][1].tolist()))
    return [
        (int(made.token[arc]), int(made.target[edge]))
        for edge in range(made.first_edge[state], made.first_edge[state + 1])
        for arc in range(made.first_arc[edge], made.first_arc[edge + 1])
    ]
