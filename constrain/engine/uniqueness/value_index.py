"""ValueIndex: the values that a new member must differ from, searchable by a prefix of its text.

Strings and numbers are sorted, so that those with a common prefix are adjacent and are found by bisection in
logarithmic time. Arrays and objects are compared individually, and each comparison is charged as work.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .json_equality import ArrayValue, BooleanValue, NumberValue, ObjectValue, Value
from .json_prefixes import ClosedValue, NoValueYet, OpenArray, OpenLiteral, OpenNumber, OpenString, parse_prefix
from .value_continuations import NUMBER_BYTES, SPACES, continuations_of_prefix, find_first_bytes

__all__ = ["Candidates", "ValueIndex"]

COMPOUND = 10
"""Units of work for one array or object that is compared."""
BRANCH = 4
"""Units of work for one character that may follow in strings."""
LAST_CHARACTER = 0x10FFFF


class Candidates(NamedTuple):
    """The values that a text may still become equal to.

    `following` is a superset of the bytes after which it still may; None if there are no such values. `compound` are
    the arrays and objects among the values.
    """

    following: frozenset[int] | None
    compound: list[Value]


class ValueIndex:
    """Distinct JSON values by type. An index that is shared is never changed; `copy_with` returns another one."""

    __slots__ = ("arrays", "numbers", "objects", "strings", "values")

    def __init__(self) -> None:
        self.values: set[Value] = set()
        self.strings: list[str] = []
        self.numbers: list[tuple[bool, str]] = []
        self.arrays: list[Value] = []
        self.objects: list[Value] = []

    def add(self, value: Value) -> None:
        """Add a value in place."""
        if value in self.values:
            return
        self.values.add(value)
        if isinstance(value, str):
            insort(self.strings, value)
        elif isinstance(value, NumberValue):
            insort(self.numbers, (value.negative, value.digits))
        elif isinstance(value, ArrayValue):
            self.arrays.append(value)
        elif isinstance(value, ObjectValue):
            self.objects.append(value)

    def copy_with(self, value: Value) -> ValueIndex:
        """Return an index of these values and another one."""
        other = ValueIndex()
        other.values, other.strings, other.numbers = self.values.copy(), self.strings.copy(), self.numbers.copy()
        other.arrays, other.objects = self.arrays.copy(), self.objects.copy()
        other.add(value)
        return other

    def candidates(self, text: bytes, before: list[Value] | None, spend: Callable[[int], None]) -> Candidates:
        """Find the values that a text may still become equal to.

        Parameters
        ----------
        text : bytes
            A prefix of a JSON text.
        before : list of Value or None
            The arrays and objects that a shorter prefix could have become, if known; otherwise all are compared.
        spend : callable
            Called with units of work before they are done.

        Returns
        -------
        Candidates
        """
        state = parse_prefix(text)
        if isinstance(state, NoValueYet):
            return Candidates(self._first_bytes(), [*self.arrays, *self.objects])
        if isinstance(state, OpenString):
            return Candidates(self._continue_strings(state, spend), [])
        if isinstance(state, OpenNumber):
            return Candidates(NUMBER_BYTES if self._has_number(state) else None, [])
        if isinstance(state, OpenLiteral):
            words: list[Value] = [None, BooleanValue(True), BooleanValue(False)]
            following = [continuations_of_prefix(state, word) for word in words if word in self.values]
            return Candidates(_union(following), [])
        if isinstance(state, ClosedValue):
            is_equal = not state.more and state.value in self.values
            return Candidates(frozenset() if is_equal else None, [])
        values = (self.arrays if isinstance(state, OpenArray) else self.objects) if before is None else before
        spend(COMPOUND * len(values) + len(text) // 8)
        pairs = [(value, continuations_of_prefix(state, value)) for value in values]
        return Candidates(_union([some for _, some in pairs]), [value for value, some in pairs if some is not None])

    def _first_bytes(self) -> frozenset[int] | None:
        """Return the bytes with which a value can begin, and white space; None if there are no values."""
        examples: list[Value] = [
            word for word in (None, BooleanValue(True), BooleanValue(False)) if word in self.values
        ]
        examples += [*self.strings[:1], *self.arrays[:1], *self.objects[:1]]
        examples += [NumberValue(negative, digits, 0) for negative, digits in self.numbers[:1] + self.numbers[-1:]]
        return SPACES.union(*map(find_first_bytes, examples)) if examples else None

    def _has_number(self, state: OpenNumber) -> bool:
        """Return whether a number may become equal to a number of the index."""
        numbers, stripped = self.numbers, state.digits.rstrip("0")
        if not state.digits and numbers and not numbers[0][1] and not numbers[0][0]:
            return True  # zero equals itself with any exponent and either sign
        at = bisect_left(numbers, (state.negative, stripped or "1"))
        if stripped and at < len(numbers) and numbers[at] == (state.negative, stripped):
            return True
        if state.exponent is not None:
            return False
        at = bisect_left(numbers, (state.negative, state.digits or "1"))
        return at < len(numbers) and numbers[at][0] == state.negative and numbers[at][1].startswith(state.digits)

    def _continue_strings(self, state: OpenString, spend: Callable[[int], None]) -> frozenset[int] | None:
        """Return the bytes that can follow within a string, or None."""
        following: list[frozenset[int] | None] = []
        for char in self._next_characters(state.text):
            if state.pending and char:  # one more character decides what may follow the pending bytes
                suffixes = [char + second for second in self._next_characters(state.text + char)] or [char]
            else:
                suffixes = [char]
            spend(BRANCH * len(suffixes))
            following += [continuations_of_prefix(state, state.text + suffix) for suffix in suffixes]
        return _union(following)

    def _next_characters(self, prefix: str) -> Iterator[str]:
        """Yield each character that follows a prefix in some string, once; "" for a string that ends there."""
        strings, n = self.strings, len(prefix)
        at = bisect_left(strings, prefix)
        while at < len(strings) and strings[at].startswith(prefix):
            char = strings[at][n : n + 1]
            yield char
            if not char:
                at += 1
            elif ord(char) == LAST_CHARACTER:
                return
            else:
                at = bisect_left(strings, prefix + chr(ord(char) + 1), at)


def _union(sets: list[frozenset[int] | None]) -> frozenset[int] | None:
    """Return the union of the sets that are not None; None if there are none."""
    present = [one for one in sets if one is not None]
    return frozenset().union(*present) if present else None
