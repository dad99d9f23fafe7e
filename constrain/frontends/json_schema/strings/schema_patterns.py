"""Regular expressions of a schema: parsed once, their cost estimated, their automata built on demand.

`pattern` is ECMA-262, matched anywhere in the text. Its requirement on the length of the text (`^[a-z]{1,255}$`,
`^(?=.{1,255}$)`) becomes an interval, counted beside the automaton of the remaining pattern, its *letters*.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....automata.dfa import SURROGATES, Dfa
from ....base.errors import ConstrainError, LimitError, RegexError, SchemaError, UnsupportedError
from ....base.options import Limits
from ....base.work import memoize_work
from ...regex.charset import list_ranges
from ...regex.pattern_parts import SplitPattern, remove_anchors, split_anchored
from ...regex.prefix_counts import bound_states
from ...regex.regex_dfa import build_dfa, build_split_dfa
from ...regex.regex_parser import parse_pattern
from ...regex.regex_program import expanded_length
from ...regex.regex_tree import Alternation, Concatenation, OneOf, Repetition, Term

__all__ = ["SchemaPattern", "check_pattern", "is_plain_pattern", "letters_dfa", "pattern_dfa", "read_pattern"]

MOST_SMALL_POSITIONS = 14
"""Positions of a pattern up to which the sets of them bound the states of its automaton."""
LEAST_STATES = 64
"""States that any automaton is taken to need: the program that it is built from must not be longer, either."""
INSTRUCTIONS = 4
"""Instructions of a program for each prefix of a word: for a character, to an option, from it, and to another copy."""
UNKNOWN_STATES = 1 << 62


class SchemaPattern(NamedTuple):
    """A parsed pattern.

    term: its tree. split: its body, conditions and lengths. counted: the least and most characters (None: no bound), if
    it constrains them besides its letters. has_text: some text certainly matches. most_states: that its automaton and
    the complement of it can have, so that it need not be built to know that these do not exceed a limit.
    """

    term: Term
    split: SplitPattern
    counted: tuple[int, int | None] | None
    has_text: bool
    most_states: int


@memoize_work(4096)
def read_pattern(pattern: str) -> SchemaPattern:
    """Parse a pattern. Raise RegexError, UnsupportedError or LimitError with the position in the pattern."""
    term = parse_pattern(pattern, dialect="ecma", flags="", nesting=Limits().nesting)
    bare = remove_anchors(term, "search")
    split = split_anchored(term, bare, "search")
    if bare is None:
        return SchemaPattern(term, split, (split.low, split.high) if split.counted else None, False, UNKNOWN_STATES)
    if isinstance(bare, Repetition) and isinstance(bare.term, OneOf) and _has_match(bare.term):
        return SchemaPattern(term, split, (bare.low, bare.high), True, LEAST_STATES)
    return SchemaPattern(term, split, None, _has_match(bare), _bound_states(bare))


def _bound_states(term: Term) -> int:
    """Return an upper bound of the states of the automaton of a tree without anchors."""
    if (positions := expanded_length(term)) <= MOST_SMALL_POSITIONS:
        return max(1 + (1 << positions), LEAST_STATES)
    states = bound_states(term)
    return UNKNOWN_STATES if states is None else LEAST_STATES + INSTRUCTIONS * states


def _has_match(term: Term) -> bool:
    """Return whether some text certainly matches a tree without anchors."""
    if isinstance(term, OneOf):
        # A lone surrogate is not a character, although a pattern may contain it.
        return any(first < SURROGATES[0] or last >= SURROGATES[1] for first, last in list_ranges(term.charset))
    if isinstance(term, Concatenation):
        return all(map(_has_match, term.parts))
    if isinstance(term, Alternation):
        return any(map(_has_match, term.options))
    return isinstance(term, Repetition) and (term.low == 0 or _has_match(term.term))


@memoize_work(4096)
def pattern_dfa(pattern: str, max_states: int) -> Dfa:
    """Return the texts that match the pattern somewhere."""
    return build_dfa(read_pattern(pattern).term, dialect="ecma", match="search", max_states=max_states)


@memoize_work(1024)
def letters_dfa(pattern: str, max_states: int) -> Dfa:
    """Return, for a counted pattern, the texts that match except for their length."""
    return build_split_dfa(read_pattern(pattern).split, dialect="ecma", max_states=max_states)


def check_pattern(pattern: str, pointer: str, limits: Limits) -> None:
    """Raise the error of an invalid regular expression, with its pointer in the schema."""
    try:
        known = read_pattern(pattern)
        if known.most_states > limits.dfa_states:
            (pattern_dfa if known.counted is None else letters_dfa)(pattern, limits.dfa_states)
    except RegexError as error:
        raise SchemaError(
            f"Not a regular expression: {error.cause}",
            pointer=pointer, source=error.source, position=error.position, hint=error.hint,
        ) from None  # fmt: skip
    except (UnsupportedError, LimitError) as error:
        raise relocate_error(error, pointer) from None


def is_plain_pattern(pattern: Any, limits: Limits) -> bool:
    """Return whether a value is a valid pattern that certainly matches some text."""
    if type(pattern) is not str:
        return False
    try:
        check_pattern(pattern, "", limits)
    except ConstrainError:  # The parser raises it with its place.
        return False
    return read_pattern(pattern).has_text


def relocate_error(error: ConstrainError, pointer: str) -> ConstrainError:
    """Return the same error with a pointer in the schema."""
    return type(error)(error.cause, pointer=pointer, source=error.source, position=error.position, hint=error.hint)
