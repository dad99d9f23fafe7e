"""Canonical: a checker that lets a text end only if its tokens are those that the tokenizer itself would have chosen.

A text has many spellings as tokens, and a model gives each of them some probability. With this behind the mask, what is
drawn from is

    p(x) [x in L] [x = tok(bytes of x)]

renormalised: the model on its canonical spellings, one to a text, so that `logprob` is that of the text. It is another
law than p given L (whose texts follow the model's law of *texts*, all spellings added up), never a correction of it.

Whether a spelling is canonical is known for certain only at its end, for tokenizers in general. `pairs` is for those
that merge bytes and look no further (plain BPE): there every part of a canonical spelling is the canonical spelling of
its bytes, so a pair of neighbours that is not refuses the text at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..base.errors import ArgumentError, TokenRefused
from ..vocabulary.vocabulary import Vocabulary

__all__ = ["Canonical"]

Respell = Callable[[bytes], Sequence[int]]


class Canonical:
    """respell: the tokens of bytes, `vocabulary.tokenize` (in the middle of a text) if None. judged: "end": at its
    end; "pairs": also every two neighbours, as said above. asked: how often `respell` was called."""

    def __init__(self, vocabulary: Vocabulary, *, respell: Respell | None = None, judged: str = "end") -> None:
        if judged not in ("end", "pairs"):
            raise ArgumentError(f'judged is "end" or "pairs", not {judged!r}')
        self.vocabulary, self.respell, self.judged = vocabulary, respell or vocabulary.tokenize, judged
        self.asked = 0
        self._pairs: dict[tuple[int, int], bool] = {}

    def matcher(self) -> _CanonicalPosition:
        """A new position, before any text."""
        return _CanonicalPosition(self, [])

    def is_canonical(self, tokens: Sequence[int]) -> bool:
        """Whether these are the tokens of their bytes."""
        self.asked += 1
        spelled = b"".join(self.vocabulary.tokens[token] or b"" for token in tokens)
        return list(self.respell(spelled)) == list(tokens)

    def may_follow(self, before: int, token: int) -> bool:
        """Whether two neighbours may stand side by side; remembered."""
        pair = before, token
        if pair not in self._pairs:
            self._pairs[pair] = self.is_canonical(pair)
        return self._pairs[pair]


class _CanonicalPosition:
    """A position: the tokens so far."""

    __slots__ = ("checker", "ended", "tokens")

    def __init__(self, checker: Canonical, tokens: list[int], ended: int = 0) -> None:
        self.checker, self.tokens, self.ended = checker, tokens, ended

    def allows(self, token: int) -> bool:
        """Whether the token may come next."""
        vocabulary = self.checker.vocabulary
        if self.ended or not 0 <= token < vocabulary.size:
            return False
        if token in vocabulary.eos_ids:
            return self.checker.is_canonical(self.tokens)
        if not vocabulary.tokens[token]:
            return False
        return self.checker.judged == "end" or not self.tokens or self.checker.may_follow(self.tokens[-1], token)

    def advance(self, token: int) -> None:
        """Takes a token. TokenRefused if it is not allowed."""
        if not self.allows(token):
            raise TokenRefused(f"Token {token} is refused here.")
        self.ended = int(token in self.checker.vocabulary.eos_ids)
        self.tokens = [*self.tokens, token]

    def fork(self) -> _CanonicalPosition:
        """Another one at the same place."""
        return _CanonicalPosition(self.checker, self.tokens, self.ended)
