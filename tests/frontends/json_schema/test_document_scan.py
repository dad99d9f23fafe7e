"""A scan of the text of a document says that it is plain only where the inspection of the document does."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from constrain import Limits, Style
from constrain.base.json_documents import LoadedDocument
from constrain.base.work import work_budget
from constrain.frontends.json_schema.core.static_types import TYPE_BITS
from constrain.frontends.json_schema.reading import document_inspection, name_summaries, text_scan
from constrain.frontends.json_schema.reading.document_inspection import Inspection, PlainInspector
from constrain.frontends.json_schema.reading.name_summaries import PLAIN_KEYWORDS
from constrain.frontends.json_schema.reading.scanned_documents import judge_scan
from constrain.frontends.json_schema.reading.text_scan import scan_text
from constrain.kernels import document_scan_layout as layout
from tests.schema_strategies import schemas

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+|\s+')
WORDS = [
    '"type"', '"string"', '"integer"', "0", "-1", "1.5", "1e3", "true", "false", "null", "{}", "[]", '"minLength"',
    '"required"', '"enum"', '"$ref"', '"#/definitions/a"', '"properties"', '"additionalProperties"', '"id"', '"$id"',
    '"format"', '"date"', '"pattern"', '"^a\\\\d"', '"oneOf"', '"items"', '"maxItems"', '"\\u0061"', '"é"', '"a"',
]  # fmt: skip


def judge(text: str, style: Style = Style()) -> bool:
    """Return what the scan says of a document, after comparing it with the inspection."""
    document = LoadedDocument.of(text).value
    found = []
    for judged_by_scan in (True, False):
        inspection = Inspection(document, None, Limits())
        with work_budget(1 << 30) as budget:
            if judged_by_scan:
                scan = scan_text(text, inspection.draft)
                parts = None if scan is None else judge_scan(scan, document, style, Limits())
                if parts is None:
                    return False
                found.append((True, *parts, budget.spent))
            else:
                inspector = PlainInspector(inspection, style, Limits())
                is_plain = inspector.inspect(document) and not inspector.undecided
                names, formats, targets = inspector.unknown_names, inspector.unknown_formats, inspector._targets
                found.append((is_plain, names, formats, targets, budget.spent))
    scanned, inspected = found
    assert scanned == inspected
    assert all(scanned[3][name] is raw for name, raw in inspected[3].items())
    return True


def mutate(text: str, choose: random.Random) -> str:
    """Return a text with a few tokens replaced, which need not be JSON."""
    tokens = TOKEN.findall(text)
    places = [k for k, token in enumerate(tokens) if token.strip() and token not in "[]{},:"]
    for _ in range(choose.randint(1, 3) if places else 0):
        tokens[choose.choice(places)] = choose.choice(WORDS) if choose.random() < 0.6 else tokens[choose.choice(places)]
    return "".join(tokens)


@settings(deadline=None)
@given(schemas, st.randoms(use_true_random=False), st.sampled_from(("assert", "annotate")), st.booleans())
def test_a_scan_agrees_with_the_inspection(schema: Any, choose: random.Random, formats: Any, indents: bool) -> None:
    if not isinstance(schema, dict):
        return
    text = json.dumps(schema, indent=2 if indents else None, ensure_ascii=choose.random() < 0.5)
    judge(text, Style(formats=formats))
    for _ in range(5):
        mutant = mutate(text, choose)
        try:
            value = json.loads(mutant)
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("$schema", ""), str) and "draft-03" not in mutant:
            judge(mutant, Style(formats=formats))


ROWS = [
    ({}, True),
    ({"properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}, True),
    ({"properties": {"a": True}, "required": ["b"], "additionalProperties": False}, False),
    ({"type": ["string", "null"], "enum": ["a", None, 3, True]}, True),
    ({"type": "string", "enum": [3]}, False),
    ({"enum": []}, False),
    ({"const": 1.5}, False),
    ({"minLength": 3, "maxLength": 2}, False),
    ({"maxItems": 0}, False),
    ({"items": [{}]}, False),
    ({"minimum": -3, "maximum": -2, "description": 'a "quoted" \\ text {[,'}, True),
    ({"oneOf": [{"type": "string"}, {"type": "null"}]}, True),
    ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, False),
    ({"oneOf": [{"type": "string"}, {}]}, False),
    ({"anyOf": [{}] * 8}, True),
    ({"anyOf": [{}] * 9}, False),
    ({"$defs": {"a": {"type": "string", "x": 1}}, "items": {"$ref": "#/$defs/a"}, "anyOf": [{"$ref": "#"}]}, False),
    ({"$defs": {"a": {"x": 1}}, "properties": {"b": {"$ref": "#/$defs/a"}, "c": {"$ref": "#"}}}, True),
    ({"$defs": {"a": {"$ref": "#/$defs/a"}}}, False),
    ({"properties": {"b": {"$ref": "#/$defs/a"}}}, False),
    ({"properties": {"a": {"properties": {"b": {"$ref": "#/properties/a"}}, "required": ["b"]}}}, False),
    ({"$defs": {"": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs"}}}, False),
    ({"$defs": {"": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/"}}}, True),
    ({"items": {"properties": {"": {}}}, "additionalProperties": {"$ref": "#/items/properties"}}, False),
    ({"pattern": "^a\\d{3}$"}, True),
    ({"pattern": "("}, False),
    ({"format": "no-such-format", "properties": {"é": {"format": "date"}}}, True),
    ({"not": {}}, False),
    ({"properties": {str(k): {} for k in range(layout.MOST_MEMBERS)}}, True),
    ({"properties": {str(k): {} for k in range(layout.MOST_MEMBERS + 1)}}, False),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "is_plain"), ROWS, ids=str)
def test_some_documents(schema: dict[str, Any], is_plain: bool) -> None:
    assert judge(json.dumps(schema, ensure_ascii=False)) is is_plain
    assert judge(json.dumps(schema, indent="\t")) is (is_plain and "\\u" not in json.dumps(schema))


@pytest.mark.parametrize(
    "text",
    [
        '{"properties": {"a": {}, "a": {"type": "x"}}}', '{"type": "string", "type": "x"}',
        '{"properties": {"a": {}, "\\u0061": {}}}', '{"required": ["\\ud800"]}', '{"enum": ["\\ud800"]}',
        '{"a\\"": 1}',
    ],
)  # fmt: skip
def test_scan_leaves_repeated_keys_and_escapes_undecided(text: str) -> None:
    assert not judge(text)


def test_deep_documents_are_left_to_the_inspection() -> None:
    for levels in (layout.MOST_FRAMES - 1, layout.MOST_FRAMES):
        assert judge('{"items":' * levels + "{}" + "}" * levels) is (levels < layout.MOST_FRAMES)


def test_a_scan_finds_nothing_of_the_scan_before_it_in_its_memory() -> None:
    short, long = (json.dumps({"properties": {str(k): {f"x{k}": 1} for k in range(n)}}) for n in (3, 120))
    beyond = json.dumps({"title": "a" * 8 * text_scan.SCRATCH_LENGTH, "y": 1})
    expected = {short: {"x0", "x1", "x2"}, long: {f"x{k}" for k in range(120)}, beyond: {"y"}}
    for text in (long, short, beyond, short, long):
        scan = scan_text(text, 2020)
        assert scan is not None and scan.list_names() == expected[text]
    assert 0 < len(text_scan._scratch) <= text_scan.MOST_SCRATCH


def test_the_layout_has_the_bits_of_the_inspection() -> None:
    names = {"minLength": "MIN_LENGTH", "maxLength": "MAX_LENGTH", "minItems": "MIN_ITEMS", "maxItems": "MAX_ITEMS",
             "additionalProperties": "ADDITIONAL", "$ref": "REFERENCE", "anyOf": "ANY_OF", "oneOf": "ONE_OF",
             "patternProperties": "PATTERNS"}  # fmt: skip
    for name in PLAIN_KEYWORDS:
        short = names.get(name, name.upper())
        assert getattr(layout, f"B_{short}") == getattr(name_summaries, short)
    for short in ("OTHER", "IDENTIFIER", "CONTAINER", "UNKNOWN", "DIALECT", "ASSERTIONS", "HOLDERS"):
        assert getattr(layout, f"B_{short}") == getattr(name_summaries, short)
    for name in ("null", "boolean", "number", "string", "integer"):
        assert getattr(layout, f"IS_{name.upper()}") == TYPE_BITS[name]
    assert layout.MOST_OPTIONS == document_inspection.MOST_OPTIONS
    assert layout.MOST_VALUES == document_inspection.MOST_VALUES
