"""Whether a constraint accepts a text, by bytes or by tokens."""

from __future__ import annotations

from collections.abc import Iterable

from constrain.base.errors import TokenRefused
from constrain.engine.constraint import Constraint
from constrain.engine.matcher import Matcher

__all__ = ["accepts_text", "accepts_tokens", "advance_copy"]


def accepts_text(constraint: Constraint, text: str | bytes) -> bool:
    """Return whether a complete text is in the language of a constraint."""
    matcher = advance_copy(constraint.matcher(), text)
    return matcher is not None and matcher.is_complete


def accepts_tokens(constraint: Constraint, tokens: Iterable[int]) -> bool:
    """Return whether tokens spell a complete text of a constraint, each allowed where it comes."""
    matcher = constraint.matcher()
    for token in tokens:
        if not matcher.allows(token):
            return False
        matcher.advance(token)
    return matcher.is_complete


def advance_copy(matcher: Matcher, text: str | bytes) -> Matcher | None:
    """Return a copy of a matcher after a text, or None if the text is refused."""
    copy = matcher.fork()
    try:
        copy.advance_bytes(text.encode() if isinstance(text, str) else text)
    except TokenRefused:
        return None
    return copy
