"""A key-value cache with one row per text, for batches whose texts have different lengths and change between steps.

Keys and values of a layer are one tensor [rows, heads, length, dim], which grows by doubling and shrinks when told. A
pass works on a contiguous range of rows, which the model reads as a view, without a copy. Its new keys are written
after the end of each row, tree drafts included, and what is not part of the text is hidden by the attention mask:

    row 0   p p p t t t d d . .      p prompt, t text, d draft, . free
    row 1   p p t d . . . . . .      attention of a draft token: its row's text and its ancestors

This file has everything that depends on the Cache class of transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

__all__ = ["SlotCache"]

LEAST_LENGTH = 64
"""Positions of a new cache."""


class SlotLayer(CacheLayerMixin):  # type: ignore[misc]
    """The keys and values of one layer, and the place where the current pass writes."""

    is_sliding = False
    supports_early_init = False

    def __init__(self, cache: SlotCache) -> None:
        super().__init__()
        self.cache = cache

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Allocate the rows of the cache in the shape and dtype of these states."""
        self.keys, self.values = (
            torch.zeros(
                (self.cache.height, part.shape[1], self.cache.length, part.shape[3]),
                dtype=part.dtype, device=part.device,
            )
            for part in (key_states, value_states)
        )  # fmt: skip
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write the states [batch, heads, q, dim] of a pass; return all visible keys and values of its rows."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        first, last, visible = self.cache.first, self.cache.last, self.cache.visible
        out = []
        for store, states in ((self.keys, key_states), (self.values, value_states)):
            rows = store[first:last]
            if self.cache.common_start is not None:
                rows[:, :, self.cache.common_start : self.cache.common_start + states.shape[2]] = states
            else:
                places = self.cache.places.to(states.device)
                rows.scatter_(2, places[:, None, :, None].expand(states.shape), states)
            out.append(rows[:, :, :visible])
        return out[0], out[1]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the number of visible keys, and 0."""
        return self.cache.visible, 0

    def get_seq_length(self) -> int:
        """Return the number of visible keys before the pass."""
        return self.cache.visible

    def get_max_length(self) -> int:
        """Return -1: there is no maximum."""
        return -1

    def resize(self, height: int, length: int) -> None:
        """Enlarge or reduce the tensors, keeping the contents that fit."""
        if not self.is_initialized or self.keys.shape[::2] == (height, length):
            return
        resized = []
        for store in (self.keys, self.values):
            other = store.new_zeros((height, store.shape[1], length, store.shape[3]))
            rows, positions = min(height, store.shape[0]), min(length, store.shape[2])
            other[:rows, :, :positions] = store[:rows, :, :positions]
            resized.append(other)
        self.keys, self.values = resized


class SlotCache(Cache):  # type: ignore[misc]
    """Keys and values of all layers, by rows.

    Attributes
    ----------
    height, length : int
        Rows and positions that are allocated.
    first, last, visible : int
        The range of rows of the current pass, and the number of their positions that the model sees.
    places : Tensor, int64 [last - first, q]
        The positions where the pass writes, if they are not the same in all rows.
    common_start : int or None
        The first of these, if all rows write to the same positions.
    """

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.height, self.length = 1, LEAST_LENGTH
        self.first = self.last = self.visible = 0
        self.places = torch.zeros((0, 0), dtype=torch.long)
        self.common_start: int | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write the states of one layer; return the keys and values that it attends to."""
        while len(self.layers) <= layer_idx:
            self.layers.append(SlotLayer(self))
        keys, values = self.layers[layer_idx].update(key_states, value_states)
        return keys, values

    def reserve(self, height: int, length: int) -> None:
        """Enlarge the cache, by doubling, to at least this many rows and positions.

        After an error of allocation it has its old size, and some layers are larger, which is harmless.
        """
        if height <= self.height and length <= self.length:
            return
        height, length = round_size(max(height, self.height), max(length, self.length))
        for layer in self.layers:
            layer.resize(height, length)
        self.height, self.length = height, length

    def shrink(self, height: int, length: int) -> None:
        """Reduce the cache to the least size that `reserve` would give it for this many rows and positions."""
        self.height, self.length = round_size(height, length)
        for layer in self.layers:
            layer.resize(self.height, self.length)

    def count_bytes(self, height: int, length: int) -> int:
        """Return the size in bytes of a cache of this many rows and positions, as `reserve` rounds them; 0 as long as
        nothing was written, and for no rows.
        """
        if not height:
            return 0
        height, length = round_size(height, length)
        stores = [store for layer in self.layers if layer.is_initialized for store in (layer.keys, layer.values)]
        return sum(int(one.shape[1] * one.shape[3] * one.element_size()) for one in stores) * height * length

    def place(self, first: int, starts: Sequence[int], width: int, device: torch.device) -> None:
        """Prepare a pass of `width` tokens on the rows from `first` on, which write from these positions on."""
        self.first, self.last, self.visible = first, first + len(starts), max(starts) + width
        self.reserve(self.last, self.visible)
        self.common_start = starts[0] if len(set(starts)) == 1 else None
        if self.common_start is None:
            self.places = torch.tensor(starts, device=device)[:, None] + torch.arange(width, device=device)

    def copy_rows(self, sources: Sequence[int], targets: Sequence[int], length: int) -> None:
        """Copy the first positions of some rows to others, all at once, so that rows can also be exchanged."""
        self.reserve(max(*sources, *targets, -1) + 1, length)
        for layer in self.layers:
            for store in (layer.keys, layer.values):
                store[list(targets), :, :length] = store[list(sources), :, :length]

    def copy_positions(self, row: int, sources: Sequence[int], start: int) -> None:
        """Move the keys and values at some positions of a row to the positions from `start` on."""
        for layer in self.layers:
            for store in (layer.keys, layer.values):
                store[row, :, start : start + len(sources)] = store[row, :, list(sources)]

    def clear_row(self, row: int) -> None:
        """Set a row to zero, since hidden keys and values must be finite."""
        for layer in self.layers:
            layer.keys[row].zero_()
            layer.values[row].zero_()


def round_size(height: int, length: int) -> tuple[int, int]:
    """Return the rows and positions that are allocated for these: the next powers of two."""
    return 1 << (max(height, 1) - 1).bit_length(), max(LEAST_LENGTH, 1 << (max(length, 1) - 1).bit_length())
