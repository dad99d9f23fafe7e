"""Automata of numbers against exact fractions: what is accepted, what is refused, and which states are merged."""

from __future__ import annotations

import json
import marshal
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings, strategies as st

from constrain.automata.numerals.decimals import CHUNK, count_significant
from constrain.automata.numerals.number_automaton import NumberAutomata, NumberAutomaton
from constrain.automata.numerals.number_interval import NumberInterval
from constrain.automata.numerals.number_language import NumberLanguage
from constrain.automata.numerals.number_reader import NumberReader
from constrain.automata.numerals.number_states import Mantissa, State
from tests.number_oracle import (
    ALPHABET,
    MOST_EXPONENT,
    PREFIX,
    NumberOracle,
    complete,
    follow,
    random_decimal,
    random_oracle,
    random_suffix,
)

LENGTH = 3
oracles = st.integers(0, 10**9).map(lambda seed: (random_oracle(Random(seed)), Random(seed)))


def walk(automaton: NumberAutomaton, length: int) -> Iterator[tuple[str, int | None]]:
    """Yield every prefix of a number up to a length, with its state; None at the first byte that is refused."""
    todo: list[tuple[str, int]] = [("", 0)]
    while todo:
        text, state = todo.pop()
        yield text, state
        for char in ALPHABET if len(text) < length else "":
            after = automaton.row(state).get(ord(char))
            if after is not None:
                todo.append((text + char, after))
            elif PREFIX.fullmatch(text + char):
                yield text + char, None


def check_refusal(oracle: NumberOracle, text: str, members: list[Fraction], random: Random) -> None:
    """No completion of a refused text is found."""
    for _ in range(6):
        assert not oracle.accepts(text + random_suffix(random, text)), text
    if "e" not in text and oracle.most_fraction is None and oracle.form != "integer":
        assert not any(oracle.is_prefix(text, value) for value in members), text


@settings(max_examples=35)
@given(oracles)
def test_every_short_text(drawn: tuple[NumberOracle, Random]) -> None:
    oracle, random = drawn
    automaton, members = NumberAutomaton(oracle.language()), oracle.samples(random)
    if automaton.is_empty:
        assert not members or oracle.most_integer is not None or oracle.form == "integer"
        return
    completions: dict[int, str] = {}
    for text, state in walk(automaton, LENGTH):
        if state is None:
            check_refusal(oracle, text, members, random)
            continue
        assert automaton.accepts(state) == oracle.accepts(text), text
        if state not in completions:
            completions[state] = complete(automaton, state)
            assert oracle.most_fraction is not None or len(completions[state]) == automaton.least(state)
        assert oracle.accepts(text + completions[state]), (text, completions[state])
        # Texts of one state have the same continuations: any suffix is accepted after all of them or none.
        if random.random() < 0.2:
            suffix = random_suffix(random, text)
            after = follow(automaton, suffix, state)
            assert (after is not None and automaton.accepts(after)) == oracle.accepts(text + suffix), (text, suffix)


@settings(max_examples=35)
@given(oracles)
def test_long_texts(drawn: tuple[NumberOracle, Random]) -> None:
    oracle, random = drawn
    automaton = NumberAutomaton(oracle.language())
    if automaton.is_empty:
        return
    for _ in range(8):
        text, state = "", 0
        for _ in range(random.randint(8, 30)):
            row = automaton.row(state)
            following = [byte for byte in row if len(text) < 12 or not (byte in b"eE" and random.random() < 0.5)]
            if not following or len(text.lower().partition("e")[2].lstrip("+-0")) >= MOST_EXPONENT:
                break
            byte = random.choice(following)
            text, state = text + chr(byte), row[byte]
            assert automaton.accepts(state) == oracle.accepts(text), text
            assert oracle.accepts(text + complete(automaton, state)), text
        for _ in range(4):
            suffix = random_suffix(random, text)
            after = follow(automaton, suffix, state)
            assert (after is not None and automaton.accepts(after)) == oracle.accepts(text + suffix), (text, suffix)


