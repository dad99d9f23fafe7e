"""The tree of a regular expression: what the parser makes and `positions` reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Union

from .charset import CharSet

__all__ = ["Alternation", "Anchor", "AnchorKind", "Concatenation", "EMPTY", "OneOf", "Repetition", "Term"]

AnchorKind = Literal["begin", "line_begin", "end", "line_end", "last_line_end"]
"""Assertions about the place between two characters.

begin, end: of the text. line_begin: or after a line terminator. line_end: or before one. last_line_end: end, or
before one "\\n" that ends the text (`$` of Python without flag m).
"""


@dataclass(frozen=True, slots=True)
class OneOf:
    """One character of a set, which may be empty."""

    charset: CharSet


@dataclass(frozen=True, slots=True)
class Anchor:
    """The empty text at a place of this kind. Looking around and word boundaries would be further kinds."""

    kind: AnchorKind


@dataclass(frozen=True, slots=True)
class Concatenation:
    """One after the other."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of them, at least one option."""

    options: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """low to high times (None: no bound). Lazy or greedy is the same language."""

    term: Term
    low: int
    high: int | None


Term = Union[OneOf, Anchor, Concatenation, Alternation, Repetition]
EMPTY = Concatenation(())
