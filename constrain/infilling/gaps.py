"""Gaps and spans: a partly known text as a sequence of segments.

A text with holes is a sequence of *spans*. A known span is a text (str or bytes) or token ids; an unknown one is a
`Gap`, or None for exactly one unknown token, as masked diffusion models write it. `read_spans` checks them and returns
*segments*, of which there are three kinds: known bytes, positions of tokens (known or unknown), and unknown text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..base.errors import ArgumentError, LimitError, check_choice, check_count, check_type, describe_value
from ..engine.token_checks import check_token
from ..forms.form import Form, as_form
from ..forms.sources import regex

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["Gap", "KnownText", "Segment", "Span", "TextGap", "TokenPositions", "read_spans"]

MOST_POSITIONS = 1_000_000
"""Maximum number of positions of a gap in tokens; each takes memory before anything is decided."""


@dataclass(frozen=True, slots=True)
class Gap:
    """An unknown part of a text.

    Parameters
    ----------
    low : int
        Fewest characters or tokens.
    high : int or None
        Most characters or tokens; None for no upper bound, which tokens must have.
    unit : {"characters", "tokens"}
        What `low` and `high` count. "characters": any text, whatever its tokens are. "tokens": `high` positions of one
        token each, as in the sequence of a masked diffusion model. If fewer tokens are needed, the last positions of
        the gap are absent.
    form : Form or str, optional
        A constraint of the gap's own text; a str means exactly this text. It may have any number of tokens or
        characters within the bounds.
    end_tokens : {"allowed", "refused"}
        Whether positions of a gap in tokens may hold end tokens, after which only end tokens may follow. These models
        fill what remains of a sequence with them.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ArgumentError
        If a bound is negative, `high` is less than `low`, or the number of tokens has no bound.
    """

    low: int = 0
    high: int | None = None
    unit: Literal["characters", "tokens"] = "characters"
    form: Form | str | None = None
    end_tokens: Literal["allowed", "refused"] = "allowed"

    def __post_init__(self) -> None:
        check_choice("Gap(unit=...)", self.unit, ("characters", "tokens"))
        check_choice("Gap(end_tokens=...)", self.end_tokens, ("allowed", "refused"))
        object.__setattr__(self, "low", check_count("Gap(low=...)", self.low))
        if self.high is not None:
            object.__setattr__(self, "high", check_count("Gap(high=...)", self.high))
            if self.high < self.low:
                raise ArgumentError(f"Gap(low={self.low}, high={self.high}): counts ascend from 0")
            if self.unit == "tokens" and self.high > MOST_POSITIONS:
                raise LimitError(
                    f"a Gap has {self.high:,} positions of tokens: at most {MOST_POSITIONS:,} are possible"
                )
        elif self.unit == "tokens":
            raise ArgumentError(
                "Gap(unit='tokens') needs high=..., the number of its positions", hint="Leave unit out for any text."
            )
        if self.form is not None:
            check_type("Gap(form=...)", self.form, (Form, str), "give a form, such as constrain.regex('[0-9]+')")

    @classmethod
    def tokens(cls, count: int, form: Form | str | None = None) -> Gap:
        """Return the gap of exactly `count` tokens, where the last ones may be end tokens.

        Parameters
        ----------
        count : int
            The number of tokens.
        form : Form or str, optional
            A constraint of the gap's own text.

        Returns
        -------
        Gap
        """
        return cls(count, count, "tokens", form)

    def text_form(self) -> Form | None:
        """Return the form of the texts of a gap in characters; None if any text may stand there."""
        form = _as_form(self.form)
        if self.low == 0 and self.high is None:
            return form
        counted = regex(f"(?s:.{{{self.low},{'' if self.high is None else self.high}}})")
        return counted if form is None else form & counted


Span: TypeAlias = "str | bytes | int | Sequence[int | None] | Gap | None"
"""What a caller gives for a part of a text."""


@dataclass(frozen=True, slots=True)
class KnownText:
    """Known bytes, in whatever tokens."""

    data: bytes


@dataclass(frozen=True, slots=True)
class TokenPositions:
    """Positions of one token each.

    known : tuple of int or None
        The token at each position; None where it is unknown.
    low : int
        Fewest positions that hold a token; the others, at the end, may be absent.
    form : Form or None
        The constraint of the text of these positions.
    end_tokens : str
        As in `Gap`.
    """

    known: tuple[int | None, ...]
    low: int
    form: Form | None = None
    end_tokens: Literal["allowed", "refused"] = "allowed"


@dataclass(frozen=True, slots=True)
class TextGap:
    """Unknown text that `form` matches; any bytes if it is None."""

    form: Form | None


Segment: TypeAlias = KnownText | TokenPositions | TextGap


def read_spans(spans: Any, vocabulary: Vocabulary) -> list[Segment]:
    """Check spans and return the segments that they stand for.

    Raise TypeError for a span of another type, ArgumentError for a token that the vocabulary does not have.
    """
    if isinstance(spans, (str, bytes, bytearray, memoryview, Gap)) or not isinstance(spans, Iterable):
        raise TypeError(f"spans is {describe_value(spans)}: give a list of texts, token ids and constrain.Gap(...)")
    found = (one for span in spans for one in _read_span(span, vocabulary))
    return [joined for kind, group in groupby(found, _join_kind) for joined in _join_segments(kind, list(group))]


def _join_kind(segment: Segment) -> type[Segment] | None:
    """Return the kind of segments that this one can be joined with: known text, or a fixed number of any tokens. None
    if it stays by itself.
    """
    if isinstance(segment, KnownText):
        return KnownText
    if not isinstance(segment, TokenPositions):
        return None
    is_plain = segment.low == len(segment.known) and segment.form is None and segment.end_tokens == "allowed"
    return TokenPositions if is_plain else None


def _join_segments(kind: type[Segment] | None, segments: Sequence[Segment]) -> Sequence[Segment]:
    """Return successive segments of a kind as one."""
    if kind is KnownText:
        return [KnownText(b"".join(one.data for one in segments if isinstance(one, KnownText)))]
    if kind is TokenPositions:
        known = tuple(token for one in segments if isinstance(one, TokenPositions) for token in one.known)
        return [TokenPositions(known, len(known))]
    return segments


def _read_span(span: Any, vocabulary: Vocabulary) -> list[Segment]:
    """Return the segments of one span."""
    if isinstance(span, Gap):
        if span.unit == "characters":
            return [TextGap(span.text_form())]
        assert span.high is not None, "checked when the Gap was made"
        return [TokenPositions((None,) * span.high, span.low, _as_form(span.form), span.end_tokens)]
    if isinstance(span, str):
        return [KnownText(_encode(span))] if span else []
    if isinstance(span, (bytes, bytearray, memoryview)):
        return [KnownText(bytes(span))] if len(span) else []
    if span is None:
        return [TokenPositions((None,), 1)]
    known = _read_tokens(span, vocabulary)
    return [TokenPositions(known, len(known))] if known else []


def _read_tokens(span: Any, vocabulary: Vocabulary) -> tuple[int | None, ...]:
    """Return the tokens of a span, None for unknown ones: one id, or a sequence, also of numpy."""
    try:
        return (_read_token(span, vocabulary),)
    except TypeError:
        pass
    try:
        return tuple(None if one is None else _read_token(one, vocabulary) for one in span)
    except TypeError:
        raise TypeError(
            f"a span is {describe_value(span)}: give a text, token ids, None for one unknown token, or constrain.Gap()"
        ) from None


def _read_token(token: Any, vocabulary: Vocabulary) -> int:
    """Return a token id as an int. Raise ArgumentError if the vocabulary does not have it."""
    number = check_token(token)
    if not 0 <= number < vocabulary.size:
        raise ArgumentError(f"spans hold token {number}: the vocabulary has {vocabulary.size} tokens")
    return number


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ArgumentError("a span holds half of a surrogate pair, which is not a character") from None


def _as_form(form: Form | str | None) -> Form | None:
    """Return a form; a str means exactly this text."""
    return None if form is None else as_form(form)
