"""Abstract states as numbers, counted in the order in which they are first seen.

The content of an abstract state (`engine.abstract_states`) names addresses of byte-code, which another process, or a
program that was relinked, places elsewhere. So each number remembers the tokens of one text that leads to its state,
and `renumber` finds the states again by reading these texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import TokenRefused
from ...engine.abstract_states import AbstractState, abstract_state

if TYPE_CHECKING:
    from ...engine.constraint import Constraint

__all__ = ["StateNumbers", "renumber"]

BYTES_PER_STATE, TOKEN_BYTES = 1500, 36
"""Of a state with its keys, and of a token of its example."""


class StateNumbers:
    """A numbering of abstract states.

    Attributes
    ----------
    generation : int
        Generation of the program whose addresses the states name.
    examples : list of tuple of int
        By number: the tokens of a text that leads to the state.
    """

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.examples: list[tuple[int, ...]] = []
        self._numbers: dict[Any, int] = {}  # by key
        self._coarse_numbers: dict[Any, int] = {}  # by coarse key
        self._least: list[int] = []
        self._coarse: list[int] = []
        self._seen: dict[AbstractState, int] = {}  # by identity: saves hashing the keys

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def nbytes(self) -> int:
        """An estimate of the size in memory."""
        return BYTES_PER_STATE * len(self.examples) + TOKEN_BYTES * sum(map(len, self.examples))

    def find(self, state: AbstractState) -> int:
        """Return the number of a state, -1 if it has none."""
        number = self._seen.get(state, -1)
        if number < 0:
            number = self._numbers.get(state.key, -1)
            if number >= 0:
                self._seen[state] = number
        return number

    def add(self, state: AbstractState, example: tuple[int, ...]) -> int:
        """Return the number of a state; give it the next one if it is new. example: tokens that lead to it."""
        number = self.find(state)
        if number < 0:
            number = self._seen[state] = self._numbers[state.key] = len(self.examples)
            self.examples.append(example)
            self._least.append(state.least)
            self._coarse.append(self._coarse_numbers.setdefault(state.coarse, len(self._coarse_numbers)))
        return number

    @property
    def least(self) -> NDArray[np.int64]:
        """Least number of bytes to the end of the text, by number: int64 [K]."""
        return np.array(self._least, np.int64)

    @property
    def coarse(self) -> NDArray[np.int64]:
        """Number of the coarse state, by number: int64 [K]."""
        return np.array(self._coarse, np.int64)

    def least_of(self, number: int) -> int:
        """Return the least number of bytes from a state to the end of the text."""
        return self._least[number]

    def coarse_of(self, number: int) -> int:
        """Return the number of the coarse state of a state."""
        return self._coarse[number]

    def copy(self) -> StateNumbers:
        """Return an independent copy."""
        other = StateNumbers(self.generation)
        other.examples, other._least, other._coarse = self.examples[:], self._least[:], self._coarse[:]
        other._numbers, other._coarse_numbers = dict(self._numbers), dict(self._coarse_numbers)
        return other


def renumber(constraint: Constraint, examples: Iterable[tuple[int, ...]]) -> tuple[StateNumbers, NDArray[np.int64]]:
    """Number the states that some texts lead to, under the current program of a constraint.

    Returns the numbering, and the number of each text's state (int64 [n]), -1 for a text that is refused. Texts that
    led to different states may lead to one, and the other way round, if the version of the library changed.
    """
    numbers, found = StateNumbers(constraint.program.generation), list[int]()
    for example in examples:
        matcher = constraint.matcher()
        try:
            for token in example:
                matcher.advance(token)
        except TokenRefused:
            found.append(-1)
            continue
        found.append(numbers.add(abstract_state(matcher), example))
    return numbers, np.array(found, np.int64)
