"""Drafts of forced text: the constraint itself as the draft model (jump-forward decoding, Zheng et al. 2024, SGLang,
section 4).

Where the constraint forces the text, the tokens that the tokenizer would spell it with are the draft. The model may
prefer another tokenisation of the same text: then the draft is rejected at the first token that differs, and the next
one is at most twice as long as the accepted part, since the rest is wasted work. Every draft that is accepted as a
whole doubles this limit again. The last token of forced text is a guess of its own, because the tokenizer might merge
it with the text that follows: it is part of the draft as long as it was right more often than not, lately.
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


MEMORY = 0.8
"""Weight of what was observed of last tokens before, for each further one."""


class ForcedDrafts:
    """A `DraftSource` that proposes the forced tokens of the Matcher.

    Attributes
    ----------
    limit : int
        Most tokens of the next draft.
    expected : list of int
        The tokens that are expected next; `is_open`: whether the last of them ends the forced text.
    right, wrong : float
        How often the last token of a forced text was as expected, and was not, with exponential forgetting.
    """

    def __init__(self) -> None:
        self.limit = LONGEST_DRAFT
        self.expected: list[int] = []
        self.is_open = False
        self.accepted = 0
        self.right, self.wrong = 1.0, 0.5

    def propose(self, context: Sequence[int], matcher: Matcher | None, limit: int) -> DraftTree:
        """Return the chain of forced tokens, at most `limit` and at most the current limit of this source."""
        self.expected, self.accepted = [], 0
        text = b"" if matcher is None else matcher.forced()
        if matcher is None or not text:
            return NO_DRAFT
        tokens, most = matcher.constraint.vocabulary.tokenize(text), min(limit, self.limit)
        self.expected, self.is_open = tokens[:most], len(tokens) <= most
        leaves_last = self.is_open and self.wrong > self.right
        return DraftTree.chain(self.expected[:-1] if leaves_last else self.expected)

    def observe(self, tokens: Sequence[int]) -> None:
        """Shorten the limit if a token differs from the draft; double it when the whole draft was accepted."""
        for token in tokens:
            if not self.expected:
                return
            is_last, is_right = self.is_open and len(self.expected) == 1, token == self.expected.pop(0)
            if is_last:
                self.right, self.wrong = MEMORY * self.right + is_right, MEMORY * self.wrong + (not is_right)
            elif not is_right:
                self.expected, self.limit = [], max(1, 2 * self.accepted)
            self.accepted += is_right
            if is_right and not self.expected:
                self.limit = min(LONGEST_DRAFT, 2 * self.limit)
