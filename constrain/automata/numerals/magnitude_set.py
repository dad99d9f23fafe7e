"""The positive numbers of a union of intervals, cut at their bounds; and searches for a member with given digits.

The bounds divide the positive numbers into *gaps*. Within a gap the set is a union of alternatives: all decimals, or
the multiples of one number, without the multiples of others. The *position* of a number is P if it is 0.ddd * 10^P and
the first d is not zero.

A run of significant digits leaves some bounds undecided. Of these only the ones whose digits begin with the run do, and
only if the position turns out to be theirs: at any other position, all bounds are. So what a run says about the set is
a step function of the position, its `Segments`: for each range of positions a gap, or a range of bounds that begin with
these digits and lie at this one position.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import count
from math import inf, lcm
from typing import Any, NamedTuple

from .decimals import Divisor, split_position
from .number_interval import NumberInterval

__all__ = ["Alternative", "Label", "MagnitudeSearch", "MagnitudeSet", "SearchTable", "Segments", "unite_magnitudes"]

Alternative = tuple[Fraction | None, tuple[Fraction, ...]]
"""A number whose multiples are meant (None: all decimals), and numbers whose multiples are not."""
Label = tuple[Alternative, ...]
"""The set within a gap as a union; without alternatives it is empty."""
Segments = tuple[tuple[float, int | tuple[int, int]], ...]
"""(first position, gap or range of bounds), ascending; the first begins at -inf. A gap is the number of a label."""
MOST_STEPS = 1000
"""Most results of `list_steps`, and of `divisors_of`, that are kept."""
EVERYTHING: Label = ((None, ()),)


class MagnitudeSet(NamedTuple):
    """A set of positive decimals in normal form.

    points: the bounds, ascending. has_points: whether each is a member. gaps: the set in the gap below each bound, and
    above the last one.
    """

    points: tuple[Fraction, ...] = ()
    has_points: tuple[bool, ...] = ()
    gaps: tuple[Label, ...] = ((),)


def unite_magnitudes(intervals: Iterable[NumberInterval]) -> MagnitudeSet:
    """Return the positive numbers of a union of intervals."""
    parts = [one for one in intervals if one.high is None or one.high > 0]
    parts = [one for one in parts if one.multiple is None or one.multiple not in one.not_multiples]
    points = sorted({bound for one in parts for bound in (one.low, one.high) if bound is not None and bound > 0})
    order = {bound: index for index, bound in enumerate(points)}
    members = [False] * len(points)
    alternatives: list[set[Alternative]] = [set() for _ in range(len(points) + 1)]
    for one in parts:
        first = 0 if one.low is None or one.low <= 0 else order[one.low]
        last = len(points) if one.high is None else order[one.high]
        for index in range(first, min(last + 1, len(points))):
            members[index] = members[index] or one.contains(points[index])
        for index in range(first + (one.low is not None and one.low > 0), last + 1):
            alternatives[index].add((one.multiple, one.not_multiples))
    gaps = [EVERYTHING if (None, ()) in some else tuple(sorted(some, key=_sort_key)) for some in alternatives]
    kept: list[int] = []
    below = gaps[0]
    for index, point in enumerate(points):
        if gaps[index + 1] != below or members[index] != _is_in(point, below):
            kept.append(index)
            below = gaps[index + 1]
    return MagnitudeSet(
        tuple(points[index] for index in kept),
        tuple(members[index] for index in kept),
        (gaps[0], *(gaps[index + 1] for index in kept)),
    )


def _sort_key(alternative: Alternative) -> tuple[Fraction, tuple[Fraction, ...]]:
    return alternative[0] or Fraction(0), alternative[1]


def _is_in(value: Fraction, label: Label) -> bool:
    return any(
        (multiple is None or (value / multiple).denominator == 1)
        and all((value / other).denominator > 1 for other in others)
        for multiple, others in label
    )


class SearchTable:
    """MagnitudeSearches, one for each set, and the labels of their gaps by number, of which 0 is empty.

    So equal labels have one number, whatever set they are in.

    Attributes
    ----------
    names : list of tuple
        What each label is, in integers, as `marshal` writes it.
    labels : list of list of (Divisor or None, list of Divisor)
        The alternatives of each.
    divisors : list of list of Divisor
        Those of its alternatives.
    """

    def __init__(self) -> None:
        self.names: list[tuple[Any, ...]] = []
        self.labels: list[list[tuple[Divisor | None, list[Divisor]]]] = []
        self.divisors: list[list[Divisor]] = []
        self._numbers: dict[Label, int] = {}
        self._known: dict[Fraction, Divisor] = {}
        self._searches: dict[MagnitudeSet, MagnitudeSearch] = {}
        self.number_label(())

    def search(self, numbers: MagnitudeSet) -> MagnitudeSearch:
        """Return the search of a set."""
        found = self._searches.get(numbers)
        if found is None:
            found = self._searches[numbers] = MagnitudeSearch(numbers, self, len(self._searches))
        return found

    def number_label(self, label: Label) -> int:
        """Return the number of a label."""
        number = self._numbers.get(label)
        if number is None:
            alternatives = [
                (None if multiple is None else self._divisor(multiple), [*map(self._divisor, others)])
                for multiple, others in label
            ]
            found = (one for multiple, others in alternatives for one in (multiple, *others) if one is not None)
            name = tuple([
                (multiple and multiple.as_integer_ratio(), *[one.as_integer_ratio() for one in others])
                for multiple, others in label
            ])  # fmt: skip
            number = len(self._numbers)
            # In place of what an interrupt has left there.
            self.names[number:], self.labels[number:] = [name], [alternatives]
            self.divisors[number:] = [[*dict.fromkeys(found)]]
            self._numbers[label] = number
        return number

    def _divisor(self, value: Fraction) -> Divisor:
        """Return the Divisor of a value."""
        found = self._known.get(value)
        if found is None:
            found = self._known[value] = Divisor(value)
        return found


class MagnitudeSearch:
    """A MagnitudeSet prepared for reading digits and for searches; gaps are numbers of labels of a SearchTable.

    Attributes
    ----------
    number : int
        Of the set in the table.
    names, labels, divisors : list
        Those of the table.
    is_empty : bool
        Whether there is no number.
    depends_on_position : bool
        Whether there is any bound or divisor.
    is_decimal : bool
        Whether digits that are not zero count alike: all divisors are powers of ten.
    """

    def __init__(self, numbers: MagnitudeSet, table: SearchTable, number: int) -> None:
        self.number = number
        self.names, self.labels, self.divisors = table.names, table.labels, table.divisors
        self.gaps = [*map(table.number_label, numbers.gaps)]
        known = {one for label in self.gaps for one in self.divisors[label]}
        self.has_points = numbers.has_points
        self.is_empty = not any(self.gaps) and not any(numbers.has_points)
        written = [split_position(point) for point in numbers.points]
        self.positions, self.texts = [q for q, _ in written], [text for _, text in written]
        self.depends_on_position = bool(written or known)
        self.is_decimal = all(one.is_power_of_ten for one in known)
        self.most_saturation = max([one.saturation for one in known], default=0)
        self.most_digits = max([len(str(one.a)) for one in known], default=0)
        scales = [len(text) - q for q, text in written]
        self.scale = max([0, *scales, *(one.s for one in known)])
        self.units = [int(point * 10**self.scale) for point in numbers.points]
        self._divisors: dict[tuple[int | tuple[int, int], ...], tuple[list[Divisor], list[Divisor | None]]] = {}
        self._steps: dict[tuple[int, int, int | None], list[tuple[int | None, list[int]]]] = {}
        self.first = self._initial_segments()

    def describe(self) -> tuple[Any, ...]:
        """Return the set as a tuple that `marshal` writes, which is the same in every process."""
        gaps = tuple([self.names[label] for label in self.gaps])
        return tuple(self.positions), tuple(self.texts), tuple(self.has_points), gaps

    # ---- digits and bounds

    def _initial_segments(self) -> Segments:
        """Return the segments before any digit: each bound is undecided at its own position."""
        segments: list[tuple[float, int | tuple[int, int]]] = [(-inf, self.gaps[0])]
        index = 0
        while index < len(self.positions):
            position, first = self.positions[index], index
            while index < len(self.positions) and self.positions[index] == position:
                index += 1
            segments += [(position, (first, index)), (position + 1, self.gaps[index])]
        return _merge_segments(segments)

    def read_digit(self, segments: Segments, read: int, digit: str) -> Segments:
        """Return the segments after one more digit, where `read` digits have been read before."""
        following: list[tuple[float, int | tuple[int, int]]] = []
        for index, (first, what) in enumerate(segments):
            if what.__class__ is int:
                continue
            low, high = what  # type: ignore[misc]
            if high - low == 1:  # as most
                known = self.texts[low][read : read + 1] or "0"
                if digit != known:
                    what = self.gaps[low if digit < known else high]
            else:
                low = bisect_left(self.texts, digit, low, high, key=lambda text: text[read : read + 1] or "0")
                high = bisect_left(
                    self.texts, chr(ord(digit) + 1), low, high, key=lambda text: text[read : read + 1] or "0"
                )
                what = (low, high) if low < high else self.gaps[low]
            following = following or list(segments)
            following[index] = first, what
        return _merge_segments(following) if following else segments

    def turning_digits(self, segments: Segments, read: int) -> set[int]:
        """Return the digits whose effect on the segments differs from that of the digit before."""
        turns = set[int]()
        for _, what in segments:
            if isinstance(what, tuple):
                for text in self.texts[what[0] : what[1]]:
                    digit = int(text[read : read + 1] or "0")
                    turns |= {digit, digit + 1}
        return turns

    def ends_in(self, what: int | tuple[int, int], read: int) -> list[tuple[Divisor | None, list[Divisor]]]:
        """Return the alternatives of the number that ends after `read` digits, in a segment."""
        if isinstance(what, int):
            return self.labels[what]
        first = what[0]
        if len(self.texts[first]) > read:
            return self.labels[self.gaps[first]]
        return [(None, [])] if self.has_points[first] else []

    def labels_of(self, what: int | tuple[int, int]) -> Sequence[int]:
        """Return the labels of the gaps that a number in a segment may still be in."""
        return (what,) if isinstance(what, int) else self.gaps[what[0] : what[1] + 1]

    def divisors_of(self, parts: tuple[int | tuple[int, int], ...]) -> tuple[list[Divisor], list[Divisor | None]]:
        """Return the divisors of the gaps that a number in some segments may still be in, and of what it is a multiple.

        In the second list None stands for all decimals.
        """
        known = self._divisors.get(parts)
        if known is None:
            if len(self._divisors) > MOST_STEPS:
                self._divisors.clear()
            labels = sorted({label for what in parts for label in self.labels_of(what)} - {0})
            divisors = list(dict.fromkeys(one for label in labels for one in self.divisors[label]))
            multiples = [multiple for label in labels for multiple, _ in self.labels[label]]
            known = self._divisors[parts] = divisors, multiples
        return known

    # ---- members

    def find_member(
        self, digits: int, read: int, position: int, what: int | tuple[int, int], grid: int | None
    ) -> tuple[int, int] | None:
        """Return a member at a position that begins with these digits, as (x, u) for x / 10^u; None if there is none.

        what: the segment of the position. grid: the members are multiples of 10^grid.
        """
        if what.__class__ is int:
            unit = self.find_unit(position - read, grid)
            size = 10 ** (position - read + unit)
            parts: list[tuple[int, int, int | None]] = [(digits * size, (digits + 1) * size, what)]  # type: ignore[list-item]
        else:
            unit, parts = self._cut(digits, position - read, what, grid)
        for low, end, label in parts:
            if label is None:
                return low, unit
            for step, periods in self.list_steps(label, unit, grid):
                if step is None:
                    if low < end:
                        return low * 10 + 1, unit + 1  # with more decimals than any multiple of the others
                    continue
                first = -(-low // step)
                if not periods:
                    if first * step < end:
                        return first * step, unit
                elif 1 not in periods:
                    for k in range(first, (end - 1) // step + 1):
                        if all(k % period for period in periods):
                            return k * step, unit
        return None

    def iterate_members(
        self, digits: int, read: int, position: int, what: int | tuple[int, int], grid: int | None
    ) -> Iterator[tuple[int, int]]:
        """Yield members as `find_member` returns one.

        These are all of them, with repetitions, where they are finitely many; otherwise they do not end.
        """
        unit, parts = self._cut(digits, position - read, what, grid)
        for low, end, label in parts:
            if label is None:
                yield low, unit
                continue
            for step, periods in self.list_steps(label, unit, grid):
                if step is None:
                    if low < end:
                        yield from ((low * 10**more + 1, unit + more) for more in count(1))
                elif 1 not in periods:
                    multiples = range(-(-low // step), (end - 1) // step + 1)
                    yield from ((k * step, unit) for k in multiples if all(k % period for period in periods))

    def _cut(
        self, digits: int, q: int, what: int | tuple[int, int], grid: int | None
    ) -> tuple[int, list[tuple[int, int, int | None]]]:
        """Cut the numbers from digits * 10^q to below (digits + 1) * 10^q at the bounds among them.

        Return (u, parts): (low, end, label) for the integers from `low` to below `end`, divided by 10^u, or
        (bound, bound, None) for a bound that is a member.
        """
        unit = self.find_unit(q, grid)
        size = 10 ** (q + unit)
        low, end = digits * size, (digits + 1) * size
        if isinstance(what, int):
            return unit, [(low, end, what)]
        step = 1 if grid is None else 10 ** (unit + grid)
        parts: list[tuple[int, int, int | None]] = []
        for index in range(*what):
            bound = self.units[index] * 10 ** (unit - self.scale)
            if self.has_points[index] and bound % step == 0:
                parts.append((bound, bound, None))
            parts.append((low, bound, self.gaps[index]))
            low = bound + 1
        return unit, [*parts, (low, end, self.gaps[what[1]])]

    def list_steps(self, label: int, unit: int, grid: int | None) -> list[tuple[int | None, list[int]]]:
        """Return (x, periods) for each alternative of a label: members are k * x / 10^unit with an integer k that no
        period divides. x is None where all decimals are members but multiples of others.
        """
        key = label, unit, grid
        steps = self._steps.get(key)
        if steps is None:
            if len(self._steps) > MOST_STEPS:
                self._steps.clear()
            steps = []
            for multiple, others in self.labels[label]:
                if multiple is None and grid is None:
                    steps.append((None, []))
                    continue
                step = 1 if grid is None else 10 ** (unit + grid)
                step = lcm(step, 1 if multiple is None else multiple.a * 10 ** (unit - multiple.s))
                steps.append((step, [lcm(step, one.a * 10 ** (unit - one.s)) // step for one in others]))
            self._steps[key] = steps
        return steps

    def find_unit(self, q: int, grid: int | None) -> int:
        """Return the power of ten that makes integers of 10^q, of all bounds and divisors, and of 10^grid."""
        return 1 + max(-q, self.scale, 0 if grid is None else -grid)  # one more, for room between a bound and the end

    def position_ranges(
        self, segments: Segments, read: int, near: int, room: int | None, lowest: float = -inf
    ) -> Iterator[tuple[int, int, int | tuple[int, int]]]:
        """Yield (first position, last position, what) of the segments that are not empty, cut to finite ranges.

        Positions outside these ranges are like those inside or have no members: far above `near` and all powers of ten
        in divisors, positions are alike; below a divisor it has no multiples. room: most further digits, None for any
        number. lowest: the first position of interest.
        """
        for index, (begin, what) in enumerate(segments):
            begin, end = max(begin, lowest), segments[index + 1][0] - 1 if index + 1 < len(segments) else inf
            if begin > end:
                continue
            if isinstance(what, tuple):
                yield int(begin), int(begin), what
                continue
            if not what:
                continue
            digits = self.most_digits if room is None else room
            highest = max(read + self.most_saturation, near) + digits + 1
            last = int(end) if end < inf else int(max(begin, highest)) if begin > -inf else highest
            if begin > -inf:
                yield int(begin), last, what
                continue
            least = [
                min([_position(one) for one in others], default=last + 1) if multiple is None else _position(multiple)
                for multiple, others in self.labels[what]
            ]
            yield min(last, min(least) - 1), last, what


def _position(divisor: Divisor) -> int:
    """Return the position of a divisor as a number."""
    return len(str(divisor.a)) - divisor.s


def _merge_segments(segments: list[tuple[float, int | tuple[int, int]]]) -> Segments:
    """Return the segments without empty ones, and equal neighbours as one."""
    merged: list[tuple[float, int | tuple[int, int]]] = []
    for index, (first, what) in enumerate(segments):
        if index + 1 < len(segments) and segments[index + 1][0] == first:
            continue
        if not merged or isinstance(what, tuple) or merged[-1][1] != what:
            merged.append((first, what))
    return tuple(merged)
