"""Constraints that live on a card: states, transitions and masks there, steps by a kernel, no word to the host.

    here = ResidentConstraints([token_table(constraint), ...], "cuda")
    at = here.start([0, 0, 1])                                          rows 0 and 1 under the first constraint
    loop, or one CUDA graph:   drawn = mask_softmax_sample(logits, here.masks, sources=at.rows, seeds=..., steps=...)
                               here.step(at, drawn.tokens)

`step` writes in place, so a captured graph finds every position where it left it. Which constraints fit: `token_table`;
the others' masks are made on the host while the model runs (`overlap`).
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
    """Where each row of a batch is. states, rows: int32 [B] on the card; rows: which of the masks is this state's."""

    states: torch.Tensor
    rows: torch.Tensor


class ResidentConstraints:
    """Tables of one vocabulary on one device. masks: int32 [R, words], by `Places.rows`."""

    def __init__(self, tables: Sequence[TokenTable], device: torch.device | str) -> None:
        whole = pool_tables(tables)
        self.starts, self.width, self.nbytes = whole.starts, whole.vocabulary.size, whole.nbytes
        self.states, self.classes, self.slots, self.masks = (
            torch.from_numpy(array).to(device) for array in (whole.states, whole.classes, whole.slots, whole.masks)
        )

    def start(self, which: Sequence[int]) -> ResidentPositions:
        """The beginning of a text for each row; which: the number of its table."""
        begin = torch.tensor([self.starts[one] for one in which], dtype=torch.int32)
        return self.at(begin.to(self.states.device))

    def at(self, states: torch.Tensor) -> ResidentPositions:
        """Positions in given states, int32 [B]."""
        return ResidentPositions(states, self.states[states.long(), ROW].contiguous())

    def step(self, places: ResidentPositions, tokens: torch.Tensor) -> None:
        """Takes one token in each row (int32 [B] on the card), in place. Waits for nothing."""
        if tokens.dtype != torch.int32 or tokens.shape != places.states.shape:
            raise ArgumentError(
                f"tokens are {tokens.dtype} {list(tokens.shape)}: give int32 {list(places.states.shape)}"
            )
        count = len(places.states)
        launch_kernel(
            advance, -(-count // THREADS), THREADS, self.states, self.classes, self.slots, self.width, tokens,
            places.states, places.rows,
        )  # fmt: skip

    def ended(self, places: ResidentPositions) -> torch.Tensor:
        """bool [B]: an end token was taken."""
        return places.states == ENDED

    def refused(self, places: ResidentPositions) -> torch.Tensor:
        """bool [B]: a token was taken that is not allowed, or none was found; all that follows is refused too."""
        return places.states == REFUSED
