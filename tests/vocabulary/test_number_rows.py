"""Rows of numbers by arithmetic: equal to those of walks through the states of the automaton."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

from hypothesis import given, strategies as st

from constrain.automata.numerals.number_automaton import NumberAutomaton
from constrain.automata.numerals.number_states import ZERO, Mantissa
from constrain.kernels import layout as at
from constrain.vocabulary.mask_table import MaskTable
from constrain.vocabulary.vocabulary import Vocabulary
from tests.number_oracle import NumberOracle, random_oracle

RUNS = [b"%d" % number for number in range(100)] + [b"00", b"000", b"007", b"100", b"994", b"997", b"999", b"0000000"]
RUNS += [b"1000000", b"9999999", b"12345678"]
MIXED = [
    b"1.",
    b"2.5",
    b"0.0",
    b"7e",
    b"7e1",
    b"12E-",
    b"1]",
    b"25,",
    b"1e5]",
    b"1000000.",
    b"-1",
    b"-12.",
    b".5",
    b".05",
]
OTHERS = [b".", b"-", b"e", b"E", b"+", b"e+", b"e-1", b"]", b".]", b"x", b"-x", b"9x", b" "]
MANY = [Fraction(text) for text in "997 1009 0.123456789 999983".split()]


def make_vocabulary(random: Random) -> Vocabulary:
    """Return the tokens of one byte and some others."""
    longer = [token for token in RUNS + MIXED + OTHERS if len(token) > 1 and random.random() < 0.7]
    return Vocabulary.from_tokens([*(bytes([byte]) for byte in range(32, 127)), *longer, None], (95 + len(longer),))


def find_row(table: MaskTable, leaf: int) -> tuple[bytes, set[tuple[int, int]]]:
    """Return the row of a leaf state, and the exits that have tokens below."""
    exits = table._find_exits(leaf)
    row = int(table.arrays[at.TABLE][at.MADE_ROW])
    words = table.arrays[at.ROWS][row * table.words : (row + 1) * table.words]
    found = table.arrays[at.TRIE_TEMP][at.MERGED_FIRST : at.MERGED_FIRST + at.MERGED_W * exits].reshape(-1, 2).tolist()
    firsts = table.arrays[at.TRIE][at.TRIE_FIRST_EDGE :: at.TRIE_W]
    return words.tobytes(), {(node, depth) for node, depth in found if firsts[node] < firsts[node + 1]}


@given(st.integers(0, 10**9))
def test_rows_are_those_of_walks(seed: int) -> None:
    random = Random(seed)
    oracle = random_oracle(random)
    if random.random() < 0.5:
        cases = tuple((*case[:4], random.choice(MANY), ()) for case in oracle.cases)
        oracle = replace(oracle, cases=cases, form="marked" if oracle.form == "marked" else "any")
    language = oracle.language()
    if NumberAutomaton(language).is_empty:
        return
    vocabulary = make_vocabulary(random)
    table, walking = MaskTable(vocabulary), MaskTable(vocabulary)
    walking.numbers.make_row = lambda leaf: None  # type: ignore[method-assign]
    leaf, other = table.start(language, at.NUMBER), walking.start(language, at.NUMBER)
    automaton, number = table.numbers.automata, 0
    text = ""
    for _ in range(6):
        state = automaton.states[number]
        assert (table.numbers.make_row(leaf) is None) == (not isinstance(state, Mantissa) or state.phase == ZERO)
        assert find_row(table, leaf) == find_row(walking, other), (oracle, text)
        row = automaton.row(number)
        if not row:
            break
        byte = random.choice(sorted(row))
        text, number = text + chr(byte), row[byte]
        leaf, other = (int(one.arrays[at.LEAF_NEXT][256 * q + byte]) for one, q in ((table, leaf), (walking, other)))
        table.expand(leaf)
        walking.expand(other)


def test_a_vocabulary_without_digits() -> None:
    vocabulary = Vocabulary.from_tokens([b"-", b".", b"x", None], (3,))
    table = MaskTable(vocabulary)
    language = NumberOracle(((None, False, None, False, Fraction(7), ()),)).language()
    assert find_row(table, table.start(language, at.NUMBER))[0] == bytes([1, 0, 0, 0])
