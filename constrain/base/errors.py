"""Every exception that constrain raises on purpose, drawn before it is written.

    ConstrainError
    ├── SourceError            the text or document that was given is wrong
    │   ├── SchemaError        not a JSON Schema
    │   ├── RegexError         not a regular expression
    │   └── GrammarError       not a grammar
    ├── UnsupportedError       right, but it asks for what constrain does not enforce
    ├── UnsatisfiableError     right, but no text at all satisfies it
    ├── LimitError             right, but a stated budget was spent
    ├── VocabularyError        a tokenizer whose tokens cannot be told apart as bytes
    ├── ArgumentError          an argument of the right type with a value that makes no sense (a ValueError, too)
    ├── ValueRefused           a text has the form of a schema, yet the Python type takes no such value
    └── TokenRefused           a Matcher was asked to take a token that it does not allow

    UserWarning
    ├── SchemaWarning          a schema that is right as it stands, yet probably not what was meant
    └── VocabularyWarning      a tokenizer that can be used as it stands, yet probably lacks an end token

An error says where (a JSON pointer, or line and column with a caret), what, and what to do.
"""

from __future__ import annotations

from operator import index
from typing import Any

__all__ = [
    "ArgumentError",
    "ConstrainError",
    "GrammarError",
    "LimitError",
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
"""Most characters of a user's input that one part of a message repeats."""
MESSAGE = 2_000
"""Most characters of a cause or hint: whatever is put into it, a message stays within a screen."""
EXCERPT = 72
"""Most characters of a user's text that a message repeats: enough to recognise, not enough to flood a log."""


def shorten_text(text: object, most: int = ECHOED) -> str:
    """Return `text` for a message: at most `most` characters, the middle of a longer one left out."""
    text = str(text)
    if len(text) <= most:
        return text
    head = (most - 1) * 2 // 3
    return f"{text[:head]}…{text[head + 1 - most :]}"


class ConstrainError(Exception):
    """Base of all: catch this to catch everything that constrain raises on purpose.

    cause: one sentence, what is wrong.
    pointer: JSON pointer of the place in a schema (RFC 6901), or None.
    source, position: the text and the 0-based offset in it, or None.
    hint: what to do about it, or "".
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
        """The whole message: cause, place, excerpt with a caret, cure."""
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
    """A schema that is right as it stands, yet probably not what was meant: a misspelt keyword, an unknown format."""


class VocabularyWarning(UserWarning):
    """A tokenizer that can be used as it stands, yet probably lacks an end token."""


class SourceError(ConstrainError):
    """The text or document that was given is wrong."""


class SchemaError(SourceError):
    """Not a JSON Schema."""


class RegexError(SourceError):
    """Not a regular expression."""


class GrammarError(SourceError):
    """Not a grammar."""


class UnsupportedError(ConstrainError):
    """Right, but it asks for what constrain does not enforce: nothing is ever silently ignored."""


class UnsatisfiableError(ConstrainError):
    """Right, but no text at all satisfies it."""


class LimitError(ConstrainError):
    """Right, but a budget of `Limits` was spent."""


class VocabularyError(ConstrainError):
    """A tokenizer whose tokens cannot be told apart as bytes, or that lacks what is needed."""


class ArgumentError(ConstrainError, ValueError):
    """An argument has the right type, and a value that makes no sense."""


class ValueRefused(ConstrainError):
    """A text has the form of the schema, yet the Python type that it was for takes no such value.

    A validator may ask for more than a schema can say. text: what was written.
    """

    text: str = ""


class TokenRefused(ConstrainError):
    """A Matcher was asked to take a token or bytes that it does not allow; it is unchanged."""


def locate_position(source: str, position: int) -> tuple[int, int, str, int]:
    """Line and column (1-based), an excerpt of that line, and where in the excerpt the caret stands."""
    position = max(0, min(position, len(source)))
    start = source.rfind("\n", 0, position) + 1
    end = source.find("\n", position)
    text = source[start : end if end >= 0 else len(source)]
    line, column = source.count("\n", 0, position) + 1, position - start + 1
    left = max(0, min(position - start - EXCERPT // 2, len(text) - EXCERPT))
    excerpt = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[left : left + EXCERPT])
    return line, column, excerpt, position - start - left


def describe_value(value: object) -> str:
    """Return a value for a message: its repr, or its type where that is long or cannot be made."""
    kind = f"a {type(value).__name__}"
    try:
        text = repr(value)
    except Exception:  # a foreign __repr__
        return kind
    return text if len(text) <= 80 else kind


def check_type(name: str, value: object, kinds: type | tuple[type, ...], wanted: str) -> None:
    """Raise TypeError, saying what is `wanted`, unless the argument is an instance of `kinds`."""
    if not isinstance(value, kinds):
        raise TypeError(f"{name} is {describe_value(value)}: {wanted}")


def check_count(name: str, value: Any, least: int = 0) -> int:
    """Return a whole number, also of numpy or torch, as an int; TypeError for others, ArgumentError below `least`."""
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
    """Raise TypeError unless the argument is a text, ArgumentError unless it is one of the options."""
    wanted = f"one of {', '.join(map(repr, options))}"
    check_type(name, value, str, wanted)
    if value not in options:
        raise ArgumentError(f"{name} is {shorten_text(repr(value))}: {wanted}")
