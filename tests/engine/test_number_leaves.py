"""Leaves of numbers in the engine: states on demand, shared rows, completions, saved constraints, and forgetting."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from random import Random
from threading import Thread

import numpy as np
import pytest
from hypothesis import given, strategies as st

from constrain.automata.numerals.number_automaton import NumberAutomaton
from constrain.base.errors import LimitError
from constrain.base.options import Limits, Style
from constrain.compilation.constraint_compiler import compile, compile_grammar
from constrain.engine.constraint import Constraint
from constrain.engine.matcher import Matcher
from constrain.grammar.nodes import Grammar, Literal, Number, Sequence
from constrain.kernels import layout as at
from constrain.program.program import Program
from constrain.program.restored_program import RestoredProgram, extract_linked
from constrain.vocabulary import mask_table
from constrain.vocabulary.mask_table_cache import find_mask_table
from constrain.vocabulary.vocabulary import Vocabulary
from tests.number_oracle import NumberOracle, complete, exact_value, random_oracle
from tests.text_acceptance import accepts_text

DIGITS = [b"%d" % number for number in (*range(10), *range(10, 100), 100, 999)]
PIECES = [*DIGITS, b".", b"-", b"e", b"E", b"+", b",", b"1,", b".5", b"e-", b"0.", b"[", b"]", b" "]
PORTS = {"type": "integer", "minimum": 1, "maximum": 65535}


def tokens() -> Vocabulary:
    return Vocabulary.from_tokens([*PIECES, None], (len(PIECES),))


@given(st.integers(0, 10**9))
def test_completions_are_shortest(seed: int) -> None:
    oracle = random_oracle(Random(seed))
    language = oracle.language()
    automaton = NumberAutomaton(language)
    if automaton.is_empty or oracle.most_fraction is not None:
        return
    grammar = Grammar(Sequence((Literal(b"["), Number(language), Literal(b"]"))), {})
    matcher = compile_grammar(grammar, Vocabulary.bytes()).matcher()
    completion = matcher.shortest_completion()
    assert completion is not None and len(completion) == 2 + len(complete(automaton, 0))
    assert oracle.contains(exact_value(completion[1:-1].decode()))


def test_equal_rows_and_suffix_tries_are_stored_once() -> None:
    vocabulary = tokens()
    matcher = compile(vocabulary, schema={"type": "array", "items": PORTS}, style=Style.any()).matcher()
    table = find_mask_table(vocabulary)
    matcher.advance_bytes(b"[")
    for text in (b"1", b"2", b"3", b".", b"5", b"0", b"e", b"1"):
        matcher.mask()
        matcher.advance_bytes(text)
    counts = table.arrays[at.TABLE]
    rows = table.arrays[at.ROWS][: counts[at.N_ROWS] * table.words].reshape(-1, table.words)
    assert len(np.unique(rows, axis=0)) == len(rows)
    records = table.arrays[at.LEAVES][: counts[at.N_LEAVES] * at.LEAF_W].reshape(-1, at.LEAF_W)
    with_row = records[records[:, at.LEAF_ROW] >= 0]
    assert len(with_row) > len(set(with_row[:, at.LEAF_ROW].tolist()))
    assert len(with_row) > len(set(with_row[:, at.LEAF_SUFFIXES].tolist()))


def test_equal_sets_share_their_states() -> None:
    vocabulary = tokens()
    table = find_mask_table(vocabulary)
    schemas = [PORTS, {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 65536}]
    counts = []
    for schema in schemas:
        matcher = compile(vocabulary, schema={"items": schema, "type": "array"}, style=Style.any()).matcher()
        for piece in (b"[", b"12", b".", b"5", b"e"):
            matcher.advance_bytes(piece)
            matcher.mask()
        counts.append(int(table.arrays[at.TABLE][at.N_LEAVES]))
    assert counts[0] == counts[1]


def test_only_states_that_a_text_reaches_are_made() -> None:
    vocabulary = tokens()
    matcher = compile(vocabulary, schema={"minimum": 3, "type": "number"}, style=Style.any()).matcher()
    matcher.advance_bytes(b"12.5e")
    matcher.mask()
    assert int(find_mask_table(vocabulary).arrays[at.TABLE][at.N_LEAVES]) < 200


def test_numbers_are_forgotten_when_the_table_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below a bound there is a state for each length and residue: no table holds the states of all texts.

    Those of the same multiples below another bound are others, but where both bounds are as far away.
    """
    monkeypatch.setattr(mask_table, "LEAF_STATES", 1_500)
    vocabulary = tokens()
    first = compile(vocabulary, schema={"multipleOf": 7, "maximum": 1e200}, style=Style.any()).matcher()
    table = find_mask_table(vocabulary)
    for length in range(1, 7):
        schema = {"multipleOf": 7, "maximum": 10 ** (200 + 7 * length)}
        constraint = compile(vocabulary, schema=schema, style=Style.any())
        digits = str(Random(length).randint(10**50, 10**60))
        matcher = constraint.matcher()
        matcher.advance_bytes(digits.encode())
        assert matcher.is_complete == (int(digits) % 7 == 0)
        matcher.mask()
        first.advance_bytes(b"9")
        assert first.is_complete == (int("9" * length) % 7 == 0)
    assert find_mask_table(vocabulary) is not table
    with pytest.raises(LimitError):
        constraint.matcher().advance_bytes(b"1" * 2_000)
    assert accepts_text(constraint, "14")


