"""`Matcher.mask(out)` writes to an array that fits and to nothing else, whatever is done to the array between calls."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from constrain import ArgumentError, Vocabulary, compile
from constrain.engine.mask_arrays import can_read_arrays
from constrain.kernels import layout as at

VOCABULARY = Vocabulary.bytes()
WORDS = 9
CONSTRAINT = compile(VOCABULARY, schema={"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})


def test_the_layout_of_arrays_is_known() -> None:
    """Else each call looks at its array from Python, which is right, too, and slower."""
    assert can_read_arrays()


@pytest.mark.parametrize(
    "out",
    [np.array(3, np.int32), np.zeros((2, WORDS), np.int32), np.zeros(2 * WORDS, np.int32)[::2], np.zeros(WORDS, ">i4")],
    ids=["no dimension", "two dimensions", "strides", "swapped bytes"],
)
def test_an_array_of_another_layout_is_refused(out: Any) -> None:
    with pytest.raises(ArgumentError, match="out must be a contiguous"):
        CONSTRAINT.matcher().mask(out)


def shape(new: Any) -> Callable[[Any], None]:
    return lambda out: setattr(out, "shape", new)


CHANGES: dict[str, Callable[[Any], None]] = {
    "nothing": lambda out: None,
    "resized to less": lambda out: out.resize(3, refcheck=False),
    "resized to none": lambda out: out.resize(0, refcheck=False),
    "resized to more": lambda out: out.resize(10_000, refcheck=False),
    "read-only": lambda out: out.setflags(write=False),
    "writeable again": lambda out: out.setflags(write=True),
    "float32": lambda out: setattr(out, "dtype", np.float32),
    "uint8": lambda out: setattr(out, "dtype", np.uint8),
    "int32": lambda out: setattr(out, "dtype", np.int32),
    "a matrix": shape((3, 3)),
    "a column": shape((9, 1)),
    "a row": shape((9,)),
    "filled": lambda out: out.fill(5),
}
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@given(st.lists(st.sampled_from(sorted(CHANGES)), max_size=8), st.booleans())
def test_an_array_that_changes_between_calls(changes: list[str], ended: bool) -> None:
    matcher = CONSTRAINT.matcher()
    if ended:
        matcher.advance_bytes(b'{"a":""}')
        matcher.advance(256)
    wanted = matcher.mask()
    out = np.zeros(WORDS, np.int32)
    matcher.mask(out)
    for change in changes:
        try:
            CHANGES[change](out)
        except ValueError:  # numpy refuses that
            continue
        before = out.copy()
        if out.shape == (WORDS,) and out.dtype == np.int32 and out.flags.writeable:
            assert matcher.mask(out) is out
            assert out.tolist() == wanted.tolist()
            continue
        for _ in range(2):
            with pytest.raises(ValueError, match="out must be"):
                matcher.mask(out)
        assert np.array_equal(out, before, equal_nan=out.dtype == np.float32)


@pytest.mark.parametrize("bad", [
    np.zeros(WORDS, np.int64), np.zeros(WORDS - 1, np.int32), np.zeros(2 * WORDS, np.int32)[::2],
    np.zeros((1, WORDS), np.int32), np.zeros(WORDS, ">i4"), np.frombuffer(bytes(4 * WORDS), np.int32),
])  # fmt: skip
def test_an_array_that_does_not_fit(bad: Any) -> None:
    matcher, before = CONSTRAINT.matcher(), bad.copy()
    good = matcher.mask()
    for _ in range(2):
        with pytest.raises(ValueError, match="out must be"):
            matcher.mask(bad)
        assert matcher.mask(good) is good
    assert np.array_equal(bad, before)


def test_an_array_that_is_gone_is_not_another() -> None:
    """A new array may get the address of an old object."""
    matcher = CONSTRAINT.matcher()
    wanted = matcher.mask().tolist()
    for size in (WORDS, 3, WORDS, 1, WORDS):
        for _ in range(20):
            out = np.zeros(size, np.int32)
            if size == WORDS:
                assert matcher.mask(out).tolist() == wanted
            else:
                with pytest.raises(ValueError, match="out must be"):
                    matcher.mask(out)
            del out
            gc.collect(0)


def test_views_and_forks() -> None:
    base = np.zeros((4, WORDS), np.int32)
    matcher = CONSTRAINT.matcher()
    wanted = matcher.mask().tolist()
    for row in (2, 2, 0):
        view = base[row]
        for other in (matcher, matcher.fork(), matcher):
            assert other.mask(view) is view
    assert base.tolist() == [wanted, [0] * WORDS, wanted, [0] * WORDS]


def test_a_subclass_is_looked_at_each_time() -> None:
    class Odd(np.ndarray):
        pass

    matcher, out = CONSTRAINT.matcher(), np.zeros(WORDS, np.int32).view(Odd)
    for _ in range(3):
        assert matcher.mask(out) is out
    assert np.asarray(out).tolist() == matcher.mask().tolist()


# ---- how much memory a constraint uses


@given(st.lists(st.sampled_from([b'{"a"', b':"', b"xy", b'"', b"}", b" ", b"\\u00"]), max_size=9), st.integers(0, 2))
def test_bytes_used_are_those_that_were_written(parts: list[bytes], source: int) -> None:
    """Of each slot: what is counted holds all that was written, and hardly more; never more than is there."""
    schemas: list[Any] = [
        {"properties": {"a": {"type": "string"}}},
        {"uniqueItems": True},
        {"type": "string", "maxLength": 9},
    ]
    vocabulary = Vocabulary.bytes()  # with fresh memory: all 0
    constraint = compile(vocabulary, schema=schemas[source])
    matcher = constraint.matcher()
    for part in parts:
        matcher.mask()
        for byte in part:
            if matcher.allows(byte):
                matcher.advance(byte)
                matcher.mask()
    state_cache = constraint.state_cache()
    filled = state_cache.filled()
    sets = state_cache.arrays[at.SETS].reshape(-1, at.SET_W)[: filled[at.SETS] // at.SET_W]
    most = int(sets[:, at.SET_COUNT].max()) + 1  # a set that turns out to be known is written and not counted
    for slot in (at.SETS, at.CONFIGS, at.NODES, at.EDGES, at.CURSORS, at.OBJECTS, at.NAMES, at.MASKS, at.WIDE):
        array = state_cache.arrays[slot]
        written = np.flatnonzero(array)
        last = int(written[-1]) + 1 if len(written) else 0
        assert filled[slot] <= array.size
        width = {at.SETS: at.SET_W, at.WIDE: 256, at.MASKS: WORDS + 2, at.CONFIGS: at.CONFIG_W * most}.get(slot, 8)
        assert last <= filled[slot] + width, slot  # What is being made follows what is counted.
        assert filled[slot] - last <= 2 * width, slot
    assert state_cache.bytes_filled() == 4 * sum(filled) <= state_cache.bytes_used()
    assert constraint.bytes_used >= state_cache.bytes_filled() + constraint.program.used * 4
