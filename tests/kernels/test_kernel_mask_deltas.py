"""Mask deltas: masks are restored as they were stored, take no more space than needed, equal ones none, and no word
beyond is written.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from constrain.kernels import layout as at
from constrain.kernels.context_views import COMPARED
from constrain.kernels.mask_deltas import NO_ROW, NOT_STORED, PAIR_WORDS, apply_delta, store_delta
from constrain.vocabulary.mask_table import data_address

Words = NDArray[np.int32]


class Slots:
    """The slots of a context that mask deltas use, MASKS between marks."""

    def __init__(self, rows: list[Words], room: int) -> None:
        words = len(rows[0])
        self.memory = np.full(room + 2000, 77, np.int32)
        self.arrays = {at.HEAD: np.zeros(at.HEAD_W, np.int32), at.TABLE: np.zeros(at.HEAD_W, np.int32),
                       at.ROWS: np.concatenate(rows), at.MASKS: self.memory[1000 : 1000 + room],
                       at.MASK_HASH: np.zeros(2, np.int32)}  # fmt: skip
        self.arrays[at.HEAD][at.N_MASKS] = 1
        self.arrays[at.TABLE][at.T_WORDS] = words
        self.context = np.zeros(2 * at.SLOTS, np.int64)
        for slot, array in self.arrays.items():
            self.context[2 * slot : 2 * slot + 2] = data_address(array), array.size

    def keep(self, base: int, mask: Words, parsed: bool) -> int:
        before = mask.copy()
        delta = store_delta(data_address(self.context), base, data_address(mask), parsed)  # type: ignore[arg-type]
        assert (mask == before).all()
        assert (self.memory[:1000] == 77).all() and (self.memory[1000 + len(self.arrays[at.MASKS]) :] == 77).all()
        return delta

    def follow(self, delta: int) -> Words:
        between = np.full(len(self.arrays[at.ROWS]) + 20, 55, np.int32)
        words = int(self.arrays[at.TABLE][at.T_WORDS])
        out = between[10 : 10 + words]
        assert apply_delta(data_address(self.context), delta, data_address(out)) == 0  # type: ignore[arg-type]
        assert (between[:10] == 55).all() and (between[10 + words :] == 55).all()
        return out


@st.composite
def rows_and_masks(draw: st.DrawFn) -> tuple[list[Words], list[tuple[int, Words]]]:
    """Some rows, and masks that differ from a row, or from nothing, in a small or large number of bits."""
    words, seed = draw(st.sampled_from([1, 15, 16, 17, 33, 700])), draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    rows = [rng.integers(-(2**31), 2**31, words).astype(np.int32) for _ in range(3)]
    rows[1][rng.random(words) < 0.95] = 0
    rows[2][:] = 0
    masks = []
    for _ in range(draw(st.integers(1, 8))):
        base = draw(st.sampled_from([NO_ROW, 0, 1, 2]))
        mask = np.zeros(words, np.int32) if base == NO_ROW else rows[base].copy()
        for bit in draw(st.lists(st.integers(0, 32 * words - 1), max_size=6)):
            mask[bit >> 5] ^= np.array(1 << (bit & 31), np.uint32).astype(np.int32)
        if draw(st.booleans()):
            mask[draw(st.integers(0, words)) :] = rng.integers(-(2**31), 2**31)
        masks.append((base, mask))
    return rows, masks


@given(rows_and_masks(), st.integers(0, 3000), st.booleans())
def test_masks_are_restored_and_take_no_more_space_than_their_length(
    given_: tuple[list[Words], list[tuple[int, Words]]], room: int, parsed: bool
) -> None:
    rows, masks = given_
    slots, words = Slots(rows, room), len(rows[0])
    head, stored = slots.arrays[at.HEAD], list[tuple[int, Words]]()
    for base, mask in masks:
        used = int(head[at.N_MASKS])
        delta = slots.keep(base, mask, parsed)
        if used + at.MASK_HEAD + words > room:
            asked = parsed and room < at.MOST_MASKS * words
            assert delta == (-1 if asked else NOT_STORED) and head[at.N_MASKS] == used
            assert (head[at.STATUS], head[at.ARGUMENT]) == ((at.FULL, at.MASKS) if asked else (0, 0))
            head[at.STATUS] = head[at.ARGUMENT] = 0
            continue
        if delta != used:
            assert head[at.N_MASKS] == used and any(delta == one and (mask == known).all() for one, known in stored)
            continue
        against = np.zeros(words, np.int32) if base == NO_ROW else rows[base]
        changed = int(np.count_nonzero(mask ^ against))
        size = int(head[at.N_MASKS]) - used
        assert size == at.MASK_HEAD + (PAIR_WORDS * changed if size < at.MASK_HEAD + words else words)
        if PAIR_WORDS * (changed + COMPARED) <= words:
            assert size == at.MASK_HEAD + PAIR_WORDS * changed
        assert slots.keep(base, mask, parsed) in (delta, NOT_STORED, -1) and head[at.N_MASKS] == used + size
        head[at.STATUS] = head[at.ARGUMENT] = 0
        stored.append((delta, mask))
    for delta, mask in stored:
        assert (slots.follow(delta) == mask).all()
