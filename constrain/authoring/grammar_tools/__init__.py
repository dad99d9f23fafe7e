"""What a person who writes a grammar needs: what is wrong in it, texts of it, why a text is none, diagrams of it.

`written` reads a grammar of either kind into one shape, on which the others work: `find_problems` (with `references`,
`clashes`, `shadows`, `errors`), `derive` and `spell` (random sentences), `parse` (a text read lexeme by lexeme) and
`diagrams`.
"""

from .grammar_findings import GrammarFinding, find_problems
from .written_grammar import WrittenGrammar, read_grammar

__all__ = ["GrammarFinding", "WrittenGrammar", "find_problems", "read_grammar"]
