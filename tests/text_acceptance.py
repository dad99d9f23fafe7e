"""Whether a constraint accepts a text, byte by byte."""

from __future__ import annotations

from constrain.base.errors import TokenRefused
from constrain.engine.constraint import Constraint
from constrain.engine.matcher import Matcher

__all__ = ["accepts_text", "advance_copy"]


def accepts_text(constraint: Constraint, text: str | bytes) -> bool:
    """Return whether a complete text is in the language of a constraint."""
    matcher = advance_copy(constraint.matcher(), text)
    return matcher is not None and matcher.is_complete


def advance_copy(matcher: Matcher, text: str | bytes) -> Matcher | None:
    """Return a copy of a matcher after a text, or None if the text is refused."""
    copy = matcher.fork()
    try:
        copy.advance_bytes(text.encode() if isinstance(text, str) else text)
    except TokenRefused:
        return None
    return copy
