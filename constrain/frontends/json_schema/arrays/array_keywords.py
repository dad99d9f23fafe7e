"""The keywords of arrays: their values are parsed here and become an `ArrayCase`."""

from __future__ import annotations

from typing import Any

from ....base.json_documents import kind_of
from ..core.keyword_context import SKIP, KeywordContext
from ..core.keyword_values import parse_minimum_count, parse_remainder_schema
from ..core.schema_sets import ANY
from ..shapes.array_case import ArrayCase, ContainsConstraint
from .array_cases import simplify_array

__all__ = ["ARRAY_KEYWORDS", "build_array_case", "parse_items", "parse_min_contains", "parse_unique_items"]

ARRAY_KEYWORDS = frozenset((
    "items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains",
    "maxContains",
))  # fmt: skip
"""The keywords that `build_array_case` reads."""


def parse_items(context: KeywordContext, name: str, value: Any) -> Any:
    """Parse `items`: one subschema for all items; before 2020-12 also a list, with one for each."""
    if isinstance(value, list) and context.draft < 2020:
        return [context.parse(item, name, index) for index, item in enumerate(value)]
    if isinstance(value, list):
        raise context.error("`items` is one schema in 2020-12, not an array.", name, hint="Use prefixItems.")
    return parse_remainder_schema(context, name, value)


def parse_unique_items(context: KeywordContext, name: str, value: Any) -> Any:
    """Parse `uniqueItems`; false asserts nothing."""
    if not isinstance(value, bool):
        raise context.error(f"`{name}` must be a boolean, not {kind_of(value)}.", name)
    return value or SKIP


def parse_min_contains(context: KeywordContext, name: str, value: Any) -> int:
    """Parse `minContains`. 0 is not skipped, since it replaces the lower bound 1 that `contains` has by default."""
    least = parse_minimum_count(context, name, value)
    return 0 if least is SKIP else int(least)


def build_array_case(keywords: dict[str, Any]) -> ArrayCase:
    """Return the case of the arrays that the parsed keywords allow."""
    items = keywords.get("items", ANY)
    prefix = keywords.get("prefixItems", ())
    if isinstance(items, list):  # Before 2020-12, `items` with a list was prefixItems, and additionalItems was `items`.
        prefix, items = tuple(items), keywords.get("additionalItems", ANY)
    contains: tuple[ContainsConstraint, ...] = ()
    if "contains" in keywords:  # Without it, minContains and maxContains assert nothing.
        contains = (
            ContainsConstraint(0, keywords["contains"], keywords.get("minContains", 1), keywords.get("maxContains")),
        )
    low, high = keywords.get("minItems", 0), keywords.get("maxItems")
    return simplify_array(ArrayCase(prefix, items, low, high, contains, keywords.get("uniqueItems", False)))
