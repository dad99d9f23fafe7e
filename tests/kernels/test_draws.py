"""The kernels that draw from a row under a mask, against numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from constrain.kernels import draws

SIZES = st.one_of(st.integers(1, 100), st.sampled_from([31, 32, 33, 2047, 2048, 2049, 4128, 5000]))
CLOSE = {np.float32: 3e-7, np.float64: 3e-15}


def bits_of(mask: NDArray[np.int32], size: int) -> NDArray[np.bool_]:
    return np.unpackbits(mask.view(np.uint8), bitorder="little")[:size].astype(bool)


@st.composite
def rows_and_masks(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Log-probabilities, some -inf, of either type; any mask of them: full, empty, one token, sparse, dense."""
    size, rng = draw(SIZES), np.random.default_rng(draw(st.integers(0, 2**32)))
    row = rng.normal(-12, draw(st.sampled_from([0.1, 3.0, 30.0])), size).clip(max=0.0)
    row[rng.random(size) < draw(st.sampled_from([0.0, 0.3]))] = -np.inf
    chosen = rng.random(size) < draw(st.sampled_from([0.0, 0.02, 0.5, 1.0]))
    if draw(st.booleans()):
        chosen[rng.integers(size)] = True
    padded = np.zeros((size + 31) // 32 * 32, np.uint8)
    padded[:size] = chosen
    mask = np.packbits(padded, bitorder="little").view(np.int32)
    return row.astype(draw(st.sampled_from([np.float32, np.float64]))), mask


def summed(row: NDArray[Any], mask: NDArray[np.int32]) -> tuple[float, NDArray[np.float64]]:
    sums = np.full(len(mask) + -(-len(mask) // draws.GROUP), np.nan)
    return draws.sum_masses(row, mask, sums), sums


@settings(deadline=None)
@given(rows_and_masks())
def test_masses_are_sums_of_exponentials(given_: tuple[NDArray[Any], NDArray[np.int32]]) -> None:
    row, mask = given_
    words, close = len(mask), CLOSE[row.dtype.type]
    total, sums = summed(row, mask)
    exact = np.where(bits_of(mask, len(row)), np.exp(row.astype(np.float64)), 0.0)
    tiny = len(row) * math.exp(-87 if row.dtype == np.float32 else -708)
    assert total == pytest.approx(math.fsum(exact), rel=close, abs=tiny)
    assert sums[words:].sum() == pytest.approx(total, rel=1e-14)
    by_word = np.array([exact[at : at + 32].sum() for at in range(0, len(row), 32)])
    assert sums[:words] == pytest.approx(by_word, rel=close, abs=tiny)
    if exact.any():
        row = row.copy()
        row[int(np.flatnonzero(bits_of(mask, len(row)))[-1])] = np.nan
        assert math.isnan(summed(row, mask)[0])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_exponential_is_within_its_bound(kind: Any) -> None:
    """Token by token, over the whole range: 0 where documented, and otherwise within the bound."""
    row = np.concatenate([np.linspace(-90, 0.01, 60_000), -np.logspace(-30, 0, 4_000)]).astype(kind)
    bound = 2e-7 if kind is np.float32 else 1e-15
    for at in range(0, len(row), 32):
        for lane in (0, 13, 31):
            mask = np.zeros(len(row) // 32, np.uint32)
            mask[at // 32] = 1 << lane
            found, x = (
                draws.sum_masses(row[at : at + 32], mask.view(np.int32)[at // 32 :][:1], np.empty(2)),
                row[at + lane],
            )
            assert found == (0 if kind is np.float32 and x < -87 else pytest.approx(math.exp(x), rel=bound, abs=0))


@settings(deadline=None)
@given(rows_and_masks(), st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20))
def test_positions_are_those_of_the_running_sum(
    given_: tuple[NDArray[Any], NDArray[np.int32]], uniforms: list[float]
) -> None:
    row, mask = given_
    total, sums = summed(row, mask)
    if not total > 0:
        return
    exact = np.where(bits_of(mask, len(row)), np.exp(row.astype(np.float64)), 0.0)
    edges = np.concatenate([[0.0], np.cumsum(exact)]) / exact.sum()
    for uniform in [*uniforms, 0.0, float(np.nextafter(1, 0))]:
        token = draws.find_token(row, mask, sums, uniform)
        assert exact[token] > 0
        assert edges[token] - 1e-6 <= uniform <= edges[token + 1] + 1e-6


@settings(deadline=None)
@given(rows_and_masks(), st.randoms(use_true_random=False))
def test_remove_tokens_equals_a_mask_without_them(given_: tuple[NDArray[Any], NDArray[np.int32]], rng: Any) -> None:
    row, mask = given_
    _, sums = summed(row, mask)
    tokens = np.flatnonzero(bits_of(mask, len(row)))
    for count in (0, 1, 4):
        chosen = np.array(rng.sample(tokens.tolist(), min(count, len(tokens))), np.int64)
        wanted = bits_of(mask, len(row))
        wanted[chosen] = False
        left = draws.remove_tokens(row, mask, sums, chosen)
        assert np.array_equal(bits_of(mask, len(row)), wanted)
        tokens = np.setdiff1d(tokens, chosen)
        total, fresh = summed(row, mask)
        assert left == pytest.approx(total, rel=1e-6)
        assert sums == pytest.approx(fresh, rel=1e-6)


@settings(deadline=None)
@given(rows_and_masks(), st.integers(0, 6000))
def test_list_tokens_returns_the_tokens_of_a_mask(given_: tuple[NDArray[Any], NDArray[np.int32]], room: int) -> None:
    row, mask = given_
    wanted = np.flatnonzero(bits_of(mask, len(row)))
    tokens = np.full(room, -1)
    assert draws.list_tokens(mask, tokens) == min(len(wanted), room + 1)
    assert tokens[: len(wanted)].tolist() == wanted[:room].tolist()


@settings(deadline=None)
@given(rows_and_masks(), st.floats(-40, 0), st.integers(0, 6000))
def test_above_a_floor(given_: tuple[NDArray[Any], NDArray[np.int32]], floor: float, room: int) -> None:
    row, floor = given_[0].copy(), given_[0].dtype.type(floor)
    row[len(row) // 2] = np.nan
    wanted = np.flatnonzero((row > floor) | np.isnan(row))
    tokens, masses, edges = np.full(room, -1), np.empty(room), np.empty(room)
    assert draws.list_above(row, floor, tokens, masses, edges) == len(wanted)
    listed = wanted[:room]
    assert tokens[: len(wanted)].tolist() == listed.tolist()
    exact = np.exp(row[listed].astype(np.float64))
    assert masses[: len(listed)] == pytest.approx(exact, rel=1e-15, nan_ok=True)
    assert edges[: len(listed)] == pytest.approx(np.cumsum(exact), rel=1e-13, nan_ok=True)


def test_masses_above_a_floor_are_those_of_80_at_most() -> None:
    tokens, masses, edges = np.empty(2, np.int64), np.empty(2), np.empty(2)
    assert draws.list_above(np.array([700.0, np.inf]), 0.0, tokens, masses, edges) == 2
    assert masses == pytest.approx([np.exp(80)] * 2)


def test_rows_that_may_not_be_written_are_read() -> None:
    row = np.zeros(40, np.float32)
    row.flags.writeable = False
    assert summed(row, np.array([1, 3], np.int32))[0] == 3.0


@pytest.mark.parametrize("words", [1, 63, 64, 65, 127, 128, 129])
def test_sums_are_written_for_each_word_and_each_group_and_no_further(words: int) -> None:
    row, mask = np.zeros(32 * words, np.float32), np.full(words, 0b101, np.int32)
    groups = -(-words // draws.GROUP)
    memory = np.full(words + groups + 20, -7.0)
    sums = memory[10:-10]
    assert draws.sum_masses(row, mask, sums) == 2 * words
    assert (sums[:words] == 2).all()
    assert sums[words:].tolist() == [2 * len(mask[at : at + draws.GROUP]) for at in range(0, words, draws.GROUP)]
    assert draws.remove_tokens(row, mask, sums, np.array([32 * words - 30])) == 2 * words - 1
    assert sums[words - 1] == 1 and sums[-1] == 2 * (words - draws.GROUP * (groups - 1)) - 1
    assert (memory[:10] == -7).all() and (memory[-10:] == -7).all()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_least_log_that_is_not_0(kind: Any) -> None:
    least = kind(draws.LOW32 if kind is np.float32 else draws.LOW64)
    mask = np.array([1], np.int32)
    assert draws.sum_masses(np.array([least]), mask, np.empty(2)) == pytest.approx(math.exp(least), rel=3e-7, abs=0)
    assert draws.sum_masses(np.array([np.nextafter(least, kind(-np.inf))]), mask, np.empty(2)) == 0
    assert draws.sum_masses(np.array([kind(-np.inf)]), mask, np.empty(2)) == 0


@settings(deadline=None)
@given(rows_and_masks(), st.lists(st.integers(0, 8000), unique=True, max_size=60))
def test_a_mask_is_split_into_some_tokens_and_all_others(
    given_: tuple[NDArray[Any], NDArray[np.int32]], tokens: list[int]
) -> None:
    _, mask = given_
    size, before = 32 * len(mask), mask.copy()
    bits = bits_of(mask, size)
    masses = np.random.default_rng(0).random(len(tokens))
    others, allowed, edges = np.empty_like(mask), np.full(len(tokens), -1), np.full(len(tokens), -1.0)
    count = draws.split_mask(mask, np.array(tokens, np.int64), masses, others, allowed, edges)
    present = [i for i, token in enumerate(tokens) if token < size and bits[token]]
    bits[[tokens[i] for i in present]] = False
    assert count == (len(present) if bits.any() else -1 - len(present))
    assert np.array_equal(mask, before) and np.array_equal(bits_of(others, size), bits)
    assert allowed[: len(present)].tolist() == [tokens[i] for i in present] and (allowed[len(present) :] == -1).all()
    assert edges[: len(present)] == pytest.approx(np.cumsum(masses[present])) and (edges[len(present) :] == -1).all()


@settings(deadline=None)
@given(rows_and_masks(), st.integers(1, 140), st.booleans())
def test_the_likeliest_tokens_are_those_of_a_sort(
    given_: tuple[NDArray[Any], NDArray[np.int32]], most: int, rounded: bool
) -> None:
    row, mask = given_
    if rounded:  # many equal logits
        row = np.round(row)
    _, sums = summed(row, mask)
    tokens, logs = np.full(most + 4, -1), np.full(most + 4, 7.0)
    count = draws.list_likeliest(row, mask, sums, tokens[2:-2], logs[2:-2])
    least = draws.LOW32 if row.dtype == np.float32 else draws.LOW64
    allowed = [t for t in np.flatnonzero(bits_of(mask, len(row))).tolist() if row[t] > -np.inf]
    counted = [t for t in allowed if sums[t // 32] > 0]
    assert all(row[t] < least for t in set(allowed) - set(counted))
    expected = sorted(sorted(counted, key=lambda t: -row[t])[:most])
    assert tokens[2 : 2 + count].tolist() == expected
    assert logs[2 : 2 + count].tolist() == row[expected].tolist()
    assert tokens[[0, 1, -2, -1]].tolist() == [-1] * 4 and logs[[0, 1, -2, -1]].tolist() == [7.0] * 4


def test_the_likeliest_tokens_of_a_peaked_row_and_of_one_whose_words_are_alike() -> None:
    rng = np.random.default_rng(0)
    for scale in (0.0, 1e-9, 1.0, 10.0, 100.0):
        row = rng.normal(0, scale, 64_000)
        row -= np.logaddexp.reduce(row)
        mask = np.full(2000, -1, np.int32)
        _, sums = summed(row, mask)
        tokens, logs = np.empty(128, np.int64), np.empty(128)
        assert draws.list_likeliest(row, mask, sums, tokens, logs) == 128
        assert tokens.tolist() == sorted(np.argsort(-row, kind="stable")[:128].tolist())
