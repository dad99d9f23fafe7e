"""Lark grammars that embed other grammars in place of terminals declared with `%declare`.

With a lexer, an embedded grammar must be regular. It becomes a terminal like any other: its definition is appended to
the text as a regular expression that prefers the longest match. Without a lexer, any grammar can be a leaf of the
rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..automata.dfa import Dfa
from ..base.errors import UnsupportedError
from ..base.options import Limits
from ..frontends.lark import Conflicts
from ..frontends.lark.lark_imports import Module
from ..grammar.grammar_dfa import to_dfa
from ..grammar.leading_characters import find_first_characters
from ..grammar.merged_rules import MergedRules, RuleUnion
from ..grammar.nodes import Grammar, Node

if TYPE_CHECKING:
    from ..frontends.lark.lark_loader import LoadedGrammar

__all__ = ["embed_with_lexer", "embed_without_lexer", "load_with_declared"]

DECLARED = re.compile(r"^([ \t]*%declare\b)([^\n/]*)", re.M)


def embed_without_lexer(
    text: str,
    start: str,
    lexer: str,
    grammars: Mapping[str, Grammar],
    import_paths: tuple[str, ...],
    modules: tuple[Module, ...],
    limits: Limits,
) -> Grammar:
    """Return the Grammar of a Lark text with embedded grammars, without a lexer.

    `lexer` is "dynamic" or "dynamic_complete". `grammars` maps each declared terminal to its Grammar.
    """
    from ..frontends.lark.scannerless_grammar import to_scannerless_grammar

    loaded, declared, inner = load_with_declared(text, start, grammars, import_paths, modules, limits)
    made = to_scannerless_grammar(loaded, lexer, declared, limits=limits)  # type: ignore[arg-type]
    return Grammar(made.start, RuleUnion(made.rules, inner))


def load_with_declared(
    text: str,
    start: str,
    grammars: Mapping[str, Grammar],
    import_paths: tuple[str, ...],
    modules: tuple[Module, ...],
    limits: Limits,
) -> tuple[LoadedGrammar, dict[str, tuple[Node, Dfa]], MergedRules]:
    """Return a loaded Lark text, the node and first characters of each declared terminal, and the nodes' rules."""
    from ..frontends.lark.lark_loader import load_grammar

    inner = MergedRules(list(grammars.values()))
    declared = {
        name: (inner.start(k), find_first_characters(grammar)) for k, (name, grammar) in enumerate(grammars.items())
    }
    loaded = load_grammar(text, start=start, import_paths=import_paths, modules=modules, nesting=limits.nesting)
    return loaded, declared, inner


def embed_with_lexer(
    text: str,
    start: str,
    lexer: str,
    grammars: Mapping[str, Grammar],
    import_paths: tuple[str, ...],
    modules: tuple[Module, ...],
    limits: Limits,
    conflicts: Conflicts,
) -> Grammar:
    """Return the Grammar of a Lark text with embedded regular grammars as terminals.

    `lexer` is "contextual" or "basic". `grammars` maps each declared terminal to its Grammar. Raise UnsupportedError
    for an embedded grammar that is not regular, matches the empty text, or is too large for a pattern.
    """
    from ..cache.cache_folder import cache_folder_path
    from ..frontends import lark as front

    for name, grammar in grammars.items():
        text = define_terminal(text, name, grammar, limits)
    return front.to_grammar(
        text,
        start=start,
        lexer=lexer,  # type: ignore[arg-type]
        import_paths=import_paths,
        modules=modules,
        conflicts=conflicts,
        folder=cache_folder_path(),
        limits=limits,
    )


def define_terminal(text: str, name: str, grammar: Grammar, limits: Limits) -> str:
    """Return the text with the definition of a declared terminal appended.

    The `%declare` is blanked out, so that the positions of everything else in the text stay the same.
    """
    from ..export.lark_text import write_lark_pattern
    from ..export.regular_expression import to_expression

    feature = f"grammars[{name!r}] beside a lexer"
    try:
        dfa = to_dfa(grammar, feature, limits)
    except UnsupportedError as error:
        raise UnsupportedError(error.cause, hint='With lexer="dynamic_complete" it may be any grammar.') from None
    if dfa.accepts(""):
        raise UnsupportedError(
            f"{feature}: a terminal is not empty", hint=f"Leave out the empty text and write {name}?."
        )
    term = to_expression(dfa)
    if term is None:
        raise UnsupportedError(
            f"{feature}: the grammar is too large for a pattern", hint='Use lexer="dynamic_complete".'
        )

    def without(match: re.Match[str]) -> str:
        names = re.sub(rf"(?<!\S){re.escape(name)}(?!\S)", " " * len(name), match[2])
        return match[1] + names if names.strip() else " " * len(match[0])

    return DECLARED.sub(without, text) + f"\n{name}: /{write_lark_pattern(term)}/\n"
