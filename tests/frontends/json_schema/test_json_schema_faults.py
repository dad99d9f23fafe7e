"""All that is wrong with a schema at once; and what compiles has no fault."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from constrain.base.errors import ConstrainError, SchemaError, UnsatisfiableError
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.json_schema.reports.schema_faults import find_faults
from constrain.frontends.json_schema.reports.unsatisfiable_parts import find_unsatisfiable_parts
from tests.schema_strategies import schemas

WRONG: list[tuple[str, Any]] = [
    ("type", "strng"), ("minLength", -1), ("pattern", "a("), ("enum", 3), ("required", "a"), ("anyOf", []),
    ("properties", {"x": 7}), ("$ref", "#/nope"), ("multipleOf", 0), ("items", [{}]),
]  # fmt: skip


def list_faults(schema: Any) -> list[tuple[str | None, bool]]:
    return [(fault.error.pointer, fault.reached) for fault in find_faults(schema)]


def test_all_faults_are_reported() -> None:
    schema = {
        "type": "strng",
        "minLength": -1,
        "properties": {"a": {"pattern": "a(", "required": 5}, "b": 7, "c": {"$ref": "#/nope"}},
        "$defs": {"unused": {"enum": 3}, "fine": {"type": "null"}},
    }
    assert set(list_faults(schema)) == {
        ("/type", True),
        ("/minLength", True),
        ("/properties/a/pattern", True),
        ("/properties/a/required", True),
        ("/properties/b", True),
        ("/properties/c/$ref", True),
        ("/$defs/unused/enum", False),
    }


def test_unreferenced_faults_come_last() -> None:
    schema = {"$defs": {"unused": {"type": 5}}, "maxItems": -1}
    assert list_faults(schema) == [("/maxItems", True), ("/$defs/unused/type", False)]
    assert to_grammar({"$defs": {"unused": {"type": 5}}, "type": "null"})


def test_a_document_that_is_none_is_raised() -> None:
    for schema in ("[1]", "{", 5):
        with pytest.raises(SchemaError):
            find_faults(schema)  # type: ignore[arg-type]
    assert find_faults(True) == []


@given(st.lists(st.sampled_from(WRONG), min_size=1, max_size=4, unique_by=lambda pair: pair[0]), st.booleans())
def test_each_fault_is_reported_once(wrong: list[tuple[str, Any]], deeper: bool) -> None:
    schema: dict[str, Any] = dict(wrong)
    document = {"allOf": [{}, schema]} if deeper else schema
    found = find_faults(document)
    base = "/allOf/1/" if deeper else "/"
    assert len(found) == len(wrong) and all(fault.reached for fault in found)
    assert all(any((fault.error.pointer or "").startswith(base + name) for fault in found) for name, _ in wrong)
    with pytest.raises(SchemaError):
        to_grammar(document)


@given(schemas)
def test_faulty_schemas_do_not_compile(schema: Any) -> None:
    found = [fault for fault in find_faults(schema) if fault.reached]
    if found:
        with pytest.raises(ConstrainError):
            to_grammar(schema)


# ---- parts that nothing satisfies ---------------------------------------------------------------------------------


def test_the_innermost_part_is_named() -> None:
    dead = {"type": "integer", "minimum": 5, "maximum": 3}
    schema = {
        "properties": {
            "a": dead,
            "b": False,
            "c": {"anyOf": [{"type": "string", "enum": [1]}, {"const": 2}]},
            "d": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "object", "required": ["x"], "properties": {"x": dead}},
            },
        }
    }
    assert find_unsatisfiable_parts(schema) == [
        "/properties/a",
        "/properties/c/anyOf/0",
        "/properties/d/items/properties/x",
    ]
    assert find_unsatisfiable_parts({"properties": {"a": {"type": "null"}}}) == []


def test_a_part_that_only_names_do_not_satisfy_is_not_named() -> None:
    part = {"const": None, "propertyNames": {"$ref": "#/properties/a"}}
    assert find_unsatisfiable_parts({"properties": {"a": part}}) == []
    assert find_unsatisfiable_parts({"properties": {"a": {**part, "type": "string"}}}) == ["/properties/a"]


@given(schemas)
def test_a_part_is_named_if_and_only_if_nothing_satisfies_it(part: Any) -> None:
    if isinstance(part, bool):
        return
    try:
        to_grammar(part)
        dead = False
    except UnsatisfiableError:
        dead = True
    except ConstrainError:
        return
    # With an identifier of its own, references to "#" mean the part there as well.
    named = find_unsatisfiable_parts({"properties": {"a": {"$id": "urn:part", **part}}})
    if dead:
        assert named and all(pointer.startswith("/properties/a") for pointer in named)
    else:
        assert "/properties/a" not in named
