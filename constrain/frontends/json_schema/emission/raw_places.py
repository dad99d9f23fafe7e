"""What the names of a raw subschema of a plain document say about how it is emitted (`document_rules`)."""

from __future__ import annotations

from typing import Any

from ..core.static_types import TYPES
from ..reading.name_summaries import (
    ANY_OF,
    ARRAY_BITS,
    ASSERTIONS,
    BOUND_BITS,
    CONST,
    ENUM,
    MAX_LENGTH,
    MIN_LENGTH,
    OBJECT_BITS,
    ONE_OF,
    OTHER,
    PATTERNS,
    TEXT_BITS,
    TYPE,
)
from ..reading.plain_values import read_valid_types
from .style_parts import BRACKETS

__all__ = ["ALTERNATIVES", "NOT_BRACKETS", "NOT_DIRECT", "Place", "has_brackets", "needs_rule"]

NOT_BRACKETS = ASSERTIONS & ~(TYPE | ARRAY_BITS | OBJECT_BITS) | OTHER
"""Bits of names of a subschema that is not an array or object alone, but for scalar types."""
NOT_DIRECT = NOT_BRACKETS & ~(TEXT_BITS | BOUND_BITS | PATTERNS)
"""Bits of names of a subschema that is more than types, bounds, and an object with a pattern of keys."""
ALTERNATIVES = ANY_OF | ONE_OF
NOT_LENGTHS = ASSERTIONS & ~(TYPE | MIN_LENGTH | MAX_LENGTH)
Place = tuple[dict[str, Any], int, tuple[str, ...], int]
"""A raw subschema, the number of the one around it, the names from there, and the bits of its own names."""


def has_brackets(place: Place) -> bool:
    """Return whether a subschema is emitted from the raw document and allows arrays or objects."""
    if place[3] & NOT_BRACKETS:
        return False
    types = place[0].get("type", "object")
    return types == "object" or types == "array" or bool(read_valid_types(types) & BRACKETS)


def needs_rule(place: Place) -> bool:
    """Return whether a subschema that is more than scalar types is emitted from the raw document as a rule."""
    raw, _, _, bits = place
    if bits & (OTHER | ENUM | CONST):
        return False
    return bool(bits & NOT_LENGTHS or (read_valid_types(raw["type"]) if "type" in raw else TYPES) & BRACKETS)
