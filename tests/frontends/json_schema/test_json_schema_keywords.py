"""The keyword table is true: it is what the reader dispatches from, and what `describe` and the docs say."""

from __future__ import annotations

import pytest

from constrain.frontends.json_schema import KEYWORDS, Keyword
from constrain.frontends.json_schema.algebra.value_keywords import APPLICATORS
from constrain.frontends.json_schema.arrays.array_keywords import ARRAY_KEYWORDS
from constrain.frontends.json_schema.numbers.number_keywords import NUMBER_KEYWORDS
from constrain.frontends.json_schema.objects.object_keywords import OBJECT_KEYWORDS
from constrain.frontends.json_schema.reading.keywords import iterate_subschemas, keywords_of_draft, list_annotations
from constrain.frontends.json_schema.strings.string_keywords import STRING_KEYWORDS

READ = APPLICATORS | {"type", "enum", "const"} | ARRAY_KEYWORDS | OBJECT_KEYWORDS | NUMBER_KEYWORDS | STRING_KEYWORDS


@pytest.mark.parametrize("row", KEYWORDS, ids=lambda row: row.name)
def test_a_row_is_complete(row: Keyword) -> None:
    assert callable(row.parse) and row.parse.__doc__
    assert row.since in (4, 6, 7, 2019, 2020) and row.since <= row.until
    assert callable(row.enforced_by) and row.enforced_by.__doc__
    # Every field that is filled is read by somebody, so nothing that was read is dropped.
    assert row.field in READ or row.how == "refused"


def test_every_field_has_a_row() -> None:
    assert {row.field for row in KEYWORDS} >= READ


def test_a_name_is_read_or_an_annotation() -> None:
    names = [row.name for row in KEYWORDS]
    assert len(set(names)) == len(names)
    assert not list_annotations() & set(names)


def test_dialects_differ() -> None:
    assert "const" not in keywords_of_draft(4) and "const" in keywords_of_draft(6)
    assert "dependencies" in keywords_of_draft(7) and "dependencies" not in keywords_of_draft(2019)
    assert "prefixItems" not in keywords_of_draft(2019) and "additionalItems" not in keywords_of_draft(2020)


def test_children_are_found_at_schema_positions_only() -> None:
    raw = {
        "properties": {"enum": {"a": 1}}, "enum": [{"b": 1}], "items": [{"c": 1}], "not": {"d": 1},
        "default": {"e": 1}, "dependencies": {"x": ["y"], "z": {"f": 1}}, "$defs": {"g": {"h": 1}},
    }  # fmt: skip
    found = dict(iterate_subschemas(raw, 7))
    assert found == {
        ("properties", "enum"): {"a": 1}, ("items", 0): {"c": 1}, ("not",): {"d": 1},
        ("dependencies", "x"): ["y"], ("dependencies", "z"): {"f": 1}, ("$defs", "g"): {"h": 1},
    }  # fmt: skip
