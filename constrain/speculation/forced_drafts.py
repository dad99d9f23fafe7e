"""Drafts of forced text: the constraint itself as the draft model (jump-forward decoding, Zheng et al. 2024, SGLang,
section 4).

Where the constraint forces the text, the tokens that the tokenizer would spell it with are the draft. The model may
prefer another tokenisation of the same text: then the draft is rejected at the first token that differs, and the next
one is at most twice as long as the accepted part, since the rest is wasted work. Every draft that is accepted as a
whole doubles this limit again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .draft_source import NO_DRAFT, DraftTree

if TYPE_CHECKING:
    from ..engine.matcher import Matcher

__all__ = ["LONGEST_DRAFT", "ForcedDrafts"]

LONGEST_DRAFT = 64
"""Most tokens of a draft; a row of a 128k vocabulary takes 0.5 MB in float32."""


class ForcedDrafts:
    """A `DraftSource` that proposes the forced tokens of the Matcher."""

    def __init__(self) -> None:
        self.limit = LONGEST_DRAFT
        self.proposed: list[int] = []
        self.accepted = 0

    def propose(self, context: Sequence[int], matcher: Matcher | None, limit: int) -> DraftTree:
        """Return the chain of forced tokens, at most `limit` and at most the current limit of this source."""
        self.proposed, self.accepted = [], 0
        if matcher is None:
            return NO_DRAFT
        self.proposed = matcher.forced_tokens()[: min(limit, self.limit)]
        return DraftTree.chain(self.proposed)

    def observe(self, tokens: Sequence[int]) -> None:
        """Shorten the limit if a token differs from the draft; double it when the whole draft was accepted."""
        for token in tokens:
            if not self.proposed:
                return
            if token != self.proposed[0]:
                self.proposed, self.limit = [], max(1, 2 * self.accepted)
                return
            self.accepted += 1
            del self.proposed[0]
            if not self.proposed:
                self.limit = min(LONGEST_DRAFT, 2 * self.limit)
