"""The masks of a step: at the end of every text of a batch and at every node of its draft, in one parallel call.

They depend only on tokens that are known before the forward pass, and are therefore computed while it runs. The Matcher
of a text is forked along its draft; all forks of all texts are filled together (`fill_masks`). If that raises, each
mask is computed by itself, so that an error concerns only its own text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConstrainError
from ..engine.batches import fill_masks
from ..speculation.draft_source import ROOT, DraftTree

if TYPE_CHECKING:
    from ..engine.matcher import Matcher

__all__ = ["MaskBuffer", "NodeMask", "compute_step_masks"]

NodeMask = Union[NDArray[np.int32], ConstrainError, None]
"""The mask at a node; the error that its text ends with; or None where no constraint applies, or a token that leads to
the node is refused."""


class MaskBuffer:
    """Rows of masks that are used again in every step."""

    def __init__(self) -> None:
        self.rows = np.empty((0, 0), np.int32)
        self.first = self.rows.reshape(-1)

    def take(self, count: int, words: int) -> NDArray[np.int32]:
        """Return int32 [count, words], valid until the next call."""
        if not count:
            return np.empty((0, words), np.int32)
        if self.rows.shape[1] != words:
            self.rows = np.empty((count, words), np.int32)
        elif self.rows.shape[0] < count:
            self.rows = np.empty((max(count, 2 * self.rows.shape[0]), words), np.int32)
        return self.rows[:count]

    def take_one(self, words: int) -> NDArray[np.int32]:
        """Return int32 [words], valid until the next call: the same array each time, so that `Matcher.mask` does not
        check it again.
        """
        if len(self.first) != words or self.first.base is not self.rows:
            self.first = self.take(1, words)[0]
        return self.first


def compute_step_masks(texts: Sequence[tuple[Matcher | None, DraftTree]], buffer: MaskBuffer) -> list[list[NodeMask]]:
    """Return the masks of each text: at its end, then at each node of its draft.

    texts: Matchers, which are left as they are, and drafts. The masks are valid until the next call with the same
    buffer.
    """
    if len(texts) == 1 and not len(texts[0][1]):
        return [[compute_only_mask(texts[0][0], buffer)]]
    forks = [fork_along(matcher, draft) for matcher, draft in texts]
    listed = [one for positions in forks for one in positions if one is not None]
    words = max((-(-one.constraint.vocabulary.size // 32) for one in listed), default=0)
    filled = iter(fill_rows(listed, buffer.take(len(listed), words)))
    return [[None if one is None else next(filled) for one in positions] for positions in forks]


def compute_only_mask(matcher: Matcher | None, buffer: MaskBuffer) -> NodeMask:
    """Return the mask of a step of a single text without a draft."""
    if matcher is None:
        return None
    out = buffer.take_one(-(-matcher.constraint.vocabulary.size // 32))
    try:
        return matcher.mask(out)
    except ConstrainError as error:
        return error


def fork_along(matcher: Matcher | None, draft: DraftTree) -> list[Matcher | None]:
    """Return the Matcher and a fork at each node of the draft, None where a token is refused or exceeds a limit."""
    forks: list[Matcher | None] = []
    for token, parent in zip(draft.tokens, draft.parents):
        before = matcher if parent == ROOT else forks[parent]
        after = None if before is None else before.fork()
        try:
            if after is not None:
                after.advance(token)
        except ConstrainError:  # if sampled, the token raises it again, and ends this text only
            after = None
        forks.append(after)
    return [matcher, *forks]


def fill_rows(matchers: Sequence[Matcher], out: NDArray[np.int32]) -> Sequence[NodeMask]:
    """Return the mask of each Matcher, or the error that computing it raised."""
    if not matchers:
        return []
    if all(hasattr(matcher, "_address") for matcher in matchers):
        try:
            fill_masks(matchers, out)
            return list(out)
        except ConstrainError:
            pass
    return [compute_mask(matcher, row) for matcher, row in zip(matchers, out)]


def compute_mask(matcher: Any, out: NDArray[np.int32]) -> NodeMask:
    """Compute one mask into `out`, and return it, or the error."""
    try:
        out[:] = matcher.mask(None)
    except ConstrainError as error:
        return error
    return out
