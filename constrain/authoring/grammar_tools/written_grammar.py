"""A parsed grammar, in one representation for both notations: numbered rules, an LALR table, and for Lark a lexer.

A GBNF grammar has no lexer: its terminals are disjoint sets of characters (`character_grammar`), so that results
derived from the rules alone, such as ambiguity, hold for both notations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ...base.cached_property import cached_property
from ...base.errors import GrammarError
from ...base.options import Limits
from ...forms import lark
from ...frontends import gbnf
from ...frontends.lark import to_parser
from ...frontends.lark.lark_loader import LoadedGrammar, load_grammar
from ...frontends.lark.lexer_terminals import build_lexers
from ...grammar.nodes import Grammar, Parsed
from ...lalr import lalr_tables
from ...lalr.parser_code import Parser
from ...lalr.productions import Productions
from ...lalr.shortest_suffix import ShortestSuffixes
from .character_grammar import CharacterEndings, build_productions, find_rule_position

__all__ = ["LEXERS", "Kind", "LexerName", "WrittenGrammar", "kind_of", "read_grammar"]

Kind = Literal["lark", "gbnf"]
LexerName = Literal["contextual", "basic", "dynamic", "dynamic_complete"]
LEXERS: tuple[LexerName, ...] = ("contextual", "basic", "dynamic", "dynamic_complete")


def kind_of(name: str, text: str) -> Kind:
    """Return the notation: by the file extension, or else by the syntax of the rules."""
    if name.endswith((".gbnf", ".lark")):
        return "gbnf" if name.endswith(".gbnf") else "lark"
    return "gbnf" if "::=" in text else "lark"


@dataclass(frozen=True)
class WrittenGrammar:
    """A parsed grammar.

    name: its display name, the file. text: its source. start: the start rule. lexer: Lark's option; GBNF has no lexer,
    which is "dynamic". productions: its rules; for GBNF over the sets of characters `alphabet` (ranges of each
    terminal). loaded: the grammar as loaded for Lark. import_paths: folders for %import.
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
        """Whether a lexer tokenises the text before the rules apply."""
        return self.lexer in ("contextual", "basic")

    @cached_property
    def clash(self) -> GrammarError | None:
        """The error of the reduce/reduce conflicts, None if there are none."""
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
        """The LALR table; in a reduce/reduce conflict the first rule is used."""
        productions = self.productions
        if self.clash is not None:
            order = tuple((priority << 20) - rule for rule, priority in enumerate(productions.priority))
            productions = replace(productions, priority=order)
        return lalr_tables.build_tables(productions)

    @cached_property
    def overruled(self) -> list[tuple[int, int, int]]:
        """(state, terminal, rule) of each reduction that the table discards."""
        return lalr_tables.list_overruled_reductions(self.productions, self.table)

    @cached_property
    def parser(self) -> Parser | None:
        """Scanner and table together; None for GBNF.

        With reduce/reduce conflicts, or without a lexer, the basic lexer is used.
        """

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
        lexers = build_lexers(self.loaded, limits=self.limits)
        scan = np.repeat(lexers.starts, len(self.table.action))
        return Parser(lexers.scanner, self.table, self.productions, scan, frozenset(self.loaded.ignored))

    @cached_property
    def endings(self) -> ShortestSuffixes:
        """The shortest suffixes that complete texts, in bytes."""
        if self.parser is None:
            return CharacterEndings(self.productions, self.table)
        return ShortestSuffixes(self.parser)

    @cached_property
    def grammar(self) -> Grammar:
        """The Grammar that the engine runs. Raise the exceptions of the frontends."""
        if self.kind == "gbnf":
            return gbnf.to_grammar(self.text, start=self.start)
        if self.has_lexer:
            if self.clash is not None:
                raise self.clash
            assert self.parser is not None
            return Grammar(Parsed(self.parser), {})

        form = lark(self.text, start=self.start, lexer=self.lexer, import_paths=self.import_paths)
        return form.grammar(self.limits)

    def position(self, nonterminal: int) -> int | None:
        """Return the position of a nonterminal's definition in the text."""
        if self.loaded is not None:
            rules = self.productions.by_left()[nonterminal]
            return self.loaded.position(rules[0]) if rules else None

        return find_rule_position(self.text, self.productions.nonterminals[nonterminal])


def read_grammar(
    text: str,
    *,
    name: str = "<grammar>",
    kind: Kind | None = None,
    start: str | None = None,
    lexer: LexerName = "contextual",
    import_paths: tuple[str, ...] = (),
    limits: Limits = Limits(),
) -> WrittenGrammar:
    """Parse a grammar. Raise GrammarError if it is invalid; reduce/reduce conflicts are not errors here.

    kind: the notation, None to derive it from the name or the text. start: the start rule, by default `start`, in GBNF
    `root`.
    """
    kind = kind or kind_of(name, text)
    if kind == "gbnf":
        start = start or "root"
        productions, alphabet, tokens = build_productions(text, start)
        return WrittenGrammar(name, text, kind, start, "dynamic", productions, None, alphabet, tokens, (), limits)

    start = start or "start"
    loaded = load_grammar(text, start=start, source=name, import_paths=import_paths)
    return WrittenGrammar(
        name, text, kind, start, lexer, loaded.productions, loaded, import_paths=import_paths, limits=limits
    )
