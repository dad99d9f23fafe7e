"""Lark grammars with other grammars in them, in place of terminals that they declare.

With a lexer, a regular grammar is a terminal like any other: its definition is written into the text, as a pattern of
which the longest match comes first. Without one, any grammar is a leaf of the rules.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping

from ..base.errors import UnsupportedError
from ..base.options import Limits
from ..frontends.lark import Conflicts
from ..frontends.lark.lark_imports import Module
from ..grammar.leading_characters import first_characters
from ..grammar.merged_rules import Merged
from ..grammar.nodes import Grammar, Node
from ..grammar.whole_dfa import to_dfa

__all__ = ["with_lexer", "without_lexer"]

DECLARED = re.compile(r"^([ \t]*%declare\b)([^\n/]*)", re.M)


def without_lexer(
    text: str,
    start: str,
    lexer: str,
    grammars: Mapping[str, Grammar],
    import_paths: tuple[str, ...],
    modules: tuple[Module, ...],
    limits: Limits,
) -> Grammar:
    """lexer: "dynamic" or "dynamic_complete"."""
    from ..frontends.lark.lark_loader import load
    from ..frontends.lark.scannerless import scannerless

    inner = Merged(list(grammars.values()))
    declared = {name: (inner.start(k), first_characters(grammar)) for k, (name, grammar) in enumerate(grammars.items())}
    loaded = load(text, start=start, import_paths=import_paths, modules=modules, nesting=limits.nesting)
    made = scannerless(loaded, lexer, declared, limits=limits)  # type: ignore[arg-type]
    return Grammar(made.start, Both(made.rules, inner))


class Both(Mapping[Hashable, Node]):
    """The rules of two mappings, whose names differ."""

    def __init__(self, first: Mapping[Hashable, Node], second: Mapping[Hashable, Node]) -> None:
        self.first, self.second = first, second

    def __getitem__(self, name: Hashable) -> Node:
        return self.first[name] if name in self.first else self.second[name]

    def __iter__(self):  # type: ignore[no-untyped-def]
        yield from self.first
        yield from self.second

    def __len__(self) -> int:
        return len(self.first) + len(self.second)


def with_lexer(
    text: str,
    start: str,
    lexer: str,
    grammars: Mapping[str, Grammar],
    import_paths: tuple[str, ...],
    modules: tuple[Module, ...],
    limits: Limits,
    conflicts: Conflicts,
) -> Grammar:
    """lexer: "contextual" or "basic"."""
    from ..cache.cache_folder import folder
    from ..frontends import lark as front

    for name, grammar in grammars.items():
        text = defined(text, name, grammar, limits)
    return front.to_grammar(
        text,
        start=start,
        lexer=lexer,  # type: ignore[arg-type]
        import_paths=import_paths,
        modules=modules,
        conflicts=conflicts,
        folder=folder(),
        limits=limits,
    )


def defined(text: str, name: str, grammar: Grammar, limits: Limits) -> str:
    """The text with a definition of a declared terminal behind it; all else stays in its place."""
    from ..export.lark_text import pattern
    from ..export.regular_expression import expression

    what = f"grammars[{name!r}] beside a lexer"
    try:
        dfa = to_dfa(grammar, what, limits)
    except UnsupportedError as error:
        raise UnsupportedError(error.cause, hint='With lexer="dynamic_complete" it may be any grammar.') from None
    if dfa.accepts(""):
        raise UnsupportedError(f"{what}: a terminal is not empty", hint=f"Leave out the empty text and write {name}?.")
    term = expression(dfa)
    if term is None:
        raise UnsupportedError(f"{what}: it is too large for a pattern", hint='Use lexer="dynamic_complete".')

    def without(match: re.Match[str]) -> str:
        names = re.sub(rf"(?<!\S){re.escape(name)}(?!\S)", " " * len(name), match[2])
        return match[1] + names if names.strip() else " " * len(match[0])

    return DECLARED.sub(without, text) + f"\n{name}: /{pattern(term)}/\n"
