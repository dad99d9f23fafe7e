"""Small schemas that test one keyword each, with valid and invalid documents.

Documents are Python values, written with keys in the order given, or JSON text in a `Text` where the spelling matters.
Labels are checked by `find_mislabelled` with the `jsonschema` package, formats asserted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["SECTIONS", "Probe", "Text", "find_mislabelled", "list_probes"]


class Text(str):
    """A document as JSON text."""

    __slots__ = ()


@dataclass(frozen=True)
class Probe:
    """A test of a keyword. section: of the page. keyword: the tested one. also: other keywords. valid,
    invalid: documents.
    """

    section: str
    keyword: str
    schema: Any
    valid: tuple[Any, ...]
    invalid: tuple[Any, ...]
    also: str = ""

    @property
    def name(self) -> str:
        """The unique name in the table."""
        return f"{self.keyword}: {self.also}" if self.also else self.keyword

    def texts(self) -> Iterator[tuple[tuple[str, ...], bool]]:
        """Yield (spellings of a document, whether it is valid): compact and with spaces, or the one of a `Text`."""
        for documents, valid in ((self.valid, True), (self.invalid, False)):
            for document in documents:
                if isinstance(document, Text):
                    yield (str(document),), valid
                else:
                    spaced = json.dumps(document, ensure_ascii=False)
                    compact = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
                    yield tuple(dict.fromkeys((spaced, compact))), valid


def find_mislabelled(probe: Probe) -> list[str]:
    """Return the documents whose label `jsonschema` contradicts, as text. Text that is not JSON, or has a key twice, is
    invalid (RFC 8259, section 4: names should be unique).
    """
    import jsonschema
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    judge = jsonschema.validators.validator_for(probe.schema, default=jsonschema.Draft202012Validator)
    judge.check_schema(probe.schema)
    formats = jsonschema.Draft202012Validator.FORMAT_CHECKER
    validator = judge(probe.schema, format_checker=formats, registry=REGISTRY)
    wrong = []
    for (text, *_), valid in probe.texts():
        try:
            value = json.loads(text, object_pairs_hook=reject_repeated_keys)
        except ValueError:
            judged = False
        else:
            judged = validator.is_valid(value)
        if judged != valid:
            wrong.append(text)
    return wrong


def reject_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object. Raise ValueError if a key occurs twice."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def dialect(draft: int) -> dict[str, str]:
    """Return the `$schema` of a dialect before 2020-12."""
    return {"$schema": {4: "http://json-schema.org/draft-04/schema#", 6: "http://json-schema.org/draft-06/schema#",
                        7: "http://json-schema.org/draft-07/schema#",
                        2019: "https://json-schema.org/draft/2019-09/schema"}[draft]}  # fmt: skip


def list_probes() -> Iterator[Probe]:
    """Yield every probe, in the order of the page."""
    from .formats import FORMATS, SPELLINGS

    for section, rows in (SECTIONS | {"Formats": FORMATS, "Spelling": SPELLINGS}).items():
        for keyword, also, schema, valid, invalid in rows:
            yield Probe(section, keyword, schema, tuple(valid), tuple(invalid), also)


TREE = {"value": {"type": "integer"}, "left": {"$dynamicRef": "#node"}}
OPEN = {"type": "object", "properties": {"a": {"type": "integer"}}}
KIND = [
    {"properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}, "required": ["kind", "x"]},
    {"properties": {"kind": {"const": "b"}, "y": {"type": "string"}}, "required": ["kind"]},
]

Rows = list[tuple[str, str, Any, list[Any], list[Any]]]

SECTIONS: dict[str, Rows] = {
    "Any value": [
        ("type", "", {"type": "integer"}, [1, -7, 0], ["1", 1.5, None, True]),
        ("type", "a list", {"type": ["string", "null"]}, ["a", None], [1, [], False]),
        ("type", "a float without a fraction is an integer", {"type": "integer"}, [Text("1.0"), Text("1e2")],
         [Text("1.5")]),
        ("enum", "", {"enum": ["a", 1, None, {"b": [2]}]}, ["a", 1, None, {"b": [2]}], ["b", 2, {"b": [3]}, {}]),
        ("enum", "beside type", {"enum": ["a", 1, 2], "type": "integer"}, [1, 2], ["a", 3]),
        ("const", "", {"const": {"a": [1, True]}}, [{"a": [1, True]}], [{"a": [1, 1]}, {"a": [1]}, None]),
        ("const", "1 is 1.0", {"const": 1}, [Text("1"), Text("1.0")], [2, True]),
    ],
    "Numbers": [
        ("minimum", "", {"type": "integer", "minimum": 10}, [10, 11, 200], [9, -10, 0]),
        ("maximum", "", {"type": "number", "maximum": 2.5}, [2.5, -3, 2.49], [2.51, 3, 100]),
        ("exclusiveMinimum", "", {"type": "number", "exclusiveMinimum": 0}, [0.001, 5], [0, -1]),
        ("exclusiveMaximum", "", {"type": "integer", "exclusiveMaximum": 100}, [99, -5], [100, 101]),
        ("exclusiveMinimum", "a boolean in draft 4",
         {**dialect(4), "type": "integer", "minimum": 1, "exclusiveMinimum": True}, [2, 30], [1, 0]),
        ("exclusiveMaximum", "a boolean in draft 4",
         {**dialect(4), "type": "integer", "maximum": 9, "exclusiveMaximum": True}, [8, -1], [9, 10]),
        ("multipleOf", "", {"type": "integer", "multipleOf": 7}, [0, 14, -21, 700], [1, 13, 701]),
        ("multipleOf", "0.01 with bounds",
         {"type": "number", "multipleOf": 0.01, "minimum": 0, "maximum": 10}, [0, 0.01, 0.5, 9.75, 10],
         [0.005, 10.01, -0.01]),
        ("multipleOf", "two of them", {"allOf": [{"type": "integer", "multipleOf": 4}, {"multipleOf": 6}]},
         [0, 12, 24, -36], [4, 6, 8]),
        ("minimum", "in allOf", {"type": "integer", "allOf": [{"minimum": 3}, {"maximum": 20}]}, [3, 20], [2, 21]),
        ("minimum", "asserts nothing of other types", {"minimum": 5}, ["a", None, 5], [4]),
    ],
    "Strings": [
        ("minLength", "", {"type": "string", "minLength": 2}, ["ab", "é😀", "abc"], ["", "a", "😀"]),
        ("maxLength", "", {"type": "string", "maxLength": 2}, ["", "ab", "é😀"], ["abc", "😀😀😀"]),
        ("maxLength", "escapes count once", {"type": "string", "maxLength": 2}, [Text(r'"\n\u00e9"')],
         [Text(r'"\n\n\n"')]),
        ("maxLength", "100,000", {"type": "string", "maxLength": 100_000}, ["", "a" * 100], []),
        ("pattern", "", {"type": "string", "pattern": "^[a-c]+$"}, ["a", "abc"], ["", "d", "abd"]),
        ("pattern", "anywhere in the text", {"type": "string", "pattern": "b"}, ["b", "abc"], ["", "ac"]),
        ("pattern", "with maxLength", {"type": "string", "pattern": "^a+b*$", "maxLength": 4}, ["a", "aabb"],
         ["b", "aaabb"]),
        ("pattern", "two of them", {"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "z$"}]},
         ["az", "abz"], ["a", "z", "ba"]),
        ("pattern", "looks ahead", {"type": "string", "pattern": r"^(?=.*[0-9])(?=.*[a-z]).{4,8}$"},
         ["abc1", "1234567a"], ["abcd", "1234", "a1"]),
        ("pattern", "looks ahead, negated", {"type": "string", "pattern": "^(?!admin)[a-z]+$"}, ["user", "adm"],
         ["admin", "admins"]),
        ("pattern", "looks behind", {"type": "string", "pattern": "(?<=a)b$"}, ["ab", "cab"], ["b", "cb"]),
        ("pattern", "borders of words", {"type": "string", "pattern": r"\bcat\b"}, ["cat", "a cat."],
         ["concat", "cats"]),
        ("pattern", "beyond ASCII", {"type": "string", "pattern": "^[à-ü]+$"}, ["é", "àü"], ["e", "é1"]),
        ("pattern", "that no text has, in an optional member",
         {"type": "object", "properties": {"a": {"type": "string", "pattern": "a^"}, "b": {"type": "integer"}}},
         [{}, {"b": 1}], [{"a": "a^"}, {"a": ""}]),
    ],
    "Arrays": [
        ("items", "", {"type": "array", "items": {"type": "integer"}}, [[], [1], [1, 2]], [["a"], [1, None]]),
        ("items", "false", {"type": "array", "items": False}, [[]], [[1], [None]]),
        ("items", "a list, up to 2019-09", {**dialect(7), "type": "array", "items": [{"type": "integer"},
         {"type": "string"}]},
         [[], [1], [1, "a"], [1, "a", None]], [["a"], [1, 2]]),
        ("prefixItems", "", {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
         [[], [1], [1, "a"], [1, "a", None]], [["a"], [1, 2]]),
        ("prefixItems", "and items", {"type": "array", "prefixItems": [{"type": "integer"}],
         "items": {"type": "string"}},
         [[], [1], [1, "a", "b"]], [["a"], [1, 2]]),
        ("additionalItems", "up to 2019-09",
         {**dialect(7), "type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "string"}},
         [[], [1], [1, "a"]], [[1, 2], ["a"]]),
        ("minItems", "", {"type": "array", "minItems": 2}, [[1, 2], [1, 2, 3]], [[], [1]]),
        ("maxItems", "", {"type": "array", "maxItems": 2}, [[], [1, 2]], [[1, 2, 3]]),
        ("maxItems", "10,000,000", {"type": "array", "items": {"type": "integer"}, "maxItems": 10_000_000}, [[],
         [1, 2]], [["a"]]),
        ("uniqueItems", "of few values", {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True},
         [[], ["b", "a"], ["c", "a", "b"]], [["a", "a"], ["a", "b", "a"]]),
        ("uniqueItems", "of free strings", {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
         [[], ["b", "a"], ["a", "aa", ""]], [["a", "a"], ["a", "b", "a"]]),
        ("uniqueItems", "of any values", {"type": "array", "uniqueItems": True},
         [[], [1, "1", True, [1]], [{"a": 1}, {"a": 2}]], [[1, 1], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]]),
        ("uniqueItems", "1 is 1.0, true is not", {"type": "array", "uniqueItems": True},
         [Text("[1,true]"), Text("[0,false]")], [Text("[1,1.0]"), Text("[100,1e2]")]),
        ("contains", "", {"type": "array", "contains": {"const": 5}}, [[5], [1, 5, 2]], [[], [1, 2]]),
        ("contains", "with maxItems", {"type": "array", "contains": {"const": 5}, "maxItems": 2}, [[5], [1, 5]],
         [[1, 2], [1, 2, 5]]),
        ("minContains", "", {"type": "array", "contains": {"type": "integer"}, "minContains": 2},
         [[1, 2], ["a", 1, 2, 3]], [[], [1], ["a", 1]]),
        ("minContains", "0", {"type": "array", "contains": {"type": "integer"}, "minContains": 0, "maxContains": 1},
         [[], ["a"], [1]], [[1, 2]]),
        ("maxContains", "", {"type": "array", "contains": {"type": "integer"}, "maxContains": 1},
         [[1], ["a", 1, "b"]], [[], ["a"], [1, 2]]),
        ("maxContains", "with minContains, minItems and items",
         {"type": "array", "items": {"enum": [1, 2, "a"]}, "contains": {"type": "integer"}, "minContains": 1,
          "maxContains": 2, "minItems": 3}, [[1, "a", "a"], [1, "a", 2]], [["a", "a", "a"], [1, 2, 1], [1, 2]]),
        ("unevaluatedItems", "", {"type": "array", "prefixItems": [{"type": "integer"}], "unevaluatedItems": False},
         [[], [1]], [[1, 2], ["a"]]),
        ("unevaluatedItems", "through allOf and contains",
         {"type": "array", "allOf": [{"prefixItems": [{"type": "integer"}]}], "contains": {"type": "string"},
          "unevaluatedItems": {"type": "null"}}, [[1, "a"], [1, "a", None]], [[1, "a", 2], [1]]),
    ],
    "Objects": [
        ("properties", "", OPEN, [{}, {"a": 1}, {"a": 1, "b": "x"}], [{"a": "1"}]),
        ("required", "", {**OPEN, "required": ["a"]}, [{"a": 1}, {"a": 1, "b": 2}], [{}, {"b": 1}]),
        ("required", "a key that is not declared", {"type": "object", "required": ["z"]},
         [{"z": 1}, {"a": 0, "z": 1}], [{}, {"a": 1}]),
        ("additionalProperties", "false", {**OPEN, "additionalProperties": False}, [{}, {"a": 1}],
         [{"b": 1}, {"a": 1, "b": 1}]),
        ("additionalProperties", "a schema", {**OPEN, "additionalProperties": {"type": "string"}},
         [{}, {"a": 1, "b": "x"}], [{"b": 1}, {"a": "x"}]),
        ("patternProperties", "", {"type": "object", "patternProperties": {"^n_": {"type": "integer"}}},
         [{}, {"n_a": 1}, {"other": "x"}], [{"n_a": "x"}, {"n_": None}]),
        ("patternProperties", "anywhere in the key", {"type": "object",
         "patternProperties": {"x": {"type": "integer"}}},
         [{"axb": 1}, {"a": "s"}], [{"axb": "s"}, {"x": "s"}]),
        ("patternProperties", "overlapping properties",
         {"type": "object", "properties": {"n_a": {"maximum": 9}}, "patternProperties": {"^n_": {"type": "integer"}},
          "additionalProperties": False}, [{"n_a": 9, "n_b": 10}], [{"n_a": 10}, {"n_a": 1.5}, {"n_b": "x"}, {"x": 1}]),
        ("patternProperties", "two that overlap",
         {"type": "object", "patternProperties": {"^a": {"type": "integer"}, "z$": {"minimum": 5}}},
         [{"az": 5}, {"a": 1}, {"z": 6}], [{"az": 4}, {"az": 5.5}, {"z": 4}]),
        ("propertyNames", "", {"type": "object", "propertyNames": {"maxLength": 2}}, [{}, {"ab": 1}], [{"abc": 1}]),
        ("propertyNames", "with a pattern", {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"},
         "additionalProperties": {"type": "integer"}}, [{}, {"ab": 1}], [{"A": 1}, {"ab": "x"}]),
        ("propertyNames", "of few names", {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "minProperties": 1},
         [{"a": 1}, {"a": 1, "b": None}], [{}, {"c": 1}]),
        ("minProperties", "", {"type": "object", "minProperties": 2}, [{"a": 1, "b": 2}], [{}, {"a": 1}]),
        ("maxProperties", "", {"type": "object", "maxProperties": 1}, [{}, {"a": 1}], [{"a": 1, "b": 2}]),
        ("maxProperties", "with optional keys", {"type": "object", "properties": {"a": {}, "b": {}, "c": {}},
         "additionalProperties": False, "minProperties": 1, "maxProperties": 2},
         [{"a": 1}, {"a": 1, "c": 1}], [{}, {"a": 1, "b": 1, "c": 1}]),
        ("dependentRequired", "", {"type": "object", "properties": {"a": {}, "b": {}},
         "dependentRequired": {"a": ["b"]}},
         [{}, {"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
        ("dependentSchemas", "", {"type": "object", "properties": {"a": {}, "b": {}},
         "dependentSchemas": {"a": {"properties": {"b": {"type": "integer"}}, "required": ["b"]}}},
         [{}, {"b": "x"}, {"a": 1, "b": 1}], [{"a": 1}, {"a": 1, "b": "x"}]),
        ("dependencies", "a list, up to draft 7", {**dialect(7), "type": "object", "properties": {"a": {}, "b": {}},
         "dependencies": {"a": ["b"]}}, [{}, {"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
        ("dependencies", "a schema, up to draft 7", {**dialect(7), "type": "object", "properties": {"a": {}, "b": {}},
         "dependencies": {"a": {"properties": {"b": {"type": "integer"}}}}}, [{"a": 1}, {"b": "x"}, {"a": 1, "b": 1}],
         [{"a": 1, "b": "x"}]),
        ("unevaluatedProperties", "through allOf", {"type": "object",
         "allOf": [{"properties": {"a": {"type": "integer"}}}],
         "properties": {"b": {}}, "unevaluatedProperties": False}, [{}, {"a": 1}, {"a": 1, "b": 2}],
         [{"c": 1}, {"a": "x"}]),
        ("unevaluatedProperties", "through anyOf", {"type": "object", "anyOf": [
            {"properties": {"k": {"const": 1}, "a": {}}, "required": ["k"]},
            {"properties": {"k": {"const": 2}, "b": {}}, "required": ["k"]}], "unevaluatedProperties": False},
         [{"k": 1, "a": 0}, {"k": 2, "b": 0}], [{"k": 1, "b": 0}, {"k": 2, "a": 0}, {"k": 1, "z": 0}]),
        ("unevaluatedProperties", "through if", {"type": "object", "if": {"properties": {"k": {"const": 1}},
         "required": ["k"]},
         "then": {"properties": {"a": {}}}, "unevaluatedProperties": {"type": "null"}},
         [{"k": 1, "a": 0}, {"k": None}, {}], [{"k": 2}, {"k": 1, "b": 0}, {"a": 0}]),
    ],
    "Schemas for the same value": [
        ("allOf", "", {"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
         {"properties": {"b": {"type": "string"}}, "required": ["b"]}]}, [{"a": 1, "b": "x"}],
         [{"a": 1}, {"b": "x"}, {"a": 1, "b": 1}]),
        ("anyOf", "", {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]}, [1, "a", ""],
         ["ab", None, 1.5]),
        ("anyOf", "beside other keywords", {"type": "integer", "minimum": 0, "anyOf": [{"maximum": 5},
         {"minimum": 50}]},
         [0, 5, 50], [-1, 6, 49]),
        ("oneOf", "disjoint", {"type": "object", "oneOf": KIND},
         [{"kind": "a", "x": 1}, {"kind": "b"}, {"kind": "b", "y": "s"}],
         [{"kind": "a"}, {"kind": "c"}, {"kind": "b", "y": 1}]),
        ("oneOf", "overlapping numbers", {"type": "integer", "oneOf": [{"minimum": 3}, {"maximum": 7}]}, [2, 8, -1],
         [3, 5, 7]),
        ("oneOf", "overlapping objects", {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
         [{"a": 1}, {"b": 1, "c": 2}], [{}, {"a": 1, "b": 1}]),
        ("oneOf", "overlapping patterns", {"type": "string", "oneOf": [{"pattern": "^a"}, {"pattern": "z$"}]},
         ["ab", "bz"], ["az", "b", ""]),
        ("not", "a type", {"not": {"type": "string"}}, [1, None, [], {}], ["", "a"]),
        ("not", "a value", {"type": "string", "not": {"enum": ["a", "bc"]}}, ["", "b", "ab"], ["a", "bc"]),
        ("not", "a pattern", {"type": "string", "not": {"pattern": "[0-9]"}}, ["", "abc"], ["a1", "7"]),
        ("not", "a key", {"type": "object", "not": {"required": ["a"]}}, [{}, {"b": 1}], [{"a": 1}, {"a": 1, "b": 2}]),
        ("not", "a member", {"type": "object", "properties": {"a": {}},
         "not": {"properties": {"a": {"type": "integer"}}}},
         [{"a": "x"}, {"a": None, "b": 1}], [{}, {"a": 1}, {"b": 1}]),
        ("not", "an array", {"type": "array", "not": {"items": {"type": "integer"}}}, [["a"], [1, "a"]], [[], [1, 2]]),
        ("if", "", {"type": "object", "properties": {"a": {}, "b": {}}, "if": {"required": ["a"]},
         "then": {"required": ["b"]}},
         [{}, {"b": 1}, {"a": 1, "b": 1}], [{"a": 1}, {"a": 1, "c": 1}]),
        ("then", "", {"type": "integer", "if": {"minimum": 10}, "then": {"multipleOf": 10}}, [3, 10, 20], [11, 25]),
        ("else", "", {"type": "integer", "if": {"minimum": 10}, "then": {"multipleOf": 10}, "else": {"multipleOf": 3}},
         [3, -6, 10, 20], [4, 12]),
        ("if", "by the value of a member", {"type": "object", "properties": {"country": {"enum": ["us", "nl"]},
         "zip": {"type": "string"}},
         "required": ["country", "zip"], "if": {"properties": {"country": {"const": "us"}}},
         "then": {"properties": {"zip": {"pattern": "^[0-9]{5}$"}}},
         "else": {"properties": {"zip": {"pattern": "^[0-9]{4}[A-Z]{2}$"}}}},
         [{"country": "us", "zip": "12345"}, {"country": "nl", "zip": "1234AB"}],
         [{"country": "us", "zip": "1234AB"}, {"country": "nl", "zip": "12345"}]),
    ],
    "References": [
        ("$ref", "", {"type": "array", "items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "integer"}}}, [[],
         [1]], [["a"]]),
        ("$ref", "recursive", {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}},
         "required": ["v"], "additionalProperties": False}, [{"v": 1}, {"v": 1, "next": {"v": 2}}],
         [{"v": 1, "next": {}}]),
        ("$ref", "with siblings, from 2019-09", {"$ref": "#/$defs/a", "maximum": 9,
         "$defs": {"a": {"type": "integer"}}},
         [9, -1], [10, "a", 1.5]),
        ("$ref", "with siblings, which draft 7 ignores",
         {**dialect(7), "properties": {"x": {"$ref": "#/definitions/a", "maximum": 9}},
         "definitions": {"a": {"type": "integer"}}},
         [{"x": 10}], [{"x": "a"}]),
        ("$ref", "to $id", {"$ref": "item", "$id": "https://example.com/root", "$defs": {"a": {"$id": "item",
         "type": "integer"}}}, [1], ["a"]),
        ("$anchor", "", {"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "integer"}}}, [1], ["a"]),
        ("$dynamicRef", "", {"$id": "https://example.com/strict", "$dynamicAnchor": "node", "$ref": "tree",
         "unevaluatedProperties": False,
         "$defs": {"tree": {"$id": "tree", "$dynamicAnchor": "node", "type": "object", "properties": TREE}}},
         [{"value": 1}, {"value": 1, "left": {"value": 2}}], [{"x": 1}, {"value": 1, "left": {"x": 2}}]),
        ("$recursiveRef", "of 2019-09", {**dialect(2019), "$id": "https://example.com/strict", "$recursiveAnchor": True,
         "$ref": "tree",
         "unevaluatedProperties": False, "$defs": {"tree": {"$id": "tree", "$recursiveAnchor": True, "type": "object",
         "properties": {"value": {"type": "integer"}, "left": {"$recursiveRef": "#"}}}}},
         [{"value": 1}, {"value": 1, "left": {"value": 2}}], [{"x": 1}, {"value": 1, "left": {"x": 2}}]),
        ("$defs", "assert nothing where they stand", {"type": "integer", "$defs": {"a": {"type": "string"}}}, [1],
         ["a"]),
        ("definitions", "the same, up to draft 7", {**dialect(7), "type": "integer",
         "definitions": {"a": {"type": "string"}}}, [1], ["a"]),
    ],
    "Annotations": [
        (keyword, "", {keyword: value, "type": "integer"}, [1], ["a"])
        for keyword, value in {
            "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/a",
         "$comment": "a note",
            "$dynamicAnchor": "node", "title": "A", "description": "a number", "default": "none", "examples": ["a"],
            "deprecated": True, "readOnly": True, "writeOnly": True, "contentEncoding": "base64",
            "contentMediaType": "application/json", "contentSchema": {"type": "string"}, "x-unknown": True,
        }.items()
    ] + [
        ("id", "of draft 4", {**dialect(4), "id": "http://example.com/a", "type": "integer"}, [1], ["a"]),
        ("$recursiveAnchor", "of 2019-09", {**dialect(2019), "$recursiveAnchor": True, "type": "integer"}, [1], ["a"]),
        ("$vocabulary", "counts in a meta-schema only",
         {"$vocabulary": {"https://json-schema.org/draft/2020-12/vocab/core": True}, "type": "integer"}, [1], ["a"]),
    ],
}  # fmt: skip
"""Rows by section: (keyword, other keywords, schema, valid documents, invalid documents)."""
