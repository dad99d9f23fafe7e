"""Length, number and enumeration of the texts of a Table."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from ..base.work import spend_work
from .table import LAST, Table

__all__ = [
    "count_texts",
    "enumerate_texts",
    "is_extensible",
    "leads_beyond",
    "list_texts",
    "find_shortest_text",
]


def order_topologically(table: Table) -> list[int] | None:
    """Return the states in topological order; None if there is a cycle, so that the lengths of texts are unbounded."""
    incoming = [0] * (len(table.rows) + 1)
    for row in table.rows:
        for target in set(row):
            incoming[target] += 1
    order = [0] if table.rows and incoming[0] == 0 else []
    for state in order:
        for target in set(table.rows[state]):
            if target >= 0:
                incoming[target] -= 1
                if incoming[target] == 0:
                    order.append(target)
    return order if len(order) == len(table.rows) else None


def is_extensible(table: Table) -> bool:
    """Return whether, from every state, acceptance after d characters implies acceptance after d + 1.

    Equivalently, every accepting state has an accepting successor (by induction on d).
    """
    accepts = (*table.accepting, False)
    return all(any(accepts[t] for t in row) for row, here in zip(table.rows, table.accepting) if here)


def is_endless(table: Table) -> bool:
    """Return whether infinitely many texts are accepted from every state (each reaches a cycle)."""
    # A state with finitely many texts leads to a state without successors: the end of its longest text.
    return all(any(after >= 0 for after in row) for row in table.rows)


def count_texts(table: Table, cap: int) -> int:
    """Return the number of texts, at most `cap`."""
    order = order_topologically(table)
    if order is None:
        return cap
    sizes = [0] * (max(table.classes) + 1)
    for bound, end, index in zip(table.bounds, [*table.bounds[1:], LAST], table.classes):
        sizes[index] += end - bound
    total = [0] * (len(table.rows) + 1)
    for state in reversed(order):
        ways = sum(size * total[t] for size, t in zip(sizes, table.rows[state]) if t >= 0)
        total[state] = min(cap, ways + table.accepting[state])
    return total[0]


def list_texts(table: Table) -> list[str]:
    """Return all texts of a finite language, not empty and of few texts, ordered by length and then by code points.

    It is charged as `enumerate_texts`.
    """
    arcs, successors = _list_arcs(table), _list_successors(table)
    texts: list[str] = []
    pending = [(0, "")]
    while pending:
        state, text = pending.pop()
        if table.accepting[state]:
            texts.append(text)
        pending += [(target, text + chr(point)) for first, end, target in arcs[state] for point in range(first, end)]
    texts.sort(key=lambda text: (len(text), text))
    spend_work((1 + sum(map(len, successors)) // 8) * (1 + len(texts[-1])), TEXTS)
    return texts


TEXTS = "the texts of a pattern"
"""Name of the construction, for messages of the work budget."""


def _list_successors(table: Table) -> list[tuple[int, ...]]:
    """Return the states that each state leads to."""
    return [tuple({target for target in row if target >= 0}) for row in table.rows]


def _list_arcs(table: Table) -> list[list[tuple[int, int, int]]]:
    """Return, for each state, the ranges of code points that lead to a state, without their ends, and this state."""
    spans = list(zip(table.bounds, [*table.bounds[1:], LAST], table.classes))
    return [[(first, end, t) for first, end, index in spans if (t := row[index]) >= 0] for row in table.rows]


def enumerate_texts(table: Table) -> Iterator[str]:
    """Yield all texts, ordered by length and then by code points; endless if the language is infinite."""
    if not table.rows:
        return
    arcs, successors = _list_arcs(table), _list_successors(table)
    # exactly[d]: the states from which some text of exactly d characters is accepted.
    exactly: list[set[int]] = [{state for state, accepts in enumerate(table.accepting) if accepts}]
    units = 1 + sum(map(len, successors)) // 8
    while exactly[-1]:
        spend_work(units, TEXTS)
        if 0 in exactly[-1]:
            yield from _texts(arcs, exactly)
        exactly.append({state for state, targets in enumerate(successors) if not exactly[-1].isdisjoint(targets)})


def _texts(arcs: list[list[tuple[int, int, int]]], exactly: list[set[int]]) -> Iterator[str]:
    """Yield all texts of exactly `len(exactly) - 1` characters, ordered by code points.

    arcs: of each state, the ranges of code points that lead to a state, and this state.
    """

    def characters(state: int, left: int) -> Iterator[tuple[int, int]]:
        for start, end, target in arcs[state]:
            if target in exactly[left - 1]:
                for point in range(start, end):
                    yield point, target

    length = len(exactly) - 1
    if length == 0:
        yield ""
        return
    text: list[str] = []
    stack = [characters(0, length)]
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
            if text:
                text.pop()
            continue
        point, target = step
        text.append(chr(point))
        if len(text) == length:
            yield "".join(text)
            text.pop()
        else:
            stack.append(characters(target, length - len(text)))


def find_shortest_text(table: Table) -> str:
    """Return the shortest text, the first by code points among several. The language must not be empty."""
    return next(enumerate_texts(table))


def leads_beyond(table: Table, begun: str, ranges: Sequence[tuple[int, int]] | None, taken: Iterable[str]) -> bool:
    """Implement `Dfa.leads_beyond`.

    All states of a canonical table are co-reachable, so only the paths of the texts in `taken` are followed.
    """
    start = 0
    for char in begun:
        start = table.rows[start][table.classes[bisect_right(table.bounds, ord(char)) - 1]]
        if start < 0:
            return False
    todo = [(start, ranges, {text[len(begun) :] for text in taken if text.startswith(begun)})]
    while todo:
        state, ranges, left = todo.pop()
        if ranges is None and table.accepting[state] and "" not in left:
            return True
        firsts = {ord(text[0]) for text in left if text}
        ends = [*table.bounds[1:], LAST]
        for low, end, kind in zip(table.bounds, ends, table.classes):
            if table.rows[state][kind] >= 0:
                available = end - low if ranges is None else sum(_common(low, end - 1, *one) for one in ranges)
                if available > sum(1 for first in firsts if low <= first < end and _inside(first, ranges)):
                    return True
        for first in firsts:
            after = table.rows[state][table.classes[bisect_right(table.bounds, first) - 1]]
            if after >= 0 and _inside(first, ranges):
                todo.append((after, None, {text[1:] for text in left if text and ord(text[0]) == first}))
    return False


def _common(low: int, high: int, other_low: int, other_high: int) -> int:
    """Return the size of the intersection of two inclusive integer intervals."""
    return max(0, min(high, other_high) - max(low, other_low) + 1)


def _inside(point: int, ranges: Sequence[tuple[int, int]] | None) -> bool:
    return ranges is None or any(low <= point <= high for low, high in ranges)
