"""Exponential races on a GPU for `awrs_tensors.step_batch`: only the first few tokens of each row are copied to the
host.
"""

from __future__ import annotations

import math

import torch

from ...base.errors import ArgumentError
from ...kernels.cuda.cuda_device import SIMULATED
from ...kernels.cuda.cuda_race import MOST_ARRIVALS, find_arrivals
from .tensor_launch import flatten_masks, launch_kernel, rows_of

__all__ = ["KernelRace", "pack_masks"]

THREADS = 4 if SIMULATED else 512
"""Threads of a block; each block has one row. Register use allows no more."""
NOBODY = 1 << 62
"""A rank above all others: no token has arrived yet."""


class KernelRace:
    """Exponential races, one for each row of logits, run by the kernel of `kernels/cuda/cuda_race.py`.

    Parameters
    ----------
    logits : Tensor, float32, bfloat16 or float16 [B, V]
        Logits on a GPU.
    generator : torch.Generator, optional
        A generator of the same device. It draws one seed for each row; the races are functions of these seeds.
    allowed : Tensor, bool [B, V], optional
        The tokens that take part.
    round_size : int
        Tokens of a row that are returned in one round, at most 256.
    """

    def __init__(
        self, logits: torch.Tensor, generator: torch.Generator | None, allowed: torch.Tensor | None, round_size: int
    ) -> None:
        if not 1 <= round_size <= MOST_ARRIVALS:
            raise ArgumentError(
                f"round_size is {round_size}: 1 to {MOST_ARRIVALS} tokens of a row are fetched at a time"
            )
        self.rows, device = rows_of(logits.detach()), logits.device
        self.masks = flatten_masks(None if allowed is None else pack_masks(allowed), None, self.rows)
        count = self.rows.count
        self.seeds = torch.randint(0, NOBODY, (count,), generator=generator, device=device)
        self.steps = torch.zeros(count, dtype=torch.int64, device=device)
        self.ceilings = torch.full((count,), NOBODY, dtype=torch.int64, device=device)
        self.round_size = round_size

    def arrivals(self, rows: list[int]) -> tuple[list[list[int]], list[list[float]], list[float]]:
        """See `awrs_tensors.BatchRace.arrivals`. One kernel launch for each call."""
        layout, device = self.rows, self.rows.device
        which = torch.tensor(rows, dtype=torch.int32).to(device)
        tokens = torch.empty((len(rows), self.round_size), dtype=torch.int32, device=device)
        logs = torch.empty((len(rows), self.round_size), dtype=torch.float64, device=device)
        lefts = torch.empty(len(rows), dtype=torch.float64, device=device)
        launch_kernel(
            find_arrivals, len(rows), THREADS, layout.bits, layout.stride, layout.width, layout.kind,
            *self.masks, which, self.round_size, self.seeds, self.steps, self.ceilings, tokens, logs, lefts,
        )  # fmt: skip
        left: list[float] = lefts.tolist()
        if any(math.isnan(one) for one in left):
            raise ArgumentError("the logits hold NaN, or a row without any mass")
        return tokens.tolist(), logs.exp().tolist(), left


def pack_masks(allowed: torch.Tensor) -> torch.Tensor:
    """Return packed masks, int32 [B, words], of bool [B, V]."""
    spare = -allowed.shape[1] % 32
    bits = torch.nn.functional.pad(allowed, (0, spare)).view(len(allowed), -1, 32).to(torch.int64)
    words = (bits << torch.arange(32, device=allowed.device)).sum(dim=-1)
    return torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)
