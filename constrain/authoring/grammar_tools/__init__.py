"""Tools for writing grammars: find errors, draw sentences, explain why a text is rejected, draw diagrams.

`written_grammar.read_grammar` parses a grammar of either notation into a `WrittenGrammar`, on which the others work:
`grammar_findings.find_problems` (with `rule_references`, `lalr_conflicts`, `shadowed_terminals`, `grammar_errors`),
`derivations` and `unlexing` (random sentences), `lexeme_parser` and `recognition` (parse a text lexeme by lexeme) and
the package `diagrams`.
"""

from .grammar_findings import GrammarFinding, find_problems
from .written_grammar import WrittenGrammar, read_grammar

__all__ = ["GrammarFinding", "WrittenGrammar", "find_problems", "read_grammar"]
