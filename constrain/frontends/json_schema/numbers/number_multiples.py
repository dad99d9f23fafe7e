"""Multiples of a decimal, or its non-multiples, as an automaton of texts without an exponent.

For a factor a / 10^s with a = b * 10^k, the digits read so far matter only by their value without trailing zeros modulo
b and by the number of these zeros, up to k; after the point the same, up to the s-th digit. That is b * (k + s + 2)
states at most, built as arrays and then minimised. Of two factors, one of which is a multiple of the other, one
suffices (`number_interval.reduce_multiples`). Bounds are not part of these automata, so that schemas share them.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ....automata.dfa import Dfa
from ....automata.numerals.decimals import as_decimal
from ....base.work import memoize_work, spend_work
from .number_parts import too_many_states
from .number_table import BOUNDS, CLASSES, DIGIT, MINUS, POINT

__all__ = ["ARRAY_STATES", "count_lasting_residues", "multiples_dfa", "count_residues"]

ARRAY_STATES = 8
"""Number of states built as arrays that count as one state of the limit, which is meant for explored states."""


def count_residues(factor: Fraction) -> int:
    """Return b, the number of residues that must be distinguished for a factor b * 10^k / 10^s."""
    a, _ = as_decimal(factor)
    while a % 10 == 0:
        a //= 10
    return a


def count_lasting_residues(number: int) -> int:
    """Return how many residues modulo a number remain distinct whatever digits follow.

    Powers of ten cancel factors two and five.
    """
    for prime in (2, 5):
        while number % prime == 0:
            number //= prime
    return number


@memoize_work(maxsize=128)
def multiples_dfa(factor: Fraction, wanted: bool, fraction: bool, max_states: int) -> Dfa:
    """Return the Dfa of the multiples of a decimal, or, if not `wanted`, of all other numbers.

    fraction: whether there may be a point. Raises LimitError beyond ARRAY_STATES * max_states states.
    """
    a, places = as_decimal(factor)
    b, zeros = count_residues(factor), 0
    while b * 10**zeros < a:
        zeros += 1
    tails = b if places else 2  # after the point of an integer factor: 0 if it divides the integer part, else 1
    integer_part, point, tail = 3, 3 + b * (zeros + 1), 3 + b * (zeros + 1) + tails
    last = tail + tails * max(places - 1, 0)  # all digits of the fraction that matter have been read
    off = last + tails  # no multiple, whatever follows (absorbing)
    if off > ARRAY_STATES * max_states:
        raise too_many_states(max_states)
    spend_work(1 + off * max(CLASSES) // 32, "multiples of a number")
    delta = np.full((off + 1, max(CLASSES) + 1), -1, dtype=np.int32)
    accepting = np.zeros(off + 1, dtype=np.bool_)
    digits, residue, tail_residue = np.arange(10), np.arange(b)[:, None], np.arange(tails)[:, None]
    columns = slice(DIGIT, DIGIT + 10)
    # The start, a minus sign, a leading zero.
    delta[0, MINUS] = 1
    delta[:2, columns] = integer_part + digits % b
    delta[:2, DIGIT] = 2
    delta[2, POINT] = point
    accepting[2] = wanted
    for read in range(zeros + 1):
        rows = slice(integer_part + read * b, integer_part + (read + 1) * b)
        delta[rows, columns] = integer_part + (residue * pow(10, read + 1, b) + digits) % b
        next_zeros = min(read + 1, zeros)
        delta[rows, DIGIT] = integer_part + next_zeros * b + residue[:, 0] * (10 if next_zeros == read else 1) % b
        divides = (residue[:, 0] * pow(10, places, b) % b == 0) & (read == zeros)
        accepting[rows] = divides == wanted
        delta[rows, POINT] = point + (residue[:, 0] if places else ~divides)
    if not fraction:
        delta[:, POINT] = -1
    outside = -1 if wanted else off
    for digit_index in range(places):
        begin = point if digit_index == 0 else tail + (digit_index - 1) * b
        delta[begin : begin + b, columns] = tail + digit_index * b + (residue * 10 + digits) % b
        accepting[tail + digit_index * b : tail + (digit_index + 1) * b] = (
            residue[:, 0] * pow(10, places - digit_index - 1, b) % b == 0
        ) == wanted
    last_states = slice(last, off)
    for rows in (last_states,) if places else (slice(point, tail), last_states):
        delta[rows, columns] = outside
        delta[rows, DIGIT] = last + tail_residue[:, 0]
    accepting[last_states] = (tail_residue[:, 0] == 0) == wanted
    delta[off, columns] = off
    accepting[off] = True
    return Dfa.from_arrays(BOUNDS, CLASSES, delta, accepting)
