"""The form of a grammar in llguidance's variant of Lark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..base.errors import UnsatisfiableError
from ..base.json_documents import References, load_document
from ..base.options import Limits, Style
from ..grammar.nodes import Grammar, Sequence, Token
from ..grammar.visitor import walk_nodes
from .form import Form
from .source_readers import schema_grammar

if TYPE_CHECKING:
    from ..frontends.llguidance import CapturedLexemes

__all__ = ["LlguidanceText", "uses_llguidance_syntax"]

FIRST_LINE = re.compile(r"\s*%llguidance\b")


def uses_llguidance_syntax(text: str) -> bool:
    """Return whether a Lark text says that it is for llguidance, by `%llguidance` at its beginning."""
    return FIRST_LINE.match(text) is not None


def load_front_end() -> ModuleType:
    """Return the front end, which is imported when a grammar is first read."""
    from ..frontends import llguidance

    return llguidance


@dataclass(frozen=True, slots=True)
class LlguidanceText(Form):
    """The texts that llguidance accepts for a grammar.

    `grammars` are what `@name` refers to. `captures` are rules to capture beside those with the attribute `capture`.
    """

    text: str
    grammars: tuple[tuple[str, Form], ...]
    style: Style
    captures: tuple[str, ...] = ()

    def read(self, limits: Limits) -> Grammar:
        grammars = {name: form.grammar(limits) for name, form in self.grammars}
        grammar: Grammar = load_front_end().to_grammar(self.text, self.read_schema, grammars, limits=limits)
        return grammar

    def read_schema(self, schema: Any, limits: Limits) -> Grammar:
        """Return the Grammar of a `%json`: white space is allowed within the document, but not around it."""
        grammar = schema_grammar(load_document(schema), self.style, References(), limits)
        if self.style.whitespace != "any":
            return grammar
        assert isinstance(grammar.start, Sequence)
        _, value, _ = grammar.start.parts
        return Grammar(value, grammar.rules)

    @property
    def may_capture(self) -> bool:
        """Whether the text may have captures: it does if it has the attribute `capture` or `stop_capture`."""
        return bool(self.captures) or "capture" in self.text

    def captured_lexemes(self, limits: Limits) -> CapturedLexemes:
        """Return what finds the captures of rules. Raise GrammarError if one of `captures` is not a rule."""
        grammars = {name: form.grammar(limits) for name, form in self.grammars}
        found: CapturedLexemes = load_front_end().capture_lexemes(
            self.text, self.read_schema, grammars, self.captures, limits=limits
        )
        return found

    def names(self, limits: Limits) -> Iterator[Token]:
        try:
            grammar = self.grammar(limits)
        except UnsatisfiableError:  # The enclosing form decides whether an empty part matters.
            return
        rules = (rule for name, rule in grammar.rules.items() if not isinstance(name, tuple) or len(name) > 2)
        yield from (node for node in walk_nodes(grammar.start, *rules) if isinstance(node, Token))
