"""Lexical constraints combined with every kind of form, against their definition, through the engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import constrain
from constrain import (
    ArgumentError,
    Form,
    SourceError,
    UnsatisfiableError,
    UnsupportedError,
    Vocabulary,
    all_of,
    contains,
    excludes,
    free_text,
    gbnf,
    json_schema,
    lark,
    literal,
    regex,
    tools,
)
from constrain.forms import read_form
from tests.recogniser_oracle import accepts
from tests.text_acceptance import accepts_tokens
from tests.token_mask_oracle import compare_token_masks

BYTES = Vocabulary.bytes()
LETTERS = [bytes([byte]) for byte in range(256)]
PIECES = [b"ab", b"ba", b"aab", b'":', b'"a', b'b"', b"}}", b"()", b"(a", b"+a", b"b)", b'{"', b"\\u", b"0061"]
TOKENS = Vocabulary.from_tokens([*LETTERS, *PIECES, None], eos_ids=[270])
SUMS = gbnf('root ::= root "+" root | "(" root ")" | [ab]+')
TREE = lark('start: "(" start* ")" | "a" | "b"', lexer="dynamic_complete")
PAIR = json_schema(
    {
        "type": "object",
        "properties": {"a": {"type": "string", "maxLength": 3}, "b": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
)
TOOL = {"name": "f", "parameters": {**json.loads(PAIR.schema)}}  # type: ignore[attr-defined]
Texts = Callable[[str], bool]


@pytest.mark.parametrize("form", [SUMS, TREE, regex("[ab()]{0,5}"), literal("ab") | "a+b", ~literal("ab")])
@pytest.mark.parametrize(
    ("clause", "meaning"),
    [
        (contains("ab"), lambda text: "ab" in text),
        (contains("a+", ")("), lambda text: "a+" in text or ")(" in text),
        (excludes("aa", "+b"), lambda text: "aa" not in text and "+b" not in text),
        (contains("ab") & contains("ba"), lambda text: "ab" in text and "ba" in text),
        (all_of(["a", ("bb", "+")]), lambda text: "a" in text and ("bb" in text or "+" in text)),
        (contains("a") | excludes("b"), lambda text: "a" in text or "b" not in text),
        (~contains("b"), lambda text: "b" not in text),
    ],
)
def test_all_short_texts(form: Form, clause: Form, meaning: Texts) -> None:
    plain = form.grammar()
    texts = ["".join(word) for length in range(6) for word in product("ab+()", repeat=length)]
    try:
        both = constrain.compile(BYTES, form & clause)
    except UnsatisfiableError:
        assert not any(accepts(plain, text) and meaning(text) for text in texts)
        return
    for text in texts:
        assert accepts_tokens(both, text.encode()) == (accepts(plain, text) and meaning(text)), text


@pytest.mark.parametrize(
    ("form", "inside", "outside"),
    [
        (PAIR & contains("ab"), ['{"a": "ab"}', '{"a": "xab", "b": 1}'], ['{"a": "a", "b": 1}', '{"a": "\\u0061b"}']),
        (PAIR & contains('"b":'), ['{"a": "", "b": 1}'], ['{"a": "b"}']),
        (
            PAIR & contains("ab", within="json_strings"),
            ['{"a": "ab"}', '{"a": "\\u0061b"}', '{"a": "\\n\\u0061\\u0062"}'],
            ['{"a": "", "b": 1}', '{"a": "\\n"}', '{"a": "a"}'],
        ),
        (PAIR & excludes("a,", "1", within="json_strings"), ['{"a": "", "b": 1}'], ['{"a": "1"}', '{"a": "a\\u002c"}']),
        (free_text() & contains("Ab", case="insensitive"), ["xaBy"], ["a b"]),
        (regex("[a-z ]*") & contains("cat", "cats", boundaries="words"), ["a cats", "cat"], ["catss", "acat", ""]),
        (
            tools([TOOL], envelope="llama", choice="required", most=1) & contains("ab"),
            ['{"name": "f", "parameters": {"a": "ab"}}'],
            ['{"name": "f", "parameters": {"a": "b"}}'],
        ),
    ],
)
def test_combined_forms_accept_exactly_their_language(form: Form, inside: list[str], outside: list[str]) -> None:
    constraint = constrain.compile(BYTES, form)
    for text in inside:
        assert accepts_tokens(constraint, text.encode()), text
    for text in outside:
        assert not accepts_tokens(constraint, text.encode()), text
    assert read_form(json.loads(json.dumps(form.plain()))) == form


@pytest.mark.parametrize("form", [PAIR & contains("ab"), SUMS & all_of(["ab", "a)"]), TREE & excludes("ab", "()")])
def test_masks(form: Form) -> None:
    fast, slow = constrain.compile(TOKENS, form), constrain.compile(BYTES, form)
    for text in (b'{"a": "xab", "b": 1}', b"((ab+a)+b)", b"(ba(b)aa)"):
        compare_token_masks(fast, slow, text, TOKENS)


@pytest.mark.parametrize("special", [None, {"<tool_call>": 256, "</tool_call>": 257}])
def test_marks_count_as_their_text(special: dict[str, int] | None) -> None:
    """Whether or not the vocabulary has them as special tokens."""
    tokens: list[bytes | None] = [*LETTERS, None, None, None]
    vocabulary = Vocabulary.from_tokens(tokens, special=special or {}, eos_ids=[258])
    call = tools([TOOL], envelope="hermes", choice="required", most=1)
    constrain.compile(vocabulary, call & contains("call>\n"))
    for phrase in ("ab", "<t>"):
        completion = constrain.compile(vocabulary, call & contains(phrase)).matcher().shortest_completion()
        assert completion is not None
        assert phrase.encode() in completion
    with pytest.raises(UnsatisfiableError):
        (call & excludes("tool_call")).grammar()


def test_free_text_with_special_tokens_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="special tokens"):
        (tools([TOOL], envelope="hermes", choice="auto") & contains("ab")).grammar()


def test_the_shortest_completion_contains_the_phrase() -> None:
    matcher = constrain.compile(BYTES, PAIR & contains("ab")).matcher()
    assert matcher.shortest_completion() == b'{"a":"ab"}'


def test_unsatisfiable_clauses_are_refused() -> None:
    with pytest.raises(UnsatisfiableError, match="intersection of both"):
        (PAIR & contains("xyzx")).grammar()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: contains(""), ArgumentError, "every text contains it"),
        (lambda: contains("a", 5), TypeError, "a phrase is 5"),  # type: ignore[arg-type]
        (lambda: contains(["a"]), TypeError, "a phrase is"),  # type: ignore[arg-type]
        (lambda: excludes("a\ud800"), SourceError, "surrogate"),
        (lambda: contains("a", case="upper"), ArgumentError, "case is 'upper'"),  # type: ignore[arg-type]
        (lambda: contains("a", boundaries="line"), ArgumentError, "boundaries"),  # type: ignore[arg-type]
        (lambda: contains("a", within="lines"), ArgumentError, "within"),  # type: ignore[arg-type]
        (lambda: all_of("ab"), TypeError, "give a list"),
        (lambda: all_of([]), ArgumentError, "at least one clause"),
        (lambda: all_of([()]), ArgumentError, "at least one phrase"),
        (lambda: all_of([3]), TypeError, "a clause is 3"),  # type: ignore[list-item]
        (lambda: read_form({**contains("a").plain(), "phrases": []}), SourceError, "other fields|at least one"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
