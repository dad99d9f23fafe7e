"""Build a Grammar from GBNF: check that every referenced rule is defined and that the start rule derives a text."""

from __future__ import annotations

from difflib import get_close_matches

from ...base.errors import GrammarError, UnsatisfiableError
from ...base.options import Limits
from ...grammar.nodes import Grammar, Rule
from ...grammar.simplification import simplify_grammar
from .gbnf_parser import GbnfParser

__all__ = ["build_rules", "to_grammar"]


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
    parser = GbnfParser(text, limits.nesting)
    parser.read()
    return build_rules(parser, start)


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
