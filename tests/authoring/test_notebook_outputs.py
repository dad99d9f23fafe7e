"""What notebooks show of a Constraint, a Vocabulary and Draws: well-formed, escaped, bounded."""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import constrain
from constrain.authoring.diagrams import draw_source
from constrain.authoring.notebooks import notebook_outputs
from constrain.sampling import draw
from tests.authoring.test_answers import HOSTILE, read_html
from tests.model_factory import TableModel

BYTES = constrain.Vocabulary.bytes()
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 9},
        "age": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"enum": ["x", 7]}, "uniqueItems": True, "maxItems": 3},
        "child": {"$ref": "#"},
        "place": {"$ref": "#/$defs/place"},
    },
    "required": ["name"],
    "$defs": {"place": {"anyOf": [{"type": "null"}, {"prefixItems": [True], "items": False}]}},
}


def picture(constraint: constrain.Constraint) -> tuple[str, list[str]]:
    """The SVG of a Constraint, and the texts in it."""
    html = constraint._repr_html_()
    read_html(html)
    found = re.search(r"base64,([\w+/=]+)", html)
    assert found, html
    svg = b64decode(found[1]).decode()
    root = ElementTree.fromstring(svg)
    return svg, ["".join(one.itertext()) for one in root.iter() if one.tag.endswith("text")]


def test_a_schema_as_a_railroad() -> None:
    svg, texts = picture(constrain.compile(BYTES, schema=PERSON))
    for text in (
        '"name" :',
        "string length ≤ 9",
        "integer ≥ 0",
        '"x"',
        "7",
        "and uniqueItems",
        "0–3×",
        "place",
        "null",
    ):
        assert text in texts, text
    assert "prefers-color-scheme: dark" in svg
    assert texts.count("schema") == 1  # the reference to "#"; its title has a remark beside it


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"regex": "[a-z]+x"}, ["[a-z]+x"]),
        ({"choices": ["yes", "no"]}, ['"yes"', '"no"']),
        ({"grammar": 'start: a ("," a)*\na: /[a-z]+/'}, ["a", '","', "/[a-z]+/"]),
        ({"grammar": 'root ::= "a" [0-9]+'}, ['"a"', "[0-9]"]),
        ({"grammar": constrain.literal("Q") + (constrain.regex("[a-z]") | constrain.json_schema(True)).repeat(1, 3)},
         ['"Q"', "[a-z]", "schema-1", "any value", "1–3×"]),
        ({"schema": {"type": ["null", "boolean"]}}, ["null", "true", "false"]),
    ],
)  # fmt: skip
def test_other_sources(source: dict[str, Any], words: list[str]) -> None:
    _, texts = picture(constrain.compile(BYTES, **source))
    assert not [word for word in words if word not in texts]


def test_html_says_that_a_source_has_no_diagram() -> None:
    made = constrain.compile_grammar(constrain.compile(BYTES, regex="a").grammar, BYTES)
    assert "no diagram" in read_html(made._repr_html_()).text
    drawn, note = draw_source({"form": {"kind": "LarkText", "text": "start: %", "start": "start"}})
    assert not drawn and note.startswith("No diagram:")


def test_hostile_names_and_values() -> None:
    schema = {"properties": {HOSTILE: {"const": HOSTILE}, "\u202e": True}, "required": [HOSTILE]}
    svg, _ = picture(constrain.compile(BYTES, schema=schema))
    assert "<script" not in svg and "\u202e" not in svg
    picture(constrain.compile(BYTES, choices=[HOSTILE]))


def test_sizes_are_bounded() -> None:
    wide = {"properties": {f"p{k}": {"enum": list(range(100))} for k in range(300)}, "additionalProperties": False}
    _, texts = picture(constrain.compile(BYTES, schema=wide))
    assert "… and 284 more members" in texts and "… and 84 more" in texts
    chain = {"$defs": {f"d{k}": {"items": {"$ref": f"#/$defs/d{k + 1}"}} for k in range(80)}, "$ref": "#/$defs/d0"}
    chain["$defs"]["d80"] = True  # type: ignore[index]
    drawn, note = draw_source({"schema": chain})
    assert len(drawn) == 24 and note.startswith("The first 24 rules")
    deep: Any = True
    for _ in range(60):
        deep = {"items": deep}
    _, texts = picture(constrain.compile(BYTES, schema=deep))
    assert "…" in texts


def test_a_large_diagram_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook_outputs, "MOST_SVG", 100)
    assert "larger than 100 characters" in constrain.compile(BYTES, regex="ab")._repr_html_()


def test_a_vocabulary() -> None:
    special = {"<s>": 3, HOSTILE: 4}
    vocabulary = constrain.Vocabulary.from_tokens([b"<b>", b"\xff\xc3", None, None, None], (2,), special=special)
    text = read_html(vocabulary._repr_html_()).text
    assert "5, of which 2 have text" in text and "<s>" in text and "'<b>'" in text
    assert "some texts cannot be spelled" in text
    assert "none" in read_html(BYTES._repr_html_()).text


def test_draws() -> None:
    constraint = constrain.compile(BYTES, choices=["<b>", HOSTILE])
    draws = draw(TableModel(257), constraint, n=20, rng=np.random.default_rng(0), max_tokens=80)
    text = read_html(draws._repr_html_()).text
    assert "20 draws" in text and "<b>" in text
    many = draw(TableModel(257), constrain.compile(BYTES, regex="[a-z]{3}"), n=40, rng=np.random.default_rng(0),
                max_tokens=5)  # fmt: skip
    assert "more texts are not shown" in read_html(many._repr_html_()).text
