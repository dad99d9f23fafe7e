"""Leaf states against characters spelled out: what a decoder and a Dfa say after each byte, for all code points.

The oracle knows every spelling of every character, and of a prefix inside a character which characters it may become.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from constrain import Vocabulary
from constrain.automata.dfa import Dfa
from constrain.frontends.regex import to_dfa
from constrain.kernels import layout as at
from constrain.vocabulary import mask_table
from constrain.vocabulary.mask_table import MaskTable

Ints = NDArray[np.int32]
SHORT = {'"': '"', "/": "/", "\\": "\\", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
"""In order of what stands behind the backslash."""
END = 0xFF
CODES = np.setdiff1d(np.arange(0x110000, dtype=np.int32), np.arange(0xD800, 0xE000, dtype=np.int32))
FAR = 1 << 30


@pytest.fixture(autouse=True, scope="module")
def small_tables() -> Iterator[None]:
    """Tables of masks that reserve little memory."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("LEAF_STATES", 1 << 12), ("ROW_BYTES", 1 << 16), ("TRIE_WORDS", 1 << 16),
                            ("LEX_READERS", 256), ("LEX_WORDS", 1 << 16)):  # fmt: skip
            patch.setattr(mask_table, name, value)
        yield


@dataclass(frozen=True, eq=False)
class Spellings:
    """One spelling of characters: ascending code points, and the bytes of each, followed by END."""

    codes: Ints
    rows: NDArray[np.uint8]

    @cache  # noqa: B019  (there are a handful of them)
    def children(self, begin: int, end: int, place: int) -> list[tuple[int, int, int]]:
        """Return the bytes at one position of rows begin .. end, which are equal before it, and the rows with each."""
        column = self.rows[begin:end, place]
        cuts = [0, *(np.flatnonzero(column[1:] != column[:-1]) + 1).tolist(), end - begin]
        return [(int(column[low]), begin + low, begin + high) for low, high in pairwise(cuts) if column[low] != END]


def texts(codes: Ints, encoding: str, dtype: str) -> NDArray[Any]:
    """Return the code units of all characters, concatenated."""
    return np.frombuffer(codes.astype("<u4").tobytes().decode("utf-32-le").encode(encoding), dtype)


def in_utf8(codes: Ints) -> Spellings:
    units = texts(codes, "utf-8", "u1")
    begins = np.flatnonzero(units >> 6 != 2)
    rows = np.full((len(codes), 5), END, np.uint8)
    for k, widths in enumerate([np.diff(begins, append=len(units))] * 4):
        rows[widths > k, k] = units[begins[widths > k] + k]
    return Spellings(codes, rows)


def escaped(codes: Ints) -> Spellings:
    """By `\\uXXXX`, one or a pair of them, with lower case digits."""
    units = texts(codes, "utf-16-le", "<u2").reshape(len(codes), -1)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    rows = np.full((len(codes), 6 * units.shape[1] + 1), END, np.uint8)
    for half, unit in enumerate(units.T):
        rows[:, 6 * half : 6 * half + 2] = ord("\\"), ord("u")
        for k in range(4):
            rows[:, 6 * half + 2 + k] = digits[unit >> 12 - 4 * k & 15]
    return Spellings(codes, rows)


@pytest.fixture(scope="module")
def spellings() -> dict[int, list[Spellings]]:
    """All spellings of all characters by mode."""
    raw = in_utf8(CODES)
    plain = (CODES >= 32) & (CODES != 34) & (CODES != 92)
    short = Spellings(
        np.array([ord(char) for char in SHORT], np.int32),
        np.array([[ord("\\"), ord(letter), END] for letter in SHORT.values()], np.uint8),
    )
    inside = [
        Spellings(CODES[plain], raw.rows[plain]), short,
        escaped(CODES[CODES < 0x10000]), escaped(CODES[CODES >= 0x10000]),
    ]  # fmt: skip
    return {at.UTF8: [raw], at.JSON_INSIDE: inside, at.JSON_STRING: inside}


class Law:
    """The transitions of a Dfa on the characters of each spelling in one state, and what must follow."""

    def __init__(self, dfa: Dfa, state: int, spellings: list[Spellings]) -> None:
        self.spellings = spellings
        distances = np.append(np.asarray(dfa.distances()), FAR)
        ends = np.append(dfa.bounds[1:], 0x110000)
        targets = np.repeat(dfa.delta[state, dfa.classes], ends - dfa.bounds)
        self.targets = [targets[one.codes] for one in spellings]
        needs = [distances[one] for one in self.targets]
        self.counts = [{int(need): np.append(0, np.cumsum(one == need, dtype=np.int32))
                        for need in np.unique(distances[np.append(dfa.delta[state], -1)]) if need < FAR}
                       for one in needs]  # fmt: skip

    def need(self, way: int, begin: int, end: int) -> int:
        """The least number of characters that must follow one of those, FAR if none of them is allowed."""
        return min((need for need, sums in self.counts[way].items() if sums[end] > sums[begin]), default=FAR)


