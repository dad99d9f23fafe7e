"""Many bytes in one advance: the work is in proportion to them, and the result that of one byte after another."""

from __future__ import annotations

import contextlib
import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given, strategies as st

from constrain import Constraint, LimitError, Limits, Style, TokenRefused, Vocabulary, compile
from constrain.engine import state_cache
from constrain.engine.state_cache import MOST_AT_ONCE, StateCache, StateCacheEvicted
from constrain.engine.uniqueness.uniqueness_memo import STEP_SHARE, TOKEN_BYTES
from constrain.kernels import entry_points

DISTINCT = {"type": "array", "uniqueItems": True}
VOCABULARY = Vocabulary.bytes()


def compile_distinct(limits: Limits) -> Constraint:
    """Return the constraint of arrays of distinct values in any spelling."""
    return compile(VOCABULARY, schema=DISTINCT, style=Style.any(), limits=limits)


CONSTRAINT = compile_distinct(Limits())


def begin_array(items: list[Any]) -> bytes:
    """Return the text of an array without its closing bracket.

    Kernels ask for each comparison with its first two members, which have an exponent and an escape.
    """
    return json.dumps([1e20, {"é": 1}, *items], separators=(",", ":")).encode()[:-1]


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes that each call of the kernel is given, which it may walk over."""
    lengths, kernel = list[int](), entry_points.advance_bytes

    def advance_bytes(address: int, state: int, octets: Any) -> int:
        lengths.append(len(octets))
        return kernel(address, state, octets)

    monkeypatch.setattr(entry_points, "advance_bytes", advance_bytes)
    return lengths


def test_twice_the_text_is_twice_the_work(walked: list[int]) -> None:
    """Each member makes requests, after which the kernel must not walk over all members before it again."""
    sums = []
    for number in (120, 240):
        CONSTRAINT.state_cache(0).reset()
        CONSTRAINT.matcher().advance_bytes(begin_array([f"é{k}" for k in range(number)]))
        sums.append(sum(walked))
        walked.clear()
    assert sums[1] < 3 * sums[0]


def test_a_text_that_lacks_nothing_is_walked_in_one_call(walked: list[int]) -> None:
    text = begin_array([f"é{k}" for k in range(40)])
    CONSTRAINT.matcher().advance_bytes(text)
    walked.clear()
    CONSTRAINT.matcher().advance_bytes(text)
    assert walked == [len(text)]


class Outcome(NamedTuple):
    """What became of an advance: the refused byte or the error, what was spent, and the matcher after it."""

    error: int | str | None
    spent: int
    mask: bytes | None
    text: bytes


def advance_in_parts(constraint: Constraint, text: bytes, most: int) -> Outcome:
    """Return the outcome of an advance over a text that is new to the state cache, in parts of at most `most` bytes."""
    cache = constraint.state_cache(0)
    cache.reset()
    error: int | str | None = None
    matcher = constraint.matcher()
    matcher.advance_bytes(b"[")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_cache, "MOST_AT_ONCE", most)
        try:
            matcher.advance_bytes(text)
        except TokenRefused as refusal:
            error = refusal.position
        except LimitError as exceeded:
            error = str(exceeded)
    spent = 0 if cache._uniqueness is None else cache._uniqueness.spent
    assert matcher.text == (b"[" if error is not None else b"[" + text)
    mask: bytes | None = None
    with contextlib.suppress(LimitError):  # the budget may be too small for a mask
        mask = matcher.mask().tobytes()
    return Outcome(error, spent, mask, matcher.text)


items = st.one_of(
    st.integers(-30, 30),
    st.text('aé\\"', max_size=4),
    st.lists(st.integers(0, 3), max_size=2),
    st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 3), max_size=2),
)


@given(
    st.lists(items, min_size=4, max_size=24, unique_by=json.dumps),
    st.integers(0, 300),
    st.booleans(),
    st.sampled_from([None, 3_000, 9_000]),
)
def test_parts_of_any_size_have_the_result_of_one(
    values: list[Any], wrong: int, repeats: bool, work: int | None
) -> None:
    """Of a wrong byte, an item that repeats another one, and a budget that does not suffice, too."""
    constraint = CONSTRAINT if work is None else compile_distinct(Limits(work=work))
    text = begin_array(values + values[:1] if repeats else values)[1:]
    if wrong < len(text):
        text = text[:wrong] + b"}" + text[wrong:]
    expected = advance_in_parts(constraint, text, len(text))
    for most in (1, 7, MOST_AT_ONCE):
        assert advance_in_parts(constraint, text, most) == expected
    if not isinstance(expected.error, str):
        matcher, taken = CONSTRAINT.matcher(), 0
        matcher.advance_bytes(b"[")
        while taken < len(text) and matcher.allows(text[taken]):
            matcher.advance(text[taken])
            taken += 1
        assert expected.error == (taken if taken < len(text) else None)


def test_the_parts_of_a_text_share_its_budget() -> None:
    """What all of it may take, one part of it may: the last members are compared with more values than the first."""
    text = begin_array([{"a": k} for k in range(40)])[1:]
    needed = advance_in_parts(CONSTRAINT, text, MOST_AT_ONCE).spent
    shares = 1 + len(text) // TOKEN_BYTES
    share = -(-needed // shares)
    enough, too_little = (compile_distinct(Limits(work=STEP_SHARE * k)) for k in (share, share - 1))
    assert advance_in_parts(enough, text, MOST_AT_ONCE).error is None
    error = advance_in_parts(too_little, text, MOST_AT_ONCE).error
    assert f"more than {(share - 1) * shares:,} units in one step" in str(error)


def test_a_refused_long_text_leaves_the_matcher_where_it_was() -> None:
    text = begin_array(list(range(1_000, 1_060)))
    matcher = CONSTRAINT.matcher()
    matcher.advance_bytes(text)
    before = matcher.mask().tobytes()
    again = b"".join(b",%d" % number for number in (*range(2_000, 2_050), 1_030))
    with pytest.raises(TokenRefused) as refused:
        matcher.advance_bytes(again + b",1]")
    assert refused.value.position == len(again) > 3 * MOST_AT_ONCE
    assert matcher.mask().tobytes() == before and matcher.text == text
    matcher.advance_bytes(b",3000]")
    assert matcher.is_complete
    matcher.rollback(2)
    assert matcher.text == b"" and matcher.allows(ord("["))


def test_an_eviction_between_parts_begins_the_text_again(monkeypatch: pytest.MonkeyPatch) -> None:
    text = begin_array(list(range(1_000, 1_060)))
    expected = advance_in_parts(CONSTRAINT, text[1:], len(text))
    serve, calls = StateCache._serve, list[int]()

    def evict_once(cache: StateCache, kernel: Any, arguments: tuple[Any, ...]) -> int:
        if kernel is entry_points.advance_bytes:
            calls.append(len(arguments[1]))
            if len(calls) == 3:
                cache.reset()
                raise StateCacheEvicted
        return serve(cache, kernel, arguments)

    monkeypatch.setattr(StateCache, "_serve", evict_once)
    found = advance_in_parts(CONSTRAINT, text[1:], MOST_AT_ONCE)
    assert found == expected and found.error is None and len(calls) > 6
