"""References beyond pointers: base URIs, dynamic scopes, vocabularies, and the meta-schemas that are built in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from constrain.base.errors import SchemaError, UnsupportedError
from constrain.base.options import Style
from constrain.frontends.json_schema import to_grammar
from tests.recogniser_oracle import accepts

DRAFT7 = "http://json-schema.org/draft-07/schema#"
DRAFT2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT2020 = "https://json-schema.org/draft/2020-12/schema"
VOCABULARY = "https://json-schema.org/draft/2020-12/vocab/"

VALUES: list[Any] = [
    None,
    1,
    "a",
    [],
    [1],
    ["a"],
    [[1]],
    [["a"]],
    {},
    {"a": 1},
    {"a": "a"},
    {"a": {"a": 1}},
    [{"a": 1}],
]


def judge(schema: Any, value: Any, formats: str = "annotate", **options: Any) -> bool:
    style = Style.any() if formats == "assert" else Style(whitespace="any", numbers="any", formats="annotate")
    return accepts(to_grammar(schema, style=style, **options), json.dumps(value))


def list_of(kind: str, draft: str = DRAFT2020) -> dict[str, Any]:
    """A generic list whose items are defined by a dynamic anchor (draft 2020-12)."""
    generic = {"$id": "list", "items": {"$dynamicRef": "#item"}, "$defs": {"any": {"$dynamicAnchor": "item"}}}
    return {
        "$schema": draft,
        "$id": "http://x/main",
        "$ref": kind,
        "$defs": {
            "list": generic,
            "number": {"$id": "number", "$defs": {"i": {"$dynamicAnchor": "item", "type": "number"}}, "$ref": "list"},
            "string": {"$id": "string", "$defs": {"i": {"$dynamicAnchor": "item", "type": "string"}}, "$ref": "list"},
            "both": {"$id": "both", "prefixItems": [{"$ref": "number"}, {"$ref": "string"}]},
        },
    }


@pytest.mark.parametrize("kind", ["list", "number", "string", "both"])
def test_dynamic_references_depend_on_the_dynamic_scope(kind: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = list_of(kind)
    validator = jsonschema.Draft202012Validator(schema)
    values = [*VALUES, [1, "a"], [[1], ["a"]], [["a"], [1]], [[1, "a"]], [[], []]]
    assert [judge(schema, value) for value in values] == [validator.is_valid(value) for value in values]
    assert {judge(schema, value) for value in values} == ({True} if kind == "list" else {True, False})


def test_a_recursive_reference_leads_to_the_outermost_root() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    tree = {"$id": "http://x/tree", "$recursiveAnchor": True, "items": {"$recursiveRef": "#"}}
    for anchor in (True, False):
        schema = {
            "$schema": DRAFT2019,
            "$id": "http://x/strict",
            "$recursiveAnchor": anchor,
            "type": "array",
            "$ref": "http://x/tree",
            "$defs": {"tree": tree},
        }
        validator = jsonschema.Draft201909Validator(schema)
        values = [*VALUES, [[]], [[[]], []], [[[1]]]]
        assert [judge(schema, value) for value in values] == [validator.is_valid(value) for value in values]
    assert not judge({**schema, "$recursiveAnchor": True}, [1]) and judge(schema, [1])


def test_a_dynamic_reference_to_a_plain_anchor_is_a_plain_one() -> None:
    schema = {
        "$id": "http://x/a",
        "$dynamicAnchor": "n",
        "items": {"$ref": "b"},
        "$defs": {"b": {"$id": "b", "items": {"$dynamicRef": "#n"}, "$defs": {"c": {"$anchor": "n", "type": "null"}}}},
    }
    assert judge(schema, [[None]]) and not judge(schema, [[1]])


def test_equal_references_in_two_resources_are_two() -> None:
    def part(name: str, kind: str) -> dict[str, Any]:
        inner = {"$ref": "#/$defs/x", "title": "same", "minLength": 1}
        return {"$id": name, "properties": {"a": inner}, "$defs": {"x": {"type": kind}}}

    schema = {"$id": "http://x/", "prefixItems": [part("one", "number"), part("two", "string")]}
    assert judge(schema, [{"a": 1}, {"a": "a"}])
    assert not judge(schema, [{"a": 1}, {"a": 1}]) and not judge(schema, [{"a": "a"}, {"a": "a"}])


def test_an_id_counts_once() -> None:
    schema = {
        "$id": "http://x/root/",
        "items": {"$ref": "folder/"},
        "$defs": {"f": {"$id": "folder/", "items": {"$ref": "leaf"}}},
    }
    registry = {"http://x/root/folder/leaf": {"type": "null"}}
    assert judge(schema, [[None]], registry=registry) and not judge(schema, [[1]], registry=registry)


@pytest.mark.parametrize(
    ("uri", "good", "bad"),
    [
        ("http://json-schema.org/draft-04/schema#", {"maximum": 3}, {"maximum": "3"}),
        ("http://json-schema.org/draft-06/schema#", {"items": [True]}, {"items": 1}),
        (DRAFT7, {"if": {"not": {}}}, {"if": {"not": 3}}),
        (DRAFT2019, {"not": {"$recursiveRef": "#"}}, {"not": {"type": "none"}}),
        (DRAFT2020, {"allOf": [{"properties": {"a": {"minLength": 1}}}]}, {"allOf": [{"minLength": -1}]}),
        (DRAFT2020 + "#/$defs/x", None, None),
        ("http://json-schema.org/draft-07/none", None, None),
    ],
)
def test_meta_schemas_are_available(uri: str, good: Any, bad: Any) -> None:
    if good is None:
        with pytest.raises(SchemaError, match=r"names nothing|not in the registry"):
            to_grammar({"$ref": uri})
        return
    try:
        assert judge({"$ref": uri}, good) and not judge({"$ref": uri}, bad)
    except UnsupportedError as error:  # The meta-schema uses a keyword that is not supported.
        pytest.skip(error.cause)


def meta(**vocabularies: bool) -> dict[str, Any]:
    names = {VOCABULARY + name.replace("_", "-"): required for name, required in vocabularies.items()}
    return {"http://x/meta": {"$schema": DRAFT2020, "$vocabulary": names}}


def test_a_meta_schema_chooses_its_vocabularies() -> None:
    schema = {"$schema": "http://x/meta", "minLength": 2, "items": {"type": "null"}, "format": "ipv4"}
    whole = meta(core=True, applicator=True, validation=True)
    assert not judge(schema, "a", registry=whole) and not judge(schema, [1], registry=whole)
    lax = meta(core=True, applicator=True)
    assert judge(schema, "a", registry=lax) and judge(schema, [1], registry=lax)
    loose = meta(core=True, validation=True)
    assert judge(schema, [1], registry=loose) and not judge(schema, "a", registry=loose)
    for required in (True, False):
        strict = meta(core=True, format_assertion=required)
        assert judge(schema, "127.0.0.1", registry=strict) and not judge(schema, "127", registry=strict)
    assert judge(schema, "127", registry=meta(core=True, format_annotation=True))
    assert not judge(schema, "127", formats="assert", registry=meta(core=True, format_annotation=True))


def test_a_vocabulary_of_their_own_is_refused_if_it_is_required() -> None:
    def own(required: bool) -> dict[str, Any]:
        return {"http://x/meta": {"$vocabulary": {"http://x/vocab": required, VOCABULARY + "validation": True}}}

    schema = {"$schema": "http://x/meta", "minLength": 2}
    assert not judge(schema, "a", registry=own(False))
    with pytest.raises(UnsupportedError, match="http://x/vocab") as caught:
        to_grammar(schema, registry=own(True))
    assert caught.value.pointer == "/$schema"


def test_a_meta_schema_has_the_draft_that_it_is_written_in() -> None:
    registry = {"http://x/old": {"$schema": DRAFT7}, "http://x/older": {"$schema": "http://x/old"}}
    for name in registry:
        schema = {"$schema": name, "dependencies": {"a": ["b"]}}
        assert not judge(schema, {"a": 1}, registry=registry)
    assert judge({"$schema": "http://x/none", "dependencies": {"a": ["b"]}}, {"a": 1}, registry=registry)


def test_a_pointer_through_a_map_that_has_a_key_named_id() -> None:
    properties = {
        "id": {"type": "string"},
        "$id": {"type": "string"},
        "$schema": {"type": "string"},
        "n": {"minimum": 5},
    }
    schema = {"definitions": {"thing": {"properties": properties}}, "$ref": "#/definitions/thing/properties/n"}
    assert accepts(to_grammar(schema), "7") and not accepts(to_grammar(schema), "4")
