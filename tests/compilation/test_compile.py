"""The pipeline: one source, the right front end, and a Constraint that can be written down and read again."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from constrain import (
    ConstrainError,
    Constraint,
    Grammar,
    GrammarError,
    LimitError,
    Limits,
    RegexError,
    SchemaError,
    SourceError,
    Style,
    TokenRefused,
    UnsatisfiableError,
    UnsupportedError,
    Vocabulary,
    compile,
    compile_grammar,
)
from constrain.grammar.nodes import Literal
from tests.text_acceptance import accepts_text

VOCABULARY = Vocabulary.bytes()


@dataclass
class Point:
    x: int
    y: int


@pytest.mark.parametrize(
    ("source", "inside", "outside"),
    [
        ({"schema": {"type": "boolean"}}, "true", "null"),
        ({"schema": '{"const": [1, "a"]}'}, '[1, "a"]', "[1]"),
        ({"schema": True}, '{"a": [null]}', "nul"),
        ({"regex": r"\d{2}|x+"}, "xxx", "1"),
        ({"choices": ["yes", "no", "no way"]}, "no", "n"),
        ({"type": Point}, '{"x": 1, "y": 2}', '{"x": 1}'),
        ({"type": list[int]}, "[1, 2]", '["1"]'),
        ({"grammar": Grammar(Literal(b"ab"), {})}, "ab", "a"),
    ],
)
def test_each_source_has_its_front_end(source: dict[str, Any], inside: str, outside: str) -> None:
    constraint = compile(VOCABULARY, **source)
    assert accepts_text(constraint, inside)
    assert not accepts_text(constraint, outside)


@pytest.mark.parametrize("sources", [{}, {"regex": "a", "choices": ["a"]}])
def test_exactly_one_source(sources: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="exactly one"):
        compile(VOCABULARY, **sources)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ({"schema": '{"type": '}, SourceError),
        ({"schema": {"type": "strng"}}, SchemaError),
        ({"schema": {"type": "string", "enum": [1]}}, UnsatisfiableError),
        ({"schema": False}, UnsatisfiableError),
        ({"regex": "(a"}, RegexError),
        ({"regex": r"(a*)\1"}, UnsupportedError),
        ({"choices": []}, UnsatisfiableError),
        ({"choices": ["\ud800"]}, SourceError),
        ({"choices": [1]}, SourceError),
        ({"schema": {"type": "string", "pattern": "\ud800"}}, UnsatisfiableError),
        ({"schema": {"type": "string", "pattern": "^[\ud800]{2,9}$"}}, UnsatisfiableError),
        ({"grammar": "start: A"}, GrammarError),
    ],
)
def test_bad_sources_have_one_clear_error(source: dict[str, Any], error: type[ConstrainError]) -> None:
    with pytest.raises(error) as caught:
        compile(VOCABULARY, **source)
    assert caught.value.cause


@pytest.mark.parametrize(
    "source",
    [
        {"schema": {"type": "object", "properties": {"é": {"type": "integer"}}}, "style": Style(key_order="any")},
        {"regex": "[a-z]+", "limits": Limits(dfa_states=10)},
        {"choices": ["a", "b"]},
        {"schema": {"type": "string", "title": "half a pair: \ud800"}},
        {"type": Point, "style": Style(whitespace=2)},
        {"schema": {"$ref": "urn:n"}, "registry": {"urn:n": {"type": "null"}}},
    ],
)
def test_a_constraint_is_saved_and_loaded(source: dict[str, Any], tmp_path: Path) -> None:
    constraint = compile(VOCABULARY, **source)
    constraint.save(tmp_path / "it")
    again = Constraint.load(tmp_path / "it", VOCABULARY)
    assert again.source == constraint.source
    assert again.limits == constraint.limits
    text = constraint.matcher().shortest_completion()
    assert text is not None
    assert accepts_text(again, text.decode())


def test_load_raises_for_damaged_files_and_other_vocabularies(tmp_path: Path) -> None:
    path = tmp_path / "it"
    compile(VOCABULARY, regex="a").save(path)
    other = Vocabulary.from_tokens([*VOCABULARY.tokens[:256], b"more", None], eos_ids=(257,))
    with pytest.raises(SourceError, match="another vocabulary"):
        Constraint.load(path, other)
    path.write_text(path.read_text().replace('"a"', '"b"'))
    with pytest.raises(SourceError, match="damaged"):
        Constraint.load(path, VOCABULARY)
    path.write_text("nonsense")
    with pytest.raises(SourceError, match="not a saved constraint"):
        Constraint.load(path, VOCABULARY)
    with pytest.raises(UnsupportedError):
        compile_grammar(Grammar(Literal(b"a"), {}), VOCABULARY).save(path)


def test_a_count_beyond_the_machine_is_refused_by_name() -> None:
    with pytest.raises(LimitError, match="count"):
        compile(VOCABULARY, regex="a{1,999999999999}").matcher()


@pytest.mark.parametrize(
    "choice", [{"whitespace": -1}, {"whitespace": "foo"}, {"whitespace": True}, {"key_order": "x"}, {"digits": 0}]
)
def test_a_style_that_cannot_be_is_refused(choice: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(choice))):
        Style(**choice)


def test_after_the_end_token_nothing_may_follow() -> None:
    matcher = compile(VOCABULARY, choices=["a", "ab"]).matcher()
    matcher.advance(ord("a"))
    assert matcher.is_complete
    assert not matcher.is_finished
    matcher.advance(256)
    assert matcher.is_finished
    assert not matcher.mask().any()
    assert not matcher.allows(256)
    with pytest.raises(TokenRefused, match="ended"):
        matcher.advance(ord("b"))
    matcher.rollback()
    matcher.advance(ord("b"))
    assert matcher.tokens == [ord("a"), ord("b")]


def test_a_wrong_output_array_is_an_error() -> None:
    import numpy as np

    matcher = compile(VOCABULARY, regex="a").matcher()
    with pytest.raises(ValueError, match=r"int32\[9\]"):
        matcher.mask(np.zeros(8, np.int32))
    with pytest.raises(ValueError, match="int32"):
        matcher.mask(np.zeros(9, np.int64))  # type: ignore[arg-type]


def test_an_interpreter_without_the_gil_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    from constrain.compilation.constraint_compiler import warn_without_gil

    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True, raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_without_gil()
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    with pytest.warns(RuntimeWarning, match="without the GIL"):
        warn_without_gil()
