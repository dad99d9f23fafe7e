"""Completions of hypotheses: which of them can still be closed within the token budget.

As in `decoding.token_budget`, a hypothesis carries a completion: bytes that end its text and fit in the tokens that
remain. After another token the completion usually still applies, whole or without its beginning; otherwise a shortest
one is computed. Two conditions are added here: all phrases must be met by then, and a checker must accept the tokens.

A hypothesis without such a completion may still have a longer one (the shortest in bytes need not be the shortest in
tokens), so the searches use these hypotheses last rather than never.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base.errors import TokenRefused
from ..decoding.checked_position import accepts_completion
from ..decoding.reachable_tokens import Budget
from ..decoding.token_budget import can_complete

if TYPE_CHECKING:
    from ..engine.matcher import Matcher
    from ..sampling.checkers import CheckerPosition
    from ..vocabulary.vocabulary import Vocabulary
    from .phrase_progress import PhraseProgress, PhraseState

__all__ = ["CompletionBudget", "find_matcher"]

KEPT = 4096
"""Maximum number of cached texts."""
OFFSETS = 200
"""Offsets of a completion at which a phrase may be inserted."""


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
        self.texts: dict[tuple[tuple[int, int], PhraseState], list[bytes]] = {}

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
        """Return a shortest completion; while phrases are missing also completions with them."""
        shortest = self.budget.completion(matcher)
        if shortest is None:
            return []
        if self.phrases is None or self.phrases.is_met(state):
            return [shortest]
        key = matcher.state, state
        if key not in self.texts:
            if len(self.texts) >= KEPT:
                self.texts.clear()
            found = [self.continue_phrase(matcher, state, self.phrases)]
            found.append(self.insert_phrases(matcher, shortest, self.phrases.missing_phrases(state), 0))
            self.texts[key] = [text for text in found if text is not None]
        return [shortest, *self.texts[key]]

    def continue_phrase(self, matcher: Matcher, state: PhraseState, phrases: PhraseProgress) -> bytes | None:
        """Return a completion that begins with the rest of a phrase that was begun and has all missing phrases; None if
        there is none.
        """
        text = phrases.rest_of_phrase(state)
        data = self.complete_after(matcher, text) if text else None
        if data is None:
            return None
        missing = phrases.missing_phrases(phrases.advance(state, text))
        return self.insert_phrases(matcher, text + data, missing, len(text))

    def insert_phrases(self, matcher: Matcher, data: bytes, phrases: list[bytes], start: int) -> bytes | None:
        """Return a completion with phrases that are inserted into `data` from an offset on, one after the other, each
        as early as the constraint allows; None if one cannot be inserted.
        """
        for phrase in phrases:
            for offset in range(start, min(len(data), start + OFFSETS) + 1):
                text = data[:offset] + phrase
                rest = self.complete_after(matcher, text)
                if rest is not None:
                    data, start = text + rest, len(text)
                    break
            else:
                return None
        return data

    def complete_after(self, matcher: Matcher, text: bytes) -> bytes | None:
        """Return a shortest completion after more bytes; None if they are refused."""
        trial = matcher.fork()
        try:
            trial.advance_bytes(text)
        except TokenRefused:
            return None
        return self.budget.completion(trial)

    def completes(
        self, position: CheckerPosition, matcher: Matcher, state: PhraseState, data: bytes, remaining: int
    ) -> bool:
        """Return whether the text may end after `data` and an end token, within `remaining` tokens."""
        if not self.budget.fits(data, remaining):
            return False
        if self.phrases is not None and not self.phrases.is_met(self.phrases.advance(state, data)):
            return False
        if not can_complete(matcher, data):
            return False
        return position is matcher or accepts_completion(self.vocabulary, position, data)

    def closing_token(self, known: bytes | None) -> int | None:
        """Return the first token of a completion; None if there is none, or the text may end."""
        return self.vocabulary.fewest(known)[0] if known else None


def find_matcher(position: Any) -> Matcher | None:
    """Return the Matcher of a position: itself, that of the first of two joint positions, or None."""
    if hasattr(position, "shortest_completion"):
        matcher: Matcher = position
        return matcher
    return find_matcher(position.first) if hasattr(position, "first") else None
