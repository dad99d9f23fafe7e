"""What was read of a number: a mantissa, or a mantissa and an exponent."""

from __future__ import annotations

from typing import Final, NamedTuple

from .exponent_states import IntegerSet
from .magnitude_set import Segments

__all__ = [
    "DIGITS", "E", "EXPONENT", "FRACTION", "INTEGER", "MINUS", "POINT", "SIGN", "START", "ZERO", "Exponent", "Mantissa",
    "State",
]  # fmt: skip

START, MINUS, ZERO, INTEGER, POINT, FRACTION, E, SIGN, EXPONENT = range(9)
"""Phases: what was read last. ZERO is a leading zero, INTEGER another integer part."""

DIGITS: Final = b"0123456789"


class Mantissa(NamedTuple):
    """A text before the e.

    phase, side: of the text; side is the index of the searches of its sign. digits: the significant digits as an
    integer D, 0 if there are none. read: their number. fraction: digits after the point. position: of the first
    significant digit. segments: what the digits say about the set (empty before the first one).

    Where D no longer counts, it is replaced by 1.
    """

    phase: int
    side: int = 0
    digits: int = 0
    read: int = 0
    fraction: int = 0
    position: int = 0
    segments: Segments = ()


class Exponent(NamedTuple):
    """A text behind the e. allowed: the exponents, or after a sign or digit their magnitudes. value: of the digits."""

    phase: int
    allowed: IntegerSet
    value: int = 0


State = Mantissa | Exponent