def test_states_are_charged_to_the_work_of_a_step() -> None:
    schema = {"type": "number", "multipleOf": 7, "maximum": 1e200}
    vocabulary = Vocabulary.from_tokens([*(bytes([b]) for b in range(256)), b"98", None], (257,))
    constraint = compile(vocabulary, schema=schema, style=Style.any(), limits=Limits(work=3_000))
    matcher = constraint.matcher()
    with pytest.raises(LimitError, match=r"The states of a number needs more than Limits\.work = 3,000 units"):
        matcher.advance_bytes(b"98765432109876543210")
    matcher = constraint.matcher()
    for _ in range(10):  # a step at a time, each takes little
        matcher.advance_bytes(b"98")
        matcher.mask()
    compile(vocabulary, schema=schema, style=Style.any()).matcher().advance_bytes(b"98765432109876543210")


def test_a_saved_constraint(tmp_path: Path) -> None:
    vocabulary = tokens()
    schema = {"anyOf": [PORTS, {"multipleOf": 0.25, "maximum": -3}, {"enum": [1e300, 0.125]}]}
    constraint = compile(vocabulary, schema=schema, style=Style.any())
    constraint.save(tmp_path / "saved")
    for one in (constraint, Constraint.load(tmp_path / "saved", vocabulary)):
        for text, wanted in (
            ("1e2", True), ("-3.25", True), ("-13e-1", False), ("10e299", True), ("0.125", True), ("0.5", False)
        ):  # fmt: skip
            assert accepts_text(one, text) == wanted, text


def test_a_linked_program_with_numbers_is_restored() -> None:
    language = NumberOracle(((Fraction(3), False, None, False, Fraction(1, 2), ()),)).language()
    grammar = Grammar(Number(language), {})
    program = Program(grammar)
    program.link(program.entry)
    linked = extract_linked(program)
    assert linked is not None
    restored = RestoredProgram(linked, lambda: grammar, None)
    assert list(restored.leaves) == [(language, at.NUMBER)] and restored.leaves[0][0].key == language.key
    restored.ensure_grammar()
    assert restored.leaves == [(language, at.NUMBER)]


def test_threads_that_make_states_at_once() -> None:
    vocabulary = tokens()
    constraint = compile(vocabulary, schema={"multipleOf": 97, "minimum": 5, "type": "number"}, style=Style.any())
    found: dict[int, list[bytes]] = {}

    def walk(seed: int) -> None:
        random, masks = Random(seed % 2), []
        for _ in range(5):
            matcher: Matcher = constraint.matcher()
            for _ in range(6):
                mask = matcher.mask().copy()
                masks.append(mask.tobytes())
                allowed = [token for token in range(len(PIECES)) if mask[token >> 5] >> (token & 31) & 1]
                if not allowed:
                    break
                matcher.advance(random.choice(allowed))
        found[seed] = masks

    threads = [Thread(target=walk, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[2] and found[1] == found[3] and len(found) == 4
