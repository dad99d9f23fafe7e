"""Split a pattern into a body, conditions on the entire text, and an interval of lengths.

`^(?!.*://)(?=.{1,255}$)([a-z]{1,63}\\.)+$` has lookarounds only at the ends of the text, so it is a conjunction. The
body and each condition become small automata, which are intersected (`build_split_dfa`); a condition on the length
alone needs no states, because a counter enforces it. Bounds that the length implies are dropped: a text of at most 255
characters contains at most 127 repetitions of two characters, so `(..){1,127}` needs no count.
"""

from __future__ import annotations

from typing import NamedTuple

from .charset import ALL, CharSet, charset_of, contains_point, intersect_charsets, unite_charsets
from .regex_program import Search
from .regex_tree import (
    Alternation,
    Anchor,
    Concatenation,
    Lookaround,
    OneOf,
    Repetition,
    Term,
    contains_type,
    walk_terms,
)

__all__ = ["Interval", "SplitPattern", "has_lookarounds", "remove_anchors", "split_anchored", "split_pattern"]

Interval = tuple[int, "int | None"]
"""Least and greatest number of characters; None if unbounded."""


class SplitPattern(NamedTuple):
    """The texts that match `body` by `search`, satisfy all conditions, and have low to high characters.

    high None means unbounded. A lookahead condition applies at the beginning of the text, a lookbehind condition at its
    end.
    """

    body: Term
    search: Search
    conditions: tuple[Lookaround, ...] = ()
    low: int = 0
    high: int | None = None

    @property
    def counted(self) -> bool:
        """Whether the interval of lengths is a constraint."""
        return (self.low, self.high) != (0, None)


def has_lookarounds(term: Term) -> bool:
    """Return whether a tree contains lookarounds."""
    return contains_type(term, (Lookaround,))


def split_pattern(term: Term, search: Search) -> SplitPattern:
    """Split a pattern.

    Everything other than conditions and lengths remains in the body, which may be the entire pattern.
    """
    return split_anchored(term, remove_anchors(term, search), search)


def split_anchored(term: Term, bare: Term | None, search: Search) -> SplitPattern:
    """Split a pattern of which `remove_anchors` has returned `bare`."""
    if isinstance(bare, Repetition) and isinstance(bare.term, OneOf):
        return SplitPattern(Repetition(bare.term, 0, None), "full", (), bare.low, bare.high)
    if bare is not None or not has_lookarounds(term):
        return SplitPattern(term, search)
    body, conditions = _separate_conditions(flatten_term(term), search)
    inner = split_pattern(body, search) if conditions and not has_lookarounds(body) else SplitPattern(body, search)
    low, high = inner.low, inner.high
    characters = _find_characters(inner)
    remaining = []
    for lookaround in conditions:
        interval, condition = _find_length(lookaround, characters)
        low = max(low, interval[0])
        high = interval[1] if high is None else high if interval[1] is None else min(high, interval[1])
        remaining += [] if condition is None else [condition]
    body = inner.body if high is None else _drop_vacuous_bounds(inner.body, high)
    return SplitPattern(body, inner.search, tuple(remaining), low, high)


def remove_anchors(term: Term, search: Search) -> Term | None:
    """Return an equivalent tree without anchors, to be matched in full.

    Return None unless removing anchors at both ends suffices.
    """
    parts = list(term.parts) if isinstance(term, Concatenation) else [term]
    anything = Repetition(OneOf(ALL), 0, None)
    first, last = (parts[0], parts[-1]) if parts else (term, term)
    if isinstance(first, Anchor) and first.kind == "begin":
        del parts[0]
    elif search == "search":
        parts.insert(0, anything)
    if isinstance(last, Anchor) and parts and last.kind in ("end", "last_line_end"):
        parts.pop()
        if last.kind == "last_line_end" and search == "search":
            parts.append(Repetition(OneOf(charset_of(0x0A)), 0, 1))
    elif search == "search":
        parts.append(anything)
    tree = parts[0] if len(parts) == 1 else Concatenation(tuple(parts))
    return None if contains_type(tree, (Anchor, Lookaround)) else tree


