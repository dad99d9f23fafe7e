"""Random sentences of a grammar: a derivation from its rules, lexemes for its terminals, the machine's word on it."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from .derivations import Derivation
from .recognition import Trial
from .unlexing import Speller
from .written_grammar import WrittenGrammar

__all__ = ["SIZE", "draw_sentences"]

SIZE = 60
"""Rules and lexemes after which a sentence is closed, at most, if nobody says."""
DRAWS = 3
"""Derivations of which the longest is taken: most rules end soon, and short sentences show little."""
TRIES = 60
"""Derivations without a new sentence after which there are taken to be no more."""


def draw_sentences(written: WrittenGrammar, rng: Random, size: int = SIZE) -> Iterator[bytes]:
    """Different sentences, as long as some are found. Errors as of `Written.grammar`.

    size: rules and lexemes after which a sentence is closed; each is drawn with a size of its own up to it. What the
    lexer or the resolved table would read otherwise is thrown away, so each sentence is one of the grammar.
    """
    trial, derivation, speller = Trial(written), Derivation(written.productions), Speller(written)
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
