"""Backreferences to groups with a small finite language, which are regular: `(['"]).*\\1` is `'.*'|".*"`.

A reference is expanded if its group precedes it in the same concatenation, so that the group has certainly matched,
and if the group has at most MOST_TEXTS texts, all of which a backtracking matcher would try. Others are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from .charset import charset_of, list_ranges
from .regex_tree import EMPTY, Alternation, Concatenation, Lookaround, OneOf, Repetition, Term, walk_terms
from .unicode_properties import Folding, close_over_case

__all__ = ["CaptureGroup", "BackReference", "expand_references"]

MOST_TEXTS = 128
"""Most texts of all referenced groups together: what follows the groups is repeated for each text."""


@dataclass(frozen=True, slots=True)
class CaptureGroup(Concatenation):
    """A capture group, which may be referenced."""

    number: int


@dataclass(frozen=True, slots=True)
class BackReference(Concatenation):
    """The text that a capture group has matched. position: offset of the reference in the pattern."""

    number: int
    position: int
    folding: Folding


def expand_references(tree: Term) -> Term | BackReference:
    """Return the tree with its references expanded, or the first reference that cannot be expanded."""
    budget = MOST_TEXTS
    referenced = {item.number for item in walk_terms(tree) if isinstance(item, BackReference)}

    def expand(parts: tuple[Term, ...]) -> Term:
        """Return a concatenation, expanded for each text of the groups that its later parts reference."""
        nonlocal budget
        for index, part in enumerate(parts):
            if not (budget and isinstance(part, CaptureGroup) and part.number in referenced):
                continue
            if not any(has_reference(later, part.number) for later in parts[index + 1 :]):
                continue
            words = list_texts(part, budget)
            if words is None:
                continue
            budget = min(budget // max(len(words), 1), budget - 1)
            options: list[Term] = []
            for word in sorted(words):
                suffix = tuple(replace_references(later, part.number, word) for later in parts[index + 1 :])
                options.append(expand((*parts[:index], *map(literal, word), *suffix)))
            return Alternation(tuple(options)) if options else OneOf(())
        return Concatenation(parts)

    def literal(char: str) -> Term:
        return OneOf(charset_of(ord(char)))

    made: dict[int, Term] = {}
    for item in reversed(list(walk_terms(tree))):
        if isinstance(item, Concatenation) and not isinstance(item, BackReference):
            parts = tuple(made[id(part)] for part in item.parts)
            expanded = expand(parts)
            made[id(item)] = CaptureGroup((expanded,), item.number) if isinstance(item, CaptureGroup) else expanded
        else:
            made[id(item)] = _replace_subterms(item, made)
    unexpanded = [item for item in walk_terms(made[id(tree)]) if isinstance(item, BackReference)]
    return min(unexpanded, key=lambda item: item.position) if unexpanded else made[id(tree)]


def has_reference(term: Term, number: int) -> bool:
    """Return whether a term contains a reference to the group."""
    return any(isinstance(item, BackReference) and item.number == number for item in walk_terms(term))


def replace_references(term: Term, number: int, word: str) -> Term:
    """Return the term with references to the group replaced by a text."""
    made: dict[int, Term] = {}
    for item in reversed(list(walk_terms(term))):
        if isinstance(item, BackReference) and item.number == number:
            made[id(item)] = Concatenation(
                tuple(OneOf(close_over_case(charset_of(ord(c)), item.folding)) for c in word)
            )
        else:
            made[id(item)] = _replace_subterms(item, made)
    return made[id(term)]


def _replace_subterms(item: Term, made: dict[int, Term]) -> Term:
    """Return a copy of a term with its subterms replaced."""
    if item is EMPTY or isinstance(item, BackReference):
        return item
    if isinstance(item, CaptureGroup):
        return CaptureGroup(tuple(made[id(part)] for part in item.parts), item.number)
    if isinstance(item, Concatenation):
        return Concatenation(tuple(made[id(part)] for part in item.parts))
    if isinstance(item, Alternation):
        return Alternation(tuple(made[id(option)] for option in item.options))
    if isinstance(item, Repetition):
        return Repetition(made[id(item.term)], item.low, item.high)
    return Lookaround(made[id(item.term)], item.direction, item.negated) if isinstance(item, Lookaround) else item


def list_texts(term: Term, most: int) -> set[str] | None:
    """Return the texts of a term, or None if there are more than `most` or if they depend on the context."""
    made: dict[int, set[str] | None] = {}
    for item in reversed(list(walk_terms(term))):
        texts: set[str] | None = None
        if isinstance(item, OneOf):
            if sum(last - first + 1 for first, last in list_ranges(item.charset)) <= most:
                texts = {chr(point) for first, last in list_ranges(item.charset) for point in range(first, last + 1)}
        elif isinstance(item, Concatenation) and not isinstance(item, BackReference):
            texts = _concatenate_texts([made[id(part)] for part in item.parts], most)
        elif isinstance(item, Alternation):
            options = [made[id(option)] for option in item.options]
            texts = None if None in options else {text for option in options for text in option or ()}
        elif isinstance(item, Repetition) and item.high is not None and item.high <= most:
            inner = made[id(item.term)]
            texts = set() if inner is not None else None
            for count in range(item.low, item.high + 1):
                joined = _concatenate_texts([inner] * count, most)
                texts = None if texts is None or joined is None else texts | joined
        made[id(item)] = texts if texts is not None and len(texts) <= most else None
    return made[id(term)]


def _concatenate_texts(parts: list[set[str] | None], most: int) -> set[str] | None:
    """Return all concatenations of one text of each set, or None if there are more than `most`."""
    texts: set[str] = {""}
    for part in parts:
        if part is None or len(texts) * len(part) > most:
            return None
        texts = {first + second for first, second in product(texts, part)}
    return texts
