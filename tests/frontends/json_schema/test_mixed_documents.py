"""Documents that are plain but for some subschemas are refused and masked as if they were decided as a whole."""

from __future__ import annotations

import json
import random
import warnings
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from constrain import ConstrainError, Limits, Style, Vocabulary, compile as compile_schema
from constrain.base.json_documents import LoadedDocument
from constrain.base.work import work_budget
from constrain.compilation import compile_caches
from constrain.frontends.json_schema.core.subschema_table import Subschema
from constrain.frontends.json_schema.emission import mixed_documents, schema_pipeline
from constrain.frontends.json_schema.emission.document_rules import DocumentRules
from constrain.frontends.json_schema.reading.document_inspection import Inspection, inspect_document
from constrain.frontends.json_schema.reading.keywords import KEYWORDS
from tests.frontends.json_schema.test_document_rules import walk
from tests.schema_strategies import schemas

STYLES = [Style(), Style.any(), Style(whitespace="compact", key_order="any")]
BYTES = Vocabulary.bytes()
REFERENCES = ["#", "#/$defs/a", "#/$defs/b", "#/properties/a"]
TEXT, COUNT = {"type": "string"}, {"type": "integer"}
LEAVES: list[Any] = [
    TEXT, COUNT, {}, True, {"enum": ["x", 1]}, {"type": "array"},
    {"pattern": "^a+b$", "maxLength": 3, "type": "string"},
    {"multipleOf": 3, "type": "integer", "exclusiveMinimum": 1}, {"exclusiveMinimum": 1, "maximum": 1},
    {"minimum": 0.5, "type": "number"}, {"not": TEXT}, {"not": {"type": "object", "required": ["a"]}},
    {"enum": [[1], {}]},
    {"type": "object", "minProperties": 2}, {"type": "array", "uniqueItems": True, "contains": COUNT},
    {"type": "string", "format": "no-such"}, {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"},
    {"oneOf": [{"type": "number"}, {"multipleOf": 2}]}, {"minLength": -1}, {"maxlength": 3, "multipleOf": 2},
    {"type": "object", "required": ["z"], "additionalProperties": False},
    {"patternProperties": {"a": TEXT, "b": COUNT}},
    {"dependentRequired": {"a": ["b"]}}, {"if": {"required": ["a"]}, "then": {"required": ["b"]}}, {"const": {"a": 1}},
    {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "string"}, {"type": "boolean", "enum": ["x"]},
    {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True},
    {"$schema": "https://json-schema.org/draft/2020-12/schema", "multipleOf": 2}, {"$schema": 1},
    *({"$ref": reference} for reference in REFERENCES),
    *({"$ref": reference, "required": ["a"]} for reference in REFERENCES),
]  # fmt: skip


def nested(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw subschemas around others, most of them plain."""
    members = st.dictionaries(st.sampled_from("ab"), values, max_size=2)
    names = st.lists(st.sampled_from("ab"), unique=True, max_size=1)
    plain = st.fixed_dictionaries(
        {"type": st.sampled_from(["object", "array"])},
        optional={"properties": members, "required": names, "items": values, "minItems": st.integers(0, 1)},
    )
    options = st.lists(values, min_size=1, max_size=2)
    undecided = st.fixed_dictionaries(
        {}, optional={"properties": members, "allOf": options, "anyOf": options, "not": values, "required": names}
    )
    return st.one_of(plain, plain, undecided)


MALFORMED = st.dictionaries(
    st.sampled_from(sorted(row.name for row in KEYWORDS)),
    st.sampled_from(
        [None, True, -1, 1.5, "x", "#", [], ["a"], [{}], [TEXT, 1], {}, {"a": 1}, {"a": ["b"]}, {"a": TEXT}]
    ),
    min_size=1,
    max_size=2,
)
"""Keywords with values of which most are wrong."""
SUBSCHEMAS = st.recursive(st.one_of(st.sampled_from(LEAVES), st.sampled_from(LEAVES), MALFORMED), nested, max_leaves=6)
DOCUMENTS = st.builds(
    lambda root, definitions: {**root, "$defs": definitions} if type(root) is dict else root,
    SUBSCHEMAS,
    st.fixed_dictionaries({"a": SUBSCHEMAS, "b": SUBSCHEMAS}),
)


@pytest.fixture(autouse=True, scope="module")
def no_compile_caches() -> Any:
    """Compile every source anew."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile_caches.recent, "most", 0)
        patch.setattr(compile_caches.programs, "most", 0)
        yield


def compile_anew(text: str, style: Style) -> tuple[Any, list[str]]:
    """Return a Constraint, or what the error says, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found: Any = compile_schema(BYTES, schema=text, style=style)
        except ConstrainError as error:
            found = (type(error), str(error), error.pointer)
    return found, [str(one.message) for one in caught]


def compare(schema: Any, style: Style, choose: random.Random) -> None:
    """Compare what compiling a document says and allows with what deciding it as a whole does."""
    text = json.dumps(schema)
    found, messages = compile_anew(text, style)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema_pipeline, "emit_mixed_document", lambda *_: None)
        expected, expected_messages = compile_anew(text, style)
        assert messages == expected_messages
        if isinstance(expected, tuple) or isinstance(found, tuple):
            assert found == expected
            return
        for _ in range(3):
            walk([found.matcher(), expected.matcher()], choose)


@pytest.mark.parametrize("style", STYLES, ids=repr)
@settings(deadline=None)
@given(schema=DOCUMENTS, choose=st.randoms(use_true_random=False))
def test_mixed_documents_are_as_whole_ones(style: Style, schema: Any, choose: random.Random) -> None:
    compare(schema, style, choose)


@pytest.mark.parametrize("style", STYLES[:2], ids=repr)
@settings(deadline=None)
@given(schema=schemas, name=st.sampled_from(["properties", "items"]), choose=st.randoms(use_true_random=False))
def test_any_schema_inside_a_plain_one(style: Style, schema: Any, name: str, choose: random.Random) -> None:
    if type(schema) is dict and "$ref" not in json.dumps(schema):
        schema.pop("$schema", None)
        compare({name: {"a": schema, "b": TEXT} if name == "properties" else schema}, style, choose)


def inspect(schema: Any) -> Inspection:
    with work_budget(Limits().work):
        return inspect_document(LoadedDocument.of(schema), None, Style(), Limits())


def test_only_undecided_subschemas_are_read() -> None:
    """The other subschemas of a document are nodes without keywords."""
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "integer", "multipleOf": 2}}},
            "c": {"allOf": [{"$ref": "#/$defs/d"}, {"required": ["e"]}]},
        },
        "$defs": {"d": {"type": "object", "properties": {"e": {"type": "object", "properties": {"f": TEXT}}}}},
    }
    found = inspect(schema)
    assert not found.is_plain
    assert [list(raw) for raw in found.entries] == [["allOf"], ["type", "multipleOf"]]
    constraint, _ = compile_anew(json.dumps(schema), Style())
    rules = constraint.program.grammar.rules
    assert isinstance(rules, DocumentRules)
    nodes = [node for node in rules.emitter.algebra.nodes if node is not None and node.is_plain]
    assert [list(node.source[3]) for node in nodes if is_read(node)] == [["type", "properties"], ["required"]]
    assert ["type", "properties"] in [list(node.source[3]) for node in nodes if not is_read(node)]


def is_read(node: Subschema) -> bool:
    """Return whether the keywords of a plain node have been parsed."""
    try:
        Subschema.keywords.__get__(node)  # type: ignore[attr-defined]
    except AttributeError:
        return False
    return True


def test_recursion_through_an_undecided_subschema_is_decided_as_a_whole() -> None:
    """A plain object that needs an undecided value which needs the object again has no value."""
    again = {"allOf": [{"$ref": "#/$defs/d"}]}
    schema = {"$ref": "#/$defs/d", "$defs": {"d": {"type": "object", "properties": {"e": again}, "required": ["e"]}}}
    assert not inspect(schema).undecided
    error, _ = compile_anew(json.dumps(schema), Style())
    assert error[0].__name__ == "UnsatisfiableError"


def test_an_abandoned_attempt_costs_no_work() -> None:
    """A document with an undecided subschema that has no value takes as much work as without the attempt."""
    text = json.dumps({"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 5, "enum": [3]}}})
    spent = []
    for attempts in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not attempts:
                patch.setattr(schema_pipeline, "emit_mixed_document", lambda *_: None)
            with work_budget(1 << 30) as budget:
                grammar = schema_pipeline.to_grammar(text)
                spent.append(budget.spent)
            assert not isinstance(grammar.rules, DocumentRules)
    assert spent[0] == spent[1]


def test_the_attempt_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    decide = mixed_documents._decide
    monkeypatch.setattr(mixed_documents, "_decide", lambda *arguments: calls.append(1) or decide(*arguments))
    compile_anew('{"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 5, "enum": [3]}}}', Style())
    assert len(calls) == 1


@pytest.mark.parametrize("keyword", sorted(row.name for row in KEYWORDS))
def test_values_that_a_keyword_does_not_allow_are_refused_alike(keyword: str) -> None:
    """Also where they are of types to which the keyword does not apply."""
    for value in ([], ["a", 1], [[1]], {"b": [1]}, {"b": 3}, "x", 3, None):
        malformed = {"type": "integer", "multipleOf": 2, keyword: value}
        for schema in (malformed, {"properties": {"a": malformed, "c": TEXT}}, {"items": {"anyOf": [malformed, TEXT]}}):
            compare(schema, Style(), random.Random(1))
