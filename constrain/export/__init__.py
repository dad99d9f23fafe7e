"""Export of grammars to other notations: GBNF for llama.cpp, and Lark's grammar language for its Earley parser."""

from .gbnf_text import to_gbnf
from .lark_text import to_lark

__all__ = ["to_gbnf", "to_lark"]