@dataclass
class Oracle:
    """Inside one character: for each spelling that fits the bytes so far, the rows with this prefix."""

    law: Law
    place: int
    spans: list[tuple[int, int, int]]

    @classmethod
    def before(cls, law: Law) -> Oracle:
        """Before a character."""
        return cls(law, 0, [(way, 0, len(one.codes)) for way, one in enumerate(law.spellings)])

    @cached_property
    def ways(self) -> dict[int, list[tuple[int, int, int]]]:
        """What fits after each byte that may follow, hexadecimal digits in lower case only."""
        found: dict[int, list[tuple[int, int, int]]] = {}
        for way, begin, end in self.spans:
            for byte, low, high in self.law.spellings[way].children(begin, end, self.place):
                if self.law.need(way, low, high) < FAR:
                    found.setdefault(byte, []).append((way, low, high))
        return found

    def following(self) -> set[int]:
        """The bytes that may follow."""
        return set(self.ways)

    def after(self, b: int) -> Oracle | int:
        """After one more byte; the state of the Dfa if the character is complete."""
        spans = self.ways[b]
        way, begin, end = spans[0]
        if end == begin + 1 and self.law.spellings[way].rows[begin, self.place + 1] == END:
            assert len(spans) == 1
            return int(self.law.targets[way][begin])
        return Oracle(self.law, self.place + 1, spans)

    def need(self) -> int:
        """The least number of characters that must follow this one."""
        return min(self.law.need(*span) for span in self.spans)


def with_upper_case(found: set[int], is_digit: bool) -> set[int]:
    """Hexadecimal digits may be written in either case."""
    return found | ({b - 32 for b in found if 97 <= b <= 102} if is_digit else set())


def is_in_digits(begun: bytes) -> bool:
    """Whether a hexadecimal digit follows."""
    return begun[:1] == b"\\" and begun[1:2] == b"u" and len(begun) not in (6, 7)


EDGES = [
    0x00, 0x1F, 0x22, 0x2F, 0x41, 0x5C, 0x7F, 0x80, 0xFF, 0x7FF, 0x800, 0xFFF, 0x1000, 0xCFFF, 0xD000, 0xD7FF, 0xE000,
    0xEFFF, 0xF000, 0xFFFF, 0x10000, 0x103FF, 0x10400, 0x10FFF, 0x11000, 0x3FFFF, 0x40000, 0xFFFFF, 0x100000, 0x10FBFF,
    0x10FC00, 0x10FFFF,
]  # fmt: skip


def between(low: int, high: int) -> Dfa:
    """The texts of one character from a range."""
    apart = [(low, min(high, 0xD7FF)), (max(low, 0xE000), high)]
    return Dfa.from_ranges([one for one in apart if one[0] <= one[1]])


def fork(first: Dfa, second: Dfa) -> Dfa:
    """After one language two more characters must follow, after the other (and not the first) one."""
    x = Dfa.from_strings(["x"])
    return first.concatenate(x).concatenate(x).union(second.concatenate(x))


def by_blocks(size: int, firsts: list[int]) -> Dfa:
    """Eight blocks of characters, of which every other one needs further characters."""
    even = [between(first + k * size, first + (k + 1) * size - 1) for first in firsts for k in range(0, 8, 2)]
    odd = [between(first + k * size, first + (k + 1) * size - 1) for first in firsts for k in range(1, 8, 2)]
    return fork(Dfa.union_of(even), Dfa.union_of(odd))


LANGUAGES = {
    "any": Dfa.any_text(),
    "nothing but U+0000": Dfa.from_strings(["\0"]),
    "one of any": to_dfa("(?s:.)"),
    "edges": Dfa.from_strings([chr(code) for code in EDGES]),
    "all but the edges": to_dfa("(?s:.)*").subtract(Dfa.from_strings([chr(code) for code in EDGES])),
    "astral": between(0x10000, 0x10FFFF).star(),
    "not astral": between(0, 0xFFFF).star(),
    "one block behind a high surrogate": between(0x10400, 0x107FF),
    "parts of blocks": between(0x10000, 0x103FE).union(between(0x10FC01, 0x10FFFF)).union(between(0x1F601, 0x1F64F)),
    "two ways on by blocks": fork(between(0x20000, 0x203FF), between(0x20400, 0x10FFFF)),
    "two ways on by bytes": fork(between(0x80, 0x7FF), between(0x800, 0xFFFF)),
    "two ways on by edges": fork(
        Dfa.from_strings([chr(code) for code in EDGES[::2]]), Dfa.from_strings([chr(code) for code in EDGES[1::2]])
    ),
    "two ways on by blocks of 16": by_blocks(16, [0x0, 0xF00, 0xCF00, 0xE000, 0x10000, 0x10FF00]),
    "two ways on by blocks of 64": by_blocks(64, [0x0, 0xF00, 0xFE00, 0x10000, 0x10FE00]),
    "two ways on by blocks of 256": by_blocks(256, [0x0, 0xE000, 0x10000, 0x10F800]),
    "nothing before the surrogates": between(0xE000, 0x10FFFF),
    "nothing behind the surrogates": between(0x0, 0xD7FF),
    "two ways on at the surrogates": fork(between(0xD000, 0xD7FF), between(0xE000, 0x10FFFF)),
    "two ways on within a block": fork(between(0x10300, 0x10380), between(0x10381, 0x10FFFF)),
    "astral far, others near": fork(between(0x10000, 0x10FFFF), between(0x30, 0xFFFF)),
    "others far, astral near": fork(between(0x30, 0xFFFF), between(0x10000, 0x10FFFF)),
    "last and first of planes": fork(
        Dfa.from_strings([chr(plane << 16) for plane in range(17)]),
        Dfa.from_strings([chr((plane << 16) + 0xFFFF) for plane in range(17)]),
    ),
}


