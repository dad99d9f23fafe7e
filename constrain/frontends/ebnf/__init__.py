"""EBNF front end: grammars in the notation of XGrammar, which is that of llama.cpp with macros and another layout.

`ebnf_parser` extends the parser of GBNF; references and the start rule are checked as for GBNF.
"""

from .ebnf_parser import EbnfParser
from .ebnf_to_grammar import parse_rules, to_grammar

__all__ = ["EbnfParser", "parse_rules", "to_grammar"]
