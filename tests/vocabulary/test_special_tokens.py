"""Special tokens are symbols of their own: in masks, in what is forced, in GBNF; and never text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

import constrain
from constrain import Constraint, UnsupportedError, Vocabulary, VocabularyError, gbnf, literal, mark, regex
from constrain.grammar.nodes import Free, Grammar, Literal, Token
from constrain.vocabulary.token_names import NAME, token_name
from tests.model_factory import UniformModel

SPECIAL = {"<think>": 257, "</think>": 258, "<|tool|>": 259}
TOKENS: list[bytes | None] = [bytes((value,)) for value in range(256)]
VOCABULARY = Vocabulary.from_tokens([*TOKENS, None, None, None, None, b"<think>", b"\xffa"], (256,), special=SPECIAL)


def allowed(matcher: constrain.Matcher) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")).tolist())


def test_names_are_no_text() -> None:
    names = [token_name(number) for number in range(12**3)]
    assert len(set(names)) == len(names) and {len(name) for name in names} == {NAME}
    utf8 = set("".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000, 37)])).encode())
    assert not utf8 & set(b"".join(names))
    with pytest.raises(constrain.LimitError, match="more special tokens"):
        token_name(12**4)


def test_the_blob_holds_names_and_the_tokens_do_not() -> None:
    assert dict(VOCABULARY.names) == {index: token_name(k) for k, index in enumerate((257, 258, 259))}
    assert VOCABULARY.tokens[257] is None and VOCABULARY.spelled(257) == token_name(0)
    assert VOCABULARY.spelled(256) == VOCABULARY.spelled(261) == VOCABULARY.spelled(255) == b""
    assert VOCABULARY.text([257, 65, 256]) == b"A" and VOCABULARY.transcript([257, 65, 256]) == b"<think>A"
    data = b"a" + token_name(1) + b"b"
    assert VOCABULARY.tokenize(data) == [97, 258, 98] == VOCABULARY.fewest(data)


def test_text_never_allows_a_special_token() -> None:
    matcher = regex(r"(.|\n)*").compile(VOCABULARY).matcher()
    assert not allowed(matcher) & set(SPECIAL.values())
    assert 260 in allowed(matcher)  # its letters are another thing than the token of this name


def test_gbnf_tokens() -> None:
    matcher = gbnf('root ::= <think> !</think>* </think> ("a" | <[259]>)').compile(VOCABULARY).matcher()
    assert allowed(matcher) == {257}
    assert not matcher.allows(260)
    matcher.advance(257)
    assert allowed(matcher) == set(range(255)) | {257, 258, 259, 260}
    for token in (ord("x"), 257, 0xC3, 258):
        matcher.advance(token)
    assert allowed(matcher) == {ord("a"), 259}
    matcher.advance(259)
    assert matcher.is_finished and allowed(matcher) == {256}
    matcher.rollback(5)
    assert matcher.shortest_completion() == token_name(1) + b"a"
    assert repr(matcher) == "Matcher('<think>', not complete)" or "<think>" in repr(matcher)


def test_several_tokens_are_a_choice() -> None:
    matcher = Constraint(Grammar(Token(("<think>", 259)), {}), VOCABULARY, constrain.Limits(), None).matcher()
    assert allowed(matcher) == {257, 259}


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("<thin>", VocabularyError, "no special token '<thin>'.*\n.*'<think>'"),
        ("<[999]>", VocabularyError, "no token 999"),
        ("<[97]>", UnsupportedError, "ordinary one, b'a'"),
        ("<[256]>", UnsupportedError, "ends a text"),
        ("!<[97]>", UnsupportedError, "ordinary one"),
    ],
)
def test_tokens_that_cannot_be_named(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        (gbnf(f'root ::= "a" x\nx ::= "b" {text}') | "c").compile(VOCABULARY)


def test_literals_cannot_forge_a_name() -> None:
    with pytest.raises(UnsupportedError, match="0xFF"):
        Constraint(Grammar(Literal(token_name(0)), {}), VOCABULARY, constrain.Limits(), None).matcher().mask()


def test_a_mark_is_a_special_token_or_a_text() -> None:
    form = mark("<think>") + "a" + mark("</think>")
    matcher = form.compile(VOCABULARY).matcher()
    assert matcher.forced_tokens() == [257, 97, 258]
    plain = form.compile(Vocabulary.bytes()).matcher()
    assert plain.forced() == b"<think>a</think>"


def test_special_tokens_are_drawn_streamed_and_closed_with() -> None:
    form = mark("<think>") + literal("ab").repeat(0, 3) + mark("</think>") + regex("[0-9]{2}")
    pieces: list[str] = []
    out = constrain.generate(
        UniformModel(VOCABULARY.size),
        tokenizer=VOCABULARY,
        grammar=form,
        seed=1,
        stream=lambda piece: pieces.append(piece.text),
    )
    assert out.text.startswith("<think>") and out.text[:-2].endswith("</think>")
    assert "".join(pieces) == out.text and out.tokens[0] == 257
    tight = constrain.generate(UniformModel(VOCABULARY.size), tokenizer=VOCABULARY, grammar=form, seed=1, max_tokens=5)
    assert tight.text[:-2] == "<think></think>" and len(tight.tokens) == 4


def test_constraints_with_marks_are_saved(tmp_path: Path) -> None:
    form = mark("<|tool|>") + "x"
    form.compile(VOCABULARY).save(tmp_path / "it")
    assert Constraint.load(tmp_path / "it", VOCABULARY).matcher().allows(259)


def test_a_special_token_in_a_pattern_or_a_string_is_refused() -> None:
    for form in (~mark("<think>"), mark("<think>").quoted()):
        with pytest.raises(UnsupportedError, match="unrestricted and special tokens"):
            form.grammar()


def test_a_special_token_counts_as_its_text_in_an_intersection() -> None:
    matcher = constrain.compile(VOCABULARY, (mark("<think>") + regex("[ab]*")) & regex("<think>a+")).matcher()
    matcher.advance(257)
    assert matcher.next_bytes() == {ord("a")}
    with pytest.raises(constrain.UnsatisfiableError):
        constrain.compile(VOCABULARY, mark("<think>") & regex("[a-z]*"))


MARKS = st.text("ab<", min_size=1, max_size=3)


@given(st.lists(MARKS, max_size=2), st.booleans(), MARKS, st.none() | st.integers(0, 4), st.text("ab<", max_size=6))
def test_free_text_ends_with_the_first_mark_and_with_no_excluded_one(
    others: list[str], are_excluded: bool, until: str, high: int | None, text: str
) -> None:
    assume(not any(mark in until and mark != until for mark in others))
    node = Free((until, *others), until, high, tuple(others) if are_excluded else ())
    try:
        matcher = constrain.compile_grammar(Grammar(node, {}), VOCABULARY).matcher()
        matcher.advance_bytes(text.encode())
        is_text = matcher.is_complete
    except (constrain.UnsatisfiableError, constrain.TokenRefused):
        is_text = False
    is_first = text.find(until) == len(text) - len(until) >= 0
    fits = high is None or len(text) - len(until) <= high
    within = text if are_excluded else text[:-1]
    assert is_text == (is_first and fits and not any(mark in within for mark in others if mark != until))