def flatten_term(term: Term) -> list[Term]:
    """Return the parts of a concatenation, with directly nested concatenations flattened."""
    parts: list[Term] = []
    work = [term]
    while work:
        item = work.pop()
        if isinstance(item, Concatenation):
            work.extend(reversed(item.parts))
        else:
            parts.append(item)
    return parts


def _separate_conditions(parts: list[Term], search: Search) -> tuple[Term, list[Lookaround]]:
    """Return the tree without the lookarounds that are conditions on the entire text, and these conditions."""
    widthless = [isinstance(part, (Anchor, Lookaround)) for part in parts]
    head = widthless.index(False) if False in widthless else len(parts)
    tail = len(parts) - widthless[::-1].index(False) if False in widthless else 0
    begins = search == "full" or any(isinstance(part, Anchor) and part.kind == "begin" for part in parts[:head])
    ends = search == "full" or any(isinstance(part, Anchor) and part.kind == "end" for part in parts[tail:])
    body: list[Term] = []
    conditions: list[Lookaround] = []
    for index, part in enumerate(parts):
        ahead = begins and index < head and isinstance(part, Lookaround) and part.direction == "ahead"
        behind = ends and index >= tail and isinstance(part, Lookaround) and part.direction == "behind"
        if (ahead or behind) and isinstance(part, Lookaround):
            conditions.append(part)
        else:
            body.append(part)
    return body[0] if len(body) == 1 else Concatenation(tuple(body)), conditions


def _find_characters(split: SplitPattern) -> CharSet:
    """Return a superset of the characters that texts of the body can contain."""
    parts = flatten_term(split.body)
    kinds = [part.kind if isinstance(part, Anchor) else "" for part in (*parts[:1], *parts[-1:])]
    if split.search != "full" and kinds != ["begin", "end"]:
        return ALL
    return unite_charsets(item.charset for item in walk_terms(split.body) if isinstance(item, OneOf))


def _find_length(lookaround: Lookaround, characters: CharSet) -> tuple[Interval, Lookaround | None]:
    """Split a condition into an interval of lengths and the remaining condition, None if nothing remains.

    characters: those of the body.
    """
    unchanged: tuple[Interval, Lookaround | None] = ((0, None), lookaround)
    parts = flatten_term(lookaround.term)
    if lookaround.direction == "ahead" and parts and parts[0] == Anchor("begin"):
        del parts[0]
    # Without newlines in the body, `$` of Python only matches at the end.
    ends = parts[-1:] == [Anchor("end")] or (
        parts[-1:] == [Anchor("last_line_end")] and not contains_point(characters, 0x0A)
    )
    if lookaround.direction == "behind" or len(parts) != 1 + ends:
        return unchanged
    item = parts[0]
    run = item if isinstance(item, Repetition) else Repetition(item, 1, 1)
    if not isinstance(run.term, OneOf):
        return unchanged
    subset = intersect_charsets(characters, run.term.charset) == characters
    low, high = run.low, run.high
    if not lookaround.negated and ends:
        condition = Lookaround(Concatenation((Repetition(run.term, 0, None), Anchor("end"))), "ahead", False)
        return (low, high), None if subset else condition
    if not subset:
        return unchanged
    if not lookaround.negated:
        return (low, None), None
    if low and (high is None or not ends):
        return (0, low - 1), None
    if ends and low == 0 and high is not None:
        return (high + 1, None), None
    return unchanged


def _drop_vacuous_bounds(term: Term, most: int) -> Term:
    """Remove upper bounds of repetitions that no text of at most `most` characters can reach."""
    shortest: dict[int, int] = {}
    made: dict[int, Term] = {}
    for item in reversed(list(walk_terms(term))):
        new = item
        if isinstance(item, Concatenation):
            size = sum(shortest[id(part)] for part in item.parts)
            new = Concatenation(tuple(made[id(part)] for part in item.parts))
        elif isinstance(item, Alternation):
            size = min(shortest[id(option)] for option in item.options)
            new = Alternation(tuple(made[id(option)] for option in item.options))
        elif isinstance(item, Repetition):
            each = shortest[id(item.term)]
            size = each * item.low
            vacuous = item.high is not None and (item.high + 1) * each > most
            new = Repetition(made[id(item.term)], item.low, None if vacuous else item.high)
        else:
            size = int(isinstance(item, OneOf))
        shortest[id(item)], made[id(item)] = size, new
    return made[id(term)]
