"""Smaller inputs with the same finding: parts are left out as long as the signature stays (delta debugging)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["minimised"]

TRIES = 400
"""Most checks that one minimisation may take."""


def minimised(value: Any, still: Callable[[Any], bool]) -> Any:
    """The smallest value found for which `still` holds; texts, bytes, lists, tuples and dicts are made smaller.

    A tuple keeps its length: it is what a strategy drew side by side.
    """
    left = TRIES
    smaller = True
    while smaller and left > 0:
        smaller = False
        for candidate in shrunk(value):
            left -= 1
            if still(candidate):
                value, smaller = candidate, True
                break
            if left <= 0:
                break
    return value


def shrunk(value: Any) -> Iterator[Any]:
    """Values with a part left out, the largest parts first."""
    if isinstance(value, (str, bytes, list)):
        whole: Any = value
        size = len(whole)
        while size:
            for start in range(0, len(whole), size):
                yield whole[:start] + whole[start + size :]
            size //= 2
    if isinstance(value, (list, tuple)):
        for at, part in enumerate(value):
            for smaller in shrunk(part):
                yield type(value)([*value[:at], smaller, *value[at + 1 :]])
    if isinstance(value, dict):
        for key in value:
            yield {other: part for other, part in value.items() if other != key}
        for key, part in value.items():
            for smaller in shrunk(part):
                yield {**value, key: smaller}
