"""A Constraint and a Matcher over an explicit set of texts, which is searched at every step.

They have the methods that samplers, the generation loop and the logits processor use, for tests that define all texts
of a constraint.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from constrain.base.errors import TokenRefused
from constrain.vocabulary.vocabulary import Vocabulary


class FiniteConstraint:
    """A constraint with a finite set of texts."""

    def __init__(self, vocabulary: Vocabulary, texts: Iterable[bytes]) -> None:
        self.vocabulary, self.texts = vocabulary, sorted(set(texts))

    def matcher(self) -> FiniteMatcher:
        return FiniteMatcher(self)


class FiniteMatcher:
    """A matcher that answers every query by searching all texts."""

    def __init__(self, constraint: FiniteConstraint, tokens: list[int] | None = None, data: bytes = b"") -> None:
        self.constraint, self.vocabulary = constraint, constraint.vocabulary
        self.tokens, self.data, self.ended = list(tokens or []), data, False

    def fork(self) -> FiniteMatcher:
        copy = FiniteMatcher(self.constraint, self.tokens, self.data)
        copy.ended = self.ended
        return copy

    def rests(self) -> list[bytes]:
        """Return the possible completions."""
        return [text[len(self.data) :] for text in self.constraint.texts if text.startswith(self.data)]

    def allowed(self) -> set[int]:
        if self.ended:
            return set()
        rests = self.rests()
        heads = {rest[:length] for rest in rests for length in range(len(rest) + 1)}
        out = {i for i, t in enumerate(self.vocabulary.tokens) if t and t in heads}
        return out | (set(self.vocabulary.eos_ids) if self.is_complete else set())

    def mask(self, out: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        bits = np.zeros((self.vocabulary.size + 31) // 32 * 32, np.uint8)
        bits[sorted(self.allowed())] = 1
        return np.packbits(bits, bitorder="little").view(np.int32)

    def allows(self, token: int) -> bool:
        return token in self.allowed()

    def advance(self, token: int) -> None:
        if not self.allows(token):
            raise TokenRefused(f"token {token} is refused")
        self.ended = token in self.vocabulary.eos_ids
        self.data += self.vocabulary.tokens[token] or b""
        self.tokens.append(token)

    def advance_bytes(self, data: bytes) -> None:
        if not any(rest.startswith(data) for rest in self.rests()):
            raise TokenRefused(f"{data!r} is refused")
        self.data += data

    def rollback(self, n: int = 1) -> None:
        for token in reversed(self.tokens[len(self.tokens) - n :]):
            self.data = self.data[: len(self.data) - len(self.vocabulary.tokens[token] or b"")]
        del self.tokens[len(self.tokens) - n :]
        self.ended = False

    def forced(self) -> bytes:
        rests = self.rests()
        shared = rests[0]
        while not all(rest.startswith(shared) for rest in rests):
            shared = shared[:-1]
        return b"" if b"" in rests else shared

    def forced_tokens(self) -> list[int]:
        return self.vocabulary.fewest(self.forced())

    @property
    def is_complete(self) -> bool:
        return b"" in self.rests()

    @property
    def is_finished(self) -> bool:
        return self.ended or self.rests() == [b""]

    def shortest_completion(self, limit: int | None) -> bytes | None:
        shortest = min(self.rests(), key=lambda rest: (len(rest), rest))
        return shortest if limit is None or len(shortest) <= limit else None
