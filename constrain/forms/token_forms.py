"""Forms of single tokens, and forms that know their place in a document.

A token form matches one token of the vocabulary whatever its text is, such as the special token `<|call|>`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..base.errors import ConstrainError
from ..base.options import Limits
from ..grammar.nodes import Grammar, Token
from .form import Form

__all__ = ["OneToken", "PlacedForm"]


@dataclass(frozen=True, slots=True)
class OneToken(Form):
    """One of the named tokens, or with `negated` any token but these and the end-of-sequence tokens.

    A name is that of a special token of the vocabulary, or the id of any token.
    """

    names_or_ids: tuple[str | int, ...]
    negated: bool = False

    def read(self, limits: Limits) -> Grammar:
        return Grammar(Token(self.names_or_ids, self.negated), {})

    def names(self, limits: Limits) -> Iterator[Token]:
        yield Token(self.names_or_ids, self.negated)


@dataclass(frozen=True, slots=True)
class PlacedForm(Form):
    """A form that stands at a JSON pointer of an enclosing document; its errors have pointers into that document."""

    form: Form
    pointer: str

    def read(self, limits: Limits) -> Grammar:
        try:
            return self.form.grammar(limits)
        except ConstrainError as error:
            if error.source is None:
                error.pointer = self.pointer + (error.pointer or "")
            else:  # The position is within a pattern or grammar, and is shown with an excerpt.
                error.cause = f"at {self.pointer}: {error.cause}"
            error.args = (error.render(),)
            raise
