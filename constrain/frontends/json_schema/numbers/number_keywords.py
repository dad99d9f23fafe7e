"""The keywords of numbers: their values are parsed here and become a `NumberCase`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ....automata.numerals.decimals import as_decimal
from ....base.errors import LimitError
from ....base.json_documents import echo_value, kind_of
from ..core.json_values import parse_rational
from ..core.keyword_context import KeywordContext
from .number_sets import ONE, NumberCase, least_common_multiple

__all__ = [
    "NUMBER_KEYWORDS", "build_integer_case", "build_number_case", "parse_exclusive_bound", "parse_multiple_of",
    "parse_number",
]  # fmt: skip

NUMBER_KEYWORDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
"""The keywords that `build_number_case` reads."""


def parse_number(context: KeywordContext, name: str, value: Any) -> Fraction:
    """Parse a number exactly. Raise LimitError if it has too many digits for an automaton."""
    pointer = context.pointer(name)
    number = parse_rational(value, pointer)
    try:
        as_decimal(number)
    except LimitError as error:
        raise LimitError(error.cause, pointer=pointer, hint=error.hint) from None
    return number


def parse_exclusive_bound(context: KeywordContext, name: str, value: Any) -> Fraction | bool:
    """Parse `exclusiveMinimum` or `exclusiveMaximum`: a number; in draft 4 whether the inclusive bound is excluded."""
    if context.draft == 4:
        if not isinstance(value, bool):
            raise context.error(f"`{name}` is a boolean in draft 4, not {kind_of(value)}.", name)
        return value
    return parse_number(context, name, value)


def parse_multiple_of(context: KeywordContext, name: str, value: Any) -> Fraction:
    """Parse `multipleOf`: a number greater than 0."""
    step = parse_number(context, name, value)
    if step <= 0:
        raise context.error(f"`{name}` must be greater than 0, not {echo_value(value)}.", name)
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
    exclusive = keywords.get("exclusiveMinimum")
    if exclusive is True:
        low_open = low is not None
    elif exclusive is not None and exclusive is not False and (low is None or exclusive >= low):
        low, low_open = exclusive, True
    exclusive = keywords.get("exclusiveMaximum")
    if exclusive is True:
        high_open = high is not None
    elif exclusive is not None and exclusive is not False and (high is None or exclusive <= high):
        high, high_open = exclusive, True
    return NumberCase(None, low, low_open, high, high_open, keywords.get("multipleOf"))
