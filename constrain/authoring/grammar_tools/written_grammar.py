"""A grammar as a person wrote it, in one shape whatever its notation: numbered rules, a table, and for Lark a lexer.

A GBNF grammar has no lexer: its terminals are sets of characters that do not overlap (`characters`), so that what is
worked out of the rules alone, such as whether two of them make the same text, is right for both kinds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from ...base.errors import GrammarError
from ...base.options import Limits
from ...frontends.lark.lark_loader import LoadedGrammar
from ...grammar.nodes import Grammar
from ...lalr import lalr_tables
from ...lalr.parser_code import Parser
from ...lalr.productions import Productions
from ...lalr.shortest_suffix import ShortestSuffixes

__all__ = ["LEXERS", "Kind", "LexerName", "Written", "kind_of", "read"]

Kind = Literal["lark", "gbnf"]
LexerName = Literal["contextual", "basic", "dynamic", "dynamic_complete"]
LEXERS: tuple[LexerName, ...] = ("contextual", "basic", "dynamic", "dynamic_complete")


def kind_of(name: str, text: str) -> Kind:
    """The notation: by the file's name, or else by how rules are written."""
    if name.endswith((".gbnf", ".lark")):
        return "gbnf" if name.endswith(".gbnf") else "lark"
    return "gbnf" if "::=" in text else "lark"


@dataclass(frozen=True)
class Written:
    """A grammar that has been read.

    name: what to call it, its file. text: as written. start: the rule that a text is. lexer: as Lark's option; GBNF has
    none, which is "dynamic". productions: its rules; for GBNF over the sets of characters `alphabet` (ranges of each
    terminal). loaded: what Lark made of it. import_paths: folders for %import.
    """

    name: str
    text: str
    kind: Kind
    start: str
    lexer: LexerName
    productions: Productions
    loaded: LoadedGrammar | None = None
    alphabet: tuple[tuple[tuple[int, int], ...], ...] = ()
    tokens: tuple[str, ...] = ()
    import_paths: tuple[str, ...] = ()
    limits: Limits = Limits()

    @property
    def has_lexer(self) -> bool:
        """Whether terminals are cut out of the text by a lexer before the rules see them."""
        return self.lexer in ("contextual", "basic")

    @cached_property
    def clash(self) -> GrammarError | None:
        """Why there is no table without a choice between two rules, if there is none."""
        loaded = self.loaded
        try:
            lalr_tables.build_tables(
                self.productions,
                lambda rule: (self.text, at) if loaded and (at := loaded.position(rule)) is not None else None,
            )
        except GrammarError as error:
            return error
        return None

    @cached_property
    def table(self) -> lalr_tables.Lalr:
        """The LALR table; where two rules clash, with the first of them."""
        productions = self.productions
        if self.clash is not None:
            order = tuple((priority << 20) - rule for rule, priority in enumerate(productions.priority))
            productions = replace(productions, priority=order)
        return lalr_tables.build_tables(productions)

    @cached_property
    def overruled(self) -> list[tuple[int, int, int]]:
        """(state, terminal, rule): what could end there and does not."""
        return lalr_tables.list_overruled_reductions(self.productions, self.table)

    @cached_property
    def parser(self) -> Parser | None:
        """Scanner and table together; None for GBNF. Where rules clash or nothing cuts the text, of the basic lexer."""
        from ...frontends.lark import to_parser
        from ...frontends.lark.lexer_terminals import build_lexers

        if self.loaded is None:
            return None
        if self.has_lexer and self.clash is None:
            lexer: Literal["contextual", "basic"] = "basic" if self.lexer == "basic" else "contextual"
            return to_parser(
                self.text,
                start=self.start,
                lexer=lexer,
                source=self.name,
                import_paths=self.import_paths,
                limits=self.limits,
            )
        made = build_lexers(self.loaded, limits=self.limits)
        scan = np.repeat(made.starts, len(self.table.action))
        return Parser(made.scanner, self.table, self.productions, scan, frozenset(self.loaded.ignored))

    @cached_property
    def endings(self) -> ShortestSuffixes:
        """How texts end soonest, in bytes."""
        if self.parser is None:
            from .character_grammar import CharacterEndings

            return CharacterEndings(self.productions, self.table)
        return ShortestSuffixes(self.parser)

    @cached_property
    def grammar(self) -> Grammar:
        """The Grammar that the machine runs. Errors as of the front ends."""
        if self.kind == "gbnf":
            from ...frontends import gbnf

            return gbnf.to_grammar(self.text, start=self.start)
        if self.has_lexer:
            from ...grammar.nodes import Parsed

            if self.clash is not None:
                raise self.clash
            assert self.parser is not None
            return Grammar(Parsed(self.parser), {})
        from ...forms import lark

        form = lark(self.text, start=self.start, lexer=self.lexer, import_paths=self.import_paths)
        return form.grammar(self.limits)

    def position(self, nonterminal: int) -> int | None:
        """Where a nonterminal is defined in the text."""
        if self.loaded is not None:
            rules = self.productions.by_left()[nonterminal]
            return self.loaded.position(rules[0]) if rules else None
        from .character_grammar import written_at

        return written_at(self.text, self.productions.nonterminals[nonterminal])


def read(
    text: str,
    *,
    name: str = "<grammar>",
    kind: Kind | None = None,
    start: str | None = None,
    lexer: LexerName = "contextual",
    import_paths: tuple[str, ...] = (),
    limits: Limits = Limits(),
) -> Written:
    """Reads a grammar. GrammarError if it is none; that two rules clash is no error here.

    kind: None to tell by the name or the text. start: None for `start`, in GBNF `root`.
    """
    kind = kind or kind_of(name, text)
    if kind == "gbnf":
        from .character_grammar import productions_of

        start = start or "root"
        productions, alphabet, tokens = productions_of(text, start)
        return Written(name, text, kind, start, "dynamic", productions, None, alphabet, tokens, (), limits)
    from ...frontends.lark.lark_loader import load_grammar

    start = start or "start"
    loaded = load_grammar(text, start=start, source=name, import_paths=import_paths)
    return Written(name, text, kind, start, lexer, loaded.productions, loaded, import_paths=import_paths, limits=limits)
