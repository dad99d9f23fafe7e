"""Draw random sentences of a grammar.

Terminals are derived from its rules and spelled as lexemes; the engine checks the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from .derivations import Derivation
from .recognition import Recogniser
from .unlexing import Speller
from .written_grammar import WrittenGrammar

__all__ = ["SIZE", "draw_sentences"]

SIZE = 60
"""Default for the maximum number of rules and lexemes after which a sentence is completed."""
DRAWS = 3
"""Number of derivations of which the longest is used: most are short, and short sentences show little."""
TRIES = 60
"""Number of derivations without a new sentence after which drawing stops."""


def draw_sentences(written: WrittenGrammar, rng: Random, size: int = SIZE) -> Iterator[bytes]:
    """Yield different sentences, as long as new ones are found. Raise the exceptions of `WrittenGrammar.grammar`.

    size: number of rules and lexemes after which a sentence is completed; each is drawn with a size of its own up to
    it. Texts that the lexer or the resolved table would parse differently are discarded, so each sentence belongs to
    the grammar.
    """
    trial, derivation, speller = Recogniser(written), Derivation(written.productions), Speller(written)
    seen: set[bytes] = set()
    idle = 0
    while idle < TRIES:
        most = rng.randint(1, size)
        text = speller.text(max((derivation.draw(rng, most) for _ in range(DRAWS)), key=len), rng)
        idle += 1
        if text is not None and text not in seen and trial.accepts(text):
            seen.add(text)
            idle = 0
            yield text
