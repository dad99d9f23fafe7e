"""`describe_keywords`: every keyword with how it is enforced, and which keywords exclude each other."""

from __future__ import annotations

import re
from typing import Any

import pytest

from constrain.base.errors import SchemaError, UnsatisfiableError
from constrain.base.options import Style
from constrain.frontends.json_schema import describe_keywords, to_grammar


def describe_rows(schema: Any, **options: Any) -> dict[str, tuple[str, str]]:
    return {row.pointer: (row.how, row.note) for row in describe_keywords(schema, **options)}


def test_every_keyword_has_a_row() -> None:
    schema = {
        "title": "T",
        "properties": {"a/b": {"minLength": 1, "format": "int32", "nullable": True}},
        "required": ["a/b"],
        "dependencies": {},
        "$defs": {"x": {"maxItems": 3}},
    }
    assert describe_rows(schema) == {
        "/title": ("annotation", ""),
        "/properties": ("mask", ""),
        "/required": ("keys", ""),
        "/dependencies": ("annotation", "not a keyword of 2020-12; write dependentRequired or dependentSchemas"),
        "/$defs": ("structure", "schemas that others refer to"),
        "/properties/a~1b/minLength": ("counter", ""),
        "/properties/a~1b/format": ("annotation", "a format that JSON Schema does not define"),
        "/properties/a~1b/nullable": (
            "annotation",
            'a keyword of OpenAPI, not of JSON Schema; write a list of types with "null" in it, or anyOf with '
            '{"type": "null"}',
        ),
        "/$defs/x/maxItems": ("counter", ""),
    }


def test_keywords_ignored_by_style_or_dialect() -> None:
    assert describe_rows({"format": "date"}, style=Style(formats="annotate"))["/format"] == (
        "annotation",
        "not asserted",
    )
    old = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/a",
        "type": "null",
        "definitions": {"a": {}},
    }
    assert describe_rows(old)["/type"] == ("annotation", "ignored beside $ref, as the dialect has it")
    assert describe_rows(old)["/$ref"][0] == "mask"


def test_refused_keywords_get_a_row() -> None:
    rows = describe_rows({"properties": {"a": {"const": "\ud800"}}, "maxItems": 3})
    assert rows["/properties/a/const"] == ("refused", "A lone surrogate cannot be written as UTF-8.")
    assert rows["/maxItems"][0] == "counter"
    assert describe_rows({"uniqueItems": True, "maxItems": 1})["/uniqueItems"][0] == "mask"


@pytest.mark.parametrize(
    ("schema", "where", "how", "says"),
    [
        ({"type": "integer", "minLength": 1}, "/minLength", "annotation", "never applies: the type is integer"),
        ({"type": ["integer", "string"], "minLength": 1}, "/minLength", "counter", ""),
        ({"maxlenght": 1}, "/maxlenght", "annotation", "did you mean maxLength?"),
        ({"format": "e-mail"}, "/format", "annotation", "no known format: e-mail; did you mean email?"),
        ({"format": "url"}, "/format", "annotation", "did you mean uri?"),
        ({"colour": 1}, "/colour", "annotation", "unknown keyword"),
        ({"contentEncoding": "base64"}, "/contentEncoding", "annotation", "not looked at"),
        ({"uniqueItems": True, "items": {"enum": [1, 2]}}, "/uniqueItems", "mask", "decided by the items"),
        ({"properties": {"uniqueItems": {"uniqueItems": False}}}, "/properties/uniqueItems/uniqueItems", "annotation",
         "false asserts nothing"),
        ({"items": {"type": "string"}, "uniqueItems": True, "maxItems": 5}, "/uniqueItems", "guard", "at most 4 times"),
        ({"items": {"type": "string"}, "uniqueItems": True}, "/uniqueItems", "guard", "from the second item on"),
        ({"dependentRequired": {"a": ["b"]}}, "/dependentRequired", "keys", ""),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": []}, "/prefixItems", "annotation",
         "not a keyword of draft 7; write a list in `items`"),
    ],
)  # fmt: skip
def test_notes_that_depend_on_the_schema(schema: Any, where: str, how: str, says: str) -> None:
    row = describe_rows(schema)[where]
    assert row[0] == how and says in row[1]


def test_invalid_schemas_are_refused() -> None:
    with pytest.raises(SchemaError):
        describe_keywords({"type": "strng"})
    with pytest.raises(UnsatisfiableError):
        describe_keywords(False)
    assert describe_keywords(True) == []


@pytest.mark.parametrize(
    ("schema", "blamed"),
    [
        ({"allOf": [{"type": "string"}, {"type": "integer"}], "title": "x"}, ["/allOf/0/type", "/allOf/1/type"]),
        ({"type": "string", "pattern": "^a*$", "minLength": 2, "enum": ["b", "cd"]}, ["/pattern", "/enum"]),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "integer", "minimum": 5, "maximum": 3, "title": "x"}},
                "required": ["a"],
            },
            ["/required", "/properties/a/minimum", "/properties/a/maximum"],
        ),
        ({"$defs": {"a": {"type": "null"}}, "$ref": "#/$defs/a", "type": "string"}, ["/type", "/$defs/a/type"]),
        ({"type": "integer", "minimum": 5, "maximum": 3}, ["/minimum", "/maximum"]),
        ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
         ["/type", "/exclusiveMinimum", "/exclusiveMaximum"]),
        ({"type": "string", "enum": [1]}, ["/type", "/enum"]),
        ({"type": "string", "pattern": "$a"}, ["/pattern"]),
        ({"enum": []}, ["/enum"]),
        ({"not": {}}, ["/not"]),
        (False, []),
    ],
)  # fmt: skip
def test_the_keywords_that_clash_are_named(schema: Any, blamed: list[str]) -> None:
    with pytest.raises(UnsatisfiableError) as caught:
        to_grammar(schema)
    found = re.findall(r"^ {4}(\S+)$", str(caught.value), re.MULTILINE) or ([caught.value.pointer] if blamed else [])
    assert found == blamed
