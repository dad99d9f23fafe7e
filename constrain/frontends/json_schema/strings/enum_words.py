"""Many words, each with its own continuation: words with a common prefix share a rule, built on demand.

The words are sorted once; a rule is a range of them with their common prefix, so building it costs only its outgoing
characters. The continuation of a word is emitted after its last character.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import NamedTuple

from ....automata.dfa import Dfa
from ....base.work import memoize_work
from ....grammar.nodes import EMPTY, Chars, Literal, Node, Rule, Sequence
from ..core.node_building import choice_of

__all__ = ["SMALL_SET", "Follow", "WordPrefix", "emit_words"]

SMALL_SET = 8
"""Most alternatives that are emitted as one choice; more are split by their next character."""

Follow = Callable[[list[int]], Node]
"""Emits what follows a word, given the indices of the values in which that word occurs."""

LAST = 0x10FFFF


class SortedWords:
    """Sorted words with an index each; a word may occur more than once. Compared by identity.

    follow: emits what follows a word, given its indices.
    """

    def __init__(self, texts: list[str], numbers: list[int], follow: Follow, escapes: bool) -> None:
        order = sorted(range(len(texts)), key=texts.__getitem__)
        self.texts = [texts[k] for k in order]
        self.numbers = [numbers[k] for k in order]
        self.follow = follow
        self.escapes = escapes

    def emit_suffix(self, low: int, high: int, length: int) -> Node:
        """Return the remaining characters of the equal words low to high - 1, and what follows them."""
        return self.emit_characters(self.texts[low][length:], self.follow(self.numbers[low:high]))

    def find_different(self, low: int, high: int) -> list[tuple[int, int]] | None:
        """Return the ranges of the different words; None if there are more than SMALL_SET."""
        out: list[tuple[int, int]] = []
        while low < high and len(out) <= SMALL_SET:
            end = bisect_right(self.texts, self.texts[low], low, high)
            out.append((low, end))
            low = end
        return out if len(out) <= SMALL_SET else None

    def emit_characters(self, text: str, following: Node) -> Node:
        """Return these characters and what follows them."""
        if not text:
            return following
        node: Node = Chars(_letters_dfa(text), "json") if self.escapes else Literal(text.encode())
        return node if following is EMPTY else Sequence((node, following))


class WordPrefix(NamedTuple):
    """The name of a rule: the words low to high - 1, of which `length` characters have been read."""

    words: SortedWords
    low: int
    high: int
    length: int

    def node(self) -> Node:
        """Return the words as alternatives if there are at most SMALL_SET, else the characters that may come next."""
        words, low, high, length = self
        ranges = words.find_different(low, high)
        if ranges is not None:
            return choice_of([words.emit_suffix(first, end, length) for first, end in ranges])
        texts = words.texts
        options: list[Node] = []
        while low < high:
            text, end = texts[low], high
            if len(text) == length:
                end = bisect_right(texts, text, low, high)
            elif ord(text[length]) < LAST:
                end = bisect_left(texts, text[:length] + chr(ord(text[length]) + 1), low, high)
            if text == texts[end - 1]:
                options.append(words.emit_suffix(low, end, length))
            else:
                shared = _common_length(text, texts[end - 1])
                options.append(words.emit_characters(text[length:shared], Rule(WordPrefix(words, low, end, shared))))
            low = end
        return choice_of(options)


@memoize_work(1024)
def _letters_dfa(text: str) -> Dfa:
    """Return the node of exactly these characters."""
    return Dfa.from_strings([text])


def _common_length(one: str, other: str) -> int:
    """Return the length of the common prefix of two words."""
    return next(
        (k for k, (char, other_char) in enumerate(zip(one, other)) if char != other_char), min(len(one), len(other))
    )


def emit_words(texts: list[str], numbers: list[int], follow: Follow, *, escapes: bool) -> Node:
    """Return the node of one of the words and what follows it.

    escapes: whether the characters are those of a JSON string, with any escapes.
    """
    return WordPrefix(SortedWords(texts, numbers, follow, escapes), 0, len(texts), 0).node()
