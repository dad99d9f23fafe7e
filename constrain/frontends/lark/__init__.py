"""Lark front end: grammars with Lark's semantics, a longest-match lexer followed by an LALR parser.

    text --load_grammar--> LoadedGrammar --build_tables--> LALR table --build_lexers--> scanner --> Parser

The accepted language is exactly that of `lark.Lark(text, parser="lalr", lexer=..., postlex=...)`: shift wins over
reduce, keywords are reserved where Lark reserves them, and indentation follows `lark.indenter.Indenter`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ...base.errors import GrammarError, UnsatisfiableError, UnsupportedError, shorten_text
from ...base.options import Limits
from ...base.work import confine_budgets, work_budget
from ...grammar.nodes import Grammar, Parsed
from ...lalr import lalr_tables
from ...lalr.epsilon_cycles import find_epsilon_cycle
from ...lalr.parser_code import IndentationLayout, Parser
from .dead_ends import find_dead_ends, find_table_dead_ends
from .lark_imports import Module

if TYPE_CHECKING:
    from .lark_loader import LoadedGrammar

__all__ = ["Indentation", "Lexer", "to_grammar", "to_parser"]

Lexer = Literal["contextual", "basic"]
Conflicts = Literal["refuse", "resolve"]
Imports = Iterable[tuple[str | None, str, str]]


@dataclass(frozen=True, slots=True)
class Indentation:
    """Indentation-based blocks, with the six properties of `lark.indenter.Indenter`.

    Parameters
    ----------
    newline : str
        Name of the terminal that matches a line end and the white space at the start of the next line.
    indent, dedent : str
        Names of the terminals that the post-lexer inserts.
    opening, closing : tuple of str
        Names of bracket terminals; line ends within brackets are ignored. Names that the grammar does not define are
        skipped.
    tab : int
        Number of columns that a tab counts.
    """

    newline: str = "_NEWLINE"
    indent: str = "_INDENT"
    dedent: str = "_DEDENT"
    opening: tuple[str, ...] = ("LPAR", "LSQB", "LBRACE")
    closing: tuple[str, ...] = ("RPAR", "RSQB", "RBRACE")
    tab: int = 8


class _ReadingOptions(NamedTuple):
    """Options of `to_parser`, without imports; part of the cache key."""

    start: str
    lexer: str
    indentation: Indentation | None
    source: str
    limits: Limits
    conflicts: Conflicts = "resolve"


def to_grammar(
    text: str,
    *,
    start: str = "start",
    lexer: Lexer = "contextual",
    indentation: Indentation | None = None,
    source: str = "<grammar>",
    import_paths: tuple[str, ...] = (),
    modules: tuple[Module, ...] = (),
    conflicts: Conflicts = "resolve",
    folder: Path | None = None,
    limits: Limits = Limits(),
) -> Grammar:
    """Return the Grammar of a Lark grammar.

    Parameters
    ----------
    text : str
        The grammar, in Lark's grammar language.
    start, lexer, indentation, source, import_paths, modules, conflicts, folder, limits
        See `to_parser`.

    Returns
    -------
    Grammar
        A grammar whose start is a `Parsed` node.

    Raises
    ------
    GrammarError, UnsupportedError, LimitError
        See `to_parser`.
    UnsatisfiableError
        If the language is empty.
    """
    parser = to_parser(
        text, start=start, lexer=lexer, indentation=indentation, source=source, import_paths=import_paths,
        modules=modules, conflicts=conflicts, folder=folder, limits=limits,
    )  # fmt: skip
    if parser.productions.start not in parser.productions.productive():
        raise UnsatisfiableError(
            f"rule {start} derives no text: every derivation is infinite",
            hint="Add an option without recursion to one of the rules.",
        )
    if parser.is_empty:
        raise UnsatisfiableError(
            f"{start} matches no text: the lexer never produces a sequence of lexemes that the rules accept",
            hint="A lexeme is the longest possible match: put separators between terminals, or relax lookaheads.",
        )
    return Grammar(Parsed(parser), {})


@confine_budgets
def to_parser(
    text: str,
    *,
    start: str = "start",
    lexer: Lexer = "contextual",
    indentation: Indentation | None = None,
    source: str = "<grammar>",
    import_paths: tuple[str, ...] = (),
    modules: tuple[Module, ...] = (),
    conflicts: Conflicts = "resolve",
    folder: Path | None = None,
    limits: Limits = Limits(),
) -> Parser:
    """Return the parser of a Lark grammar: its scanner and its LALR table.

    Parameters
    ----------
    text : str
        The grammar, in Lark's grammar language.
    start : str
        The start rule.
    lexer : {"contextual", "basic"}
        Lark's option of the same name.
    indentation : Indentation, optional
        Indentation-based blocks. By default those of Python if the grammar declares `_INDENT` and `_DEDENT`, else none.
    source : str
        File name of the grammar, for error messages.
    import_paths : tuple of str
        Folders that `%import` searches.
    modules : tuple of Module
        Modules that were read before, see `lark_imports.ImportReader`.
    conflicts : {"resolve", "refuse"}
        "resolve" resolves conflicts as Lark does. "refuse" refuses a grammar if a bounded search finds a text of the
        rules that the parser rejects, see `conflict_examples.find_lost_text`.
    folder : Path, optional
        Folder of the parser cache; None disables it.
    limits : Limits
        Bounds on nesting, automaton sizes and work.

    Returns
    -------
    Parser

    Raises
    ------
    GrammarError
        If Lark refuses the grammar; the error has a source position.
    UnsupportedError
        If the grammar uses a feature that cannot be enforced; the error has a source position.
    LimitError
        If a limit is exceeded.
    """
    if lexer not in ("contextual", "basic"):
        raise UnsupportedError(f"there is no lexer {lexer!r}", hint="It is contextual or basic.")
    options = _ReadingOptions(start, lexer, indentation, source, limits, conflicts)
    with work_budget(limits.work):
        return _fetch_or_build(text, options, import_paths, modules, folder)


def _fetch_or_build(
    text: str, options: _ReadingOptions, import_paths: tuple[str, ...], modules: tuple[Module, ...], folder: Path | None
) -> Parser:
    """Return the parser from the cache, or build it and store it there."""
    if folder is None:
        return _build_parser(text, options, import_paths, modules)[0]
    from .parser_cache import CachedParser

    cached = CachedParser(folder, (text, repr(options), repr(modules)), import_paths, modules)
    parser = cached.fetch()
    if parser is None:
        parser, imports = _build_parser(text, options, import_paths, modules)
        cached.store(parser, imports)
    return parser


def _build_parser(
    text: str, options: _ReadingOptions, import_paths: tuple[str, ...], modules: tuple[Module, ...]
) -> tuple[Parser, Imports]:
    """Build a parser; return it and the texts that the grammar imports."""
    from .lark_loader import load_grammar
    from .lexer_terminals import build_lexers

    indentation = options.indentation
    keep = () if indentation is None else (indentation.newline,)
    loaded = load_grammar(
        text,
        start=options.start,
        source=options.source,
        import_paths=import_paths,
        modules=modules,
        keep=keep,
        nesting=options.limits.nesting,
    )
    names = {terminal.name: number for number, terminal in enumerate(loaded.terminals)}
    if indentation is None and {"_INDENT", "_DEDENT"} <= {loaded.terminals[t].name for t in loaded.declared}:
        indentation = Indentation()
    layout = _layout(indentation, names, loaded) if indentation else None

    def locate_rule(rule: int) -> tuple[str, int] | None:
        position = loaded.position(rule)
        return None if position is None else (loaded.text, position)

    table = lalr_tables.build_tables(loaded.productions, locate_rule)
    _refuse_epsilon_cycles(table, loaded)
    rows = [np.flatnonzero(row).tolist() for row in table.action]
    extra_terminals = [layout.newline] if layout else []
    lexers = build_lexers(
        loaded, rows if options.lexer == "contextual" else None, always=extra_terminals, limits=options.limits
    )
    starts = lexers.starts if options.lexer == "contextual" else np.repeat(lexers.starts, len(table.action))
    written, productions = table, loaded.productions
    if lexers.fed:  # Ignored keywords that reach the parser get a terminal number of their own.
        count = len(loaded.terminals)
        columns = [table.action[:, :count], table.action[:, list(lexers.fed)], table.action[:, count:]]
        fed_names = tuple(table.terminals[t] for t in lexers.fed)
        written = replace(
            table,
            action=np.concatenate(columns, axis=1),
            terminals=(*table.terminals[:count], *fed_names, *table.terminals[count:]),
        )
        renamed = {t: count + k for k, t in enumerate(lexers.fed)}
        productions = replace(
            productions,
            terminals=(*productions.terminals, *fed_names),
            right=tuple(tuple(renamed.get(symbol, symbol) for symbol in right) for right in productions.right),
        )
    # Rules may use ignored terminals, but the lexer drops them: no action on them is ever taken.
    ignored = frozenset(loaded.ignored)
    action = written.action.copy()
    action[:, loaded.ignored] = 0
    table = replace(written, action=action)
    if layout is None:
        dead_ends = find_dead_ends(lexers.scanner, table, productions, starts, ignored)
    else:  # The Indenter inserts and drops lexemes, so only the table decides what may follow.
        dead_ends = find_table_dead_ends(table, productions, ignored)
    parser = Parser(lexers.scanner, table, productions, starts, ignored, layout, dead_ends)
    if options.conflicts == "refuse" and layout is None:
        _refuse_lost_texts(replace(parser, table=written, productions=loaded.productions), loaded, options.limits)
    return parser, loaded.imports


def _refuse_lost_texts(parser: Parser, loaded: LoadedGrammar, limits: Limits) -> None:
    """Raise GrammarError if the rules derive a text that Lark's LALR parser, or its lexer, rejects."""
    from .conflict_examples import find_lost_text

    text = find_lost_text(parser, loaded, limits)
    if text is None:
        return
    reasons = parser.table.conflicts or ("a terminal is never matched, since another one has precedence",)
    raise GrammarError(
        f"the rules derive {shorten_text(text)!r}, which Lark's LALR parser rejects: {shorten_text(reasons[0])}",
        source=loaded.text,
        position=0,
        hint='constrain.lark(text, parser="earley") accepts all texts of the rules, parser="lalr" those of its parser; '
        "or rewrite the rules so that one token of lookahead suffices.",
    )


