"""The automaton of the decimal numbers between two bounds, read digit by digit (kernels).

The states are those that `number_automata.tabulate_numbers` explores. A *place* says how the digits so far compare with
those of a bound. LESS and GREATER: that is decided. Then the places after the point, where all digits agree, by the
number of digits there; then, for each number of digits of the integer part, three places: they compare as less, equal,
or greater.

A state is (sign, phase, place in the lower bound, place in the upper one, digits counted), packed into an int64.
"""

from __future__ import annotations

from typing import Any

from numba import types

from .automata_layout import CLASSES, HEADER_W, NO_SPACE, RANGES, STATES
from .automata_records import READ, WRITE, find_table_size, mix
from .context_views import at, int64s_at
from .jit.compilation import entry, inlined, kernel

from .digit_request_layout import (  # isort: skip
    ALLOWS_EQUAL, ALLOWS_GREATER, ALLOWS_LESS, BOUND_ALLOWED, BOUND_DIGITS, BOUND_INTEGER, BOUND_TAIL, CLASS_DIGIT,
    CLASS_E, CLASS_MINUS, CLASS_PLUS, CLASS_POINT, N_CLASSES, Q_EXPONENT, Q_FRACTION, Q_MIRRORED, Q_SIDES,
    SIDE_HIGH, SIDE_INTEGER, SIDE_LOW, SIDE_PRESENT, SIDE_TAIL, SIDE_W, UNLIMITED,
)  # fmt: skip

START, ZERO, INTEGER, POINT, TAIL, E, E_SIGN, E_DIGITS = range(8)
"""Phases: no digit yet; a leading zero; more digits; the point; digits of the fraction; the e; its sign; its digits."""

DEAD, LESS, GREATER, AFTER_POINT = -1, 0, 1, 2
"""Places: none; decided; the first after the point."""

PLACE_BITS, PHASE_BITS = 16, 3
COUNT_SHIFT = 1 + PHASE_BITS + 2 * PLACE_BITS


@inlined("int64(int64, int64, int64, int64, int64)")
def pack_state(sign: Any, phase: Any, low: Any, high: Any, count: Any) -> Any:
    """Return a state as an int64."""
    places = low << (1 + PHASE_BITS) | high << (1 + PHASE_BITS + PLACE_BITS)
    return sign | phase << 1 | places | count << COUNT_SHIFT


@inlined("int64(pointer)")
def first_place(bound: Any) -> Any:
    """Return the place before the first digit."""
    return AFTER_POINT + bound[BOUND_TAIL] + 1 + 1


@inlined("int64(pointer, int64)")
def decide(bound: Any, place: Any) -> Any:
    """Return a decided place, or DEAD if the bound does not allow it."""
    allowed = ALLOWS_LESS if place == LESS else ALLOWS_GREATER
    return place if bound[BOUND_ALLOWED] & allowed else DEAD


@inlined("int64(pointer, int64, int64)")
def read_digit(bound: Any, place: Any, digit: Any) -> Any:
    """Return the place after one more digit."""
    length, tail = bound[BOUND_INTEGER] + 0, bound[BOUND_TAIL] + 0
    integer = AFTER_POINT + tail + 1
    if place < AFTER_POINT:
        return place
    if place < integer:
        k = place - AFTER_POINT
        expected = bound[BOUND_DIGITS + length + k] + 0 if k < tail else 0
        if digit == expected:
            return place + 1 if k < tail else place
        return decide(bound, LESS if digit < expected else GREATER)
    read, compared = (place - integer) // 3, (place - integer) % 3
    if read == length:
        return decide(bound, GREATER)
    if compared == 1:
        expected = bound[BOUND_DIGITS + read] + 0
        compared = 1 if digit == expected else 0 if digit < expected else 2
    return integer + 3 * (read + 1) + compared


@inlined("int64(pointer, int64)")
def read_point(bound: Any, place: Any) -> Any:
    """Return the place after the decimal point."""
    integer = AFTER_POINT + bound[BOUND_TAIL] + 1
    if place < AFTER_POINT:
        return place
    read, compared = (place - integer) // 3, (place - integer) % 3
    if read == bound[BOUND_INTEGER] and compared == 1:
        return AFTER_POINT
    is_less = read < bound[BOUND_INTEGER] or compared == 0
    return decide(bound, LESS if is_less else GREATER)


