"""Rules of plain documents that are emitted from raw subschemas allow what those of numbered subschemas do."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from constrain import ConstrainError, Limits, Matcher, Style, Vocabulary
from constrain.automata.dfa import MAX_STATES, Dfa
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.json_schema.emission import schema_pipeline
from constrain.frontends.json_schema.emission.document_rules import DocumentRules
from constrain.frontends.json_schema.emission.raw_scalars import RawScalars
from constrain.frontends.json_schema.emission.style_parts import ANY_VALUE, ROOT, ROOT_NUMBER
from constrain.frontends.json_schema.numbers.number_automata import bounded_dfa, number_dfa
from constrain.frontends.json_schema.strings.formats import FORMATS
from constrain.grammar.nodes import Grammar, Rule

STYLES = [Style(), Style.any(), Style(whitespace="compact", key_order="any"), Style(formats="annotate")]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
NAMES = ["a", "b", "é", 'q"', "a!", "", "\n"]
REFERENCES = ["#", "#/$defs/a", "#/$defs/b", "#/properties/a"]
STEPS = 24
LEAVES = st.sampled_from([
    {"type": "string"}, {"type": ["null", "integer"]}, {"enum": ["x", "y\n", "é"]}, {"const": "k"}, {"enum": ["x", 1]},
    {"type": "string", "maxLength": 3}, {"type": "string", "minLength": 0}, {"pattern": "^a"}, {}, True,
    {"type": "string", "format": "date"}, {"type": "string", "format": "colour", "x": 1}, {"format": "date"},
    {"type": ["array", "string"]}, {"type": "object"}, {"type": "integer", "minimum": 3}, {"minLength": 1},
    {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/a"}]}, {"oneOf": [{"type": "null"}, {"type": "array"}]},
    {"patternProperties": {"^a": {"type": "null"}}}, {"patternProperties": {"": {"type": "null"}}},
    {"type": "object", "patternProperties": {"^(a|b)$": {"type": "integer"}}, "additionalProperties": False},
    {"type": "object", "patternProperties": {"b$": {"$ref": "#"}}, "additionalProperties": {"type": "string"}},
    {"enum": [3, "3", None]}, {"type": "integer", "enum": [0, -10]},
    {"type": "string", "pattern": "^b+$"}, {"type": ["string", "null"], "pattern": "^.{2,3}$"}, {"minimum": -1},
    {"type": "number", "maximum": 10}, {"type": ["integer", "string", "boolean"], "minimum": 1, "maximum": 12},
    {"type": "string", "format": "hostname"}, {"type": ["string", "object"], "maxLength": 2, "minimum": 2},
    {"oneOf": [{"type": "integer", "maximum": -1}, {"type": "string", "pattern": "é"}, {"type": "object"}]},
    {"anyOf": [{"type": "array", "items": {"type": "string", "maxLength": 1}}, {"type": "null"}]},
    {"anyOf": [{"type": "integer"}, {"type": "number", "minimum": 1}]}, {"oneOf": [{"type": "string", "enum": ["a"]}]},
    {"anyOf": [{"type": "object", "required": ["a"]}, {"oneOf": [{"type": "null"}, {"type": "boolean"}]}]},
    *({"$ref": reference} for reference in REFERENCES),
])  # fmt: skip


def plain_schemas(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw subschemas most of which are emitted from the raw document."""
    keywords = {
        "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
        "properties": st.dictionaries(st.sampled_from(NAMES), values, max_size=4),
        "required": st.lists(st.sampled_from(NAMES), unique=True, max_size=2),
        "additionalProperties": values | st.booleans(),
        "items": values,
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(1, 3),
    }
    return st.fixed_dictionaries({}, optional=keywords)


SUBSCHEMAS = st.recursive(LEAVES, plain_schemas, max_leaves=6)
DOCUMENTS = st.builds(
    lambda root, definitions: {**root, "$defs": definitions} if type(root) is dict else root,
    SUBSCHEMAS,
    st.fixed_dictionaries({"a": SUBSCHEMAS.filter(lambda one: type(one) is dict), "b": LEAVES}),
)


