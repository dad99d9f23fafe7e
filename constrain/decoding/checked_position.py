"""The position of a text in a checker: which tokens pass, and how the text can still be closed in time.

A checker has no shortest completion of its own. The completions that are known are those of the constraint
(`token_budget`), and the checker may reject them: the shortest query of a grammar of SQL names no table that exists.
While many tokens remain that does not matter. When few remain, the text is *tight*, completions are tried on the
checker after each token:

    a token is rejected if a completion was known before it that the checker accepts, and none is known after it

So a text that once had such a completion ends in time. One that has none when its tokens are used up is unfinished,
and is drawn again by whoever asked for it. So is one after which no token passes (a *dead end*: a checker may find out
late); its prefix is avoided then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import VocabularyError
from ..checking.checked_sampling import TokenCheck, pick_checked
from ..sampling.core.masked_sampling import Pick, Proposal
from ..sampling.core.token_masses import allowed_tokens
from .token_budget import Closing, can_complete

if TYPE_CHECKING:
    from ..engine.matcher import Matcher
    from ..sampling.checkers import CheckerPosition
    from ..vocabulary.vocabulary import Vocabulary
    from .model_runner import LogprobRows

__all__ = ["CheckedPosition", "accepts_completion"]

RESERVE = 32
"""A text is tight if fewer tokens than these, or than half of max_tokens, remain beside a completion."""


class CheckedPosition:
    """The position of one text.

    Attributes
    ----------
    position : CheckerPosition
        The position in the checker.
    completion : bytes or None
        A completion that the constraint and the checker accept and that fits in the remaining tokens; None if none is
        known.
    checks : int
        How many tokens were checked.
    """

    def __init__(self, check: TokenCheck, vocabulary: Vocabulary, max_tokens: int) -> None:
        self.check, self.vocabulary, self.ends = check, vocabulary, vocabulary.eos_ids
        self.position: CheckerPosition = check.checker.matcher()
        self.reserve = min(RESERVE, max_tokens // 2)
        self.completion: bytes | None = None
        self.checks = 0
        self.every: NDArray[np.int64] | None = None

    def begin(self, matcher: Matcher, closing: Closing, remaining: int) -> None:
        """Look for a completion of the empty text, if it is tight."""
        if self.is_tight(closing, remaining):
            self.completion = self.find_completion(self.position, matcher, closing, remaining)

    def draw(
        self, row: LogprobRows, mask: NDArray[np.int32], prefix: Sequence[int], rng: np.random.Generator,
        proposal: Proposal, *, last: int = 0,
    ) -> Pick | None:  # fmt: skip
        """Draw a token that passes; None if none does. prefix: the tokens of the text. last: 1 if only its end may
        follow.
        """
        first, before = self.check.masks == "first", tuple(prefix)
        tokens = allowed_tokens(mask) if first else self.list_proposed(last)

        def passes(token: int) -> bool:
            if (*before, token) in self.check.dead:
                return False
            self.checks += 1
            return self.position.allows(token) and (first or bool(mask[token >> 5] >> (token & 31) & 1))

        return pick_checked(row, tokens, passes, rng, proposal, self.ends)

    def list_proposed(self, last: int) -> NDArray[np.int64]:
        """Return the tokens that are proposed before the mask is applied (int64 [k], ascending)."""
        if last:
            return np.array(sorted(self.ends), np.int64)
        if self.every is None:
            texts = [token for token, data in enumerate(self.vocabulary.tokens) if data]
            self.every = np.array(sorted({*texts, *self.ends, *self.vocabulary.names}), np.int64)
        return self.every

    def follow(self, matcher: Matcher, closing: Closing, token: int, remaining: int) -> bool:
        """Append a token that passed, and which the Matcher and the Closing have taken. Return False, and change
        nothing, if the text could not be closed any more.
        """
        after, completion = self.position.fork(), None
        after.advance(token)
        if self.is_tight(closing, remaining):
            completion = self.find_completion(after, matcher, closing, remaining, token)
            if completion is None and self.completion is not None:
                return False
        self.position, self.completion = after, completion
        return True

    def find_closing(self, matcher: Matcher, closing: Closing, remaining: int) -> list[int] | None:
        """Return the tokens of a completion of the text; None if none is known."""
        data = self.completion
        if data is None:
            data = self.find_completion(self.position, matcher, closing, remaining)
        return None if data is None else self.vocabulary.fewest(data)

    def is_tight(self, closing: Closing, remaining: int) -> bool:
        """Return whether few tokens remain beside the completion of the constraint."""
        used = 0 if closing.data is None else len(closing.tokens())
        return remaining - used <= self.reserve

    def find_completion(
        self, position: CheckerPosition, matcher: Matcher, closing: Closing, remaining: int, token: int | None = None
    ) -> bytes | None:
        """Return a completion at a position that fits in `remaining` tokens, end token included; None if none is found.

        matcher, closing: at the position, after `token`.
        """
        tried = set[bytes]()
        for data in self.propose_completions(matcher, closing, token):
            if data is None or data in tried:
                continue
            tried.add(data)
            if self.fits(data, remaining) and can_complete(matcher, data):
                if accepts_completion(self.vocabulary, position, data):
                    return data
        return None

    def propose_completions(self, matcher: Matcher, closing: Closing, token: int | None) -> Iterator[bytes | None]:
        """Yield what may complete the text: the known completion without the token and with it, and shortest ones."""
        known = self.completion
        if known is not None and token is not None:
            spelling = self.vocabulary.spelled(token)
            if known.startswith(spelling):
                yield known[len(spelling) :]
            yield known
        yield closing.data
        yield matcher.shortest_completion(None)

    def fits(self, data: bytes, remaining: int) -> bool:
        """Return whether a completion and an end token fit in `remaining` tokens."""
        try:
            return len(self.vocabulary.fewest(data)) < remaining
        except VocabularyError:
            return False


def accepts_completion(vocabulary: Vocabulary, position: Any, data: bytes) -> bool:
    """Return whether a position of a checker accepts the tokens of a completion and an end token. It is not changed."""
    trial = position.fork()
    try:
        tokens = vocabulary.fewest(data)
    except VocabularyError:
        return False
    for token in tokens:
        if not trial.allows(token):
            return False
        trial.advance(token)
    return bool(trial.allows(vocabulary.eos_ids[0]))
