"""Build a Grammar from XGrammar's EBNF."""

from __future__ import annotations

from ...base.options import Limits
from ...grammar.nodes import Grammar
from ..gbnf.gbnf_to_grammar import build_rules
from .ebnf_parser import EbnfParser

__all__ = ["parse_rules", "to_grammar"]


def to_grammar(text: str, *, start: str = "root", limits: Limits = Limits()) -> Grammar:
    """Return the Grammar of the texts that the rule `start` derives, as XGrammar 0.2.8 reads it.

    Parameters and errors are those of the front end of GBNF. Raise UnsupportedError for the macros and options that are
    not enforced.
    """
    return build_rules(parse_rules(text, limits), start)


def parse_rules(text: str, limits: Limits = Limits()) -> EbnfParser:
    """Return the parser of a text after it has read the rules."""
    parser = EbnfParser(text, limits.nesting)
    parser.read()
    return parser
