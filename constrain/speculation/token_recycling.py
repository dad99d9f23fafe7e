"""Token recycling: drafts from the likeliest successors that the model itself gave to each token (Luo et al. 2024).

A matrix holds, for each token of the vocabulary, the k tokens that had the highest probability when it was last the
end of a text, rejected nodes of drafts included: rows that were computed anyway. The draft is the best-first tree of
these successors; the rank of a successor stands for its probability. No prompt and no earlier text has to contain what
is drafted.

Where rows are not passed on, the matrix learns from the tokens of the texts alone: an adaptive bigram model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import check_count
from .draft_source import NO_DRAFT, DraftTree
from .tree_growth import grow_tree

if TYPE_CHECKING:
    from ..engine.matcher import Matcher

__all__ = ["RecyclingDrafts", "SuccessorMatrix"]

UNKNOWN = -1
PROMPT_TOKENS = 1024
"""Most tokens of a prompt whose pairs are learnt, from its end."""
LEAST_SHARE = 0.03
"""Least estimated probability of a path of the draft."""


class SuccessorMatrix:
    """The likeliest successors of each token, best first. It is shared by the texts of one thread.

    Parameters
    ----------
    size : int
        The number of tokens of the vocabulary.
    width : int
        Successors per token; 8 in the paper.

    Attributes
    ----------
    successors : ndarray of int32, shape (size, width)
        -1 where less is known.
    """

    def __init__(self, size: int, width: int = 8) -> None:
        shape = check_count("size", size), check_count("width", width)
        self.successors: NDArray[np.int32] = np.full(shape, UNKNOWN, np.int32)

    @property
    def shares(self) -> list[float]:
        """The estimated probability of each rank: a half, a quarter, and so on."""
        return [0.5 ** (rank + 1) for rank in range(self.successors.shape[1])]

    def learn_row(self, token: int, row: NDArray[np.floating[Any]]) -> None:
        """Store the likeliest tokens of the model's row (float [V]) after `token`."""
        width = min(self.successors.shape[1], len(row))
        best = np.argpartition(-row, width - 1)[:width]
        self.successors[token, :width] = best[np.argsort(-row[best], kind="stable")]

    def learn_pair(self, token: int, following: int) -> None:
        """Move `following` to the front of the successors of `token`."""
        known = self.successors[token]
        found = np.flatnonzero(known == following)
        place = int(found[0]) if len(found) else len(known) - 1
        known[1 : place + 1] = known[:place].copy()
        known[0] = following

    def start_text(self, prompt: Sequence[int], rng: np.random.Generator | None = None) -> RecyclingDrafts:
        """Return the `DraftSource` of a new text after `prompt`, whose pairs of tokens are learnt where nothing is
        known yet.
        """
        tail = prompt[-PROMPT_TOKENS:]
        for token, following in zip(tail, tail[1:]):
            if self.successors[token, 0] == UNKNOWN:
                self.learn_pair(token, following)
        return RecyclingDrafts(self, prompt[-1] if len(prompt) else UNKNOWN)


class RecyclingDrafts:
    """A `DraftSource` for one text, from a SuccessorMatrix.

    last: the last token of the text. learns_rows: whether rows were passed to `observe_rows`, so that tokens alone need
    not be learnt.
    """

    def __init__(self, matrix: SuccessorMatrix, last: int) -> None:
        self.matrix, self.last, self.learns_rows = matrix, last, False
        self.shares = matrix.shares

    def propose(self, context: Sequence[int], matcher: Matcher | None, limit: int) -> DraftTree:
        """Return the tree of likeliest successors, best first."""
        if not len(context):
            return NO_DRAFT
        return grow_tree(int(context[-1]), self.list_successors, matcher, limit, LEAST_SHARE)

    def list_successors(self, token: int) -> Iterator[tuple[int, int, float]]:
        """Yield the known successors of a token; a successor is its own state."""
        for following, share in zip(self.matrix.successors[token].tolist(), self.shares):
            if following != UNKNOWN:
                yield following, following, share

    def observe(self, tokens: Sequence[int]) -> None:
        """Learn from the tokens, unless rows are learnt."""
        for token in tokens:
            if self.last != UNKNOWN and not self.learns_rows:
                self.matrix.learn_pair(self.last, token)
            self.last = token

    def observe_rows(self, tokens: Sequence[int], rows: NDArray[np.floating[Any]]) -> None:
        """Learn from the model's rows (float [n, V]) after tokens, of the text or of any node of a draft."""
        self.learns_rows = True
        for token, row in zip(tokens, rows):
            self.matrix.learn_row(token, row)
