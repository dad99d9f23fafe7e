"""Prompt look-up: the draft is what followed the last occurrence of the text's last tokens (Saxena 2023).

The longest suffix of the context that occurs earlier in it is found by comparing ever earlier tokens of the
occurrences that are left, in time proportional to the context. Texts that copy parts of their prompt (edits, extracted
fields, summaries) are drafted almost without error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import ArgumentError
from .draft_filter import filter_tree
from .draft_source import NO_DRAFT, DraftTree

if TYPE_CHECKING:
    from ..engine.matcher import Matcher

__all__ = ["PromptLookup"]


class PromptLookup:
    """A `DraftSource` that continues the longest suffix of the context that occurs earlier in the context.

    It has no state: one object serves any number of texts.

    Parameters
    ----------
    least : int
        Least number of tokens that must match, 1 or more.
    most : int
        Most tokens that are compared; among longer matches, the latest is taken.

    Raises
    ------
    ArgumentError
        If not 1 <= least <= most.
    """

    def __init__(self, least: int = 2, most: int = 16) -> None:
        if not 1 <= least <= most:
            raise ArgumentError(f"least is {least} and most is {most}: give 1 <= least <= most")
        self.least, self.most = least, most

    def propose(self, context: Sequence[int], matcher: Matcher | None, limit: int) -> DraftTree:
        """Return the continuation of the longest match as a chain, up to the first token that is refused."""
        start = self.find_continuation(context)
        if start is None:
            return NO_DRAFT
        tree = DraftTree.chain([int(token) for token in context[start : start + limit]])
        return tree if matcher is None else filter_tree(tree, matcher)[0]

    def find_continuation(self, context: Sequence[int]) -> int | None:
        """Return the index after the latest of the longest matches, or None if no match is long enough."""
        tokens = np.asarray(context, np.int64)
        if len(tokens) <= self.least:
            return None
        ends = np.flatnonzero(tokens[:-1] == tokens[-1])  # the last token of each occurrence
        length = 1
        while length < self.most:
            longer = ends[ends >= length]
            longer = longer[tokens[longer - length] == tokens[len(tokens) - 1 - length]]
            if not len(longer):
                break
            ends, length = longer, length + 1
        return int(ends[-1]) + 1 if len(ends) and length >= self.least else None

    def observe(self, tokens: Sequence[int]) -> None:
        """Do nothing: the context has all tokens."""
