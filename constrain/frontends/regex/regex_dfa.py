"""Compile a pattern to a Dfa: subset construction over the items of its program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np

from ...automata.dfa import MAX_STATES, Dfa, Table
from ...base.errors import LimitError
from ...base.options import Limits
from ...base.work import UNLIMITED, active_budget, spend_work
from ...kernels.automata_layout import NO_SPACE, TOO_MANY_STATES
from ...kernels.entry_points import determinise_positions
from ...kernels.position_sets_layout import FOUND_W, find_scratch_length
from .charset import CharSet, charset_of
from .lookaround_threads import WORK, build_with_lookarounds, pattern_too_large
from .pattern_parts import SplitPattern, has_lookarounds, split_pattern
from .regex_parser import ECMA_TERMINATORS, parse_pattern
from .regex_positions import ACCEPT, PATTERN, PositionItems
from .regex_program import Search, compile_program
from .regex_tree import Term
from .unicode_properties import Dialect

__all__ = ["Match", "build_dfa", "build_split_dfa", "report_pattern", "to_counted_dfa", "to_dfa"]

Match = Literal["full", "search"]
UNITS_AT_ONCE = 1024
"""Units of work after which they are charged."""
MOST_KERNEL_ITEMS, LEAST_STEPS, STEPS_PER_ITEM = 2_000, 10_000, 32
"""A kernel makes the states of fewer items, if finding what follows them takes no more than so many steps."""
LEAST_CAPACITY = 64
"""States that the kernel has space for at first."""


def to_dfa(
    pattern: str,
    *,
    dialect: Dialect = "python",
    flags: str = "",
    match: Match = "full",
    max_states: int = MAX_STATES,
) -> Dfa:
    """Return the Dfa of the texts that match a pattern.

    Parameters
    ----------
    pattern : str
        The regular expression.
    dialect : {"python", "ecma"}
        Its syntax and semantics.
    flags : str
        Letters as in an inline group: a, i, m, s, u, x; of "ecma" i, m, s, u.
    match : {"full", "search"}
        Whether all of a text or some part of it must match.
    max_states : int
        Most states of the Dfa.

    Returns
    -------
    Dfa

    Raises
    ------
    RegexError, UnsupportedError, LimitError
        With a position in the pattern.
    """
    term = parse_pattern(pattern, dialect=dialect, flags=flags, nesting=Limits().nesting)
    with report_pattern(pattern):
        return build_dfa(term, dialect=dialect, match=match, max_states=max_states)


@contextmanager
def report_pattern(pattern: str) -> Iterator[None]:
    """Add the pattern to a LimitError raised inside the context."""
    try:
        yield
    except LimitError as error:
        if error.source is not None:
            raise
        raise LimitError(error.cause, source=pattern, position=0, hint=error.hint) from None


def build_dfa(term: Term, *, dialect: Dialect, match: Match, max_states: int) -> Dfa:
    """Return the Dfa of a tree."""
    if not has_lookarounds(term):
        return _build_without_lookarounds(term, dialect, match, max_states)
    split = split_pattern(term, match)
    dfa = build_split_dfa(split, dialect=dialect, max_states=max_states)
    return dfa.with_length(split.low, split.high, max_states=max_states)


def build_split_dfa(split: SplitPattern, *, dialect: Dialect, max_states: int) -> Dfa:
    """Return the Dfa of a decomposed pattern, without its interval of lengths."""
    dfa = _build_automaton(split.body, dialect, split.search, max_states)
    for look in split.conditions:
        condition = _build_automaton(look.term, dialect, look.direction, max_states)
        combine = dfa.subtract if look.negated else dfa.intersect
        dfa = combine(condition, max_states=max_states)
    return dfa


def _build_automaton(term: Term, dialect: Dialect, search: Search, max_states: int) -> Dfa:
    """Return the Dfa of a tree: from sets of items, or from threads if it has lookarounds."""
    if has_lookarounds(term):
        return build_with_lookarounds(term, newline=newline_charset(dialect), search=search, max_states=max_states)
    return _build_without_lookarounds(term, dialect, search, max_states)


def newline_charset(dialect: Dialect) -> CharSet:
    """Return the line terminators of a dialect."""
    return charset_of(0x0A) if dialect == "python" else ECMA_TERMINATORS


def _build_without_lookarounds(term: Term, dialect: Dialect, search: Search, max_states: int) -> Dfa:
    """Return the Dfa of a tree without lookarounds."""
    program = compile_program(term, search=search, max_positions=max_states)
    try:
        items = PositionItems(program, newline_charset(dialect))
        if len(items.pcs) < MOST_KERNEL_ITEMS:
            following = items.list_following(LEAST_STEPS + STEPS_PER_ITEM * len(items.pcs))
            if following is not None:
                return _determinise_items(items, following, max_states)
        return Dfa.from_table(_determinise(items, max_states))
    except LimitError:
        if not program.chains:
            raise
        # Threads drop dominated copies of a repetition, which keeps `(.{1,63}\\.)+` small.
        return build_with_lookarounds(term, newline=newline_charset(dialect), search=search, max_states=max_states)


def _determinise_items(items: PositionItems, following: list[tuple[int, int]], max_states: int) -> Dfa:
    """Return the Dfa of items of one kind, by a kernel, with the work and the limits of `_determinise`.

    following: for each item, those that may read after it, and the work of finding them.
    """
    classes, words = len(items.readers), 1 + len(items.pcs) // 64
    sets = [items.start, items.everything, items.plain, *items.readers, 0, *(after for after, _ in following)]
    parts = [part.to_bytes(8, "little") for part in (words, classes, 2 + classes // 3)]
    parts += [part.to_bytes(8 * words, "little") for part in sets]
    given = np.frombuffer(b"".join(parts), np.int64)
    budget = active_budget()
    most_units = UNLIMITED if budget is None else max(budget.limit - budget.spent, 0)
    capacity = LEAST_CAPACITY
    while True:
        rows = np.empty((capacity, classes + 1), np.int32)
        scratch = np.empty(find_scratch_length(words, capacity), np.int64)
        status = determinise_positions(given, rows.reshape(-1), scratch, capacity, max_states, most_units)
        if status != NO_SPACE:
            break
        capacity *= 4
    states, units, steps, *stepped = scratch[: FOUND_W + words].tolist()
    found = [work for number, (_, work) in enumerate(following, 1) if stepped[number >> 6] >> (number & 63) & 1]
    items.work += sum(found)
    spend_work(units + len(found) + sum(found), PATTERN)
    if status == TOO_MANY_STATES or items.work > WORK * max_states - steps:
        raise pattern_too_large(max_states)
    return Dfa.from_arrays(items.bounds, items.classes, rows[:states, :-1], rows[:states, -1] != 0)


def _determinise(items: PositionItems, max_states: int) -> Table:
    """Subset construction: build one state per reachable set of items."""
    advance, everything, readers = items.after, items.everything, items.readers

    def simplified(states: int) -> int:
        # An item that accepts any text dominates all others.
        return everything | ACCEPT if everything and states & everything == everything else states

    start = simplified(items.start)
    numbers = {start: 0}
    order = [start]
    reached: dict[int, int] = {0: -1}  # Transition cache: items that read a character -> next state.
    known = reached.get
    rows: list[list[int]] = []
    work = WORK * max_states
    words = 1 + len(items.pcs) * items.width // 2_000
    units = 2 + len(readers) * words // 3
    unpaid = 0
    for states in order:
        unpaid += units
        if unpaid > UNITS_AT_ONCE:
            spend_work(unpaid, PATTERN)
            unpaid = 0
        row = []
        for reader in readers:
            reading = states & reader
            number = known(reading)
            if number is None:
                target, others = items.after_plain(reading)
                unpaid += (1 + others.bit_count()) * words
                while others:
                    bit = others & -others
                    others ^= bit
                    target |= advance(bit.bit_length() - 1)
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
            spend_work(unpaid, PATTERN)
            raise pattern_too_large(max_states)
    spend_work(unpaid, PATTERN)
    return Table(items.bounds, items.classes, rows, [bool(states & ACCEPT) for states in order])


def to_counted_dfa(
    pattern: str,
    *,
    dialect: Dialect = "python",
    flags: str = "",
    match: Match = "full",
    max_states: int = MAX_STATES,
) -> tuple[Dfa, int, int | None]:
    """Return a Dfa and an interval of lengths: a text matches if the Dfa accepts it and its length is in the interval.

    So `^[a-z]{1,255}$` needs one state and a counter, see `pattern_parts`. In general low is 0 and high None.

    Parameters
    ----------
    pattern, dialect, flags, match, max_states
        See `to_dfa`.

    Returns
    -------
    dfa : Dfa
    low : int
        Least number of characters.
    high : int or None
        Greatest number of characters; None if unbounded.

    Raises
    ------
    RegexError, UnsupportedError, LimitError
        With a position in the pattern.
    """
    split = split_pattern(parse_pattern(pattern, dialect=dialect, flags=flags, nesting=Limits().nesting), match)
    with report_pattern(pattern):
        return build_split_dfa(split, dialect=dialect, max_states=max_states), split.low, split.high