def _refuse_epsilon_cycles(table: lalr_tables.Lalr, loaded: LoadedGrammar) -> None:
    """Raise GrammarError if reductions of empty rules can cycle: Lark's parser would loop forever."""
    cycle = find_epsilon_cycle(table, loaded.productions)
    if cycle is None:
        return
    named = [rule for rule in cycle if loaded.position(rule) is not None] or cycle
    rules = "; ".join(f"`{loaded.productions.text(rule)}`" for rule in cycle[:3])
    raise GrammarError(
        f"on some texts the parser never terminates: these rules form an infinite cycle of empty reductions: {rules}",
        source=loaded.text,
        position=loaded.position(named[0]) or 0,
        hint="Remove the empty alternative, or the repetition around it.",
    )


def _layout(indentation: Indentation, names: dict[str, int], loaded: LoadedGrammar) -> IndentationLayout:
    """Resolve the terminal names of an Indentation to numbers."""
    for name in (indentation.newline, indentation.indent, indentation.dedent):
        if name not in names:
            raise GrammarError(
                f"indentation needs a terminal {name}, which the grammar does not have",
                source=loaded.text,
                position=0,
                hint=f"Use {name} in a rule (%declare it if the post-lexer produces it), or name another terminal.",
            )
    return IndentationLayout(
        newline=names[indentation.newline],
        indent=names[indentation.indent],
        dedent=names[indentation.dedent],
        opening=frozenset(names[name] for name in indentation.opening if name in names),
        closing=frozenset(names[name] for name in indentation.closing if name in names),
        tab=indentation.tab,
    )
