"""Automata of the texts that contain one of several phrases (Aho and Corasick, "Efficient string matching: an aid to
bibliographic search", CACM 1975).

The phrases form a trie over *symbols*: sets of characters that count as equal, such as `a` and `A`. An automaton that
may start the trie at every position of the text is determinised. Each of its subsets consists of the suffixes of the
text that are prefixes of phrases, so there is one for each node of the trie, as in the paper, and one state more for
"found". With whole words, the trie starts only after a character that is no part of a word, and a complete phrase is
found when such a character, or the end of the text, follows it; at the root, a subset therefore also records whether
the last character is part of a word.

Texts that contain none of the phrases are the complement. A conjunction of such conditions, each a disjunction of
phrases (a lexical constraint in conjunctive normal form), is a product of automata; its number of states can grow as
2 to the power of the number of conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..base.work import spend_work
from .boolean_operations import too_many_states
from .dfa import MAX_STATES, Dfa
from .table import LAST, SURROGATES, Table

__all__ = ["Ranges", "build_phrase_dfa", "intersect_all"]

Ranges = tuple[tuple[int, int], ...]
"""A set of code points as inclusive ranges."""

WORK = "an automaton of phrases"

_Symbol = tuple[int, bool]
"""The number of a symbol (-1: of no phrase), and whether the character is part of a word."""
_Subset = tuple[frozenset[int], bool]
"""The nodes of the trie that are reached, and whether the last character is part of a word."""


def build_phrase_dfa(
    phrases: Iterable[str],
    *,
    equal_characters: Mapping[str, Ranges] = {},
    word_characters: Ranges | None = None,
    max_states: int = MAX_STATES,
) -> Dfa:
    """Return the Dfa of all texts in which one of the phrases occurs.

    Parameters
    ----------
    phrases : iterable of str
        Phrases that are not empty.
    equal_characters : Mapping of str to Ranges
        For characters of the phrases, the code points that count as equal to them; the sets of two characters are
        equal or disjoint. A character that is missing equals only itself.
    word_characters : Ranges or None
        With code points, a phrase counts only where no such character stands directly before or after it.
    max_states : int
        Most states.

    Raises
    ------
    LimitError
        If there are too many states.
    """
    trie = _Trie(equal_characters)
    for phrase in phrases:
        trie.add(phrase)
        if len(trie.children) > max_states:
            raise too_many_states(WORK, max_states)
    return Dfa.from_table(_PhraseSubsets(trie, word_characters, max_states).table())


def intersect_all(languages: Iterable[Dfa], *, max_states: int = MAX_STATES) -> Dfa:
    """Return the intersection of the languages, the smallest first; all texts if there are none."""
    product = Dfa.any_text()
    for dfa in sorted(languages, key=lambda one: len(one.delta)):
        product = product.intersect(dfa, max_states=max_states)
    return product


@dataclass(slots=True)
class _Trie:
    """The prefixes of phrases over symbols; node 0 is the root."""

    equal_characters: Mapping[str, Ranges]
    symbols: dict[Ranges, int] = field(default_factory=dict)
    children: list[dict[int, int]] = field(default_factory=lambda: [{}])
    ends: set[int] = field(default_factory=set)

    def add(self, phrase: str) -> None:
        """Add a phrase."""
        node = 0
        spend_work(len(phrase), WORK)
        for char in phrase:
            ranges = self.equal_characters.get(char, ((ord(char), ord(char)),))
            symbol = self.symbols.setdefault(ranges, len(self.symbols))
            child = self.children[node].setdefault(symbol, len(self.children))
            if child == len(self.children):
                self.children.append({})
            node = child
        self.ends.add(node)


class _PhraseSubsets:
    """The subset construction of a trie that may start at every position."""

    def __init__(self, trie: _Trie, word_characters: Ranges | None, max_states: int) -> None:
        self.trie, self.max_states = trie, max_states
        self.whole_words = word_characters is not None
        self.bounds, labels = _partition_characters(trie.symbols, word_characters or ())
        classes = dict.fromkeys(labels)
        self.symbols = list(classes)
        numbers = {label: number for number, label in enumerate(self.symbols)}
        self.classes = [numbers[label] for label in labels]
        self.numbers: dict[_Subset, int] = {}
        self.subsets: list[_Subset] = []

    def table(self) -> Table:
        """Return the automaton; its last state is "found"."""
        rows: list[list[int]] = []
        self.number((frozenset(), False))
        for nodes, in_word in self.subsets:  # `subsets` grows during the loop
            spend_work(2 + len(self.symbols) + len(nodes), WORK)
            rows.append(self.row(nodes, in_word))
        found = len(rows)
        rows = [[found if target == -2 else target for target in row] for row in rows]
        rows.append([-1 if label is None else found for label in self.symbols])
        accepting = [not nodes.isdisjoint(self.trie.ends) for nodes, _ in self.subsets]
        return Table(self.bounds, self.classes, rows, [*accepting, True])

    def row(self, nodes: frozenset[int], in_word: bool) -> list[int]:
        """Return the next state by class; -2 stands for "found"."""
        ended = not nodes.isdisjoint(self.trie.ends)
        starts = nodes if self.whole_words and in_word else nodes | {0}
        followed: dict[int, set[int]] = {}
        for node in starts:
            for symbol, child in self.trie.children[node].items():
                followed.setdefault(symbol, set()).add(child)
        row = []
        for label in self.symbols:
            if label is None:
                row.append(-1)
                continue
            symbol, is_word = label
            after = frozenset(followed.get(symbol, ()))
            if self.whole_words:
                row.append(-2 if ended and not is_word else self.number((after, is_word)))
            else:
                row.append(-2 if not after.isdisjoint(self.trie.ends) else self.number((after, False)))
        return row

    def number(self, subset: _Subset) -> int:
        """Return the number of a subset, which may be new."""
        number = self.numbers.setdefault(subset, len(self.subsets))
        if number == len(self.subsets):
            self.subsets.append(subset)
            if number >= self.max_states:
                raise too_many_states(WORK, self.max_states)
        return number


def _partition_characters(
    symbols: Mapping[Ranges, int], word_characters: Ranges
) -> tuple[list[int], list[_Symbol | None]]:
    """Return the starts of ranges of code points and the label of each range; None for surrogates."""
    spend_work(2 * len(word_characters) + sum(map(len, symbols)), WORK)
    changes: dict[int, list[tuple[int, int]]] = {0: [], SURROGATES[0]: [], SURROGATES[1]: []}
    for ranges, number in [*symbols.items(), (word_characters, -1)]:
        for low, high in ranges:
            changes.setdefault(low, []).append((number, 1))
            changes.setdefault(high + 1, []).append((number, -1))
    changes.pop(LAST, None)
    bounds, labels = list[int](), list["_Symbol | None"]()
    symbol, is_word = -1, False
    for point in sorted(changes):
        for number, change in sorted(changes[point], key=lambda one: one[1]):  # Ends before beginnings.
            if number < 0:
                is_word = change > 0
            else:
                symbol = number if change > 0 else -1
        bounds.append(point)
        labels.append(None if SURROGATES[0] <= point < SURROGATES[1] else (symbol, is_word))
    return bounds, labels
