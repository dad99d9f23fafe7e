"""The token budget: guarantees that a text can always be closed within max_tokens.

A `Closing` holds a completion: bytes that end the text from the current position, and the tokens that spell them.
Completions are verified: each comes from `Matcher.shortest_completion` or was tried on a fork of the Matcher. A token
may be taken if some completion after it fits in the remaining tokens. Usually the current completion, or its remainder,
still applies, and testing that takes a few microseconds; only otherwise is a shortest completion computed again.

    remaining tokens >= tokens of the completion + 1 for the end token

This invariant is established before the first token (or nothing is generated) and every token preserves it, so the text
can be closed at any time by writing the completion out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.errors import TokenRefused, VocabularyError
from ..engine.completion_check import can_end_after
from ..engine.length_limits import make_limit_error
from ..engine.matcher import Matcher

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["Closing", "can_complete"]


class Closing:
    """A completion of the text in a Matcher, updated as tokens are taken.

    data: the bytes of the completion; None if the vocabulary cannot spell the shortest one (a tokenizer without a token
    for every byte). Then nothing is guaranteed until a later position has a completion that can be spelled. spelled:
    its tokens, once they have been computed. state: a state of the Matcher in which it applies. lost: whether the last
    rejected token has no completion of any length (see `Matcher.is_stuck`).
    """

    def __init__(self, vocabulary: Vocabulary, matcher: Matcher, max_tokens: int) -> None:
        """Raise LimitError if the shortest text does not fit in max_tokens."""
        self.vocabulary = vocabulary
        self.byte_by_byte = not vocabulary.missing_bytes
        self.data: bytes | None = None
        self.spelled: list[int] | None = None
        self.state: tuple[int, int] | None = None
        self.lost = False
        if not self.renew(matcher, max_tokens):
            least = len(self.tokens()) + 1
            raise make_limit_error(max_tokens, least, self.data or b"")

    def tokens(self) -> list[int]:
        """Return the shortest tokenisation of the completion. Raise VocabularyError if there is none."""
        if self.spelled is None:
            self.spelled = self.vocabulary.fewest(self.data or b"")
        return self.spelled

    def fits(self, remaining: int) -> bool:
        """Return whether the completion and an end token fit in `remaining` tokens.

        If every byte has a token, the number of bytes bounds the number of tokens; tokens are computed only if that
        bound is too large.
        """
        if self.data is None:
            return True
        if self.byte_by_byte and len(self.data) < remaining:
            return True
        return self.can_be_spelled() and len(self.tokens()) < remaining

    def can_be_spelled(self) -> bool:
        """Return whether the vocabulary can spell the completion."""
        try:
            self.tokens()
        except VocabularyError:
            return False
        return True

    def renew(self, matcher: Matcher, remaining: int) -> bool:
        """Recompute the shortest completion and return whether it fits. `data` is None if the vocabulary cannot spell
        it.
        """
        self.data, self.spelled, self.state = matcher.shortest_completion(None), None, read_state(matcher)
        if not self.byte_by_byte and not self.can_be_spelled():
            self.data = None
        return self.fits(remaining)

    def follow(self, matcher: Matcher, token: int, remaining: int) -> bool:
        """Update the completion after `matcher` has taken `token`. Return whether one fits in `remaining` tokens.

        If none fits, the completion is still that of the text before `token`. Return True if there was no completion
        before.
        """
        known = self.data
        if known is None:  # nothing was guaranteed
            self.data = self.data if self.renew(matcher, remaining) else None
            return True
        before = known, self.spelled, self.state
        if self.still_completes(matcher, known, token) and self.fits(remaining):
            return True
        for data, spelled in ((known, before[1]), (known[len(self.vocabulary.spelled(token)) :], None)):
            self.data, self.spelled = data, spelled
            if can_complete(matcher, data) and self.fits(remaining):
                self.state = read_state(matcher)
                return True
        if self.renew(matcher, remaining) and self.data is not None:
            return True
        self.lost = self.data is None
        self.data, self.spelled, self.state = before
        return False

    def still_completes(self, matcher: Matcher, known: bytes, token: int) -> bool:
        """Return whether the completion applies after `token` for a reason that needs no trial, and update it.

        Either it begins with the token, or the token leads back to the state that it was found in. Where neither holds,
        it may still apply unchanged, if the token could have been omitted, or without as many bytes as the token has,
        if the token stood where any text may: `follow` tries both.
        """
        state, spelling = read_state(matcher), self.vocabulary.spelled(token)
        if spelling and known.startswith(spelling):
            first = self.spelled is not None and self.spelled[:1] == [token]
            self.data, self.spelled = known[len(spelling) :], self.spelled[1:] if self.spelled and first else None
        elif state is None or state != self.state:
            return False
        self.state = state
        return True


def can_complete(matcher: Matcher, data: bytes) -> bool:
    """Return whether the text of `matcher` may end after `data`. The matcher is not changed."""
    if isinstance(matcher, Matcher):
        return can_end_after(matcher, data)
    if not data:
        return matcher.is_complete
    trial = matcher.fork()
    try:
        trial.advance_bytes(data)
    except TokenRefused:
        return False
    return trial.is_complete


def read_state(matcher: Matcher) -> tuple[int, int] | None:
    """Return the state of a Matcher; None if it does not tell."""
    return getattr(matcher, "state", None)
