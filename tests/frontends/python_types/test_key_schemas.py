"""Patterns of numbers as keys, against their definition."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given, settings, strategies as st

from constrain.frontends.key_schemas import build_key_schema

BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")


@given(
    st.sampled_from(["integer", "number"]),
    st.dictionaries(st.sampled_from(BOUNDS), st.integers(-30, 30) | st.integers(-2000, 2000), max_size=3),
    st.lists(st.integers(-16000, 16000), max_size=10),
)
@settings(max_examples=100, deadline=None)
def test_number_keys_respect_bounds(kind: str, bounds: dict[str, int], eighths: list[int]) -> None:
    pattern = build_key_schema({"type": kind, **bounds}, lambda ref: None)["pattern"]
    near = [bound + step for bound in bounds.values() for step in (-1, -0.5, 0, 0.5, 1)]
    for number in [*near, *(number / 8 for number in eighths)]:
        text = str(number).removesuffix(".0")
        assert text == "-0" or bool(re.search(pattern, text)) == is_within(kind, bounds, number), (pattern, text)


def is_within(kind: str, bounds: dict[str, Any], number: float) -> bool:
    return (
        (kind == "number" or number == int(number))
        and number >= bounds.get("minimum", number)
        and number <= bounds.get("maximum", number)
        and number > bounds.get("exclusiveMinimum", number - 1)
        and number < bounds.get("exclusiveMaximum", number + 1)
    )
