"""Forced runs: the law that the module states, by playing every random choice through; validity; budgets.

TWINS is a vocabulary with a tokenizer of its own, which takes the longest token first: texts have one canonical
tokenisation and many others.
"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain.base.errors import LimitError, TokenRefused
from constrain.decoding.forced_runs import NO_RUN, ForcedRun, list_merging_tokens, plan_forced_run
from constrain.decoding.generation_loop import generate_text
from constrain.decoding.outcomes import Outcome
from constrain.decoding.token_choice import ForcedText
from constrain.integrations.tokenizer_objects import from_tokenizer
from constrain.sampling.core.masked_sampling import PLAIN, Proposal, allowed_tokens, apply_proposal
from constrain.vocabulary.vocabulary import Vocabulary
from tests import tokenizer_factory
from tests.markov_factory import ChainModel, outcomes
from tests.model_factory import TableModel

PIECES = [b"a", b"b", b"c", b"x", b"ab", b"bc", b"abc", b"xa", b"cx"]


def encode(text: str) -> list[int]:
    """The longest token first."""
    data, out = text.encode(), []
    while data:
        best = max((piece for piece in PIECES if data.startswith(piece)), key=len)
        out.append(PIECES.index(best))
        data = data[len(best) :]
    return out


TWINS = Vocabulary.from_tokens([*PIECES, None], [len(PIECES)], encode=encode)
END = len(PIECES)
PATTERNS = ["(x|abc)abc(a|bc)?", "xabcx(a|b)", "[abc]bcx?", "abcab", "(a|c|x){1,2}bcb", "a?bca?", "(xa|x)bc(x|)"]
PROPOSALS = [PLAIN, Proposal(temperature=0.5), Proposal(top_k=2)]


def law_by_hand(
    lm: ChainModel, constraint: constrain.Constraint, proposal: Proposal
) -> dict[tuple[int, ...], tuple[float, float, float]]:
    """Simulate the rule on states: for each final token string its q' (canonical), and q and p of the same string."""
    found: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])

    def row_after(tokens: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        matcher = constraint.matcher()
        for token in tokens:
            matcher.advance(token)
        allowed = allowed_tokens(matcher.mask())
        row = lm.next_logprobs([tokens])[0]
        return row, allowed, apply_proposal(row[allowed].astype(float), proposal)

    def sampled(tokens: list[int]) -> tuple[float, float]:
        """q and p of a whole token string, token by token."""
        q = p = 1.0
        for i, token in enumerate([*tokens, END]):
            row, allowed, probs = row_after(tokens[:i])
            q, p = q * float(probs[list(allowed).index(token)]), p * math.exp(row[token])
        return q, p

    def run(tokens: list[int]) -> list[int]:
        matcher = constraint.matcher()
        for token in tokens:
            matcher.advance(token)
        plan = plan_forced_run(matcher, TWINS, tokens[-1] if tokens else None)
        return [*tokens[: len(tokens) - plan.taken_back], *plan.tokens]

    def explore(tokens: list[int], probability: float) -> None:
        _, allowed, probs = row_after(tokens)
        for token, prob in zip(allowed.tolist(), probs.tolist()):
            if prob == 0:
                continue
            if token == END:
                found[tuple(tokens)][0] += probability * prob
            else:
                explore(run([*tokens, token]), probability * prob)

    explore(run([]), 1.0)
    return {tokens: (values[0], *sampled(list(tokens))) for tokens, values in found.items()}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("proposal", PROPOSALS, ids=["plain", "temperature", "top-k"])
def test_the_law_of_forced_runs(pattern: str, proposal: Proposal) -> None:
    """q' is that of the rule, log_weight is log p / q', and forced_logprob is log q / q'."""
    constraint = constrain.compile(TWINS, regex=pattern)
    lm = ChainModel.random(TWINS, 1, seed=7)
    law = law_by_hand(lm, constraint, proposal)
    assert math.fsum(q for q, _, _ in law.values()) == pytest.approx(1)

    def run(script) -> Outcome:  # type: ignore[no-untyped-def]
        return generate_text(lm, constraint, rng=script, max_tokens=30, forced="canonical", proposal=proposal)

    found: dict[tuple[int, ...], float] = defaultdict(float)
    kept = 0.0
    for probability, out in outcomes(run):
        tokens = tuple(out.tokens)
        found[tokens] += probability
        canonical, sampled, p = law[tokens]
        assert out.finish_reason == "complete"
        assert out.logprob == pytest.approx(math.log(p))
        assert out.log_weight == pytest.approx(math.log(p / canonical))
        assert math.exp(out.stats.forced_logprob) == pytest.approx(sampled / canonical)
        kept += probability * math.exp(out.stats.forced_logprob)
    assert found.keys() == law.keys()
    for tokens, (canonical, _, _) in law.items():
        assert found[tokens] == pytest.approx(canonical)
    # the total variation distance of both laws over token strings
    outside = 1 - math.fsum(sampled for _, sampled, _ in law.values())
    distance = 0.5 * (math.fsum(abs(canonical - sampled) for canonical, sampled, _ in law.values()) + outside)
    assert 1 - kept == pytest.approx(distance, abs=1e-9)


def test_the_expected_weight_is_the_mass_of_canonical_token_strings() -> None:
    constraint = constrain.compile(TWINS, regex="(x|abc)abc(a|bc)?")
    lm = ChainModel.random(TWINS, 1, seed=3)
    law = law_by_hand(lm, constraint, PLAIN)
    total: dict[bytes, float] = defaultdict(float)
    for probability, out in outcomes(
        lambda script: generate_text(lm, constraint, rng=script, max_tokens=30, forced="canonical")
    ):
        total[out.data] += probability * math.exp(out.log_weight)
    for text, mass in total.items():
        assert mass == pytest.approx(math.fsum(p for tokens, (_, _, p) in law.items() if TWINS.text(tokens) == text))


def test_a_model_that_writes_the_tokens_of_the_tokenizer_is_not_changed() -> None:
    """Where the model has no mass on other tokenisations, both laws are one."""
    texts = ["xabcx", "xabca", "abcabc"]
    table = np.full((TWINS.size + 1, TWINS.size), 1e-12)
    for text in texts:
        tokens = encode(text)
        for before, after in zip([TWINS.size, *tokens], [*tokens, END]):
            table[before, after] += 1
    lm = ChainModel(np.log(table / table.sum(axis=1, keepdims=True)), 1)
    constraint = constrain.compile(TWINS, choices=texts)
    for _, out in outcomes(lambda script: generate_text(lm, constraint, rng=script, max_tokens=30, forced="canonical")):
        if out.logprob > -20:
            assert out.stats.forced_logprob == pytest.approx(0, abs=1e-6)
            assert out.tokens == encode(out.data.decode())


def test_plans() -> None:
    def plan(pattern: str, tokens: list[bytes], end: bytes | None = None) -> tuple[int, list[bytes]]:
        matcher = constrain.compile(TWINS, regex=pattern).matcher()
        for token in tokens:
            matcher.advance(PIECES.index(token))
        run = plan_forced_run(matcher, TWINS, PIECES.index(tokens[-1]) if tokens else None)
        return run.taken_back, [PIECES[token] for token in run.tokens]

    assert plan("abcabc", []) == (0, [b"abc", b"abc"])
    assert plan("abc(a|b)", []) == (0, [b"abc"])  # no token begins with abc and is longer
    assert plan("abca(a|b)", []) == (0, [b"abc"])  # a could merge with b
    assert plan("xabc", [b"x"]) == (1, [b"xa", b"bc"])
    assert plan("abcabc", [b"a"]) == (1, [b"abc", b"abc"])
    assert plan("[ax]b(c|x)", [b"a"]) == (0, [])  # ab could merge with c
    assert plan("cxabc", [b"cx"]) == (0, [b"abc"])
    assert plan("[abc]*", []) == (0, [])
    matcher = constrain.compile(TWINS, regex="abcabc").matcher()
    assert list_merging_tokens(matcher, TWINS, PIECES.index(b"abc"), (PIECES.index(b"abc"),)) == [
        0,
        PIECES.index(b"ab"),
    ]
    assert plan_forced_run(constrain.compile(TWINS, regex="a|b").matcher(), TWINS, None) == NO_RUN == ForcedRun(0, ())


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("proposal", PROPOSALS, ids=["plain", "temperature", "top-k"])
def test_runs_that_are_not_scored_have_the_same_law(pattern: str, proposal: Proposal) -> None:
    constraint = constrain.compile(TWINS, regex=pattern)
    lm = ChainModel.random(TWINS, 1, seed=7)
    law = law_by_hand(lm, constraint, proposal)

    def run(script) -> Outcome:  # type: ignore[no-untyped-def]
        return generate_text(lm, constraint, rng=script, max_tokens=30, forced="unscored", proposal=proposal)

    found: dict[tuple[int, ...], float] = defaultdict(float)
    for probability, out in outcomes(run):
        found[tuple(out.tokens)] += probability
        assert out.finish_reason == "complete"
        assert all(map(math.isnan, (out.logprob, out.log_weight, out.stats.forced_logprob)))
    assert found == pytest.approx({tokens: canonical for tokens, (canonical, _, _) in law.items()})


@given(st.sampled_from(PATTERNS), st.integers(1, 9), st.integers(0, 1000), st.sampled_from(["canonical", "unscored"]))
@settings(max_examples=80, deadline=None)
def test_budgets_hold(pattern: str, most: int, seed: int, forced: ForcedText) -> None:
    constraint = constrain.compile(TWINS, regex=pattern)
    lm = ChainModel.random(TWINS, 1, seed=seed % 5)
    try:
        plain = generate_text(lm, constraint, rng=np.random.default_rng(seed), max_tokens=most)
    except LimitError:
        with pytest.raises(LimitError):
            generate_text(lm, constraint, rng=np.random.default_rng(seed), max_tokens=most, forced=forced)
        return
    assert plain.finish_reason in ("complete", "budget")
    out = generate_text(lm, constraint, rng=np.random.default_rng(seed), max_tokens=most, forced=forced)
    assert len(out.tokens) < most
    assert accepts(constraint, out.tokens)


def accepts(constraint: constrain.Constraint, tokens: list[int]) -> bool:
    matcher = constraint.matcher()
    try:
        for token in tokens:
            matcher.advance(token)
    except TokenRefused:
        return False
    return matcher.is_complete


SCHEMA = {
    "type": "object",
    "properties": {"name": {"enum": ["Anna", "Jörg", "Bob"]}, "age": {"type": "integer"}, "city": {"const": "Zürich"}},
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("kind", sorted(tokenizer_factory.MADE))
def test_real_tokenizers(kind: str) -> None:
    """All texts are valid, forced text takes no more model calls than free text, and tokens are the tokenizer's."""
    make, end = tokenizer_factory.MADE[kind]
    vocabulary = from_tokenizer(tokenizer_factory.wrapped(make(), end))
    constraint = constrain.compile(vocabulary, schema=SCHEMA, style=constrain.Style(whitespace="compact"))
    calls = {"sample": 0, "canonical": 0, "unscored": 0}
    for seed in range(6):
        texts = set()
        for forced in calls:
            lm = TableModel(vocabulary.size, seed, spread=0.5)
            out = generate_text(
                lm,
                constraint,
                rng=np.random.default_rng(seed),
                max_tokens=120,
                forced=forced,  # type: ignore[arg-type]
            )
            assert accepts(constraint, out.tokens)
            calls[forced] += out.stats.model_calls
            if forced != "sample":
                texts.add(out.data)
            if forced == "unscored":
                assert math.isnan(out.logprob)
                continue
            assert (
                out.logprob == pytest.approx(lm.logprob([*out.tokens, vocabulary.eos_ids[0]]), rel=1e-6)
                or len(vocabulary.eos_ids) > 1
            )
            assert (out.stats.forced_logprob < 0) == (forced == "canonical")
        assert len(texts) == 1, "whether runs are scored changes no text"
    assert calls["unscored"] <= calls["canonical"] < calls["sample"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_run_and_its_open_tokens_spell_the_forced_bytes(pattern: str) -> None:
    """After every token string; a token that is taken back is spelled again."""
    constraint = constrain.compile(TWINS, regex=pattern)

    def explore(tokens: list[int]) -> None:
        matcher = constraint.matcher()
        for token in tokens:
            matcher.advance(token)
        run = plan_forced_run(matcher, TWINS, tokens[-1] if tokens else None)
        before = PIECES[tokens[-1]] if run.taken_back else b""
        assert TWINS.text([*run.tokens, *run.open_tokens]) == before + matcher.forced()
        for token in allowed_tokens(matcher.mask()).tolist():
            if token != END and len(tokens) < 5:
                explore([*tokens, token])

    explore([])
