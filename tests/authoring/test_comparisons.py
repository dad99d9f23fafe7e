"""Comparisons of languages against enumeration, and of samplers against exact distributions."""

from __future__ import annotations

import functools
import itertools
import json
import operator
import re
from math import isnan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain.authoring.comparisons import (
    build_language_page,
    build_sampler_page,
    compare_forms,
    compare_samplers,
    compare_schemas,
    describe_languages,
    describe_samplers,
    language_comparison,
)
from constrain.authoring.comparisons.comparison_report import share_rows
from constrain.authoring.comparisons.sampler_comparison import find_chance, find_distance
from tests.authoring.test_answers import HOSTILE, read_html
from tests.model_factory import TableModel

BYTES = constrain.Vocabulary.bytes()
jsonschema = pytest.importorskip("jsonschema")


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        ({"type": "integer"}, {"type": "number"}, "narrower"),
        ({"type": "number"}, {"type": "integer"}, "wider"),
        ({"enum": [1, 2]}, {"enum": [2, 1]}, "equal"),
        ({"enum": [1, 2]}, {"enum": [2, 3]}, "overlapping"),
        ({"type": "array", "uniqueItems": True}, {"type": "array"}, "narrower"),
        ({"items": {"$ref": "#"}}, {"items": {"type": ["array", "null"]}, "type": "array"}, "wider"),
        ({"not": {}}, {"type": "null"}, "narrower"),
        ({"$id": "http://x/y", "$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}},
         {"$id": "http://x/y", "const": None}, "equal"),
        ({"required": ["a"], "type": "object"}, {"minProperties": 1, "type": "object"}, "narrower"),
    ],
)  # fmt: skip
def test_schemas(first: Any, second: Any, relation: str) -> None:
    found = compare_schemas(first, second)
    assert found.relation == relation
    for inclusion, inner, outer in ((found.forward, first, second), (found.backward, second, first)):
        assert inclusion.method in ("decided", "empty")
        if inclusion.included is False:
            value = jsonschema_value(inclusion.example)
            assert accepts(inner, value) and not accepts(outer, value)


def jsonschema_value(text: str | None) -> Any:
    assert text is not None
    return json.loads(text)


