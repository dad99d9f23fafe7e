"""Compile a pattern to grammar nodes: one Chars if its Dfa is small, else several nodes with counted repetitions.

A Dfa unrolls repetitions: `([a-z]{1,63}\\.){1,127}` would have 8,000 states. A Repeat, or a Chars with bounds, counts
in a register instead. So a tree that is large when unrolled is split at its repetitions.
"""

from __future__ import annotations

from typing import Literal

from ...automata.dfa import MAX_STATES, Dfa
from ...base.errors import LimitError, UnsatisfiableError
from ...base.options import Limits
from ...grammar.nodes import EMPTY, Chars, Choice, Grammar, Node, Repeat, Sequence
from ...grammar.nullable_nodes import is_nullable_node
from .charset import list_ranges
from .pattern_parts import SplitPattern, remove_anchors, split_pattern
from .regex_dfa import Match, build_dfa, build_split_dfa, report_pattern
from .regex_parser import parse_pattern
from .regex_tree import Alternation, Concatenation, OneOf, Repetition, Term
from .unicode_properties import Dialect

__all__ = ["Encoding", "to_grammar", "to_node"]

Encoding = Literal["utf8", "json"]
"""How the text is encoded, see `Chars`."""

MOST_UNROLLED = 256
"""Largest unrolled size, in characters, of a pattern that is compiled to a single Dfa."""

SMALL_STATES = 512
"""Most states of such a Dfa: each state costs the vocabulary's mask rows memory and time."""


def to_node(
    pattern: str,
    *,
    dialect: Dialect = "python",
    flags: str = "",
    match: Match = "full",
    max_states: int = MAX_STATES,
    encoding: Encoding = "utf8",
) -> Node:
    """Return a grammar node for the texts that match a pattern.

    Parameters
    ----------
    pattern, dialect, flags, match, max_states
        See `regex_dfa.to_dfa`.
    encoding : {"utf8", "json"}
        How the text is encoded, see `Chars`.

    Returns
    -------
    Node

    Raises
    ------
    RegexError, UnsupportedError, LimitError
        With a position in the pattern.
    UnsatisfiableError
        If no text matches.
    """
    term = parse_pattern(pattern, dialect=dialect, flags=flags, nesting=Limits().nesting)
    bare = remove_anchors(term, match)
    with report_pattern(pattern):
        if bare is not None:
            cutter = _NodeCutter(bare, dialect, encoding)
            node = cutter.node(bare, cutter.sizes[id(bare)], 0)
        else:  # Inner anchors relate neighbouring parts, so the pattern cannot be split.
            split = split_pattern(term, match)
            dfa = build_split_dfa(split, dialect=dialect, max_states=max_states)
            node = _counted(dfa, split, encoding, max_states)
    if node is None:
        raise UnsatisfiableError("no text matches the pattern", source=pattern, position=0)
    return node


def to_grammar(
    pattern: str,
    *,
    dialect: Dialect = "python",
    flags: str = "",
    match: Match = "full",
    max_states: int = MAX_STATES,
    encoding: Encoding = "utf8",
) -> Grammar:
    """Return the Grammar of the texts that match a pattern; parameters and errors are those of `to_node`."""
    node = to_node(pattern, dialect=dialect, flags=flags, match=match, max_states=max_states, encoding=encoding)
    return Grammar(node, {})


def _counted(dfa: Dfa, split: SplitPattern, encoding: Encoding, max_states: int) -> Node | None:
    """Return a Chars of a Dfa with the pattern's interval of lengths; None if it is empty."""
    low, high = split.low, split.high
    if low and not dfa.extensible():  # A counter needs an extensible Dfa, see `grammar.nodes`.
        dfa, low = dfa.with_length(low, max_states=max_states), 0
    least, _ = dfa.lengths()
    if dfa.is_empty or (high is not None and max(least, low) > high):
        return None
    return Chars(dfa, encoding, low, high)


