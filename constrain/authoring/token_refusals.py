"""Why a token is refused at a position: the first refused byte, what was expected there, and which keywords refuse it.

explain_token(matcher, token)  ->  TokenRefusal, or None if the token is allowed
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base.errors import ArgumentError, check_type, shorten_text
from ..engine.matcher import Matcher
from .explanations import ByteRefusal, join_words, locate_refusal, refusal_of
from .rendering.readable_tokens import show_bytes
from .schema_ablation import Ablation, find_refusing_keywords

if TYPE_CHECKING:
    from ..engine.constraint import Constraint

__all__ = ["TokenRefusal", "explain_token", "explain_text"]


@dataclass(frozen=True, slots=True)
class TokenRefusal:
    """Why a token, or a text, may not come next.

    Attributes
    ----------
    text : str
        What was refused, in a readable form.
    place : ByteRefusal
        The first refused byte, counted from the beginning of the token, and what was expected instead.
    ablation : Ablation or None
        The keywords that refuse it; None if the constraint was not made of a JSON Schema.
    note : str
        Why a token without text is refused; otherwise empty.
    """

    text: str
    place: ByteRefusal | None
    ablation: Ablation | None = None
    note: str = ""

    @property
    def reason(self) -> str:
        """The reason as a phrase."""
        found = self.ablation
        if self.note:
            return self.note
        if found is None or found.cause == "unknown":
            return f"expected: {join_words(self.place.expected)}" if self.place is not None else ""
        if found.cause == "json":
            return "no JSON text goes on like this"
        parts = [str(keyword) for keyword in found.keywords]
        if found.style:
            parts.append(f"Style: {', '.join(found.style)}")
        if found.cause == "style":
            return f"the style does not write it so ({', '.join(found.style)})"
        if len(parts) == 1:
            return f"refused by {parts[0]}"
        if found.cause == "all keywords":
            return f"refused by each of these: {'; '.join(parts)}"
        return f"refused by these together, and allowed without any one of them: {'; '.join(parts)}"

    def __str__(self) -> str:
        return f"{self.text}: {self.reason}"


def explain_token(matcher: Matcher, token: int | bytes | str) -> TokenRefusal | None:
    """Explain why a token may not come next.

    The matcher does not change. For a JSON Schema, up to `schema_ablation.MOST_COMPILATIONS` variants of it are
    compiled, each without some keywords: usually some milliseconds, and at most that many times what the schema takes.

    Parameters
    ----------
    matcher : Matcher
        The position.
    token : int, bytes or str
        The id of a token, or a text.

    Returns
    -------
    TokenRefusal or None
        None if the token is allowed.

    Raises
    ------
    TypeError
        If `token` is none of these.
    ArgumentError
        If the vocabulary has no such token.
    """
    check_type("matcher", matcher, Matcher, "give what Constraint.matcher() returns")
    check_type("token", token, (int, bytes, str), "give the id of a token, or a text")
    if isinstance(token, int):
        return explain_id(matcher, token)
    try:
        text = token.encode() if isinstance(token, str) else token
    except UnicodeEncodeError:
        raise ArgumentError("the text contains half of a surrogate pair, which is not a character") from None
    return explain_text(matcher, text)


def explain_id(matcher: Matcher, token: int) -> TokenRefusal | None:
    """Explain why the token with this id may not come next; None if it is allowed."""
    vocabulary = matcher.constraint.vocabulary
    if not 0 <= token < vocabulary.size:
        raise ArgumentError(f"there is no token {shorten_text(token, 40)}; the vocabulary has {vocabulary.size:,}")
    if matcher.allows(token):
        return None
    if token in vocabulary.eos_ids:
        return explain_end(matcher)
    text = vocabulary.tokens[token]
    if not text:
        name = vocabulary.original_names.get(token, b"padding").decode("utf-8", "replace")
        return TokenRefusal(
            show_bytes(name.encode()), None, None, "a special token has no text: it never occurs in one"
        )
    refusal = explain_text(matcher, text)
    note = "no sequence of tokens could continue the text after it"
    return TokenRefusal(show_bytes(text), None, None, note) if refusal is None else refusal


def explain_text(matcher: Matcher, text: bytes) -> TokenRefusal | None:
    """Explain why a text may not come next; None if it is allowed."""
    place = refusal_of(matcher, text)
    if place is None:
        return None
    begun = matcher.text + text[: place.offset + 1]
    return TokenRefusal(show_bytes(text), place, ablate(matcher.constraint, begun, must_end=""))


def explain_end(matcher: Matcher) -> TokenRefusal:
    """Explain why the text may not end at a position."""
    place = locate_refusal(matcher, b"", 0)
    return TokenRefusal("the end of the text", place, ablate(matcher.constraint, matcher.text, must_end="yes"))


def ablate(constraint: Any, text: bytes, *, must_end: str) -> Ablation | None:
    """Return what refuses a text, or that it ends; None if the constraint was not made of a JSON Schema."""
    source = getattr(constraint, "source", None)
    if not source or "schema" not in source:
        return None

    def accepts(other: Constraint) -> bool:
        position = other.matcher()
        position.advance_bytes(text)
        return position.is_complete if must_end else not position.is_stuck

    return find_refusing_keywords(source, accepts, constraint.limits)
