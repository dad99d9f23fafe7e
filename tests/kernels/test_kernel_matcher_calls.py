"""Positions: the answer is -1, and nothing is written, unless one means something in this thread and epoch."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident

import numpy as np
import pytest

from constrain import Vocabulary, compile
from constrain.engine.matcher import Matcher
from constrain.kernels import matcher_calls
from constrain.kernels.call_layout import AT_EPOCH, AT_PLAIN, AT_SET, AT_THREAD, CHANGED
from constrain.kernels.layout import HEAD, WORKER

WORDS, MARK = 9, 12345
VOCABULARY = Vocabulary.bytes()


@pytest.fixture
def matcher() -> Matcher:
    made = compile(VOCABULARY, schema={"type": "array", "items": {"type": "integer"}}).matcher()
    made.mask()
    return made


def address(matcher: Matcher) -> int:
    return matcher._position.buffer_info()[0]


def with_marks() -> tuple[np.ndarray, np.ndarray]:
    """An array for a mask, and the memory around it."""
    memory = np.full(WORDS + 20, MARK, np.int32)
    return memory[10 : 10 + WORDS], memory


MEANINGLESS: dict[str, Callable[[Matcher], None]] = {
    "another thread's": lambda matcher: matcher._position.__setitem__(AT_THREAD, get_ident() + 1),
    "of another epoch": lambda matcher: matcher._position.__setitem__(AT_EPOCH, matcher._position[AT_EPOCH] + 1),
    "more to be looked at": lambda matcher: matcher._position.__setitem__(AT_PLAIN, 0),
    "ended": lambda matcher: matcher._position.__setitem__(AT_PLAIN, -1),
}


def test_a_position_that_stands_has_its_mask(matcher: Matcher) -> None:
    out, memory = with_marks()
    assert matcher_calls.mask_at(address(matcher), get_ident(), out.ctypes.data) == 0
    assert (out == matcher.mask()).all() and (memory[:10] == MARK).all() and (memory[-10:] == MARK).all()
    again = np.full(WORDS, MARK, np.int32)
    assert matcher_calls.note_array(address(matcher), id(again)) == WORDS
    assert matcher_calls.repeat_mask(address(matcher), get_ident()) == 0
    assert (again == out).all()


def test_a_position_moves_on_by_tokens_that_are_allowed(matcher: Matcher) -> None:
    before, plain = matcher._position[AT_SET], matcher._position[AT_PLAIN]
    for token in (-1, plain, plain + 1, ord("x"), ord("]")):
        assert matcher_calls.advance_at(address(matcher), get_ident(), token) == -1
        assert matcher._position[AT_SET] == before
    assert matcher_calls.advance_at(address(matcher), get_ident(), ord("[")) == 0
    there = matcher._position[AT_SET]
    assert there != before
    assert matcher_calls.advance_at(address(matcher), get_ident(), ord("]")) == 0
    assert matcher._accepted.to_list() == [ord("["), ord("]")]
    assert [matcher._accepted.set_before(index) for index in range(2)] == [before, there]


@pytest.mark.parametrize("name", MEANINGLESS)
def test_an_invalid_position_is_not_changed(matcher: Matcher, name: str) -> None:
    out, memory = with_marks()
    again = np.full(WORDS, MARK, np.int32)
    matcher_calls.note_array(address(matcher), id(again))
    MEANINGLESS[name](matcher)
    fields = matcher._position.tolist()
    assert matcher_calls.mask_at(address(matcher), get_ident(), out.ctypes.data) == -1
    assert matcher_calls.repeat_mask(address(matcher), get_ident()) == CHANGED
    assert matcher_calls.advance_at(address(matcher), get_ident(), ord("[")) == -1
    assert matcher._position.tolist() == fields and (memory == MARK).all() and (again == MARK).all()


CHANGES: dict[str, Callable[[np.ndarray], object]] = {
    "read-only": lambda array: array.setflags(write=False),
    "another type": lambda array: setattr(array, "dtype", np.float32),
    "resized": lambda array: array.resize(WORDS + 1, refcheck=False),
    "another shape": lambda array: setattr(array, "shape", (3, 3)),
    "shorter": lambda array: array.resize(WORDS - 1, refcheck=False),
}


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
@pytest.mark.parametrize("name", CHANGES)
def test_an_array_that_was_changed_in_place_is_not_written(matcher: Matcher, name: str) -> None:
    array = np.full(WORDS, MARK, np.int32)
    matcher_calls.note_array(address(matcher), id(array))
    assert matcher_calls.repeat_mask(address(matcher), get_ident()) == 0
    array[:] = MARK
    CHANGES[name](array)
    assert matcher_calls.repeat_mask(address(matcher), get_ident()) == CHANGED
    assert (array.view(np.int32).reshape(-1)[: WORDS - 1] == MARK).all()


def many(matchers: list[Matcher], rows: list[int], worker: int, workers: int, words: int) -> tuple[int, np.ndarray]:
    """Return the result of `matcher_calls.fill_masks` and the rows, each one word longer than its mask."""
    places = np.array([address(one) for one in matchers], np.int64)
    out, order = np.full((len(matchers), words + 1), MARK, np.int32), np.array(rows, np.int64)
    where = order.ctypes.data if rows else 0
    answer = matcher_calls.fill_masks(
        places.ctypes.data,
        where,
        0,
        len(matchers),
        worker,
        workers,
        get_ident(),
        out.ctypes.data,
        4 * (words + 1),
        words,
    )
    return answer, out


@pytest.mark.parametrize("words", [WORDS, WORDS + 3])
@pytest.mark.parametrize("rows", [[], [2, 0, 1]])
def test_rows_of_many_positions(words: int, rows: list[int]) -> None:
    matchers = [compile(VOCABULARY, schema={"type": kind}).matcher() for kind in ("array", "string", "integer")]
    wanted = np.zeros((3, words), np.int32)
    for row, matcher in zip(rows or [0, 1, 2], matchers):
        wanted[row, :WORDS] = matcher.mask()
    answer, out = many(matchers, rows, 0, 1, words)
    assert answer == 3 and (out[:, :words] == wanted).all() and (out[:, words] == MARK).all()
    matchers[1]._position[AT_PLAIN] = -1  # the text has ended: no token
    wanted[(rows or [0, 1, 2])[1]] = 0
    answer, out = many(matchers, rows, 0, 1, words)
    assert answer == 3 and (out[:, :words] == wanted).all() and (out[:, words] == MARK).all()


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("name", ["of another epoch", "more to be looked at", "another thread's"])
def test_the_first_row_that_needs_a_separate_call_is_returned(which: int, name: str) -> None:
    matchers = [compile(VOCABULARY, schema={"type": kind}).matcher() for kind in ("array", "string", "integer")]
    wanted = [matcher.mask().copy() for matcher in matchers]
    MEANINGLESS[name](matchers[which])
    answer, out = many(matchers, [], 0, 1, WORDS)
    assert answer == -1 - which
    assert all((out[k, :WORDS] == wanted[k]).all() for k in range(which)) and (out[which:] == MARK).all()


def test_rows_too_short_for_a_mask_are_not_written(matcher: Matcher) -> None:
    answer, out = many([matcher], [], 0, 1, WORDS - 1)
    assert answer == -1 and (out == MARK).all()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_each_row_is_one_workers(workers: int) -> None:
    matchers = [compile(VOCABULARY, schema={"type": kind}).matcher() for kind in ("array", "string", "integer", "null")]
    wanted = [matcher.mask().copy() for matcher in matchers]
    for number, matcher in enumerate(matchers):
        matcher._state_cache.arrays[HEAD][WORKER] = number * number
    owners = [number * number % workers for number in range(4)]
    places, counts = np.array([address(one) for one in matchers], np.int64), np.full(workers + 1, MARK, np.int64)
    most = matcher_calls.count_positions(places.ctypes.data, 4, workers, counts.ctypes.data)
    assert counts.tolist() == [*(owners.count(worker) for worker in range(workers)), MARK]
    assert most == max(counts[:workers])
    for worker in range(workers):
        answer, out = many(matchers, [], worker, workers, WORDS)
        assert answer == 4
        for number, owner in enumerate(owners):
            assert (out[number, :WORDS] == (wanted[number] if owner == worker else MARK)).all()