def make_grammar(schema: Any, style: Style) -> Grammar | str:
    """Return the Grammar of a schema, given as text, or its error."""
    try:
        return to_grammar(json.dumps(schema), style=style)
    except ConstrainError as error:
        return str(error)


def walk(matchers: list[Matcher], choose: random.Random) -> None:
    """Follow the same bytes with all matchers, whose masks must be equal."""
    for _ in range(STEPS):
        masks = [matcher.mask() for matcher in matchers]
        assert all(np.array_equal(masks[0], mask) for mask in masks[1:])
        bits = np.flatnonzero(np.unpackbits(masks[0].view(np.uint8), bitorder="little"))
        following = [int(bit) for bit in bits if bit < 256 and bit not in (9, 10, 13, 32)]
        if not following:
            return
        token = choose.choice(following)
        for matcher in matchers:
            matcher.advance(token)


@pytest.mark.parametrize("style", STYLES, ids=repr)
@settings(deadline=None)
@given(schema=DOCUMENTS, choose=st.randoms(use_true_random=False))
def test_raw_rules_allow_what_numbered_ones_do(style: Style, schema: Any, choose: random.Random) -> None:
    grammars = [make_grammar(schema, style)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema_pipeline, "emit_plain_document", lambda *_: None)
        grammars.append(make_grammar(schema, style))
    if any(isinstance(one, str) for one in grammars):
        assert grammars[0] == grammars[1]
        return
    vocabulary = Vocabulary.bytes()
    constraints = [compile_grammar(one, vocabulary) for one in grammars if isinstance(one, Grammar)]
    for _ in range(3):
        walk([constraint.matcher() for constraint in constraints], choose)


