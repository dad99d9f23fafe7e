"""An index of the values that a new member must differ from: which of them may the beginning of a text still become?

Strings and numbers are sorted, so that those that begin alike stand side by side and a bisection finds them; how many
there are hardly matters. Arrays and objects are compared one by one, and each costs work.
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
"""Units of work for one character by which strings go on."""
LAST_CHARACTER = 0x10FFFF


class Candidates(NamedTuple):
    """Values that a text may still become equal to.

    following: the bytes that keep it so, some too many; None if there are no such values. compound: the arrays and
    objects among them.
    """

    following: frozenset[int] | None
    compound: list[Value]


class ValueIndex:
    """Distinct JSON values, by kind. It is not changed once it is shared: `adding` makes another one."""

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

    def adding(self, value: Value) -> ValueIndex:
        """Return an index of these values and one more."""
        made = ValueIndex()
        made.values, made.strings, made.numbers = self.values.copy(), self.strings.copy(), self.numbers.copy()
        made.arrays, made.objects = self.arrays.copy(), self.objects.copy()
        made.add(value)
        return made

    def candidates(self, text: bytes, before: list[Value] | None, spend: Callable[[int], None]) -> Candidates:
        """Find the values that a text may still become equal to.

        before: the arrays and objects that a beginning of the text might have become, if that is known. spend: takes
        the units of work that this costs, before it is done.
        """
        state = parse_prefix(text)
        if isinstance(state, NoValueYet):
            return Candidates(self._first(), [*self.arrays, *self.objects])
        if isinstance(state, OpenString):
            return Candidates(self._in_strings(state, spend), [])
        if isinstance(state, OpenNumber):
            return Candidates(NUMBER_BYTES if self._has_number(state) else None, [])
        if isinstance(state, OpenLiteral):
            words: list[Value] = [None, BooleanValue(True), BooleanValue(False)]
            found = [continuations_of_prefix(state, word) for word in words if word in self.values]
            return Candidates(_union(found), [])
        if isinstance(state, ClosedValue):
            equal = not state.more and state.value in self.values
            return Candidates(frozenset() if equal else None, [])
        tried = (self.arrays if isinstance(state, OpenArray) else self.objects) if before is None else before
        spend(COMPOUND * len(tried) + len(text) // 8)
        ways = [(value, continuations_of_prefix(state, value)) for value in tried]
        return Candidates(_union([way for _, way in ways]), [value for value, way in ways if way is not None])

    def _first(self) -> frozenset[int] | None:
        """The bytes with which the values begin, and white space."""
        some: list[Value] = [word for word in (None, BooleanValue(True), BooleanValue(False)) if word in self.values]
        some += [*self.strings[:1], *self.arrays[:1], *self.objects[:1]]
        some += [NumberValue(negative, digits, 0) for negative, digits in self.numbers[:1] + self.numbers[-1:]]
        return SPACES.union(*map(find_first_bytes, some)) if some else None

    def _has_number(self, state: OpenNumber) -> bool:
        """Whether a number may become one of those here."""
        numbers, stripped = self.numbers, state.digits.rstrip("0")
        if not state.digits and numbers and not numbers[0][1] and not numbers[0][0]:
            return True  # Zero, which has every exponent and either sign.
        at = bisect_left(numbers, (state.negative, stripped or "1"))
        if stripped and at < len(numbers) and numbers[at] == (state.negative, stripped):
            return True
        if state.exponent is not None:
            return False
        at = bisect_left(numbers, (state.negative, state.digits or "1"))
        return at < len(numbers) and numbers[at][0] == state.negative and numbers[at][1].startswith(state.digits)

    def _in_strings(self, state: OpenString, spend: Callable[[int], None]) -> frozenset[int] | None:
        """The bytes by which a string may go on."""
        found: list[frozenset[int] | None] = []
        for rest in self._branches(state.text):
            if state.pending and rest:
                rests = [rest + more for more in self._branches(state.text + rest)] or [rest]
            else:
                rests = [rest]
            spend(BRANCH * len(rests))
            found += [continuations_of_prefix(state, state.text + one) for one in rests]
        return _union(found)

    def _branches(self, prefix: str) -> Iterator[str]:
        """The characters by which strings go on after a prefix, each once; "" for the string that ends there."""
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


def _union(ways: list[frozenset[int] | None]) -> frozenset[int] | None:
    """All bytes of the ways that exist; None if none does."""
    some = [way for way in ways if way is not None]
    return frozenset().union(*some) if some else None
