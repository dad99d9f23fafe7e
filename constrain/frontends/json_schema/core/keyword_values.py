"""Parsers of keyword values that several groups of keywords share: counts, subschemas, references.

Those of one group are in its package: `arrays.array_keywords`, `numbers.number_keywords`, `objects.object_keywords`,
`strings.string_keywords`, `algebra.value_keywords`. `keyword_context` defines their interface.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from ....base.errors import LimitError
from ....base.json_documents import MOST_DIGITS, echo_value, kind_of, pointer_token
from . import json_values
from .keyword_context import SKIP, KeywordContext
from .schema_sets import ANY, SchemaSet

__all__ = [
    "parse_dynamic_reference", "parse_maximum_count", "parse_minimum_count", "parse_reference",
    "parse_remainder_schema", "parse_schema", "parse_schema_list", "parse_schema_map",
]  # fmt: skip

MOST_COUNT = 2**31 - 1
"""The largest count that the registers of the automaton hold."""


def parse_count(context: KeywordContext, name: str, value: Any) -> int:
    """Parse a count: an integer from 0 on, which may also be written as 2.0. Return at most MOST_COUNT + 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)) or value != value or not value >= 0:
        raise context.error(f"`{name}` must be a non-negative integer, not {echo_value(value)}.", name)
    if value > MOST_COUNT:
        return MOST_COUNT + 1
    if value != int(value) or (isinstance(value, Decimal) and value.adjusted() < -MOST_DIGITS):
        raise context.error(f"`{name}` must be a non-negative integer, not {echo_value(value)}.", name)
    return int(value)


def parse_minimum_count(context: KeywordContext, name: str, value: Any) -> Any:
    """Parse a lower bound of a count; 0 asserts nothing."""
    least = parse_count(context, name, value)
    if least > MOST_COUNT:
        raise LimitError(
            f"`{name}` is greater than {MOST_COUNT}.", pointer=context.pointer(name), hint="Write a smaller number."
        )
    return least or SKIP


def parse_maximum_count(context: KeywordContext, name: str, value: Any) -> Any:
    """Parse an upper bound of a count; one that no text of less than 2 GB can exceed asserts nothing."""
    most = parse_count(context, name, value)
    return SKIP if most > MOST_COUNT else most


def parse_schema(context: KeywordContext, name: str, value: Any) -> SchemaSet:
    """Parse one subschema."""
    return context.parse(value, name)


def parse_remainder_schema(context: KeywordContext, name: str, value: Any) -> Any:
    """Parse a subschema for the remaining items or keys; `true` asserts nothing, but from 2019-09 on it evaluates."""
    schemas = context.parse(value, name)
    return SKIP if schemas == ANY and context.draft < 2019 else schemas


def parse_schema_list(context: KeywordContext, name: str, value: Any) -> tuple[SchemaSet, ...]:
    """Parse a non-empty list of subschemas."""
    if not isinstance(value, list) or not value:
        raise context.error(f"`{name}` must be a non-empty array of schemas.", name)
    parse, scope, pointer = context.parser.parse_subschema, context.scope, context.pointer(name)
    return tuple([parse(item, scope, f"{pointer}/{index}") for index, item in enumerate(value)])


def parse_schema_map(context: KeywordContext, name: str, value: Any) -> dict[str, SchemaSet]:
    """Parse subschemas by key."""
    if not isinstance(value, dict):
        raise context.error(f"`{name}` must be an object of schemas, not {kind_of(value)}.", name)
    parse, scope, pointer = context.parser.parse_subschema, context.scope, context.pointer(name)
    keys = "".join(value)
    if keys.isascii() and "/" not in keys and "~" not in keys:
        return {key: parse(item, scope, f"{pointer}/{key}") for key, item in value.items()}
    return {
        json_values.check_text(key, pointer): parse(item, scope, f"{pointer}/{pointer_token(key)}")
        for key, item in value.items()
    }


def parse_reference(context: KeywordContext, name: str, value: Any) -> SchemaSet:
    """Parse `$ref`: the subschema that it names."""
    return context.parser.follow_reference(value, context.scope, context.pointer(name))


def parse_dynamic_reference(context: KeywordContext, name: str, value: Any) -> SchemaSet:
    """Parse `$dynamicRef` or `$recursiveRef`: the subschema that it names in its dynamic scope."""
    return context.parser.follow_dynamic_reference(value, context.scope, context.pointer(name))
