"""Which keyword refuses a token: each claim is checked by removing the keyword and compiling the schema again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain.authoring import schema_ablation
from constrain.authoring.schema_ablation import find_refusing_keywords, remove_paths
from constrain.authoring.token_refusals import TokenRefusal, explain_token
from constrain.base.errors import ArgumentError, ConstrainError

BYTES = constrain.Vocabulary.bytes()
COMPACT = constrain.Style(whitespace="compact")
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 3},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
END = 256


def refuse(schema: Any, prefix: str, token: Any, style: constrain.Style = COMPACT) -> TokenRefusal | None:
    matcher = constrain.compile(BYTES, schema=schema, style=style).matcher()
    matcher.advance_bytes(prefix.encode())
    before = matcher.next_bytes()
    refusal = explain_token(matcher, token)
    assert matcher.next_bytes() == before  # the matcher did not move
    return refusal


@pytest.mark.parametrize(
    ("schema", "prefix", "token", "pointers"),
    [
        (PERSON, '{"name":"abc', "d", ["#/properties/name/maxLength"]),
        (PERSON, '{"name":"abc"', "}", ["#/required/1"]),
        (PERSON, '{"name":"abc","age":12', "1", ["#/properties/age/maximum"]),
        (PERSON, '{"name":"abc","age":', '"', ["#/properties/age/type"]),
        (PERSON, '{"name":"abc","age":1,"', 'x"', ["#/additionalProperties"]),
        (PERSON, "", "[", ["#/type"]),
        ({"type": "array", "uniqueItems": True}, "[[1],[1", "]]", ["#/uniqueItems"]),
        ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, "[1,2,1", "]", ["#/uniqueItems"]),
        ({"type": "array", "contains": {"const": 3}}, "[1", "]", ["#/contains"]),
        ({"type": "array", "minItems": 2}, "[1", "]", ["#/minItems"]),
        ({"type": "array", "maxItems": 1}, "[1", ",", ["#/maxItems"]),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "", "t", ["#/anyOf/0/type", "#/anyOf/1/type"]),
        ({"oneOf": [{"type": "string"}, {"enum": ["a", 1]}]}, '"a', '"', ["#/oneOf"]),
        ({"not": {"type": "string"}}, "", '"', ["#/not"]),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"pattern": "^x$"}}}, '"', "y", ["#/$defs/a/pattern"]),
        ({"type": "string", "format": "date"}, '"20', "x", ["#/format"]),
        ({"type": "integer", "multipleOf": 5}, "7", END, ["#/multipleOf"]),
        ({"properties": {"a": True, "b": True}, "dependentRequired": {"a": ["b"]}}, '{"a":1', "}",
         ["#/dependentRequired"]),
        ({"type": "object", "minProperties": 1}, "{", "}", ["#/minProperties"]),
        ({"type": "object", "propertyNames": {"maxLength": 1}}, '{"a', "b", ["#/propertyNames"]),
        ({"a/b~": 1, "properties": {"a/b~": {"const": 1}}}, '{"a/b~":', "2", ["#/properties/a~1b~0/const"]),
    ],
)  # fmt: skip
def test_keywords_are_named(schema: Any, prefix: str, token: Any, pointers: list[str]) -> None:
    refusal = refuse(schema, prefix, token)
    assert refusal is not None and refusal.ablation is not None
    assert [one.pointer for one in refusal.ablation.keywords] == pointers
    assert refusal.ablation.cause == "keywords"
    assert all(pointer in refusal.reason for pointer in pointers)


def test_keywords_that_refuse_only_together_are_all_named() -> None:
    refusal = refuse({"maximum": 3, "enum": [1, 2]}, "", "5")
    assert refusal is not None and refusal.ablation is not None
    assert refusal.ablation.cause == "all keywords"
    assert {one.keyword for one in refusal.ablation.keywords} == {"maximum", "enum"}
    assert "each of these" in refusal.reason


def test_the_style_and_json_itself() -> None:
    order = refuse(PERSON, "{", '"age":1')
    assert order is not None and order.ablation is not None
    assert (order.ablation.cause, order.ablation.style) == ("keywords", ("key_order",))
    assert [one.pointer for one in order.ablation.keywords] == ["#/required/0"]
    optional = refuse({"properties": {"a": True, "b": True}}, '{"b":1', ',"a"')
    assert optional is not None and optional.ablation is not None
    assert (optional.ablation.cause, optional.ablation.style) == ("style", ("key_order",))
    space = refuse(PERSON, "{", " ")
    assert space is not None and space.ablation is not None and space.ablation.style == ("whitespace",)
    syntax = refuse(PERSON, '{"name":"abc"', ":")
    assert syntax is not None and syntax.ablation is not None and syntax.ablation.cause == "json"


def test_a_document_of_the_registry_is_named_by_its_uri() -> None:
    matcher = constrain.compile(BYTES, schema={"$ref": "urn:x"}, registry={"urn:x": {"maximum": 4}}).matcher()
    refusal = explain_token(matcher, "7")
    assert refusal is not None and refusal.ablation is not None
    assert [str(one) for one in refusal.ablation.keywords] == ["maximum at urn:x#/maximum: 4"]


def test_allowed_tokens_have_no_refusal() -> None:
    assert refuse(PERSON, "{", '"name"') is None
    assert refuse({"type": "integer"}, "7", END) is None


def test_other_constraints_say_what_was_expected() -> None:
    refusal = explain_token(constrain.compile(BYTES, regex="[a-f]x").matcher(), "g")
    assert refusal is not None and refusal.ablation is None
    assert "expected" in refusal.reason


def test_special_tokens_and_wrong_arguments() -> None:
    vocabulary = constrain.Vocabulary.from_tokens([b"a", None, None], (1,), special={"<s>": 2})
    matcher = constrain.compile(vocabulary, regex="a").matcher()
    refusal = explain_token(matcher, 2)
    assert refusal is not None and "special" in refusal.reason
    with pytest.raises(ArgumentError, match="no token 9"):
        explain_token(matcher, 9)
    with pytest.raises(TypeError):
        explain_token(matcher, 1.5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="surrogate"):
        explain_token(matcher, "\ud800")


def test_the_number_of_compilations_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_ablation, "MOST_COMPILATIONS", 3)
    refusal = refuse(PERSON, '{"name":"abc', "d")
    assert refusal is not None and refusal.ablation is not None
    assert refusal.ablation.cause == "unknown" and refusal.ablation.compilations == 3
    assert "expected" in refusal.reason


def test_many_keywords_need_few_compilations() -> None:
    properties = {f"p{k}": {"type": "integer", "maximum": k} for k in range(300)}
    refusal = refuse({"type": "object", "properties": properties}, '{"p7":', "8")
    assert refusal is not None and refusal.ablation is not None
    assert [one.pointer for one in refusal.ablation.keywords] == ["#/properties/p7/maximum"]
    assert refusal.ablation.compilations < 30  # of 600 keywords


def test_paths_are_removed_from_copies() -> None:
    document = {"a": [1, {"b": 2, "c": 3}], "d": 4}
    assert remove_paths(document, [("a", 1, "b"), ("d",)]) == {"a": [1, {"c": 3}]}
    assert remove_paths(document, [("a", 0)]) == {"a": [{"b": 2, "c": 3}], "d": 4}
    assert document == {"a": [1, {"b": 2, "c": 3}], "d": 4}


ASSERTED = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["integer", "string", "array", "boolean", ["integer", "string"]]),
        "maximum": st.integers(0, 20),
        "minimum": st.integers(0, 20),
        "maxLength": st.integers(0, 2),
        "enum": st.lists(st.sampled_from([1, 7, 12, "a", "bb", True]), min_size=1, max_size=3),
        "maxItems": st.integers(0, 2),
        "uniqueItems": st.just(True),
        "items": st.fixed_dictionaries({}, optional={"type": st.just("integer"), "maximum": st.integers(0, 9)}),
    },
)


@settings(max_examples=60, deadline=None)
@given(ASSERTED, st.sampled_from(["1", "17", '"a"', '"bbb"', "[1,1]", "[3,12]", "true", "[", "x", "{}"]))
def test_a_named_keyword_is_the_difference(schema: dict[str, Any], text: str) -> None:
    """Oracle: without a named keyword (or all of them), the refused part is accepted; with them it is not."""
    try:
        matcher = constrain.compile(BYTES, schema=schema, style=COMPACT).matcher()
    except constrain.UnsatisfiableError:
        return
    refusal = explain_token(matcher, text)
    if refusal is None:
        matcher.advance_bytes(text.encode())
        return
    assert refusal.place is not None and refusal.ablation is not None
    refused = text.encode()[: refusal.place.offset + 1]
    found = refusal.ablation
    groups = [[one] for one in found.keywords] if found.cause == "keywords" else [list(found.keywords)]
    for group in groups if found.keywords else []:
        paths = [tuple(one.pointer.split("/")[1:]) for one in group]
        style = constrain.Style.any() if found.style else COMPACT
        weaker = constrain.compile(BYTES, schema=remove_paths(schema, paths), style=style).matcher()
        weaker.advance_bytes(refused)
    if found.cause == "json":
        with pytest.raises(constrain.TokenRefused):
            constrain.compile(BYTES, schema=True, style=constrain.Style.any()).matcher().advance_bytes(refused)


def test_errors_of_weaker_schemas_do_not_leave() -> None:
    """Without `type`, `const` and `maximum` cannot both hold: such a variant simply does not allow the text."""
    source = {"schema": json.dumps({"type": "string", "const": 5}), "style": {}}

    def accepts(constraint: constrain.Constraint) -> bool:
        raise ConstrainError("a variant that cannot be matched")

    assert find_refusing_keywords(source, accepts, constrain.Limits()).cause == "json"
