"""After the hash tables of a state cache are rebuilt, all interned records are found again, and none is added."""

from __future__ import annotations

from typing import Any

import pytest

from constrain import Constraint, Style, Vocabulary, compile, lark
from constrain.engine.state_cache import HASHES
from constrain.kernels import layout as at
from constrain.kernels.growth import rehash_table
from tests.engine.test_cache_growth import CASES, SUMS

INTERNED = (at.N_SETS, at.N_CONFIGS, at.N_NODES, at.N_EDGES, at.N_OBJECTS, at.N_CURSORS, at.N_NAMES, at.N_GUARDS,
            at.N_PAIRS, at.N_LISTS)  # fmt: skip
RIGHT_RECURSIVE = """
start: "x" start "y" | list | "x"
list: "a" list | "b" list "c" | "d"
"""
NESTED = b"x" * 20 + b"aabd" + b"c" + b"y" * 20


def read(constraint: Constraint, text: bytes) -> list[int]:
    """Take a text by bytes, with a look at each next byte before: how much is interned then."""
    matcher = constraint.matcher()
    for byte in text:
        matcher.next_bytes()
        matcher.mask()
        matcher.advance(byte)
    return [int(matcher._state_cache.arrays[at.HEAD][field]) for field in INTERNED]


def forget_steps(constraint: Constraint) -> None:
    """Clear the transitions of all sets: every step is computed again, and its target looked up."""
    arrays = constraint.state_cache().arrays
    for number in range(arrays[at.HEAD][at.N_SETS]):
        record = arrays[at.SETS][number * at.SET_W : (number + 1) * at.SET_W]
        if record[at.SET_ALLOWED] <= at.NARROW:
            record[at.SET_NEXT : at.SET_NEXT + at.NARROW] = -1
        record[at.SET_MASK] = -1
    arrays[at.WIDE][: 256 * arrays[at.HEAD][at.N_WIDE]] = -1


def assert_found_again(constraint: Constraint, text: bytes) -> None:
    read(constraint, text)
    before = read(constraint, text)
    for _ in range(2):
        forget_steps(constraint)
        for slot in HASHES.values():
            rehash_table(constraint.state_cache().address, slot)
        assert read(constraint, text) == before
        assert_entries(constraint)


def assert_entries(constraint: Constraint) -> None:
    """That each hash table names each of its records just once, where the record says."""
    arrays = constraint.state_cache().arrays
    head = arrays[at.HEAD]
    for slot, records, width, place, first, count in (
        (at.SET_HASH, at.SETS, at.SET_W, at.SET_SLOT, 1, head[at.N_SETS]),
        (at.CURSOR_HASH, at.CURSORS, 5, 4, 0, head[at.N_CURSORS]),
        (at.NAME_HASH, at.NAMES, 3, 2, at.ROOTS, head[at.N_NAMES]),
        (at.GUARD_HASH, at.GUARDS, at.GUARD_W, at.GUARD_SLOT, 0, head[at.N_GUARDS]),
        (at.PAIR_HASH, at.PAIRS, at.PAIR_W, at.PAIR_SLOT, 1, head[at.N_PAIRS]),
    ):
        for number in range(first, int(count)):
            assert arrays[slot][arrays[records][width * number + place]] == number


@pytest.mark.parametrize(("name", "schema", "text"), CASES, ids=[name for name, *_ in CASES])
@pytest.mark.parametrize("style", [Style(), Style.any()], ids=["default", "any"])
def test_schemas(name: str, schema: Any, text: bytes, style: Style) -> None:
    assert_found_again(compile(Vocabulary.bytes(), schema=schema, style=style), allowed(schema, style, text))


def allowed(schema: Any, style: Style, text: bytes) -> bytes:
    """The beginning of a text that is taken."""
    matcher = compile(Vocabulary.bytes(), schema=schema, style=style).matcher()
    for place, byte in enumerate(text):
        if byte not in matcher.next_bytes():
            return text[:place]
        matcher.advance(byte)
    return text


@pytest.mark.parametrize("parser", ["lalr", "earley"])
def test_lark(parser: Any) -> None:
    assert_found_again(compile(Vocabulary.bytes(), lark(SUMS, parser=parser)), b"f(1, 2.5) + (3 * g(4)) - h()")


def test_stacks_of_nested_rules() -> None:
    assert_found_again(compile(Vocabulary.bytes(), lark(RIGHT_RECURSIVE, parser="earley")), NESTED)
