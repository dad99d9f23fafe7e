"""What other products make of a schema: the tables against the documentation's own words, and, for the two that can
be run here, against what they really do."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import sampled_from

from constrain.authoring import targets
from constrain.base.errors import ArgumentError, SchemaError
from constrain.frontends.json_schema.reading.keywords import KEYWORDS
from tests.schema_strategies import schemas

CLOSED = {"additionalProperties": False}
STRING = {"type": "string"}


def list_incompatibilities(schema: Any, target: str) -> set[tuple[str, str, str]]:
    return {
        (finding.pointer, finding.keyword, finding.verdict)
        for finding in targets.find_incompatibilities(schema, target)
    }


def obj(**properties: Any) -> dict[str, Any]:
    """A closed object whose properties are all required: what every target takes."""
    return {"type": "object", "properties": properties, "required": list(properties), **CLOSED}


def nested(levels: int) -> dict[str, Any]:
    """Objects in objects."""
    return obj(a=STRING) if levels == 1 else obj(a=nested(levels - 1))


@pytest.mark.parametrize("target", targets.TARGETS)
def test_the_common_subset_is_taken_by_all(target: str) -> None:
    common = obj(a=STRING, b={"type": "array", "items": {"type": "integer"}}, c=obj(d={"type": "boolean"}))
    assert targets.find_incompatibilities(common, target) == []
    assert targets.find_incompatibilities(json.dumps(common), target) == []


@pytest.mark.parametrize("target", targets.TARGETS)
def test_a_table_says_what_was_read_and_when(target: str) -> None:
    for schema in (
        obj(),
        {"type": "array", "uniqueItems": True},
        {"type": "array", "uniqueItems": True, "patternProperties": {}},
    ):
        table = targets.target_of(schema, target)
        assert datetime.date.fromisoformat(table.read) >= datetime.date(2026, 11, 21)
        assert table.sources and table.name == target
        for row in (*table.table, table.unlisted):
            assert row.verdict == "enforced" or (row.reason.endswith(".") and row.cure.endswith(".")), row
            assert row.keyword in {"", "default"} | {keyword.name for keyword in KEYWORDS}, row


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"anyOf": [obj(), obj(a=STRING)]}, {("/anyOf", "anyOf", "refused"), ("", "type", "refused")}),
        ({"type": "object", "properties": {"a": STRING}},
         {("", "required", "refused"), ("", "additionalProperties", "refused")}),
        ({**obj(a=STRING), "required": []}, {("/required", "required", "refused")}),
        (obj(a={"type": "string", "minLength": 1}), {("/properties/a/minLength", "minLength", "refused")}),
        (obj(a={"type": "string", "format": "uri"}), {("/properties/a/format", "format", "refused")}),
        (obj(a={"type": "integer", "minimum": 1, "multipleOf": 2}), set()),
        (obj(a={"oneOf": [STRING]}),
         {("/properties/a/oneOf", "oneOf", "refused"), ("/properties/a", "type", "refused")}),
        (obj(a={"type": "string", "title": "A", "description": "B", "x-mine": 1}), set()),
        (obj(a={"type": "string", "enum": [f"{n:0100}" for n in range(300)]}),
         {("/properties/a/enum", "enum", "limit")}),
        (obj(**{f"p{n}": {"type": "string", "enum": [str(n), "x"]} for n in range(501)}),
         {("/properties/p500/enum", "enum", "limit")}),
        (nested(10), set()),
        (nested(11), {("/properties/a" * 10, "properties", "limit")}),
    ],
)  # fmt: skip
def test_openai(schema: Any, found: set[tuple[str, str, str]]) -> None:
    assert list_incompatibilities(schema, "openai") == found


RECURSIVE = {"$defs": {"node": obj(value=STRING, next={"$ref": "#/$defs/node"})}, "$ref": "#/$defs/node"}
LIST = {**obj(value=STRING), "properties": {"value": STRING, "next": {"$ref": "#"}}}


@pytest.mark.parametrize(
    ("target", "schema", "found"),
    [
        ("anthropic", RECURSIVE, {("/$defs/node/properties/next/$ref", "$ref", "refused")}),
        ("anthropic", {"$ref": "#/$defs/a", "$defs": {"a": obj()}}, set()),
        ("anthropic", {"$ref": "http://example.com/a"}, {("/$ref", "$ref", "refused")}),
        ("anthropic", obj(a={"type": "array", "items": STRING, "minItems": 1}), set()),
        ("anthropic", obj(a={"type": "array", "items": STRING, "minItems": 2}),
         {("/properties/a/minItems", "minItems", "refused")}),
        ("anthropic", obj(a={"enum": [1, [2]]}), {("/properties/a/enum", "enum", "refused")}),
        ("anthropic", obj(a={"enum": ["x"]}), {("/properties/a/enum", "enum", "changed")}),
        ("anthropic", obj(a={"type": "string", "pattern": "^(?=a)b$"}),
         {("/properties/a/pattern", "pattern", "refused")}),
        ("anthropic", obj(a={"type": "string", "pattern": "^a{1,5000}$"}),
         {("/properties/a/pattern", "pattern", "limit")}),
        ("anthropic", obj(a={"type": "number", "minimum": 0}), {("/properties/a/minimum", "minimum", "refused")}),
        ("anthropic", {"type": "object", "properties": {f"p{n}": STRING for n in range(25)}, **CLOSED},
         {("/properties", "properties", "limit")}),
        ("anthropic", obj(**{f"p{n}": {"type": ["string", "null"]} for n in range(17)}),
         {("/properties/p16/type", "anyOf", "limit")}),
        ("gemini", RECURSIVE, {("/$defs/node/properties/next/$ref", "$ref", "refused")}),
        ("gemini", LIST, {("/properties/next/$ref", "$ref", "changed")}),
        ("gemini", {"oneOf": [STRING], "not": {"const": 1}},
         {("/oneOf", "oneOf", "changed"), ("/not", "not", "ignored"), ("/not/const", "const", "ignored")}),
        ("gemini", {"type": "integer", "minimum": 1, "exclusiveMaximum": 3},
         {("/exclusiveMaximum", "exclusiveMaximum", "ignored")}),
        ("llamacpp", {"type": "object", "properties": {"a": STRING}}, {("", "additionalProperties", "changed")}),
        ("llamacpp", {"anyOf": [STRING], "properties": {"a": STRING}},
         {("/properties", "properties", "ignored")}),
        ("llamacpp", {"type": "number", "minimum": 0}, {("/minimum", "minimum", "ignored")}),
        ("llamacpp", {"type": "integer", "minimum": 0}, set()),
        ("llamacpp", {"type": "string", "pattern": "a"}, {("/pattern", "pattern", "refused")}),
        ("llamacpp", {"type": "string", "pattern": "^a+$", "maxLength": 3}, {("/maxLength", "maxLength", "ignored")}),
        ("llamacpp", {"type": "string", "format": "email"}, {("/format", "format", "ignored")}),
        ("llamacpp", {"$ref": "#/$defs/a", "minLength": 1, "$defs": {"a": STRING}},
         {("/minLength", "minLength", "ignored")}),
        ("llamacpp", {"type": "array", "items": True}, {("/items", "true", "refused")}),
    ],
)  # fmt: skip
def test_the_other_targets(target: str, schema: Any, found: set[tuple[str, str, str]]) -> None:
    assert list_incompatibilities(schema, target) == found


def test_values_that_look_like_keywords_are_ignored() -> None:
    innocent = obj(minLength=STRING, allOf={"type": "string", "enum": ["not"]})
    assert list_incompatibilities(innocent, "openai") == set()


def test_invalid_schema_or_unknown_target_raises() -> None:
    with pytest.raises(SchemaError):
        targets.find_incompatibilities({"required": 5}, "openai")
    with pytest.raises(SchemaError):
        targets.find_incompatibilities("[", "openai")
    with pytest.raises(ArgumentError, match="one of 'openai'"):
        targets.find_incompatibilities({}, "gpt")


@given(schemas, sampled_from(list(targets.TARGETS)))
def test_every_finding_stands_somewhere(schema: Any, target: str) -> None:
    for finding in targets.find_incompatibilities(schema, target):
        place: Any = schema
        for part in finding.pointer.split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            place = place[int(part)] if isinstance(place, list) else place[part]
        assert finding.verdict != "enforced" and finding.reason and finding.cure


# ---- vLLM's backends, where they are installed: what they do is what the table says -----------------------------

ANY_OBJECT = {"additionalProperties": True}
PROBES: list[tuple[Any, str, str]] = [
    # schema, a valid instance, an invalid one
    ({"const": 1}, "1", "2"),
    ({"const": {"a": [1]}}, '{"a":[1]}', '{"a":[2]}'),
    ({"enum": [1, "a"]}, "1", "2"),
    ({"type": "string", "enum": ["a", 1]}, '"a"', "1"),
    ({"type": "integer", "minimum": 2}, "3", "1"),
    ({"type": ["integer", "null"], "minimum": 2}, "3", "1"),
    ({"minimum": 2}, "3", "1"),
    ({"type": "number", "exclusiveMaximum": 2}, "1.5", "2.5"),
    ({"type": "integer", "multipleOf": 2}, "2", "3"),
    ({"multipleOf": 2}, "2", "3"),
    ({"type": "string", "pattern": "a"}, '"bab"', '"b"'),
    ({"type": "string", "pattern": "^a$"}, '"a"', '"b"'),
    ({"type": "string", "pattern": "^a"}, '"ab"', '"b"'),
    ({"pattern": "^a$"}, '"a"', '"b"'),
    ({"type": "string", "pattern": "^(?=a).*$"}, '"ab"', '"b"'),
    ({"type": "string", "pattern": "^\\p{L}$"}, '"a"', '"1"'),
    ({"type": "string", "pattern": "^a\\b$"}, '"a"', '"b"'),
    ({"type": "string", "maxLength": 2}, '"aa"', '"aaa"'),
    ({"minLength": 2}, '"aa"', '"a"'),
    ({"type": "string", "format": "email"}, '"a@b.de"', '"a"'),
    ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, "[1,2]", "[1,1]"),
    ({"items": {"type": "integer"}, "uniqueItems": True}, "[1,2]", "[1,1]"),
    ({"type": "array", "items": {}, "contains": {"const": 1}}, "[1]", "[2]"),
    ({"type": "array", "items": {}, "maxItems": 1}, "[1]", "[1,2]"),
    ({"type": "array"}, "[1]", "1"),
    ({"minItems": 1}, "[1]", "[]"),
    ({"items": {"const": 1}, "minItems": 1}, "[1]", "[]"),
    ({"prefixItems": [{"const": 1}], "items": False}, "[1]", "[1,2]"),
    ({"type": "object", "patternProperties": {"^a$": {"const": 1}}, **CLOSED}, '{"a":1}', '{"a":2}'),
    ({"type": "object", "patternProperties": {"a": {"const": 1}}, **CLOSED}, '{"bab":1}', '{"bab":2}'),
    ({"type": "object", "propertyNames": {"type": "string", "pattern": "^a$"}}, '{"a":1}', '{"b":1}'),
    ({"type": "object", "minProperties": 1, **ANY_OBJECT}, '{"a":1}', "{}"),
    ({"maxProperties": 1}, '{"a":1}', '{"a":1,"b":1}'),
    ({"type": "object", "properties": {"a": {}, "b": {}}, "dependentRequired": {"a": ["b"]}, **ANY_OBJECT},
     '{"a":1,"b":1}', '{"a":1}'),
    ({"type": "object", "properties": {"a": {"const": 1}}}, '{"a":1,"c":2}', '{"a":2}'),
    ({"type": "object", "properties": {"a": {"const": 1}}, **ANY_OBJECT}, '{"a":1,"c":2}', '{"a":2}'),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, '{"a":1}', '{"a":"x"}'),
    ({"type": "object", "required": ["a"], **ANY_OBJECT}, '{"a":1}', "{}"),
    ({"type": "object", "properties": {"a": False}, **ANY_OBJECT}, "{}", '{"a":1}'),
    ({"allOf": [{"type": "integer"}]}, "1", '"a"'),
    ({"allOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]}, "3", '"a"'),
    ({"anyOf": [{"const": 1}, {"const": 2}]}, "1", "3"),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "1.5", "1"),
    ({"type": "integer", "not": {"const": 1}}, "2", "1"),
    ({"if": {"type": "integer"}, "then": {"const": 1}}, "1", "2"),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}}, "1", "2"),
    ({"$ref": "#/$defs/a", "minimum": 2, "$defs": {"a": {"type": "integer"}}}, "3", "1"),
    ({"$ref": "#x", "$defs": {"a": {"$anchor": "x", "const": 1}}}, "1", "2"),
]  # fmt: skip


def test_xgrammar_does_what_the_table_says() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    tokens = [bytes([n]) for n in range(256)] + [b"</s>"]
    info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, vocab_size=257, stop_token_ids=[256])
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def accepts(compiled: Any, text: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled, terminate_without_stop_token=True)
        return bool(matcher.accept_string(text) and matcher.is_terminated())

    tried = 0
    for schema, valid, invalid in PROBES:
        if "XGrammar" not in targets.target_of(schema, "vllm").title:
            continue
        tried += 1
        verdicts = {finding.verdict for finding in targets.find_incompatibilities(schema, "vllm")}
        try:
            compiled = compiler.compile_json_schema(json.dumps(schema), any_whitespace=True)
        except Exception:
            assert "refused" in verdicts, schema
            continue
        right = accepts(compiled, valid) and not accepts(compiled, invalid)
        assert right == (not verdicts), (schema, verdicts)
    assert tried > 30


def test_llguidance_does_what_the_table_says() -> None:
    llguidance = pytest.importorskip("llguidance")
    for schema, _, _ in PROBES:
        verdicts = {finding.verdict for finding in targets.find_incompatibilities(schema, "vllm")}
        if "llguidance" in targets.target_of(schema, "vllm").title:
            grammar = llguidance.LLMatcher.grammar_from_json_schema(schema)
            assert bool(llguidance.LLMatcher.validate_grammar(grammar, None)) == ("refused" in verdicts), schema