@settings(max_examples=40)
@given(oracles)
def test_least_is_the_shortest_completion(drawn: tuple[NumberOracle, Random]) -> None:
    """Breadth-first search finds no shorter completion."""
    oracle, random = drawn
    automaton = NumberAutomaton(oracle.language())
    if automaton.is_empty or oracle.most_fraction is not None:
        return
    text, state = "", 0
    for _ in range(random.randint(0, 6)):
        row = automaton.row(state)
        if not row:
            return
        state = random.choice([row[byte] for byte in sorted(row)])
    layer, found, length = {state}, False, 0
    while not found and length < 4:
        found = any(automaton.accepts(one) for one in layer)
        assert found == (automaton.least(state) == length), text
        layer = {after for one in layer for after in automaton.row(one).values()}
        length += 1
        if len(layer) > 400:
            return


@given(oracles, st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=8))
def test_floats_as_json_writes_them(drawn: tuple[NumberOracle, Random], floats: list[float]) -> None:
    """A float is accepted exactly if its exact decimal is a member, however large or small it is."""
    oracle, random = drawn
    oracle = NumberOracle(oracle.cases)
    automaton = NumberAutomaton(oracle.language())
    multiples = [float(value * random.randint(1, 99)) for value in oracle.samples(random)]
    for value in (*floats, *random.sample(multiples, min(8, len(multiples)))):
        text = json.dumps(value)
        state = follow(automaton, text)
        assert (state is not None and automaton.accepts(state)) == oracle.accepts(text), text


@given(oracles)
def test_saved_languages_are_equal(drawn: tuple[NumberOracle, Random]) -> None:
    language = drawn[0].language()
    assert NumberLanguage.from_bytes(language.to_bytes()) == language
    assert hash(NumberLanguage.from_bytes(language.to_bytes())) == hash(language)


@given(st.integers(0, 10**9))
def test_the_order_of_intervals_does_not_matter(seed: int) -> None:
    random = Random(seed)
    cases = [random_oracle(random).cases[0] for _ in range(3)]
    shuffled = random.sample(cases, 3)
    assert NumberOracle(tuple(cases)).language() == NumberOracle((*shuffled, shuffled[0])).language()


@pytest.mark.parametrize(
    ("multiple", "texts"),
    [
        ("2.5", ["0.025e2", "25e-1", "1e1", "2.50", "0", "-0e9"]),
        ("0.5", ["8.73248e+22", "1e300", "1.5", "15e-1"]),
        ("0.123456789", ["0.123456789", "123456789e-9", "1.23456789e-1", "0.246913578"]),
        ("1", ["1.0", "1e2", "100e-2", "0.01e2", "12.50e1"]),
    ],
)
def test_spellings_of_multiples(multiple: str, texts: list[str]) -> None:
    automaton = NumberAutomaton(
        NumberLanguage.of([NumberInterval.of(None, None, False, False, [Fraction(multiple)], [])])
    )
    for text in texts:
        state = follow(automaton, text)
        assert state is not None and automaton.accepts(state), text


def test_all_integers_of_a_few_digits() -> None:
    anything = NumberInterval.of(None, None, False, False, [], [])
    automaton = NumberAutomaton(NumberLanguage.of([anything], 3, 3, "integer"))
    for text, wanted in (("7", True), ("-999", True), ("0", True), ("1000", None), ("1.0", None), ("1e0", None)):
        state = follow(automaton, text)
        assert (state is not None and automaton.accepts(state)) == bool(wanted), text


def test_free_digits_are_one_state() -> None:
    """Without anything that counts digits, a number of any length adds no state."""
    one = Fraction(1)
    automaton = NumberAutomaton(NumberLanguage.of([NumberInterval.of(None, None, False, False, [one], [])]))
    state = follow(automaton, "1")
    assert follow(automaton, "1234567891") == state and follow(automaton, "9" * 300) == state
    fraction = follow(automaton, "5.5")
    for digits in ("1.5", "77.7"):
        assert follow(automaton, digits) == fraction


def test_digits_between_those_of_the_bounds_are_one_state() -> None:
    bounds = NumberInterval.of(Fraction(0), Fraction(360), False, False, [Fraction(1)], [])
    automaton = NumberAutomaton(NumberLanguage.of([bounds]))
    assert len({automaton.row(0)[ord(digit)] for digit in "12"}) == 1
    assert len({automaton.row(0)[ord(digit)] for digit in "456789"}) == 1
    assert len({automaton.row(0)[ord(digit)] for digit in "0134"}) == 4


