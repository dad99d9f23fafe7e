"""Many listed arrays and objects: one trie is the same language as a case each, however it is spelled."""

from __future__ import annotations

import json
import random
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from constrain import Matcher, Vocabulary, compile as constrain_compile
from constrain.base.options import Style
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.json_schema.algebra import value_keywords
from constrain.frontends.json_schema.numbers.digit_rules import REACH, emit_decimals
from constrain.frontends.json_schema.numbers.number_parts import decimal_text
from constrain.grammar.nodes import EMPTY, Grammar
from tests.number_oracle import NUMBER, exact_value
from tests.recogniser_oracle import accepts

STYLES = [Style(), Style.any(), Style(key_order="any"), Style(numbers="any"), Style(whitespace=2)]
SCALARS = [None, True, False, 0, 1, 12, -5, 1200, 0.5, 0.012, "", "a", "ab", "é", "😀x", 'a"b']


@pytest.fixture
def rng() -> random.Random:
    return random.Random(2026)


def drawn(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(4) if depth < 3 else 0
    if kind < 2 and depth:
        return rng.choice(SCALARS)
    if kind % 2:
        return [drawn(rng, depth + 1) for _ in range(rng.randrange(3))]
    return {rng.choice("abcé"): drawn(rng, depth + 1) for _ in range(rng.randrange(4))}


def text_of(value: Any, rng: random.Random) -> str:
    """A value in one of many spellings: keys in any order, escapes, exponents."""
    if isinstance(value, list):
        return "[" + ", ".join(text_of(item, rng) for item in value) + "]"
    if isinstance(value, dict):
        pairs = sorted(value.items(), key=lambda pair: rng.choice([pair[0], rng.random().hex()]))
        return "{" + ",".join(f"{text_of(name, rng)}:{text_of(item, rng)}" for name, item in pairs) + "}"
    if isinstance(value, (int, float)) and not isinstance(value, bool) and rng.random() < 0.5:
        return spelled(Decimal(str(value)), rng.randrange(-6, 7), rng.choice(["", "0", ".0"]))
    return json.dumps(value, ensure_ascii=rng.random() < 0.5)


def spelled(value: Decimal, exponent: int, zeros: str = "") -> str:
    digits = format(value.scaleb(-exponent), "f")
    tail = zeros.lstrip(".") if "." in digits else zeros if zeros != "0" else ""
    return f"{digits}{tail}e{exponent}"


@pytest.mark.parametrize("style", STYLES, ids=str)
def test_a_trie_is_the_same_as_a_case_each(style: Style, rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0
    for _ in range(4):
        values = [drawn(rng) for _ in range(rng.choice([3, 40]))]
        monkeypatch.setattr(value_keywords, "MANY_VALUES", len(values))
        cases = to_grammar({"enum": values}, style=style)
        monkeypatch.setattr(value_keywords, "MANY_VALUES", 0)
        trie = to_grammar({"enum": values}, style=style)
        for _ in range(60):
            value = rng.choice(values) if rng.random() < 0.8 else drawn(rng)
            text = text_of(value, rng) if style.whitespace != 2 else json.dumps(value, indent=2, ensure_ascii=False)
            verdict = accepts(cases, text)
            assert accepts(trie, text) == verdict, text
            taken += verdict
    assert taken > 10


def test_keys_occur_once_and_in_enumerated_combinations_only() -> None:
    values = [{"id": k, "name": f"n{k % 7}", "tags": [k % 3]} for k in range(200)]
    grammar = to_grammar({"type": "object", "enum": values}, style=Style.any())
    assert accepts(grammar, '{"tags": [1.0e0], "n\\u0061me": "n3", "id": 1.0e1}')
    assert not accepts(grammar, '{"tags": [1], "name": "n4", "id": 10}')
    assert not accepts(grammar, '{"tags": [1], "name": "n3", "name": "n3", "id": 10}')
    assert not accepts(grammar, '{"tags": [1], "name": "n3"}')


@pytest.mark.parametrize(
    ("beside", "left"),
    [
        ({"not": {"required": ["b"]}}, {"a"}),
        ({"allOf": [{"properties": {"k": {"minimum": 150}}}]}, {"a", "b"}),
        ({"type": ["array", "string"]}, set()),
        ({"oneOf": [{"required": ["a"]}, {"minProperties": 1}]}, {"b"}),
    ],
)
def test_beside_other_keywords(beside: dict[str, Any], left: set[str]) -> None:
    values: list[Any] = [{"k": k, "ab"[k % 2]: True} for k in range(130, 270)]
    grammar = to_grammar({"enum": [*values, "text", [1]], **beside})
    for value in values:
        kept = bool(left & value.keys()) and (value["k"] >= 150 or "allOf" not in beside)
        assert accepts(grammar, json.dumps(value, sort_keys=True)) == kept
    assert accepts(grammar, '"text"') == bool({"allOf", "type"} & beside.keys())


def test_items_that_differ_and_names_are_counted() -> None:
    values = [[k] for k in range(150)]
    assert accepts(to_grammar({"items": {"enum": values}, "minItems": 1}), "[[3],[3]]")
    grammar = to_grammar({"type": "array", "items": {"enum": values}, "uniqueItems": True, "minItems": 2})
    assert accepts(grammar, "[[3],[4]]") and not accepts(grammar, "[[3],[3]]")


def test_only_reached_states_are_built() -> None:
    values = [{"id": f"u{k}", "name": f"n{k}", "kind": "abc"[k % 3]} for k in range(5_000)]
    for style in (Style(), Style.any()):
        grammar = to_grammar({"enum": values}, style=style)
        text = json.dumps(values[4321], sort_keys=True)
        matcher = Matcher(constrain_compile(Vocabulary.bytes(), grammar=grammar))
        matcher.advance_bytes(text.encode())
        assert matcher.is_complete
        assert len(grammar.rules) < 400


CAPPED = [Style.any(), Style(numbers="any"), Style(numbers="any", digits=1), Style(numbers="any", digits=4)]


@pytest.mark.slow
@given(
    st.lists(
        st.decimals(-(10**9), 10**9, places=4) | st.decimals(-1, 1, places=7), min_size=2, max_size=12, unique=True
    ),
    st.sampled_from(CAPPED),
    st.data(),
)
@settings(max_examples=50)
def test_numbers_in_every_spelling(values: list[Decimal], style: Style, data: st.DataObject) -> None:
    rules: dict[Any, Any] = _Rules()
    exactly = [Fraction(value) for value in values]
    grammar = Grammar(emit_decimals(exactly, [0] * len(values), lambda _: EMPTY, style), rules)
    value = data.draw(st.sampled_from(values))
    exponent = data.draw(st.integers(-30, 30) | st.just(0))
    text = data.draw(st.sampled_from([spelled(value, exponent, zeros) for zeros in ("", "0", ".0", ".000")]))
    text = data.draw(st.sampled_from([text, text.removesuffix("e0")]))
    for other in (text, text + "1", text + "0", text[:-1], "0" + text, text.replace("e", ""), "-" + text):
        found, mantissa = accepts(grammar, other), re.split("[eE]", other)[0]
        exact = bool(NUMBER.fullmatch(other)) and exact_value(other) in exactly
        assert found <= exact, other
        # Long mantissas and those beyond the cap may be left out.
        if style.digits is None and len(mantissa) <= REACH:
            assert found == exact, other
    for node in rules.values():  # No rule is a dead end.
        assert getattr(node, "options", True)


@pytest.mark.parametrize("style", CAPPED, ids=str)
def test_every_beginning_can_be_finished(style: Style) -> None:
    values = [0, 7, 1200, -0.0625, 12345678, 3e-9, 5e21, 1e-5, *range(31, 40)]
    exactly = {Fraction(str(value)) for value in values}
    matcher = constrain_compile(Vocabulary.bytes(), grammar=to_grammar({"enum": values}, style=style)).matcher()
    todo = [b""]
    while todo:
        text = todo.pop()
        trial = matcher.fork()
        trial.advance_bytes(text)
        is_number = bool(NUMBER.fullmatch(text.decode())) and exact_value(text.decode()) in exactly
        assert trial.is_complete == is_number, text
        completion = trial.shortest_completion()
        assert completion is not None and exact_value((text + completion).decode()) in exactly, text
        if len(text) < 3:
            todo += [text + bytes((byte,)) for byte in b"0123456789.eE+-" if trial.allows(byte)]


@pytest.mark.parametrize("style", [Style(), Style(numbers="any"), Style.any()], ids=str)
@pytest.mark.parametrize("beside", [{"type": "integer"}, {"minimum": 3}, {"not": {"type": "integer"}}], ids=str)
def test_many_numbers_beside_other_keywords(style: Style, beside: dict[str, Any]) -> None:
    values = [k / 4 for k in range(40)]
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "enum": values, **beside}
    grammar = to_grammar(schema, style=style)
    for text in ("0", "-0", "2", "2.0", "20e-1", "5", "5.0", "5.25", "525e-2", "9.9", "0.25", "-5", "50"):
        value = Fraction(text)
        fits = value in values
        if "minimum" in beside:
            fits = fits and value >= 3
        elif text.lstrip("-").isdigit() != ("type" in beside):
            fits = False
        plain = style.numbers == "any" or text in {json.dumps(float(value)), decimal_text(value)}
        if plain or not fits:
            # In plain style an integer has no fraction, unless it must not be one.
            fits = fits and (style.numbers == "any" or "not" in beside or not text.endswith(".0"))
            assert accepts(grammar, text) == fits, text


def test_numbers_enumerated_at_every_position() -> None:
    values = [k * 5 for k in range(1_000)]
    schema = {
        "properties": {"a": {"enum": values}, "b": {"anyOf": [{"enum": values}, {"enum": ["x"]}, {"minimum": 10**6}]}},
        "required": ["a"],
    }
    grammar = to_grammar({"type": "object", **schema}, style=Style(numbers="any"))
    assert accepts(grammar, '{"a": 5e0, "b": 49.95e2}') and accepts(grammar, '{"a": 0.0, "b": "x"}')
    assert accepts(grammar, '{"a": 5, "b": 1000001}')
    assert not accepts(grammar, '{"a": 6}') and not accepts(grammar, '{"a": 5, "b": 4.995}')
    assert len(grammar.rules) < 100


PARTS = re.compile(r"-?(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE][+-]?[0-9]+)?")


@given(
    st.lists(st.decimals(-(10**6), 10**6, places=2) | st.integers(-99, 99).map(Decimal), min_size=9, max_size=30),
    st.sampled_from([Style.any(), Style(numbers="any"), Style(numbers="any", digits=4)]),
    st.booleans(),
    st.data(),
)
@settings(max_examples=50)
def test_all_but_many_numbers(values: list[Decimal], style: Style, only: bool, data: st.DataObject) -> None:
    values = [value for value in dict.fromkeys(values) if value > 0 or not only]
    grammar = to_grammar({"type": "number", "not": {"enum": [*values, *range(1_000, 1_010)]}}, style=style)
    listed = {*map(Fraction, values), *map(Fraction, range(1_000, 1_010))}
    value = data.draw(st.sampled_from([*values, Decimal(1_000), Decimal(0), Decimal("0.5")]))
    exponent = data.draw(st.integers(-9, 9) | st.just(0))
    text = spelled(value, exponent, data.draw(st.sampled_from(["", "0", ".0", ".000"])))
    text = data.draw(st.sampled_from([text, text.removesuffix("e0")]))
    for other in (text, text + "1", text + "0", text[:-1], "0" + text, text.replace("e", ""), "-" + text, "1" + text):
        parts = PARTS.fullmatch(other)
        fits = parts is not None and Fraction(other) not in listed
        if parts is not None and style.digits is not None:
            fits = fits and max(len(parts[1]), len(parts[2] or "")) <= style.digits
        assert accepts(grammar, other) == fits, other


@pytest.mark.parametrize("style", [Style.any(), Style(numbers="any", digits=1)], ids=str)
def test_only_an_enumerated_number_is_refused_at_its_end(style: Style) -> None:
    grammar = to_grammar({"type": "number", "not": {"enum": [*range(-9, 10), 12.5]}}, style=style)
    for begun in ("0", "-0", "-3", "3.0", "9"):
        matcher = Matcher(constrain_compile(Vocabulary.bytes(), grammar=grammar))
        matcher.advance_bytes(begun.encode())
        assert not matcher.is_complete
        assert matcher.allows(ord("e")) == (begun[-2:] not in ("0", "-0"))
        if begun[-2:] in ("0", "-0"):
            matcher.advance_bytes(b".")
            assert matcher.allows(ord("0")) == (style.digits is None)  # Else no digit would be left.
            matcher.advance_bytes(b"1")
        else:
            matcher.advance_bytes(b"e01")
        assert matcher.is_complete


class _Rules(dict[Any, Any]):
    """Rules that write themselves."""

    def __missing__(self, name: Any) -> Any:
        self[name] = name.node()
        return self[name]
