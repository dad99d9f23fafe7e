"""Build a Grammar from GBNF: check that every referenced rule is defined and that the start rule derives a text."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from ...base.errors import GrammarError, UnsatisfiableError
from ...base.options import Limits
from ...grammar.captured_grammar import CapturedGrammar
from ...grammar.nodes import Grammar, Rule
from ...grammar.simplification import simplify_grammar
from .gbnf_parser import GbnfParser

__all__ = ["build_rules", "capture_rules", "parse_rules", "to_grammar"]


def to_grammar(text: str, *, start: str = "root", limits: Limits = Limits()) -> Grammar:
    """Return the Grammar of the texts that the rule `start` derives.

    The semantics are those of llama.cpp, with these differences: left recursion is allowed; repetition counts are exact
    whatever their size (llama.cpp takes {m,n} beyond 2,000 for {m,}); `{,n}` and names with `_` are accepted; and what
    llama.cpp accepts although it is meaningless (a rule defined twice, `[]`, `[z-a]`, `{3,2}`) is an error.
    Alternatives that derive no text are removed.

    Parameters
    ----------
    text : str
        The grammar.
    start : str
        Name of the start rule.
    limits : Limits
        Its `nesting` bounds the depth of parentheses.

    Returns
    -------
    Grammar

    Raises
    ------
    GrammarError
        If the text is not a valid grammar; the error has line and column.
    UnsatisfiableError
        If the language is empty.
    LimitError
        If a limit is exceeded.
    """
    if not isinstance(text, str):
        raise GrammarError(f"a grammar must be a string, not {type(text).__name__}")
    return build_rules(parse_rules(text, limits), start)


def parse_rules(text: str, limits: Limits = Limits()) -> GbnfParser:
    """Return the parser of a text after it has read the rules."""
    parser = GbnfParser(text, limits.nesting)
    parser.read()
    return parser


def capture_rules(parser: GbnfParser, start: str, captures: Iterable[str]) -> CapturedGrammar:
    """Return the rules that a parser has read as written, with captures of the rules of these names.

    Raise GrammarError for a name that is not that of a rule.
    """
    for name in captures:
        if name not in parser.definitions:
            close = get_close_matches(name, parser.definitions, 1)
            hint = f"Did you mean {close[0]}?" if close else f"There are {', '.join(parser.definitions)}."
            raise GrammarError(f"captures: there is no rule {name}", source=parser.text, position=0, hint=hint)
    return CapturedGrammar(Rule(start), parser.rules, {name: name for name in captures})


def build_rules(parser: GbnfParser, start: str) -> Grammar:
    """Return the Grammar of the rules that a parser has read; raise the errors of `to_grammar`."""
    rules, text = parser.rules, parser.text
    for name, position in parser.uses.items():
        if name not in rules:
            close = get_close_matches(name, [n for n in rules if isinstance(n, str)], 1)
            meant = f"Did you mean {close[0]}? Otherwise write" if close else "Write"
            raise GrammarError(
                f"rule {name} is used but not defined",
                source=text,
                position=position,
                hint=f"{meant} `{name} ::= ...`.",
            )
    if start not in rules:
        raise GrammarError(
            f"there is no start rule {start}",
            source=text,
            position=0,
            hint=f"Write `{start} ::= ...`, or name another start.",
        )
    grammar = simplify_grammar(Rule(start), rules)
    if grammar is None:
        raise UnsatisfiableError(
            f"rule {start} derives no text: every derivation is infinite",
            source=text,
            position=parser.definitions[start],
            hint="Add an option without recursion to one of the rules.",
        )
    return grammar
