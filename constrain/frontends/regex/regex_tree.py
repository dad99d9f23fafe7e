"""The tree of a regular expression: what the parser makes and `positions` reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Union

from .charset import CharSet

__all__ = [
    "Alternation", "Anchor", "AnchorKind", "Concatenation", "Direction", "EMPTY", "Lookaround", "OneOf", "Repetition",
    "Term", "repeat_term", "subterms", "walk_terms",
]  # fmt: skip

AnchorKind = Literal["begin", "line_begin", "end", "line_end", "last_line_end"]
"""Assertions about the place between two characters.

begin, end: of the text. line_begin: or after a line terminator. line_end: or before one. last_line_end: end, or
before one "\\n" that ends the text (`$` of Python without flag m).
"""

Direction = Literal["ahead", "behind"]


@dataclass(frozen=True, slots=True)
class OneOf:
    """One character of a set, which may be empty."""

    charset: CharSet


@dataclass(frozen=True, slots=True)
class Anchor:
    """The empty text at a place of this kind."""

    kind: AnchorKind


@dataclass(frozen=True, slots=True)
class Lookaround:
    """The empty text at a place where what follows begins ("ahead"), or what stands before ends ("behind"), with a
    text of the term; negated: where it does not. Word boundaries are made of these."""

    term: Term
    direction: Direction
    negated: bool


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
    """low to high times (None: no bound). Lazy or greedy is the same language: only ordered trees say which."""

    term: Term
    low: int
    high: int | None
    lazy: bool = False


def repeat_term(term: Term, low: int, high: int | None) -> Term:
    """A term low to high times. An option or repetition inside is made part of the count where that is the same."""
    if high == 0 or term is EMPTY:
        return EMPTY
    if isinstance(term, (Anchor, Lookaround)):  # What holds once holds as often as one likes.
        return term if low else EMPTY
    if isinstance(term, Repetition):
        if (term.low, term.high) == (0, 1):
            return Repetition(term.term, 0, high)
        if term.high is None and term.low < 2:
            return Repetition(term.term, low * term.low, None)
    return term if low == high == 1 else Repetition(term, low, high)


def subterms(term: Term) -> tuple[Term, ...]:
    """The terms that it is made of."""
    if isinstance(term, Concatenation):
        return term.parts
    if isinstance(term, Alternation):
        return term.options
    return (term.term,) if isinstance(term, (Repetition, Lookaround)) else ()


def walk_terms(term: Term) -> Iterator[Term]:
    """The term and all that is in it, outer ones first; nesting costs no recursion."""
    work = [term]
    while work:
        item = work.pop()
        yield item
        work.extend(subterms(item))


Term = Union[OneOf, Anchor, Lookaround, Concatenation, Alternation, Repetition]
EMPTY = Concatenation(())
