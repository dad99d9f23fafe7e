"""Checkers: constraints that answer "may this token come?" and make no mask; any Python function can be one.

A checker is whatever has a `vocabulary` and gives a position by `matcher()`; a position allows, advances and forks. A
Constraint is one. `Judged` is made of functions over bytes, `Stepwise` of a state and a function that feeds it, and
`Both` puts one behind the other: a grammar that is quick, then a validator that is slow, and sees only what the
grammar let through. Verdicts are remembered, and shared by all positions: each question is asked once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from ..errors import ArgumentError, ConstrainError, TokenRefused
from ..tokens.vocabulary import Vocabulary

__all__ = ["Both", "Checker", "Judged", "Position", "Stepwise"]

REMEMBERED = 100_000
"""Verdicts that a checker keeps; the oldest are forgotten."""

S = TypeVar("S")
Judge = Callable[[bytes], bool]


class Position(Protocol):
    """Where a text is. A Matcher is one. An end token is allowed exactly where the text may end."""

    @property
    def tokens(self) -> list[int]: ...
    def allows(self, token: int, /) -> bool: ...
    def advance(self, token: int, /) -> None: ...
    def fork(self) -> Position: ...


@runtime_checkable
class Checker(Protocol):
    """What positions are of. A Constraint is one."""

    @property
    def vocabulary(self) -> Vocabulary: ...
    def matcher(self) -> Position: ...


class Memo:
    """Answers by question, at most REMEMBERED of them."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}
        self.asked = 0

    def ask(self, kind: str, text: bytes, question: Callable[[], Any]) -> Any:
        """The answer about a text, asked for if it is not known. ConstrainError if the checker fails."""
        key = kind, text
        if key not in self.known:
            self.asked += 1
            try:
                answer = question()
            except Exception as error:
                raise ConstrainError(
                    f"the checker failed on {text[-60:]!r}: {error.__class__.__name__}: {error}",
                    hint="A checker must answer for every text; catch what means no, and answer False.",
                ) from error
            self.put(key, answer)
        return self.known[key]

    def put(self, key: tuple[str, bytes], answer: Any) -> None:
        if len(self.known) >= REMEMBERED:
            del self.known[next(iter(self.known))]
        self.known[key] = answer


class Stepwise(Generic[S]):
    """A state that is fed bytes, token by token.

    start: before any text. feed(state, bytes): the state after them, None if they are refused; it must leave the old
    state as it is. accepts(state): whether the text may end there.
    """

    def __init__(
        self, vocabulary: Vocabulary, start: S, feed: Callable[[S, bytes], S | None], accepts: Callable[[S], bool]
    ) -> None:
        self.vocabulary, self.start, self.feed, self.accepts = vocabulary, start, feed, accepts
        self.memo = Memo()

    def matcher(self) -> _At[S]:
        return _At(self, [], b"", self.start)

    @property
    def asked(self) -> int:
        """How often `feed` and `accepts` were called."""
        return self.memo.asked


class Judged(Stepwise[bytes]):
    """Functions over all bytes of a text.

    accepts: whether a complete text is right. viable: whether a prefix may still become right; True for all if None
    (a validator that only knows complete texts).
    """

    def __init__(self, vocabulary: Vocabulary, accepts: Judge | None = None, viable: Judge | None = None) -> None:
        def feed(text: bytes, more: bytes) -> bytes | None:
            return text + more if viable is None or viable(text + more) else None

        super().__init__(vocabulary, b"", feed, accepts or (lambda text: True))


class _At(Generic[S]):
    """A position of a Stepwise checker."""

    __slots__ = ("checker", "ended", "state", "text", "tokens")

    def __init__(self, checker: Stepwise[S], tokens: list[int], text: bytes, state: S, ended: int = 0) -> None:
        self.checker, self.tokens, self.text, self.state, self.ended = checker, tokens, text, state, ended

    def allows(self, token: int) -> bool:
        """Whether the token may come next."""
        vocabulary = self.checker.vocabulary
        if self.ended or not 0 <= token < vocabulary.size:
            return False
        if token in vocabulary.eos_ids:
            state = self.state
            return bool(self.checker.memo.ask("end", self.text, lambda: self.checker.accepts(state)))
        return bool(vocabulary.tokens[token]) and self._after(token) is not None

    def _after(self, token: int) -> S | None:
        state, more = self.state, self.checker.vocabulary.tokens[token] or b""
        after: S | None = self.checker.memo.ask("text", self.text + more, lambda: self.checker.feed(state, more))
        return after

    def advance(self, token: int) -> None:
        """Takes a token. TokenRefused if it is not allowed."""
        if not self.allows(token):
            raise TokenRefused(f"Token {token} is refused here.")
        if token in self.checker.vocabulary.eos_ids:
            self.ended = 1
        else:
            state = self._after(token)
            assert state is not None
            self.text, self.state = self.text + (self.checker.vocabulary.tokens[token] or b""), state
        self.tokens = [*self.tokens, token]

    def fork(self) -> _At[S]:
        """Another one at the same place."""
        return _At(self.checker, self.tokens, self.text, self.state, self.ended)


class Both:
    """What both allow; the second is asked only about what the first allows, and may be slow."""

    def __init__(self, first: Checker, second: Checker) -> None:
        if first.vocabulary is not second.vocabulary:
            raise ArgumentError("both checkers must be of one vocabulary")
        self.first, self.second, self.vocabulary = first, second, first.vocabulary

    def matcher(self) -> _AtBoth:
        return _AtBoth(self.first.matcher(), self.second.matcher())


class _AtBoth:
    __slots__ = ("first", "second")

    def __init__(self, first: Position, second: Position) -> None:
        self.first, self.second = first, second

    @property
    def tokens(self) -> list[int]:
        return self.first.tokens

    def allows(self, token: int) -> bool:
        """Whether the token may come next."""
        return self.first.allows(token) and self.second.allows(token)

    def advance(self, token: int) -> None:
        """Takes a token. TokenRefused, neither being moved, if it is not allowed."""
        if not self.allows(token):
            raise TokenRefused(f"Token {token} is refused here.")
        self.first.advance(token)
        self.second.advance(token)

    def fork(self) -> _AtBoth:
        """Another one at the same place."""
        return _AtBoth(self.first.fork(), self.second.fork())
