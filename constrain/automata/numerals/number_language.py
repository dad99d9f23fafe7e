"""The language of a set of decimals: every JSON number of RFC 8259 section 6 whose exact value is a member."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from typing import Any, Literal

from ...base.cached_property import cached_property
from .magnitude_set import MagnitudeSet, unite_magnitudes
from .number_interval import NumberInterval

__all__ = ["Form", "NumberLanguage"]

Form = Literal["any", "integer", "marked"]


@dataclass(frozen=True, eq=False)
class NumberLanguage:
    """The spellings of the numbers of a set: `-? (0|[1-9][0-9]*) (\\. [0-9]+)? ([eE] [+-]? [0-9]+)?`.

    Equal sets with equal options have equal keys, and are equal. The texts of a language are infinitely many, and with
    bounds or multiples it is not regular; `NumberAutomaton` reads it.

    Attributes
    ----------
    positive, negative : MagnitudeSet
        The members greater than zero, and the magnitudes of those less than zero.
    has_zero : bool
        Whether zero is a member, which is also spelled -0.
    most_integer, most_fraction : int or None
        Most digits before and after the point; None for no limit.
    form : {"any", "integer", "marked"}
        "integer": texts have neither a point nor an exponent. "marked": they have one or the other. Draft 4 of JSON
        Schema defines integers by their text.
    """

    positive: MagnitudeSet
    negative: MagnitudeSet
    has_zero: bool
    most_integer: int | None = None
    most_fraction: int | None = None
    form: Form = "any"

    @classmethod
    def of(
        cls,
        intervals: Iterable[NumberInterval],
        most_integer: int | None = None,
        most_fraction: int | None = None,
        form: Form = "any",
    ) -> NumberLanguage:
        """Return the language of a union of intervals."""
        parts = list(intervals)
        return cls(
            unite_magnitudes(parts),
            unite_magnitudes(one.mirrored() for one in parts),
            any(one.contains(Fraction(0)) for one in parts),
            most_integer,
            most_fraction,
            form,
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> NumberLanguage:
        """Return the language that `to_bytes` has written. Raise ValueError for other data."""
        positive, negative, *options = json.loads(data)
        return cls(_read_set(positive), _read_set(negative), *options)

    def to_bytes(self) -> bytes:
        """Return the language as ASCII text: one for each set and options."""
        options = [self.has_zero, self.most_integer, self.most_fraction, self.form]
        return json.dumps([_write_set(self.positive), _write_set(self.negative), *options]).encode()

    @cached_property
    def key(self) -> bytes:
        """16 bytes that name the language."""
        return blake2b(self.to_bytes(), digest_size=16).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberLanguage) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _write_set(numbers: MagnitudeSet) -> list[Any]:
    gaps = [
        [
            [None if multiple is None else _write(multiple), [_write(one) for one in others]]
            for multiple, others in label
        ]
        for label in numbers.gaps
    ]
    return [[_write(point) for point in numbers.points], list(numbers.has_points), gaps]


def _read_set(written: list[Any]) -> MagnitudeSet:
    points, has_points, gaps = written
    labels = (
        tuple((None if m is None else _read(m), tuple(_read(one) for one in others)) for m, others in label)
        for label in gaps
    )
    return MagnitudeSet(tuple(_read(point) for point in points), tuple(has_points), tuple(labels))


def _write(value: Fraction) -> str:
    """Return a number in hexadecimal, which takes linear time."""
    return f"{value.numerator:x}/{value.denominator:x}"


def _read(text: str) -> Fraction:
    numerator, denominator = text.split("/")
    return Fraction(int(numerator, 16), int(denominator, 16))
