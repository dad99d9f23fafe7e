"""Sets of numbers given by bounds and multiples, in a normal form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from .decimals import lcm_of

__all__ = ["NumberInterval", "reduce_multiples"]


@dataclass(frozen=True)
class NumberInterval:
    """A set of decimals: low <= x <= high, multiples of `multiple`, and of none of `not_multiples`.

    A bound that is None is absent; an open one is excluded. multiple: positive, or None. not_multiples: positive.
    """

    low: Fraction | None
    high: Fraction | None
    low_open: bool
    high_open: bool
    multiple: Fraction | None
    not_multiples: tuple[Fraction, ...]

    @classmethod
    def of(
        cls,
        low: Fraction | None,
        high: Fraction | None,
        low_open: bool,
        high_open: bool,
        multiples: Iterable[Fraction],
        not_multiples: Iterable[Fraction],
    ) -> NumberInterval:
        """Return the set in normal form, with one decimal multiple (a decimal that is a multiple of 2/3 is one of
        2).
        """
        factors = list(multiples)
        factor = _decimal_multiple(lcm_of(factors)) if factors else None
        excluded = reduce_multiples(factor, map(_decimal_multiple, not_multiples))
        if factor is not None:
            # The nearest multiple is the same bound with fewer digits; where that is the first from zero, zero is.
            if low is not None:
                low, low_open = (floor(low / factor) + 1 if low_open else ceil(low / factor)) * factor, False
                low, low_open = (Fraction(0), True) if low == factor else (low, low_open)
            if high is not None:
                high, high_open = (ceil(high / factor) - 1 if high_open else floor(high / factor)) * factor, False
                high, high_open = (Fraction(0), True) if high == -factor else (high, high_open)
        return cls(low, high, low_open, high_open, factor, excluded)

    @property
    def is_scalable(self) -> bool:
        """Whether the set is closed under multiplication by powers of ten: nothing but the sign is bounded."""
        return not (self.low or self.high or self.multiple or self.not_multiples)

    def mirrored(self) -> NumberInterval:
        """Return the numbers -x."""
        low = None if self.high is None else -self.high
        high = None if self.low is None else -self.low
        return NumberInterval(low, high, self.high_open, self.low_open, self.multiple, self.not_multiples)

    def has_magnitudes(self) -> bool:
        """Return whether there may be an x >= 0."""
        return self.high is None or self.high > 0 or (self.high == 0 and not self.high_open)

    def contains(self, value: Fraction) -> bool:
        """Return whether a value is in the set."""
        above = self.low is None or value > self.low or (value == self.low and not self.low_open)
        below = self.high is None or value < self.high or (value == self.high and not self.high_open)
        fits = self.multiple is None or (value / self.multiple).denominator == 1
        return above and below and fits and all((value / other).denominator > 1 for other in self.not_multiples)


def _decimal_multiple(factor: Fraction) -> Fraction:
    """Return the number whose multiples are the decimals among the multiples of factor > 0."""
    if factor <= 0:
        raise ValueError(f"multiples of {factor}")
    cofactor = factor.denominator
    for prime in (2, 5):
        while cofactor % prime == 0:
            cofactor //= prime
    return factor * cofactor


def reduce_multiples(multiple: Fraction | None, not_multiples: Iterable[Fraction]) -> tuple[Fraction, ...]:
    """Return the smallest set of factors that excludes the same numbers among the multiples of `multiple`, sorted."""
    candidates = sorted({other if multiple is None else lcm_of((multiple, other)) for other in not_multiples})
    reduced: list[Fraction] = []
    for other in candidates:
        if all((other / smaller).denominator > 1 for smaller in reduced):
            reduced.append(other)
    return tuple(reduced)
