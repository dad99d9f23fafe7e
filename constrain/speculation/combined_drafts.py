"""Combination of draft sources: several at once, and forced text before any other draft.

    MergedDrafts([a, b])   the union of their trees, a's nodes first
    ForcedFirst(a)         the text that the constraint forces, then a's draft after it

Forced text is nearly always accepted and costs no model call to draft, so it precedes the draft of any other source,
which then guesses only what is free (jump-forward decoding combined with drafts).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .draft_source import NO_DRAFT, DraftSource, DraftTree, observe_batch, observe_rows
from .forced_drafts import ForcedDrafts
from .tree_growth import append_tree, merge_trees

if TYPE_CHECKING:
    from ..engine.matcher import Matcher

__all__ = ["ForcedFirst", "MergedDrafts"]


class MergedDrafts:
    """A `DraftSource` that merges the drafts of several sources.

    Parameters
    ----------
    sources : sequence of DraftSource
        In the order in which their nodes are taken until the draft has its greatest size. A sampled draft is used only
        if no draft precedes it, and then alone.
    """

    def __init__(self, sources: Sequence[DraftSource]) -> None:
        self.sources = list(sources)

    def propose(self, context: Sequence[int], matcher: Matcher | None, limit: int) -> DraftTree:
        """Return the union of the drafts. A source is asked only while there is room for its tokens."""
        trees: list[DraftTree] = []
        for source in self.sources:
            merged = merge_trees(trees, limit)
            if len(merged) == limit or merged.probabilities:
                return merged
            trees = [merged, source.propose(context, matcher, limit - len(merged))]
        return merge_trees(trees, limit)

    def observe(self, tokens: Sequence[int]) -> None:
        """Pass the tokens on to all sources."""
        for source in self.sources:
            source.observe(tokens)

    def observe_rows(self, tokens: Sequence[int], rows: NDArray[np.floating[Any]]) -> None:
        """Pass the model's rows on to all sources."""
        for source in self.sources:
            observe_rows(source, tokens, rows)


class ForcedFirst:
    """A `DraftSource` that proposes forced text, followed by the draft of another source.

    Parameters
    ----------
    source : DraftSource
        It is asked after the forced tokens: its context may be longer than the text.
    """

    def __init__(self, source: DraftSource) -> None:
        self.source, self.forced = source, ForcedDrafts()

    def propose(self, context: Sequence[int], matcher: Matcher | None, limit: int) -> DraftTree:
        """Return the forced tokens and, if there is room and all of them were proposed, the draft after them."""
        forced = list(self.forced.propose(context, matcher, limit).tokens)
        if matcher is not None and forced:
            matcher = matcher.fork()
            for token in forced:
                matcher.advance(token)
        if matcher is not None and matcher.is_finished:
            return DraftTree.chain(forced)
        rest = NO_DRAFT
        if len(forced) < limit:
            rest = self.source.propose([*context, *forced] if forced else context, matcher, limit - len(forced))
        return append_tree(forced, rest) if forced else rest

    def observe(self, tokens: Sequence[int]) -> None:
        """Pass the tokens on."""
        self.forced.observe(tokens)
        self.source.observe(tokens)

    def observe_batch(self, texts: int) -> None:
        """Pass the number of texts in the batch on."""
        observe_batch(self.source, texts)

    def observe_rows(self, tokens: Sequence[int], rows: NDArray[np.floating[Any]]) -> None:
        """Pass the model's rows on."""
        observe_rows(self.source, tokens, rows)
