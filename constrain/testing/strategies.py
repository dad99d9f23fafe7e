"""Strategies of Hypothesis over Grammars: each draws from the nodes themselves, so nothing is drawn and thrown away.

A choice is an integer from 0 on, and 0 is always the simplest answer, so what Hypothesis shrinks to is a short and
simple document; items and members are spans of their own, which it can leave out.
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
from .document_recipe import Recipe
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
    """Instances of a JSON Schema: Python values as `json.loads` gives them, or JSON text.

    schema: as for `constrain.compile`: a dict, bool or JSON text, a Pydantic model, dataclass or TypedDict. style: how
    a text is spelled; of a value only key order and number spelling are seen. registry: URI -> document for references.
    form: "value" or "text". In values numbers with a fraction are floats; drawn are those that a float holds exactly as
    they are written, where there are such.

    Raises what `constrain.compile` raises: SchemaError, UnsupportedError, UnsatisfiableError, LimitError.
    """
    spelling = spelling_of(style, form)
    grammar = to_grammar(schema=schema, style=spelling.style, registry=registry, limits=limits)
    return document_strategy(Recipe(grammar, floats=spelling.floats)).map(spelling.read)


class DocumentForm(NamedTuple):
    """What a form asks for: the style of the Grammar, whether numbers must fit into floats, and how bytes are read."""

    style: Style
    floats: bool
    read: Callable[[bytes], Any]


def spelling_of(style: Style, form: Form) -> DocumentForm:
    """Of a value spaces and escapes are not seen, so none are drawn."""
    check_type("style", style, Style, "give a constrain.Style")
    check_choice("form", form, ("value", "text"))
    if form == "text":
        return DocumentForm(style, False, bytes.decode)
    return DocumentForm(replace(style, whitespace="compact", escapes="canonical"), True, json.loads)


def from_regex(pattern: str, *, limits: Limits = Limits()) -> st.SearchStrategy[str]:
    """Texts that a pattern in Python's syntax matches as a whole. Raises RegexError, UnsupportedError, LimitError."""
    return from_grammar(to_grammar(regex=pattern, limits=limits))


def from_grammar(grammar: Grammar | Constraint) -> st.SearchStrategy[str]:
    """Texts of a Grammar, or of the Grammar of a Constraint whatever it was compiled from."""
    if isinstance(grammar, Constraint):
        grammar = grammar.grammar
    return document_strategy(Recipe(to_grammar(grammar=grammar), floats=False)).map(bytes.decode)


@st.composite
def document_strategy(draw: st.DrawFn, recipe: Recipe) -> bytes:
    """Documents as bytes."""
    try:
        return write_document(recipe, Drawing(draw))
    except NoMember:
        reject()


class Drawing:
    """A chooser that draws from Hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def below(self, n: int) -> int:
        return self.draw(integer_strategy(n))

    def span(self, work: Callable[[], None]) -> None:
        self.draw(span_strategy(work))


@lru_cache(maxsize=1024)
def integer_strategy(n: int) -> st.SearchStrategy[int]:
    """0 to n - 1."""
    return st.integers(0, n - 1)


@st.composite
def span_strategy(draw: st.DrawFn, work: Callable[[], None]) -> None:
    """What `work` draws, as a part of its own: the shrinker may drop it, or put it in the place of one around it."""
    draw(NOTHING)
    work()
