"""Conflicts and hidden terminals: what loses a text is refused with it, unless the caller says how to read."""

from __future__ import annotations

import re
from itertools import product

import lark
import pytest
from hypothesis import Phase, given, settings, strategies as st

import constrain
from constrain import Vocabulary
from constrain.base.errors import ConstrainError, GrammarError, UnsupportedError
from constrain.engine.matcher import Matcher

VOCABULARY = Vocabulary.bytes()
LOSING = [
    'start: "a" start "b" | "b" "a" |',
    'start: x "b"\nx: | "b" x',
    'start: "a" start "a" | "a"',
    'start: A "x" | B "y"\nA: /a/\nB: /a/',
    'start: A "x" | B "y"\nA.2: /[ab]/\nB: /a|b/',
    'start: (A ",")* A "."\nA: "a"\n%ignore ","',
]
LOSSLESS = [
    'start: s\ns: "i" s | "i" s "e" s | "x"',
    'start: e\ne: e "+" e | e "*" e | "1"',
    'start: x+\nx: N+\nN: /[a-z]+/\n%ignore " "',
]


def accepts(matcher: Matcher, text: str) -> bool:
    there = matcher.fork()
    try:
        there.advance_bytes(text.encode())
    except ConstrainError:
        return False
    return there.is_complete


@pytest.mark.parametrize("text", LOSING)
def test_lossy_conflicts_are_refused_with_a_text(text: str) -> None:
    with pytest.raises(GrammarError, match="the rules derive") as caught:
        constrain.compile(VOCABULARY, grammar=text)
    lost = re.search(r"the rules derive '(.*?)'", caught.value.cause)
    assert lost is not None
    lark.Lark(text, parser="earley", lexer="dynamic_complete").parse(lost[1])
    with pytest.raises(lark.exceptions.LarkError):
        lark.Lark(text, parser="lalr").parse(lost[1])


@pytest.mark.parametrize("text", LOSING[:4])
def test_earley_accepts_all_texts(text: str) -> None:
    matcher = constrain.lark(text, parser="earley").compile(VOCABULARY).matcher()
    theirs = lark.Lark(text, parser="earley", lexer="dynamic_complete")
    letters = sorted({*"abxy"} & {*text})
    for length in range(6):
        for word in map("".join, product(letters, repeat=length)):
            try:
                theirs.parse(word)
                expected = True
            except lark.exceptions.LarkError:
                expected = False
            assert accepts(matcher, word) == expected, word


@pytest.mark.parametrize("text", LOSSLESS)
def test_harmless_conflicts_are_accepted(text: str) -> None:
    constrain.compile(VOCABULARY, grammar=text)


def test_conflicts_may_be_resolved_on_request() -> None:
    matcher = constrain.lark(LOSING[0], parser="lalr").compile(VOCABULARY).matcher()
    assert accepts(matcher, "aba" + "b") == accepts(matcher, "abab")
    assert not accepts(matcher, "ab")
    with pytest.raises(ConstrainError):
        constrain.lark(LOSING[0], parser="cyk")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError):
        constrain.lark(LOSING[0], parser="earley", lexer="basic")


@st.composite
def rules(draw: st.DrawFn) -> str:
    """A grammar of single letters, in which conflicts are common."""
    symbol = st.sampled_from(['"a"', '"b"', "start", "x"])
    options = st.lists(st.lists(symbol, max_size=3).map(" ".join), min_size=1, max_size=3)
    return "\n".join(f"{name}: {' | '.join(draw(options))}" for name in ("start", "x"))


@settings(max_examples=90, deadline=None, phases=[Phase.generate])
@given(rules())
def test_reported_texts_are_rejected_by_the_parser(text: str) -> None:
    """A witness is a text of the rules; where none is reported, none of the shortest texts is lost."""
    try:
        theirs = lark.Lark(text, parser="earley", lexer="dynamic_complete")
        table = lark.Lark(text, parser="lalr")
    except Exception:  # whatever lark has against it
        return
    try:
        constrain.compile(VOCABULARY, grammar=text)
    except GrammarError as error:
        lost = re.search(r"the rules derive '(.*?)'", error.cause)
        if lost is not None:
            theirs.parse(lost[1])
            with pytest.raises(lark.exceptions.LarkError):
                table.parse(lost[1])
        return
    except ConstrainError:
        return
    for length in range(5):
        for word in map("".join, product("ab", repeat=length)):
            try:
                theirs.parse(word)
            except lark.exceptions.LarkError:
                continue
            table.parse(word)
