"""Canonical tokenisations: a checker that accepts a text only if its tokens are those that the tokenizer produces.

A text has many tokenisations, and a model gives each of them some probability. With this checker the target is

    p(x) [x in L] [x = tok(bytes of x)]

renormalised: one tokenisation per text, so `logprob` is that of the text. This differs from p given L, whose marginal
over texts sums the probabilities of all tokenisations.

In general, whether a tokenisation is canonical is known only at its end. The option "pairs" is for tokenizers that only
merge bytes (plain BPE): there every part of a canonical tokenisation is the canonical tokenisation of its bytes, so a
non-canonical pair of adjacent tokens is rejected at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..base.errors import ArgumentError, TokenRefused
from ..vocabulary.vocabulary import Vocabulary

__all__ = ["Canonical"]

Respell = Callable[[bytes], Sequence[int]]


class Canonical:
    """A checker that accepts canonical tokenisations only.

    respell: function from bytes to tokens; by default `vocabulary.tokenize` (in the middle of a text). checked: "end"
    checks complete texts; "pairs" also checks every two adjacent tokens, see the module. calls: number of calls of
    `respell`.
    """

    def __init__(self, vocabulary: Vocabulary, *, respell: Respell | None = None, checked: str = "end") -> None:
        if checked not in ("end", "pairs"):
            raise ArgumentError(f'checked is "end" or "pairs", not {checked!r}')
        self.vocabulary, self.respell, self.checked = vocabulary, respell or vocabulary.tokenize, checked
        self.calls = 0
        self._pairs: dict[tuple[int, int], bool] = {}

    def matcher(self) -> _CanonicalPosition:
        """Return a position at the empty text."""
        return _CanonicalPosition(self, [])

    def is_canonical(self, tokens: Sequence[int]) -> bool:
        """Return whether the tokens are the canonical tokenisation of their bytes."""
        self.calls += 1
        spelled = b"".join(self.vocabulary.tokens[token] or b"" for token in tokens)
        return list(self.respell(spelled)) == list(tokens)

    def may_follow(self, before: int, token: int) -> bool:
        """Return whether two tokens may be adjacent; answers are cached."""
        pair = before, token
        if pair not in self._pairs:
            self._pairs[pair] = self.is_canonical(pair)
        return self._pairs[pair]


class _CanonicalPosition:
    """A position of a Canonical checker: the tokens so far."""

    __slots__ = ("checker", "ended", "tokens")

    def __init__(self, checker: Canonical, tokens: list[int], ended: int = 0) -> None:
        self.checker, self.tokens, self.ended = checker, tokens, ended

    def allows(self, token: int) -> bool:
        """Return whether the token may come next."""
        vocabulary = self.checker.vocabulary
        if self.ended or not 0 <= token < vocabulary.size:
            return False
        if token in vocabulary.eos_ids:
            return self.checker.is_canonical(self.tokens)
        if not vocabulary.tokens[token]:
            return False
        return self.checker.checked == "end" or not self.tokens or self.checker.may_follow(self.tokens[-1], token)

    def advance(self, token: int) -> None:
        """Append a token. Raise TokenRefused if it is not allowed."""
        if not self.allows(token):
            raise TokenRefused(f"Token {token} is refused here.")
        self.ended = int(token in self.checker.vocabulary.eos_ids)
        self.tokens = [*self.tokens, token]

    def fork(self) -> _CanonicalPosition:
        """Return an independent copy of this position."""
        return _CanonicalPosition(self.checker, self.tokens, self.ended)
