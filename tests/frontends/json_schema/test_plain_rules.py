"""Plain subschemas are emitted from their keywords as the algebra would have them emitted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from constrain import Limits, Style
from constrain.frontends.json_schema.algebra.shape_algebra import ShapeAlgebra
from constrain.frontends.json_schema.emission import emitter as emission
from constrain.frontends.json_schema.emission.emitter import LazyRules, SchemaEmitter
from constrain.frontends.json_schema.emission.reachability import check_reachable
from constrain.frontends.json_schema.reading.schema_parser import SchemaParser
from constrain.grammar.nodes import Node, Rule

STYLES = [Style(), Style.any(), Style(whitespace=2), Style(whitespace="compact", key_order="any")]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
NAMES = ["a", "b", "é", 'q"', "a!", ""]
LEAVES = st.sampled_from([
    {"type": "string"}, {"type": ["null", "integer"]}, {"enum": ["x", "y\n", "é"]}, {"const": "k"}, {"enum": ["x", 1]},
    {"type": "string", "enum": ["b", "a"]}, {"type": "string", "maxLength": 3}, {"pattern": "^a"}, {}, True,
    {"type": ["array", "string"]}, {"type": "object"},
])  # fmt: skip


def plain_schemas(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw subschemas of the keywords that are emitted without a Shape."""
    keywords = {
        "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
        "properties": st.dictionaries(st.sampled_from(NAMES), values, max_size=4),
        "required": st.lists(st.sampled_from(NAMES), unique=True, max_size=3),
        "additionalProperties": values | st.booleans(),
        "items": values,
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(0, 3),
    }
    return st.fixed_dictionaries({}, optional=keywords)


def emit_all(schema: Any, style: Style) -> list[Node] | None:
    """Return the start and the rules that a schema reaches, in the order in which they are first referenced."""
    parser = SchemaParser(schema, None, style, Limits())
    algebra = ShapeAlgebra(parser, style, Limits())
    if not algebra.is_satisfiable(parser.root):
        return None
    rules = LazyRules(SchemaEmitter(algebra, style, check_reachable(algebra, (parser.root,))), False)
    pending: list[Any] = [Rule((parser.root, 0))]
    seen, emitted = set(), list[Node]()
    while pending and len(emitted) < 60:
        part = pending.pop()
        if isinstance(part, Rule) and part.name not in seen and type(part.name) is tuple:
            seen.add(part.name)
            emitted.append(rules[part.name])
            pending.append(emitted[-1])
        elif hasattr(part, "__dataclass_fields__"):
            pending += [getattr(part, field) for field in part.__dataclass_fields__ if field != "dfa"]
        elif isinstance(part, tuple):
            pending += part
    return emitted


@pytest.mark.parametrize("style", STYLES, ids=repr)
@given(schema=st.recursive(LEAVES, plain_schemas, max_leaves=6))
def test_plain_values_are_those_of_the_algebra(style: Style, schema: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(emission, "emit_plain_options", lambda *_: None)
        patch.setattr(emission, "list_texts", lambda *_: None)
        by_algebra = emit_all(schema, style)
    assert emit_all(schema, style) == by_algebra
