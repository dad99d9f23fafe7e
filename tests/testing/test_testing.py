"""Strategies for users: everything drawn is valid, simple first, edge cases among it; nearly valid breaks what it says.

The recogniser of `recogniser_oracle` judges texts by their Grammar, `jsonschema` values by their schema.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings, strategies as st

import constrain
from constrain import Style
from constrain.base.errors import ConstrainError, LimitError, UnsatisfiableError
from constrain.compilation.constraint_compiler import to_grammar
from constrain.frontends.regex import to_dfa
from constrain.grammar.nodes import (  # fmt: skip
    EMPTY,
    Choice,
    Grammar,
    Layout,
    Literal,
    Member,
    NameClass,
    Object,
    Property,
    Repeat,
    Rule,
    Sequence,
    Strings,
    Unique,
)
from constrain.testing import NearlyValid, from_grammar, from_regex, from_schema, nearly_valid
from constrain.testing.choice_source import Chooser, Seeded
from constrain.testing.dfa_texts import Language, build_language, draw_text
from constrain.testing.document_plan import DocumentPlan
from constrain.testing.grammar_documents import write_document
from constrain.testing.number_texts import as_float, number_language
from tests.grammar_strategies import dfas
from tests.recogniser_oracle import accepts
from tests.schema_strategies import schemas, valid

jsonschema = pytest.importorskip("jsonschema")

COMPACT = Style(whitespace="compact")
QUIET = settings(
    database=None, deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)


class Zero:
    """A chooser that always gives the simplest answer."""

    def below(self, n: int) -> int:
        return 0

    def span(self, work: Any) -> None:
        work()


def some(strategy: st.SearchStrategy[Any], n: int) -> list[Any]:
    """n examples."""
    found: list[Any] = []

    @settings(QUIET, max_examples=n)
    @given(strategy)
    def gather(value: Any) -> None:
        found.append(value)

    gather()
    return found


def documents(grammar: Grammar, choosers: list[Chooser], *, floats: bool = False) -> list[bytes]:
    plan = DocumentPlan(grammar, floats=floats)
    return [write_document(plan, chooser) for chooser in choosers]


def judge(schema: Any) -> Any:
    dialect = jsonschema.Draft202012Validator
    return dialect(schema, format_checker=dialect.FORMAT_CHECKER)


# ---- valid documents ---------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(schemas, st.sampled_from([Style(), COMPACT, Style(whitespace=2), Style.any()]), st.integers(0, 1000))
def test_every_text_is_of_its_grammar_and_valid(schema: Any, style: Style, seed: int) -> None:
    try:
        grammar = to_grammar(schema=schema, style=style)
    except ConstrainError:
        return
    choosers = [Zero(), Seeded(seed), Seeded(seed + 1)]
    for text in documents(grammar, choosers):
        assert accepts(grammar, text), text
    for text in documents(grammar, choosers, floats=True):
        assert accepts(grammar, text), text
        assert valid(schema, json.loads(text)), text


HARD: dict[str, Any] = {
    "recursive": {"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {
        "v": {"type": "integer"}, "l": {"$ref": "#/$defs/n"}, "r": {"$ref": "#/$defs/n"}}, "required": ["v"]}}},
    "bushy": {"type": "array", "items": {"$ref": "#"}, "minItems": 0, "maxItems": 9},
    "wide": {"type": "array", "items": {"type": "integer"}, "minItems": 800},
    "long": {"type": "string", "minLength": 5000},
    "unique": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 5}, "uniqueItems": True,
               "minItems": 6},
    "unique strings": {"type": "array", "items": {"type": "string", "maxLength": 1}, "uniqueItems": True,
                       "minItems": 9},
    "names": {"type": "object", "patternProperties": {"^[a-c]{1,2}$": {"type": "null"}}, "additionalProperties": False,
              "minProperties": 7, "maxProperties": 9},
    "counted": {"type": "object", "properties": {name: {"type": "null"} for name in "abcdefgh"},
                "additionalProperties": False, "minProperties": 3, "maxProperties": 4},
    "needs": {"type": "object", "properties": {name: {"type": "null"} for name in "abc"},
              "additionalProperties": False, "dependentRequired": {"c": ["a"], "b": ["c"]}, "maxProperties": 3},
    "many keys": {"type": "object", "properties": {f"k{k}": {"type": "boolean"} for k in range(100)}},
    "narrow": {"type": "number", "exclusiveMinimum": 3.14, "maximum": 3.15},
    "lengths": {"type": "string", "pattern": "^([a-z][0-9])+$", "minLength": 5, "maxLength": 9},
    "formats": {"type": "object", "properties": {name: {"type": "string", "format": name} for name in (
        "date-time", "date", "email", "uuid", "ipv4", "ipv6", "uri", "hostname", "duration")},
        "required": ["date", "email", "uuid", "ipv6", "uri"], "additionalProperties": False},
}  # fmt: skip


def test_equal_items_that_are_required_end_an_array() -> None:
    schema = {"not": {"uniqueItems": True}}
    made = some(from_schema(schema), 20)
    assert len(made) == 20 and all(valid(schema, value) for value in made)


@pytest.mark.parametrize("name", HARD)
def test_hard_schemas(name: str) -> None:
    schema = HARD[name]
    made = some(from_schema(schema), 25)
    assert len(made) == 25 or name == "needs"
    assert all(judge(schema).is_valid(value) for value in made)


def test_text_and_style() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "minProperties": 1}
    for style in (Style.any(), COMPACT, Style(whitespace=4), Style(key_order="any")):
        grammar = to_grammar(schema=schema, style=style)
        texts = some(from_schema(schema, style=style, form="text"), 80)
        assert all(accepts(grammar, text) for text in texts)
    free = " ".join(some(from_schema(schema, style=Style.any(), form="text"), 150))
    assert "\\u" in free
    assert "\r\n" in free
    assert re.search(r'"b"\s*:.*"a"\s*:', free)


def test_boundary_values_are_generated() -> None:
    texts = some(from_schema({"type": "string", "maxLength": 20}), 300)
    for edge in ("", "\x7f", '"', "\\"):
        assert edge in texts
    assert any(len(text) == 20 for text in texts)
    assert any(ord(char) > 0xFFFF for text in texts for char in text)
    numbers = some(from_schema({"type": "integer", "minimum": -7, "maximum": 1234}), 300)
    assert {-7, 1234, 0} <= set(numbers)
    prices = some(from_schema({"type": "number", "exclusiveMinimum": 0, "maximum": 99.5, "multipleOf": 0.5}), 300)
    assert {0.5, 99.5} <= set(prices)


def test_values_are_json_and_floats_are_what_the_schema_asks_for() -> None:
    schema = {"type": "number", "minimum": 0.1, "maximum": 0.3, "multipleOf": 0.01}
    language = to_grammar(schema=schema, style=Style.any())
    for value in some(from_schema(schema, style=Style.any()), 200):
        assert accepts(language, json.dumps(value))


def test_other_kinds_of_source() -> None:
    from dataclasses import make_dataclass

    made = some(from_schema(make_dataclass("Point", [("x", int), ("y", int)])), 10)
    assert all(set(value) == {"x", "y"} for value in made)
    assert all(isinstance(value, bool) for value in some(from_schema('{"type": "boolean"}'), 5))
    constraint = constrain.compile(constrain.Vocabulary.bytes(), choices=["yes", "no"])
    assert set(some(from_grammar(constraint), 20)) == {"yes", "no"}


@pytest.mark.parametrize("pattern", ["[a-c]+(x|yy)[0-9]{3,}", "(a|b)*", "\\d{4}-\\d\\d", "é{2}|😀+", "(?i:ab)?c"])
def test_regexes(pattern: str) -> None:
    assert all(re.fullmatch(pattern, text) for text in some(from_regex(pattern), 60))


def test_impossible_strategies_are_refused_at_once() -> None:
    with pytest.raises(UnsatisfiableError):
        from_schema({"type": "string", "enum": [1]})
    with pytest.raises(ValueError, match="form"):
        from_schema(True, form="bytes")  # type: ignore[arg-type]
    with pytest.raises(UnsatisfiableError, match="violated"):
        nearly_valid(True)


def test_without_hypothesis_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['hypothesis'] = None\nimport constrain.testing"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "constrain-lm[testing]"' in answer.stderr


# ---- shrinking ---------------------------------------------------------------------------------------------------

ORDER = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}},
        "parts": {"type": "array", "items": {"$ref": "#"}},
        "size": {"type": "number"},
    },
    "required": ["name"],
}


@pytest.mark.parametrize(
    ("strategy", "condition", "smallest"),
    [
        (from_schema(ORDER), lambda value: True, {"name": ""}),
        (from_schema(ORDER), lambda value: "tags" in value, {"name": "", "tags": []}),
        (from_schema(ORDER), lambda value: value.get("parts"), {"name": "", "parts": [{"name": ""}]}),
        (from_schema(True), lambda value: isinstance(value, list) and len(value) > 2, [None, None, None]),
        (from_schema({"type": "array", "items": {"type": "boolean"}}), lambda value: True in value, [True]),
        (from_regex("[a-z]*"), lambda text: len(text) > 3, "aaaa"),
        (from_regex("(ab|c)+d?"), lambda text: "d" in text, "cd"),
    ],
)
def test_shrinks_to_the_simplest(strategy: Any, condition: Any, smallest: Any) -> None:
    shrinking = settings(database=None, deadline=None, derandomize=True, max_examples=400)
    assert find(strategy, condition, settings=shrinking) == smallest


# ---- grammars made by hand -----------------------------------------------------------------------------------------

LAYOUT = Layout(EMPTY, EMPTY, Literal(b","), Literal(b":"), EMPTY)
ONE = Literal(b"1")


def test_a_grammar_that_recurs_in_every_option_but_one_ends() -> None:
    rules = {"a": Choice((Sequence((Literal(b"("), Rule("a"), Rule("a"), Literal(b")"))), Sequence((ONE, Rule("b"))))),
             "b": Choice((Sequence((Literal(b"-"), Rule("a"))), Sequence((Literal(b"+"), Rule("c"))))),
             "c": ONE}  # fmt: skip
    grammar = Grammar(Rule("a"), rules)
    assert documents(grammar, [Zero()]) == [b"1+1"]
    assert all(accepts(grammar, text) for text in documents(grammar, [Seeded(k) for k in range(40)]))


def test_a_grammar_that_needs_too_many_levels_is_refused() -> None:
    rules: dict[Any, Any] = {k: Sequence((Literal(b"("), Rule(k + 1), Literal(b")"))) for k in range(400)}
    with pytest.raises(LimitError, match="levels of nesting"):
        documents(Grammar(Choice((Rule(0), Rule(1))), {**rules, 400: ONE}), [Used()])


class Used(Zero):
    """A chooser whose document is to be ended at once."""


def test_long_chains_of_rules_in_tail_position_need_no_stack() -> None:
    class Chain(dict[Any, Any]):
        def __missing__(self, k: int) -> Any:
            return ONE if k == 5000 else Sequence((ONE, Literal(b","), Rule(k + 1)))

    assert documents(Grammar(Rule(0), Chain()), [Zero()]) == [b"1," * 5000 + b"1"]


def test_members_that_must_differ() -> None:
    one = Member(Strings((b"1", b"1.0", b"2", b"true", b'"1"')))
    rules = {"more": Choice((EMPTY, Sequence((Literal(b","), one, Rule("more")))))}
    grammar = Grammar(Sequence((Literal(b"["), Unique(Sequence((one, Rule("more")))), Literal(b"]"))), rules)
    lengths = set()
    for text in documents(grammar, [Seeded(k) for k in range(200)]):
        items = [repr(item) for item in json.loads(text)]
        lengths.add(len(items))
        assert len({item.replace("1.0", "1") for item in items}) == len(items), text
    assert max(lengths) == 4


def test_a_class_of_names_of_which_one_must_be_there() -> None:
    odd, all_names = to_dfa("(aa)*a"), to_dfa("a*")
    node = Object((Property("aa", ONE),), (NameClass(all_names, ONE), NameClass(odd, Literal(b"2"), True)), LAYOUT)
    for text in documents(Grammar(node, {}), [Zero(), *map(Seeded, range(60))]):
        pairs = json.loads(text, object_pairs_hook=list)
        assert len({name for name, _ in pairs}) == len(pairs)
        assert any(len(name) % 2 and value == 2 for name, value in pairs)


def test_excluded_names_and_small_classes() -> None:
    node = Object((), (NameClass(to_dfa("[abc]"), ONE),), LAYOUT, 2, 2, excluded=("b",))
    for text in documents(Grammar(node, {}), [Zero(), *map(Seeded, range(30))]):
        assert set(json.loads(text)) == {"a", "c"}


def test_once_the_budget_is_spent_documents_terminate() -> None:
    (text,) = documents(Grammar(Repeat(Strings((b"a", b"bb")), 1_000_000, None), {}), [Seeded(1)])
    assert len(text) >= 1_000_000


# ---- texts and numbers --------------------------------------------------------------------------------------------


@given(dfas(), st.integers(0, 4), st.none() | st.integers(0, 6), st.integers(0, 10**6))
def test_texts_are_of_their_language(dfa: Any, low: int, high: int | None, seed: int) -> None:
    exact = dfa.with_length(low, high)
    if exact.is_empty:
        return
    made = build_language(dfa, low, high)
    assert all(exact.accepts(text) for text in made.pool)
    chooser = Seeded(seed)
    assert all(exact.accepts(draw_text(made, chooser.below)) for _ in range(5))
    assert len(made.simplest()) == exact.lengths()[0]
    walked = Language(dfa, low, high)
    assert all(exact.accepts(walked.walk(chooser.below)) for _ in range(5))
    most = exact.lengths()[1]
    if most is not None:
        assert len(walked.walk(chooser.below, least=most)) <= most


@pytest.mark.parametrize(
    ("schema", "ends"),
    [
        ({"type": "integer", "minimum": -12, "maximum": 345}, ["-12", "345"]),
        ({"type": "integer", "exclusiveMinimum": 9, "maximum": 100}, ["10", "100"]),
        ({"type": "number", "minimum": 0.25, "maximum": 99.5}, ["0.25", "99.5"]),
        ({"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 100}, ["7", "98"]),
    ],
)
def test_pools_hold_the_ends_of_intervals(schema: Any, ends: list[str]) -> None:
    node: Any = to_grammar(schema=schema, style=COMPACT).start
    assert set(ends) <= set(number_language(node.dfa).pool)


def test_numbers_that_no_float_represents_are_replaced() -> None:
    any_number: Any = to_grammar(schema={"type": "number"}, style=Style.any()).start
    dfa = next(part.dfa for part in any_number.parts if hasattr(part, "dfa") and part.dfa.accepts("1e5"))
    for text in ("0." + "1" * 40, "1e999", "-1e-999", "123456789012345678.25"):
        near = as_float(text, dfa.accepts, number_language(dfa).pool)
        assert near != text
        assert dfa.accepts(json.dumps(json.loads(near)))
    large = "123456789012345678901234567890"
    assert as_float(large, dfa.accepts, ()) == large


# ---- nearly valid documents ----------------------------------------------------------------------------------------

SHOP: dict[str, Any] = {
    "$defs": {"age": {"type": "integer", "minimum": 18, "maximum": 130}},
    "type": "object",
    "properties": {
        "a~b/c": {"type": "string", "minLength": 1, "maxLength": 12},
        "age": {"$ref": "#/$defs/age"},
        "price": {"type": ["number", "null"], "exclusiveMinimum": 0, "multipleOf": 0.25},
        "day": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string", "pattern": "^[A-Z]{3}$"}, "uniqueItems": True,
                 "maxItems": 3},
        "kind": {"enum": ["x", "y"]},
        "both": {"allOf": [{"type": "string"}, {"maxLength": 3}]},
        "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "map": {"type": "object", "minProperties": 1, "propertyNames": {"maxLength": 2}},
    },
    "required": ["age"],
    "additionalProperties": False,
}  # fmt: skip


KINDS = ("required", "additionalProperties", "minimum", "maximum", "minLength", "exclusiveMinimum", "multipleOf",
         "format", "pattern", "uniqueItems", "maxItems", "enum", "anyOf", "minProperties", "propertyNames")  # fmt: skip


def pointer_of(path: Any) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def test_nearly_valid_documents_break_what_they_say_and_nothing_else() -> None:
    judged, seen = judge(SHOP), set()
    kinds = {"type": 30, "maxLength": 15, **dict.fromkeys(KINDS, 6)}
    cases = [case for kind, n in kinds.items() for case in some(nearly_valid(SHOP, keywords={kind}), n)]
    for case in cases:
        seen.add(case.schema_pointer)
        errors = list(judged.iter_errors(case.document))
        assert errors, case
        for error in errors:
            place, steps = case.schema_pointer, list(error.absolute_schema_path)
            if steps[:2] == ["properties", "age"]:  # jsonschema names the way to a reference, not where it leads
                steps[0] = "$defs"
            assert pointer_of(steps).startswith(place), (case, error)
        assert pointer_of(errors[0].absolute_path).startswith(case.pointer), case
    every = {"/type", "/required", "/additionalProperties", "/$defs/age/minimum", "/$defs/age/maximum",
             "/properties/a~0b~1c/minLength", "/properties/a~0b~1c/maxLength", "/properties/price/exclusiveMinimum",
             "/properties/price/multipleOf", "/properties/day/format", "/properties/tags/items/pattern",
             "/properties/tags/uniqueItems", "/properties/tags/maxItems", "/properties/kind/enum",
             "/properties/both/allOf/1/maxLength", "/properties/either/anyOf", "/properties/map/minProperties",
             "/properties/map/propertyNames"}  # fmt: skip
    assert every <= seen


def test_chosen_keywords() -> None:
    made = some(nearly_valid(SHOP, keywords={"pattern", "required"}), 40)
    assert {case.keyword for case in made} == {"pattern", "required"}
    wrong = [item for case in made if case.keyword == "pattern" for item in case.document["tags"]]
    assert any(len(item) == 3 for item in wrong), "near misses"


OWN = {"$id": "urn:own", "$ref": "#/$defs/q", "$defs": {"q": {"type": "integer"}}}
ALONE: dict[str, tuple[dict[str, Any], set[str]]] = {
    "unique": ({"type": "array", "uniqueItems": False}, {"/type"}),
    "at most": ({"contains": {"type": "null"}, "minContains": 0, "maxContains": 1}, {"/maxContains"}),
    "both": ({"contains": {"type": "null"}, "maxContains": 2}, {"/contains", "/maxContains"}),
    "old": ({"$schema": "http://json-schema.org/draft-07/schema#", "contains": {"type": "null"}, "maxContains": 1},
            {"/contains"}),
    "anchor": ({"properties": {"x": {"$anchor": "foo", "type": "integer"}, "y": {"$ref": "#foo"}}},
               {"/properties/x/type"}),
    "instance": ({"properties": {"a": {"const": {"$ref": "#/x"}}, "b": {"type": "null"}}, "required": ["a", "b"]},
                 {"/required", "/properties/a/const", "/properties/b/type"}),
    "resource": ({"properties": {"a": OWN, "b": {"type": "null"}}, "$defs": {"q": {"type": "null"}}, "required": ["a"]},
                 {"/required", "/properties/b/type"}),
    "base": ({"$id": "https://example.com/root", "properties": {"a": {"$ref": "root#/$defs/q"}, "b": {"type": "null"}},
              "$defs": {"q": {"type": "integer"}}}, {"/properties/b/type"}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::constrain.SchemaWarning")
@pytest.mark.parametrize("name", ALONE)
def test_only_what_asserts_something_is_broken_and_nothing_else(name: str) -> None:
    schema, pointers = ALONE[name]
    dialect = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    cases = some(nearly_valid(schema), 25)
    assert {case.schema_pointer for case in cases} == pointers
    for case in cases:
        errors = list(dialect(schema).iter_errors(case.document))
        assert {error.validator for error in errors} == {case.keyword}, case
        assert {pointer_of(error.absolute_path) for error in errors} == {case.pointer}, case


def test_nearly_valid_text() -> None:
    for case in some(
        nearly_valid({"type": "integer", "minimum": 3}, style=replace(COMPACT, numbers="any"), form="text"), 20
    ):
        assert isinstance(case, NearlyValid)
        assert not judge({"type": "integer", "minimum": 3}).is_valid(json.loads(case.document))


@settings(max_examples=20)
@given(st.data(), schemas)
def test_nearly_valid_documents_of_any_schema_are_invalid(data: st.DataObject, schema: Any) -> None:
    try:
        strategy = nearly_valid(schema)
    except ConstrainError:
        return
    for _ in range(3):
        case = data.draw(strategy)
        assert not valid(schema, case.document), case
