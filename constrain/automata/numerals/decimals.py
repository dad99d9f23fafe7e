"""Decimal fractions as pairs of ints, and which of their multiples a run of digits can still become."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import gcd, inf, lcm

from ...base.errors import LimitError
from ...base.json_documents import LONG, MOST_DIGITS
from ...base.work import memoize_work

__all__ = ["Divisor", "as_decimal", "count_significant", "lcm_of", "split_position"]

FIVES = 5**32
CHUNK = 4000
"""Digits that are written at a time: Python refuses to write an int of more than 4,300 by default."""


def as_decimal(value: Fraction) -> tuple[int, int]:
    """Return (a, s) with value = a / 10^s and the least s >= 0.

    Raise ValueError if value is not a decimal, LimitError if a or 10^s has more than MOST_DIGITS digits: Python refuses
    to print an int of more than 4,300 by default.
    """
    factor, scale = _one_over(value.denominator)
    if factor == 0:
        raise ValueError(f"{value} is not a decimal number")
    scaled = value.numerator * factor
    if scale > MOST_DIGITS or not -LONG < scaled < LONG:
        raise LimitError(f"A number of more than {MOST_DIGITS:,} digits.", hint="Write a number with fewer digits.")
    return scaled, scale


@memoize_work(maxsize=4096)
def _one_over(denominator: int) -> tuple[int, int]:
    """Return (a, s) with 1 / denominator = a / 10^s; a is 0 if it is not a decimal."""
    cofactor, twos, fives = denominator, 0, 0
    while cofactor % 2 == 0:
        cofactor, twos = cofactor // 2, twos + 1
    while cofactor % 5 == 0:
        cofactor, fives = cofactor // 5, fives + 1
    scale = max(twos, fives)
    return 0 if cofactor != 1 else 2 ** (scale - twos) * 5 ** (scale - fives), scale


def lcm_of(values: Iterable[Fraction]) -> Fraction:
    """Return the least common multiple of positive rationals: its multiples are the numbers that are multiples of
    all.
    """
    numerator, denominator = 1, 0
    for value in values:
        numerator, denominator = lcm(numerator, value.numerator), gcd(denominator, value.denominator)
    return Fraction(numerator, denominator or 1)


def count_significant(value: int) -> int:
    """Return the number of decimal digits of a positive int of any length, without zeros at its end."""
    parts = list[int]()
    while value >= 10**CHUNK:
        value, part = divmod(value, 10**CHUNK)
        if part or parts:
            parts.append(part)
    if not parts:
        return len(str(value).rstrip("0"))
    return len(str(value)) + CHUNK * (len(parts) - 1) + len(str(parts[0]).zfill(CHUNK).rstrip("0"))


def split_position(value: Fraction) -> tuple[int, str]:
    """Return (q, digits) with value = 0.digits * 10^q > 0, where the first and last of the digits are not zero."""
    a, s = as_decimal(value)
    text = str(a)
    return len(text) - s, text.rstrip("0")


class Divisor:
    """A decimal a / 10^s > 0 whose multiples are of interest; a = 2^twos * 5^fives * cofactor.

    Attributes
    ----------
    modulus : int
        Divides 10 * (D - D') if D and D' have the same least exponents after any further digits, of which the last is
        not zero.
    least : int
        The least exponent of any D whose last digit is not zero (see `least_exponent`).
    saturation : int
        The exponent from which powers of ten no longer decide: what is a multiple then remains one.
    """

    def __init__(self, value: Fraction) -> None:
        self.value = value
        self.a, self.s = as_decimal(value)
        cofactor, twos, fives = self.a, 0, 0
        while cofactor % 2 == 0:
            cofactor, twos = cofactor // 2, twos + 1
        while cofactor % 5 == 0:
            cofactor, fives = cofactor // 5, fives + 1
        self.cofactor, self.twos, self.fives = cofactor, twos, fives
        excess = abs(twos - fives)
        self.modulus = cofactor * (2 if twos > fives else 5) ** max(excess - 1, 0)
        self.least = min(twos, fives) - self.s
        self.saturation = max(twos, fives) - self.s
        self.is_power_of_ten = cofactor == 1 and not excess

    def least_exponent(self, digits: int) -> float:
        """Return the least g such that digits * 10^g is a multiple, for digits > 0; infinity if there is none."""
        if digits % self.cofactor:
            return inf
        twos, fives = (digits & -digits).bit_length() - 1, 0
        while digits % FIVES == 0:
            digits, fives = digits // FIVES, fives + 32
        while digits % 5 == 0:
            digits, fives = digits // 5, fives + 1
        return max(self.twos - twos, self.fives - fives) - self.s

    def reduced_modulus(self, fraction: int) -> int:
        """Return the number of which D is a multiple exactly if D / 10^fraction is a multiple of the decimal."""
        modulus: int = self.a * 10**fraction
        return modulus // gcd(modulus, 10**self.s)
