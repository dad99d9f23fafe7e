"""The keyword table is true: it is what the reader dispatches from, and what `describe` and the docs say."""

from __future__ import annotations

import pytest

from constrain.base.errors import UnsupportedError
from constrain.frontends.json_schema import KEYWORDS, Keyword, to_grammar
from constrain.frontends.json_schema.algebra.formulas import COMBINED
from constrain.frontends.json_schema.arrays import array_cases
from constrain.frontends.json_schema.numbers import number_sets
from constrain.frontends.json_schema.objects import object_cases
from constrain.frontends.json_schema.reading.keywords import by_draft, children, inert
from constrain.frontends.json_schema.strings import string_sets

READ = (
    COMBINED
    | {"type", "enum", "const"}
    | array_cases.FIELDS
    | object_cases.FIELDS
    | number_sets.FIELDS
    | string_sets.FIELDS
)


@pytest.mark.parametrize("row", KEYWORDS, ids=lambda row: row.name)
def test_a_row_is_complete(row: Keyword) -> None:
    assert callable(row.read) and row.read.__doc__
    assert row.since in (4, 6, 7, 2019, 2020) and row.since <= row.until
    assert (row.emitter is None) == (row.how == "refused" and row.name not in ("uniqueItems", "maxContains"))
    # Every field that is filled is read by somebody, so nothing that was read is dropped.
    assert row.field in READ or row.how == "refused"


def test_every_field_has_a_row() -> None:
    assert {row.field for row in KEYWORDS} >= READ


def test_a_name_is_read_or_an_annotation() -> None:
    names = [row.name for row in KEYWORDS]
    assert len(set(names)) == len(names)
    assert not inert() & set(names)


@pytest.mark.parametrize("row", [row for row in KEYWORDS if row.read.__name__ == "refuse"], ids=lambda row: row.name)
def test_refused_rows_refuse(row: Keyword) -> None:
    schema = {"$schema": "https://json-schema.org/draft/2019-09/schema"} if row.until < 2020 else {}
    with pytest.raises(UnsupportedError) as caught:
        to_grammar({**schema, "items": {row.name: {}}})
    assert caught.value.pointer == f"/items/{row.name}"


def test_dialects_differ() -> None:
    assert "const" not in by_draft(4) and "const" in by_draft(6)
    assert "dependencies" in by_draft(7) and "dependencies" not in by_draft(2019)
    assert "prefixItems" not in by_draft(2019) and "additionalItems" not in by_draft(2020)


def test_children_are_found_at_schema_positions_only() -> None:
    raw = {
        "properties": {"enum": {"a": 1}}, "enum": [{"b": 1}], "items": [{"c": 1}], "not": {"d": 1},
        "default": {"e": 1}, "dependencies": {"x": ["y"], "z": {"f": 1}}, "$defs": {"g": {"h": 1}},
    }  # fmt: skip
    found = dict(children(raw, 7))
    assert found == {
        ("properties", "enum"): {"a": 1}, ("items", 0): {"c": 1}, ("not",): {"d": 1},
        ("dependencies", "x"): ["y"], ("dependencies", "z"): {"f": 1}, ("$defs", "g"): {"h": 1},
    }  # fmt: skip
