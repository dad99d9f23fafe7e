"""What is written: white space, key order and escapes of each Style; and that small things stay small."""

from __future__ import annotations

import json
from typing import Any

import pytest

from constrain.base.options import Style
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.json_schema.core.whitespace import INDENTATION
from constrain.grammar.nodes import Choice, Literal, Object, Rule, Strings
from tests.recogniser_oracle import accepts

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


WRITERS: list[dict[str, Any]] = [
    {},
    {"separators": (",", ":")},
    {"separators": (", ", ":")},
    {"separators": (",", ": ")},
    *({"indent": indent} for indent in (0, 1, 2, 3, 4, 8, 16, "\t", "\t\t")),
]
"""What `json.dumps` is given: so JSON.stringify, prettier, Go's encoding/json and jq write, too."""


@pytest.mark.parametrize("writer", WRITERS, ids=str)
@pytest.mark.parametrize("key_order", ["schema", "any"])
def test_flexible_accepts_output_of_json_writers(writer: dict[str, Any], key_order: Any) -> None:
    assert judge(json.dumps(VALUE, ensure_ascii=False, **writer), key_order=key_order)


def test_flexible_accepts_spaces_inside_brackets() -> None:
    assert judge('{ "a": [ ] }') and judge('{ "a":[] }') and judge('{"a": []\n}')


@pytest.mark.parametrize("space", [" ", "\t"])
def test_flexible_has_a_bounded_indentation(space: str) -> None:
    assert judge("{\n" + space * INDENTATION + '"a":[]}')
    assert not judge("{\n" + space * (INDENTATION + 1) + '"a":[]}')


@pytest.mark.parametrize(
    "text",
    [
        '{"a" :[]}',
        '{"a":  []}',
        '{"a":\n[]}',
        '{"a":\t[]}',
        '{  "a":[]}',
        '{\t"a":[]}',
        '{\n\n"a":[]}',
        '{\r\n"a":[]}',
        '{\n \t"a":[]}',
        '{\n\t "a":[]}',
        '{"a":[] ,"z":1}',
        '{"a":[],  "z":1}',
        '{"a":[]  }',
        '{ \n"a":[]}',
        '{"a":[\n]}',
        '{"a":[\n  ]}',
        '{"a":[]}\n',
        ' {"a":[]}',
    ],
)
def test_flexible_refuses_unusual_whitespace(text: str) -> None:
    assert json.loads(text)["a"] == [] and judge(text, whitespace="any") and not judge(text)


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


def test_only_arrays_and_objects_are_rules() -> None:
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
