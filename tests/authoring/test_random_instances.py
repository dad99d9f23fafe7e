"""Random texts with no model: always valid, always ending, fit to be read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain.authoring.explanations import first_refusal
from constrain.authoring.samples import readable_texts
from constrain.authoring.samples.random_instances import FADING, OPTIONAL, STEPS_PER_BYTE, Enough, Walker, random_text
from constrain.automata.dfa import Dfa
from constrain.frontends.regex import to_dfa
from constrain.grammar.nodes import (
    EMPTY,
    Choice,
    Grammar,
    Layout,
    Literal,
    NameClass,
    Object,
    Property,
    Repeat,
    Sequence,
    Strings,
)

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).resolve().parents[2]
BYTES = constrain.Vocabulary.bytes()
COMMA, COLON = Literal(b","), Literal(b":")
SCHEMAS = sorted((ROOT / "schemas").glob("*.json"))
HARD: dict[str, Any] = {
    "deep": {"$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}, "minItems": 0}}, "$ref": "#/$defs/n"},
    "wide": {"type": "array", "items": {"type": "integer", "multipleOf": 7}, "minItems": 300},
    "long": {"type": "string", "minLength": 3000},
    "exact": {"type": "string", "minLength": 17, "maxLength": 17},
    "pattern": {"type": "string", "pattern": "^([a-z][0-9])+$", "minLength": 5, "maxLength": 9},
    "names": {"type": "object", "patternProperties": {"^[a-z]{3}$": True}, "additionalProperties": False,
              "minProperties": 3, "maxProperties": 4},
    "needs": {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}, "c": {"type": "null"}},
              "additionalProperties": False, "dependentRequired": {"c": ["a"], "b": ["c"]}, "maxProperties": 3},
    "counted": {"type": "object", "properties": {k: {"type": "null"} for k in "abcdefgh"},
                "additionalProperties": False, "minProperties": 3, "maxProperties": 3},
    "anything": True,
    "narrow": {"type": "number", "exclusiveMinimum": 3.14, "maximum": 3.15},
}  # fmt: skip


def texts(schema: Any, n: int, *, size: int = 600, style: constrain.Style = constrain.Style()) -> list[bytes]:
    """n random texts of a schema, each accepted by a fresh Matcher."""
    constraint = constrain.compile(BYTES, schema=schema, style=style)
    made = [random_text(constraint, np.random.default_rng(seed), size=size) for seed in range(n)]
    assert all(first_refusal(constraint, text) is None for text in made)
    return made


def accepted(schema: Any, text: bytes) -> bool:
    """What jsonschema says."""
    dialect = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return bool(dialect(schema, format_checker=dialect.FORMAT_CHECKER).is_valid(json.loads(text)))


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.stem)
def test_every_text_of_the_examples_is_valid(path: Path) -> None:
    source = path.read_text("utf-8")
    try:
        made = texts(source, 8)
    except constrain.UnsupportedError as error:
        pytest.skip(str(error.cause))
    schema = json.loads(source)
    assert all(accepted(schema, text) for text in made)
    assert len(set(made)) > 1
    assert all(b"\n" not in text for text in made), "one instance a line"


@pytest.mark.parametrize("name", HARD)
def test_hard_ones_end_and_are_valid(name: str) -> None:
    schema = HARD[name]
    for text in texts(schema, 6):
        assert len(text) < 20_000
        assert accepted(schema, text), text


STYLES = [constrain.Style.any(), constrain.Style(whitespace="compact"), constrain.Style(whitespace=2)]


@pytest.mark.parametrize("style", STYLES)
def test_styles(style: constrain.Style) -> None:
    schema = json.loads((ROOT / "schemas" / "invoice.json").read_text("utf-8"))
    assert all(accepted(schema, text) for text in texts(schema, 4, style=style))


def test_a_small_size_closes_early() -> None:
    schema = json.loads((ROOT / "schemas" / "tree.json").read_text("utf-8"))
    assert max(map(len, texts(schema, 30, size=40))) < 400


def test_recursion_without_text_in_between_ends() -> None:
    from constrain.grammar.nodes import Choice, Grammar, Literal, Rule, Sequence

    grammar = Grammar(Rule("a"), {"a": Choice((Sequence((Rule("a"), Literal(b"x"))), Literal(b"y")))})
    constraint = constrain.compile_grammar(grammar, BYTES)
    for seed in range(20):
        assert re.fullmatch(rb"yx*", random_text(constraint, np.random.default_rng(seed), size=50))


def test_visits_of_empty_nodes_are_bounded_by_the_size() -> None:
    """Nodes that write nothing are visited a number of times for each byte of the size, not for ever."""
    nothing = Sequence((Literal(b""), Literal(b"")))
    constraint = constrain.compile_grammar(Grammar(Sequence((Literal(b"x"), Literal(b"y"))), {}), BYTES)
    walker = Walker(constraint, np.random.default_rng(0), size=10)
    with pytest.raises(Enough):
        walker.node(Repeat(nothing, 100_000, 100_000))
    assert 1 < walker.steps <= STEPS_PER_BYTE * 10 + 1
    assert walker.written == b""


KEYED = {"type": "object", "properties": {"k": {"type": "string", "pattern": "^[a-z]{1,30}$"}}, "required": ["k"],
         "additionalProperties": False}  # fmt: skip


def test_a_walk_continues_after_an_object() -> None:
    """The text after a closed object is not always the shortest one."""
    made = [json.loads(text) for text in texts({"type": "array", "items": KEYED, "minItems": 3}, 15)]
    for place in range(3):
        assert len({len(value[place]["k"]) for value in made}) > 1
    assert len(set(map(len, made))) > 1


NAMED = st.sets(st.sampled_from("abcd"), max_size=2).map(frozenset)
DECLARED = st.tuples(*(st.builds(Property, st.just(name), st.just(EMPTY), st.booleans(), NAMED) for name in "abcd"))


@settings(max_examples=200, deadline=None)
@given(
    DECLARED, st.integers(0, 2), st.integers(0, 6), st.none() | st.integers(0, 6),
    st.sampled_from(["any", "schema"]), st.integers(0, 2**32),
)  # fmt: skip
def test_plans_keep_to_the_counts(
    declared: tuple[Property, ...], classes: int, low: int, high: int | None, order: Any, seed: int
) -> None:
    """All required members, what optional ones need, as many as counts allow; undeclared members come last."""
    kinds = tuple(NameClass(to_dfa(f"{i}"), EMPTY) for i in range(classes))
    layout = Layout(EMPTY, EMPTY, COMMA, COLON, EMPTY)
    required = {one.name for one in declared if one.required}
    high = None if high is None else max(high, low, len(required))
    node = Object(declared, kinds, layout, low, high, order)
    constraint = constrain.compile_grammar(Grammar(Literal(b"x"), {}), BYTES)
    planned = Walker(constraint, np.random.default_rng(seed), 600).plan(node)
    names = [one.name for one in planned if isinstance(one, Property)]
    extra = planned[len(names) :]
    assert required <= set(names)
    assert len(names) == len(set(names))
    assert names == sorted(names) or order == "any"
    assert set(extra) <= set(kinds)
    assert len(planned) >= (low if kinds else min(low, len(declared)))
    assert high is None or len(planned) <= high
    wanted = [one for one in declared if one.name in names and not one.required]
    if low <= len(required):  # nothing is there only to make up the number
        needed = {name for one in wanted for name in one.needs}
        assert all(one.needs <= set(names) or one.name in needed for one in wanted)


def test_plans_shuffle_free_orders_and_include_some_optional_members() -> None:
    constraint = constrain.compile_grammar(Grammar(Literal(b"x"), {}), BYTES)
    layout = Layout(EMPTY, EMPTY, COMMA, COLON, EMPTY)
    walker = Walker(constraint, np.random.default_rng(0), 600)
    free = Object(tuple(Property(name, EMPTY) for name in "abc"), (), layout, order="any")
    made = [tuple(one.name for one in walker.plan(free) if isinstance(one, Property)) for _ in range(1000)]
    assert len(set(made)) == 1 + 3 + 6 + 6
    assert sum(map(len, made)) / 3000 == pytest.approx(OPTIONAL, abs=0.05)
    walker.level, walker.written = 3, bytearray(300)
    made = [tuple(one.name for one in walker.plan(free) if isinstance(one, Property)) for _ in range(1000)]
    assert sum(map(len, made)) / 3000 == pytest.approx(OPTIONAL * FADING**3 * 0.75, abs=0.05)
    few = Object(tuple(Property(name, EMPTY) for name in "abcdef"), (), layout, low=5, high=5)
    made = [tuple(one.name for one in walker.plan(few) if isinstance(one, Property)) for _ in range(200)]
    assert set(map(len, made)) == {5}
    assert len(set(made)) == 6


@pytest.mark.parametrize("behind", [b"", b"."])
def test_an_object_that_must_have_more_gets_more(behind: bytes) -> None:
    """A member that is needed and was not planned is written like any other: not the shortest that closes it."""
    value, names = Strings((b"1",)), to_dfa("[a-z]{3,20}")
    free = Property("one", value)
    node = Object((free,), (NameClass(names, value, required=True),), Layout(EMPTY, EMPTY, COMMA, COLON, EMPTY))
    tail = Sequence((Literal(behind), Choice((Literal(b"x"), Literal(b"yyyy")))))
    constraint = constrain.compile_grammar(Grammar(Sequence((node, tail)), {}), BYTES)
    made = [random_text(constraint, np.random.default_rng(seed)) for seed in range(40)]
    assert all(first_refusal(constraint, text) is None for text in made)
    inside, ends = zip(*(text.split(b"}" + behind) for text in made))
    lone = [json.loads(text + b"}") for text in inside]
    assert sum(any(len(name) > 3 for name in value) for value in lone) > 20
    assert set(ends) == {b"x", b"yyyy"}


def test_the_same_seed_gives_the_same_text() -> None:
    constraint = constrain.compile(BYTES, schema=True)
    one, two = (random_text(constraint, np.random.default_rng(5)) for _ in range(2))
    assert one == two


def test_random_instances_are_varied_and_printable() -> None:
    """What the brief of test data asks for: optional keys sometimes, several items, plain characters."""
    strings = {"type": "array", "items": {"type": "string"}}
    schema = {"type": "object", "properties": {"s": {"type": "string"}, "l": strings}}
    made = [json.loads(text) for text in texts(schema, 40)]
    assert 0 < sum("s" in value for value in made) < 40
    assert {len(value["l"]) for value in made if "l" in value} > {0, 1, 2}
    assert all(value.get("s", "x").isascii() and value.get("s", "x").isprintable() for value in made)


@pytest.mark.parametrize("pattern", ["[a-z]{2,5}", "(ab)*", "x[0-9]{3}y?", "[^a]", "(a|bb){2,}", "é+", r"\d+"])
@given(seed=st.integers(0, 2**32), low=st.integers(0, 6), more=st.one_of(st.none(), st.integers(0, 5)))
@settings(max_examples=25)
def test_texts_of_a_dfa_are_in_it(pattern: str, seed: int, low: int, more: int | None) -> None:
    dfa = to_dfa(pattern)
    high = None if more is None else low + more
    if dfa.with_length(low, high).is_empty:
        return
    text = readable_texts.draw_readable_text(dfa, low, high, np.random.default_rng(seed))
    assert dfa.accepts(text)
    assert low <= len(text) and (high is None or len(text) <= high)


@given(seed=st.integers(0, 2**32), low=st.integers(0, 30), more=st.one_of(st.none(), st.integers(0, 5)))
def test_phrases_have_their_length(seed: int, low: int, more: int | None) -> None:
    high = None if more is None else low + more
    text = readable_texts.draw_readable_text(Dfa.any_text(), low, high, np.random.default_rng(seed))
    assert low <= len(text) and (high is None or len(text) <= high)