@inlined("int64(pointer, int64)")
def may_end(bound: Any, place: Any) -> Any:
    """Return whether the number may end at a place: 1 or 0."""
    integer = AFTER_POINT + bound[BOUND_TAIL] + 1
    if place < AFTER_POINT:
        return 1
    compared, read = 1, 0
    if place < integer:
        read = place - AFTER_POINT
    else:
        compared = (place - integer) % 3
        if (place - integer) // 3 < bound[BOUND_INTEGER]:
            compared = 0
    if compared == 1 and read < bound[BOUND_TAIL]:
        compared = 0
    wanted = ALLOWS_LESS if compared == 0 else ALLOWS_EQUAL if compared == 1 else ALLOWS_GREATER
    return 1 if bound[BOUND_ALLOWED] & wanted else 0


@inlined("int64(int64, int64, int64, int64, int64)")
def number_state(keys: Any, table: Any, size: Any, count: Any, key: Any) -> Any:
    """Return the number of a state, which is `count` if it is new, after appending it to the states then."""
    known, slots = int64s_at(keys), at(table)
    k = mix(key) & (size - 1)
    while slots[k] > 0 and known[slots[k] - 1] != key:
        k = (k + 1) & (size - 1)
    if slots[k] == 0:
        known[count] = key
        slots[k] = count + 1
    return slots[k] - 1


@inlined("int64(int64, int64, int64)")
def start_of(request: Any, sign: Any, phase: Any) -> Any:
    """Return the state before the digits of numbers with this sign (1: a minus) and phase."""
    header = at(request)
    side = Q_SIDES + SIDE_W * sign
    low, high = 0, 0
    if header[side + SIDE_LOW] > 0:
        low = first_place(at(request + 4 * header[side + SIDE_LOW]))
    if header[side + SIDE_HIGH] > 0:
        high = first_place(at(request + 4 * header[side + SIDE_HIGH]))
    return pack_state(sign, phase, low, high, 0)


@inlined("int64(int64, int64, int64, int64)")
def after_digit(request: Any, state: Any, digit: Any, sign: Any) -> Any:
    """Return the state after a digit, with this sign from there on; or DEAD."""
    header = at(request)
    phase = state >> 1 & ((1 << PHASE_BITS) - 1)
    if phase == ZERO:
        return DEAD
    side = Q_SIDES + SIDE_W * (state & 1)
    low = state >> (1 + PHASE_BITS) & ((1 << PLACE_BITS) - 1)
    high = state >> (1 + PHASE_BITS + PLACE_BITS) & ((1 << PLACE_BITS) - 1)
    count = state >> COUNT_SHIFT
    most = header[side + SIDE_INTEGER] + 0 if phase < POINT else header[side + SIDE_TAIL] + 0
    if most != UNLIMITED:
        if count == most:
            return DEAD
        count += 1
    if header[side + SIDE_LOW] > 0:
        low = read_digit(at(request + 4 * header[side + SIDE_LOW]), low, digit)
    if header[side + SIDE_HIGH] > 0:
        high = read_digit(at(request + 4 * header[side + SIDE_HIGH]), high, digit)
    if low == DEAD or high == DEAD:
        return DEAD
    following = TAIL if phase >= POINT else ZERO if phase == START and digit == 0 else INTEGER
    return pack_state(sign, following, low, high, count)


@inlined("int64(int64, int64)")
def after_point(request: Any, state: Any) -> Any:
    """Return the state after the decimal point, or DEAD."""
    header = at(request)
    side = Q_SIDES + SIDE_W * (state & 1)
    low = state >> (1 + PHASE_BITS) & ((1 << PLACE_BITS) - 1)
    high = state >> (1 + PHASE_BITS + PLACE_BITS) & ((1 << PLACE_BITS) - 1)
    if header[side + SIDE_LOW] > 0:
        low = read_point(at(request + 4 * header[side + SIDE_LOW]), low)
    if header[side + SIDE_HIGH] > 0:
        high = read_point(at(request + 4 * header[side + SIDE_HIGH]), high)
    return DEAD if low == DEAD or high == DEAD else pack_state(state & 1, POINT, low, high, 0)


