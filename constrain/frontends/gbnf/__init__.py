"""GBNF, the grammars of llama.cpp: text to Grammar.

`read` makes the nodes of each rule, `front` finds what is wrong between rules and makes the Grammar.
"""

from .gbnf_to_grammar import to_grammar

__all__ = ["to_grammar"]
