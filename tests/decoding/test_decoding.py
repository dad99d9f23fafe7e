"""The generation loop: drafts of forced text change nothing but the number of calls, and the budget always holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from constrain.base.errors import LimitError
from constrain.decoding.generation_loop import DRAFT, Outcome, Piece, generate_text
from constrain.decoding.token_budget import Closing
from constrain.sampling.core.masked_sampling import PLAIN, Proposal, allowed_tokens, pick_token
from constrain.sampling.core.results import log_sum
from constrain.vocabulary.vocabulary import Vocabulary
from tests.finite_grammar_factory import FiniteConstraint, FiniteMatcher
from tests.model_factory import TableModel

BYTES = Vocabulary.bytes()
VOCABULARY = Vocabulary.from_tokens(
    [bytes((value,)) for value in range(256)] + [b'{"', b'":', b"name", b"na", b'"name": "', b'"}', b"ab", None, None],
    eos_ids=[263],
)
TEXTS = [b'{"name": "a"}', b'{"name": "ab"}', b'{"name": "abab"}', b'{"age": 12}', '{"name": "é"}'.encode(), b"{}"]


def by_hand(lm, constraint, rng, proposal=PLAIN) -> tuple[list[int], float, float]:
    """The same, as anybody would write it."""
    matcher, ends = constraint.matcher(), constraint.vocabulary.eos_ids
    logprob = weight = 0.0
    while True:
        row = lm.next_logprobs([matcher.tokens])[0]
        choice = pick_token(row, allowed_tokens(matcher.mask()), rng, proposal, ends)
        logprob, weight = logprob + choice.logprob, weight + choice.logprob - choice.logproposal
        if choice.token in ends:
            return matcher.tokens, logprob, weight
        matcher.advance(choice.token)


@given(st.integers(0, 10_000), st.sets(st.sampled_from(TEXTS), min_size=1), st.sampled_from([0, 0.5, 1]))
@settings(max_examples=35)
def test_the_loop_is_the_loop_by_hand(seed: int, texts: set[bytes], sharp: float) -> None:
    constraint, proposal = FiniteConstraint(VOCABULARY, texts), Proposal(temperature=sharp)
    lm = TableModel(VOCABULARY.size, seed)
    tokens, logprob, weight = by_hand(lm, constraint, np.random.default_rng(seed), proposal)
    calls = len(lm.row_counts)
    lm.row_counts.clear()
    out = generate_text(lm, constraint, rng=np.random.default_rng(seed), max_tokens=64, proposal=proposal)
    assert out.tokens == tokens
    assert out.data in texts
    assert out.logprob == pytest.approx(logprob)
    assert out.log_weight == pytest.approx(weight)
    assert out.finish_reason == "complete"
    assert out.stats.tokens == len(tokens) + 1
    assert out.stats.model_calls == len(lm.row_counts) <= calls
    assert out.stats.forced_tokens == calls - len(lm.row_counts)
    if sharp == 1:
        assert out.stats.log_mass == pytest.approx(weight)


def test_a_forced_run_costs_one_call_if_the_model_spells_it_so() -> None:
    constraint = FiniteConstraint(VOCABULARY, [b'"name": "ab"}'])
    spelled = VOCABULARY.fewest(b'"name": "ab"}')
    table = np.full((VOCABULARY.size + 1, VOCABULARY.size), -20.0)
    for before, after in zip([VOCABULARY.size, *spelled], [*spelled, 263]):
        table[before, after] = 0.0
    lm = TableModel(VOCABULARY.size)
    lm.table = table - np.logaddexp.reduce(table, axis=1, keepdims=True)
    out = generate_text(lm, constraint, rng=np.random.default_rng(0), max_tokens=20)
    assert out.tokens == spelled
    assert lm.row_counts == [len(spelled) + 1]
    assert out.stats.forced_tokens == len(spelled)
    assert out.logprob == pytest.approx(lm.logprob([*spelled, 263]))


@given(seed=st.integers(0, 10_000), texts=st.sets(st.sampled_from(TEXTS), min_size=1), most=st.integers(1, 24))
@settings(max_examples=90)
def test_every_budget_holds(seed: int, texts: set[bytes], most: int) -> None:
    constraint, lm = FiniteConstraint(VOCABULARY, texts), TableModel(VOCABULARY.size, seed)
    least = len(VOCABULARY.fewest(min(texts, key=lambda text: (len(text), text)))) + 1
    if most < least:
        with pytest.raises(LimitError, match=f"takes {least} tokens"):
            generate_text(lm, constraint, rng=np.random.default_rng(seed), max_tokens=most)
        assert not lm.row_counts, "refused before the model was asked"
        return
    pieces: list[Piece] = []
    out = generate_text(lm, constraint, rng=np.random.default_rng(seed), max_tokens=most, stream=pieces.append)
    assert len(out.tokens) + 1 <= most
    assert out.data in texts
    assert "".join(piece.text for piece in pieces).encode() == out.data
    assert [piece.token for piece in pieces] == out.tokens
    changed = out.stats.refused_for_budget or out.stats.closing_tokens
    assert out.finish_reason == ("budget" if changed else "complete")
    assert out.logprob == pytest.approx(lm.logprob([*out.tokens, 263]))


def test_a_model_that_never_ends_is_ended() -> None:
    """All texts a^k, and a model that only ever wants another a."""
    texts = [b"a" * k for k in range(1, 60)]
    lm = TableModel(BYTES.size)
    lm.table = np.full_like(lm.table, -30.0)
    lm.table[:, ord("a")] = 0.0
    lm.table -= np.logaddexp.reduce(lm.table, axis=1, keepdims=True)
    out = generate_text(lm, FiniteConstraint(BYTES, texts), rng=np.random.default_rng(0), max_tokens=20)
    assert out.data == b"a" * 19
    assert out.finish_reason == "budget"
    assert (out.stats.refused_for_budget, out.stats.closing_tokens) == (0, 0), "its last token can only be an end"
    enough = generate_text(lm, FiniteConstraint(BYTES, texts), rng=np.random.default_rng(0), max_tokens=60)
    assert enough.finish_reason == "complete"


def test_a_long_completion_is_scored_in_parts() -> None:
    """One text of 200 bytes, or of 300: the budget is for the short one, and the model wants the other."""
    short, long = b"a" + b"s" * 199, b"b" * 300
    lm = TableModel(BYTES.size)
    out = generate_text(lm, FiniteConstraint(BYTES, [short, long]), rng=np.random.default_rng(0), max_tokens=202)
    assert out.data == short
    assert max(lm.row_counts) <= DRAFT + 1
    lm.table[BYTES.size, ord("b")] = 60.0
    lm.table -= np.logaddexp.reduce(lm.table, axis=1, keepdims=True)
    lm.row_counts.clear()
    out = generate_text(
        lm, FiniteConstraint(BYTES, [short, short + b"!", long]), rng=np.random.default_rng(0), max_tokens=202
    )
    assert out.data[:200] == short
    assert max(lm.row_counts) <= DRAFT + 1
    assert out.logprob == pytest.approx(lm.logprob([*out.tokens, 256]))


class Unspellable(FiniteConstraint):
    """A constraint whose shortest completions nobody knows how to spell, but for those of one byte."""

    def matcher(self) -> FiniteMatcher:
        class Matcher(FiniteMatcher):
            def shortest_completion(self, limit: int | None) -> bytes | None:
                found = super().shortest_completion(limit)
                return found if found is not None and len(found) <= 1 else b"\xff"

        return Matcher(self)


def test_without_a_known_completion_nothing_is_promised_until_there_is_one() -> None:
    few = Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    lm = TableModel(few.size)
    cut = generate_text(lm, Unspellable(few, [b"abab"]), rng=np.random.default_rng(0), max_tokens=3)
    assert (cut.finish_reason, cut.data) == ("length", b"ab")
    assert (
        generate_text(lm, Unspellable(few, [b"abab"]), rng=np.random.default_rng(0), max_tokens=5).finish_reason
        == "complete"
    )
    lm.table[:, 0] += 50
    lm.table -= np.logaddexp.reduce(lm.table, axis=1, keepdims=True)
    texts = [b"a" * k for k in range(2, 9)]
    out = generate_text(lm, Unspellable(few, texts), rng=np.random.default_rng(0), max_tokens=5)
    assert (out.finish_reason, out.data) == ("budget", b"aaaa")


def test_streamed_text_consists_of_complete_characters() -> None:
    pieces: list[Piece] = []
    out = generate_text(
        TableModel(BYTES.size), FiniteConstraint(BYTES, ["aé世🙂".encode()]), rng=np.random.default_rng(0),
        max_tokens=20, stream=pieces.append,
    )  # fmt: skip
    assert [piece.text for piece in pieces] == ["a", "", "é", "", "", "世", "", "", "", "🙂"]
    assert {piece.origin for piece in pieces} == {"forced"}
    assert sum(piece.logprob for piece in pieces) <= 0
    assert out.log_weight == pytest.approx(out.logprob), "one text: all that was not it is lost mass"


def test_closing_follows_what_is_written() -> None:
    constraint = FiniteConstraint(VOCABULARY, TEXTS)
    matcher = constraint.matcher()
    closing = Closing(VOCABULARY, matcher, 10)
    assert closing.data == b"{}"
    for token, bytes_left in ((256, b'age": 12}'), (ord("n"), b'ame": "a"}')):
        matcher.advance(token)
        assert closing.follow(matcher, token, 20)
        assert closing.data == bytes_left
        assert VOCABULARY.text(closing.tokens()) == bytes_left
    matcher.advance(ord("a"))
    assert not closing.follow(matcher, ord("a"), 4)
    assert closing.data == b'ame": "a"}', "what was at hand is at hand still"


def test_weights_of_the_loop_estimate_the_mass_of_the_constraint() -> None:
    constraint = FiniteConstraint(VOCABULARY, TEXTS[:2])
    lm = TableModel(VOCABULARY.size, seed=3, spread=1.0)
    rng = np.random.default_rng(5)
    outs: list[Outcome] = [generate_text(lm, constraint, rng=rng, max_tokens=40) for _ in range(300)]
    estimate = log_sum(np.array([out.log_weight for out in outs])) - np.log(len(outs))

    def mass(matcher) -> float:
        row = lm.next_logprobs([matcher.tokens])[0]
        parts = []
        for token in matcher.allowed():
            if token == 263:
                parts.append(row[token])
            else:
                further = matcher.fork()
                further.advance(token)
                parts.append(row[token] + (cache.get(further.data + b"|%d" % token) or mass_of(further, token)))
        return log_sum(np.array(parts))

    cache: dict[bytes, float] = {}

    def mass_of(matcher, token: int) -> float:
        cache[matcher.data + b"|%d" % token] = found = mass(matcher)
        return found

    assert estimate == pytest.approx(mass(constraint.matcher()), abs=0.5)
