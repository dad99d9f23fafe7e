"""A task: a model, a mask, judges behind it, and what counts as right.

`Guarded` is mask and judges as one constraint: a token may come if the mask allows it and no judge refuses what it
makes. Sampling under it token by token is what the AWRS paper calls locally constrained decoding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from constrain.base.errors import TokenRefused
from constrain.compilation.constraint_compiler import compile as compiled
from constrain.engine.constraint import Constraint
from constrain.engine.matcher import Matcher
from constrain.sampling import NGram
from constrain.sampling.core.masked_sampling import allowed_tokens
from constrain.sampling.success_walks import Validator
from constrain.vocabulary.vocabulary import Vocabulary

from ..fixtures import Counted

__all__ = ["Guarded", "Task", "allow_any_text", "train_ngram"]


@dataclass(frozen=True)
class Task:
    """kind: of task; mask: what may be written; accepts, viable: judges of complete texts and of beginnings behind it,
    both cheap and sure. max_tokens counts the end token. right: a second opinion on texts of L. guess:
    log of how likely a beginning ends well, about, for a twist."""

    kind: str
    name: str
    lm: Counted
    mask: Constraint
    max_tokens: int
    accepts: Validator | None = None
    viable: Validator | None = None
    right: Validator | None = None
    guess: Callable[[bytes], float] | None = None

    @cached_property
    def guarded(self) -> Constraint | Guarded:
        """Mask and judges together."""
        if self.accepts is None and self.viable is None:
            return self.mask
        return Guarded(self.mask, self.accepts, self.viable)

    def is_in(self, text: bytes) -> bool:
        """Return whether a complete answer is in L."""
        matcher = advance_matcher(self.mask, text)
        return matcher is not None and matcher.is_complete and (self.accepts is None or self.accepts(text))

    def is_right(self, text: bytes) -> bool:
        """Return whether a complete answer is right."""
        return self.is_in(text) and (self.right is None or self.right(text))

    def may_become(self, text: bytes) -> bool:
        """Return whether a beginning may become an answer."""
        return advance_matcher(self.mask, text) is not None and (self.viable is None or self.viable(text))


def advance_matcher(mask: Constraint, text: bytes) -> Matcher | None:
    """Behind a text, None if it is refused."""
    matcher = mask.matcher()
    try:
        matcher.advance_bytes(text)
    except TokenRefused:
        return None
    return matcher


class Guarded:
    """A Constraint as samplers need it, of a mask and judges. Answers are remembered by text."""

    def __init__(self, mask: Constraint, accepts: Validator | None, viable: Validator | None) -> None:
        self.inner, self.vocabulary = mask, mask.vocabulary
        self.accepts = lru_cache(1 << 16)(accepts or (lambda text: True))
        self.viable = lru_cache(1 << 16)(viable or (lambda text: True))

    def matcher(self) -> At:
        return At(self, self.inner.matcher(), b"")


class At:
    """A position. `mask` asks the judges about every token that the inner mask allows: right, and slow."""

    def __init__(self, guarded: Guarded, inner: Matcher, text: bytes) -> None:
        self.guarded, self.inner, self.text = guarded, inner, text
        self.ends = guarded.vocabulary.eos_ids

    @property
    def tokens(self) -> list[int]:
        return self.inner.tokens

    @property
    def is_complete(self) -> bool:
        return self.inner.is_complete and self.guarded.accepts(self.text)

    def after(self, token: int) -> bytes:
        return self.text + (self.guarded.vocabulary.tokens[token] or b"")

    def passes(self, token: int) -> bool:
        """Return what the judges say of a token that the inner mask allows."""
        return bool(self.guarded.accepts(self.text) if token in self.ends else self.guarded.viable(self.after(token)))

    def allows(self, token: int) -> bool:
        return self.inner.allows(token) and self.passes(token)

    def mask(self, out: None = None) -> NDArray[np.int32]:
        words: NDArray[np.int32] = self.inner.mask().copy()
        for token in allowed_tokens(words).tolist():
            if not self.passes(token):
                words[token >> 5] &= np.int32(~np.uint32(1 << (token & 31)).view(np.int32))
        return words

    def advance(self, token: int) -> None:
        self.inner.advance(token)
        self.text = self.after(token)

    def fork(self) -> At:
        return At(self.guarded, self.inner.fork(), self.text)


@lru_cache(maxsize=4)
def allow_any_text(vocabulary: Vocabulary) -> Constraint:
    """Any text at all: what a model writes without a constraint."""
    return compiled(vocabulary=vocabulary, regex=r"[\s\S]*")


def train_ngram(texts: Iterable[str], *, order: int, contexts: int = 6000) -> tuple[NGram, Vocabulary]:
    """A model over bytes that has read these texts: it knows how they look, and none of their rules."""
    vocabulary = Vocabulary.bytes()
    read = [list(text.encode()) for text in texts]
    return NGram.of_texts(
        read, end=vocabulary.eos_ids[0], size=vocabulary.size, order=order, contexts=contexts
    ), vocabulary
