"""Minimise inputs: leave out parts while the finding has the same signature (delta debugging)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["minimise_input"]

TRIES = 400
"""Maximum number of checks of a minimisation."""


def minimise_input(value: Any, holds: Callable[[Any], bool]) -> Any:
    """Return the smallest value found for which `holds` is true, by shortening texts, bytes, lists and dicts.

    Tuples keep their length, since they are the arguments of a strategy.
    """
    left = TRIES
    smaller = True
    while smaller and left > 0:
        smaller = False
        for candidate in list_smaller_inputs(value):
            left -= 1
            if holds(candidate):
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