@inlined("int64(int64, int64)")
def accepts_state(request: Any, state: Any) -> Any:
    """Return whether a number may end in a state that is not in its exponent: 1 or 0."""
    header = at(request)
    phase = state >> 1 & ((1 << PHASE_BITS) - 1)
    if phase == START or phase == POINT:
        return 0
    side = Q_SIDES + SIDE_W * (state & 1)
    low = state >> (1 + PHASE_BITS) & ((1 << PLACE_BITS) - 1)
    high = state >> (1 + PHASE_BITS + PLACE_BITS) & ((1 << PLACE_BITS) - 1)
    if header[side + SIDE_LOW] > 0 and may_end(at(request + 4 * header[side + SIDE_LOW]), low) == 0:
        return 0
    if header[side + SIDE_HIGH] > 0 and may_end(at(request + 4 * header[side + SIDE_HIGH]), high) == 0:
        return 0
    return 1


@kernel("int64(int64, int64, int64)")
def write_successors(request: Any, state: Any, row: Any) -> Any:
    """Write the states after each class of characters to int64s at address `row`, DEAD where there is none.

    Return whether a number may end in the state.
    """
    header, targets = at(request), int64s_at(row)
    for c in range(N_CLASSES):
        targets[c] = DEAD
    phase = state >> 1 & ((1 << PHASE_BITS) - 1)
    most, count = header[Q_EXPONENT] + 0, state >> COUNT_SHIFT
    if phase >= E:
        if most == UNLIMITED or count < most:
            following = pack_state(0, E_DIGITS, 0, 0, 1 if most == UNLIMITED else count + 1)
            for digit in range(10):
                targets[CLASS_DIGIT + digit] = following
        if phase == E:
            targets[CLASS_PLUS] = pack_state(0, E_SIGN, 0, 0, 0)
            targets[CLASS_MINUS] = targets[CLASS_PLUS]
        return 1 if phase == E_DIGITS else 0
    if header[Q_SIDES + SIDE_W * (state & 1) + SIDE_PRESENT]:
        sign = 0 if header[Q_MIRRORED] else state & 1
        for digit in range(10):
            targets[CLASS_DIGIT + digit] = after_digit(request, state, digit, sign)
    if phase == START:
        if state & 1 == 0 and header[Q_SIDES + SIDE_W + SIDE_PRESENT]:
            targets[CLASS_MINUS] = start_of(request, 1, START)
        return 0
    accepts = accepts_state(request, state)
    if header[Q_FRACTION] and (phase == ZERO or phase == INTEGER):
        targets[CLASS_POINT] = after_point(request, state)
    if most != 0 and accepts:
        targets[CLASS_E] = pack_state(0, E, 0, 0, 0)
    return accepts


@entry([types.int64(READ, WRITE, types.int64[::1], types.int64)])
def explore_digits(request: Any, record: Any, scratch: Any, most: Any) -> Any:
    """Complete a record, of which RANGES, the bounds and the classes are written, with the states of all numbers.

    scratch: two int64s for each of `most` states and one more, N_CLASSES, and the slots of a hash table as
    `find_table_size` says, two in an int64. The record has space for `most` states. Return their number, or NO_SPACE.
    """
    r, q, keys = record.ctypes.data, request.ctypes.data, scratch.ctypes.data
    accepting, row = keys + 8 * (most + 1), keys + 16 * (most + 1)
    table, size = row + 8 * N_CLASSES, find_table_size(most + 1)
    delta = at(r + 4 * (HEADER_W + 2 * at(r)[RANGES]))
    known, ends, targets, slots = int64s_at(keys), int64s_at(accepting), int64s_at(row), at(table)
    for k in range(size):
        slots[k] = 0
    count, k = 1, 0
    number_state(keys, table, size, 0, start_of(q, 0, START))
    while k < count:
        ends[k] = write_successors(q, known[k] + 0, row)
        for c in range(N_CLASSES):
            target = DEAD
            if targets[c] != DEAD:
                target = number_state(keys, table, size, count, targets[c] + 0)
                if target == most:
                    return NO_SPACE
                count = max(count, target + 1)
            delta[N_CLASSES * k + c] = target
        k += 1
    at(r)[STATES], at(r)[CLASSES] = count, N_CLASSES
    for k in range(count):
        delta[N_CLASSES * count + k] = ends[k]
    return count
