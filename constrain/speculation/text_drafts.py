"""Drafts from a model of another vocabulary, by way of text (Timor et al. 2025, section 3: string-level exact match).

The draft model continues the bytes of the text in its own tokens. These bytes are then written in the tokens that the
target's tokenizer would choose, and verified as a deterministic draft: the text is the same for the same seed.

*The constraint* is one on bytes, so a fork of the Matcher follows the draft model's tokens, too: of its likeliest
tokens, the first whose bytes are accepted is taken. *The border*: the last token of the draft may be merged with what
follows, so it is left out if others precede it; the first one follows a token of the text that is fixed already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import TokenRefused, VocabularyError
from ..sampling.core.language_model import LanguageModel, rows_after
from .draft_filter import filter_tree
from .draft_source import NO_DRAFT, DraftTree

if TYPE_CHECKING:
    from ..engine.matcher import Matcher
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["TextDrafts"]

TRIED = 16
"""Most tokens of the draft model that are tried at one step."""


class TextDrafts:
    """A `DraftSource` for one text, from a LanguageModel with a vocabulary of its own.

    Parameters
    ----------
    lm : LanguageModel
        The draft model, after the same prompt in its own tokens.
    draft_vocabulary : Vocabulary
        The vocabulary of the draft model.
    vocabulary : Vocabulary
        The vocabulary of the text.
    prompt_length : int
        The number of tokens of the prompt, which precede the text in each context.
    """

    def __init__(
        self, lm: LanguageModel, *, draft_vocabulary: Vocabulary, vocabulary: Vocabulary, prompt_length: int
    ) -> None:
        self.lm, self.draft_vocabulary, self.vocabulary = lm, draft_vocabulary, vocabulary
        self.prompt_length = prompt_length

    def propose(self, context: Sequence[int], matcher: Matcher | None, limit: int) -> DraftTree:
        """Return the draft model's continuation in the tokens of the target."""
        try:
            written = self.draft_vocabulary.tokenize(self.vocabulary.text(context[self.prompt_length :]))
        except VocabularyError:  # the draft model cannot spell this text
            return NO_DRAFT
        data = self.continue_text(written, matcher, limit + 1)
        if not data:
            return NO_DRAFT
        try:
            tokens = self.vocabulary.tokenize(data)
        except VocabularyError:
            return NO_DRAFT
        tree = DraftTree.chain(tokens[: min(limit, max(1, len(tokens) - 1))])
        return tree if matcher is None else filter_tree(tree, matcher)[0]

    def continue_text(self, written: list[int], matcher: Matcher | None, count: int) -> bytes:
        """Return the bytes of at most `count` likeliest tokens of the draft model after the tokens `written`."""
        position = None if matcher is None else matcher.fork()
        data = b""
        for _ in range(count):
            row = rows_after(self.lm, [written], self.draft_vocabulary.size)[0][: self.draft_vocabulary.size]
            best = np.argpartition(-row, min(TRIED, len(row) - 1))[:TRIED]
            token = self.choose_token(best[np.argsort(-row[best], kind="stable")].tolist(), position)
            if token is None:
                break
            written = [*written, token]
            data += self.draft_vocabulary.tokens[token] or b""
        return data

    def choose_token(self, best: Sequence[int], matcher: Matcher | None) -> int | None:
        """Return the first of the draft model's likeliest tokens that is text and that the constraint accepts; None if
        it would rather end. The matcher is advanced.
        """
        for token in best:
            if token in self.draft_vocabulary.eos_ids:
                if matcher is None or matcher.is_complete:
                    return None
                continue
            data = self.draft_vocabulary.tokens[token]
            if not data:
                continue
            if matcher is None:
                return token
            try:
                matcher.advance_bytes(data)
            except TokenRefused:
                continue
            return token
        return None

    def observe(self, tokens: Sequence[int]) -> None:
        """Do nothing: each context has all tokens."""
