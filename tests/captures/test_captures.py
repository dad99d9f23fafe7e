"""Captures: compared with the named groups of Python's `re`, and with a slow search over all divisions of a text."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain import Style, free_text, gbnf, json_schema, lark, literal, mark, regex, thinking, triggered
from constrain.base.errors import ArgumentError, UnsupportedError
from constrain.captures.capture_program import build_capture_program, has_names
from constrain.captures.capture_search import find_captures
from constrain.forms import Form, read_form
from constrain.vocabulary.vocabulary import Vocabulary

BYTES = Vocabulary.bytes()


def captured(form: Form, text: str, vocabulary: Vocabulary = BYTES) -> list[tuple[str, str]] | None:
    found = find_captures(build_capture_program(form, vocabulary), text.encode())
    return None if found is None else [(one.name, one.text) for one in found]


LEAVES = ["a", "b", "ab", "ba", "[ab]*", "a+", "b?", "[ab]", "(?:ab)*", "a{1,2}", ""]
"""Patterns of which `re` prefers the longest text."""


@st.composite
def named_forms(draw, depth: int = 3) -> tuple[Form, str]:
    """A form with names, and the pattern that means the same to `re`."""
    count = [0]

    def grow(depth: int) -> tuple[Form, str]:
        kind = draw(st.integers(0, 5)) if depth else 0
        if kind < 2:
            leaf = draw(st.sampled_from(LEAVES))
            form, pattern = regex(leaf), f"(?:{leaf})"
        elif kind == 2:
            parts = [grow(depth - 1) for _ in range(draw(st.integers(2, 3)))]
            form, pattern = parts[0][0], "".join(part[1] for part in parts)
            for part, _ in parts[1:]:
                form = form + part
            pattern = f"(?:{pattern})"
        elif kind == 3:
            (one, p), (two, q) = grow(depth - 1), grow(depth - 1)
            form, pattern = one | two, f"(?:{p}|{q})"
        elif kind == 4:
            inner, p = grow(depth - 1)
            low, high = draw(st.sampled_from([(0, None), (1, None), (0, 1), (2, 3), (0, 2)]))
            if re.fullmatch(p, ""):  # what re captures of empty repetitions is its own affair
                low, high = 1, 1
            form, pattern = inner.repeat(low, high), f"(?:{p}){{{low},{'' if high is None else high}}}"
        else:
            (one, p), guard = grow(depth - 1), draw(st.sampled_from(["[ab]{2}", "a*", ".*b", ".*"]))
            return one & regex(guard), f"(?:(?:{p}))" if guard == ".*" else "\0"
        if draw(st.booleans()):
            count[0] += 1
            name = f"n{count[0]}"
            return form.named(name), f"(?P<{name}>{pattern})"
        return form, pattern

    return grow(depth)


@given(named_forms(), st.lists(st.text("ab", max_size=7), min_size=3, max_size=6))
@settings(max_examples=150, deadline=None)
def test_captures_are_the_groups_of_re(made: tuple[Form, str], texts: list[str]) -> None:
    form, pattern = made
    if "\0" in pattern:
        return
    program, oracle = build_capture_program(form, BYTES), re.compile(pattern)
    for text in texts:
        match, found = oracle.fullmatch(text), find_captures(program, text.encode())
        assert (match is None) == (found is None)
        if match is None:
            continue
        latest = {one.name: (one.start, one.end) for one in found}
        for name in program.names:
            if program.names[name] and name not in latest:
                assert match.span(name) == (-1, -1)
            else:
                assert latest.get(name, (-1, -1)) == match.span(name), (pattern, text)


@given(named_forms(), st.text("ab", max_size=7))
@settings(max_examples=80, deadline=None)
def test_the_form_with_names_has_the_texts_of_the_form(made: tuple[Form, str], text: str) -> None:
    form = made[0]
    matches = captured(form, text) is not None
    try:
        matcher = constrain.compile(BYTES, form).matcher()
        matcher.advance_bytes(text.encode())
        accepted = matcher.is_complete
    except constrain.ConstrainError:
        accepted = False
    assert matches == accepted


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        (
            "Name: " + regex(r"\w+").named("name") + "\nAge: " + json_schema(int).named("age"),
            "Name: Łódź\nAge: 33",
            [("name", "Łódź"), ("age", "33")],
        ),
        (
            ("- " + regex("[^\n]*").named("item") + "\n").repeat(1),
            "- a\n- \n- cd\n",
            [("item", "a"), ("item", ""), ("item", "cd")],
        ),
        (literal("a").named("x") | literal("b").named("y"), "b", [("y", "b")]),
        (
            (regex("a*").named("x") + regex("a*").named("y")).named("all"),
            "aaa",
            [("all", "aaa"), ("x", "aaa"), ("y", "")],
        ),
        (
            regex("(?P<year>\\d{4})-(?P<month>\\d\\d)(?P<day>-\\d\\d)?") + "!",
            "2024-05!",
            [("year", "2024"), ("month", "05")],
        ),
        (free_text() + regex("[0-9]+").named("n") + free_text(), "ab 12 cd 345", [("n", "5")]),
        (free_text(without=("0",)) + regex("[0-9]+").named("n") + free_text(), "ab 12 cd 345", [("n", "5")]),
        ((literal("x").named("x") + "y").quoted(Style.any()), '"\\u0078y"', [("x", "x")]),
        ("a" + (regex("[ab]*").named("x") & regex("..")) + regex("b*").named("y"), "aabbb", [("x", "ab"), ("y", "bb")]),
        (
            gbnf('root ::= "(" root? ")"').named("tree") + free_text().named("rest"),
            "(())()",
            [("tree", "(())"), ("rest", "()")],
        ),
        (
            lark('start: WORD+\n%import common.WORD\n%ignore " "').named("words") + ";",
            "a b c;",
            [("words", "a b c")],
        ),
        (json_schema({"type": "array"}).named("list"), "[1, [2]]", [("list", "[1, [2]]")]),
        (
            free_text(until=": ").named("key") + json_schema({}).named("value"),
            'a: {"b": 1}',
            [("key", "a: "), ("value", '{"b": 1}')],
        ),
        (
            triggered({"<call>": regex("[a-z]+").named("call") + "</call>"}),
            "text <call>one</call> and <call>two</call>.",
            [("call", "one"), ("call", "two")],
        ),
        (thinking(regex("[a-z]+").named("answer")), "<think>why? <think></think>because", [("answer", "because")]),
        (thinking(regex("[a-z]+").named("answer"), thought="maybe"), "because", [("answer", "because")]),
        (json_schema(False).named("never") | literal("x").named("x"), "x", [("x", "x")]),
    ],
)
def test_examples(form: Form, text: str, expected: list[tuple[str, str]]) -> None:
    assert captured(form, text) == expected
    again = read_form(json.loads(json.dumps(form.plain())))
    assert again == form
    assert captured(again, text) == expected


def test_special_tokens_are_shown_by_name() -> None:
    vocabulary = Vocabulary.from_tokens(
        [bytes((i,)) for i in range(256)] + [None] * 3, [256], special={"<think>": 257, "</think>": 258}
    )
    form = (mark("<think>") + regex("[a-z]*") + mark("</think>")).named("thought") + regex("[a-z]+").named("answer")
    data = b"".join(map(vocabulary.spelled, [257, 97, 98, 258, 99]))
    found = find_captures(build_capture_program(form, vocabulary), data)
    assert found is not None
    assert [(one.name, one.text, one.start, one.end) for one in found] == [
        ("thought", "<think>ab</think>", 0, 17),
        ("answer", "c", 17, 18),
    ]


@pytest.mark.parametrize(
    "form",
    [
        ~regex("a").named("x"),
        regex("a").named("x") & regex("a").named("y"),
        lark("start: X\n%declare X", lexer="dynamic_complete", grammars={"X": regex("a").named("x")}),
    ],
)
def test_names_without_a_span_are_refused(form: Form) -> None:
    with pytest.raises(UnsupportedError, match="named form"):
        build_capture_program(form, BYTES)


def test_wrong_names() -> None:
    with pytest.raises(ArgumentError, match="empty"):
        regex("a").named("")
    with pytest.raises(TypeError, match="name"):
        regex("a").named(1)  # type: ignore[arg-type]
    assert not has_names(regex("a") + "b")
    assert has_names(regex("a").named("x").repeat())
    assert has_names(regex("(?P<x>a)"))


def test_which_names_have_several_captures() -> None:
    form = (
        regex("a").named("one").repeat(0, 1)
        + (regex("b").named("both") | regex("c").named("both"))
        + (regex("d").named("many").repeat() + regex("(?P<twice>e)") + regex("(?P<twice>e)"))
    )
    names = build_capture_program(form, BYTES).names
    assert names == {"one": False, "both": False, "many": True, "twice": True}


def test_the_search_is_not_exponential() -> None:
    form = regex("a?").named("x").repeat(0, 40) + regex("a").named("y").repeat(40, 40)
    found = find_captures(build_capture_program(form, BYTES), b"a" * 40)
    assert found is not None
    assert sum(one.name == "y" for one in found) == 40
    nested = (regex("a*").named("x").repeat()).repeat().repeat() + "b"
    assert find_captures(build_capture_program(nested, BYTES), b"a" * 300) is None