@given(st.integers(0, 10**9), st.integers(20, 300))
def test_many_listed_and_excluded_values(seed: int, count: int) -> None:
    random = Random(seed)
    values = sorted({random_decimal(random) for _ in range(count)})
    edges = [None, *values, None]
    listed = NumberOracle(tuple((value, False, value, False, None, ()) for value in values))
    excluded = NumberOracle(tuple((low, True, high, True, None, ()) for low, high in zip(edges, edges[1:])))
    machines = NumberAutomaton(listed.language()), NumberAutomaton(excluded.language())
    for value in random.sample(values, 10):
        near = value + random.choice([0, 0, 1, Fraction(1, 10)])
        text = f"{float(near):.9f}" if random.random() < 0.5 else str(int(near))
        for oracle, automaton in zip((listed, excluded), machines):
            state = follow(automaton, text)
            assert (state is not None and automaton.accepts(state)) == oracle.accepts(text), text


def test_long_numbers() -> None:
    """Texts of thousands of digits, and bounds of as many."""
    automaton = NumberAutomaton(
        NumberLanguage.of([NumberInterval.of(Fraction(1), Fraction(10**3000), False, False, [Fraction(1)], [])])
    )
    for text, wanted in (("9" * 3000, True), ("1" + "0" * 3000, True), ("1" * 3001, None), ("1" * 4000 + "e-", None)):
        state = follow(automaton, text)
        assert (None if state is None else automaton.accepts(state)) == (wanted if state is not None else None)
        assert (state is None) == (wanted is None)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=4), st.integers(0, 3 * CHUNK), st.integers(1, 3 * CHUNK))
def test_significant_digits_of_long_integers(parts: list[int], zeros: int, distance: int) -> None:
    value = 0
    for part in parts:
        value = value * 10**distance + part
    digits = "".join(map(str, Decimal(value).as_tuple().digits)).rstrip("0")
    assert count_significant(value * 10**zeros) == len(digits)


PARTITION = [(None, 1), (1, 10), (10, 50), (50, 99), (99, 100), (100, 400), (400, 999), (999, 1000), (1000, None)]
MULTIPLES = [*map(Fraction, (1, 2, 3, 7, 11, 13, 17)), Fraction(1, 2), Fraction(1, 20), None]


def draw_languages(random: Random) -> list[NumberLanguage]:
    """Return languages that are much alike: some of the same oracle, or unions of neighbouring intervals with different
    multiples."""
    first = random_oracle(random)
    languages = [first.language()]
    for _ in range(2):
        oracle = random.choice([first, replace(first, cases=first.cases[:1]), random_oracle(random)])
        if not any(excluded for *_, excluded in oracle.cases):  # of which the front end makes those of the form
            oracle = replace(oracle, form=random.choice(["any", "integer", "marked"]))
        languages.append(replace(oracle, most_integer=random.choice([oracle.most_integer, None, 1, 2])).language())
    form, pieces = random.choice(["any", "integer", "marked"]), random.sample(PARTITION, 4)
    for _ in range(3):
        parts = [
            NumberInterval.of(
                None if low is None else Fraction(low), None if high is None else Fraction(high),
                False, random.random() < 0.9, [one for one in [random.choice(MULTIPLES)] if one is not None], [],
            )
            for low, high in pieces
        ]  # fmt: skip
        languages.append(NumberLanguage.of(parts, form=form))
    random.shuffle(languages)
    return languages


@settings(max_examples=20)
@given(st.integers(0, 10**9))
def test_languages_share_states_that_have_one_future(seed: int) -> None:
    """Whatever other texts and languages have reached a state, it is read as its own text is."""
    random = Random(seed)
    shared = NumberAutomata()
    for language in draw_languages(random):
        reader, own = NumberReader(language), NumberAutomaton(language)
        for _ in range(12):
            state: State | None = Mantissa(0)
            number, alone = shared.start(language), 0
            for _ in range(7):
                assert state is not None
                row = shared.row(number)
                following = {byte: reader.follow(state, byte) for byte in b"0123456789-+.eE"}
                assert {byte for byte in following if following[byte] is not None} == row.keys()
                assert shared.accepts(number) == reader.may_end(state)
                if row:
                    assert shared.least(number) == own.least(alone)
                if not row:
                    break
                byte = random.choice(sorted(row))
                state, number, alone = following[byte], row[byte], own.row(alone)[byte]


