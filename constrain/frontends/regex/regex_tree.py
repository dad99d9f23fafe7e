"""Syntax tree of a regular expression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Union

from .charset import CharSet

__all__ = [
    "Alternation", "Anchor", "AnchorKind", "Concatenation", "Direction", "EMPTY", "Lookaround", "OneOf", "Repetition",
    "Term", "contains_type", "repeat_term", "subterms", "walk_terms",
]  # fmt: skip

AnchorKind = Literal["begin", "line_begin", "end", "line_end", "last_line_end"]
"""Assertions about a position between two characters.

begin, end: of the text. line_begin: begin, or after a line terminator. line_end: end, or before a line terminator.
last_line_end: end, or before one "\\n" that ends the text (`$` of Python without flag m).
"""

Direction = Literal["ahead", "behind"]


@dataclass(frozen=True, slots=True)
class OneOf:
    """One character of a set, which may be empty."""

    charset: CharSet


@dataclass(frozen=True, slots=True)
class Anchor:
    """The empty text at a position of this kind."""

    kind: AnchorKind


@dataclass(frozen=True, slots=True)
class Lookaround:
    """A lookaround assertion: empty, where a match of the term begins ("ahead") or ends ("behind").

    negated: the assertion holds at positions without such a match. Word boundaries are made of lookarounds.
    """

    term: Term
    direction: Direction
    negated: bool


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Its parts, one after the other."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of its options, of which there is at least one."""

    options: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """A term repeated low to high times (None: unbounded).

    `lazy` does not change the language; it matters in ordered trees.
    """

    term: Term
    low: int
    high: int | None
    lazy: bool = False


def repeat_term(term: Term, low: int, high: int | None) -> Term:
    """Return a term repeated low to high times; merge nested repetitions where that gives the same language."""
    if high == 0 or term is EMPTY:
        return EMPTY
    if isinstance(term, (Anchor, Lookaround)):  # Assertions are idempotent.
        return term if low else EMPTY
    if isinstance(term, Repetition):
        if (term.low, term.high) == (0, 1):
            return Repetition(term.term, 0, high)
        if term.high is None and term.low < 2:
            return Repetition(term.term, low * term.low, None)
    return term if low == high == 1 else Repetition(term, low, high)


def subterms(term: Term) -> tuple[Term, ...]:
    """Return the direct subterms of a term."""
    if isinstance(term, Concatenation):
        return term.parts
    if isinstance(term, Alternation):
        return term.options
    return (term.term,) if isinstance(term, (Repetition, Lookaround)) else ()


def walk_terms(term: Term) -> Iterator[Term]:
    """Iterate over a term and all its subterms in pre-order, without recursion."""
    work = [term]
    while work:
        item = work.pop()
        yield item
        work.extend(subterms(item))


def contains_type(term: Term, kinds: tuple[type, ...]) -> bool:
    """Return whether a term or one of its subterms is of some classes, of which OneOf is none.

    Trees of large patterns have thousands of terms, so their classes are compared, the most frequent ones first.
    """
    work = [term]
    while work:
        item = work.pop()
        kind = item.__class__
        if kind is OneOf:
            continue
        if isinstance(item, kinds):
            return True
        if kind is Repetition:
            work.append(item.term)  # type: ignore[union-attr]
        else:
            work += subterms(item)
    return False


Term = Union[OneOf, Anchor, Lookaround, Concatenation, Alternation, Repetition]
EMPTY = Concatenation(())
