"""The whole front end: a text is in the Grammar exactly if `jsonschema` finds its value valid."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st

from constrain.base.errors import LimitError, SchemaError, UnsatisfiableError, UnsupportedError
from constrain.base.options import Limits, Style
from constrain.frontends.json_schema import to_grammar
from tests.dead_end_oracle import dead_parts
from tests.recogniser_oracle import accepts
from tests.schema_strategies import schemas, valid, values

EVERYTHING = Style.any()
FEW_CASES = Limits(cases=64)


@settings(max_examples=90)
@given(schemas, st.lists(values, min_size=1, max_size=6))
def test_accepts_exactly_the_instances(schema: Any, instances: list[Any]) -> None:
    try:
        grammar = to_grammar(schema, style=EVERYTHING, limits=FEW_CASES)
    except UnsatisfiableError:
        grammar = None
    except (UnsupportedError, LimitError):
        assume(False)
    for value in instances:
        accepted = grammar is not None and accepts(grammar, json.dumps(value))
        assert accepted == valid(schema, value), value


@settings(max_examples=60)
@given(schemas, values, st.sampled_from(["flexible", "compact", 2]))
def test_the_default_style_writes_only_instances(schema: Any, value: Any, whitespace: Any) -> None:
    """Whatever of the compact, indented or spaced texts of a value is accepted, the value is an instance."""
    try:
        grammar = to_grammar(schema, style=Style(whitespace=whitespace), limits=FEW_CASES)
    except (UnsatisfiableError, UnsupportedError, LimitError):
        assume(False)
    for text in (json.dumps(value), json.dumps(value, separators=(",", ":")), json.dumps(value, indent=2)):
        if accepts(grammar, text):
            assert valid(schema, value)


@settings(max_examples=100)
@given(schemas, st.sampled_from([Style(), Style.any()]))
def test_nothing_that_is_written_is_a_dead_end(schema: Any, style: Style) -> None:
    try:
        grammar = to_grammar(schema, style=style, limits=FEW_CASES)
    except (UnsatisfiableError, UnsupportedError, LimitError):
        assume(False)
    assert dead_parts(grammar) == []


def test_json_text_preserves_digits() -> None:
    grammar = to_grammar('{"type": "integer", "minimum": 12345678901234567890123, "maximum": 12345678901234567890123}')
    assert accepts(grammar, "12345678901234567890123")
    assert not accepts(grammar, "12345678901234567890122")
    tiny = to_grammar('{"const": 0.1000000000000000000001}')
    assert accepts(tiny, "0.1000000000000000000001")
    assert not accepts(tiny, "0.1")


def test_json_text_that_is_none_has_a_caret() -> None:
    with pytest.raises(SchemaError) as caught:
        to_grammar('{"type": "string"\n "minLength": 1}')
    assert "line 2, column 2" in str(caught.value)


def test_of_two_equal_keys_the_later_one_counts() -> None:
    assert accepts(to_grammar('{"type": "string", "type": "null"}'), "null")


@pytest.mark.parametrize("schema", [[], 3, None, '"text"'])
def test_a_schema_is_an_object_or_a_boolean(schema: Any) -> None:
    with pytest.raises(SchemaError):
        to_grammar(schema)


def test_rules_are_emitted_on_demand_and_cached() -> None:
    grammar = to_grammar({"type": "array", "items": {"$ref": "#"}})
    assert len(grammar.rules) == 0
    name = grammar.start.name  # type: ignore[union-attr]
    assert grammar.rules[name] is grammar.rules[name]
    assert list(grammar.rules) == [name]


def test_public_schemas(shared: Path) -> None:
    """A slice of the public benchmark: every instance is accepted or rejected as labelled."""
    judged = 0
    with gzip.open(shared / "data" / "maskbench-dev.jsonl.gz", "rt") as lines:
        for number, line in enumerate(lines):
            if number % 60:
                continue
            entry = json.loads(line)
            try:
                grammar = to_grammar(entry["schema"], style=EVERYTHING)
            except (UnsupportedError, UnsatisfiableError, LimitError, SchemaError):
                continue
            for test in entry["tests"]:
                assert accepts(grammar, json.dumps(test["data"])) == test["valid"], entry["id"]
                judged += 1
    assert judged > 200
