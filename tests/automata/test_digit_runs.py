"""Runs of digits judged at once: as if they were read digit by digit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
from hypothesis import given, strategies as st

from constrain.automata.numerals.digit_runs import mark_digit_runs, mark_runs_slowly, read_run, read_unsure_runs
from constrain.automata.numerals.number_automaton import NumberAutomaton
from constrain.automata.numerals.number_reader import NumberReader
from constrain.automata.numerals.number_states import Mantissa, State
from constrain.kernels.digit_run_layout import ALIVE, ENDS, MEMBERS, MULTIPLES, REQUEST_HEADER_W
from constrain.kernels.entry_points import mark_runs
from tests.number_oracle import NumberOracle, random_oracle, random_suffix

MANY = [Fraction(text) for text in "997 1009 65537 0.123456789 12.34567 999983 1000000007 1e-25 99990001e20".split()]


def check_state(reader: NumberReader, state: Mantissa, length: int) -> None:
    for zeros in range(length + 1):
        first, last = (0, 1) if zeros == length else (10 ** (length - zeros - 1), 10 ** (length - zeros))
        values = np.arange(first, last, dtype=np.int64)
        following = [read_run(reader, state, length, value) for value in values.tolist()]
        expected = [0 if after is None else ALIVE | (ENDS if reader.may_end(after) else 0) for after in following]
        all_alive = None not in following
        for are_alive in (False, True) if all_alive else (False,):
            marks = np.zeros(len(values), np.uint8)
            is_told_alive = mark_digit_runs(reader, state, length, zeros, values, marks, are_alive=are_alive)
            assert all_alive or not is_told_alive, state
            read_unsure_runs(reader, state, np.full(len(values), length, np.int32), values, marks)
            assert marks.tolist() == expected, state


@given(st.integers(0, 10**9))
def test_runs_are_judged_as_digit_by_digit(seed: int) -> None:
    random = Random(seed)
    oracle = random_oracle(random)
    if random.random() < 0.5:  # a divisor with many residues
        cases = tuple((*case[:4], random.choice(MANY), ()) for case in oracle.cases)
        oracle = replace(oracle, cases=cases, form="marked" if oracle.form == "marked" else "any")
    reader = NumberReader(oracle.language())
    state: State | None = Mantissa(0)
    text = random_suffix(random, random.choice(["", "0."]))
    for byte in [None, *random.choice(["", "-"]).encode(), *text.encode()]:
        state = state if byte is None or state is None else reader.follow(state, byte)
        if isinstance(state, Mantissa):
            check_state(reader, state, random.randint(1, 2))


def test_long_numbers() -> None:
    """Where int64 does not suffice."""
    for bounds in ((None, None), (None, Fraction(10**40)), (Fraction(1), Fraction(10**40))):
        reader = NumberReader(NumberOracle(((bounds[0], False, bounds[1], False, Fraction(997), ()),)).language())
        state: State | None = Mantissa(0)
        for byte in b"1234567890123456789.00001234567890123456789012345678":
            state = None if state is None else reader.follow(state, byte)
            if isinstance(state, Mantissa):
                check_state(reader, state, 2)


@given(st.integers(0, 10**9))
def test_following_a_byte_is_a_row_of_the_automaton(seed: int) -> None:
    random = Random(seed)
    automaton = NumberAutomaton(random_oracle(random).language())
    number = 0
    for _ in range(12):
        row = automaton.row(number)
        for byte in range(256):
            after = automaton.readers[number].follow(automaton.states[number], byte)
            assert (after is not None) == (byte in row)
            if after is not None:
                assert automaton.readers[number].may_end(after) == automaton.accepts(row[byte])
        if not row:
            break
        number = row[random.choice(sorted(row))]


@given(st.integers(0, 10**9))
def test_the_kernel_marks_what_integers_of_any_size_mark(seed: int) -> None:
    random = Random(seed)
    marks, values = np.array([random.choice([0, ALIVE]) for _ in range(100)], np.uint8), np.arange(100)
    bounds = sorted(random.sample(range(100), random.randint(0, 3)))
    kind, request = random.choice([MEMBERS, MULTIPLES]), list[int]()
    places = [0] * (len(bounds) + 1)
    for gap in range(len(places)):
        if random.random() < 0.8:
            alternatives = [random_alternative(random, kind) for _ in range(random.randint(1, 2))]
            places[gap] = REQUEST_HEADER_W + len(bounds) + len(places) + len(request)
            request += [len(alternatives), *(word for one in alternatives for word in one)]
    request = [kind, len(bounds), *bounds, *places, *request]
    expected = marks.copy()
    left = mark_runs_slowly(values, request, expected)
    assert mark_runs(values, np.array(request, np.int64), marks) == left == (marks & ALIVE == 0).sum()
    assert marks.tolist() == expected.tolist()


def random_alternative(random: Random, kind: int) -> list[int]:
    """An alternative of a request of this kind."""
    if kind == MEMBERS:
        periods = [random.randint(2, 5) for _ in range(random.randint(0, 2))]
        step = random.choice([-1, 0, 1, 7, 30, 997])
        return [
            step,
            random.choice([1, 10, 100]),
            random.randint(0, 50),
            random.randint(1, 4),
            len(periods),
            *periods,
            0,
        ]
    others = [
        (modulus, random.randrange(-1, modulus)) for modulus in random.choices(range(1, 9), k=random.randint(0, 2))
    ]
    modulus = random.randint(1, 9)
    return [modulus, random.randint(-1, modulus), len(others), *(word for one in others for word in one)]
