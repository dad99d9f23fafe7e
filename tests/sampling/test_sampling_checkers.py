"""Checkers against the functions that they are made of: equal results, and each function is called once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from constrain.base.errors import TokenRefused
from constrain.sampling import checkers
from constrain.sampling.checkers import BothCheckers, Stepwise, ValidatorChecker
from constrain.vocabulary.vocabulary import Vocabulary

VOCABULARY = Vocabulary.from_tokens([b"a", b"b", b"ab", None, None, b""], eos_ids=[3, 4])
WALKS = st.lists(st.integers(-1, 6), max_size=8)


def accepts(text: bytes) -> bool:
    return text.count(b"a") % 2 == 0


def viable(text: bytes) -> bool:
    return b"bb" not in text


def allowed(text: bytes, token: int, viable: Callable[[bytes], bool] = viable) -> bool:
    """Return whether a token may follow a text."""
    if not 0 <= token < VOCABULARY.size:
        return False
    if token in VOCABULARY.eos_ids:
        return accepts(text)
    piece = VOCABULARY.tokens[token]
    return bool(piece) and viable(text + (piece or b""))


class Asked:
    """A function of texts that counts its calls."""

    def __init__(self, answer: Callable[[bytes], bool]) -> None:
        self.answer, self.calls = answer, Counter[bytes]()

    def __call__(self, text: bytes) -> bool:
        self.calls[text] += 1
        return self.answer(text)


def by_steps(end: Asked, prefix: Asked) -> Stepwise[bytes]:
    return Stepwise(VOCABULARY, b"", lambda text, more: text + more if prefix(text + more) else None, end)


MADE: dict[str, Callable[[Asked, Asked], Any]] = {
    "judged": lambda end, prefix: ValidatorChecker(VOCABULARY, end, prefix),
    "by steps": by_steps,
}


@pytest.mark.parametrize("kind", MADE)
@settings(max_examples=60, deadline=None)
@given(walks=st.lists(WALKS, max_size=4))
def test_walks_get_the_results_of_the_functions(kind: str, walks: list[list[int]]) -> None:
    """All tokens at every position of some walks, each from the start; `asked` counts the calls."""
    end, prefix = Asked(accepts), Asked(viable)
    checker = MADE[kind](end, prefix)
    for walk in walks:
        position, text, tokens = checker.matcher(), b"", list[int]()
        for token in walk:
            answers = [position.allows(one) for one in range(-1, 7)]
            assert answers == [allowed(text, one) for one in range(-1, 7)]
            other = position.fork()
            if not allowed(text, token):
                with pytest.raises(TokenRefused):
                    position.advance(token)
                continue
            position.advance(token)
            tokens.append(token)
            assert (position.tokens, other.tokens) == (tokens, tokens[:-1])
            if token in VOCABULARY.eos_ids:
                assert not any(position.allows(one) for one in range(-1, 7))
                assert not any(position.fork().allows(one) for one in range(-1, 7))
                break
            text += VOCABULARY.tokens[token] or b""
    assert checker.calls == end.calls.total() + prefix.calls.total()
    assert set(end.calls.values()) | set(prefix.calls.values()) <= {1}


def test_all_is_allowed_where_nothing_is_checked() -> None:
    position = ValidatorChecker(VOCABULARY).matcher()
    assert [position.allows(token) for token in range(-1, 7)] == [False, True, True, True, True, True, False, False]


@settings(max_examples=60, deadline=None)
@given(walk=WALKS)
def test_both_allow_what_each_allows(walk: list[int]) -> None:
    """The second is called only for tokens that the first allows; a refused token advances neither."""
    prefix = Asked(lambda text: len(text) < 5)
    position = BothCheckers(
        ValidatorChecker(VOCABULARY, accepts, viable), ValidatorChecker(VOCABULARY, None, prefix)
    ).matcher()
    text = b""
    for token in walk:
        for one in range(-1, 7):
            assert position.allows(one) == (allowed(text, one) and allowed(text, one, prefix.answer))
        before = list(position.tokens), list(position.fork().second.tokens)
        if not position.allows(token):
            with pytest.raises(TokenRefused):
                position.advance(token)
            assert (list(position.tokens), list(position.second.tokens)) == before
            continue
        position.advance(token)
        if token in VOCABULARY.eos_ids:
            break
        text += VOCABULARY.tokens[token] or b""
    assert all(viable(asked) for asked in prefix.calls)


def test_the_oldest_results_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkers, "REMEMBERED", 3)
    end = Asked(lambda text: text != b"b")
    memo = ValidatorChecker(VOCABULARY, end).answers
    for text in (b"a", b"b", b"c", b"a", b"d", b"b", b"a"):
        assert memo.lookup("end", text, lambda text=text: end(text)) == (text != b"b")  # type: ignore[misc]
        assert len(memo.known) <= 3
    # "d" took the place of "a", which was asked about first: "b" was still known, "a" was not
    assert end.calls == {b"a": 2, b"b": 1, b"c": 1, b"d": 1}
    assert memo.calls == 5
