"""Strategies of small JSON Schemas and of values for them, and the verdict of `jsonschema`.

Names, texts and numbers come from small sets, so that keywords overlap, exclude each other and are satisfied by chance.
A schema may refer to itself within `properties` and `items`, but not for the same value.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from jsonschema import Draft4Validator, Draft7Validator, Draft201909Validator, Draft202012Validator

__all__ = ["NAMES", "TEXTS", "counting", "evaluating", "item_values", "schemas", "valid", "values"]

NAMES = ["a", "b", "ab", "c"]
TEXTS = ["", "a", "b", "ab", "ba", "aab", "é", "c😀", 'q"\\']
PATTERNS = ["^a", "b$", "a+b", "^[ab]{2,3}$", "^(a|b)*$", "^", "^.$", "^[^a]"]
NUMBERS = [-2, -1, 0, 1, 2, 3, 4, 6, 0.5, 1.5, -0.25, 2.0]
STEPS = [1, 2, 3, 0.5]
DIALECTS = {
    "http://json-schema.org/draft-04/schema#": Draft4Validator,
    "http://json-schema.org/draft-07/schema#": Draft7Validator,
    "https://json-schema.org/draft/2019-09/schema": Draft201909Validator,
    "https://json-schema.org/draft/2020-12/schema": Draft202012Validator,
}


def valid(schema: Any, value: Any) -> bool:
    """Return the verdict of the `jsonschema` package, in the dialect of the schema."""
    name = schema.get("$schema", "") if isinstance(schema, dict) else ""
    return DIALECTS.get(name, Draft202012Validator)(schema).is_valid(value)  # type: ignore[no-any-return]


scalars = st.one_of(st.none(), st.booleans(), st.sampled_from(NUMBERS), st.sampled_from(TEXTS))
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from([*NAMES, "d"]), inner, max_size=4)
    ),
    max_leaves=6,
)

small = st.integers(0, 3)
types = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
typing = st.one_of(
    st.fixed_dictionaries({"type": types}), st.fixed_dictionaries({"type": st.lists(types, min_size=1, max_size=3)})
)
constants = st.one_of(
    st.fixed_dictionaries({"const": values}), st.fixed_dictionaries({"enum": st.lists(values, min_size=1, max_size=4)})
)
numeric = st.fixed_dictionaries(
    {},
    optional={
        "minimum": st.sampled_from(NUMBERS), "maximum": st.sampled_from(NUMBERS),
        "exclusiveMinimum": st.sampled_from(NUMBERS), "exclusiveMaximum": st.sampled_from(NUMBERS),
        "multipleOf": st.sampled_from(STEPS),
    },
)  # fmt: skip
textual = st.fixed_dictionaries(
    {}, optional={"minLength": small, "maxLength": small, "pattern": st.sampled_from(PATTERNS)}
)


def lists(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of keywords for arrays."""
    return st.fixed_dictionaries(
        {},
        optional={
            "prefixItems": st.lists(inner, min_size=1, max_size=2), "items": inner, "minItems": small,
            "maxItems": small, "contains": inner,
        },
    )  # fmt: skip


def maps(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of keywords for objects."""
    names = st.sampled_from(NAMES)
    return st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(names, inner, max_size=3),
            "required": st.lists(names, max_size=2, unique=True),
            "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), inner, max_size=2),
            "additionalProperties": inner,
            "propertyNames": st.one_of(textual, inner),
            "minProperties": small,
            "maxProperties": small,
            "dependentRequired": st.dictionaries(names, st.lists(names, max_size=2, unique=True), max_size=2),
        },
    )


def combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of combinations of schemas for the same value."""
    some = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.fixed_dictionaries({"anyOf": some}), st.fixed_dictionaries({"allOf": some}),
        st.fixed_dictionaries({"oneOf": some}), st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries({"if": inner}, optional={"then": inner, "else": inner}),
        st.fixed_dictionaries({"dependentSchemas": st.dictionaries(st.sampled_from(NAMES), inner, max_size=2)}),
    )  # fmt: skip


def merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one schema with the keywords of several."""
    whole: dict[str, Any] = {}
    for part in parts:
        whole.update(part)
    return whole


def refer_to_root(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy of subschemas for another value, which may be references to the root."""
    return st.one_of(inner, st.just({"$ref": "#"}))


leaves: st.SearchStrategy[Any] = st.one_of(st.booleans(), typing, constants, numeric, textual)


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy of schemas with subschemas."""
    parts = st.one_of(
        typing, constants, numeric, textual, lists(refer_to_root(inner)), maps(refer_to_root(inner)), combined(inner)
    )
    return st.lists(parts, min_size=1, max_size=3).map(merged)


schemas: st.SearchStrategy[Any] = st.recursive(leaves, larger, max_leaves=8)

# `unevaluated*` at the top, where they see what branches evaluate, and now and then within a branch.
left_over = st.fixed_dictionaries({}, optional={"unevaluatedProperties": leaves, "unevaluatedItems": leaves})
bracketed = st.one_of(maps(leaves), lists(leaves))
branches = st.lists(st.one_of(bracketed, bracketed, left_over, combined(bracketed)), min_size=1, max_size=2).map(merged)
evaluating: st.SearchStrategy[Any] = st.builds(
    lambda parts, left: merged([*parts, left]),
    st.lists(st.one_of(bracketed, combined(branches)), min_size=1, max_size=3), left_over.filter(bool),
)  # fmt: skip


# ---- arrays of which items are counted or must differ ----------------------------------------------------------

item_schemas: st.SearchStrategy[Any] = st.one_of(
    st.booleans(), typing, st.sampled_from([
        {"const": 1}, {"const": "a"}, {"enum": [1, "a"]}, {"enum": ["a", "b", 1]}, {"enum": [[1], [2], 1]},
        {"minimum": 2}, {"not": {"const": 1}}, {"type": "integer", "minimum": 1, "maximum": 2},
        {"type": "array", "items": {"const": 1}, "maxItems": 1}, {"contains": {"const": 1}, "uniqueItems": True},
    ]),
)  # fmt: skip
one_list = st.fixed_dictionaries(
    {},
    optional={
        "prefixItems": st.lists(item_schemas, min_size=1, max_size=2), "items": item_schemas, "minItems": small,
        "maxItems": st.integers(0, 4), "contains": item_schemas, "minContains": small, "maxContains": small,
        "uniqueItems": st.booleans(),
    },
)  # fmt: skip
counting: st.SearchStrategy[Any] = st.one_of(
    one_list, st.fixed_dictionaries({"allOf": st.lists(one_list, min_size=2, max_size=2)}),
    st.builds(lambda one, other: {"allOf": [one, {"not": other}]}, one_list, one_list),
    st.fixed_dictionaries({"oneOf": st.lists(one_list, min_size=2, max_size=2)}),
    st.fixed_dictionaries({"if": one_list, "then": one_list, "else": one_list}),
)  # fmt: skip
item_values = st.lists(st.sampled_from([1, 2, "a", "b", True, None, [1], [1, 2], 1.0]), max_size=5)
"""Schemas for arrays, and arrays that are often instances of them."""
