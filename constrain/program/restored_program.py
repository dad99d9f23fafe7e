"""RestoredProgram: a Program loaded from disk, whose Grammar is created only if more of it is needed.

The rules that earlier texts needed are already linked, which usually suffices. If a kernel needs a rule that is not
linked, or the Grammar is accessed, the source is compiled again and the same rules are linked in the same order. The
stored code is then a prefix of the new code, and existing sets of configurations remain valid. If it is not,
`generation` is incremented and state caches are evicted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ..automata.dfa import Dfa
from ..automata.numerals.number_language import NumberLanguage
from ..base.work import UNLIMITED, confine_budgets, work_budget
from ..grammar.nodes import Grammar
from ..kernels import layout as at
from .byte_code import Bind, Leaf, LeafKey
from .program import Program

__all__ = ["LinkedLeaves", "LinkedProgram", "RestoredProgram", "extract_linked"]

RECORD = 3
"""Words of the record of a leaf: mode, and the offset and the length of its language: of the record of a Dfa in words,
of the text of a NumberLanguage in bytes."""


@dataclass(frozen=True, slots=True)
class LinkedProgram:
    """The linked part of a Program, as int32 arrays.

    `code` [used] is its code and `links` [rules] the rule cells in the order in which they were linked. Leaves are in
    `records` [leaves, RECORD] and `arrays`: the record of each Dfa in turn, or the text of a NumberLanguage, four bytes
    per word.
    """

    entry: int
    code: NDArray[np.int32]
    links: NDArray[np.int32]
    records: NDArray[np.int32]
    arrays: NDArray[np.int32]


def extract_linked(program: Program) -> LinkedProgram | None:
    """Return the linked part of a Program; None if it has parsers, which are cached elsewhere (as for Lark)."""
    with program.lock:
        if program.parsers or type(program) is not Program:
            return None
        records, arrays, offset = [], list[NDArray[np.int32]](), 0
        for language, mode in program.leaves:
            if isinstance(language, NumberLanguage):
                text = language.to_bytes()
                records.append([mode, offset, len(text)])
                arrays.append(np.frombuffer(text + bytes(-len(text) % 4), np.int32))
            else:
                records.append([mode, offset, len(language.record)])
                arrays.append(language.record)
            offset += len(arrays[-1])
        return LinkedProgram(
            program.entry,
            program.code[: program.used].copy(),
            np.array(program.links, np.int32),
            np.array(records, np.int32).reshape(-1, RECORD),
            np.concatenate(arrays) if arrays else np.zeros(0, np.int32),
        )


class LinkedLeaves(Sequence[Leaf]):
    """The leaves of a LinkedProgram, each created on access."""

    def __init__(self, linked: LinkedProgram) -> None:
        self.linked = linked

    def __len__(self) -> int:
        return len(self.linked.records)

    @overload
    def __getitem__(self, number: int) -> Leaf: ...
    @overload
    def __getitem__(self, number: slice) -> list[Leaf]: ...
    def __getitem__(self, number: int | slice) -> Leaf | list[Leaf]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        mode, offset, length = self.linked.records[number].tolist()
        if mode == at.NUMBER:
            text = self.linked.arrays[offset : offset + (length + 3) // 4].tobytes()[:length]
            return NumberLanguage.from_bytes(text), mode
        return Dfa(self.linked.arrays[offset : offset + length]), mode


class RestoredProgram(Program):
    """A Program that becomes an ordinary one when more than the stored part is needed.

    It lacks the attributes derived from a Grammar; access to one of them calls `ensure_grammar`.
    """

    def __init__(self, linked: LinkedProgram, make_grammar: Callable[[], Grammar], bind: Bind | None) -> None:
        self.lock = threading.RLock()
        self.code, self.used, self.entry = linked.code, len(linked.code), linked.entry
        self.leaves = LinkedLeaves(linked)  # type: ignore[assignment]
        self.parsers, self.generation, self.on_link = {}, 0, None
        self.leaf_capacity, self.parser_capacity = max(64, 2 * len(linked.records)), 16
        self._linked, self._make_grammar, self._bind = linked, make_grammar, bind
        self.register_for_forks()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.ensure_grammar()
        return getattr(self, name)

    def leaf_keys(self, first: int) -> list[LeafKey]:
        return [(language.key, mode) for language, mode in self.leaves[first:]]

    @confine_budgets
    def ensure_grammar(self) -> None:
        """Create the Grammar and link the stored rules again. Raise the errors of the front end and of linking."""
        with self.lock:
            if "_make_grammar" not in self.__dict__:  # done by another thread, or interrupted before the last line
                self.__class__ = Program  # type: ignore[assignment]
                return
            with work_budget(self.work):
                grammar = self._make_grammar()
            with work_budget(UNLIMITED):  # all of it was linked before, within budgets
                made = self._link_again(self._make_program(grammar))
            if made is None:
                made = self._make_program(grammar)
                made.generation = self.generation + 1
                for leaf in self.leaves:  # state caches that are not evicted yet use the old numbers
                    made.leaf(*leaf)
            made.on_link = self.on_link
            self.__dict__ = made.__dict__  # before the class, so that no attribute is ever missing
            self.__class__ = Program  # type: ignore[assignment]

    def _make_program(self, grammar: Grammar) -> Program:
        """Return a Program of which nothing is linked."""
        made = Program(grammar, self._bind, self.lock)  # one lock, since a fork waits for all of them
        made.work = self.work
        return made

    def _link_again(self, made: Program) -> Program | None:
        """Link the stored rules in a new Program, in the same order, and return it; None if the code differs."""
        try:
            for cell in self._linked.links.tolist():
                made.link(cell)
        except (KeyError, IndexError):  # the cells differ, because an interrupted link left unreferenced words
            return None
        is_same = made.entry == self.entry and np.array_equal(made.code[: made.used], self.code)
        return made if is_same and len(made.leaves) == len(self.leaves) else None
