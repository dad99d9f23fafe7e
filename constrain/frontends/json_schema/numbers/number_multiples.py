"""Multiples of a decimal, or what is no multiple of it, as an automaton of texts without an exponent.

A factor a / 10^s, with a = b * 10^k, asks of the digits read so far only their value without trailing zeros modulo b
and how many zeros there are, up to k; after the point the same, as far as the s-th digit. That is b * (k + s + 2)
states at most, made as arrays and then made minimal. Of two factors, one of which is a multiple of the other, one is
enough (`reduce_multiples`). Bounds are not known here, so that schemas share these automata.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from ....automata.dfa import Dfa
from ....base.work import memoize_work, spend_work
from .number_parts import as_decimal, lcm_of, too_many_states
from .number_table import BOUNDS, CLASSES, DIGIT, MINUS, POINT

__all__ = ["ARRAY_STATES", "count_lasting_residues", "multiples_dfa", "reduce_multiples", "count_residues"]

ARRAY_STATES = 8
"""States in arrays that count as one of the limit, which is about those that are made one by one."""


def reduce_multiples(multiple: Fraction | None, not_multiples: Iterable[Fraction]) -> tuple[Fraction, ...]:
    """Fewest numbers of which a multiple of `multiple` is none, if it is none of `not_multiples`; least ones first."""
    candidates = sorted({other if multiple is None else lcm_of((multiple, other)) for other in not_multiples})
    kept: list[Fraction] = []
    for other in candidates:
        if all((other / less).denominator > 1 for less in kept):
            kept.append(other)
    return tuple(kept)


def count_residues(factor: Fraction) -> int:
    """b: how many residues must be distinguished for a factor b * 10^k / 10^s."""
    a, _ = as_decimal(factor)
    while a % 10 == 0:
        a //= 10
    return a


def count_lasting_residues(number: int) -> int:
    """How many residues modulo a number stay apart whatever digits follow: twos and fives are lost to powers of ten."""
    for prime in (2, 5):
        while number % prime == 0:
            number //= prime
    return number


@memoize_work(maxsize=128)
def multiples_dfa(factor: Fraction, wanted: bool, fraction: bool, max_states: int) -> Dfa:
    """The multiples of a decimal, or (not wanted) all that are none. fraction: whether there may be a point.

    LimitError beyond ROOM * max_states states.
    """
    a, places = as_decimal(factor)
    b, zeros = count_residues(factor), 0
    while b * 10**zeros < a:
        zeros += 1
    tails = b if places else 2  # Behind the point of a whole factor: 0 if it divides what is in front, or 1.
    whole, point, tail = 3, 3 + b * (zeros + 1), 3 + b * (zeros + 1) + tails
    last = tail + tails * max(places - 1, 0)  # where the digits of the fraction that matter have been read
    off = last + tails  # no multiple, whatever follows
    if off > ARRAY_STATES * max_states:
        raise too_many_states(max_states)
    spend_work(1 + off * max(CLASSES) // 32, "multiples of a number")
    delta = np.full((off + 1, max(CLASSES) + 1), -1, dtype=np.int32)
    accepting = np.zeros(off + 1, dtype=np.bool_)
    digits, residue, behind = np.arange(10), np.arange(b)[:, None], np.arange(tails)[:, None]
    columns = slice(DIGIT, DIGIT + 10)
    # The start, a minus sign, a leading zero.
    delta[0, MINUS] = 1
    delta[:2, columns] = whole + digits % b
    delta[:2, DIGIT] = 2
    delta[2, POINT] = point
    accepting[2] = wanted
    for read in range(zeros + 1):
        rows = slice(whole + read * b, whole + (read + 1) * b)
        delta[rows, columns] = whole + (residue * pow(10, read + 1, b) + digits) % b
        more = min(read + 1, zeros)
        delta[rows, DIGIT] = whole + more * b + residue[:, 0] * (10 if more == read else 1) % b
        divides = (residue[:, 0] * pow(10, places, b) % b == 0) & (read == zeros)
        accepting[rows] = divides == wanted
        delta[rows, POINT] = point + (residue[:, 0] if places else ~divides)
    if not fraction:
        delta[:, POINT] = -1
    outside = -1 if wanted else off
    for place in range(places):
        begin = point if place == 0 else tail + (place - 1) * b
        delta[begin : begin + b, columns] = tail + place * b + (residue * 10 + digits) % b
        accepting[tail + place * b : tail + (place + 1) * b] = (
            residue[:, 0] * pow(10, places - place - 1, b) % b == 0
        ) == wanted
    ends = slice(last, off)
    for rows in (ends,) if places else (slice(point, tail), ends):
        delta[rows, columns] = outside
        delta[rows, DIGIT] = last + behind[:, 0]
    accepting[ends] = (behind[:, 0] == 0) == wanted
    delta[off, columns] = off
    accepting[off] = True
    return Dfa.from_arrays(BOUNDS, CLASSES, delta, accepting)
