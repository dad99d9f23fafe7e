"""Layout of a request for the automaton of numbers between bounds (constants only; see `digit_tables`).

A request is one int32 array: the header, then the bounds, each where the header says:

    length of the integer part, length of the fraction, ALLOWS_..., the digits of both
"""

from typing import Final

# fmt: off
Q_FRACTION: Final = 0    # whether there may be a fraction
Q_EXPONENT: Final = 1    # most digits of an exponent; UNLIMITED
Q_MIRRORED: Final = 2    # whether magnitudes after a minus sign are those without one
Q_SIDES: Final = 3       # of the numbers without a sign, then of those with one: SIDE_W fields each
SIDE_PRESENT: Final = 0  # whether there are such numbers
SIDE_LOW: Final = 1      # where the bound from below is, 0: there is none
SIDE_HIGH: Final = 2
SIDE_INTEGER: Final = 3  # most digits of the integer part; UNLIMITED
SIDE_TAIL: Final = 4     # most digits of the fraction; UNLIMITED
SIDE_W: Final = 5
Q_W: Final = Q_SIDES + 2 * SIDE_W

UNLIMITED: Final = -1
BOUND_INTEGER: Final = 0
BOUND_TAIL: Final = 1
BOUND_ALLOWED: Final = 2
BOUND_DIGITS: Final = 3

ALLOWS_LESS: Final = 1
ALLOWS_EQUAL: Final = 2
ALLOWS_GREATER: Final = 4

CLASS_PLUS: Final = 1
CLASS_MINUS: Final = 2
CLASS_POINT: Final = 3
CLASS_DIGIT: Final = 4
CLASS_E: Final = 14
N_CLASSES: Final = 15
"""Classes of characters: 0 all others, 4 to 13 the digits."""

MOST_DIGITS: Final = 1 << 12
"""Most digits of a bound, and of a limit of digits."""
