"""Places in sorted blocks of strings (kernels)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from numba import njit

from constrain.kernels import layout as at
from constrain.kernels.compiled import OPTIONS
from constrain.kernels.points import bound, code_point
from tests.kernel_context import Context

EDGES = [0, 0x7E, 0x7F, 0x80, 0xBF, 0xC0, 0x7FE, 0x7FF, 0x800, 0xFFF, 0x1000, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF]
"""Code points where UTF-8 becomes longer, and their neighbours."""


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def spelled(c: int, place: int, end: int) -> int:
    """`code_point`, which is linked into its callers."""
    return code_point(c, place, end)  # type: ignore[no-any-return]


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def first_from(c: int, low: int, high: int, depth: int, byte: int) -> int:
    """`bound`, of the block at 1."""
    return bound(c, 1, low, high, depth, byte)  # type: ignore[no-any-return]


@settings(max_examples=80)
@given(st.sampled_from(EDGES) | st.integers(0, 0xD7FF) | st.integers(0xE000, 0x10FFFF), st.integers(0, 3))
def test_code_points_are_read_as_utf8(point: int, before: int) -> None:
    data = chr(point).encode()
    context = Context({})
    context.put(at.CODE, [0x80] * before + list(data))
    assert context.call(spelled, before, before + len(data)) == point * 8 + len(data)
    assert context.call(spelled, before, before) == -1


@pytest.mark.parametrize("point", EDGES)
def test_code_points_end_where_their_bytes_do(point: int) -> None:
    """What follows is not read."""
    data = chr(point).encode()
    for following in (b"a", "é".encode(), b"\xff"):
        context = Context({})
        context.put(at.CODE, list(data + following))
        assert context.call(spelled, 0, len(data + following)) == point * 8 + len(data)


@settings(max_examples=60)
@given(st.lists(st.binary(max_size=4), max_size=8, unique=True), st.integers(0, 3), st.integers(0, 256), st.data())
def test_the_first_string_from_a_byte_on(strings: list[bytes], depth: int, byte: int, data: st.DataObject) -> None:
    """Among those that agree up to the depth, of which one may end there."""
    strings = sorted(strings)
    offsets, texts = [1 + at.STR_OFFSETS + len(strings) + 1], b"".join(strings)
    for string in strings:
        offsets.append(offsets[-1] + len(string))
    context = Context({})
    context.put(at.CODE, [0, len(strings), 0, *offsets, *texts])
    if not strings:
        assert context.call(first_from, 0, 0, depth, byte) == 0
        return
    start = data.draw(st.sampled_from(strings))[:depth]
    alike = [k for k, string in enumerate(strings) if string.startswith(start) and len(string) >= depth == len(start)]
    low, high = (alike[0], alike[-1] + 1) if alike else (0, 0)
    at_depth = [strings[k][depth] if len(strings[k]) > depth else -1 for k in range(low, high)]
    wanted = low + sum(one < byte for one in at_depth)
    assert context.call(first_from, low, high, depth, byte) == wanted
