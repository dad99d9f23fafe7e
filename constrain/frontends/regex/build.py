"""From a pattern to its Dfa: subset construction over the items of its program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from ...automata.dfa import MAX_STATES, Dfa, Table
from ...errors import LimitError
from ...style import Limits
from .charset import ALL, one, spans
from .parse import ECMA_TERMINATORS, parse
from .positions import ACCEPT, Items
from .program import compile_program
from .properties import Dialect
from .syntax import Alternation, Anchor, Concatenation, OneOf, Repetition, Term

__all__ = ["Match", "build", "located", "to_counted", "to_dfa", "unanchored"]

Match = Literal["full", "search"]

WORK = 64
"""Items that may be united for each state of the limit: what bounds patterns with few states but large sets."""


def to_dfa(
    pattern: str,
    *,
    dialect: Dialect = "python",
    flags: str = "",
    match: Match = "full",
    max_states: int = MAX_STATES,
) -> Dfa:
    """The texts that match. flags: letters as in an inline group (a i m s x; ecma: i m s).

    RegexError, UnsupportedError, LimitError say where in the pattern.
    """
    term = parse(pattern, dialect=dialect, flags=flags, nesting=Limits().nesting)
    with located(pattern):
        return build(term, dialect=dialect, match=match, max_states=max_states)


@contextmanager
def located(pattern: str) -> Iterator[None]:
    """Budgets spent inside are reported with the pattern."""
    try:
        yield
    except LimitError as error:
        if error.source is not None:
            raise
        raise LimitError(error.cause, source=pattern, position=0, hint=error.hint) from None


def build(term: Term, *, dialect: Dialect, match: Match, max_states: int) -> Dfa:
    """The Dfa of a tree."""
    program = compile_program(term, search=match == "search", max_positions=max_states)
    items = Items(program, one(0x0A) if dialect == "python" else ECMA_TERMINATORS)
    return Dfa.from_table(_determinise(items, max_states))


def _determinise(items: Items, max_states: int) -> Table:
    """A state for each set of items that can be met."""
    after, everything, readers = items.after, items.everything, items.readers

    def simplified(states: int) -> int:
        # What takes any text needs no company.
        return everything | ACCEPT if everything and states & everything == everything else states

    start = simplified(items.start)
    numbers = {start: 0}
    order = [start]
    reached: dict[int, int] = {0: -1}  # From the items that read a character to the next state.
    rows: list[list[int]] = []
    work = WORK * max_states
    for states in order:
        row = []
        for reader in readers:
            reading = states & reader
            number = reached.get(reading)
            if number is None:
                target, rest = 0, reading
                while rest:
                    bit = rest & -rest
                    rest ^= bit
                    target |= after(bit.bit_length() - 1)
                    work -= 1
                target = simplified(target)
                number = numbers.get(target)
                if number is None:
                    number = numbers[target] = len(order) if target else -1
                    if target:
                        order.append(target)
                reached[reading] = number
            row.append(number)
        rows.append(row)
        if len(order) > max_states or items.work > work:
            raise LimitError(
                f"the automaton of the pattern needs more than {max_states} states (max_states), or as much work",
                hint="Simplify the pattern, or raise Limits.dfa_states.",
            )
    return Table(items.bounds, items.classes, rows, [bool(states & ACCEPT) for states in order])


def to_counted(
    pattern: str,
    *,
    dialect: Dialect = "python",
    flags: str = "",
    match: Match = "full",
    max_states: int = MAX_STATES,
) -> tuple[Dfa, int, int | None]:
    """(dfa, low, high): the texts that match are those of `dfa` with low to high characters (None: no bound).

    So that `^[a-z]{1,255}$` is one state and a count. In general low is 0 and high None.
    """
    term = parse(pattern, dialect=dialect, flags=flags, nesting=Limits().nesting)
    bare = unanchored(term, match=match)
    if isinstance(bare, Repetition) and isinstance(bare.term, OneOf):
        charset = bare.term.charset
        return Dfa.from_ranges(spans(charset)).star(), bare.low, bare.high
    with located(pattern):
        return build(term, dialect=dialect, match=match, max_states=max_states), 0, None


def unanchored(term: Term, *, match: Match) -> Term | None:
    """A tree without anchors that, matched in full, takes the texts that `term` takes by `match`; None if that is
    more than taking anchors off both ends."""
    parts = list(term.parts) if isinstance(term, Concatenation) else [term]
    anything = Repetition(OneOf(ALL), 0, None)
    first, last = (parts[0], parts[-1]) if parts else (term, term)
    if isinstance(first, Anchor) and first.kind == "begin":
        del parts[0]
    elif match == "search":
        parts.insert(0, anything)
    if isinstance(last, Anchor) and parts and last.kind in ("end", "last_line_end"):
        parts.pop()
        if last.kind == "last_line_end" and match == "search":
            parts.append(Repetition(OneOf(one(0x0A)), 0, 1))
    elif match == "search":
        parts.append(anything)
    tree = parts[0] if len(parts) == 1 else Concatenation(tuple(parts))
    return None if has_anchor(tree) else tree


def has_anchor(term: Term) -> bool:
    """Whether there is an anchor in it."""
    work = [term]
    while work:
        item = work.pop()
        if isinstance(item, Anchor):
            return True
        if isinstance(item, Concatenation):
            work.extend(item.parts)
        elif isinstance(item, Alternation):
            work.extend(item.options)
        elif isinstance(item, Repetition):
            work.append(item.term)
    return False
