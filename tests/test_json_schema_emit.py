"""What is written: white space, key order and escapes of each Style; and that small things stay small."""

from __future__ import annotations

import json
from typing import Any

import pytest

from constrain.frontends.json_schema import to_grammar
from constrain.grammar.nodes import Choice, Literal, Object, Rule, Strings
from constrain.style import Style
from tests.recogniser import accepts

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"type": "integer"}}, "é": {"type": "object"}},
    "required": ["a"],
}
VALUE = {"a": [1, 2], "é": {"x": None}}
COMPACT = json.dumps(VALUE, separators=(",", ":"), ensure_ascii=False)


def judge(text: str, **options: Any) -> bool:
    return accepts(to_grammar(SCHEMA, style=Style(**options)), text)


@pytest.mark.parametrize("spaces", [0, 2, 4])
def test_indented(spaces: int) -> None:
    text = json.dumps(VALUE, indent=spaces, ensure_ascii=False)
    assert judge(text, whitespace=spaces)
    assert judge("{\n" + " " * spaces + '"a": []\n}', whitespace=spaces)
    assert not judge(COMPACT, whitespace=spaces)
    assert not judge(text.replace("\n", "\n "), whitespace=spaces)
    nothing = to_grammar({"type": ["array", "object"]}, style=Style(whitespace=spaces))
    assert accepts(nothing, "[]") and accepts(nothing, "{}") and not accepts(nothing, "[ ]")


def test_compact() -> None:
    assert judge(COMPACT, whitespace="compact")
    assert not judge(COMPACT.replace(":", ": "), whitespace="compact")


def test_flexible_is_bounded_and_not_around_the_root() -> None:
    assert judge(COMPACT)
    assert judge(json.dumps(VALUE, indent=3, ensure_ascii=False))
    assert judge('{ "a" :\t[ ]\r\n}') and judge('{"a":' + " " * 200 + "[]}")
    assert not judge('{"a":' + " " * 201 + "[]}")
    assert not judge(" " + COMPACT) and not judge(COMPACT + "\n")


def test_any() -> None:
    assert judge(" \n" + COMPACT + "\t", whitespace="any")
    assert judge('{"a":' + " " * 1_000 + "[]}", whitespace="any")
    assert not judge('{"a":\u00a0[]}', whitespace="any")


def test_key_order() -> None:
    assert not judge('{"é":{},"a":[]}') and judge('{"é":{},"a":[]}', key_order="any")
    assert judge('{"a":[],"z":1}') and not judge('{"z":1,"a":[]}')
    assert judge('{"z":1,"a":[]}', key_order="any")


def test_escapes_of_keys() -> None:
    assert not judge(r'{"a":[],"\u00e9":{}}') and judge(r'{"a":[],"\u00e9":{}}', escapes="any")
    assert judge(r'{"a":[],"free\u0020key":1}')


def test_constants_are_gathered() -> None:
    node = to_grammar({"enum": [None, True, "a", 3, 2.5]}).start
    assert node == Strings((b'"a"', b"2.5", b"3", b"null", b"true"))
    assert to_grammar({"const": "a"}).start == Literal(b'"a"')


def test_only_what_has_brackets_is_a_rule() -> None:
    grammar = to_grammar({"type": "object", "properties": {"s": {"type": "string"}, "o": {"type": "object"}}})
    assert isinstance(grammar.start, Rule)
    node = grammar.rules[grammar.start.name]
    assert isinstance(node, Object)
    assert [isinstance(item.value, Rule) for item in node.properties] == [False, True]


def test_equal_subschemas_share_their_rules() -> None:
    grammar = to_grammar(
        {"properties": {"a": {"$ref": "#/$defs/o"}, "b": {"$ref": "#/$defs/o"}}, "$defs": {"o": {"type": "object"}}}
    )
    root = grammar.rules[grammar.start.name]  # type: ignore[union-attr]
    assert isinstance(root, Choice)
    node = next(option for option in root.options if isinstance(option, Object))
    assert node.properties[0].value == node.properties[1].value
