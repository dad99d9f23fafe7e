"""Verdicts as checkers of tokens: against the function that they are made of, and where this function fails."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings, strategies as st

from constrain.base.errors import ConstrainError, LimitError
from constrain.checking import PrefixChecker, TextChecker, Verdict, VerdictChecker
from constrain.vocabulary.vocabulary import Vocabulary

PARTS = [b"a", b"b", b"\xc3", b"\xa9", b"\xc3\xa9", b"ab", b"\xff"]
VOCABULARY = Vocabulary.from_tokens([*PARTS, None], eos_ids=[len(PARTS)])


def judge(text: str) -> str:
    """Texts of a's and é's, complete with an even number of characters."""
    if set(text) - {"a", "é"}:
        return "dead"
    return "ok" if len(text) % 2 else "complete"


@settings(max_examples=80, deadline=None)
@given(walk=st.lists(st.integers(0, len(PARTS)), max_size=6))
def test_tokens_are_allowed_as_the_function_says(walk: list[int]) -> None:
    checker = VerdictChecker(VOCABULARY, PrefixChecker(judge))
    position, data = checker.matcher(), b""
    for token in walk:
        for candidate in range(len(PARTS)):
            longer = data + PARTS[candidate]
            try:
                expected = judge(longer.decode()) != "dead"
            except UnicodeDecodeError as error:
                held = error.reason == "unexpected end of data"
                expected = held and judge(longer[: error.start].decode()) != "dead"
            assert position.allows(candidate) == expected
        try:
            complete = judge(data.decode()) == "complete"
        except UnicodeDecodeError:
            complete = False
        assert position.allows(len(PARTS)) == complete
        if not position.allows(token) or token == len(PARTS):
            break
        position.advance(token)
        data += PARTS[token]


def test_each_text_is_judged_once() -> None:
    asked = list[str]()

    def counted(text: str) -> str:
        asked.append(text)
        return judge(text)

    checker = VerdictChecker(VOCABULARY, PrefixChecker(counted))
    for _ in range(2):
        position = checker.matcher()
        for token in (0, 2, 3, len(PARTS)):
            assert position.allows(token)
            position.advance(token)
    assert asked == ["a", "aé"] and checker.verdicts == 2


def raise_error(text: str) -> str:
    raise KeyError(text)


@pytest.mark.parametrize("function", [raise_error, lambda text: True, lambda text: None, lambda text: "maybe"])
def test_failures_are_errors(function: object) -> None:
    position = VerdictChecker(VOCABULARY, PrefixChecker(function)).matcher()  # type: ignore[arg-type]
    with pytest.raises(ConstrainError, match="checker"):
        position.allows(0)


def test_a_slow_function_is_an_error() -> None:
    released = threading.Event()

    def wait(text: str) -> str:
        released.wait(60)
        return "complete"

    with pytest.raises(LimitError, match="longer than"):
        PrefixChecker(wait, seconds=0.01).check("a")
    released.set()
    assert PrefixChecker(judge, seconds=60).check("aa") is Verdict.COMPLETE
    with pytest.raises(KeyError):
        PrefixChecker(raise_error, seconds=60).check("a")


def test_arguments() -> None:
    assert isinstance(PrefixChecker(judge), TextChecker)
    for wrong in (3, "x", None):
        with pytest.raises(TypeError, match="function"):
            PrefixChecker(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="seconds"):
        PrefixChecker(judge, seconds=-1)
    with pytest.raises(TypeError, match="checker"):
        VerdictChecker(VOCABULARY, judge)  # type: ignore[arg-type]
