"""Number texts of a Dfa for tests: around zero, around powers, at the bounds of the language, and exact floats.

The Dfa of a number leaf accepts digits and does not store bounds; the bounds of its interval are read from it: the
longest integer part with the greatest digits leads to the greatest number, the shortest with the least digits to the
least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from math import isfinite

from ..automata.dfa import Dfa
from ..automata.numerals.number_automaton import NumberAutomaton
from ..automata.numerals.number_language import NumberLanguage
from ..automata.numerals.number_texts import accepts_number, draw_number
from .dfa_texts import Language

__all__ = ["as_float", "is_number", "number_language", "texts_of_number"]

EDGES = (
    "0 1 2 3 10 42 100 1000 0.5 1.5 0.1 0.25 0.3 99.99 3.14159 127 128 255 256 32767 32768 65535 65536 2147483647 "
    "2147483648 4294967296 9007199254740991 9007199254740993 9223372036854775807 9223372036854775808 "
    "18446744073709551616 1000000000000000000000000000000 -1 -2 -10 -100 -0.5 -1.5 -128 -129 -32769 -2147483648 "
    "-2147483649 -9223372036854775808 -9223372036854775809 -0 0.0 1.0 -0.0 1e2 1E+2 1e-7 -1e-7 1e16 1e22 "
    "1.7976931348623157e308 5e-324 0.000001"
).split()
DIGITS = "0123456789"
FRACTION = 6
"""Maximum number of digits after the point that are followed to find a bound of an interval."""
MOST_WHOLE = 60
"""Maximum number of digits of an integer part in which bounds are searched."""


def is_number(dfa: Dfa) -> bool:
    """Return whether its texts consist of the characters of numbers, with digits among them."""
    table = dfa.table
    alive = {kind for row in table.rows for kind, after in enumerate(row) if after >= 0}
    ends = [*table.bounds[1:], 0x110000]
    spans = [(start, end) for start, end, kind in zip(table.bounds, ends, table.classes) if kind in alive]
    return (
        all(end - start <= 10 and all(chr(c) in "+-.eE0123456789" for c in range(start, end)) for start, end in spans)
        and any(start <= 0x39 and end > 0x30 for start, end in spans)
        and dfa.lengths()[0] > 0
    )


@lru_cache(maxsize=1024)
def number_language(dfa: Dfa) -> Language:
    """Return the Language of a number leaf, its pool sorted: positive before negative, short texts first."""
    language = Language(dfa, 0, None)
    texts = [text for text in EDGES if dfa.accepts(text)] + list(find_extremes(dfa)) + [language.simplest()]
    language.pool = tuple(sorted(dict.fromkeys(texts), key=lambda text: (text[0] == "-", len(text), text)))
    return language


def find_extremes(dfa: Dfa) -> Iterator[str]:
    """Yield the greatest and the least magnitudes, positive and negative, as far as digits determine them."""
    for sign in ("", "-"):
        state = dfa.step(0, sign) if sign else 0
        if state >= 0:
            for greatest in (True, False):
                text = _end(dfa, state, greatest)
                if text is not None and dfa.accepts(sign + text):
                    yield sign + text


def _end(dfa: Dfa, state: int, greatest: bool) -> str | None:
    """Return the text of one bound, from after the sign; None if the integer part has no greatest length, or no such
    text exists."""
    rows, accepting = dfa.table.rows, dfa.table.accepting
    layers = [{state}]  # the states after each number of digits
    good: list[int] = []
    while layers[-1] and len(layers) <= MOST_WHOLE:
        layers.append({after for one in layers[-1] for digit in DIGITS if (after := dfa.step(one, digit)) >= 0})
        if any(accepting[one] or dfa.step(one, ".") >= 0 for one in layers[-1]):
            good.append(len(layers) - 1)
    if not good or (greatest and layers[-1]):
        return None
    size = good[-1] if greatest else good[0]
    # back[k]: the states from which k more digits lead to a state where the integer part may end.
    back = [{one for one in range(len(rows)) if accepting[one] or dfa.step(one, ".") >= 0}]
    for _ in range(size):
        back.append({one for one in range(len(rows)) if any(dfa.step(one, digit) in back[-1] for digit in DIGITS)})
    text = ""
    for left in range(size, 0, -1):
        order = DIGITS[::-1] if greatest else DIGITS
        digit = next((digit for digit in order if dfa.step(state, digit) in back[left - 1]), None)
        if digit is None:
            return None
        text, state = text + digit, dfa.step(state, digit)
    if (accepting[state] and not greatest) or dfa.step(state, ".") < 0:
        return text
    return _fraction(dfa, text + ".", dfa.step(state, "."), greatest)


def _fraction(dfa: Dfa, text: str, state: int, greatest: bool) -> str:
    """Return a bound between two integers.

    The greatest or least digits are followed by the shortest completion, without redundant zeros.
    """
    distance = dfa.distances()
    for position in range(FRACTION + 40):
        if dfa.accepting[state] and (not greatest or position >= FRACTION):
            break
        steps = [(digit, after) for digit in DIGITS if (after := dfa.step(state, digit)) >= 0]
        if not steps:
            break
        if position < FRACTION:
            digit, state = steps[-1 if greatest else 0]
        else:
            digit, state = min(steps, key=lambda step: int(distance[step[1]]))
        text += digit
    short = text.rstrip("0").rstrip(".")
    return short if dfa.accepts(short) else text


class NumberTexts:
    """Texts of a NumberLanguage: those of EDGES that it accepts, short ones, and others at random."""

    def __init__(self, language: NumberLanguage) -> None:
        self.automaton = NumberAutomaton(language)
        self.pool = tuple(text for text in EDGES if self.accepts(text))

    def accepts(self, text: str) -> bool:
        """Return whether a text is in the language."""
        return accepts_number(self.automaton, text)

    def draw(self, choose: Callable[[int], int]) -> str:
        """Return a text; choose(n) returns an integer below n, and 0 everywhere leads to a simple text."""
        if self.pool and choose(3) < 2:
            return self.pool[choose(len(self.pool))]
        return draw_number(self.automaton, choose)


@lru_cache(maxsize=1024)
def texts_of_number(language: NumberLanguage) -> NumberTexts:
    """Return the texts of a number in any spelling."""
    return NumberTexts(language)


def as_float(text: str, accepts: Callable[[str], bool], pool: Iterable[str]) -> str:
    """Return the number if a float represents it exactly; else a nearby one or one of the pool that a float represents
    and that is accepted, if any.

    So a document still satisfies the schema after a round trip through Python's `json` module.
    """
    if text.lstrip("-").isdigit():
        return text
    value = float(text)
    if is_same_number(repr(value), text):
        return text
    neighbours = (repr(value), format(Decimal(repr(value)), "f"), repr(int(value))) if isfinite(value) else ()
    fits = (other for other in (*neighbours, *pool) if accepts(other))
    return next((other for other in fits if is_same_number(repr(float(other)), other)), text)


def is_same_number(expected: str, text: str) -> bool:
    """Return whether a float represents exactly the number that was written."""
    try:
        return Decimal(expected) == Decimal(text) and isfinite(float(expected))
    except InvalidOperation:  # an exponent beyond the range of Decimal
        return False
