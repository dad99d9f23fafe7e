"""Post-filtering: combine a Constraint, which computes masks, with a checker that is slow or detects errors late.

Tokens are chosen under the mask alone. The checker is called only for the chosen token, and before a text may end.
After a rejected token the mask is empty, and the text has weight 0. The target of every sampler is therefore

    p(x) [x in L] [the checker accepts x]

Weights stay correct because masks only overapproximate this set, and weights are computed from the masks that were
used. Dead prefixes that are detected are cached and masked in later draws, including ancestors all of whose
continuations are dead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConstrainError, TokenRefused
from .checkers import Checker, CheckerPosition, ValidatorChecker

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..engine.matcher import Matcher
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["PostFilter", "as_checker"]

REMEMBERED = 100_000
"""Maximum number of prefixes whose dead next tokens are cached; the oldest are evicted and may be detected again."""

Prefix = tuple[int, ...]


def as_checker(check: Any, vocabulary: Vocabulary) -> Checker:
    """Return a Checker unchanged, or wrap a function of the bytes of complete texts. Raise ConstrainError for anything
    else.
    """
    if hasattr(check, "matcher"):
        if check.vocabulary is not vocabulary:
            raise ConstrainError("the checker and the constraint have different vocabularies")
        checker: Checker = check
        return checker
    if not callable(check):
        raise ConstrainError(
            f"a {check.__class__.__name__} is not a checker",
            hint="A checker is a function of a complete text, or one of sampling.checkers.",
        )
    validator: Callable[[bytes], bool] = check
    return ValidatorChecker(vocabulary, validator)


class PostFilter:
    """A Constraint with a checker applied after its mask. Samplers use it in place of a Constraint.

    dead: the dead tokens found so far, by prefix. If None, they are not cached, so that the mask at a prefix never
    changes (a SuccessTrie caches the distributions, and learns dead prefixes by itself).
    """

    source = None  # a SuccessTrie's key has to name the checker too

    def __init__(self, constraint: Constraint, checker: Checker, *, dead: dict[Prefix, set[int]] | None = None) -> None:
        self.first, self.second, self.dead = constraint, checker, dead
        self.vocabulary, self.grammar = constraint.vocabulary, constraint.grammar

    def matcher(self) -> _FilteredPosition:
        """Return a position at the empty text."""
        return _FilteredPosition(self, self.first.matcher(), self.second.matcher(), rejected=False)

    def mark_dead(self, prefix: Prefix) -> None:
        """Record that a prefix is dead: no accepted text continues it."""
        if self.dead is not None and prefix and prefix[-1] not in self.vocabulary.eos_ids:
            if len(self.dead) >= REMEMBERED and prefix[:-1] not in self.dead:
                del self.dead[next(iter(self.dead))]
            self.dead.setdefault(prefix[:-1], set()).add(prefix[-1])


class _FilteredPosition:
    """A position of a PostFilter. rejected: whether the checker rejected the last token."""

    __slots__ = ("matcher", "post_filter", "rejected", "second")

    def __init__(self, post_filter: PostFilter, matcher: Matcher, checker: CheckerPosition, rejected: bool) -> None:
        self.post_filter, self.matcher, self.second, self.rejected = post_filter, matcher, checker, rejected

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the constraint."""
        return self.post_filter.vocabulary

    @property
    def tokens(self) -> list[int]:
        """The tokens taken so far."""
        return self.matcher.tokens

    @property
    def state(self) -> tuple[int, int]:
        """The state of the constraint, without that of the checker; twists use it as a key."""
        return self.matcher.state

    @property
    def is_complete(self) -> bool:
        """Whether the text may end here."""
        return not self.rejected and self.matcher.is_complete and self.second.allows(self.vocabulary.eos_ids[0])

    def _dead(self) -> set[int]:
        dead = self.post_filter.dead
        return dead.get(tuple(self.matcher.tokens), set()) if dead else set()

    def mask(self, out: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """Return the mask of the Matcher without dead tokens, and without end tokens unless the checker accepts the
        text.
        """
        mask = self.matcher.mask(out)
        if self.rejected:
            mask[:] = 0
        else:
            excluded = self._dead()
            if self.matcher.is_complete and not self.is_complete:
                excluded = excluded.union(self.vocabulary.eos_ids)
            for token in excluded:
                mask[token // 32] &= ~_bit(token)
        if not mask.any():
            self.post_filter.mark_dead(tuple(self.matcher.tokens))
        return mask

    def allows(self, token: int) -> bool:
        """Return whether the mask contains the token."""
        if self.rejected or not self.matcher.allows(token) or token in self._dead():
            return False
        return token not in self.vocabulary.eos_ids or self.second.allows(token)

    def advance(self, token: int) -> None:
        """Append a token and call the checker for it. Raise TokenRefused if the mask does not contain the token."""
        if not self.allows(token):
            raise TokenRefused(f"Token {token} is refused here.")
        self.matcher.advance(token)
        if self.second.allows(token):
            self.second.advance(token)
        else:
            self.rejected = True
            self.post_filter.mark_dead(tuple(self.matcher.tokens))

    def fork(self) -> _FilteredPosition:
        """Return an independent copy of this position."""
        return _FilteredPosition(self.post_filter, self.matcher.fork(), self.second.fork(), self.rejected)

    def shortest_completion(self, limit: int | None = None) -> bytes | None:
        """Return a shortest completion of the constraint alone, a lower bound on the length of those that the checker
        accepts.
        """
        return self.matcher.shortest_completion(limit)


def _bit(token: int) -> np.int32:
    """Return the bit of a token in its word of a Mask."""
    return np.array([1 << token % 32], np.uint32).view(np.int32)[0]  # type: ignore[no-any-return]