@pytest.mark.parametrize("swapped", [False, True])
def test_remainders_of_different_numbers_are_distinguished(swapped: bool) -> None:
    """Both languages go on with multiples of 3 from 1000 on; the other remainders are of other numbers."""

    def union(*parts: tuple[int, int | None, int]) -> NumberLanguage:
        return NumberLanguage.of(
            NumberInterval.of(Fraction(low), None if high is None else Fraction(high), False, high is not None,
                              [Fraction(multiple)], [])
            for low, high, multiple in parts
        )  # fmt: skip

    languages = [
        union((1, 100, 7), (100, 1000, 11), (1000, None, 3)),
        union((1, 100, 13), (100, 1000, 17), (1000, None, 3)),
        union((100, 400, 7), (400, 500, 3), (500, 1000, 11), (1000, None, 3)),
    ]
    automata = NumberAutomata()
    for language in reversed(languages) if swapped else languages:
        reader = NumberReader(language)
        for value in range(100, 2000):
            number, state = automata.start(language), Mantissa(0)
            for byte in str(value).encode():
                after = reader.follow(state, byte)
                assert (after is not None) == (byte in automata.row(number)), value
                if after is None:
                    break
                assert isinstance(after, Mantissa)
                number, state = automata.row(number)[byte], after
                assert automata.accepts(number) == reader.may_end(state), value


def test_names_do_not_depend_on_what_was_read_before() -> None:
    bounds = [NumberInterval.of(Fraction(low), None, False, False, [Fraction(7)], []) for low in (0, 10, 300)]
    languages = [NumberLanguage.of([one]) for one in bounds]
    texts = ["", "-", "5", "57", "0", "571", "0.0", "5e", "5e-1"]

    def name_all(order: list[NumberLanguage]) -> dict[tuple[bytes, str], bytes]:
        automata, names = NumberAutomata(), dict[tuple[bytes, str], bytes]()
        for language in order:
            for text in texts:
                number: int | None = automata.start(language)
                for byte in text.encode():
                    number = None if number is None else automata.row(number).get(byte)
                if number is not None:
                    names[language.key, text] = marshal.dumps(automata.describe(number), 2)
        return names

    one, other = name_all(languages), name_all(languages[::-1])
    assert one == other
    assert one[languages[0].key, "571"] == one[languages[1].key, "571"] == one[languages[2].key, "571"]
    assert len(set(one.values())) > 10


def test_an_interrupt_while_a_state_is_numbered_leaves_no_trace() -> None:
    """What was appended before the number is known is replaced by the next state."""
    language = NumberLanguage.of([NumberInterval.of(Fraction(3), Fraction(70), False, False, [Fraction(1)], [])])
    automata, own = NumberAutomata(), NumberAutomaton(language)
    for partial in (automata.states, automata.searches.names, automata.searches.labels):
        partial.append(None)  # type: ignore[attr-defined]
        number = automata.start(language)
        assert automata.row(number).keys() == own.row(0).keys()
        seven = automata.row(number)[ord("7")]
        assert automata.row(seven).keys() == own.row(own.row(0)[ord("7")]).keys()
        language = NumberLanguage.of([NumberInterval.of(Fraction(3), Fraction(70), False, False, [Fraction(1, 2)], [])])
        own = NumberAutomaton(language)


def test_integers_beyond_their_bounds_are_read_alike() -> None:
    one = Fraction(1)
    bounds = [(None, None), (Fraction(0), None), (one, None), (Fraction(-5), None), (Fraction(10), None)]
    automata, states = NumberAutomata(), list[int]()
    for low, high in bounds:
        start = automata.start(NumberLanguage.of([NumberInterval.of(low, high, False, False, [one], [])]))
        state = start
        for byte in b"57":
            state = automata.row(state)[byte]
        states.append(state)
    assert len(set(states)) == 1
