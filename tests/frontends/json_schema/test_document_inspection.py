"""A document that the inspection finds plain has no fault, only satisfiable subschemas, and no suspicious name."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from constrain import ConstrainError, Limits, Style, Vocabulary, compile as compile_schema
from constrain.base.json_documents import LoadedDocument
from constrain.base.work import work_budget
from constrain.frontends.json_schema.algebra.shape_algebra import ShapeAlgebra
from constrain.frontends.json_schema.core import subschema_table
from constrain.frontends.json_schema.core.subschema_table import PlainSubschema, Subschema, SubschemaTable
from constrain.frontends.json_schema.emission.reachability import check_reachable
from constrain.frontends.json_schema.reading.document_inspection import Inspection, inspect_document
from constrain.frontends.json_schema.reading.keywords import KEYWORDS
from constrain.frontends.json_schema.reading.name_summaries import PLAIN_KEYWORDS
from constrain.frontends.json_schema.reading.schema_parser import SchemaParser
from constrain.frontends.json_schema.reports.schema_warnings import list_schema_warnings
from constrain.frontends.json_schema.reports.suspicious_keywords import (
    build_warnings,
    find_suspicious_names,
    is_never_suspicious,
    keyword_note,
)
from tests.schema_strategies import schemas

LIMITS = Limits(dfa_states=20_000)
BYTES = Vocabulary.bytes()
DRAFTS = ("http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#",
          "https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema")  # fmt: skip


def inspect(schema: Any, style: Style = Style()) -> Inspection:
    return inspect_document(LoadedDocument.of(schema, LIMITS), None, style, LIMITS)


def is_plain(schema: Any) -> bool:
    return inspect(schema).is_plain


def check_by_algebra(schema: Any) -> None:
    """Do what compiling does to a document that is not plain. Raise its error."""
    parser = SchemaParser(schema, None, Style(), LIMITS)
    algebra = ShapeAlgebra(parser, Style(), LIMITS)
    for node in list(parser.nodes):
        assert node is None or algebra.is_satisfiable((node.number,)), node.pointer
    check_reachable(algebra, (parser.root,))


def assert_sound(schema: Any) -> bool:
    """Return whether a schema is plain, after checking what that promises."""
    inspection = inspect(schema)
    if inspection.is_plain:
        with work_budget(LIMITS.work):
            check_by_algebra(LoadedDocument.of(schema, LIMITS).value)
    found = build_warnings(find_suspicious_names(schema, inspection.references, Style()))
    assert list_schema_warnings(schema, None, Style(), LIMITS) == found
    return inspection.is_plain


# ---- soundness -----------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(schemas)
def test_faulty_schemas_are_not_plain(schema: Any) -> None:
    if isinstance(schema, dict):
        try:
            assert_sound(schema)
        except ConstrainError:
            assert not is_plain(schema)


VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 2**31, 10**18, -(10**30), Decimal("0.5"), Decimal("1E+40"), Decimal("1e-50"), "",
    "string", "array", "float", "(", "a*", "^[a-c]{3}$", "[^\\s\\S]", "date", "colour", "#",
    "#/", "#/nowhere", "#/$defs/a", "\ud800",
    [], ["a"], ["a", "b", "a"], ["string", "null"], ["integer", "number"], [1, "a"], [None], [True], [{}], [[]],
    ["\ud800"], {}, {"a": {}}, {"a": False}, {"a": True}, {"a": 3}, {"\ud800": {}}, {"(": {}}, {"^x": {}, "^y": {}},
    {"^x": False}, {"type": "string"}, {"type": "null"}, {"type": "strin"}, {"enum": []}, {"maxLength": 0},
    [{"type": "string"}, {"type": "number"}], [{"type": "integer"}, {"type": "number"}], [{"type": "string"}, {}],
    [{"type": "object"}, {"type": "object", "required": ["a"]}], [{"enum": [1]}, {"$ref": "#"}], [False], [True],
)  # fmt: skip
"""Values that some keyword allows and others do not."""
BESIDE: tuple[dict[str, Any], ...] = (
    {}, {"type": "string"}, {"type": "integer"}, {"type": "array"}, {"type": "object"}, {"type": ["object", "null"]},
    {"enum": ["a", 1]}, {"minLength": 2}, {"maxLength": 1}, {"pattern": "^b"}, {"minimum": 2}, {"maximum": 0},
    {"minItems": 1}, {"maxItems": 1}, {"items": False}, {"required": ["a", "c"]},
    {"properties": {"a": {"type": "null"}}}, {"additionalProperties": False}, {"properties": {"c": False}},
    {"format": "date"}, {"$ref": "#/$defs/a"},
)  # fmt: skip


@pytest.mark.parametrize("name", sorted({row.name for row in KEYWORDS}))
def test_each_keyword_with_each_value_beside_others(name: str) -> None:
    plain = 0
    besides, drafts = (BESIDE, DRAFTS[::3]) if name in PLAIN_KEYWORDS else (BESIDE[:2], DRAFTS)
    for value in VALUES:
        for beside in besides:
            for draft in drafts:
                inner = {**beside, name: value}
                schema = {"$schema": draft, "properties": {"x": inner}, "required": ["x"], "$defs": {"a": {}}}
                try:
                    plain += assert_sound(schema)
                except ConstrainError:
                    assert not is_plain(schema), schema
    assert plain or name not in PLAIN_KEYWORDS


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_mandatory_references_are_followed(data: st.DataObject) -> None:
    """Definitions that refer to each other from random places, mandatory or not."""
    names = ["a", "b", "c"]

    def draw_definition() -> dict[str, Any]:
        reference = {"$ref": f"#/definitions/{data.draw(st.sampled_from(names))}"}
        return data.draw(st.sampled_from([
            {"type": "object", "properties": {"x": reference}}, {"properties": {"x": reference}, "required": ["x"]},
            {"type": "object", "properties": {"x": reference}, "required": ["x"]}, {"type": "string"}, reference,
            {"type": "array", "items": reference}, {"type": "array", "items": reference, "minItems": 1},
            {"type": "object", "additionalProperties": reference, "required": ["y"]},
            {"anyOf": [reference, {"type": "null"}]}, {"oneOf": [reference, {"type": "null"}]},
        ]))  # fmt: skip

    definitions = {name: draw_definition() for name in names}
    schema = {"definitions": definitions, "type": "object", "properties": {"r": {"$ref": "#/definitions/a"}}}
    try:
        assert_sound(schema)
    except ConstrainError:
        assert not is_plain(schema)


# ---- what is plain -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [
    {"type": "object", "properties": {"a": {"type": "string", "title": "A"}}, "required": ["a"]},
    {"$schema": DRAFTS[0], "id": "http://x/y", "type": "array", "items": {"enum": ["a", None, 2]}, "minItems": 3},
    {"definitions": {"n": {"type": "object", "properties": {"next": {"$ref": "#/definitions/n"}}}},
     "$ref": "#/definitions/n"},
    {"anyOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}]},
    {"oneOf": [{"type": "string", "format": "date"}, {"type": "integer", "minimum": 0, "maximum": 0}]},
    {"type": "object", "patternProperties": {"^x": {"type": "number"}}, "additionalProperties": False},
    {"type": "string", "pattern": "^[a-z]+$"}, {"type": "integer", "enum": [1, 2]}, {"const": None},
    {"$schema": DRAFTS[0], "properties": {"a": {"id": "/properties/a", "type": "string"}}},
])  # fmt: skip
def test_usual_schemas_are_plain(schema: Any) -> None:
    assert assert_sound(schema)


@pytest.mark.parametrize("schema", [
    {"properties": {"a": {"$ref": "#/properties/a"}}}, {"$ref": "#"}, {"$ref": "other"}, {"required": ["a", 1]},
    {"definitions": {"n": {"properties": {"next": {"$ref": "#/definitions/n"}}, "required": ["next"]}},
     "properties": {"a": {"$ref": "#/definitions/n"}}},
    {"type": "object", "required": ["a"], "additionalProperties": False}, {"type": "integer", "enum": ["a"]},
    {"allOf": [{}]}, {"not": {}}, {"properties": {"a": False}}, {"type": "string", "minLength": 2, "maxLength": 1},
    {"$schema": DRAFTS[0], "properties": {"a": {"id": "x", "$ref": "#/definitions/b"}}, "definitions": {"b": {}}},
    {"properties": {"a": {"$schema": DRAFTS[0]}}}, {"$dynamicRef": "#a"}, {"enum": [1.5]}, {"enum": list(range(2000))},
])  # fmt: skip
def test_schemas_that_need_the_algebra_are_not_plain(schema: Any) -> None:
    assert not is_plain(schema)


def test_a_registry_is_left_to_the_parser() -> None:
    loaded = LoadedDocument.of({"type": "string"}, LIMITS)
    assert not inspect_document(loaded, {"http://x/": {}}, Style(), LIMITS).is_plain


def test_unknown_names_are_collected() -> None:
    schema = {"x-order": 1, "properties": {"a": {"format": "colour", "self": 2}, "b": {"maxlenght": 3}}}
    inspection = inspect(schema)
    assert inspection.is_plain and inspection.unknown_names == {"x-order", "self", "maxlenght"}
    assert inspection.unknown_formats == {"colour"}
    assert not inspect(schema, Style(formats="annotate")).unknown_formats


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=12), st.sampled_from(["nullable", "x-a", "dependencies", "min", "maxlenght", "id"])),
       st.sampled_from([4, 7, 2020]), st.sampled_from(VALUES))  # fmt: skip
def test_a_name_that_is_never_suspicious_is_not_reported(name: str, draft: int, value: Any) -> None:
    document = {"$schema": {4: DRAFTS[0], 7: DRAFTS[1], 2020: DRAFTS[3]}[draft], name: value}
    if is_never_suspicious(name, draft):
        try:
            scope = inspect(document).references.main
        except ConstrainError:
            return
        note = keyword_note(name, value, document, scope)
        assert note is None or not note.is_mistake


# ---- keywords that are parsed late ---------------------------------------------------------------------------------


def test_a_plain_document_is_inspected_once_and_parsed_as_it_is_reached() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}}
    loaded = LoadedDocument.of(schema, LIMITS)
    first = inspect_document(loaded, None, Style(), LIMITS)
    assert inspect_document(loaded, None, Style(), LIMITS) is first
    matcher = compile_schema(BYTES, schema=json.dumps(schema)).matcher()
    matcher.advance_bytes(b'{"a": {"b": "')
    with pytest.raises(ConstrainError):
        matcher.advance_bytes(b"\n")


def test_inspection_is_charged() -> None:
    schema = {"properties": {str(number): {"type": "string"} for number in range(5_000)}}
    with pytest.raises(ConstrainError, match="reading of a schema needs more than"):
        compile_schema(BYTES, schema=json.dumps(schema), limits=Limits(work=50_000))


def test_nodes_that_another_thread_adds_meanwhile_have_other_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads may share a Grammar: one that adds a node may be interrupted by another that does."""
    table = SubschemaTable()

    class InterruptedSubschema(PlainSubschema):
        def __init__(self, *arguments: Any) -> None:
            if len(others) < 3:
                others.append(table.add("/other", 7))
            super().__init__(*arguments)

    others: list[Subschema] = []
    monkeypatch.setattr(subschema_table, "PlainSubschema", InterruptedSubschema)
    added = [table.add_plain("/plain", 7, lambda node: {}, None) for _ in range(5)]
    assert all(table.nodes[node.number] is node for node in (*added, *others))
    assert [node.number for node in table.nodes if node is not None] == list(range(1, 9))
