"""Constraint: a source compiled for a vocabulary, which creates Matchers."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any

from ..base.extensions import find_extension
from ..base.keyword_names import explain_attributes
from ..base.options import Limits
from ..grammar.nodes import Grammar
from ..program.program import Program
from ..vocabulary.special_tokens import TokenSymbols
from ..vocabulary.vocabulary import Vocabulary
from .bound_program import BoundProgram
from .matcher import Matcher

__all__ = ["Constraint"]


FOREIGN_ATTRIBUTES = {
    **dict.fromkeys(("mask", "advance", "allows", "rollback", "fork", "forced", "is_complete", "is_finished"),
                    "constraint.matcher(), which has one position in one text"),
    **dict.fromkeys(("get_next_tokens", "get_next_state", "get_initial_state", "get_next_instruction"),
                    "constraint.matcher(), and its mask and advance"),
}  # fmt: skip
"""Methods of a Matcher, and of a guide of Outlines."""


@explain_attributes(FOREIGN_ATTRIBUTES)
class Constraint(BoundProgram):
    """A language compiled for a vocabulary. Create one with `constrain.compile`.

    A Constraint is immutable for its users and can be shared between threads. It can be pickled unless it was made from
    Grammar nodes.

    Attributes
    ----------
    schema_warnings : tuple of str
        The messages of the SchemaWarnings that `compile` issued.
    vocabulary : Vocabulary
        The tokens that it was compiled for.
    limits : Limits
        The budgets that it was compiled with.
    """

    def __init__(
        self,
        grammar: Grammar | Program,
        vocabulary: Vocabulary,
        limits: Limits,
        source: dict[str, Any] | Callable[[], dict[str, Any]] | None,
        schema_warnings: tuple[str, ...] = (),
    ) -> None:
        program = grammar if isinstance(grammar, Program) else Program(grammar, TokenSymbols(vocabulary))
        super().__init__(program, vocabulary, limits)
        self._source = source  # or what describes it, on first access
        self.schema_warnings = schema_warnings

    @property
    def source(self) -> dict[str, Any] | None:
        """What it was compiled from; None if it was made from a Grammar."""
        if callable(self._source):
            self._source = self._source()
        return self._source

    def __repr__(self) -> str:
        """Return an abbreviated description of the source."""
        source = {k: v for k, v in (self.source or {"grammar": self.grammar.start}).items() if k != "style"}
        text = ", ".join(f"{name}={value!r}" for name, value in source.items())
        return f"Constraint({text if len(text) <= 80 else text[:77] + '...'})"

    def _repr_html_(self) -> str:
        """Return a railroad diagram, for notebooks."""
        shown: str = find_extension("show_constraint")(self)
        return shown

    @property
    def grammar(self) -> Grammar:
        """The compiled Grammar. If the program was loaded from the disk cache, the source is parsed on first access."""
        return self.program.grammar

    def matcher(self) -> Matcher:
        """Return a new Matcher at the start of the text.

        Returns
        -------
        Matcher
        """
        return Matcher(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Save the source of the constraint as JSON with a digest. `load` compiles it again.

        The file is written atomically, and only the current user may read it. Pickling uses the same format.

        Parameters
        ----------
        path : path-like
            The file to write.

        Raises
        ------
        UnsupportedError
            If the constraint was made from Grammar nodes, or its source cannot be written as JSON.
        OSError
            If the file cannot be written.
        """
        find_extension("save_constraint")(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], vocabulary: Vocabulary, *, limits: Limits = Limits()) -> Constraint:
        """Load a constraint that `save` wrote, and compile it.

        No file other than `path` is read.

        Parameters
        ----------
        path : path-like
            The file to read.
        vocabulary : Vocabulary
            The vocabulary that the constraint was saved for.
        limits : Limits
            Upper bounds of the saved limits. The file can lower them but never raise them, so a constraint that needs
            more than the defaults has to be loaded with the limits that it was saved with.

        Returns
        -------
        Constraint

        Raises
        ------
        SourceError
            If the file is damaged, not a regular file, or was saved for another vocabulary.
        LimitError, UnsatisfiableError
            As `constrain.compile` does.
        OSError
            If the file cannot be read.
        """
        constraint: Constraint = find_extension("load_constraint")(path, vocabulary, limits)
        return constraint

    def __reduce__(self) -> tuple[Any, ...]:
        reduction: tuple[Any, ...] = find_extension("reduce_constraint")(self)
        return reduction

    def __copy__(self) -> Constraint:
        return self  # immutable

    def __deepcopy__(self, memo: dict[int, Any]) -> Constraint:
        return self
