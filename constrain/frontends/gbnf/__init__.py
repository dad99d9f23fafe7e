"""GBNF front end: grammars in the notation of llama.cpp.

`gbnf_parser` parses the rules; `gbnf_to_grammar` checks references between rules and builds the Grammar.
"""

from .gbnf_to_grammar import to_grammar

__all__ = ["to_grammar"]
