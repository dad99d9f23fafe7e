"""Many words, each with what follows it: those that begin alike share a rule, made when the text comes there.

The words are sorted once; a rule is a range of them with their common beginning, so that making one costs what it
shows: the letters that may come next. What follows a word is written when its last letters are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

from ...automata.dfa import Dfa
from ...grammar.nodes import EMPTY, Chars, Choice, Literal, Node, Rule, Sequence

__all__ = ["FEW", "Prefix", "Word", "spelled"]

FEW = 8
"""So many alternatives are written side by side."""

Word = tuple[str, Callable[[], Node]]
"""A text, and what writes that which follows it."""

LAST = 0x10FFFF


class Words:
    """Sorted words. Equal only to itself."""

    def __init__(self, words: list[Word], escapes: bool) -> None:
        words = sorted(words, key=lambda word: word[0])
        self.texts = [text for text, _ in words]
        self.thens = [then for _, then in words]
        self.escapes = escapes

    def letters(self, text: str, then: Node) -> Node:
        """Some letters, and what follows them."""
        if not text:
            return then
        node: Node = Chars(Dfa.from_strings([text]), "json") if self.escapes else Literal(text.encode())
        return node if then is EMPTY else Sequence((node, then))


class Prefix(NamedTuple):
    """The name of a rule: the words low to high - 1, of which `length` letters have been there."""

    words: Words
    low: int
    high: int
    length: int

    def node(self) -> Node:
        """What it stands for: each word that is few enough, else each letter that may come next."""
        words, low, high, length = self
        if high - low <= FEW:
            return _choice([words.letters(words.texts[k][length:], words.thens[k]()) for k in range(low, high)])
        texts, options = words.texts, []
        while low < high:
            text = texts[low]
            if len(text) == length:
                options.append(words.thens[low]())
                low += 1
                continue
            end = high
            if ord(text[length]) < LAST:
                end = bisect_left(texts, text[:length] + chr(ord(text[length]) + 1), low, high)
            shared = _shared(text, texts[end - 1])
            then = words.thens[low]() if end - low == 1 else Rule(Prefix(words, low, end, shared))
            options.append(words.letters(text[length : len(text) if end - low == 1 else shared], then))
            low = end
        return _choice(options)


def _shared(one: str, other: str) -> int:
    """How many letters two words begin with alike."""
    return next((k for k, (mine, yours) in enumerate(zip(one, other)) if mine != yours), min(len(one), len(other)))


def spelled(words: list[Word], *, escapes: bool) -> Node:
    """One of the words, and what follows it. escapes: the letters are those of a JSON string, with any escapes."""
    return Prefix(Words(words, escapes), 0, len(words), 0).node()


def _choice(options: list[Node]) -> Node:
    return options[0] if len(options) == 1 else Choice(tuple(options))
