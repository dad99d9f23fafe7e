"""Regular expressions of a schema: parsed once, their cost estimated, their automata built on demand.

`pattern` is ECMA-262, matched anywhere in the text. Its requirement on the length of the text (`^[a-z]{1,255}$`,
`^(?=.{1,255}$)`) becomes an interval, counted beside the automaton of the remaining pattern, its *letters*.
"""

from __future__ import annotations

from typing import NamedTuple

from ....automata.dfa import SURROGATES, Dfa
from ....base.errors import ConstrainError, LimitError, RegexError, SchemaError, UnsupportedError
from ....base.options import Limits
from ....base.work import memoize_work
from ...regex.charset import list_ranges
from ...regex.regex_dfa import build_dfa, build_whole_dfa
from ...regex.regex_parser import parse_pattern
from ...regex.regex_program import expanded_length
from ...regex.regex_tree import Alternation, Concatenation, OneOf, Repetition, Term
from ...regex.whole_pattern import WholePattern, remove_anchors, split_pattern

__all__ = ["SchemaPattern", "check_pattern", "letters_dfa", "pattern_dfa", "read_pattern"]

SMALL = 14
"""Positions of a pattern up to which its automaton cannot exceed 2^14 states, so that it may be built later."""


class SchemaPattern(NamedTuple):
    """A parsed pattern.

    term: its tree. whole: the decomposed tree. counted: the least and most characters (None: no bound), if it
    constrains them besides its letters. has_text: some text certainly matches. small: its automaton cannot exceed the
    limit, so it need not be built to know that.
    """

    term: Term
    whole: WholePattern
    counted: tuple[int, int | None] | None
    has_text: bool
    small: bool


@memoize_work(4096)
def read_pattern(pattern: str) -> SchemaPattern:
    """Parse a pattern. Raise RegexError, UnsupportedError or LimitError with the place in the pattern."""
    term = parse_pattern(pattern, dialect="ecma", flags="", nesting=Limits().nesting)
    whole = split_pattern(term, "search")
    bare = remove_anchors(term, "search")
    if bare is None:
        return SchemaPattern(term, whole, (whole.low, whole.high) if whole.counted else None, False, False)
    if isinstance(bare, Repetition) and isinstance(bare.term, OneOf) and _some(bare.term):
        return SchemaPattern(term, whole, (bare.low, bare.high), True, True)
    return SchemaPattern(term, whole, None, _some(bare), expanded_length(bare) <= SMALL)


def _some(term: Term) -> bool:
    """Return whether some text certainly matches a tree without anchors."""
    if isinstance(term, OneOf):
        # A lone surrogate is no character, although a pattern may contain it.
        return any(first < SURROGATES[0] or last >= SURROGATES[1] for first, last in list_ranges(term.charset))
    if isinstance(term, Concatenation):
        return all(map(_some, term.parts))
    if isinstance(term, Alternation):
        return any(map(_some, term.options))
    return isinstance(term, Repetition) and (term.low == 0 or _some(term.term))


@memoize_work(4096)
def pattern_dfa(pattern: str, max_states: int) -> Dfa:
    """Return the texts that match the pattern somewhere."""
    return build_dfa(read_pattern(pattern).term, dialect="ecma", match="search", max_states=max_states)


@memoize_work(1024)
def letters_dfa(pattern: str, max_states: int) -> Dfa:
    """Return, for a counted pattern, the texts that match except for their length."""
    return build_whole_dfa(read_pattern(pattern).whole, dialect="ecma", max_states=max_states)


def check_pattern(pattern: str, pointer: str, limits: Limits) -> None:
    """Raise the error of an invalid regular expression, at its place in the schema."""
    try:
        known = read_pattern(pattern)
        if not known.small:
            (pattern_dfa if known.counted is None else letters_dfa)(pattern, limits.dfa_states)
    except RegexError as error:
        raise SchemaError(
            f"Not a regular expression: {error.cause}",
            pointer=pointer, source=error.source, position=error.position, hint=error.hint,
        ) from None  # fmt: skip
    except (UnsupportedError, LimitError) as error:
        raise relocate_error(error, pointer) from None


def relocate_error(error: ConstrainError, pointer: str) -> ConstrainError:
    """Return the same error at a place in the schema."""
    return type(error)(error.cause, pointer=pointer, source=error.source, position=error.position, hint=error.hint)
