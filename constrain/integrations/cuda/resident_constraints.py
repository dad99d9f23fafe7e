"""Constraints resident on a GPU: states, transitions and masks in device memory, advanced by a kernel.

    here = ResidentConstraints([token_table(constraint), ...], "cuda")
    at = here.start([0, 0, 1])                                          rows 0 and 1 under the first constraint
    loop, or one CUDA graph:   drawn = mask_softmax_sample(logits, here.masks, sources=at.rows, seeds=..., steps=...)
                               here.step(at, drawn.tokens)

`step` writes in place, so it can be captured in a CUDA graph. `token_table` says which constraints have a table; masks
of the others are computed on the host while the model runs (`mask_overlap`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ...base.errors import ArgumentError
from ...kernels.cuda.cuda_automaton import REFUSED, ROW, advance
from .tensor_launch import launch_kernel
from .token_tables import ENDED, TokenTable, pool_tables

__all__ = ["ResidentPositions", "ResidentConstraints"]

THREADS = 64


@dataclass(frozen=True)
class ResidentPositions:
    """The positions of a batch of rows: int32 [B] on the device.

    states: the state of each row; rows: index of its mask.
    """

    states: torch.Tensor
    rows: torch.Tensor


class ResidentConstraints:
    """Token tables of one vocabulary on one device. masks: int32 [R, words], indexed by `ResidentPositions.rows`."""

    def __init__(self, tables: Sequence[TokenTable], device: torch.device | str) -> None:
        pooled = pool_tables(tables)
        self.starts, self.width, self.nbytes = pooled.starts, pooled.vocabulary.size, pooled.nbytes
        self.states, self.classes, self.slots, self.masks = (
            torch.from_numpy(array).to(device) for array in (pooled.states, pooled.classes, pooled.slots, pooled.masks)
        )

    def start(self, which: Sequence[int]) -> ResidentPositions:
        """Return the start position of each row. which: for each row, the index of its table."""
        begin = torch.tensor([self.starts[one] for one in which], dtype=torch.int32)
        return self.at(begin.to(self.states.device))

    def at(self, states: torch.Tensor) -> ResidentPositions:
        """Return the positions of given states, int32 [B]."""
        return ResidentPositions(states, self.states[states.long(), ROW].contiguous())

    def step(self, positions: ResidentPositions, tokens: torch.Tensor) -> None:
        """Advance each row by one token (int32 [B] on the device), in place. The call does not synchronise."""
        if tokens.dtype != torch.int32 or tokens.shape != positions.states.shape:
            raise ArgumentError(
                f"tokens are {tokens.dtype} {list(tokens.shape)}: give int32 {list(positions.states.shape)}"
            )
        count = len(positions.states)
        launch_kernel(
            advance, -(-count // THREADS), THREADS, self.states, self.classes, self.slots, self.width, tokens,
            positions.states, positions.rows,
        )  # fmt: skip

    def ended(self, positions: ResidentPositions) -> torch.Tensor:
        """Return which rows have taken an end token, bool [B]."""
        return positions.states == ENDED

    def refused(self, positions: ResidentPositions) -> torch.Tensor:
        """Return which rows have taken a token that is not allowed, or -1, bool [B]. Such a row stays refused."""
        return positions.states == REFUSED
