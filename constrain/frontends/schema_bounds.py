"""Bounds of Python types as keywords of JSON Schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["BOUNDS", "LENGTHS", "add_bounds", "add_digits", "has_keyword"]

Schema = dict[str, Any]

BOUNDS = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "multiple_of": "multipleOf",
}
"""Map from attributes of `annotated_types` and of Pydantic's fields to JSON Schema keywords for numbers."""

LENGTHS = {
    "min_length": {"string": "minLength", "array": "minItems", "object": "minProperties"},
    "max_length": {"string": "maxLength", "array": "maxItems", "object": "maxProperties"},
}
"""Map from length attributes to the keywords of the types that have a length."""

TIGHTER: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}
"""How two values of a keyword are one; two of any other are an `allOf`."""

MOST_PLACES = 64
"""Most digits of a decimal of which cases are made."""


def add_bounds(schema: Schema, bounds: Schema, lengths: dict[str, int]) -> Schema:
    """Return a schema with further keywords for numbers and strings, and bounds of length for what has a length.

    The options of a union have them, so that each is written for its own type: null has no length.
    """
    if schema.keys() == {"anyOf"}:
        return {"anyOf": [add_bounds(option, bounds, lengths) for option in schema["anyOf"]]}
    if "$ref" in schema:
        schema = {"allOf": [schema]}
    kind = schema.get("type")
    added = dict(bounds)
    for name, length in lengths.items():
        added.update({keyword: length for one, keyword in LENGTHS[name].items() if kind in (None, one)})
    kept = dict(schema)
    for keyword, value in added.items():
        if keyword not in kept:
            kept[keyword] = value
        elif keyword in TIGHTER:
            kept[keyword] = TIGHTER[keyword](kept[keyword], value)
        else:
            kept["allOf"] = [*kept.get("allOf", ()), {keyword: value}]
    return kept


def has_keyword(schema: Schema, name: str) -> bool:
    """Return whether a keyword of numbers, `pattern`, or a key of LENGTHS can say anything about a schema's values."""
    if "anyOf" in schema:
        return any(has_keyword(option, name) for option in schema["anyOf"])
    kinds = LENGTHS.get(name, ("string",) if name == "pattern" else ("number", "integer"))
    return schema.get("type") is None or schema["type"] in kinds


def add_digits(schema: Schema, most: int | None, places: int | None) -> Schema:
    """Return the schema of a decimal with at most so many digits in all, and after the point.

    Zeros between the point and the first other digit count, and those before the point do not. Without `places`, there
    is a case for each number of digits after the point; if they are too many, the schema allows some decimals with more
    digits than `most`: up to `most` on either side.
    """
    if most is not None and places is None and most <= MOST_PLACES:
        return add_bounds(schema, {"anyOf": [add_digits({}, most, count) for count in range(most + 1)]}, {})
    before = most if places is None else None if most is None else max(most - places, 0)
    after = min((count for count in (most, places) if count is not None), default=None)
    bounds: Schema = {}
    if after is not None:
        bounds["multipleOf"] = float(f"1e-{after}") if after else 1
    if before is not None:
        bounds.update(exclusiveMinimum=-(10**before), exclusiveMaximum=10**before)
    return add_bounds(schema, bounds, {})
