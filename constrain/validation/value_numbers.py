"""Exact numbers of an instance, and equality of JSON values by numbers: equal values have equal numbers.

A value is numbered from the numbers of its parts, which takes time proportional to its size once, however many
`uniqueItems` and `enum` compare it. Numbers are exact rationals, so 1 and 1.0 are equal, and 1 and true are not.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Any

from ..base.work import spend_work
from ..frontends.json_schema.core.json_values import ARRAY, NUMBER, OBJECT, Constant, parse_rational
from .instance_tree import InstanceItem

__all__ = ["ValueNumbers"]


class ValueNumbers:
    """The numbers of values that occur in one validation."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._of_items: dict[int, int] = {}
        self._rationals: dict[int, Fraction] = {}

    def rational(self, item: InstanceItem) -> Fraction:
        """Return the exact value of a number. Raise LimitError if it has too many digits."""
        known = self._rationals.get(item.index)
        if known is None:
            known = self._rationals[item.index] = parse_rational(item.value, item.pointer)
        return known

    def of_item(self, item: InstanceItem) -> int:
        """Return the number of the value of an item."""
        known = self._of_items.get(item.index)
        if known is not None:
            return known
        stack = [item]
        while stack:
            top = stack[-1]
            children = top.children.values() if top.kind == OBJECT else top.children
            missing = [child for child in children if child.index not in self._of_items]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            self._of_items[top.index] = self._number(self._key(top))
        return self._of_items[item.index]

    def of_constant(self, constant: Constant) -> int:
        """Return the number of a constant of a schema (`json_values.to_constant`)."""
        numbers: dict[int, int] = {}  # by identity: the constant stays alive, and hashing it would be recursive
        stack = [constant]
        while stack:
            top = stack[-1]
            parts = [] if top[0] not in (ARRAY, OBJECT) else [part[1] if top[0] == OBJECT else part for part in top[1]]
            missing = [part for part in parts if id(part) not in numbers]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            found = [numbers[id(part)] for part in parts]
            if top[0] == OBJECT:
                key: Hashable = (OBJECT, tuple((name, number) for (name, _), number in zip(top[1], found)))
            else:
                key = (ARRAY, tuple(found)) if top[0] == ARRAY else top
            numbers[id(top)] = self._number(key)
        return numbers[id(constant)]

    def _key(self, item: InstanceItem) -> Hashable:
        """Return the value with numbers in the place of its parts."""
        value: Any = item.value
        if item.kind == ARRAY:
            return ARRAY, tuple(self._of_items[child.index] for child in item.children)
        if item.kind == OBJECT:
            return OBJECT, tuple(sorted((name, self._of_items[child.index]) for name, child in item.children.items()))
        if item.kind == NUMBER:
            return NUMBER, self.rational(item)
        return (item.kind,) if value is None else (item.kind, value)

    def _number(self, key: Hashable) -> int:
        spend_work(1 + (len(key[1]) if isinstance(key, tuple) and len(key) > 1 and key[0] in (ARRAY, OBJECT) else 0),
                   "the comparison of values")  # fmt: skip
        return self._numbers.setdefault(key, len(self._numbers))