ITEMS: list[Any] = [
    {"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "array", "items": {}}, {}, {"type": "string"},
    {"enum": ["x", "y"]}, {"type": ["object", "null"]}, {"type": "string", "pattern": "^a"}, {"type": "integer"},
]  # fmt: skip
LISTED = {"type": "array", "items": {"enum": ["x", "y"]}}
BOUNDS: list[dict[str, Any]] = [
    {}, {"minItems": 1}, {"minItems": 3}, {"maxItems": 1}, {"minItems": 2, "maxItems": 5},
]  # fmt: skip


@pytest.mark.parametrize("style", STYLES, ids=repr)
def test_code_is_that_of_the_nodes(style: Style) -> None:
    """An object that appends its code has the code of its node."""
    values = {"a": {"type": "string"}, "b": {"type": "null"}, "é": {"type": ["integer", "string"]}, "d": {}, "e": True}
    objects = [
        {"type": "object", "properties": values, "required": ["b", "zz"]},
        {"type": "object", "properties": {**values, "c": {"enum": ["x"]}}, "additionalProperties": False},
        {"type": "object", "additionalProperties": {"type": "number"}},
        {"type": "object", "properties": {'q"': {"type": "string"}}, "required": ['q"']},
        *({"type": "array", "items": item, **bounds} for item in ITEMS for bounds in BOUNDS),
        {"type": "array"},
    ]
    for one in objects:
        codes = []
        for appends in (True, False):
            grammar = to_grammar(json.dumps(one), style=style)
            assert isinstance(grammar.rules, DocumentRules)
            with pytest.MonkeyPatch.context() as patch:
                if not appends:
                    patch.setattr(DocumentRules, "append_code", lambda *_: None)
                program = compile_grammar(grammar, Vocabulary.bytes(), Limits()).program
                program.link_ahead(20)
                codes.append(program.words[program.entry :].tolist())
        assert codes[0] == codes[1]


@pytest.mark.parametrize("style", STYLES, ids=repr)
def test_documents_of_a_style_begin_with_the_same_code(style: Style) -> None:
    """The start and any value are linked from the beginning, and the root as soon as a text is matched."""
    for schema in ({"type": "object"}, {"type": ["array", "null"]}, {"$ref": "#/$defs/a", "$defs": {"a": LISTED}}):
        grammar = to_grammar(json.dumps(schema), style=style)
        assert isinstance(grammar.rules, DocumentRules)
        first = grammar.rules.first_code
        program = compile_grammar(grammar, Vocabulary.bytes(), Limits()).program
        assert program.words == first.words and program.words[program.place_rule(ANY_VALUE)]
        assert bool(program.words[program.entry]) == (grammar.start != ROOT)
        program.link_start()
        assert program.words[program.place_rule(ROOT)] and program.words[program.entry]
        assert program.links[: len(first.links)] == first.links and len(program.links) == len(first.links) + 1
    for schema in ({}, {"type": "string"}, True):  # nothing begins with that code
        grammar = to_grammar(json.dumps(schema), style=style)
        assert compile_grammar(grammar, Vocabulary.bytes(), Limits()).matcher().mask().any()


def test_equal_scalars_and_references_are_one_rule() -> None:
    text = {"type": "string", "maxLength": 3}
    schema = {
        "type": "object",
        "properties": {"a": text, "b": dict(text), "c": {"$ref": "#/$defs/d"}, "d": {"$ref": "#/$defs/d"}},
        "$defs": {"d": {"type": "object", "properties": {"e": {"$ref": "#"}}}},
    }
    grammar = to_grammar(schema)
    assert isinstance(grammar.rules, DocumentRules) and isinstance(grammar.start, Rule)
    root = grammar.rules[grammar.start.name]
    values = [one.value for one in root.properties]  # type: ignore[union-attr]
    assert values[0] == values[1] and values[2] == values[3] != values[0]
    inner = grammar.rules[values[2].name]  # type: ignore[union-attr]
    assert inner.properties[0].value == grammar.start  # type: ignore[union-attr]


def test_rules_of_the_emitter_refer_to_raw_subschemas() -> None:
    """A recursion through alternatives comes back to the rules of the raw document."""
    schema = {
        "type": "object",
        "properties": {"next": {"anyOf": [{"const": None}, {"$ref": "#"}]}, "other": {"type": "string"}},
    }
    grammar = to_grammar(schema)
    root = grammar.rules[grammar.start.name]  # type: ignore[union-attr]
    _, inner = grammar.rules[root.properties[0].value.name].options  # type: ignore[union-attr]
    assert inner.properties == root.properties  # type: ignore[union-attr]


@pytest.mark.parametrize("pattern, additional", [("^(a|b)$", False), ("^(?!(a|b)$)", {"type": "string"})])
def test_few_names_of_a_pattern_may_all_be_used(pattern: str, additional: Any) -> None:
    names = {"patternProperties": {pattern: {"type": "null"}}, "additionalProperties": additional}
    schema = {"type": "object", "properties": {"k": {"type": "object", **names}}, "additionalProperties": False}
    matcher = Matcher(compile_grammar(to_grammar(schema, style=STYLES[2]), Vocabulary.bytes()))
    value = "null" if additional is False else '"x"'
    matcher.advance_bytes(b'{"k":{"a":%b,"b":%b' % (value.encode(), value.encode()))
    assert (ord(",") in matcher.next_bytes()) == (additional is not False)


def test_names_outside_a_pattern_of_few_names_are_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    scalars, complements = RawScalars(2020, Style(), Limits()), list[Dfa]()
    complement = Dfa.complement
    monkeypatch.setattr(Dfa, "complement", lambda dfa: complements.append(dfa) or complement(dfa))
    assert scalars.split_names({"patternProperties": {"^(a|b)$": {}}}) is None
    assert not complements
    names = scalars.split_names({"patternProperties": {"^a": {}}})
    assert names is not None and len(names) == 2 and complements


SCALARS = [
    {"type": "string", "pattern": "^a{2,}$"}, {"type": "string", "pattern": "^[a-z]{1,9}$"}, {"pattern": "b"},
    {"type": ["boolean", "string"], "maxLength": 4}, {"type": "string", "minLength": 2}, {"enum": ["a", None, True]},
    {"type": "string", "format": "ipv4"}, {"type": "string", "format": "hostname"}, {"type": "integer", "maximum": -1},
    {"type": "string", "format": "regex"}, {"type": "number", "minimum": 0}, {"const": False}, {"const": "é"},
    {"type": "number", "minimum": -3, "maximum": 70}, {"type": "integer", "minimum": 1}, {"enum": [None]},
    {"type": "integer", "minimum": 0, "maximum": 65535}, {"type": ["number", "null"], "maximum": 1, "minLength": 2},
    {"enum": [1, "1", -20, 1]}, {"type": "integer", "enum": [0, 1]}, {"type": ["number", "null"], "enum": [0, 7, "a"]},
    {"type": ["string", "null"], "enum": ["y", "x", None, False]}, {"type": "boolean", "enum": ["x", True, False]},
]  # fmt: skip


@pytest.mark.parametrize("style", STYLES, ids=repr)
@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#"]
)
@pytest.mark.parametrize("scalar", SCALARS, ids=repr)
def test_scalars_need_no_emitter(style: Style, draft: str, scalar: dict[str, Any]) -> None:
    if "const" in scalar and "04" in draft:  # which does not define it
        return
    grammar = to_grammar({"$schema": draft, "type": "object", "properties": {"a": scalar}}, style=style)
    value = grammar.rules[ROOT_NUMBER].properties[0].value  # type: ignore[union-attr]
    if not isinstance(value, Rule):  # nothing but types is asserted
        return
    assert isinstance(grammar.rules, DocumentRules)
    node = grammar.rules[value.name]
    assert "type" not in scalar or "_emitter" not in vars(grammar.rules)
    number: Any = value.name
    assert repr(node) == repr(grammar.rules.emitter.body(grammar.rules._parse(number), 0))


