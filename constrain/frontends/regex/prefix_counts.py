"""An upper bound of the states of the automaton of a pattern that is a finite list of words, without building it.

Let the sets of characters of a tree be equal or disjoint, so that each character is of one set at most, and a text is a
sequence of sets. A state of the automaton says what has been read of words of the pattern. It depends only on the
sequence of sets so far, which begins a word: there are no more states than such *prefixes*. Where a match may begin
anywhere, the state depends on the longest prefix that the text ends with (Aho and Corasick 1975), of which there are as
many. Where there is one word, and a match begins with the text, sets may overlap: the state is the number of characters
read.
"""

from __future__ import annotations

from itertools import pairwise

from .charset import ALL, CharSet, list_ranges
from .regex_tree import Alternation, Concatenation, OneOf, Repetition, Term

__all__ = ["MOST_PREFIXES", "bound_states"]

MOST_PREFIXES = 1 << 10
"""Prefixes beyond which there is no bound: an automaton of that size is built in milliseconds."""
MOST_DEPTH = 32
"""Levels of a tree beyond which there is no bound."""
ANYTHING = Repetition(OneOf(ALL), 0, None)
MANY = MOST_PREFIXES + 1, MOST_PREFIXES + 1


def bound_states(term: Term) -> int | None:
    """Return an upper bound of the states of the automaton, and of its complement, of a tree without assertions.

    Return None if it is not a finite list of words, perhaps with any text before and after it, if there are too many,
    or if its sets of characters overlap.
    """
    parts = term.parts if isinstance(term, Concatenation) else (term,)
    begin, end = parts[:1] == (ANYTHING,), parts[1:][-1:] == (ANYTHING,)
    sets: set[CharSet] = set()
    words, prefixes = _count_words(Concatenation(parts[begin : len(parts) - end]), sets, 0)
    if prefixes > MOST_PREFIXES:
        return None
    if words > 1 or begin:
        ranges = sorted([one for charset in sets for one in list_ranges(charset)])
        if any(before[1] >= after[0] for before, after in pairwise(ranges)):
            return None
    return prefixes + 3  # the empty text, all that follows a match, and what is refused


def _count_words(term: Term, sets: set[CharSet], depth: int) -> tuple[int, int]:
    """Return the number of words of a tree, and of their prefixes, but for the empty one; MANY for more than these.

    The sets of characters are added to `sets`.
    """
    if isinstance(term, OneOf):
        sets.add(term.charset)
        return 1, 1
    words, prefixes = 0, 0
    if depth < MOST_DEPTH and isinstance(term, Concatenation):
        words = 1
        for part in term.parts:
            more, longer = _count_words(part, sets, depth + 1)
            words, prefixes = words * more, prefixes + words * longer
            if prefixes > MOST_PREFIXES:
                return MANY
    elif depth < MOST_DEPTH and isinstance(term, Alternation):
        for option in term.options:
            more, longer = _count_words(option, sets, depth + 1)
            words, prefixes = words + more, prefixes + max(longer, 1)  # so that empty options are not free
    elif depth < MOST_DEPTH and isinstance(term, Repetition) and term.high is not None and term.high <= MOST_PREFIXES:
        more, longer = _count_words(term.term, sets, depth + 1)
        copies = 1  # words of so many repetitions
        for number in range(term.high + 1):
            words += copies if number >= term.low else 0
            prefixes += copies * longer if number < term.high else 0
            copies *= more
            if prefixes > MOST_PREFIXES:
                return MANY
    else:
        return MANY
    return (words, prefixes) if words <= MOST_PREFIXES >= prefixes else MANY
