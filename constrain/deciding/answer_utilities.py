"""Utilities: how well an answer serves where another one would have been right, for minimum Bayes risk decoding."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

__all__ = ["UTILITIES", "Utility", "compare_characters", "compare_fields"]

Utility = Callable[[str, str], float]
"""``utility(candidate, reference)``: larger for more alike."""

LONGEST = 6
"""Longest character n-gram that is compared."""


def compare_fields(candidate: str, reference: str) -> float:
    """Return the F1 of the leaves of two JSON values, each counted with its place; 1 if both have none.

    The place of an item of an array is the array, so that its order does not matter. A text that is not JSON is one
    leaf.
    """
    return measure_f1(Counter(list_leaves(read_value(candidate))), Counter(list_leaves(read_value(reference))))


def compare_characters(candidate: str, reference: str) -> float:
    """Return the mean F1 of the character n-grams of two texts, over lengths 1 to 6 that both can have."""
    longest = max(1, min(LONGEST, len(candidate), len(reference)))
    scores = [measure_f1(count_pieces(candidate, k), count_pieces(reference, k)) for k in range(1, longest + 1)]
    return sum(scores) / len(scores)


UTILITIES: Mapping[str, Utility] = {"fields": compare_fields, "characters": compare_characters}


def measure_f1(found: Counter[Hashable], wanted: Counter[Hashable]) -> float:
    """Return the F1 of two multisets; 1 if both are empty."""
    total = found.total() + wanted.total()
    return 2 * (found & wanted).total() / total if total else 1.0


def count_pieces(text: str, length: int) -> Counter[Hashable]:
    """Count the pieces of a length in a text."""
    return Counter(text[i : i + length] for i in range(len(text) - length + 1))


def read_value(text: str) -> Any:
    """Return the JSON value of a text, or the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def list_leaves(value: Any) -> Iterator[tuple[Hashable, ...]]:
    """Yield (keys that lead to it, type, text) of every leaf; an empty array or object is one."""
    stack: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while stack:
        place, inner = stack.pop()
        if isinstance(inner, dict) and inner:
            stack.extend(((*place, f"/{key}"), below) for key, below in inner.items())
        elif isinstance(inner, list) and inner:
            stack.extend(((*place, "[]"), below) for below in inner)
        else:
            number = isinstance(inner, (int, float)) and not isinstance(inner, bool)
            yield (place, float(inner) if number and abs(inner) < 2**53 else repr(inner))
