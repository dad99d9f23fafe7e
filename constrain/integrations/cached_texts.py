"""The texts in the rows of a slot cache: those that are being generated, and ended ones that are kept for their prefix.

A prompt that begins as a text in the cache does, such as one with the same system prompt or a further turn of a
conversation, reuses the keys and values of the common prefix instead of being fed it (automatic prefix caching of vLLM;
RadixAttention, Zheng et al. 2024, section 3). They depend on the tokens before them only, so the rows of the model are
those without reuse, up to the rounding of passes of another shape.

The texts that are kept are bounded in number, one for each request, and dropped in the order of their last use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..decoding.prompt_order import count_common_tokens
from ..speculation.draft_source import NO_DRAFT, DraftTree

__all__ = ["CachedText", "KeptTexts", "find_longest_prefix"]

LEAST_PREFIX = 8
"""Fewest common tokens for which keys and values are copied. A start token is common to all prompts."""


@dataclass(slots=True, eq=False)
class CachedText:
    """What a row of the cache holds.

    row: its row. prompt: the number of tokens of the prompt. origin: a number that all texts of a request have in
    common. tokens: the committed ones. fed, draft: what the last step added to them. is_finite: whether all rows of the
    model were. is_intact: false while the keys and values are moved to another row, and after that failed.
    """

    row: int
    prompt: int
    origin: int
    tokens: list[int] = field(default_factory=list)
    fed: Sequence[int] = ()
    draft: DraftTree = NO_DRAFT
    is_finite: bool = True
    is_intact: bool = True

    @property
    def length(self) -> int:
        """The number of committed tokens."""
        return len(self.tokens)

    @property
    def extent(self) -> int:
        """The number of positions of the row that are in use, those of the last step included."""
        return len(self.tokens) + len(self.fed) + len(self.draft)

    def commit(self, kept: Sequence[int]) -> None:
        """Append the tokens of the last step and these nodes of its draft."""
        self.tokens += self.fed
        self.tokens += [self.draft.tokens[node] for node in kept]
        self.fed, self.draft = (), NO_DRAFT

    def rewind(self, kept: int = 0) -> None:
        """Remove everything after the prompt and the tokens that are kept."""
        del self.tokens[self.prompt + kept :]
        self.fed, self.draft = (), NO_DRAFT


class KeptTexts:
    """Ended texts, in the order of their last use. count: the most of them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.texts: list[CachedText] = []

    def add(self, text: CachedText) -> None:
        """Keep a text as the latest, in place of others of its request and of those that it begins with."""
        if not self.count or any(starts_with(other.tokens, text.tokens) for other in self.texts):
            return
        self.texts = [
            other for other in self.texts if other.origin != text.origin and not starts_with(text.tokens, other.tokens)
        ]
        self.texts.append(text)
        del self.texts[: -self.count]

    def touch(self, text: CachedText) -> None:
        """Make a text the latest, if it is kept."""
        if text in self.texts:
            self.texts.remove(text)
            self.texts.append(text)

    def drop_oldest(self) -> CachedText | None:
        """Drop the text that was not used for longest, and return it; None if there is none."""
        return self.texts.pop(0) if self.texts else None


def find_longest_prefix(texts: Iterable[CachedText], prompt: Sequence[int]) -> tuple[CachedText | None, int]:
    """Return the text that has the longest prefix in common with a prompt, and its length; (None, 0) if none is worth
    copying. At least one token of the prompt remains to be fed.
    """
    best, longest = None, LEAST_PREFIX - 1
    for text in texts:
        if text.is_finite and text.is_intact and min(len(text.tokens), len(prompt) - 1) > longest:
            common = min(count_common_tokens(text.tokens, prompt), len(prompt) - 1)
            if common > longest:
                best, longest = text, common
    return (None, 0) if best is None else (best, longest)


def starts_with(text: Sequence[int], prefix: Sequence[int]) -> bool:
    """Return whether a text begins with these tokens."""
    return len(prefix) <= len(text) and count_common_tokens(text, prefix) == len(prefix)
