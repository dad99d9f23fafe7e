"""Steps, samplers and the exact law over a small Markov model, against brute force."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

import constrain
from constrain.base.errors import TokenRefused
from constrain.playground.sampler_rounds import (
    COMPARED_SAMPLERS,
    MOST_TEXTS,
    SamplerRounds,
    compute_law,
    list_accepted_texts,
)
from constrain.playground.step_report import report_step
from constrain.vocabulary.vocabulary import Vocabulary
from tests.markov_factory import PASS_ABOVE, ChainModel, g_test

VOCABULARY = Vocabulary.from_tokens([b"a", b"b", b"ab", b"ba", b"c", None], eos_ids=[5])
MODEL = ChainModel.random(VOCABULARY, 1, seed=4)
CONSTRAINT = constrain.compile(VOCABULARY, regex="(ab|ba|c){1,2}")
LENGTH = 6


def sequences() -> dict[tuple[int, ...], float]:
    """Every token sequence of the constraint with its probability, the end token included."""
    found, waiting = {}, [((), 0.0)]
    while waiting:
        tokens, log = waiting.pop()
        matcher = CONSTRAINT.matcher()
        for token in tokens:
            matcher.advance(token)
        row = MODEL.next_logprobs([list(tokens)])[0]
        if matcher.is_complete:
            found[tokens] = math.exp(log + row[5])
        for token in range(5):
            if matcher.allows(token) and len(tokens) < LENGTH:
                waiting.append(((*tokens, token), log + float(row[token])))
    return found


def law() -> dict[str, float]:
    """The probability of every text, given the constraint."""
    sums: Counter[str] = Counter()
    for tokens, mass in sequences().items():
        sums[VOCABULARY.decode(tokens)] += mass  # type: ignore[assignment]
    total = sum(sums.values())
    return {text: mass / total for text, mass in sums.items()}


def test_the_law_is_that_of_brute_force() -> None:
    found, expected = compute_law(MODEL, CONSTRAINT), law()
    assert set(found["texts"]) == set(expected)
    unresolved = found["unresolved"]
    assert all(abs(found["texts"][text] - mass) <= unresolved + 1e-9 for text, mass in expected.items())
    assert math.exp(found["log_total"]) == pytest.approx(sum(sequences().values()), rel=unresolved + 1e-9)


def test_texts_are_listed_or_said_to_be_too_many() -> None:
    texts = list_accepted_texts(CONSTRAINT)
    assert texts is not None and set(texts) == {text.encode() for text in law()}
    for pattern in ("[ab]*c", "(a|b){7}", "a{2000,}"):
        too_many = constrain.compile(VOCABULARY, regex=pattern)
        assert list_accepted_texts(too_many) is None
        assert compute_law(MODEL, too_many)["texts"] is None
    assert len(list_accepted_texts(constrain.compile(VOCABULARY, regex="a{1,40}")) or ()) == MOST_TEXTS
    assert list_accepted_texts(constrain.compile(VOCABULARY, regex="a{1,41}")) is None


@pytest.mark.parametrize("name", COMPARED_SAMPLERS)
def test_rounds_add_up(name: str) -> None:
    rounds = SamplerRounds(MODEL, CONSTRAINT, name, np.random.default_rng(1), LENGTH)
    for done in (8, 16, 20):
        state = rounds.run(8 if done < 20 else 4)
        assert state["drawn"] == done == sum(state["counts"].values()) + state["unfinished"]
        assert set(state["shares"]) <= set(state["counts"]) <= set(law())
        assert sum(state["shares"].values()) == pytest.approx(1)
        assert 0 < state["ess"] <= done + 1e-6


def test_exact_draws_follow_the_law_and_masked_ones_do_not() -> None:
    counts = {}
    for name in ("exact", "masked"):
        rounds = SamplerRounds(MODEL, CONSTRAINT, name, np.random.default_rng(2), LENGTH)
        counts[name] = rounds.run(3_000)["counts"]
    assert g_test(counts["exact"], law()) > PASS_ABOVE
    assert g_test(counts["masked"], law()) < PASS_ABOVE


@pytest.mark.parametrize("tokens", [[], [0], [2], [4, 0], [4, 3]])
def test_a_step_is_the_row_of_the_model_under_the_mask(tokens: list[int]) -> None:
    found = report_step(MODEL, CONSTRAINT, tokens, bars=6, rng=np.random.default_rng(0))
    matcher, row = CONSTRAINT.matcher(), np.exp(MODEL.next_logprobs([tokens])[0])
    for token in tokens:
        matcher.advance(token)
    allowed = [token for token in range(6) if matcher.allows(token)]
    assert found["mass"] == pytest.approx(row[allowed].sum()) and found["allowed"] == len(allowed)
    assert found["nats"] == pytest.approx(-math.log(row[allowed].sum()))
    assert found["text"] == VOCABULARY.decode(tokens) and found["forced"] == matcher.forced().decode()
    bars = {bar["token"]: bar for bar in found["bars"]}
    assert set(bars) == set(range(6))
    for token, bar in bars.items():
        assert bar["raw"] == pytest.approx(row[token])
        assert bar["masked"] == pytest.approx(row[token] / row[allowed].sum() if token in allowed else 0)
        assert bar["is_allowed"] == (token in allowed) and bar["is_end"] == (token == 5)
    assert found["choices"]["drawn"] in allowed
    assert found["choices"]["likeliest"] == max(allowed, key=lambda token: row[token])


def test_drawn_tokens_follow_the_mask() -> None:
    row = np.exp(MODEL.next_logprobs([[]])[0])
    allowed = [token for token in range(6) if CONSTRAINT.matcher().allows(token)]
    rng = np.random.default_rng(3)
    drawn = Counter(report_step(MODEL, CONSTRAINT, [], bars=1, rng=rng)["choices"]["drawn"] for _ in range(1_000))
    assert g_test(drawn, {token: row[token] / row[allowed].sum() for token in allowed}) > PASS_ABOVE


def test_ends_and_refused_tokens() -> None:
    found = report_step(MODEL, CONSTRAINT, [4, 5], bars=3, rng=np.random.default_rng(0))
    assert found["has_ended"] and found["choices"] is None and found["pieces"] == ["c", "end of text"]
    with pytest.raises(TokenRefused):
        report_step(MODEL, CONSTRAINT, [0, 0], bars=3, rng=np.random.default_rng(0))
