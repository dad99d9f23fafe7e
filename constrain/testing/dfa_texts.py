"""Texts of a Dfa for tests: edge cases that often break programs, plausible data, and random walks through the Dfa.

`choose(n)` returns an integer below n; 0 leads to the simplest text: short, of letters and digits. A text is either an
element of a *pool* (the shortest, the longest, edge cases, plausible texts) or a walk along the states of the Dfa,
whose transitions are sorted such that the first leads to an accepting state by a simple character.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..authoring.samples import readable_texts
from ..automata.dfa import SURROGATES, Dfa
from ..base.errors import LimitError

__all__ = ["Choose", "Language", "draw_text", "build_language"]

Choose = Callable[[int], int]

EDGES = (
    "", "a", "0", " ", "A", "ab", "null", "true", "-1", "1e1000", "\x7f", "\x00", "\x1f\n\t", '"', "\\", "/", "'",
    "é", "e\u0301", "ß", "İ", "ſ", "٣", "\xa0", "\u2028", "\u200b", "\ufeff", "\ufffd", "\ud7ff\ue000", "\uffff", "𝒳",
    "😀", "\U0001f3f3\ufe0f\u200d\U0001f308", "\U0010ffff", "אב", " a ", "a\r\nb", "<b>&", "../", "%00", "a" * 256,
    "__proto__", "constructor",
)  # fmt: skip
"""Texts that often break programs: empty, escapes, U+007F, white space, case and accents, the ends of the planes."""

NICE = "0a1bA-_. 2:/@"
ODD = '\x00\n\x7f"\\é\xa0\u2028\u200b\ud7ff\ufeff😀\U0010ffff'
"""Characters of a class that are tried first, simple characters before unusual ones; all other characters of the class
follow."""

SIZES = (1, 2, 3, 4, 5, 8, 16)
"""Lengths of the plain texts in a pool, to which a failing length can shrink."""
PLAUSIBLE = 6
"""Number of plausible texts in a pool."""
LONGEST = 300
"""Maximum length up to which a text of the greatest length is in the pool: longer texts make documents slower to draw
and find no more errors."""
FEW = 8
"""Maximum number of texts of a language that are drawn only from their list."""
ON = 5
"""A walk in an accepting state continues with probability (ON - 1) / ON."""


class Palette(NamedTuple):
    """The characters of one class: preferred characters, the simplest first, and the ranges (start, exclusive end) of
    all."""

    favourites: str
    ranges: tuple[tuple[int, int], ...]
    size: int

    def character(self, choose: Choose) -> str:
        """Return a character of the class."""
        if self.size <= len(self.favourites):
            return self.favourites[choose(self.size)]
        index = choose(len(self.favourites) + 2)
        if index < len(self.favourites):
            return self.favourites[index]
        offset = choose(self.size)
        for first, end in self.ranges:
            if offset < end - first:
                return chr(first + offset)
            offset -= end - first
        raise AssertionError("the sizes of the ranges add up")


class Language:
    """A Dfa with bounds on the number of characters, low <= characters <= high, prepared for drawing.

    Raise LimitError if the lengths must be multiplied into the Dfa, and this takes too many states.
    """

    def __init__(self, dfa: Dfa, low: int, high: int | None) -> None:
        least, most = dfa.lengths()
        if low > least and not dfa.extensible():  # A walk with a separate counter could get stuck.
            dfa, low, high = dfa.with_length(low, high), 0, None
            least, most = dfa.lengths()
        self.dfa, self.low, self.high = (
            dfa,
            max(low, least),
            most if high is None else high if most is None else min(high, most),
        )
        self.distance = [int(d) for d in dfa.distances()]
        self.palettes = build_palettes(dfa)
        self.steps = [self._sorted(row) for row in dfa.table.rows]
        self.pool: tuple[str, ...] = ()
        self.closed = False
        """Whether the pool contains all texts of the language."""

    def _sorted(self, row: object) -> list[tuple[int, int]]:
        """Return the transitions (class, target state) of a state, sorted.

        Those nearer to an accepting state and with simpler characters come first.
        """
        assert isinstance(row, (list, tuple))
        steps = [(kind, after) for kind, after in enumerate(row) if after >= 0]
        return sorted(
            steps, key=lambda step: (self.distance[step[1]], rate_character(self.palettes[step[0]].favourites[0]))
        )

    def accepts(self, text: str) -> bool:
        """Return whether the text belongs to the language."""
        return self.low <= len(text) and (self.high is None or len(text) <= self.high) and self.dfa.accepts(text)

    def walk(self, choose: Choose, *, least: int = 0) -> str:
        """Return a text of the language, with `least` characters or more if the language has such texts."""
        state, characters, accepting = 0, list[str](), self.dfa.table.accepting
        while True:
            capacity = None if self.high is None else self.high - len(characters) - 1
            steps = [step for step in self.steps[state] if capacity is None or self.distance[step[1]] <= capacity]
            if accepting[state] and len(characters) >= self.low and not (len(characters) < least and steps):
                if not steps or choose(ON) == 0:
                    return "".join(characters)
            kind, state = steps[choose(len(steps))]
            characters.append(self.palettes[kind].character(choose))

    def simplest(self) -> str:
        """Return a shortest text, of simple characters."""
        return self.walk(lambda n: 0)


@lru_cache(maxsize=2048)
def build_language(dfa: Dfa, low: int, high: int | None) -> Language:
    """Return the Language with its pool: texts sorted by length, the simplest first."""
    language = Language(dfa, low, high)
    if language.high is not None and language.high <= LONGEST and language.dfa.count(FEW + 1) <= FEW:
        language.pool, language.closed = tuple(t for t in language.dfa.enumerate(FEW) if language.accepts(t)), True
        return language
    texts = dict.fromkeys([language.simplest()])
    if language.low <= LONGEST:
        texts.update(dict.fromkeys(language.walk(lambda n: 0, least=least) for least in SIZES))
        texts.update(dict.fromkeys(text for text in EDGES if language.accepts(text)))
        texts.update(dict.fromkeys(plausible_texts(language)))
        if language.high is not None and language.high <= LONGEST:
            texts[language.walk(lambda n: 0, least=language.high)] = None
    first, *others = texts
    language.pool = (first, *sorted(others, key=lambda text: (len(text), [rate_character(char) for char in text])))
    return language


def plausible_texts(language: Language) -> list[str]:
    """Return texts that resemble real data, some of them rarely."""
    try:
        return [
            readable_texts.draw_readable_text(language.dfa, language.low, language.high, np.random.default_rng(k))
            for k in range(PLAUSIBLE)
        ]
    except LimitError:  # no readable text of the drawn length exists; the walks suffice
        return []


def draw_text(language: Language, choose: Choose) -> str:
    """Return a text of the language: an element of the pool or a walk."""
    if language.closed:
        return language.pool[choose(len(language.pool))]
    index = choose(len(language.pool) + 2 + len(language.pool) // 2)  # a third are walks
    return language.pool[index] if index < len(language.pool) else language.walk(choose)


def build_palettes(dfa: Dfa) -> list[Palette]:
    """Return a Palette for each class of characters that is ever accepted; surrogates are in none of them."""
    table = dfa.table
    ranges: list[list[tuple[int, int]]] = [[] for _ in range(max(table.classes) + 1)]
    for start, end, kind in zip(table.bounds, [*table.bounds[1:], 0x110000], table.classes):
        for first, last in ((start, min(end, SURROGATES[0])), (max(start, SURROGATES[1]), end)):
            if first < last:
                ranges[kind].append((first, last))
    return [_palette(tuple(bounds)) for bounds in ranges]


@lru_cache(maxsize=4096)
def _palette(ranges: tuple[tuple[int, int], ...]) -> Palette:
    inside = [char for char in NICE + ODD if any(first <= ord(char) < end for first, end in ranges)]
    ends = [chr(code) for first, end in ranges[:4] for code in (first, end - 1)]
    favourites = "".join(dict.fromkeys([*inside, *sorted(ends, key=rate_character)])) or "\x00"
    return Palette(favourites, ranges, sum(end - first for first, end in ranges))


def rate_character(char: str) -> tuple[int, int]:
    """Return a sort key: digits, then small letters, capitals, other ASCII and all others; smaller is simpler."""
    kinds = (char.isdigit(), char.islower(), char.isupper(), char.isprintable())
    kind = next((index for index, holds in enumerate(kinds) if holds and char.isascii()), 4)
    return kind, ord(char)
