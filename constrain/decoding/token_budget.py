"""The token budget: what is written can always be closed within it.

A `Closing` carries a completion along: bytes that end the text from here, and the tokens that spell them. It is no
guess: it came from `Matcher.shortest_completion`, or was tried on a fork of the Matcher. A token may be taken if there
is a completion after it that fits in what remains; most of the time the one at hand, or the rest of it, still does, and
trying that costs a few microseconds. Only when neither holds is a shortest completion asked for again.

    remaining tokens >= tokens of the completion + 1 for the end token

holds before the first token or nothing is generated at all, and is kept by every token, so the text can be closed at
any time by writing the completion out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.errors import LimitError, TokenRefused, VocabularyError

if TYPE_CHECKING:
    from ..engine.matcher import Matcher
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["Closing", "can_complete"]


class Closing:
    """A completion of the text in a Matcher, kept true as tokens are taken.

    data: its bytes; None where none is known, because no tokens of this vocabulary spell the shortest one (a tokenizer
    without a token for every byte). Nothing is promised then, until a later text has one that can be spelled.
    spelled: the tokens of it, once they were asked for. lost: whether the last token that was not followed has no
    completion at all, however long (see `Matcher.is_stuck`).
    """

    def __init__(self, vocabulary: Vocabulary, matcher: Matcher, max_tokens: int) -> None:
        """Raises LimitError if the shortest text does not fit in max_tokens."""
        self.vocabulary = vocabulary
        self.byte_by_byte = not vocabulary.missing_bytes
        self.data: bytes | None = None
        self.spelled: list[int] | None = None
        self.lost = False
        if not self.renew(matcher, max_tokens):
            least = len(self.tokens()) + 1
            raise LimitError(
                f"max_tokens is {max_tokens}; the shortest text found takes {least} tokens, its end token included",
                hint=f"Give max_tokens={least} or more. That text begins with {show_start(self.data or b'')}.",
            )

    def tokens(self) -> list[int]:
        """The least number of tokens that spell the completion. Raises VocabularyError if there are none."""
        if self.spelled is None:
            self.spelled = self.vocabulary.fewest(self.data or b"")
        return self.spelled

    def fits(self, remaining: int) -> bool:
        """Whether the completion and an end token take no more than `remaining` tokens.

        There are at most as many tokens as bytes, if every byte has one; only where that is too many are they counted.
        """
        if self.data is None:
            return True
        if self.byte_by_byte and len(self.data) < remaining:
            return True
        return self.can_be_spelled() and len(self.tokens()) < remaining

    def can_be_spelled(self) -> bool:
        """Whether any tokens spell the completion at hand."""
        try:
            self.tokens()
        except VocabularyError:
            return False
        return True

    def renew(self, matcher: Matcher, remaining: int) -> bool:
        """Take the shortest completion of all for the one at hand; whether it fits. If none can be spelled: None."""
        self.data, self.spelled = matcher.shortest_completion(None), None
        if not self.byte_by_byte and not self.can_be_spelled():
            self.data = None
        return self.fits(remaining)

    def follow(self, matcher: Matcher, token: int, remaining: int) -> bool:
        """After `matcher` has taken `token`: is there a completion that fits in `remaining` tokens?

        If so it is at hand from now on; if not, what is at hand still belongs to the text before `token`.
        """
        before = self.data, self.spelled
        if self.data is not None:
            for data, spelled in self.guesses(self.data, token):
                self.data, self.spelled = data, spelled
                if can_complete(matcher, data) and self.fits(remaining):
                    return True
        fitting = self.renew(matcher, remaining)
        if before[0] is None:  # nothing was promised
            self.data = self.data if fitting else None
            return True
        if fitting and self.data is not None:
            return True
        self.lost = self.data is None
        self.data, self.spelled = before
        return False

    def guesses(self, known: bytes, token: int) -> list[tuple[bytes, list[int] | None]]:
        """Completions that may still hold after `token`: the one at hand without as many bytes, and all of it again.

        The first holds where the token was the start of it, or filled a place that anything may fill; the second where
        the token could as well be left out.
        """
        rest = self.spelled[1:] if self.spelled and self.spelled[0] == token else None
        return [(known[len(self.vocabulary.spelled(token)) :], rest), (known, self.spelled)]


def can_complete(matcher: Matcher, data: bytes) -> bool:
    """Whether the text of `matcher`, which stays as it is, may end after `data`."""
    if not data:
        return matcher.is_complete
    trial = matcher.fork()
    try:
        trial.advance_bytes(data)
    except TokenRefused:
        return False
    return trial.is_complete


def show_start(data: bytes) -> str:
    """The start of a text for a message."""
    text = data.decode("utf-8", "replace")
    return repr(text if len(text) <= 60 else text[:59] + "…")
