"""llguidance front end: its variant of Lark, with its lexing rules.

    text --llguidance_lexer--> words --llguidance_parser--> definitions --llguidance_compiler--> rules over lexemes
                                                                                 |
    Grammar <--lexeme_products-- rows of competing lexemes <--lexeme_rows--------+

The rules are a context-free grammar over lexemes. llguidance scans greedily: after each lexeme, those that the rules
allow next compete; a lexeme ends where none of the competitors can go on, without backtracking, or where one that is
`lazy` matches. All competitors that match the same text count. `lexeme_scanning` has the scanner's view of lexemes,
`lexeme_rows` finds which of them compete, and `lexeme_products` writes each decision into the Grammar: a lexeme becomes
the part of its language that the competition leaves, followed by what may follow that part.
"""

from .captured_lexemes import CapturedLexemes, find_inner_grammar
from .llguidance_compiler import capture_lexemes, to_grammar

__all__ = ["CapturedLexemes", "capture_lexemes", "find_inner_grammar", "to_grammar"]
