"""Strings: lengths of decoded text, patterns, formats, constants, and all of them together."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from constrain.base.errors import LimitError, UnsatisfiableError
from constrain.base.options import Limits, Style
from constrain.frontends.json_schema import to_grammar
from constrain.grammar.nodes import JsonString, Strings
from tests.recogniser_oracle import accepts


def judge(schema: Any, text: str, style: Style = Style()) -> bool:
    return accepts(to_grammar(schema, style=style), text)


def test_lengths_count_characters_of_the_decoded_text() -> None:
    two = {"type": "string", "minLength": 2, "maxLength": 2}
    for text in ('"ab"', '"é😀"', r'"\n\""', r'"\u00e9a"', r'"\ud83d\ude00a"'):
        assert judge(two, text), text
    for text in ('"a"', '"abc"', r'"\ud83d\ude00"', '""'):
        assert not judge(two, text), text


def test_a_large_bound_is_a_counter() -> None:
    node = to_grammar({"type": "string", "pattern": "^[a-z]+$", "maxLength": 1_000_000}).start
    assert isinstance(node, JsonString)
    assert node.high == 1_000_000 and node.dfa.delta.shape[0] < 5
    counted = to_grammar({"type": "string", "pattern": "^[a-z]{1,255}$"}).start
    assert isinstance(counted, JsonString)
    assert (counted.low, counted.high, counted.dfa.delta.shape[0]) == (1, 255, 1)


@pytest.mark.parametrize(
    ("pattern", "low", "high"),
    [
        ("^([a-z][0-9])+$", 5, None),
        ("^([a-z][0-9])+$", 0, 5),
        ("^(abc)*$", 4, 8),
        ("^a|bb$", 1, 3),
        ("^[a-c]{2,4}$", 3, 9),
    ],
)
@given(text=st.text("abc019", max_size=9))
def test_pattern_and_length(pattern: str, low: int, high: int | None, text: str) -> None:
    schema = {"type": "string", "pattern": pattern, "minLength": low, **({"maxLength": high} if high else {})}
    wanted = bool(re.search(pattern, text)) and low <= len(text) and (high is None or len(text) <= high)
    assert judge(schema, json.dumps(text)) == wanted


def test_no_counter_beside_a_pattern_can_run_into_a_dead_end() -> None:
    """A least length beside a language with gaps is multiplied in; a greatest one needs no states."""
    gaps = to_grammar({"type": "string", "pattern": "^([a-z][0-9])+$", "minLength": 5, "maxLength": 99_999}).start
    assert isinstance(gaps, JsonString)
    assert gaps.low == 0 and gaps.high == 99_999 and gaps.dfa.lengths() == (6, None)
    with pytest.raises(LimitError) as caught:
        to_grammar({"pattern": "^(ab)*$", "minLength": 30_000}, limits=Limits(dfa_states=1_000))
    assert caught.value.pointer is not None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 3, "maxLength": 2},
        {"type": "string", "pattern": "^a$", "minLength": 2},
        {"type": "string", "pattern": "^a", "allOf": [{"pattern": "^b"}]},
        {"type": "string", "format": "date", "maxLength": 9},
        {"type": "string", "format": "uuid", "pattern": "^z"},
        {"enum": ["a", "b"], "pattern": "c"},
        {"type": "string", "pattern": "a^"},
    ],
)
def test_unsatisfiable_strings(schema: Any) -> None:
    with pytest.raises(UnsatisfiableError):
        to_grammar(schema)


def test_patterns_are_searched_as_ecma_reads_them() -> None:
    assert judge({"pattern": "b"}, '"abc"')
    assert not judge({"type": "string", "pattern": r"^\d$"}, '"٣"')
    assert not judge({"type": "string", "pattern": "^a$"}, r'"a\n"')


def test_format() -> None:
    day = {"type": "string", "format": "date"}
    assert judge(day, '"2024-02-29"') and not judge(day, '"2023-02-29"')
    assert judge(day, '"x"', Style(formats="annotate"))
    assert judge({"type": "string", "format": "int32"}, '"x"')
    assert judge({"format": "date"}, "3")
    host = {"type": "string", "format": "hostname"}
    name = ".".join(["a" * 63] * 4)[:253]
    assert judge(host, f'"{name}"') and not judge(host, f'"{name}a.b"')
    both = {"type": "string", "format": "date", "pattern": "^2024-", "not": {"pattern": "01$"}}
    assert judge(both, '"2024-03-02"') and not judge(both, '"2024-03-01"') and not judge(both, '"2023-03-02"')


def test_constants_follow_the_style() -> None:
    schema = {"enum": ["é", 'a"b', "c", "c"]}
    node = to_grammar(schema).start
    assert node == Strings(tuple(sorted(json.dumps(text, ensure_ascii=False).encode() for text in ("é", 'a"b', "c"))))
    assert not judge(schema, r'"\u00e9"')
    assert judge(schema, r'"\u00e9"', Style(escapes="any"))


@given(st.text(max_size=3), st.booleans())
def test_a_constant_is_that_text_only(text: str, ascii_only: bool) -> None:
    schema = {"type": "string", "not": {"enum": [text, "x"]}}
    assert judge({"const": text}, json.dumps(text, ensure_ascii=ascii_only), Style(escapes="any"))
    assert not judge(schema, json.dumps(text, ensure_ascii=ascii_only))
    assert judge(schema, json.dumps(text + "y", ensure_ascii=ascii_only)) == (text + "y" != "x")
