"""Grammars written for others to read: as GBNF for llama.cpp, as Lark text for its Earley parser."""

from .gbnf_text import to_gbnf
from .lark_text import to_lark

__all__ = ["to_gbnf", "to_lark"]
