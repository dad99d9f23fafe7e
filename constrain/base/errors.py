"""The exceptions and warnings of constrain.

    ConstrainError
    ├── SourceError            the given text or document is malformed
    │   ├── SchemaError        not a JSON Schema
    │   ├── RegexError         not a regular expression
    │   └── GrammarError       not a grammar
    ├── UnsupportedError       well-formed, but uses a feature that constrain does not enforce
    ├── UnsatisfiableError     well-formed, but no text satisfies it
    ├── LimitError             well-formed, but a budget of `Limits` was exceeded
    ├── VocabularyError        a tokenizer whose tokens cannot be expressed as bytes
    ├── ArgumentError          an argument has the right type but an invalid value (also a ValueError)
    ├── ValueRefused           a text conforms to the schema, but the Python type rejects its value
    └── TokenRefused           a Matcher was asked to accept a token that it does not allow

    UserWarning
    ├── SchemaWarning          a valid schema that probably does not mean what was intended
    └── VocabularyWarning      a usable tokenizer that probably lacks an end token

A message says where the error is (a JSON pointer, or line and column with a caret), what is wrong, and what to do.
"""

from __future__ import annotations

from operator import index
from typing import Any, NamedTuple

__all__ = [
    "ArgumentError",
    "ConstrainError",
    "GrammarError",
    "LimitError",
    "Refusal",
    "RegexError",
    "SchemaError",
    "SchemaWarning",
    "SourceError",
    "TokenRefused",
    "UnsatisfiableError",
    "UnsupportedError",
    "ValueRefused",
    "VocabularyError",
    "VocabularyWarning",
    "check_choice",
    "check_count",
    "check_type",
    "describe_value",
    "shorten_text",
]

ECHOED = 200
"""Most characters of a user's input in one part of a message."""
MESSAGE = 2_000
"""Most characters of a cause or hint, so that a message fits on a screen."""
EXCERPT = 72
"""Most characters of the source line that a message shows."""


def shorten_text(text: object, most: int = ECHOED) -> str:
    """Return `text` with at most `most` characters, the middle of a longer one replaced by an ellipsis."""
    text = str(text)
    if len(text) <= most:
        return text
    head = (most - 1) * 2 // 3
    return f"{text[:head]}…{text[head + 1 - most :]}"


class ConstrainError(Exception):
    """Base class of the errors that constrain raises.

    Parameters
    ----------
    cause : str
        What is wrong, in one sentence.
    pointer : str, optional
        JSON pointer (RFC 6901) of the location in a schema.
    source : str, optional
        The text that contains the error.
    position : int, optional
        0-based offset of the error in `source`.
    hint : str
        What to do about it.
    """

    def __init__(
        self,
        cause: str,
        *,
        pointer: str | None = None,
        source: str | None = None,
        position: int | None = None,
        hint: str = "",
    ) -> None:
        self.cause = shorten_text(cause, MESSAGE)
        self.pointer = pointer
        self.source = source
        self.position = position
        self.hint = shorten_text(hint, MESSAGE)
        super().__init__(self.render())

    def render(self) -> str:
        """Return the message: cause, location, excerpt with a caret, and hint."""
        parts = [self.cause]
        if self.pointer is not None:
            parts.append(f"  at {shorten_text(self.pointer) or '(the root)'}")
        if self.source is not None and self.position is not None:
            line, column, excerpt, caret = locate_position(self.source, self.position)
            parts.append(f"  at line {line}, column {column}")
            parts.append(f"    {excerpt}")
            parts.append(f"    {' ' * caret}^")
        if self.hint:
            parts.append(f"  {self.hint}")
        return "\n".join(parts)


class SchemaWarning(UserWarning):
    """A valid schema that probably does not mean what was intended, such as a misspelt keyword or unknown format."""


class VocabularyWarning(UserWarning):
    """A usable tokenizer that probably lacks an end token."""


class SourceError(ConstrainError):
    """The given text or document is malformed."""


class SchemaError(SourceError):
    """A document is not a JSON Schema."""


class RegexError(SourceError):
    """A text is not a regular expression."""


class GrammarError(SourceError):
    """A text is not a grammar."""


