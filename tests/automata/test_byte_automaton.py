"""The automaton over bytes of a Dfa: each encoded character leads where the character does, and nothing else does."""

from __future__ import annotations

from hypothesis import given, strategies as st

from constrain.automata.byte_automaton import build_byte_automaton
from constrain.automata.dfa import Dfa
from constrain.frontends.regex import to_dfa
from tests.grammar_strategies import dfas

EDGES = [0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF]
CHARACTERS = st.sampled_from([*map(chr, EDGES), *"abcdz", "é", "\U0001f600"]) | st.characters(codec="utf-8")


@given(dfas(), st.lists(CHARACTERS, max_size=20))
def test_characters(dfa: Dfa, characters: list[str]) -> None:
    automaton = build_byte_automaton(dfa)
    for state in range(len(dfa.delta)):
        for char in characters:
            after = state
            for byte in char.encode():
                after = int(automaton[after, byte]) if after >= 0 else -1
            assert after == dfa.step(state, char)


@given(st.binary(max_size=8))
def test_bytes_that_are_no_text(data: bytes) -> None:
    automaton, state = build_byte_automaton(Dfa.any_text()), 0
    for byte in data:
        state = int(automaton[state, byte]) if state >= 0 else -1
    try:
        data.decode()
    except UnicodeDecodeError:
        assert state != 0
    else:
        assert state == 0


def test_its_size() -> None:
    assert len(build_byte_automaton(Dfa.empty())) == 0
    assert len(build_byte_automaton(to_dfa("a*"))) == 1
    assert len(build_byte_automaton(Dfa.any_text())) == 8