class _NodeCutter:
    """Converter of one tree without anchors to nodes. Methods return None for a term that matches no text."""

    def __init__(self, tree: Term, dialect: Dialect, encoding: Encoding) -> None:
        self.dialect = dialect
        self.encoding = encoding
        self.sizes = _sizes(tree)

    def node(self, term: Term, size: int, depth: int) -> Node | None:
        """Return the node of a term. size: its unrolled length in characters. depth: its depth in the tree."""
        if depth > 2 * Limits().nesting:  # A group adds at most two levels here.
            raise LimitError("groups with large repetitions are nested too deep (Limits.nesting)")
        if isinstance(term, Repetition) and isinstance(term.term, OneOf):
            return self.characters(term, term.term)
        if isinstance(term, OneOf):
            return self.chars(Dfa.from_ranges(list_ranges(term.charset)))
        if size <= MOST_UNROLLED:
            try:
                return self.chars(build_dfa(term, dialect=self.dialect, match="full", max_states=SMALL_STATES))
            except LimitError:
                pass
        if isinstance(term, Concatenation):
            return self.sequence(term, depth)
        if isinstance(term, Alternation):
            return self.choice(term, depth)
        assert isinstance(term, Repetition), "anchors have been taken off"
        return self.repeat(term, depth)

    def chars(self, dfa: Dfa) -> Node | None:
        if dfa.lengths() == (0, 0):
            return EMPTY
        return None if dfa.is_empty else Chars(dfa, self.encoding)

    def characters(self, term: Repetition, inner: OneOf) -> Node | None:
        """Return the node of a repeated character set."""
        dfa = Dfa.from_ranges(list_ranges(inner.charset))
        if dfa.is_empty:
            return None if term.low else EMPTY
        if term.high is None and term.low < 2:
            return self.chars(dfa.repeat(term.low, None))
        return Chars(dfa.star(), self.encoding, term.low, term.high)

    def sequence(self, term: Concatenation, depth: int) -> Node | None:
        nodes: list[Node] = []
        for part, size in self.grouped(term.parts):
            node = self.node(Concatenation(part) if len(part) > 1 else part[0], size, depth + 1)
            if node is None:
                return None
            if node != EMPTY:
                nodes.append(node)
        return nodes[0] if len(nodes) == 1 else Sequence(tuple(nodes)) if nodes else EMPTY

    def choice(self, term: Alternation, depth: int) -> Node | None:
        nodes = []
        for part, size in self.grouped(term.options):
            node = self.node(Alternation(part) if len(part) > 1 else part[0], size, depth + 1)
            if node is not None:
                nodes.append(node)
        return None if not nodes else nodes[0] if len(nodes) == 1 else Choice(tuple(nodes))

    def grouped(self, terms: tuple[Term, ...]) -> list[tuple[tuple[Term, ...], int]]:
        """Group neighbours whose total size is small; return groups with their sizes.

        If all terms would form a single group, each is its own group, so that the recursion makes progress.
        """
        groups: list[tuple[tuple[Term, ...], int]] = []
        for term in terms:
            size = self.sizes[id(term)]
            if groups and groups[-1][1] + size <= MOST_UNROLLED // 2:
                groups[-1] = ((*groups[-1][0], term), groups[-1][1] + size)
            else:
                groups.append(((term,), size))
        return groups if len(groups) > 1 else [((term,), self.sizes[id(term)]) for term in terms]

    def repeat(self, term: Repetition, depth: int) -> Node | None:
        """Return a counted repetition.

        Its body excludes the empty text where possible, because empty rounds would use up the count.
        """
        inner = self.node(term.term, self.sizes[id(term.term)], depth + 1)
        low = term.low
        if inner is None or inner == EMPTY:
            return EMPTY if inner == EMPTY or not low else None
        if is_nullable_node(inner):
            low = 0
            if isinstance(inner, Chars) and inner.high is None:
                inner = Chars(inner.dfa.subtract(Dfa.from_strings([""])), self.encoding)
            elif isinstance(inner, Chars):
                inner = Chars(inner.dfa, self.encoding, 1, inner.high)
        return Repeat(inner, low, term.high)


def _sizes(tree: Term) -> dict[int, int]:
    """Return the unrolled number of characters of each term, by id."""
    order, work = [], [tree]
    while work:
        term = work.pop()
        order.append(term)
        if isinstance(term, Concatenation):
            work.extend(term.parts)
        elif isinstance(term, Alternation):
            work.extend(term.options)
        elif isinstance(term, Repetition):
            work.append(term.term)
    sizes: dict[int, int] = {}
    for term in reversed(order):
        if isinstance(term, Concatenation):
            size = sum(sizes[id(part)] for part in term.parts)
        elif isinstance(term, Alternation):
            size = sum(sizes[id(option)] for option in term.options)
        elif isinstance(term, Repetition):
            size = sizes[id(term.term)] * max(term.low, term.high or 0, 1)
        else:
            size = 1
        sizes[id(term)] = size
    return sizes
