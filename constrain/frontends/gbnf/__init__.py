"""GBNF front end: grammars in the notation of llama.cpp.

`gbnf_parser` parses the rules; `gbnf_to_grammar` checks references between rules and builds the Grammar.
"""

from .gbnf_to_grammar import capture_rules, parse_rules, to_grammar

__all__ = ["capture_rules", "parse_rules", "to_grammar"]
