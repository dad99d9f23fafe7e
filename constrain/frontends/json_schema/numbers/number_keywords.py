"""The keywords of numbers: their values are parsed here and become a `NumberCase`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ....base.json_documents import echo_value, kind_of
from ..core.json_values import parse_rational
from ..core.keyword_place import KeywordPlace
from .number_sets import ONE, NumberCase, least_common_multiple

__all__ = [
    "NUMBER_KEYWORDS", "build_integer_case", "build_number_case", "parse_exclusive_bound", "parse_multiple_of",
    "parse_number",
]  # fmt: skip

NUMBER_KEYWORDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
"""The keywords that `build_number_case` reads."""


def parse_number(place: KeywordPlace, name: str, value: Any) -> Fraction:
    """Parse a number exactly."""
    return parse_rational(value, place.pointer(name))


def parse_exclusive_bound(place: KeywordPlace, name: str, value: Any) -> Fraction | bool:
    """Parse `exclusiveMinimum` or `exclusiveMaximum`: a number; in draft 4 whether the inclusive bound is excluded."""
    if place.draft == 4:
        if not isinstance(value, bool):
            raise place.error(f"`{name}` is a boolean in draft 4, not {kind_of(value)}.", name)
        return value
    return parse_rational(value, place.pointer(name))


def parse_multiple_of(place: KeywordPlace, name: str, value: Any) -> Fraction:
    """Parse `multipleOf`: a number greater than 0."""
    step = parse_rational(value, place.pointer(name))
    if step <= 0:
        raise place.error(f"`{name}` must be greater than 0, not {echo_value(value)}.", name)
    return step


def build_integer_case(keywords: dict[str, Any], draft: int) -> NumberCase:
    """Return the case of the integers that the parsed keywords allow; draft 4 defines integers by their spelling."""
    case = build_number_case(keywords)
    multiple = ONE if case.multiple is None else least_common_multiple(ONE, case.multiple)
    return case._replace(multiple=multiple, spelling="integer" if draft == 4 else None)


def build_number_case(keywords: dict[str, Any]) -> NumberCase:
    """Return the case of the numbers that the parsed keywords allow."""
    low, high = keywords.get("minimum"), keywords.get("maximum")
    low_open = high_open = False
    edge = keywords.get("exclusiveMinimum")
    if edge is True:
        low_open = low is not None
    elif edge is not None and edge is not False and (low is None or edge >= low):
        low, low_open = edge, True
    edge = keywords.get("exclusiveMaximum")
    if edge is True:
        high_open = high is not None
    elif edge is not None and edge is not False and (high is None or edge <= high):
        high, high_open = edge, True
    return NumberCase(None, low, low_open, high, high_open, keywords.get("multipleOf"))
