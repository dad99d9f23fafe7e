"""Conditions on a decimal number, read digit by digit: bounds, a set of values, caps on digits.

A *condition* reads the digits of a magnitude (no sign, no exponent) and is a small automaton; `number_automata` runs
several of them in parallel. Their states:

    BoundDigits   how the digits so far compare with those of a bound, and how many there were
    ValueDigits   the digits themselves, as long as they are a prefix of one of a finite set of values
    DigitCap      how many digits there were

A state is any hashable; None is dead. States that cannot reach acceptance need not be None: they are trimmed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from json import dumps
from typing import Any, Protocol

from ....automata.numerals.decimals import as_decimal
from ....base.errors import LimitError

__all__ = [
    "BoundDigits", "DigitCap", "DigitCondition", "ValueDigits", "decimal_text", "plain_texts",
    "split_digits",
    "too_many_states",
]  # fmt: skip


def too_many_states(max_states: int) -> LimitError:
    """Return the error of a number that needs more than max_states states."""
    return LimitError(
        f"The bounds and multiples of a number need more than {max_states} states.",
        hint="Use bounds and multiples of fewer digits, or raise Limits.dfa_states.",
    )


NOTHING: tuple[None, ...] = (None,) * 10


class DigitCondition(Protocol):
    """A condition on digits. `start` is its state before the first digit."""

    @property
    def start(self) -> Any: ...

    def digits(self, state: Any) -> Sequence[Any]:
        """Return the states after one more digit, 0 to 9."""

    def point(self, state: Any) -> Any:
        """Return the state after the decimal point, which ends the integer part."""

    def accepts(self, state: Any) -> bool:
        """Return whether the number may end here."""


def split_digits(value: Fraction) -> tuple[str, str]:
    """Return the shortest digits of the integer part and of the fraction of value >= 0: ("0", "05") for 1/20."""
    scaled, scale = as_decimal(value)
    text = str(scaled).rjust(scale + 1, "0")
    return text[: len(text) - scale], text[len(text) - scale :]


def decimal_text(value: Fraction) -> str:
    """Return the shortest spelling without an exponent: "-12.5"."""
    scaled, scale = as_decimal(value)
    if not scale:
        return str(scaled)
    text = str(abs(scaled)).rjust(scale + 1, "0")
    return f"{'-' if scaled < 0 else ''}{text[:-scale]}.{text[-scale:]}"


ROUND_TRIP_DIGITS = 15
"""Number of digits that a float round-trips: a decimal of up to 15 digits is printed unchanged, unless it is so small
that it is printed with an exponent.
"""


def plain_texts(value: Fraction) -> list[str]:
    """Return the spellings of exactly this decimal in plain style (see `number_automata.constant_dfa`)."""
    text = decimal_text(value)
    if value.denominator != 1 and len(text) <= ROUND_TRIP_DIGITS and not text.lstrip("-").startswith("0.0000"):
        return [text]
    try:
        written = dumps(float(value), allow_nan=False)
    except (OverflowError, ValueError):  # beyond all floats
        written = ""
    return [text, written] if written and written != text and Fraction(written) == value else [text]


LESS, GREATER = -1, 1
"""The comparison is decided, whatever digits follow."""


class BoundDigits:
    """The magnitude is at least, at most, above or below a bound >= 0: `allowed` holds the signs of value - bound.

    States: (n, c) in the integer part, where n digits have been read that compare as c with the first n of the bound;
    LESS and GREATER; ("=", j) if all digits agree so far, j of them in the fraction.
    """

    start = (0, 0)

    def __init__(self, bound: Fraction, allowed: Sequence[int]) -> None:
        self.integer_digits, self.tail = split_digits(bound)
        self.allowed = allowed
        self.less = LESS if LESS in allowed else None
        self.greater = GREATER if GREATER in allowed else None
        self.decided = {LESS: (LESS,) * 10, GREATER: (GREATER,) * 10}

    def digits(self, state: Any) -> Sequence[Any]:
        if state in self.decided:
            return self.decided[state]
        if state[0] == "=":
            index = state[1]
            if index == len(self.tail):
                return (state, *(self.greater,) * 9)
            return self._compare_digit(int(self.tail[index]), self.less, ("=", index + 1), self.greater)
        read, compared = state
        if read == len(self.integer_digits):
            return (self.greater,) * 10
        if compared:
            return ((read + 1, compared),) * 10
        return self._compare_digit(int(self.integer_digits[read]), (read + 1, LESS), (read + 1, 0), (read + 1, GREATER))

    def _compare_digit(self, digit: int, below: Any, equal: Any, above: Any) -> Sequence[Any]:
        return (below,) * digit + (equal,) + (above,) * (9 - digit)

    def point(self, state: Any) -> Any:
        if state in self.decided:
            return state
        read, compared = state
        if read < len(self.integer_digits):
            return self.less
        return ("=", 0) if not compared else self.less if compared < 0 else self.greater

    def accepts(self, state: Any) -> bool:
        if state in self.decided:
            return True
        index = state[1] if state[0] == "=" else 0
        if state[0] != "=":
            read, compared = state
            if read < len(self.integer_digits):
                return LESS in self.allowed
            if compared:
                return compared in self.allowed
        return (LESS if index < len(self.tail) else 0) in self.allowed


class ValueDigits:
    """The value is one of a finite set of magnitudes. States: the text so far, or ZEROS: only zeros may follow."""

    start: Any = ""
    ZEROS = "zeros"

    def __init__(self, values: Iterable[Fraction]) -> None:
        self.values = {decimal_text(value) for value in values}
        self.prefixes = {text[:end] for text in self.values for end in range(len(text) + 1)}

    def digits(self, state: Any) -> Sequence[Any]:
        if state == self.ZEROS:
            return (state, *(None,) * 9)
        row = [state + digit if state + digit in self.prefixes else None for digit in "0123456789"]
        if row[0] is None and "." in state and self.accepts(state):
            row[0] = self.ZEROS
        return row

    def point(self, state: Any) -> Any:
        dotted = state + "."
        return dotted if dotted in self.prefixes else self.ZEROS if state in self.values else None

    def accepts(self, state: Any) -> bool:
        short = state.rstrip("0").rstrip(".") if "." in state else state
        return state == self.ZEROS or short in self.values


class DigitCap:
    """At most `integer_digits` digits in the integer part and `tail` in the fraction (None: no cap).

    States: n >= 0 digits of the integer part, or -1 - n with n digits of the fraction; not counted without a cap.
    """

    start: Any = 0

    def __init__(self, integer_digits: int | None, tail: int | None) -> None:
        self.integer_digits, self.tail = integer_digits, tail

    def digits(self, state: Any) -> Sequence[Any]:
        cap, read, step = (self.integer_digits, state, 1) if state >= 0 else (self.tail, -1 - state, -1)
        if cap is None:
            return (state,) * 10
        return (state + step,) * 10 if read < cap else NOTHING

    def point(self, state: Any) -> Any:
        return -1

    def accepts(self, state: Any) -> bool:
        return True
