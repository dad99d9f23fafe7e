"""The minimal acyclic automaton of a list of words, in one pass over the sorted words.

Source: Daciuk, Mihov, Watson and Watson, "Incremental construction of minimal acyclic finite-state automata" (2000),
section 3.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .boolean_operations import too_many_states
from .table import LAST, SURROGATES

__all__ = ["build_word_automaton"]

_Node = tuple[bool, tuple[tuple[str, int], ...]]
Arrays = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]


def build_word_automaton(words: Iterable[str], max_states: int) -> Arrays:
    """Return the canonical (bounds, classes, delta, accepting) of exactly these words; see `Dfa` for the arrays.

    `words` must not be empty. Raise ValueError if a word contains a lone surrogate, and LimitError for more than
    `max_states` states.
    """
    ordered = sorted(set(words))
    if len(ordered) == 1 and len(ordered[0]) < max_states:
        return _build_single_word(ordered[0])
    register: dict[_Node, int] = {}
    nodes: list[_Node] = []
    # The path of the last word: path[i], after i characters, is (whether a word ends here, finished edges).
    path: list[tuple[bool, list[tuple[str, int]]]] = [(False, [])]
    previous = ""

    def minimise_path(depth: int) -> None:
        """Merge the part of the path after `depth` characters with equivalent nodes of the register."""
        while len(path) > depth + 1:
            final, edges = path.pop()
            node = (final, tuple(edges))
            number = register.get(node)
            if number is None:
                number = register[node] = len(nodes)
                if number >= max_states:
                    raise too_many_states("A list of words", max_states)
                nodes.append(node)
            path[-1][1].append((previous[len(path) - 1], number))

    for word in ordered:
        shared, longest = 0, min(len(previous), len(word))
        while shared < longest and previous[shared] == word[shared]:
            shared += 1
        minimise_path(shared)
        path.extend((False, []) for _ in range(len(word) - shared))
        path[-1] = (True, path[-1][1])
        previous = word
    minimise_path(0)
    nodes.append((path[0][0], tuple(path[0][1])))
    return _arrays(nodes)


def _build_single_word(word: str) -> Arrays:
    """Return the arrays of the automaton of one word: a chain of states, in which each character has its own class."""
    points = [*map(ord, word)]
    bounds, classes, numbers = list[int](), list[int](), dict[int, int]()
    following, others = 0, -1  # the first code point without a class, and the class of all that are not in the word
    for point in [*sorted(set(points)), LAST]:
        if SURROGATES[0] <= point < SURROGATES[1]:
            raise ValueError("a lone surrogate is not a character")
        if following < point:
            if others < 0:
                others = len(numbers)
                numbers[-1] = others
            bounds.append(following)
            classes.append(others)
        if point < LAST:
            bounds.append(point)
            classes.append(len(numbers))
            numbers[point] = len(numbers)
        following = point + 1
    states = len(points)
    delta = np.full((states + 1, len(numbers)), -1, "<i4")
    delta[range(states), [numbers[point] for point in points]] = range(1, states + 1)
    accepting = np.zeros(states + 1, np.bool_)
    accepting[states] = True
    return np.array(bounds, "<i4"), np.array(classes, "<i4"), delta, accepting


def _arrays(nodes: list[_Node]) -> Arrays:
    """Return the arrays of the nodes, of which the last is the start, with equal columns merged.

    States are numbered in breadth-first order. Edges are in the order of their characters, hence also of their classes,
    which are numbered by first character.
    """
    names = {len(nodes) - 1: 0}
    order = [len(nodes) - 1]
    columns: dict[str, list[int]] = {}
    for source, number in enumerate(order):
        for char, target in nodes[number][1]:
            if target not in names:
                names[target] = len(order)
                order.append(target)
            columns.setdefault(char, []).extend((source, names[target]))
    starts: dict[int, tuple[int, ...]] = {ord(char): tuple(column) for char, column in columns.items()}
    if any(SURROGATES[0] <= point < SURROGATES[1] for point in starts):
        raise ValueError("a lone surrogate is not a character")
    for point in (-1, *map(ord, columns)):
        starts.setdefault(point + 1, ())  # Code points between two characters of the words have the empty column.
    starts.pop(LAST, None)
    numbers: dict[tuple[int, ...], int] = {}
    bounds: list[int] = []
    classes: list[int] = []
    for point in sorted(starts):
        number = numbers.setdefault(starts[point], len(numbers))
        if not classes or classes[-1] != number:
            bounds.append(point)
            classes.append(number)
    return (
        np.array(bounds, dtype="<i4"),
        np.array(classes, dtype="<i4"),
        _delta(len(order), numbers),
        np.array([nodes[number][0] for number in order], dtype=np.bool_),
    )


def _delta(states: int, numbers: dict[tuple[int, ...], int]) -> NDArray[np.int32]:
    """Return int32[states, classes] from columns, each a flat tuple of pairs (state, next state)."""
    delta = np.full((states, len(numbers)), -1, dtype="<i4")
    for column, number in numbers.items():
        pairs = np.array(column, dtype=np.int64).reshape(-1, 2)
        delta[pairs[:, 0], number] = pairs[:, 1]
    return delta
