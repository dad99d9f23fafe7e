"""Constraint: a compiled source for a vocabulary, which makes Matchers."""

from __future__ import annotations

from os import PathLike
from typing import Any

from ..base.extensions import find_extension
from ..base.options import Limits
from ..grammar.nodes import Grammar
from ..program.program import Program
from ..vocabulary.special_tokens import TokenSymbols
from ..vocabulary.vocabulary import Vocabulary
from .bound_program import BoundProgram
from .matcher import Matcher

__all__ = ["Constraint"]


class Constraint(BoundProgram):
    """A Grammar for a Vocabulary: immutable to its users, shared between threads.

    source: what it was compiled from, or None if from a Grammar. schema_warnings: what `compile` warned of.
    """

    def __init__(
        self,
        grammar: Grammar | Program,
        vocabulary: Vocabulary,
        limits: Limits,
        source: dict[str, Any] | None,
        schema_warnings: tuple[str, ...] = (),
    ) -> None:
        program = grammar if isinstance(grammar, Program) else Program(grammar, TokenSymbols(vocabulary))
        super().__init__(program, vocabulary, limits)
        self.source = source
        self.schema_warnings = schema_warnings

    def __repr__(self) -> str:
        """What it was compiled from, in short."""
        source = {k: v for k, v in (self.source or {"grammar": self.grammar.start}).items() if k != "style"}
        text = ", ".join(f"{name}={value!r}" for name, value in source.items())
        return f"Constraint({text if len(text) <= 80 else text[:77] + '...'})"

    @property
    def grammar(self) -> Grammar:
        """What it was compiled to; read from the source only now, if the program was kept on disk."""
        return self.program.grammar

    def matcher(self) -> Matcher:
        """A new position, before any text."""
        return Matcher(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write what the constraint was compiled from, as JSON with a digest.

        The file appears whole or not at all, and only this user may read it. Raises UnsupportedError for a constraint
        made from Grammar nodes, OSError if the file cannot be written. Pickling uses the same form.
        """
        find_extension("save_constraint")(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], vocabulary: Vocabulary, *, limits: Limits = Limits()) -> Constraint:
        """Read what `save` wrote, and compile it.

        A file can only lower `limits`, never raise them: one that was saved with higher limits than the defaults, and
        needs them, has to be loaded with them. It never reads other files. Raises SourceError if the file is damaged,
        no regular file, or made for another vocabulary; LimitError and UnsatisfiableError as `compile`; OSError if it
        cannot be read at all.
        """
        found: Constraint = find_extension("load_constraint")(path, vocabulary, limits)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        found: tuple[Any, ...] = find_extension("reduce_constraint")(self)
        return found

    def __copy__(self) -> Constraint:
        return self  # It is immutable.

    def __deepcopy__(self, memo: dict[int, Any]) -> Constraint:
        return self
