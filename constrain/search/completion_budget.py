"""Completions of hypotheses: which of them can still be closed within the token budget.

As in `decoding.token_budget`, a hypothesis carries a completion: bytes that end its text and fit in the tokens that
remain. After another token the completion usually still applies, whole or without its beginning; otherwise a shortest
one is computed. Two conditions are added here: all phrases must be met by then, and a checker must accept the tokens.

A hypothesis without such a completion may still have a longer one (the shortest in bytes need not be the shortest in
tokens), so the searches use these hypotheses last rather than never.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import TokenRefused, VocabularyError
from ..decoding.reachable_tokens import Budget
from ..decoding.token_budget import can_complete

if TYPE_CHECKING:
    from ..engine.matcher import Matcher
    from ..sampling.checkers import CheckerPosition
    from ..vocabulary.vocabulary import Vocabulary
    from .phrase_progress import PhraseProgress, PhraseState

__all__ = ["CompletionBudget", "find_matcher"]

LOOSE = 16
"""A budget is loose if it exceeds twice the completion by this many tokens. Nearly every token fits then, so each is
tested when it is used; otherwise all tokens are tested at once, by the states that they lead to."""


class CompletionBudget:
    """Finds completions within the budget.

    Parameters
    ----------
    vocabulary : Vocabulary
    max_tokens : int
        Budget of a text, end token included.
    phrases : PhraseProgress, optional
        Phrases that a complete text must contain.
    """

    def __init__(self, vocabulary: Vocabulary, max_tokens: int, phrases: PhraseProgress | None = None) -> None:
        self.vocabulary, self.phrases = vocabulary, phrases
        self.budget = Budget(vocabulary, max_tokens)

    def find_completion(
        self, position: CheckerPosition, state: PhraseState, known: bytes | None, token: int | None, remaining: int
    ) -> bytes | None:
        """Return a completion that fits in `remaining` tokens, end token included, or None if none is found.

        position, state: after `token`. known: a completion before it. Positions without completions return b"".
        """
        matcher = find_matcher(position)
        if matcher is None:
            return b""
        if known is not None:
            begun = len(self.vocabulary.spelled(token)) if token is not None else 0
            for data in (known[begun:], known):
                if self.completes(position, matcher, state, data, remaining):
                    return data
        for data in self.shortest_texts(matcher, state):
            if self.completes(position, matcher, state, data, remaining):
                return data
        return None

    def shortest_texts(self, matcher: Matcher, state: PhraseState) -> list[bytes]:
        """Return a shortest completion, and with missing phrases one that begins with them."""
        shortest = self.budget.completion(matcher)
        found = [] if shortest is None else [shortest]
        if self.phrases is not None and not self.phrases.is_met(state):
            text = self.phrases.missing_text(state)
            trial = matcher.fork()
            try:
                trial.advance_bytes(text)
            except TokenRefused:
                return found
            rest = self.budget.completion(trial)
            found += [] if rest is None else [text + rest]
        return found

    def completes(
        self, position: CheckerPosition, matcher: Matcher, state: PhraseState, data: bytes, remaining: int
    ) -> bool:
        """Return whether the text may end after `data` and an end token, within `remaining` tokens."""
        if not self.budget.fits(data, remaining):
            return False
        if self.phrases is not None and not self.phrases.is_met(self.phrases.advance(state, data)):
            return False
        return can_complete(matcher, data) and (position is matcher or self.is_accepted(position, data))

    def is_accepted(self, position: CheckerPosition, data: bytes) -> bool:
        """Return whether a position with a checker accepts the tokens of a completion and an end token."""
        trial = position.fork()
        try:
            tokens = self.vocabulary.fewest(data)
        except VocabularyError:
            return False
        for token in tokens:
            if not trial.allows(token):
                return False
            trial.advance(token)
        return trial.allows(self.vocabulary.eos_ids[0])

    def is_loose(self, known: bytes | None, remaining: int) -> bool:
        """Return whether nearly every token can be expected to fit."""
        return known is not None and 2 * len(known) + LOOSE < remaining

    def select_fitting(
        self,
        position: CheckerPosition,
        tokens: NDArray[np.int64],
        states: list[PhraseState] | None,
        known: bytes | None,
        remaining: int,
    ) -> NDArray[np.bool_]:
        """Return for each of `tokens` (int64 [k], allowed) whether a completion after it fits in `remaining` tokens.

        states: the phrase state after each token. Tokens that lead to the same states are tested once. A checker's
        opinion is not asked.
        """
        matcher = find_matcher(position)
        if matcher is None or not len(tokens):
            return np.ones(len(tokens), np.bool_)
        after = matcher.states_after(tokens.tolist()).tolist()
        verdicts: dict[Any, bool] = {}
        fitting = np.zeros(len(tokens), np.bool_)
        for i, token in enumerate(tokens.tolist()):
            state = (0, 0) if states is None else states[i]
            key = after[i], state
            if key not in verdicts:
                trial = matcher.fork()
                trial.advance(token)
                verdicts[key] = self.find_completion(trial, state, known, token, remaining) is not None
            fitting[i] = verdicts[key]
        return fitting


def find_matcher(position: Any) -> Matcher | None:
    """Return the Matcher of a position: itself, that of the first of two joint positions, or None."""
    if hasattr(position, "shortest_completion"):
        matcher: Matcher = position
        return matcher
    return find_matcher(position.first) if hasattr(position, "first") else None
