"""The rules of Lark and GBNF grammars with the symbols to capture; imported when a grammar has some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..base.options import Limits
from ..frontends.lark.lark_captures import capture_scannerless_rules, find_captured_symbols
from ..frontends.lark.lark_imports import Module
from ..grammar.captured_grammar import CapturedGrammar
from ..grammar.nodes import Grammar
from .embedded_grammars import load_with_declared

__all__ = ["capture_without_lexer", "find_captured_symbols"]


def capture_without_lexer(
    text: str,
    start: str,
    lexer: str,
    grammars: Mapping[str, Grammar],
    import_paths: tuple[str, ...],
    modules: tuple[Module, ...],
    limits: Limits,
    captures: Iterable[str],
) -> CapturedGrammar:
    """Return the rules of what `embed_without_lexer` reads, with captures of the symbols of these names."""
    loaded, declared, inner = load_with_declared(text, start, grammars, import_paths, modules, limits)
    return capture_scannerless_rules(loaded, declared, inner, captures, limits)
