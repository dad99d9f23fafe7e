"""A schema from examples: it takes all of them, and is as tight as it says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("genson")
jsonschema = pytest.importorskip("jsonschema")

import constrain  # noqa: E402

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def found(*documents: Any, **options: Any) -> dict[str, Any]:
    """The schema without its $schema."""
    schema = constrain.infer(documents, **options)
    assert schema.pop("$schema") == DIALECT
    return schema


def of(*values: Any, **options: Any) -> dict[str, Any]:
    """Return what is inferred for the values of one property."""
    schema: dict[str, Any] = found(*({"a": value} for value in values), **options)["properties"]["a"]
    return schema


TELLING = ["2026-11-21", "a@b.de", "10.0.0.1", "x", "y"]
values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(codec="utf-8"), max_size=6), st.sampled_from(TELLING),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "c/d", ""]), inner, max_size=3)
    ),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=35, deadline=None)
@given(
    st.lists(values, min_size=1, max_size=6), st.sampled_from(["free", "observed"]), st.sampled_from(["closed", "open"])
)
def test_every_example_is_taken(documents: list[Any], bounds: Any, keys: Any) -> None:
    schema = constrain.infer(documents, bounds=bounds, keys=keys)
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    for document in documents:
        validator.validate(document)


def test_required_and_order() -> None:
    assert found({"z": 1, "a": True}, {"z": 2}) == {
        "type": "object",
        "properties": {"z": {"type": "integer"}, "a": {"type": "boolean"}},
        "required": ["z"],
        "additionalProperties": False,
    }
    assert "additionalProperties" not in found({"z": 1}, keys="open")


@pytest.mark.parametrize(
    ("seen", "form"),
    [
        (["2026-11-21", "2024-02-29"], "date"),
        (["2026-11-21T10:00:00Z", "2026-11-21T10:00:00.5+01:00"], "date-time"),
        (["10:00:00Z"], "time"),
        (["3e4666bf-d5e5-4aa7-b8ce-cefe41c7568a"], "uuid"),
        (["10.0.0.1"], "ipv4"),
        (["::1", "fe80::1"], "ipv6"),
        (["a@example.org"], "email"),
        (["https://example.org/a?b#c"], "uri"),
        (["2026-11-21", "2023-02-29"], None),
        (["2026-11-21", "soon"], None),
        (["word"], None),
    ],
)
def test_a_format_that_all_have(seen: list[str], form: str | None) -> None:
    assert of(*seen).get("format") == form
    assert "format" not in of(*seen, formats="ignore")


def test_an_enum_where_the_same_texts_repeat() -> None:
    assert of(*["on", "off"] * 3) == {"type": "string", "enum": ["on", "off"]}
    assert of(*["on", "off", None] * 3) == {"enum": ["on", "off", None]}
    assert of("on", "off", "on", "off", "on") == {"type": "string"}
    assert of(*[f"word {n}" for n in range(13)] * 3) == {"type": "string"}


def test_numbers_and_mixtures() -> None:
    assert of(1, 2) == {"type": "integer"}
    assert of(1, 2.5) == {"type": "number"}
    assert of(1, None) == {"type": ["integer", "null"]}
    assert of({"k": 1}, None)["type"] == ["object", "null"]
    assert of([1, "x"], []) == {"type": "array", "items": {"type": ["integer", "string"]}}
    mixed = of([1], {"k": 1}, 5)["anyOf"]
    assert {"type": "integer"} in mixed and {"type": "array", "items": {"type": "integer"}} in mixed


def test_bounds_on_request() -> None:
    assert of(3, 7, bounds="observed") == {"type": "integer", "minimum": 3, "maximum": 7}
    assert of("a", "abc", bounds="observed") == {"type": "string", "minLength": 1, "maxLength": 3}
    assert of([1], [2, 3], bounds="observed") == {
        "type": "array",
        "items": {"type": "integer", "minimum": 1, "maximum": 3},
        "minItems": 1,
        "maxItems": 2,
    }


def test_invalid_examples_are_refused() -> None:
    for documents in ([], [float("nan")], ["\ud800"], [{1, 2}]):
        with pytest.raises(constrain.SourceError):
            constrain.infer(documents)
    with pytest.raises(ValueError, match="free"):
        constrain.infer([1], bounds="some")  # type: ignore[arg-type]
    assert constrain.infer([json.loads("1e300")]) == {"$schema": DIALECT, "type": "number"}
