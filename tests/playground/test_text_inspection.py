"""What the page says of a text, compared with a Matcher that is fed byte by byte."""

from __future__ import annotations

import json
from functools import cache

import pytest
from hypothesis import given, strategies as st

import constrain
from constrain.base.errors import LimitError, TokenRefused
from constrain.base.work import work_budget
from constrain.engine.constraint import Constraint
from constrain.playground.text_inspection import inspect_text
from constrain.vocabulary.vocabulary import Vocabulary

SOURCES: dict[str, constrain.Form] = {
    "object": constrain.json_schema(
        {"type": "object", "properties": {"name": {"type": "string"}, "role": {"enum": ["admin", "author", "ünïts"]}},
         "required": ["name", "role"], "additionalProperties": False}
    ),
    "array": constrain.json_schema({"type": "array", "items": {"enum": [1, 23, "𝒳y"]}, "minItems": 1}),
    "pattern": constrain.regex("(ab𝒳|a[bc]d)+é?(end|ending)"),
    "gbnf": constrain.gbnf('root ::= "[" (item ("," item)*)? "]"\nitem ::= "yes" | "no" | root'),
    "lark": constrain.lark('start: "let" NAME "=" NUMBER\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/\n%ignore " "'),
}  # fmt: skip
TEXTS = {
    "object": ['{"name": "é𝒳", "role": "ünïts"}', '{"role":"author","name":""}', '{"name": "a", "role": "x"}'],
    "array": ['[1, 23, "𝒳y"]', '[\n  23\n]', "[1,,"],
    "pattern": ["ab𝒳abdéending", "abéx", "ac"],
    "gbnf": ["[yes,[no],[]]", "[ye", "[yes,maybe]"],
    "lark": ["let x = 12", "let  y", "lex"],
}  # fmt: skip


@cache
def compiled(name: str) -> Constraint:
    return constrain.compile(Vocabulary.bytes(), grammar=SOURCES[name])


def units(data: bytes) -> int:
    """UTF-16 code units of the whole characters of a text."""
    return len(data.decode("utf-8", "ignore").encode("utf-16-le")) // 2


def follow(constraint: Constraint, data: bytes) -> tuple[int, list[bool], bool, set[int]]:
    """Bytes that are accepted, whether each was forced, whether the accepted text is complete, and what may follow."""
    matcher, forced = constraint.matcher(), []
    for place, byte in enumerate(data):
        choices = matcher.next_bytes()
        try:
            matcher.advance_bytes(bytes((byte,)))
        except TokenRefused:
            return place, forced, matcher.is_complete, choices
        before = constraint.matcher()
        before.advance_bytes(data[:place])
        forced.append(len(choices) == 1 and not before.is_complete)
    return len(data), forced, matcher.is_complete, matcher.next_bytes()


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, str]:
    """A source, and a text that is nearly one of it."""
    name = draw(st.sampled_from(sorted(SOURCES)))
    text = draw(st.sampled_from(TEXTS[name]))
    cut = draw(st.integers(0, len(text)))
    return name, text[:cut] + draw(st.sampled_from(["", "", "", "é", "𝒳", '"', "a", "]", " "])) + text[cut:]


@given(edited())
def test_offsets_and_verdicts_are_those_of_a_matcher(case: tuple[str, str]) -> None:
    name, text = case
    constraint, data = compiled(name), text.encode()
    found = inspect_text(constraint, text)
    accepted, forced, is_complete, _ = follow(constraint, data)
    assert found["accepted"] == units(data[:accepted])
    assert (found["refusal"] is None) == (accepted == len(data))
    assert found["is_complete"] == (is_complete and accepted == len(data))
    assert found["bytes"] == len(data)
    shaded = {place for begin, end in found["forced_runs"] for place in range(begin, end)}
    bounds = [units(data[:place]) for place in range(accepted + 1)]
    forced_characters = {
        place for k in range(accepted) if bounds[k] < bounds[k + 1] and forced[k]
        for place in range(bounds[k], bounds[k + 1]) if is_character_forced(data, k, forced)
    }  # fmt: skip
    assert forced_characters <= shaded
    assert all(any(forced[k] for k in range(accepted) if bounds[k] <= place <= bounds[k + 1]) for place in shaded)
    assert found["expected"] or found["is_finished"]


def is_character_forced(data: bytes, end: int, forced: list[bool]) -> bool:
    """Whether all bytes of the character that ends at a byte were forced."""
    begin = end
    while data[begin] & 0xC0 == 0x80:
        begin -= 1
    return all(forced[begin : end + 1])


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_forced_text_agrees_with_the_matcher(name: str) -> None:
    for text in TEXTS[name]:
        found = inspect_text(compiled(name), text)
        matcher = compiled(name).matcher()
        matcher.advance_bytes(
            text.encode()[: len(text.encode("utf-16-le")[: 2 * found["accepted"]].decode("utf-16-le").encode())]
        )
        assert matcher.forced().startswith(found["forced_next"].encode())
        assert found["allowed_tokens"] == len(matcher.next_bytes()) + matcher.is_complete


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", []), ("[", [0]), ("[1,", [1]), ('{"a', []), ('{"a":', ["a"]), ('{"a": -', ["a"]), ('{"a": 1, "b', []),
        ('{"a": [1, {"\\u0062": "x', ["a", 1, "b"]), ('{"a": [1, {"b": "]}\\"', ["a", 1, "b"]), ('[{"a": {}}, ', [1]),
        ('{"a": {"b": []}', ["a"]), ('{"a": {"b": []}}', []),
    ],
)  # fmt: skip
def test_paths_in_documents(text: str, path: list[str | int]) -> None:
    constraint = constrain.compile(Vocabulary.bytes(), grammar=constrain.json_schema({}, style=constrain.Style.any()))
    found = inspect_text(constraint, text)
    assert (found["path"], found["refusal"]) == (path, None)


def test_positions() -> None:
    assert inspect_text(compiled("gbnf"), "[[yes")["rules"] == ["root", "item", "root"]
    assert inspect_text(compiled("lark"), "let x = ")["symbols"] == ['"let"', "NAME", '"="']
    assert inspect_text(compiled("object"), '{"name": "Ada", "role": "auditor"}')["expected"] == [
        '"admin"', '"author"', '"ünïts"',
    ]  # fmt: skip


def test_the_result_is_json() -> None:
    for name, texts in TEXTS.items():
        for text in texts:
            json.dumps(inspect_text(compiled(name), text), allow_nan=False)


def test_the_work_is_bounded() -> None:
    with pytest.raises(LimitError, match="inspection of the text"), work_budget(1_000):
        inspect_text(compiled("pattern"), "ab𝒳" * 1_000)
