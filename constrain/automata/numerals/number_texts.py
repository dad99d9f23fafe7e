"""Random texts of a NumberLanguage, for tests and examples."""

from __future__ import annotations

from collections.abc import Callable

from .number_automaton import NumberAutomaton

__all__ = ["accepts_number", "draw_number"]

MOST_DRAWN = 12
"""Bytes after which a text is completed in the shortest way."""
MOST_EXPONENT = 3
"""Bytes after the e that are drawn at most."""


def accepts_number(automaton: NumberAutomaton, text: str) -> bool:
    """Return whether a text is in the language."""
    state = 0
    for byte in text.encode():
        following = automaton.row(state).get(byte)
        if following is None:
            return False
        state = following
    return automaton.accepts(state)


def draw_number(automaton: NumberAutomaton, choose: Callable[[int], int]) -> str:
    """Return a text of the language, most often without an exponent; choose(n) returns an integer below n."""
    text, state, exponent = "", 0, -1
    while not (automaton.accepts(state) and (choose(2) == 0 or len(text) >= MOST_DRAWN)):
        row = automaton.row(state)
        options = sorted(row)
        if not options:
            break
        if len(text) >= MOST_DRAWN or exponent >= MOST_EXPONENT:
            options = [min(options, key=lambda byte: (automaton.least(row[byte]), byte))]
        elif choose(8):
            options = [byte for byte in options if chr(byte) not in "eE"] or options
        byte = options[choose(len(options))]
        exponent += exponent >= 0 or chr(byte) in "eE"
        text, state = text + chr(byte), row[byte]
    return text
