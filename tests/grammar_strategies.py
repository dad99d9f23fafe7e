"""Hypothesis strategies and reference answers that several test files share.

texts, regexes, flags: for comparing patterns with `re`.
tables, dfas: small automata, and `words_up_to`, all texts over a small alphabet, for brute force.
"""

from __future__ import annotations

import re
from itertools import product

from hypothesis import strategies as st

from constrain.automata.dfa import Dfa, Table

__all__ = ["ALPHABET", "RANGES", "compile_re", "dfas", "flag_sets", "regexes", "tables", "texts", "words_up_to"]

# ---- small automata ---------------------------------------------------------------------------------------------

RANGES = [(0x61, 0x61), (0x62, 0x63), (0xE9, 0xE9), (0x1F600, 0x10FFFF)]
"""Classes of the automata drawn here; all other characters are a class of their own."""

ALPHABET = "abcé\U0001f600z"
"""At least one character of each class: b and c are always treated alike, z is in no range."""


def words_up_to(length: int, alphabet: str = ALPHABET) -> list[str]:
    """All texts of at most that many characters."""
    return ["".join(word) for size in range(length + 1) for word in product(alphabet, repeat=size)]


@st.composite
def tables(draw: st.DrawFn, max_states: int = 6) -> Table:
    """Any automaton, not trimmed, not minimal: 0 to max_states states over RANGES."""
    size = draw(st.integers(0, max_states))
    target = st.integers(-1, size - 1)
    dead = [True, *[False] * 5]  # Class 0 holds the surrogates.
    rows = [[-1 if dead[c] else draw(target) for c in range(6)] for _ in range(size)]
    accepting = [draw(st.booleans()) for _ in range(size)]
    bounds = [0, 0x61, 0x62, 0x64, 0xE9, 0xEA, 0xD800, 0xE000, 0x1F600]
    classes = [1, 2, 3, 1, 4, 1, 0, 1, 5]
    return Table(bounds, classes, rows, accepting)


def dfas(max_states: int = 6) -> st.SearchStrategy[Dfa]:
    """Any small language over RANGES."""
    return tables(max_states).map(Dfa.from_table)


# ---- patterns of `re` -------------------------------------------------------------------------------------------

CHARACTERS = "abAB\n_ 1-éÉſsKk\u212aİıi\u2028😀"
"""What texts and patterns are made of: case pairs, also the odd ones of U+017F, U+0130, U+0131 and U+212A."""


def texts(max_size: int = 6) -> st.SearchStrategy[str]:
    """Short texts, many of only a, b and newlines."""
    return st.text("ab\n", max_size=max_size) | st.text(CHARACTERS, max_size=max_size)


def flag_sets() -> st.SearchStrategy[str]:
    """Flags of `re`."""
    return st.sampled_from(["", "i", "m", "s", "im", "is", "ms", "a", "ai"])


def compile_re(pattern: str, flags: str) -> re.Pattern[str]:
    """`re.compile` with flags as letters."""
    value = re.RegexFlag(0)
    for flag in flags:
        value |= getattr(re, flag.upper())
    return re.compile(pattern, value)


_QUANTIFIERS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,2}", "{2,}", "{0,1}?", "{0}"]
_MEMBERS = ["a", "b", "A-B", "a-b", "\\w", "\\n", "\\S", "_", "1", "i", "s", "\\W", "k", "é", "\\-"]


def regexes() -> st.SearchStrategy[str]:
    """Patterns valid in `re`, with anchors at unusual positions, scoped flags and classes. No backreferences, no
    lookaround.
    """
    literal = st.sampled_from(CHARACTERS).map(re.escape)
    escape = st.sampled_from([".", "\\d", "\\w", "\\s", "\\D", "\\W", "\\S"])
    members = st.lists(st.sampled_from(_MEMBERS), min_size=1, max_size=3).map("".join)
    bracket = st.builds("[{}{}]".format, st.sampled_from(["", "^"]), members)
    anchor = st.sampled_from(["^", "$", "\\A", "\\Z"])
    anchors = anchor | st.builds("(?:{}){}".format, anchor, st.sampled_from("*+?"))
    leaf = st.one_of(literal, literal, escape, bracket, anchors, st.just(""))

    def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        group = st.sampled_from(["(?:{})", "({})", "(?i:{})", "(?m:{})", "(?s:{})", "(?-i:{})", "(?x: {} )"])
        repeated = st.builds(lambda p, q: f"(?:{p}){q}", inner, st.sampled_from(_QUANTIFIERS))
        several = st.lists(inner, min_size=1, max_size=3)
        return st.one_of(
            repeated, several.map("".join), several.map("|".join), st.builds(lambda g, p: g.format(p), group, inner)
        )

    return st.recursive(leaf, extend, max_leaves=8)
