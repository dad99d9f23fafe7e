"""Guarded: a Constraint that makes the masks, and behind it a checker that is late or slow. For any sampler.

The two-stage rule: tokens are chosen under the mask alone, and the checker is asked about the one that was chosen, and
before a text may end. A text that it refuses has nowhere to go (its mask is empty) and weighs nothing; so what is drawn
from is

    p(x) [x in L] [the checker accepts x]

because a mask may let more through than the law has, never less, and weights are made of the masks that were used.
What is found to be dead is remembered, and masked in all later draws: prefixes after which nothing is left, up to the
first that has another way on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConstrainError, TokenRefused
from .checkers import Checker, CheckerPosition, Judged

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..engine.matcher import Matcher
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["PostFilter", "as_checker"]

REMEMBERED = 100_000
"""Prefixes with a dead token behind them that are kept; the oldest are forgotten, and found out again."""

Prefix = tuple[int, ...]


def as_checker(check: Any, vocabulary: Vocabulary) -> Checker:
    """A Checker as it is; a function of the bytes of complete texts as one. ConstrainError for anything else."""
    if hasattr(check, "matcher"):
        if check.vocabulary is not vocabulary:
            raise ConstrainError("the checker is of another Vocabulary than the constraint")
        found: Checker = check
        return found
    if not callable(check):
        raise ConstrainError(
            f"a {check.__class__.__name__} is no checker",
            hint="A checker is a function of a complete text, or one of sampling.checkers.",
        )
    judge: Callable[[bytes], bool] = check
    return Judged(vocabulary, judge)


class PostFilter:
    """Stands where a Constraint stands. Its `matcher()` has what samplers ask of one: mask, allows, advance, fork ...

    dead: tokens after a prefix that lead nowhere, by what was found so far. None: nothing is remembered, so that a
    mask is the same each time (a SuccessTrie keeps laws, and learns what is dead by itself).
    """

    source = None  # a SuccessTrie's key has to name the checker too

    def __init__(self, first: Constraint, second: Checker, *, dead: dict[Prefix, set[int]] | None = None) -> None:
        self.first, self.second, self.dead = first, second, dead
        self.vocabulary, self.grammar = first.vocabulary, first.grammar

    def matcher(self) -> _FilteredPosition:
        """A new position, before any text."""
        return _FilteredPosition(self, self.first.matcher(), self.second.matcher(), lost=False)

    def bury(self, prefix: Prefix) -> None:
        """Nothing can come after this prefix."""
        if self.dead is not None and prefix and prefix[-1] not in self.vocabulary.eos_ids:
            if len(self.dead) >= REMEMBERED and prefix[:-1] not in self.dead:
                del self.dead[next(iter(self.dead))]
            self.dead.setdefault(prefix[:-1], set()).add(prefix[-1])


class _FilteredPosition:
    """A position. lost: the checker has refused the last token."""

    __slots__ = ("guarded", "lost", "matcher", "second")

    def __init__(self, guarded: PostFilter, matcher: Matcher, second: CheckerPosition, lost: bool) -> None:
        self.guarded, self.matcher, self.second, self.lost = guarded, matcher, second, lost

    @property
    def vocabulary(self) -> Vocabulary:
        """Of the constraint."""
        return self.guarded.vocabulary

    @property
    def tokens(self) -> list[int]:
        """Taken so far."""
        return self.matcher.tokens

    @property
    def state(self) -> tuple[int, int]:
        """Of the constraint alone: what twists know places by."""
        return self.matcher.state

    @property
    def is_complete(self) -> bool:
        """Whether the text may end here."""
        return not self.lost and self.matcher.is_complete and self.second.allows(self.vocabulary.eos_ids[0])

    def _dead(self) -> set[int]:
        dead = self.guarded.dead
        return dead.get(tuple(self.matcher.tokens), set()) if dead else set()

    def mask(self, out: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """As of a Matcher: less what is known to be dead, and ends only where the checker accepts the text."""
        mask = self.matcher.mask(out)
        if self.lost:
            mask[:] = 0
        else:
            less = self._dead()
            if self.matcher.is_complete and not self.is_complete:
                less = less.union(self.vocabulary.eos_ids)
            for token in less:
                mask[token // 32] &= ~_bit(token)
        if not mask.any():
            self.guarded.bury(tuple(self.matcher.tokens))
        return mask

    def allows(self, token: int) -> bool:
        """Whether the mask has the token."""
        if self.lost or not self.matcher.allows(token) or token in self._dead():
            return False
        return token not in self.vocabulary.eos_ids or self.second.allows(token)

    def advance(self, token: int) -> None:
        """Takes a token, and asks the checker. TokenRefused if the mask does not have it."""
        if not self.allows(token):
            raise TokenRefused(f"Token {token} is refused here.")
        self.matcher.advance(token)
        if self.second.allows(token):
            self.second.advance(token)
        else:
            self.lost = True
            self.guarded.bury(tuple(self.matcher.tokens))

    def fork(self) -> _FilteredPosition:
        """Another one at the same place."""
        return _FilteredPosition(self.guarded, self.matcher.fork(), self.second.fork(), self.lost)

    def shortest_completion(self, limit: int | None = None) -> bytes | None:
        """Of the constraint alone: no text that both take is shorter."""
        return self.matcher.shortest_completion(limit)


def _bit(token: int) -> np.int32:
    """The bit of a token in its word of a Mask."""
    return np.array([1 << token % 32], np.uint32).view(np.int32)[0]  # type: ignore[no-any-return]
