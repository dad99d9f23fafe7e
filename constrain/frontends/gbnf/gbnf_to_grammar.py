"""From GBNF text to a Grammar: every name must have a rule, and the start must have a text."""

from __future__ import annotations

from difflib import get_close_matches

from ...base.errors import GrammarError, UnsatisfiableError
from ...base.options import Limits
from ...grammar.nodes import Grammar, Rule
from ...grammar.simplification import simplify_grammar
from .gbnf_parser import GbnfParser

__all__ = ["to_grammar"]


def to_grammar(text: str, *, start: str = "root", limits: Limits = Limits()) -> Grammar:
    """The Grammar of the texts that the rule `start` makes.

    As llama.cpp reads it, with these differences: left recursion is allowed; counts are exact up to any size (llama.cpp
    takes {m,n} beyond 2,000 for {m,}); `{,n}` and names with `_` are read; what llama.cpp lets pass though it means
    nothing (a rule given twice, `[]`, `[z-a]`, `{3,2}`) is an error. Options without any text are left out.

    Raises GrammarError with line and column, UnsatisfiableError if there is no text at all, LimitError beyond `limits`.
    """
    if not isinstance(text, str):
        raise GrammarError(f"a grammar is {text!r}: it is the text of its rules")
    reader = GbnfParser(text, limits.nesting)
    reader.read()
    rules = reader.rules
    for name, place in reader.uses.items():
        if name not in rules:
            close = get_close_matches(name, [n for n in rules if isinstance(n, str)], 1)
            meant = f"Did you mean {close[0]}? Otherwise write" if close else "Write"
            raise GrammarError(
                f"rule {name} is named but not given", source=text, position=place, hint=f"{meant} `{name} ::= ...`."
            )
    if start not in rules:
        raise GrammarError(
            f"there is no rule {start}, where the text starts",
            source=text,
            position=0,
            hint=f"Write `{start} ::= ...`, or name another start.",
        )
    grammar = simplify_grammar(Rule(start), rules)
    if grammar is None:
        raise UnsatisfiableError(
            f"no text at all is a {start}: every way through it comes back to a rule that never ends",
            source=text,
            position=reader.places[start],
            hint="Give some rule on the way an option that does not lead back.",
        )
    return grammar