@pytest.mark.parametrize("style", STYLES, ids=repr)
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_formats_are_those_of_the_emitter(style: Style, name: str) -> None:
    for draft in ("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"):
        scalar = {"type": ["string", "null"], "format": name}
        grammar = to_grammar({"$schema": draft, "type": "object", "properties": {"a": scalar}}, style=style)
        value = grammar.rules[ROOT_NUMBER].properties[0].value  # type: ignore[union-attr]
        if isinstance(value, Rule):  # otherwise formats assert nothing
            assert isinstance(grammar.rules, DocumentRules)
            number: Any = value.name
            expected = grammar.rules.emitter.body(grammar.rules._parse(number), 0)
            assert repr(grammar.rules[value.name]) == repr(expected)


@pytest.mark.parametrize("low", [None, -100, -2, -1, 0, 1, 2, 9, 10, 11, 99])
@pytest.mark.parametrize("high", [None, -1, 0, 1, 7, 99, 1000])
def test_bounds_that_are_integers_have_the_same_automaton(low: int | None, high: int | None) -> None:
    if low is not None and high is not None and low > high:
        return
    for integer in (False, True):
        for digits in (None, 3):
            style = Style(digits=digits)
            bounds = {"low": None if low is None else Fraction(low), "high": None if high is None else Fraction(high)}
            expected = number_dfa(**bounds, integer=integer, style=style)  # type: ignore[arg-type]
            assert bounded_dfa(low, high, integer, digits, MAX_STATES) == expected


@pytest.mark.parametrize("style", STYLES, ids=repr)
@pytest.mark.parametrize("words", [["x"], ["b", "a", "b"], ['q"', "é", "\n"], ["", "x" * 20_000, "y" * 20_000]])
def test_lists_of_texts_need_no_emitter(style: Style, words: list[str]) -> None:
    for kind in ({}, {"type": "string"}):
        schema = {"type": "object", "properties": {"a": {**kind, "enum": words}}}
        grammar = to_grammar(schema, style=style)
        assert isinstance(grammar.rules, DocumentRules)
        name: Any = grammar.rules[ROOT_NUMBER].properties[0].value.name  # type: ignore[union-attr]
        node = grammar.rules[name]
        assert "_emitter" not in vars(grammar.rules)
        assert repr(node) == repr(grammar.rules.emitter.body(grammar.rules._parse(name), 0))
