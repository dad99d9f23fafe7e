"""ASAp as published: its distribution is that of the trie, and converges to p given L after first diverging from it."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest

from constrain.sampling import asap, trie_rejection
from constrain.sampling.success_trie import END, SuccessTrie, TrieNode
from constrain.sampling.success_walks import build_prefix_distribution
from tests.markov_factory import LETTERS, TWO, Case, Tokens, cases, outcomes, regular


def law_of_next(case: Case, trie: SuccessTrie) -> dict[Tokens, float]:
    """Q(x): the probability that the next walk takes x, from the theta that are known now."""
    found: dict[Tokens, float] = {}
    ends = case.constraint.vocabulary.eos_ids

    def walk(matcher, node: TrieNode | None, q: float) -> None:
        row = case.lm.next_logprobs([matcher.tokens])[0]
        bits = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")
        allowed = np.flatnonzero(bits)
        if len(matcher.tokens) + 1 == case.max_tokens:
            allowed = allowed[np.isin(allowed, ends)]
        law = build_prefix_distribution(row, allowed, ends)
        children = {} if node is None else node.children
        weights = [p * (children[a].theta if a in children else 1.0) for a, p in zip(law.tokens.tolist(), law.probs)]
        for a, weight in zip(law.tokens.tolist(), weights):
            share = q * weight / sum(weights) if weight else 0.0
            if share and a == END:
                found[tuple(matcher.tokens)] = share
            elif share:
                further = matcher.fork()
                further.advance(a)
                walk(further, children.get(a), share)

    walk(case.constraint.matcher(), trie.root, 1.0)
    return found


def distance(case: Case, trie: SuccessTrie) -> float:
    """KL(p given L || Q) in nats."""
    q = law_of_next(case, trie)
    return sum(p * math.log(p / q[text]) for text, p in case.exact().items() if p > 0)


def curve(case: Case, after: list[int], seed: int) -> list[float]:
    """Return the KL divergence after n draws."""
    trie, rng, done, found = SuccessTrie(case.max_tokens), np.random.default_rng(seed), 0, []
    for n in after:
        asap.draw_asap(case.lm, case.constraint, n=n - done, rng=rng, max_tokens=case.max_tokens, trie=trie)
        found.append(distance(case, trie))
        done = n
    return found


def test_the_published_sampler_first_gets_worse_than_masking_and_then_better() -> None:
    """Exactly three a, at most 8 letters: the median of the exact KL over 7 models, after 0 (masking), 1 and 300 draws.
    Ten draws of trie rejection from the same trie have the exact distribution throughout (test_sampling_exact)."""
    curves = [curve(regular("counting", TWO, "(b*a){3}b+", 9, seed=seed), [0, 1, 300], seed) for seed in range(7)]
    start, bump, end = (float(np.median(values)) for values in zip(*curves))
    assert bump > 1.05 * start
    assert end < 0.5 * start
    assert sum(one > zero for zero, one, _ in curves) >= 5


@pytest.mark.parametrize("name", ["a^n b^n", "sums"])
def test_its_distribution_is_that_of_the_trie_and_the_weight_corrects_it(name: str) -> None:
    """By playing all outcomes of the walk after 3 others: P(takes x) = Q(x), P(takes x) w(x) = p(x), E[w] = Z."""
    case = cases()[name]

    def taught() -> SuccessTrie:
        trie = SuccessTrie(case.max_tokens)
        trie_rejection.draw_exact(
            case.lm, case.constraint, n=2, rng=np.random.default_rng(1), max_tokens=case.max_tokens, trie=trie
        )
        return trie

    q, seen, weighted = (
        law_of_next(case, taught()),
        defaultdict[Tokens, float](float),
        defaultdict[Tokens, float](float),
    )

    def run(rng):
        return asap.draw_asap(case.lm, case.constraint, n=1, rng=rng, max_tokens=case.max_tokens, trie=taught())[0]

    for probability, draw in outcomes(run):
        if draw.log_weight > -np.inf:
            seen[draw.tokens] += probability
            weighted[draw.tokens] += probability * math.exp(draw.log_weight)
    assert dict(seen) == pytest.approx(q, rel=1e-9)
    assert dict(weighted) == pytest.approx(case.law(), rel=1e-9)


def test_the_trie_is_shared_with_trie_rejection() -> None:
    """What one learns the other uses: ASAp's 300 draws spare rejection most of its lost attempts."""
    case, trie = cases()["traps, trigram"], SuccessTrie(7)
    more = {"max_tokens": 7, "n": 50}
    alone = trie_rejection.draw_exact(case.lm, case.constraint, rng=np.random.default_rng(0), **more)
    asap.draw_asap(case.lm, case.constraint, rng=np.random.default_rng(0), max_tokens=7, n=300, trie=trie)
    after = trie_rejection.draw_exact(case.lm, case.constraint, rng=np.random.default_rng(0), trie=trie, **more)
    assert after.stats["attempts"] <= 55 < alone.stats["attempts"]


def test_validators_prune_and_weigh() -> None:
    case = regular("any", LETTERS, "[abc]{2,}", 6, seed=1)
    law = {text: p for text, p in case.law().items() if text == text[::-1]}
    asked: list[bytes] = []

    def accepts(text: bytes) -> bool:
        asked.append(text)
        return text == text[::-1]

    draws = asap.draw_asap(
        case.lm, case.constraint, n=1500, rng=np.random.default_rng(1), max_tokens=6, accepts=accepts
    )
    assert len(asked) == len(set(asked))
    assert all(draw.tokens in law for draw in draws if draw.log_weight > -np.inf)
    weights = np.exp(draws.log_weights)
    assert abs(weights.mean() - math.fsum(law.values())) < 5 * weights.std() / math.sqrt(len(weights)) + 1e-3
