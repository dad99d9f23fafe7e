"""The Dfa of the JSON spellings, with any escapes, of the texts of a Dfa.

Each state gets additional paths for escape sequences. After some digits of `\\uXXXX`, the state is a *slice*: the
targets of the range of code points that are still possible, so that equal slices share a state. Code points above
U+FFFF need two escapes, a surrogate pair (RFC 8259, section 7).
"""

from __future__ import annotations

from bisect import bisect_right

from ..automata.dfa import LAST, Dfa, Table
from ..automata.table import SURROGATES
from ..base.errors import LimitError

__all__ = ["spell_as_json"]

Slice = tuple[tuple[int, object], ...]
"""Pairs (offset, target) where the target changes, starting at offset 0; target -1 is dead."""
State = tuple[str, object]
SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
DIGITS = "0123456789abcdefABCDEF"


def spell_as_json(dfa: Dfa, *, max_states: int) -> Dfa:
    """Return the Dfa of the spellings of the texts of `dfa` in JSON strings, without the quotes.

    Raise LimitError for more than `max_states` states.
    """
    return Dfa.from_table(_JsonSpelling(dfa, max_states).table()) if not dfa.is_empty else dfa


class _JsonSpelling:
    """Builds the Table of the spellings; a state is a pair (kind, value)."""

    def __init__(self, dfa: Dfa, max_states: int) -> None:
        self.dfa, self.max_states = dfa.table, max_states
        self.numbers: dict[State, int] = {}
        self.order: list[State] = []

    def table(self) -> Table:
        """Return the Table."""
        special = sorted({ord(char) for char in {*SHORT, "u", *DIGITS}})
        cuts = {0, 32, *self.dfa.bounds, *SURROGATES, *special, *(point + 1 for point in special)}
        bounds = sorted(cuts)
        self.number(("at", 0))
        rows = []
        for state in self.order:  # `order` grows during the loop.
            rows.append([self.after(state, point) for point in bounds])
        return Table(bounds, list(range(len(bounds))), rows, [self.accepts(state) for state in self.order])

    def number(self, state: State) -> int:
        """Return the number of a state. Raise LimitError for too many states."""
        number = self.numbers.get(state)
        if number is None:
            number = self.numbers[state] = len(self.order)
            self.order.append(state)
            if number > self.max_states:
                raise LimitError(
                    f"A language of texts, spelled in JSON, needs more than {self.max_states} states",
                    hint="Simplify it, or raise Limits.dfa_states.",
                )
        return number

    def accepts(self, state: State) -> bool:
        kind, value = state
        return kind == "at" and isinstance(value, int) and self.dfa.accepting[value]

    def target(self, state: int, point: int) -> int:
        return self.dfa.rows[state][self.dfa.classes[bisect_right(self.dfa.bounds, point) - 1]]

    def at(self, target: int) -> int:
        return -1 if target < 0 else self.number(("at", target))

    def after(self, state: State, point: int) -> int:
        """Return the state after a character, or -1; `point` represents a range of equivalent characters."""
        kind, value = state
        char = chr(point)
        if kind == "at":
            assert isinstance(value, int)
            if char == "\\":
                return self.number(("escape", value))
            return -1 if point < 32 or char == '"' else self.at(self.target(value, point))
        if kind == "escape":
            assert isinstance(value, int)
            if char == "u":
                return self.digits(self.escape_slice(value), 4, "bmp")
            return self.at(self.target(value, ord(SHORT[char]))) if char in SHORT else -1
        if kind in ("pair", "pair escape"):  # a high surrogate was read
            if char != ("\\" if kind == "pair" else "u"):
                return -1
            return self.number(("pair escape", value)) if kind == "pair" else self.digits(value, 4, "low")  # type: ignore[arg-type]
        if char not in DIGITS:
            return -1
        assert isinstance(value, tuple)
        part, digits, digits_kind = value
        size = 1 << 4 * (digits - 1)
        return self.digits(cut_slice(part, int(char, 16) * size, size), digits - 1, digits_kind)

    def digits(self, part: Slice, remaining: int, kind: str) -> int:
        """Return the state that reads `remaining` more hexadecimal digits of a slice."""
        if all(target == NOWHERE for _, target in part):
            return -1
        if remaining:
            return self.number((f"digits {kind}", (part, remaining, kind)))
        target = part[0][1]
        if isinstance(target, int):
            return self.at(target)
        return self.number(("pair", target))

    def escape_slice(self, state: int) -> Slice:
        """Return the slice of all four-digit escapes.

        Its targets are states or, for high surrogates, the slice of the low surrogates that may follow.
        """
        out: list[tuple[int, object]] = []
        table = self.dfa
        for k, bound in enumerate(table.bounds):
            end = table.bounds[k + 1] if k + 1 < len(table.bounds) else LAST
            target = table.rows[state][table.classes[k]]
            for low, high in ((bound, min(end, SURROGATES[0])), (max(bound, SURROGATES[1]), min(end, 1 << 16))):
                if low < high:
                    out.append((low, target))
        high_ones = [(0xD800 + k, self.low_ones(state, 0x10000 + (k << 10))) for k in range(0x400)]
        out += [(SURROGATES[0], NOWHERE), *high_ones, (0xDC00, NOWHERE)]
        return merge_changes(out)

    def low_ones(self, state: int, first: int) -> object:
        """Return the slice of the low surrogates after the high surrogate of the 1024 code points from `first`."""
        out: list[tuple[int, object]] = [(0, NOWHERE), (0xDC00, self.target(state, first)), (0xE000, NOWHERE)]
        table = self.dfa
        k = bisect_right(table.bounds, first)
        while k < len(table.bounds) and table.bounds[k] < first + 0x400:
            out.append((0xDC00 + table.bounds[k] - first, table.rows[state][table.classes[k]]))
            k += 1
        merged = merge_changes(out)
        return NOWHERE if merged == ((0, NOWHERE),) else merged


NOWHERE = -1


def merge_changes(changes: list[tuple[int, object]]) -> Slice:
    """Return the slice of changes in any order."""
    out: list[tuple[int, object]] = []
    for offset, target in sorted(changes, key=lambda change: change[0]):
        if not out or out[-1][1] != target:
            out.append((offset, target))
    return tuple(out)


def cut_slice(part: Slice, first: int, size: int) -> Slice:
    """Return the slice of the `size` code points from `first`."""
    start = bisect_right(part, first, key=lambda change: change[0]) - 1
    out = [(0, part[start][1])]
    for offset, target in part[start + 1 :]:
        if offset >= first + size:
            break
        out.append((offset - first, target))
    return tuple(out)
