"""Byte graphs of the UTF-8 encodings of sets of code points, with equal suffixes shared.

Node 0 is the end of the character. The graph of `\\w` has about 300 nodes, most of which are shared with other sets.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["END", "Moves", "Utf8"]

Moves = tuple[tuple[int, int], ...]
"""Pairs (set of bytes as bits of an int, next node) with disjoint sets."""

END = 0
SURROGATES = (0xD800, 0xE000)
LEADS = ((2, 0x80, 0x800, 0xC0), (3, 0x800, 0x10000, 0xE0), (4, 0x10000, 0x110000, 0xF0))
"""Per encoded length: number of bytes, first code point, end of the code points, marker bits of the first byte."""

_Ranges = tuple[tuple[int, int], ...]


def _byte_range(first: int, end: int) -> int:
    """Return the set of the bytes from `first` up to but excluding `end`."""
    return (1 << end) - (1 << first)


class Utf8:
    """Byte graphs of any number of character sets.

    `nodes[i]` holds the moves of node i; `anything` is the root of the set of all characters.
    """

    def __init__(self) -> None:
        self.nodes: list[Moves] = [()]
        self._numbers: dict[Moves, int] = {}
        self._suffixes: dict[tuple[int, _Ranges], int] = {(0, ((0, 1),)): END}
        self._roots: dict[tuple[int, ...], int] = {}
        self.anything = self.root((0, 0x110000))

    def root(self, charset: tuple[int, ...]) -> int:
        """Return the root node of a set, given as the sorted points at which membership toggles; surrogates are
        excluded.
        """
        number = self._roots.get(charset)
        if number is None:
            ranges = _without_surrogates(zip(charset[::2], charset[1::2]))
            moves: dict[int, int] = {}
            ascii_bytes = sum(_byte_range(low, min(high, 0x80)) for low, high in ranges if low < 0x80)
            if ascii_bytes:
                moves[END] = ascii_bytes
            for length, low, high, added in LEADS:
                part = tuple((max(a, low), min(b, high)) for a, b in ranges if a < high and b > low)
                self._split_ranges(part, length - 1, added, moves)
            number = self._roots[charset] = self._intern(moves)
        return number

    def complete(self, mask: int, node: int) -> int:
        """Return the bytes of a move from the start of a character to `node` after which every continuation is
        accepted.
        """
        return sum(mask & accepted for accepted, target in self.nodes[self.anything] if target == node)

    def _intern_suffix(self, length: int, ranges: _Ranges) -> int:
        """Return the node that reads `length` continuation bytes whose 6-bit payloads form a number in these ranges."""
        number = self._suffixes.get((length, ranges))
        if number is None:
            moves: dict[int, int] = {}
            self._split_ranges(ranges, length - 1, 0x80, moves)
            number = self._suffixes[length, ranges] = self._intern(moves)
        return number

    def _split_ranges(self, ranges: Iterable[tuple[int, int]], after: int, added: int, moves: dict[int, int]) -> None:
        """Add to `moves` the moves over a byte that `after` continuation bytes follow.

        `added` are the marker bits of the byte, which are added to its payload.
        """
        size = 64**after
        parts: dict[int, list[tuple[int, int]]] = {}
        complete = 0
        for low, high in ranges:
            first, last = low // size, (high - 1) // size
            for block in (first, last) if first < last else (first,):
                start = block * size
                parts.setdefault(block, []).append((max(low, start) - start, min(high, start + size) - start))
            if last - first > 1:
                complete |= _byte_range(added + first + 1, added + last)
        if complete:
            node = self._intern_suffix(after, ((0, size),))
            moves[node] = moves.get(node, 0) | complete
        for block, payloads in parts.items():
            node = self._intern_suffix(after, tuple(payloads))
            moves[node] = moves.get(node, 0) | 1 << (added + block)

    def _intern(self, moves: dict[int, int]) -> int:
        key: Moves = tuple((mask, node) for node, mask in moves.items())
        number = self._numbers.setdefault(key, len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(key)
        return number


def _without_surrogates(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    result = []
    for low, high in ranges:
        for a, b in ((low, min(high, SURROGATES[0])), (max(low, SURROGATES[1]), high)):
            if a < b:
                result.append((a, b))
    return result
