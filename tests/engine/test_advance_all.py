"""Advancing many matchers in one call is advancing each of them, or none."""

from __future__ import annotations

from array import array
from collections import UserList, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from constrain import Limits, TokenRefused, Vocabulary, advance_all, compile, compile_grammar
from constrain.engine import memory_block, state_cache
from constrain.engine.matcher import Matcher
from tests import grammar_factory as make
from tests.engine.test_fill_masks import SCHEMAS, walk_randomly
from tests.engine.test_matcher_laws import list_tokens


def describe(matcher: Matcher) -> tuple[list[int], bytes, bool, bytes]:
    """What a caller can see of a position."""
    return matcher.tokens, matcher.text, matcher.is_complete, matcher.mask().tobytes()


@settings(max_examples=25)
@given(data=st.data())
def test_all_are_advanced_as_each_would_be_or_none(data: st.DataObject) -> None:
    """Mixed constraints, refused tokens and end tokens, after bytes, forks and rollbacks."""
    kind = data.draw(st.sampled_from(["rules", "characters", "objects"]))
    vocabulary = data.draw(make.vocabularies(kind))
    grammars = data.draw(st.lists(getattr(make, kind).filter(make.sound), min_size=1, max_size=3))
    constraints = [compile_grammar(grammar, vocabulary) for grammar in grammars]
    matchers = [data.draw(st.sampled_from(constraints)).matcher() for _ in range(data.draw(st.integers(1, 6)))]
    for _ in range(data.draw(st.integers(1, 6))):
        tokens = []
        for matcher in matchers:
            allowed = sorted(list_tokens(matcher.mask())) or [0]
            tokens.append(data.draw(st.sampled_from(allowed)))
        if data.draw(st.integers(0, 3)) == 0:
            tokens[data.draw(st.integers(0, len(tokens) - 1))] = data.draw(st.integers(-2, vocabulary.size + 1))
        singly, refused = [matcher.fork() for matcher in matchers], None
        for index, (one, token) in enumerate(zip(singly, tokens)):
            try:
                one.advance(token)
            except TokenRefused:
                refused = index
                break
        before = [describe(matcher) for matcher in matchers]
        if refused is None:
            advance_all(matchers, data.draw(st.sampled_from([tokens, array("q", tokens), np.array(tokens)])))
            assert [describe(matcher) for matcher in matchers] == [describe(one) for one in singly]
        else:
            with pytest.raises(TokenRefused, match=f"Matcher {refused} of {len(matchers)}"):
                advance_all(matchers, tokens)
            assert [describe(matcher) for matcher in matchers] == before
        if data.draw(st.booleans()):
            matchers = [matcher.fork() for matcher in matchers]
        for matcher in matchers:
            matcher.rollback(data.draw(st.integers(0, min(1, len(matcher.tokens)))))


def test_bytes_and_tokens_are_taken_back_in_any_order() -> None:
    """The history has both, and texts are dropped with their records."""
    matcher = compile(Vocabulary.bytes(), regex="(ab|cd|ef)*").matcher()
    masks = []
    for item in (b"a", 98, b"c", b"d", 101, b"fab", 99):
        masks.append(matcher.mask().tobytes())
        advance_all([matcher], [item]) if isinstance(item, int) else matcher.advance_bytes(item)
    assert (matcher.text, matcher.tokens) == (b"abcdefabc", [98, 101, 99])
    for length in (6, 4, 3, 1, 0):
        matcher.rollback(len(matcher._accepted) - length)
        assert matcher.mask().tobytes() == masks[length]
    assert matcher._accepted.texts == []
    matcher.advance_bytes(b"ef")
    assert matcher.text == b"ef"


def test_a_history_grows_without_limit() -> None:
    """Beyond its first capacity, in one call for each token and one by one."""
    matcher = compile(Vocabulary.bytes(), regex="[a-z]*").matcher()
    other = matcher.fork()
    text = bytes(97 + k % 26 for k in range(1000))
    for token in text:
        advance_all([matcher], [token])
        other.advance(token)
    assert matcher.tokens == other.tokens == list(text)
    matcher.rollback(999)
    assert matcher.text == text[:1]


def test_an_evicted_state_cache_is_filled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {slot: max(64, length // 512) for slot, length in memory_block.INITIAL_LENGTHS.items()}
    for slot in (*state_cache.HASHES.values(), state_cache.at.SEEN, state_cache.at.WIDE, state_cache.at.ROUTE):
        small[slot] = 512 if slot == state_cache.at.ROUTE else 256
    monkeypatch.setattr(memory_block, "INITIAL_LENGTHS", small)
    constraint = compile(Vocabulary.bytes(), schema=SCHEMAS[1], limits=Limits(state_cache_bytes=100_000))
    texts = [walk_randomly(constraint, k, 12).tokens for k in range(24)]
    matchers = [constraint.matcher() for _ in texts]
    before = constraint.state_cache().epoch
    for place in range(12):
        rows = [row for row, text in enumerate(texts) if place < len(text)]
        advance_all([matchers[row] for row in rows], [texts[row][place] for row in rows])
    assert [matcher.tokens for matcher in matchers] == texts
    assert constraint.state_cache().epoch > before


def test_wrong_arguments_change_nothing() -> None:
    matchers = [compile(Vocabulary.bytes(), regex="a*").matcher() for _ in range(2)]
    for tokens in (
        "aa",
        b"aa",
        97,
        None,
        [97, "a"],
        [97, 1.0],
        [97, True],
        np.array([97.0, 97.0]),
        np.array([[97, 97]]),
    ):
        with pytest.raises(TypeError, match="give a list of token ids"):
            advance_all(matchers, tokens)
    with pytest.raises(ValueError, match="1 tokens for 2 matchers"):
        advance_all(matchers, [97])
    with pytest.raises(TypeError, match=r"constrain\.Matcher"):
        advance_all([matchers[0], "matcher"], [97, 97])  # type: ignore[list-item]
    with pytest.raises(TokenRefused, match="64 bits"):
        advance_all(matchers, [97, 1 << 70])
    assert [matcher.tokens for matcher in matchers] == [[], []]
    advance_all([], [])


@pytest.mark.parametrize("sequence", [list, tuple, deque, UserList])
def test_a_refused_token_changes_no_matcher_of_any_sequence(sequence: Callable[..., Any]) -> None:
    constraint = compile(Vocabulary.bytes(), regex="ab*")
    matchers = [constraint.matcher() for _ in range(3)]
    with pytest.raises(TokenRefused, match="Matcher 2 of 3"):
        advance_all(sequence(matchers), [97, 97, 98])
    assert [matcher.text for matcher in matchers] == [b""] * 3
    advance_all(sequence(matchers), [97] * 3)
    assert [matcher.text for matcher in matchers] == [b"a"] * 3


@pytest.mark.parametrize("kind", ["<u8", ">u8"])
def test_a_token_beyond_int64_is_not_called_negative(kind: str) -> None:
    matcher = compile(Vocabulary.bytes(), regex="ab*").matcher()
    advance_all([matcher], np.array([97], kind))
    with pytest.raises(TokenRefused, match="signed integer of 64 bits"):
        advance_all([matcher], np.array([2**64 - 1], kind))
    assert matcher.text == b"a"
