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
"""The first character of each class: 3 also stands for 4, 6 for 7 to 9, A for all letters."""

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
            target = _after(state, char, ipv4)
            number = -1 if target is None else numbers.get(target)
            if number is None:
                assert target is not None
                number = numbers[target] = len(order)
                order.append(target)
            row.append(number)
        rows.append([*row, -1])
        groups, elided, since, octet = state
        whole = since in (1, 2, 3, 4) and (elided or groups == 7)
        accepting.append(whole or since == "::" or (octet >= 0 and bool(ipv4.accepting[octet])))
    return Dfa.from_table(Table(BOUNDS, CLASSES, rows, accepting))


def _after(state: Ipv6State, char: str, ipv4: Dfa) -> Ipv6State | None:
    """Return the state after one more character."""
    groups, elided, since, octet = state
    if char == ":":
        if since == "":
            return (0, False, ":", -1)
        if since == ":":
            return None if elided else _begin(groups, True, "::")
        return _begin(groups + 1, elided, ":") if since in (1, 2, 3, 4) else None
    if since == ":" and groups == 0:
        return None  # A colon that begins the address must be one of two.
    octet = ipv4.step(octet, char)
    has_group = groups < (7 if elided else 8) and char != "."
    read = since + 1 if isinstance(since, int) else 1
    if not has_group or read > 4:
        return (0, False, 5, octet) if octet >= 0 else None
    return (groups, elided, read, octet)


def _begin(groups: int, elided: bool, since: str) -> Ipv6State | None:
    """Return the state before a group, and before IPv4 where exactly two groups are left (or some, after `::`)."""
    if groups > 7 or (elided and since == ":" and groups > 6):
        return None
    return (groups, elided, since, 0 if (groups <= 5 if elided else groups == 6) else -1)


def splice_dfa(outer: Dfa, mark: str, inner: Dfa) -> Dfa:
    """Return the texts of outer with a text of inner in place of each character `mark`.

    The next character must always determine where inner begins and ends; ValueError otherwise. A text of inner is not
    empty.
    """
    frame, part = outer.table, inner.table
    bounds = sorted({*frame.bounds, *part.bounds})
    pairs = [tuple(t.classes[bisect_right(t.bounds, bound) - 1] for t in (frame, part)) for bound in bounds]
    numbers = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
    marked = frame.classes[bisect_right(frame.bounds, ord(mark)) - 1]
    rows = [[row[a] if a != marked else -1 for a, _ in numbers] for row in frame.rows]
    accepting = list(frame.accepting)
    for state, row in enumerate(frame.rows):
        if row[marked] < 0:
            continue
        shift = len(rows) - 1  # State 0 of the part is `state` itself.
        inside = [[target + shift if target > 0 else -1 for target in map(line.__getitem__, (b for _, b in numbers))]
                  for line in part.rows]  # fmt: skip
        rows[state] = _together(rows[state], inside[0])
        for line, accepts in zip(inside[1:], part.accepting[1:]):
            rows.append(_together(line, rows[row[marked]]) if accepts else line)
            accepting.append(accepts and frame.accepting[row[marked]])
    return Dfa.from_table(Table(bounds, [numbers[pair] for pair in pairs], rows, accepting))


def _together(one: list[int], other: list[int]) -> list[int]:
    if any(a >= 0 and b >= 0 for a, b in zip(one, other)):
        raise ValueError("where the inner automaton begins or ends is not certain")
    return [max(pair) for pair in zip(one, other)]
