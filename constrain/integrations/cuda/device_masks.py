"""`apply_mask` on a card: logits under packed masks in place, by the kernel of `kernels/cuda/cuda_apply.py`."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from ...base.errors import ArgumentError
from ...kernels.cuda.cuda_apply import apply_masks, tiles
from ...kernels.cuda.cuda_device import SIMULATED
from .tensor_launch import LogitRows, flatten_masks, launch_kernel, rows_of

__all__ = ["apply_mask"]

THREADS = 8 if SIMULATED else 128
"""Of a block: two or four stores of 16 bytes each, where all is masked. (Threads of the simulator are the host's.)"""


def apply_mask(
    logits: torch.Tensor,
    masks: torch.Tensor,
    *,
    rows: Iterable[int] | None = None,
    sources: torch.Tensor | None = None,
) -> torch.Tensor:
    """Sets every logit that is not allowed to minus infinity, in place; returns `logits`. Waits for nothing.

    logits: float32, bfloat16 or float16 [B, V'] (or [V']) on a card; V' may exceed V: no token is beyond it. Rows may
    have any distance. masks: int32 [R, words] or [words], on the same card.
    rows: the row of logits of each mask, all different, as `constrain.apply_mask` has it; other rows stay as they are.
    sources: instead of rows, int32 [B] on the card: the mask of each row of logits, -1 for none; masks may be shared.
    By default the first mask is for the first row, and so on; a single one for all.
    Raises ArgumentError for what does not fit, before anything is written.
    """
    found = rows_of(logits.unsqueeze(0) if logits.ndim == 1 else logits)
    if found.stride < found.width:
        raise ArgumentError(
            f"rows of {found.width} logits are {found.stride} apart: they overlap, and are written in place"
        )
    if rows is not None:
        if sources is not None:
            raise ArgumentError("rows= and sources= both say which mask is whose: give one of them")
        sources = invert_rows(list(rows), 1 if masks.ndim == 1 else len(masks), found)
    bits, words, chosen = flatten_masks(masks, sources, found)
    launch_kernel(
        apply_masks, found.count * tiles(found.width), THREADS, found.bits, found.stride, found.width, found.head,
        -found.stride % found.piece, bits, words, chosen, found.one, found.four,
    )  # fmt: skip
    return logits


def invert_rows(rows: list[int], count: int, found: LogitRows) -> torch.Tensor:
    """The mask of each row of logits from the row of each mask."""
    if len(rows) != count or len(set(rows)) < len(rows) or any(not 0 <= row < found.count for row in rows):
        raise ArgumentError(
            f"the rows of {count} masks must be as many different ones of 0 .. {found.count - 1}, not {rows}"
        )
    sources = torch.full((found.count,), -1, dtype=torch.int32)
    sources[rows] = torch.arange(count, dtype=torch.int32)
    return sources.to(found.bits.device, non_blocking=True)
