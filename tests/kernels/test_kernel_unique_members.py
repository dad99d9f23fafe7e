"""Members that must differ (kernels): the stored records and queries about them, and what is certain without
a query.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings, strategies as st
from numba import njit

from constrain.kernels import layout as at
from constrain.kernels.interned_names import extend_chain
from constrain.kernels.jit.compilation import OPTIONS
from constrain.kernels.member_guards import add_guard
from constrain.kernels.unique_members import (
    begin_member,
    end_member,
    extend_text,
    may_keep_candidates,
    write_text_to_buffer,
)
from tests.kernel_context_factory import Context

SMALL = {at.NAMES: 3 * (at.ROOTS + 1), at.NAME_HASH: 16, at.BUFFER: 1, at.GUARDS: at.GUARD_W, at.GUARD_HASH: 16}
PIECES = (" ", "\t\n", ",", "[", "]", "1", "-2e5", "true", '" "', '"\\\\"', r'"a\" "', '"x')
OPEN, UNKNOWN, EMPTY = at.OPEN_NAME, at.UNKNOWN_MEMBERS, at.NO_MEMBERS


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def keeps(c: int, guard: int, byte: int) -> int:
    """`may_keep_candidates`, which is linked into its callers."""
    return may_keep_candidates(c, guard, byte)  # type: ignore[no-any-return]


def chained(context: Context, root: int, values: Sequence[int]) -> int:
    """The chain of these values."""
    for value in values:
        root = context.run(extend_chain, root, value)
    return root


def read(context: Context, one: int, root: int) -> list[int]:
    """The values of a chain, the last first."""
    values = list[int]()
    while one != root:
        values.append(int(context[at.NAMES][3 * one + 1]))
        one = int(context[at.NAMES][3 * one])
    return values


texts = st.binary(max_size=4)


@settings(max_examples=40)
@given(texts, texts, st.sampled_from([0, -1, 8]))
def test_the_bytes_between_two_positions(before: bytes, between: bytes, rubbish: int) -> None:
    context = Context(SMALL, rubbish)
    start = chained(context, at.SPELLED, before)
    end = chained(context, start, between)
    assert context.run(write_text_to_buffer, start, end) == len(between)
    assert bytes(context[at.BUFFER][: len(between)].tolist()) == between


@settings(max_examples=120)
@given(st.lists(st.sampled_from(PIECES), max_size=9))
def test_white_space_between_values_is_left_out(parts: list[str]) -> None:
    """The text of a member keeps all else, and one space after what may be a number or a literal."""
    context = Context(SMALL)
    text: int = at.SPELLED
    for byte in "".join(parts).encode():
        text = context.run(extend_text, text, byte)
    length = context.run(write_text_to_buffer, at.SPELLED, text)
    pieces = re.findall(r'"(?:[^"\\]|\\.)*"?|[ \t\n]+|[^" \t\n]+', "".join(parts))
    kept = ""
    for piece in pieces:
        is_ended = bool(re.search(r"[0-9a-z]$", kept)) and not kept.endswith('"')
        kept += piece if piece.strip() else piece[:1] if is_ended else ""
    assert bytes(context[at.BUFFER][:length].tolist()) == kept.encode()


@settings(max_examples=100)
@given(
    st.sampled_from([EMPTY, UNKNOWN, 0, 1, 2]),
    st.none() | texts,
    st.booleans(),
    st.lists(st.integers(0, 2), max_size=3),
)
def test_a_member_begins(kind: int, text: bytes | None, endless: bool, watched: list[int]) -> None:
    """Its register is the list before it and where it begins; it is watched if there is something that it may equal.

    kind: the list before it: none, unknown, or one of three that are known. text: None if it is left open.
    """
    context = Context(SMALL)
    known = [chained(context, EMPTY, [10 + k, 20 + k]) for k in range(3)]
    members = kind if kind in (EMPTY, UNKNOWN) else known[kind]
    place = OPEN if text is None else chained(context, at.SPELLED, text)
    registers = [chained(context, one, [place if place != OPEN else at.SPELLED]) for one in known]
    watch = chained(context, at.NO_CANDIDATES, [registers[k] for k in watched])
    context.head[[at.TEXT, at.CANDIDATES]] = place, watch
    register = context.run(begin_member, members, endless)
    if text is None and members != EMPTY:
        members = UNKNOWN
    assert read(context, register, members) == [place if text is not None else at.SPELLED]
    assert context.head[at.UNSURE] == (members == UNKNOWN and not endless)
    now = read(context, int(context.head[at.CANDIDATES]), at.NO_CANDIDATES)
    was = [registers[k] for k in watched[::-1]]
    is_watched = members not in (EMPTY, UNKNOWN)
    assert now == ([register, *was] if is_watched and register not in was else was)


@pytest.mark.parametrize("answer", [None, 0, 1])
@pytest.mark.parametrize("is_watched", [True, False])
@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("kind", [EMPTY, UNKNOWN, 0])
def test_a_member_ends(kind: int, is_open: bool, is_watched: bool, answer: int | None) -> None:
    """It joins the list unless one there equals it, which only a watched one can, and which the caller says."""
    context = Context(SMALL)
    one = chained(context, at.SPELLED, rb'"\n"')
    members = kind if kind in (EMPTY, UNKNOWN) else chained(context, EMPTY, [at.SPELLED, one])
    register, text = chained(context, members, [at.SPELLED]), chained(context, at.SPELLED, rb'"\t"')
    watch = chained(context, at.NO_CANDIDATES, [register]) if is_watched else at.NO_CANDIDATES
    if answer is not None:
        context.run(add_guard, register, text, 0, answer)
    context.head[[at.TEXT, at.CANDIDATES]] = OPEN if is_open else text, watch
    result = context.run(end_member, register)
    is_asked = is_watched and not is_open and kind not in (EMPTY, UNKNOWN)
    assert context.head[at.UNSURE] == (kind == UNKNOWN)
    assert context.head[at.CUT] == (is_asked and answer == 0)
    if kind == UNKNOWN or is_open:
        assert result == UNKNOWN
    elif is_asked and answer is None:
        assert result == -1 and context.request == (at.NEED_IS_UNIQUE, register)
    elif is_asked and answer == 0:
        assert result == 0
    else:
        assert read(context, result, register) == [text]


@settings(max_examples=6)
@given(st.lists(st.sets(st.integers(0, 255), max_size=20), min_size=1, max_size=3))
def test_bytes_that_keep_a_uniqueness_check_pending(kept: list[set[int]]) -> None:
    context = Context(SMALL)
    for k, some in enumerate(kept):
        guard = context.run(add_guard, k, 100 + k, 0, 1)
        assert guard == k
        words = context[at.GUARDS][guard * at.GUARD_W + at.GUARD_BYTES :].view("uint32")
        for byte in some:
            words[byte >> 5] |= 1 << (byte & 31)
    for k, some in enumerate(kept):
        assert {byte for byte in range(256) if context.call(keeps, k, byte)} == some
