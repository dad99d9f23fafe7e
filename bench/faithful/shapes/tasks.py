"""A task: a model, a mask, validators of what the mask cannot express, and the definition of a right answer.

`ValidatedConstraint` combines mask and validators: a token is allowed if the mask allows it and no validator rejects
the text that results. Sampling under it token by token is what the AWRS paper calls locally constrained decoding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from constrain.compilation.constraint_compiler import compile as compiled
from constrain.engine.constraint import Constraint
from constrain.engine.matcher import Matcher
from constrain.sampling import NGram
from constrain.sampling.core.masked_sampling import allowed_tokens
from constrain.sampling.success_walks import Validator
from constrain.vocabulary.vocabulary import Vocabulary
from tests.text_acceptance import advance_copy

from ...counted_models import CachedModel

__all__ = ["Task", "ValidatedConstraint", "compile_any_text", "train_ngram"]


@dataclass(frozen=True)
class Task:
    """A model, the language L of its answers, and which answers of L are right.

    L holds the texts of `mask` that `accepts` accepts. accepts, viable: validators of complete texts and of prefixes,
    see `Validator`; both are fast and deterministic. max_tokens: with the end token. is_answer: whether a text of L is
    a right answer, judged independently of the mask; None: every text of L is. twist: estimates the logarithm of the
    probability that a prefix is completed to a text of L.
    """

    kind: str
    name: str
    lm: CachedModel
    mask: Constraint
    max_tokens: int
    accepts: Validator | None = None
    viable: Validator | None = None
    is_answer: Validator | None = None
    twist: Callable[[bytes], float] | None = None

    @cached_property
    def constraint(self) -> Constraint | ValidatedConstraint:
        """The mask with the validators, or the mask itself if there are none."""
        if self.accepts is None and self.viable is None:
            return self.mask
        return ValidatedConstraint(self.mask, self.accepts, self.viable)

    def is_in(self, text: bytes) -> bool:
        """Return whether a complete answer is in L."""
        matcher = advance_copy(self.mask.matcher(), text)
        return matcher is not None and matcher.is_complete and (self.accepts is None or self.accepts(text))

    def is_right(self, text: bytes) -> bool:
        """Return whether a complete answer is right."""
        return self.is_in(text) and (self.is_answer is None or self.is_answer(text))

    def is_viable(self, prefix: bytes) -> bool:
        """Return whether neither the mask nor the validator of prefixes rejects a prefix."""
        return advance_copy(self.mask.matcher(), prefix) is not None and (self.viable is None or self.viable(prefix))


class ValidatedConstraint:
    """A mask and validators, with the methods of a Constraint that samplers call. Verdicts are cached by text."""

    def __init__(self, mask: Constraint, accepts: Validator | None, viable: Validator | None) -> None:
        self.inner, self.vocabulary = mask, mask.vocabulary
        self.accepts = lru_cache(1 << 16)(accepts or (lambda text: True))
        self.viable = lru_cache(1 << 16)(viable or (lambda text: True))

    def matcher(self) -> ValidatedMatcher:
        return ValidatedMatcher(self, self.inner.matcher(), b"")


class ValidatedMatcher:
    """The Matcher of a ValidatedConstraint. `mask` calls the validators for every token that the mask allows: exact,
    and slow.
    """

    def __init__(self, constraint: ValidatedConstraint, inner: Matcher, text: bytes) -> None:
        self.constraint, self.inner, self.text = constraint, inner, text
        self.ends = constraint.vocabulary.eos_ids

    @property
    def tokens(self) -> list[int]:
        return self.inner.tokens

    @property
    def is_complete(self) -> bool:
        return self.inner.is_complete and self.constraint.accepts(self.text)

    def append_token(self, token: int) -> bytes:
        """Return the text with the bytes of a token appended."""
        return self.text + (self.constraint.vocabulary.tokens[token] or b"")

    def is_valid(self, token: int) -> bool:
        """Return whether the validators accept a token that the mask allows."""
        if token in self.ends:
            return bool(self.constraint.accepts(self.text))
        return bool(self.constraint.viable(self.append_token(token)))

    def allows(self, token: int) -> bool:
        return self.inner.allows(token) and self.is_valid(token)

    def mask(self, out: None = None) -> NDArray[np.int32]:
        words: NDArray[np.int32] = self.inner.mask().copy()
        for token in allowed_tokens(words).tolist():
            if not self.is_valid(token):
                words[token >> 5] &= np.int32(~np.uint32(1 << (token & 31)).view(np.int32))
        return words

    def advance(self, token: int) -> None:
        self.inner.advance(token)
        self.text = self.append_token(token)

    def fork(self) -> ValidatedMatcher:
        return ValidatedMatcher(self.constraint, self.inner.fork(), self.text)


@lru_cache(maxsize=4)
def compile_any_text(vocabulary: Vocabulary) -> Constraint:
    """Compile the constraint that allows every text, to draw from the unconstrained model."""
    return compiled(vocabulary=vocabulary, regex=r"[\s\S]*")


def train_ngram(texts: Iterable[str], *, order: int, contexts: int = 6000) -> tuple[NGram, Vocabulary]:
    """Train a byte-level n-gram model on texts: it learns their local form, and none of their rules."""
    vocabulary = Vocabulary.bytes()
    read = [list(text.encode()) for text in texts]
    return NGram.of_texts(
        read, end=vocabulary.eos_ids[0], size=vocabulary.size, order=order, contexts=contexts
    ), vocabulary
