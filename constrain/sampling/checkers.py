"""Checkers: constraints that test single tokens instead of computing masks. Any Python function can serve as one.

A checker has a `vocabulary` and returns positions from `matcher()`; a position can test a token, advance and fork.
Every Constraint is a checker. `ValidatorChecker` wraps functions of bytes, `Stepwise` an incremental state, and
`BothCheckers` combines two checkers, such as a fast grammar and a slow validator that is called only for what the
grammar allows. Answers are cached and shared by all positions of a checker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from ..base.errors import ArgumentError, ConstrainError, LimitError, TokenRefused, check_type, describe_value
from ..vocabulary.vocabulary import Vocabulary
from .core.numeric_functions import read_verdict
from .core.sampler_arguments import check_validators

__all__ = ["BothCheckers", "Checker", "ValidatorChecker", "CheckerPosition", "Stepwise"]

REMEMBERED = 100_000
"""Maximum number of cached answers per checker; the oldest are evicted."""

S = TypeVar("S")
Validator = Callable[[bytes], bool]


class CheckerPosition(Protocol):
    """A position in a text. A Matcher is one. An end token is allowed exactly if the text may end."""

    @property
    def tokens(self) -> list[int]: ...
    def allows(self, token: int, /) -> bool: ...
    def advance(self, token: int, /) -> None: ...
    def fork(self) -> CheckerPosition: ...


@runtime_checkable
class Checker(Protocol):
    """A constraint that tests single tokens. A Constraint is one."""

    @property
    def vocabulary(self) -> Vocabulary: ...
    def matcher(self) -> CheckerPosition: ...


class AnswerCache:
    """A cache of a checker's answers, with at most REMEMBERED entries."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}
        self.calls = 0

    def lookup(self, kind: str, text: bytes, compute: Callable[[], Any]) -> Any:
        """Return the cached answer for a text, or call `compute` and cache its answer. Raise ConstrainError if the
        call fails.
        """
        key = kind, text
        if key not in self.known:
            self.calls += 1
            try:
                answer = compute()
            except (ArgumentError, LimitError):  # these say what is wrong
                raise
            except Exception as error:
                raise ConstrainError(
                    f"the checker failed on {text[-60:]!r}: {error.__class__.__name__}: {error}",
                    hint="A checker must answer for every text: catch its exceptions and return False.",
                ) from error
            self.put(key, answer)
        return self.known[key]

    def put(self, key: tuple[str, bytes], answer: Any) -> None:
        if len(self.known) >= REMEMBERED:
            del self.known[next(iter(self.known))]
        self.known[key] = answer


class Stepwise(Generic[S]):
    """A checker that feeds the bytes of each token to an incremental state.

    Parameters
    ----------
    vocabulary : Vocabulary
    start : object
        The state of the empty text.
    feed : callable
        ``feed(state, data)`` returns the state after the bytes `data`, or None if they are rejected. It must not modify
        `state`.
    accepts : callable
        ``accepts(state)`` returns whether the text may end.
    """

    def __init__(
        self, vocabulary: Vocabulary, start: S, feed: Callable[[S, bytes], S | None], accepts: Callable[[S], bool]
    ) -> None:
        check_type("vocabulary", vocabulary, Vocabulary, "give a Vocabulary")
        for name, function in (("feed", feed), ("accepts", accepts)):
            if not callable(function):
                raise TypeError(f"{name} is {describe_value(function)}: give a function")
        self.vocabulary, self.start, self.feed, self.accepts = vocabulary, start, feed, accepts
        self.answers = AnswerCache()

    def matcher(self) -> _StepwisePosition[S]:
        return _StepwisePosition(self, [], b"", self.start)

    @property
    def calls(self) -> int:
        """Number of calls of `feed` and `accepts`."""
        return self.answers.calls


class ValidatorChecker(Stepwise[bytes]):
    """A checker made of functions of the bytes of a text.

    Parameters
    ----------
    vocabulary : Vocabulary
    accepts : callable, optional
        Whether a complete text is valid; by default every text is.
    viable : callable, optional
        Whether a prefix can still become valid; by default every prefix can (for validators of complete texts only).
    """

    def __init__(
        self, vocabulary: Vocabulary, accepts: Validator | None = None, viable: Validator | None = None
    ) -> None:
        check_validators(accepts=accepts, viable=viable)

        def feed(text: bytes, more: bytes) -> bytes | None:
            after = text + more
            return after if viable is None or read_verdict("the checker", after, viable(after)) else None

        def may_end(text: bytes) -> bool:
            return accepts is None or read_verdict("the checker", text, accepts(text))

        super().__init__(vocabulary, b"", feed, may_end)


class _StepwisePosition(Generic[S]):
    """A position of a Stepwise checker."""

    __slots__ = ("checker", "ended", "state", "text", "tokens")

    def __init__(self, checker: Stepwise[S], tokens: list[int], text: bytes, state: S, ended: int = 0) -> None:
        self.checker, self.tokens, self.text, self.state, self.ended = checker, tokens, text, state, ended

    def allows(self, token: int) -> bool:
        """Return whether the token may come next."""
        vocabulary = self.checker.vocabulary
        if self.ended or not 0 <= token < vocabulary.size:
            return False
        if token in vocabulary.eos_ids:
            state = self.state
            return bool(self.checker.answers.lookup("end", self.text, lambda: self.checker.accepts(state)))
        return bool(vocabulary.tokens[token]) and self._after(token) is not None

    def _after(self, token: int) -> S | None:
        state, more = self.state, self.checker.vocabulary.tokens[token] or b""
        after: S | None = self.checker.answers.lookup("text", self.text + more, lambda: self.checker.feed(state, more))
        return after

    def advance(self, token: int) -> None:
        """Append a token. Raise TokenRefused if it is not allowed."""
        if not self.allows(token):
            raise TokenRefused(f"Token {token} is refused here.")
        if token in self.checker.vocabulary.eos_ids:
            self.ended = 1
        else:
            state = self._after(token)
            assert state is not None
            self.text, self.state = self.text + (self.checker.vocabulary.tokens[token] or b""), state
        self.tokens = [*self.tokens, token]

    def fork(self) -> _StepwisePosition[S]:
        """Return an independent copy of this position."""
        return _StepwisePosition(self.checker, self.tokens, self.text, self.state, self.ended)


class BothCheckers:
    """The conjunction of two checkers. The second is called only for tokens that the first allows, and may be slow."""

    def __init__(self, first: Checker, second: Checker) -> None:
        if first.vocabulary is not second.vocabulary:
            raise ArgumentError("both checkers must have one vocabulary")
        self.first, self.second, self.vocabulary = first, second, first.vocabulary

    def matcher(self) -> _JointPosition:
        return _JointPosition(self.first.matcher(), self.second.matcher())


class _JointPosition:
    __slots__ = ("first", "second")

    def __init__(self, first: CheckerPosition, second: CheckerPosition) -> None:
        self.first, self.second = first, second

    @property
    def tokens(self) -> list[int]:
        return self.first.tokens

    def allows(self, token: int) -> bool:
        """Return whether the token may come next."""
        return self.first.allows(token) and self.second.allows(token)

    def advance(self, token: int) -> None:
        """Append a token. If it is not allowed, raise TokenRefused and leave both positions unchanged."""
        if not self.allows(token):
            raise TokenRefused(f"Token {token} is refused here.")
        self.first.advance(token)
        self.second.advance(token)

    def fork(self) -> _JointPosition:
        """Return an independent copy of this position."""
        return _JointPosition(self.first.fork(), self.second.fork())