class UnsupportedError(ConstrainError):
    """A source uses a feature that constrain does not enforce. Nothing is ever silently ignored."""


class UnsatisfiableError(ConstrainError):
    """No text satisfies the source."""


class LimitError(ConstrainError):
    """A budget of `Limits` was exceeded.

    Attributes
    ----------
    is_of_source : bool
        Whether constructing the source, or beginning a text of it, exceeded it, so that an equal source always will.
    shortest : tuple of (int, int, bytes), or None
        Where a number of tokens is too small: it, the tokens of the shortest text, and that text.
    is_of_context : bool
        Whether that number is what the prompt leaves of the model's context.
    """

    is_of_source = is_of_context = False
    shortest: tuple[int, int, bytes] | None = None

    def restate(self) -> LimitError:
        """Return an error that says the same, to be kept or raised once more.

        A kept error must be a restated one: the traceback of one that was raised holds the local variables of all its
        callers, such as the texts that a server was generating.
        """
        error = LimitError(self.cause, pointer=self.pointer, source=self.source, position=self.position, hint=self.hint)
        error.is_of_source, error.is_of_context = self.is_of_source, self.is_of_context
        error.shortest = self.shortest
        return error


class VocabularyError(ConstrainError):
    """The tokens of a tokenizer cannot be expressed as bytes, or a required token is missing."""


class ArgumentError(ConstrainError, ValueError):
    """An argument has the right type but an invalid value."""


class Refusal(NamedTuple):
    """A generated text that satisfies the constraint and was refused by a validator or a check, with the reason."""

    text: str
    reason: str


class ValueRefused(ConstrainError):
    """Every text that was drawn conforms to the constraint, but the Python type or a check refuses its value.

    A validator may check more than a schema can express.

    Attributes
    ----------
    text : str
        The last text.
    refusals : tuple of Refusal
        All texts that were drawn for it, with the reasons, in order.
    """

    text: str = ""
    refusals: tuple[Refusal, ...] = ()


class TokenRefused(ConstrainError):
    """A Matcher was asked to accept a token or bytes that it does not allow. The matcher is unchanged."""


def locate_position(source: str, position: int) -> tuple[int, int, str, int]:
    """Return line and column (1-based), an excerpt of that line, and the offset of the caret in the excerpt."""
    position = max(0, min(position, len(source)))
    start = source.rfind("\n", 0, position) + 1
    end = source.find("\n", position)
    text = source[start : end if end >= 0 else len(source)]
    line, column = source.count("\n", 0, position) + 1, position - start + 1
    left = max(0, min(position - start - EXCERPT // 2, len(text) - EXCERPT))
    excerpt = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[left : left + EXCERPT])
    return line, column, excerpt, position - start - left


def describe_value(value: object) -> str:
    """Return a value for a message: its repr, or its type if the repr is long or fails."""
    kind = f"a {type(value).__name__}"
    try:
        text = repr(value)
    except Exception:  # a foreign __repr__
        return kind
    return text if len(text) <= 80 else kind


def check_type(name: str, value: object, kinds: type | tuple[type, ...], wanted: str) -> None:
    """Raise TypeError unless the argument is an instance of `kinds`. `wanted` completes the message."""
    if not isinstance(value, kinds):
        raise TypeError(f"{name} is {describe_value(value)}: {wanted}")


def check_count(name: str, value: Any, least: int = 0) -> int:
    """Return an integer, also of numpy or torch, as an int.

    Raise TypeError if it is not an integer, ArgumentError if it is less than `least`.
    """
    try:
        if isinstance(value, bool) or type(value).__name__ == "bool_":
            raise TypeError
        number = index(value)
    except Exception:  # also of foreign __index__
        raise TypeError(f"{name} is {describe_value(value)}: it is a whole number from {least} on") from None
    if number < least:
        raise ArgumentError(f"{name} is {number}: it is a whole number from {least} on")
    return number


def check_choice(name: str, value: object, options: tuple[str, ...]) -> None:
    """Raise TypeError unless the argument is a str, ArgumentError unless it is one of the options."""
    wanted = f"one of {', '.join(map(repr, options))}"
    check_type(name, value, str, wanted)
    if value not in options:
        raise ArgumentError(f"{name} is {shorten_text(repr(value))}: {wanted}")
