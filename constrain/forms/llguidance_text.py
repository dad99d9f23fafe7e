"""The form of a grammar in llguidance's variant of Lark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..base.errors import UnsatisfiableError
from ..base.json_documents import References, load_document
from ..base.options import Limits, Style
from ..grammar.nodes import Grammar, Token
from ..grammar.visitor import walk_nodes
from .form import Form
from .source_readers import schema_grammar

__all__ = ["LlguidanceText", "uses_llguidance_syntax"]

FIRST_LINE = re.compile(r"\s*%llguidance\b")


def uses_llguidance_syntax(text: str) -> bool:
    """Return whether a Lark text says that it is for llguidance, by `%llguidance` at its beginning."""
    return FIRST_LINE.match(text) is not None


@dataclass(frozen=True, slots=True)
class LlguidanceText(Form):
    """The texts that llguidance accepts for a grammar. `grammars` are what `@name` refers to."""

    text: str
    grammars: tuple[tuple[str, Form], ...]
    style: Style

    def read(self, limits: Limits) -> Grammar:
        from ..frontends import llguidance as front

        def read_schema(schema: Any, limits: Limits) -> Grammar:
            return schema_grammar(load_document(schema), self.style, References(), limits)

        grammars = {name: form.grammar(limits) for name, form in self.grammars}
        return front.to_grammar(self.text, read_schema, grammars, limits=limits)

    def names(self, limits: Limits) -> Iterator[Token]:
        try:
            grammar = self.grammar(limits)
        except UnsatisfiableError:  # The enclosing form decides whether an empty part matters.
            return
        rules = (rule for name, rule in grammar.rules.items() if not isinstance(name, tuple) or len(name) > 2)
        yield from (node for node in walk_nodes(grammar.start, *rules) if isinstance(node, Token))