def accepts(schema: Any, value: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


@pytest.mark.parametrize(
    ("first", "second", "relation", "examples"),
    [
        ("[a-z]+", "[a-z0-9]+", "narrower", (None, "0")),
        ("[a-c]+x", "[b-d]+x", "overlapping", ("ax", "dx")),
        ("(ab)*", "(ab)*", "equal", (None, None)),
        ("a?", "a", "wider", ("", None)),
    ],
)
def test_patterns(first: str, second: str, relation: str, examples: tuple[str | None, str | None]) -> None:
    found = compare_forms(constrain.regex(first), constrain.regex(second))
    assert (found.relation, (found.forward.example, found.backward.example)) == (relation, examples)


ATOMS = st.sampled_from(["a", "b", "ab", "[ab]", "(a|bb)", "a?", "b{0,2}"])


@settings(max_examples=40, deadline=None)
@given(st.lists(ATOMS, min_size=1, max_size=3), st.lists(ATOMS, min_size=1, max_size=3))
def test_patterns_against_all_short_texts(first: list[str], second: list[str]) -> None:
    """Oracle: `re` on all texts of up to 6 characters, beyond which these patterns have none."""
    patterns = "".join(first), "".join(second)
    texts = ["".join(one) for n in range(7) for one in itertools.product("ab", repeat=n)]
    languages = [{text for text in texts if re.fullmatch(pattern, text)} for pattern in patterns]
    found = compare_forms(constrain.regex(patterns[0]), constrain.regex(patterns[1]))
    assert found.forward.included == (languages[0] <= languages[1])
    assert found.backward.included == (languages[1] <= languages[0])
    for inclusion, missing in (
        (found.forward, languages[0] - languages[1]),
        (found.backward, languages[1] - languages[0]),
    ):
        if missing:
            assert inclusion.example in missing and len(inclusion.example or "") == min(map(len, missing))


def test_undecidable_inclusion_is_sampled_and_reported_as_such() -> None:
    first, second = constrain.lark('start: "a" start "b" | "ab"'), constrain.lark('start: "a" start "b" | "ab" | "c"')
    found = compare_forms(first, second, samples=40)
    assert found.forward.included is None and found.forward.method == "sampled" and found.forward.reason
    assert found.backward.included is False and found.backward.example is not None and "c" in found.backward.example
    assert found.relation == "unknown"
    assert any("proves nothing" in line for line in describe_languages(found))


def make_choices(texts: list[str]) -> constrain.Form:
    """The form of some texts."""
    return functools.reduce(operator.or_, map(constrain.literal, texts))


def test_few_texts_are_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        return language_comparison.Inclusion(None, "decided", reason="not tried")

    monkeypatch.setattr(language_comparison, "_decide", refuse)
    few, more = make_choices(["1", "2"]), make_choices(["1", "2", "3"])
    found = compare_forms(few, more)
    assert (found.forward.included, found.forward.method, found.forward.checked) == (True, "enumerated", 2)
    assert (found.backward.included, found.backward.example) == (False, "3")


def test_styles() -> None:
    schema = {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}
    compact, loose = (
        constrain.json_schema(schema, style=constrain.Style(whitespace=w)) for w in ("compact", "flexible")
    )
    found = compare_forms(compact, loose)
    assert found.relation == "narrower" and found.backward.method == "decided"


def test_errors_of_the_schemas_are_raised() -> None:
    with pytest.raises(constrain.SchemaError):
        compare_schemas({"type": "intger"}, True)


# ---- samplers ----------------------------------------------------------------------------------------------------


def compared(*samplers: str, choices: list[str] | None = None, n: int = 300) -> Any:
    constraint = constrain.compile(BYTES, choices=choices or ["aa", "ab", "b"])
    options = {"smc": {"particles": 8}}
    return compare_samplers(
        TableModel(257, 5), constraint, samplers, n=n, rng=np.random.default_rng(0), max_tokens=6, options=options
    )


def test_samplers_against_exact_probabilities() -> None:
    model = TableModel(257, 5)
    logs = {text: model.logprob([*text.encode(), 256]) for text in ("aa", "ab", "b")}
    total = np.logaddexp.reduce(list(logs.values()))
    found = compared("masked", "exact", n=2000)
    exact = found.rows[1]
    for text, log in logs.items():
        assert exact.shares.get(text, 0.0) == pytest.approx(np.exp(log - total), abs=0.06)
    assert exact.distortion == 0 and found.rows[0].distortion >= 0
    assert found.distance == pytest.approx(find_distance(found.rows[0].shares, exact.shares))


def test_equal_samplers_are_as_far_apart_as_chance() -> None:
    found = compared("exact", "exact", n=500)
    assert found.distance < 3 * found.chance + 0.02
    assert not isnan(found.chance)


def test_weights_count_where_draws_mean_nothing_without() -> None:
    found = compared("masked", "smc", n=32)
    assert [row.by_weight for row in found.rows] == [False, True]
    assert isnan(found.chance) and isnan(found.rows[1].distortion)
    assert any("smc are counted by their weights" in line for line in describe_samplers(found))


def test_distance_and_chance() -> None:
    assert find_distance({"a": 1.0}, {"b": 1.0}) == 1 and find_distance({"a": 0.5, "b": 0.5}, {"a": 1.0}) == 0.5
    rng = np.random.default_rng(0)
    assert find_chance(["a"] * 9, ["a"] * 9, rng) == 0
    assert 0.5 < find_chance([str(k) for k in range(9)], [str(k) for k in range(9, 18)], rng) <= 1


def test_wrong_samplers() -> None:
    with pytest.raises(constrain.ArgumentError, match="two samplers"):
        compared("masked")
    with pytest.raises(constrain.UnsupportedError, match="no sampler 'nope'"):
        compared("masked", "nope")


def test_pages_of_hostile_texts() -> None:
    constraint = constrain.compile(BYTES, choices=[HOSTILE, "<b>"])
    found = compare_samplers(
        TableModel(257, 5), constraint, ("masked", "masked"), n=8, rng=np.random.default_rng(0), max_tokens=90
    )
    page = read_html(build_sampler_page(found))
    assert sum(tag == "svg" for tag, _ in page.tags) == 1
    read_html(found._repr_html_())
    languages = compare_forms(constrain.literal(HOSTILE), constrain.literal("x"), names=(HOSTILE, "<i>"))
    assert "script" in read_html(build_language_page(languages)).text
    read_html(languages._repr_html_())


def test_many_answers_are_cut_and_counted() -> None:
    constraint = constrain.compile(BYTES, regex="[a-z]{2}")
    found = compare_samplers(
        TableModel(257, 5), constraint, ("masked", "exact"), n=100, rng=np.random.default_rng(0), max_tokens=4
    )
    assert len(share_rows(found)) == 12
    assert "12 likeliest of" in read_html(found._repr_html_()).text
