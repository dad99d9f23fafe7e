"""`RequestMatcher`: the position of one request in its constraint, as a function of the tokens that an engine reports.

Engines report the tokens of a text so far, not events: they may report one more token, several (accepted drafts), fewer
(rejected drafts), or all of them again after a preemption. `follow` compares the report with the tokens known, takes
back those that are no longer there, and takes the new ones.

    state of the text            mask
    open                         the tokens that the constraint allows and the budget admits
    ended (end token taken)      end tokens only
    refused, or failed           end tokens only: the request is closed, never unconstrained
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConstrainError, LimitError, TokenRefused, shorten_text
from ..decoding.reachable_tokens import Budget
from ..engine.batches import fill_masks

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["RequestMatcher", "fill_request_masks", "mask_of_tokens"]


class RequestMatcher:
    """The position of a request in its constraint.

    Parameters
    ----------
    constraint : Constraint
        Compiled for the Vocabulary of the engine's model.
    max_tokens : int, optional
        Most tokens of the text, its end token included. Every text is then complete within this number. None: the text
        may be cut off by the engine.

    Raises
    ------
    LimitError
        If the shortest text does not fit in max_tokens.

    Attributes
    ----------
    tokens : list of int
        The tokens taken so far, without what follows an end token.
    error : ConstrainError or None
        Why the request was closed.
    """

    def __init__(self, constraint: Constraint, max_tokens: int | None = None) -> None:
        self.vocabulary = constraint.vocabulary
        self.matcher = constraint.matcher()
        self.tokens: list[int] = []
        self.error: ConstrainError | None = None
        self.ends: NDArray[np.int32] = mask_of_tokens(self.vocabulary.eos_ids, self.vocabulary)
        self.budget = None if max_tokens is None else Budget(self.vocabulary, max_tokens)
        self.closings: list[bytes | None] = []
        """A completion of the text after each prefix of `tokens`, if there is a budget."""
        if self.budget is not None:
            self.closings.append(self.budget.begin(self.matcher))

    @property
    def has_ended(self) -> bool:
        """Whether the last token taken is an end token."""
        return bool(self.tokens) and self.tokens[-1] in self.vocabulary.eos_ids

    @property
    def is_open(self) -> bool:
        """Whether the text may continue with what the constraint allows."""
        return self.error is None and not self.has_ended

    def follow(self, tokens: Sequence[int]) -> bool:
        """Move to the position after `tokens`, all tokens of the text so far. Return whether they are allowed.

        Tokens after an end token are ignored: pipelined engines compute a step more than they use. A refused token sets
        `error`; a later call with other tokens clears it.
        """
        listed = list(tokens)
        known = self.tokens
        if listed[: len(known)] != known:
            keep = next(
                (i for i, (old, new) in enumerate(zip(known, listed)) if old != new), min(len(known), len(listed))
            )
            self.go_back(len(known) - keep)
        self.error = None
        for token in listed[len(known) :]:
            if self.has_ended or not self.take(token):
                break
        return self.error is None

    def go_back(self, count: int) -> None:
        """Take back the last `count` tokens."""
        if count:
            self.matcher.rollback(count)
            del self.tokens[len(self.tokens) - count :]
            if self.closings:
                del self.closings[len(self.tokens) + 1 :]

    def take(self, token: int) -> bool:
        """Take one token. Return False, set `error` and stay where the text was, if it is refused."""
        try:
            self.matcher.advance(int(token))
            if self.budget is not None:
                self.closings.append(self._close(int(token)))
        except ConstrainError as error:
            text = shorten_text(repr(self.vocabulary.decode(self.tokens)[-40:]), 80)
            self.error = ConstrainError(
                f"token {token} after {text} is refused by the constraint: {error.cause}",
                hint="The engine chose it without this mask. Leave out other processors and options that force tokens.",
            )
            return False
        self.tokens.append(int(token))
        return True

    def _close(self, token: int) -> bytes | None:
        """Return a completion of the text after `token`, which the Matcher has taken.

        Raise ConstrainError, with the token taken back, if none fits.
        """
        assert self.budget is not None
        before = self.closings[-1]
        if token in self.vocabulary.eos_ids or before is None:
            return before
        try:
            closing = self.budget.after(self.matcher, token, before, self.budget.max_tokens - len(self.tokens) - 1)
            if closing is None:
                raise TokenRefused(f"The text cannot be completed within {self.budget.max_tokens} tokens after it.")
        except ConstrainError:
            self.matcher.rollback(1)
            raise
        return closing

    def narrow(self, mask: NDArray[np.int32]) -> NDArray[np.int32]:
        """Clear, in place, the bits of a mask of this position that the budget does not admit; return the mask.

        A mask without any token is replaced by that of the end tokens, and `error` is set.
        """
        if self.budget is not None:
            self.budget.narrow(self.matcher, mask, self.closings[-1], self.budget.max_tokens - len(self.tokens))
        if not mask.any():
            self.error = LimitError(
                f"no token is allowed after {shorten_text(repr(self.matcher), 80)}",
                hint="A guard of the constraint gave up its search (Matcher.is_stuck), or the budget is used up.",
            )
            mask[:] = self.ends
        return mask

    def mask(self) -> NDArray[np.int32]:
        """Return the mask of the next token, int32 [words]; never empty. Errors close the request, see `error`."""
        if not self.is_open:
            return np.array(self.ends)
        try:
            return self.narrow(self.matcher.mask(None))
        except ConstrainError as error:
            self.error = error
            return np.array(self.ends)


def fill_request_masks(requests: Sequence[RequestMatcher], out: NDArray[np.int32]) -> None:
    """Write the mask of each request to its row of `out`, int32 [n, words], on all cores where that pays."""
    rows = [row for row, one in enumerate(requests) if one.is_open]
    try:
        fill_masks([requests[row].matcher for row in rows], out, rows=rows if len(rows) < len(requests) else None)
    except ConstrainError:  # one of them: find out which, and close it alone
        for row, one in enumerate(requests):
            out[row] = one.mask()
        return
    filled = frozenset(rows)
    for row, one in enumerate(requests):
        if row in filled:
            one.narrow(out[row])
        else:
            out[row] = one.ends


def mask_of_tokens(tokens: Iterable[int], vocabulary: Vocabulary) -> NDArray[np.int32]:
    """Return the packed mask of these tokens, int32 [words]."""
    bits = np.zeros((vocabulary.size + 31) // 32 * 32, np.uint8)
    bits[list(tokens)] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)
