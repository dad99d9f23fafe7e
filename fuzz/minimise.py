"""Smaller inputs with the same finding: parts are left out as long as the signature stays (delta debugging)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["minimise_input"]

TRIES = 400
"""Most checks that one minimisation may take."""


def minimise_input(value: Any, still: Callable[[Any], bool]) -> Any:
    """Return the smallest value found for which `still` holds; texts, bytes, lists, tuples and dicts are made smaller.

    A tuple keeps its length: it is what a strategy drew side by side.
    """
    left = TRIES
    smaller = True
    while smaller and left > 0:
        smaller = False
        for candidate in list_smaller_inputs(value):
            left -= 1
            if still(candidate):
                value, smaller = candidate, True
                break
            if left <= 0:
                break
    return value


def list_smaller_inputs(value: Any) -> Iterator[Any]:
    """Yield values with a part left out, the largest parts first."""
    if isinstance(value, (str, bytes, list)):
        whole: Any = value
        size = len(whole)
        while size:
            for start in range(0, len(whole), size):
                yield whole[:start] + whole[start + size :]
            size //= 2
    if isinstance(value, (list, tuple)):
        for at, part in enumerate(value):
            for smaller in list_smaller_inputs(part):
                yield type(value)([*value[:at], smaller, *value[at + 1 :]])
    if isinstance(value, dict):
        for key in value:
            yield {other: part for other, part in value.items() if other != key}
        for key, part in value.items():
            for smaller in list_smaller_inputs(part):
                yield {**value, key: smaller}
