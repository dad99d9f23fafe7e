"""ANTLR 4 grammars (`.g4`) as Lark text.

`scan` cuts the text into tokens, `convert` reads the rules and writes them as Lark has them.
"""

from .convert import Converted, to_lark

__all__ = ["Converted", "to_lark"]
