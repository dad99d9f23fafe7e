"""Many arrays or objects of one enum, represented as one case of a Shape."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.json_values import Constant

__all__ = ["MANY_VALUES", "EnumValues"]

MANY_VALUES = 100
"""Arrays or objects in one enum beyond which they are written as a trie; fewer become cases, for exact algebra."""


class EnumValues:
    """Different constants of one enum, all arrays or all objects (kind).

    Instances are equal only to themselves, so that the constants are never hashed.
    """

    def __init__(self, kind: int, values: Iterable[Constant]) -> None:
        self.kind = kind
        self.values = tuple(values)
        self._sets: dict[tuple[int, ...], tuple[int, ...]] = {}

    def subset(self, numbers: list[int]) -> tuple[int, ...]:
        """Return a subset, by index, as one shared tuple for equal subsets."""
        chosen = tuple(numbers)
        return self._sets.setdefault(chosen, chosen)
