"""Draft length by measured acceptance: no more tokens than are worth their cost (Leviathan et al. 2023, section 3.4).

If each token of a draft is accepted with probability a, given that those before it were, a draft of k tokens yields

    E(k) = 1 + a + a^2 + ... + a^k

tokens per forward pass of the target, which takes 1 + c k times as long as without a draft: c is the cost of a further
row of the target and of drafting one token. The length with the greatest E(k) / (1 + c k) is proposed, or none if that
is not clearly above 1, since the rate is an estimate. The rate a is measured with exponential forgetting. A source
whose length is 0 is asked again after ever longer pauses, so that what it costs is bounded by a small share of the
passes, and a text that becomes predictable is noticed.

In a batch, rows cost more: if a pass takes as long as P rows besides its rows, the cost for one of n texts grows in
proportion to n / (n + P). Costs are constants and not clocks, so that the same seed gives the same text on every
machine; and since the text of a sampled draft depends on its length, the size of the batch does not count there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .draft_source import NO_DRAFT, ROOT, DraftSource, DraftTree, observe_rows

if TYPE_CHECKING:
    from ..engine.matcher import Matcher

__all__ = ["AdaptiveDrafts", "choose_length", "scale_cost"]

MEMORY = 0.8
"""Weight of what was measured before, for each further draft."""
COUNTED = 8
"""Most accepted tokens of one draft that are counted, so that a few rejections outweigh a long copied passage."""
LONGEST_PAUSE = 64
"""Most forward passes without a draft between two attempts."""
MARGIN = 1.1
"""Least expected number of tokens per cost of a draft that is proposed."""
ATTEMPT = 2
"""Length of the draft of an attempt."""


class AdaptiveDrafts:
    """A `DraftSource` that asks another one for as many tokens as are worth it.

    Parameters
    ----------
    source : DraftSource
        The source.
    cost : float
        Cost of one more token of a draft, as a share of a forward pass of the target for one token.
    pass_rows : float
        The number of rows P that cost as much as a forward pass costs besides its rows; infinity if the cost does not
        depend on the batch.

    Attributes
    ----------
    accepted, rejected : float
        Numbers of accepted tokens and of drafts that ended in a rejection, with exponential forgetting.
    """

    def __init__(self, source: DraftSource, cost: float, pass_rows: float = math.inf) -> None:
        self.source, self.cost, self.pass_rows, self.texts = source, cost, pass_rows, 1
        self.accepted, self.rejected = 2.0, 0.5
        self.pause, self.waiting = 1, 0
        self.before: list[int] = []
        self.base, self.tree = 0, NO_DRAFT

    @property
    def rate(self) -> float:
        """The estimated probability that a drafted token is accepted."""
        return self.accepted / (self.accepted + self.rejected)

    def propose(self, context: Sequence[int], matcher: Matcher | None, limit: int) -> DraftTree:
        """Return a draft of the best length, or none if none is worth it."""
        self.measure(context)
        length = choose_length(self.rate, self.cost * scale_cost(self.texts, self.pass_rows), limit)
        if length == 0:
            if self.waiting > 0:
                self.waiting -= 1
                return NO_DRAFT
            self.pause = min(2 * self.pause, LONGEST_PAUSE)
            self.waiting, length = self.pause, min(ATTEMPT, limit)
        else:
            self.pause, self.waiting = 1, 0
        self.tree = self.source.propose(context, matcher, length)
        self.base, self.before = len(context), [int(token) for token in context[-LONGEST_PAUSE:]]
        return self.tree

    def measure(self, context: Sequence[int]) -> None:
        """Compare the last draft with the text that was written since. A draft whose own context was not written (see
        `ForcedFirst`) says nothing.
        """
        tree, self.tree = self.tree, NO_DRAFT
        if not len(tree) or list(context[self.base - len(self.before) : self.base]) != self.before:
            return
        node, accepted = ROOT, 0
        for token in context[self.base :]:
            child = tree.children.get(node, {}).get(int(token))
            if child is None:
                break
            node, accepted = child, accepted + 1
        self.accepted = MEMORY * self.accepted + min(accepted, COUNTED)
        self.rejected = MEMORY * self.rejected + (node in tree.children)

    def observe_batch(self, texts: int) -> None:
        """Note the number of texts in the batch."""
        self.texts = texts

    def observe(self, tokens: Sequence[int]) -> None:
        """Pass the tokens on."""
        self.source.observe(tokens)

    def observe_rows(self, tokens: Sequence[int], rows: NDArray[np.floating[Any]]) -> None:
        """Pass the model's rows on."""
        observe_rows(self.source, tokens, rows)


def scale_cost(texts: int, pass_rows: float) -> float:
    """Return the cost of a row for one of several texts in a batch over that for a single text.

    Parameters
    ----------
    texts : int
        The number of texts, 1 or more.
    pass_rows : float
        The number of rows that cost as much as a forward pass costs besides its rows.

    Returns
    -------
    float
    """
    return 1.0 if math.isinf(pass_rows) else texts * (1 + pass_rows) / (texts + pass_rows)


def choose_length(rate: float, cost: float, limit: int) -> int:
    """Return the draft length k from 1 to `limit` with the most expected tokens per cost; 0 if they are fewer than
    `MARGIN`.

    Parameters
    ----------
    rate : float
        Probability that a drafted token is accepted, from 0 to 1.
    cost : float
        Cost of a drafted token, as a share of a forward pass for one token.
    limit : int
        Greatest length.

    Returns
    -------
    int
    """
    best, best_value, expected, survival = 0, MARGIN, 1.0, 1.0
    for length in range(1, limit + 1):
        survival *= rate
        expected += survival
        value = expected / (1 + cost * length)
        if value > best_value:
            best, best_value = length, value
        if survival < cost * best_value:  # the next token adds less than its cost: the ratio falls from here on
            break
    return best
