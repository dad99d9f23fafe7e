"""The automaton of a list of words, built only where something needs it."""

from __future__ import annotations

from collections.abc import Iterable

from ..base.cached_property import cached_property
from .compiled_operations import Record
from .dfa import Dfa

__all__ = ["ListedWords"]


class ListedWords(Dfa):
    """The Dfa of exactly some words, at least one, whose arrays are built on first use.

    The code of such texts refers to the words themselves (`program.linker`), and most lists of an `enum` are used for
    nothing else.

    words: sorted, without duplicates.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.words = sorted(set(words))

    @cached_property
    def record(self) -> Record:  # type: ignore[override]
        return Dfa.from_strings(self.words).record

    @cached_property
    def is_endless(self) -> bool:
        return False
