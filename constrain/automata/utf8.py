"""Characters spelled in UTF-8: a set of code points as a small graph over bytes, whose equal rests are shared.

Node 0 is the end of the character. The graph of `\\w` has some 300 nodes, most of which other sets use as well.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["END", "Moves", "Utf8", "list_bytes"]

Moves = tuple[tuple[int, int], ...]
"""(set of bytes as bits of an int, next node): the sets are disjoint."""

END = 0
SURROGATES = (0xD800, 0xE000)
LEADS = ((2, 0x80, 0x800, 0xC0), (3, 0x800, 0x10000, 0xE0), (4, 0x10000, 0x110000, 0xF0))
"""Bytes of a character, the code points spelled with as many (half-open), and what is added to the first byte."""

_Ranges = tuple[tuple[int, int], ...]


def list_bytes(mask: int) -> list[int]:
    """The bytes of a set, ascending."""
    found = []
    while mask:
        bit = mask & -mask
        found.append(bit.bit_length() - 1)
        mask ^= bit
    return found


def _run(first: int, end: int) -> int:
    """The set of the bytes from first to end, which is not in it."""
    return (1 << end) - (1 << first)


class Utf8:
    """Graphs of any number of sets. nodes[i]: the moves of node i. anything: the first node of all characters."""

    def __init__(self) -> None:
        self.nodes: list[Moves] = [()]
        self._numbers: dict[Moves, int] = {}
        self._rests: dict[tuple[int, _Ranges], int] = {(0, ((0, 1),)): END}
        self._roots: dict[tuple[int, ...], int] = {}
        self.anything = self.root((0, 0x110000))

    def root(self, charset: tuple[int, ...]) -> int:
        """The first node of a set, given as the points at which membership toggles. Surrogates are left out."""
        found = self._roots.get(charset)
        if found is None:
            ranges = _without_surrogates(zip(charset[::2], charset[1::2]))
            moves: dict[int, int] = {}
            ascii_bytes = sum(_run(low, min(high, 0x80)) for low, high in ranges if low < 0x80)
            if ascii_bytes:
                moves[END] = ascii_bytes
            for length, low, high, added in LEADS:
                part = tuple((max(a, low), min(b, high)) for a, b in ranges if a < high and b > low)
                self._split(part, length - 1, added, moves)
            found = self._roots[charset] = self._intern(moves)
        return found

    def complete(self, mask: int, node: int) -> int:
        """Those bytes of a first move to a node after which every character that can follow leads on to the end."""
        return sum(mask & whole for whole, target in self.nodes[self.anything] if target == node)

    def _rest(self, length: int, ranges: _Ranges) -> int:
        """The node before `length` further bytes, whose 6 bits each make a number in these ranges."""
        found = self._rests.get((length, ranges))
        if found is None:
            moves: dict[int, int] = {}
            self._split(ranges, length - 1, 0x80, moves)
            found = self._rests[length, ranges] = self._intern(moves)
        return found

    def _split(self, ranges: Iterable[tuple[int, int]], after: int, added: int, moves: dict[int, int]) -> None:
        """Put in the moves over a byte that has so many after it. added: to its bits of the number."""
        size = 64**after
        parts: dict[int, list[tuple[int, int]]] = {}
        whole = 0
        for low, high in ranges:
            first, last = low // size, (high - 1) // size
            for block in (first, last) if first < last else (first,):
                start = block * size
                parts.setdefault(block, []).append((max(low, start) - start, min(high, start + size) - start))
            if last - first > 1:
                whole |= _run(added + first + 1, added + last)
        if whole:
            node = self._rest(after, ((0, size),))
            moves[node] = moves.get(node, 0) | whole
        for block, inside in parts.items():
            node = self._rest(after, tuple(inside))
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