@pytest.mark.parametrize(
    ("name", "mode"),
    [*((name, mode) for name in LANGUAGES for mode in (at.UTF8, at.JSON_STRING)), ("edges", at.JSON_INSIDE)],
)
def test_each_byte_of_each_spelling(name: str, mode: int, spellings: dict[int, list[Spellings]]) -> None:
    """The bytes allowed, what must follow at least, and where the leaf may be left, in all states that are reached.

    Each state is looked at on one way to it, and each byte from there on: what is allowed behind that byte, too.
    """
    dfa, table = LANGUAGES[name], MaskTable(Vocabulary.bytes())
    following, leaves = table.arrays[at.LEAF_NEXT], table.arrays[at.LEAVES]
    distances = np.asarray(dfa.distances())

    def record(leaf: int) -> Ints:
        return leaves[leaf * at.LEAF_W : (leaf + 1) * at.LEAF_W]

    begin = [Oracle.before(Law(dfa, state, spellings[mode])) for state in range(len(dfa.delta))]
    found = {table.start(dfa, mode)}
    todo: list[tuple[int, int, bytes, Oracle]] = [(*found, 0, b"", begin[0])]
    while todo:
        leaf, state, begun, oracle = todo.pop()
        table.expand(leaf)
        quote = {34} if mode == at.JSON_STRING and not begun and dfa.accepting[state] else set[int]()
        allowed = with_upper_case(oracle.following(), is_in_digits(begun))
        here = following[256 * leaf : 256 * leaf + 256]
        assert set(np.flatnonzero(here >= 0).tolist()) == allowed | quote, (state, begun)
        assert (here[here < 0] == -1).all()
        assert record(leaf)[at.LEAF_ALLOWED] == len(allowed | quote)
        bits = np.unpackbits(record(leaf)[at.LEAF_BYTES : at.LEAF_BYTES + 8].view(np.uint8), bitorder="little")
        assert (bits == (here >= 0)).all()
        if quote:
            done = int(here[34])
            table.expand(done)
            assert record(done)[at.LEAF_DECODER] >> at.KIND == at.DONE and record(done)[at.LEAF_ALLOWED] == 0
            assert record(done)[at.LEAF_FLAGS] & at.LEAF_EXITS and record(done)[at.LEAF_NEED] == 0
        for b in sorted(allowed):
            after = oracle.after(b | 32 if is_in_digits(begun) else b)
            leaf_2 = int(here[b])
            table.expand(leaf_2)
            flags = int(record(leaf_2)[at.LEAF_FLAGS])
            if isinstance(after, int):
                state_2, begun_2, after = after, b"", begin[after]
                need, exits = int(distances[state_2]), mode != at.JSON_STRING and bool(dfa.accepting[state_2])
                closes = {34} if mode == at.JSON_STRING and dfa.accepting[state_2] else set[int]()
            else:
                state_2, begun_2, closes = state, begun + bytes([b]), set()
                need, exits = after.need(), False
            assert bool(flags & at.LEAF_EXITS) == exits and bool(flags & at.LEAF_BOUNDARY) == (begun_2 == b"")
            assert record(leaf_2)[at.LEAF_NEED] == need, (state, begun, b)
            stored = set(np.flatnonzero(following[256 * leaf_2 : 256 * leaf_2 + 256] >= 0).tolist())
            assert stored == with_upper_case(after.following(), is_in_digits(begun_2)) | closes, (state, begun, b)
            if leaf_2 not in found:
                found.add(leaf_2)
                todo.append((leaf_2, state_2, begun_2, after))


@pytest.mark.parametrize(("mode", "count"), [(at.UTF8, 8), (at.JSON_INSIDE, 88), (at.JSON_STRING, 89)])
def test_the_any_text_language_has_a_small_automaton(mode: int, count: int) -> None:
    """In UTF-8 those of the automaton of RFC 3629; in JSON most are of a high surrogate, whose digits are part of the
    state.
    """
    table = MaskTable(Vocabulary.bytes())
    todo, found = [table.start(Dfa.any_text(), mode)], set[int]()
    while todo:
        leaf = todo.pop()
        if leaf not in found:
            found.add(leaf)
            table.expand(leaf)
            following = table.arrays[at.LEAF_NEXT][256 * leaf : 256 * leaf + 256]
            todo += set(following[following >= 0].tolist())
    assert len(found) == count
