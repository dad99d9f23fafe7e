"""Hypothesis strategies over Grammars: each draws directly from the nodes, so no example is rejected.

A choice is an integer from 0 on, and 0 is always the simplest answer, so Hypothesis shrinks to short and simple
documents; items and members are separate spans, which it can delete.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from hypothesis import reject, strategies as st

from ..base.errors import check_choice, check_type
from ..base.options import Limits, Style
from ..compilation.constraint_compiler import to_grammar
from ..engine.constraint import Constraint
from ..grammar.nodes import Grammar
from .choice_source import NoMember
from .document_plan import DocumentPlan
from .grammar_documents import write_document

__all__ = ["Form", "DocumentForm", "document_strategy", "from_grammar", "from_regex", "from_schema", "spelling_of"]

Form = Literal["value", "text"]
NOTHING = st.none()


def from_schema(
    schema: Any,
    *,
    style: Style = Style(),
    registry: Mapping[str, Any] | None = None,
    limits: Limits = Limits(),
    form: Form = "value",
) -> st.SearchStrategy[Any]:
    """Return a strategy for instances of a JSON Schema.

    Parameters
    ----------
    schema : dict, bool, str or type
        As for `constrain.compile`: a dict, a boolean, JSON text, a Pydantic model, a dataclass or a TypedDict.
    style : Style
        How a text is spelled; only key order and the spelling of numbers affect a value.
    registry : mapping of str to object, optional
        Documents by URI, for references.
    limits : Limits
        Limits of compilation.
    form : {"value", "text"}
        Whether to draw Python values, as `json.loads` returns them, or JSON text. In values, numbers with a fraction
        are floats; where possible, only numbers are drawn that a float represents exactly as written.

    Returns
    -------
    SearchStrategy
        Draws Python values or str, according to `form`.

    Raises
    ------
    SchemaError
        If it is not a valid schema.
    UnsupportedError
        If a keyword is not supported.
    UnsatisfiableError
        If no instance satisfies the schema.
    LimitError
        If a limit is exceeded.
    """
    spelling = spelling_of(style, form)
    grammar = to_grammar(schema=schema, style=spelling.style, registry=registry, limits=limits)
    return document_strategy(DocumentPlan(grammar, floats=spelling.floats)).map(spelling.read)


class DocumentForm(NamedTuple):
    """What a form determines: the style of the Grammar, whether numbers must be representable as floats, and how bytes
    are decoded."""

    style: Style
    floats: bool
    read: Callable[[bytes], Any]


def spelling_of(style: Style, form: Form) -> DocumentForm:
    """Return the DocumentForm. A value does not show white space and escapes, so they are not varied."""
    check_type("style", style, Style, "give a constrain.Style")
    check_choice("form", form, ("value", "text"))
    if form == "text":
        return DocumentForm(style, False, bytes.decode)
    return DocumentForm(replace(style, whitespace="compact", escapes="canonical"), True, json.loads)


def from_regex(pattern: str, *, limits: Limits = Limits()) -> st.SearchStrategy[str]:
    """Return a strategy for texts that a pattern in Python's syntax matches as a whole.

    Parameters
    ----------
    pattern : str
        A regular expression.
    limits : Limits
        Limits of compilation.

    Returns
    -------
    SearchStrategy[str]
        Draws matching texts.

    Raises
    ------
    RegexError
        If it is not a valid pattern.
    UnsupportedError
        If the pattern uses a construct that is not regular or not supported.
    LimitError
        If a limit is exceeded.
    """
    return from_grammar(to_grammar(regex=pattern, limits=limits))


def from_grammar(grammar: Grammar | Constraint) -> st.SearchStrategy[str]:
    """Return a strategy for texts of a Grammar.

    Parameters
    ----------
    grammar : Grammar or Constraint
        A Grammar, or a Constraint, from whatever source it was compiled.

    Returns
    -------
    SearchStrategy[str]
        Draws texts of the language.
    """
    if isinstance(grammar, Constraint):
        grammar = grammar.grammar
    return document_strategy(DocumentPlan(to_grammar(grammar=grammar), floats=False)).map(bytes.decode)


@st.composite
def document_strategy(draw: st.DrawFn, plan: DocumentPlan) -> bytes:
    """Draw a document, as bytes."""
    try:
        return write_document(plan, Drawing(draw))
    except NoMember:
        reject()


class Drawing:
    """A source of choices that draws from Hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def below(self, n: int) -> int:
        return self.draw(integer_strategy(n))

    def span(self, work: Callable[[], None]) -> None:
        self.draw(span_strategy(work))


@lru_cache(maxsize=1024)
def integer_strategy(n: int) -> st.SearchStrategy[int]:
    """Return a strategy for integers from 0 to n - 1."""
    return st.integers(0, n - 1)


@st.composite
def span_strategy(draw: st.DrawFn, work: Callable[[], None]) -> None:
    """Run `work` within a span of its own, which the shrinker may delete, or move to the place of an enclosing span."""
    draw(NOTHING)
    work()
