"""IPv6 addresses as an automaton, and the substitution of one automaton into another.

`formats` defines an address by the patterns of RFC 3986; this is the same language, built in a fifth of the time: the
patterns have nine alternatives that differ in a count of groups, and here the count is part of the state. That matters
because an address is most of a `uri` and of an `email`.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Union

from ....automata.dfa import Dfa, Table

__all__ = ["ipv6_dfa", "splice_dfa"]

COLUMNS = ".012356:A"
"""The first character of each class: 3 represents 3 and 4, 6 represents 6 to 9, A all letters."""

BOUNDS = [0, *map(ord, "./012356:;AGag")]
CLASSES = [9, 0, 9, 1, 2, 3, 4, 5, 6, 7, 9, 8, 9, 8, 9]

Ipv6State = tuple[int, bool, Union[str, int], int]
"""(groups before, whether there was a `::`, text since the last group, state in an IPv4 address or -1).

Text since the last group: "" none, ":" a colon, "::" two, or 1 to 4 hexadecimal digits; 5: no group.
"""


def ipv6_dfa(ipv4: Dfa) -> Dfa:
    """Return the addresses of RFC 4291 section 2.2: eight groups, `::` for one or more, IPv4 for two."""
    first: Ipv6State = (0, False, "", -1)
    numbers: dict[Ipv6State, int] = {first: 0}
    order, rows, accepting = [first], [], []
    for state in order:
        row = []
        for char in COLUMNS:
            target = _step(state, char, ipv4)
            number = -1 if target is None else numbers.get(target)
            if number is None:
                assert target is not None
                number = numbers[target] = len(order)
                order.append(target)
            row.append(number)
        rows.append([*row, -1])
        groups, elided, since, octet = state
        is_complete = since in (1, 2, 3, 4) and (elided or groups == 7)
        accepting.append(is_complete or since == "::" or (octet >= 0 and bool(ipv4.accepting[octet])))
    return Dfa.from_table(Table(BOUNDS, CLASSES, rows, accepting))


def _step(state: Ipv6State, char: str, ipv4: Dfa) -> Ipv6State | None:
    """Return the state after one more character."""
    groups, elided, since, octet = state
    if char == ":":
        if since == "":
            return (0, False, ":", -1)
        if since == ":":
            return None if elided else _begin_group(groups, True, "::")
        return _begin_group(groups + 1, elided, ":") if since in (1, 2, 3, 4) else None
    if since == ":" and groups == 0:
        return None  # A colon that begins the address must be one of two.
    octet = ipv4.step(octet, char)
    has_group = groups < (7 if elided else 8) and char != "."
    read = since + 1 if isinstance(since, int) else 1
    if not has_group or read > 4:
        return (0, False, 5, octet) if octet >= 0 else None
    return (groups, elided, read, octet)


def _begin_group(groups: int, elided: bool, since: str) -> Ipv6State | None:
    """Return the state before a group, and before IPv4 where exactly two groups remain (or any number after `::`)."""
    if groups > 7 or (elided and since == ":" and groups > 6):
        return None
    return (groups, elided, since, 0 if (groups <= 5 if elided else groups == 6) else -1)


def splice_dfa(outer: Dfa, mark: str, inner: Dfa) -> Dfa:
    """Return the texts of outer with a text of inner substituted for each character `mark`.

    Raise ValueError unless the next character always determines where inner begins and ends. A text of inner is not
    empty.
    """
    outer_table, inner_table = outer.table, inner.table
    bounds = sorted({*outer_table.bounds, *inner_table.bounds})
    pairs = [
        tuple(t.classes[bisect_right(t.bounds, bound) - 1] for t in (outer_table, inner_table)) for bound in bounds
    ]
    numbers = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
    marked = outer_table.classes[bisect_right(outer_table.bounds, ord(mark)) - 1]
    rows = [[row[a] if a != marked else -1 for a, _ in numbers] for row in outer_table.rows]
    accepting = list(outer_table.accepting)
    for state, row in enumerate(outer_table.rows):
        if row[marked] < 0:
            continue
        offset = len(rows) - 1  # State 0 of the part is `state` itself.
        inside = [[target + offset if target > 0 else -1 for target in map(line.__getitem__, (b for _, b in numbers))]
                  for line in inner_table.rows]  # fmt: skip
        rows[state] = _merge_rows(rows[state], inside[0])
        for line, accepts in zip(inside[1:], inner_table.accepting[1:]):
            rows.append(_merge_rows(line, rows[row[marked]]) if accepts else line)
            accepting.append(accepts and outer_table.accepting[row[marked]])
    return Dfa.from_table(Table(bounds, [numbers[pair] for pair in pairs], rows, accepting))


def _merge_rows(one: list[int], other: list[int]) -> list[int]:
    if any(a >= 0 and b >= 0 for a, b in zip(one, other)):
        raise ValueError("where the inner automaton begins or ends is not certain")
    return [max(pair) for pair in zip(one, other)]
