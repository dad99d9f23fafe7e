"""`apply_mask` on a GPU: apply packed masks to logits in place, by the kernel of `kernels/cuda/cuda_apply.py`."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from ...base.errors import ArgumentError
from ...kernels.cuda.cuda_apply import apply_masks, count_tiles
from ...kernels.cuda.cuda_device import LANES, SIMULATED
from .tensor_launch import INFINITIES, LogitRows, Plans, describe_tensor, flatten_masks, launch_kernels, rows_of

__all__ = ["apply_mask"]

THREADS = LANES if SIMULATED else 128
"""Threads of a block, each of which loads one word of a mask."""
PLANS = Plans()
"""Launches for tensors of the same dtypes, shapes, strides and devices."""
FEW_ROWS = 8
"""Up to so many rows, a block is one warp, so that they are spread over the whole GPU."""


def apply_mask(
    logits: torch.Tensor,
    masks: torch.Tensor,
    *,
    rows: Iterable[int] | None = None,
    sources: torch.Tensor | None = None,
) -> torch.Tensor:
    """Set every logit that is not allowed to minus infinity, in place. The call does not synchronise with the device.

    Parameters
    ----------
    logits : Tensor, float32, bfloat16 or float16 [B, V'] or [V']
        Logits on a GPU. V' may exceed the size V of the vocabulary; no token beyond V is allowed. Rows may have any
        stride that does not make them overlap.
    masks : Tensor, int32 [R, words] or [words]
        Packed masks on the same device: bit i % 32 of word i // 32 is token i.
    rows : iterable of int, optional
        The row of logits that each mask is for, all different, as in `constrain.apply_mask`. Other rows are unchanged.
    sources : Tensor, int32 [B], optional
        Instead of `rows`, on the same device: the index of the mask of each row of logits, or -1 for none. Several rows
        may share a mask.

        Without `rows` and `sources`, mask i is for row i, and a single mask is for all rows.

    Returns
    -------
    Tensor
        `logits`.

    Raises
    ------
    ArgumentError
        If dtypes, shapes or devices do not match, or rows of logits overlap. Nothing has been written then.
    """
    key = None
    if rows is None:
        key = describe_tensor(logits), describe_tensor(masks), describe_tensor(sources)
        plan = PLANS.known.get(key)
        if plan is not None:
            slots, places = plan.slots, plan.places
            slots[places[0]], slots[places[3]] = logits.data_ptr(), masks.data_ptr()
            if sources is not None:
                slots[places[6]] = sources.data_ptr()
            plan.launch()
            return logits
    layout = rows_of(logits.unsqueeze(0) if logits.ndim == 1 else logits)
    if layout.stride < layout.width:
        raise ArgumentError(
            f"rows of {layout.width} logits are {layout.stride} apart: they overlap, and are written in place"
        )
    if rows is not None:
        if sources is not None:
            raise ArgumentError("rows= and sources= both assign masks to rows: give one of them")
        sources = invert_rows(list(rows), 1 if masks.ndim == 1 else len(masks), layout)
    bits, words, count, chosen = flatten_masks(masks, sources, layout)
    threads = LANES if layout.count <= FEW_ROWS else THREADS
    grid = layout.count, count_tiles(layout.width, threads)
    arguments = (
        layout.bits, layout.stride, layout.width, bits, words, count, chosen, INFINITIES[layout.dtype],
    )  # fmt: skip
    plan = launch_kernels([(apply_masks, grid, threads)], arguments, types_of=layout.dtype)
    if plan is not None and key is not None and (sources is None or sources.is_contiguous()):
        PLANS.add(key, plan)
    return logits


def invert_rows(rows: list[int], count: int, logit_rows: LogitRows) -> torch.Tensor:
    """Return, for each row of logits, the index of its mask or -1 (int32 [B]), given the row of each mask."""
    if len(rows) != count or len(set(rows)) < len(rows) or any(not 0 <= row < logit_rows.count for row in rows):
        raise ArgumentError(
            f"the rows of {count} masks must be as many different ones of 0 .. {logit_rows.count - 1}, not {rows}"
        )
    sources = torch.full((logit_rows.count,), -1, dtype=torch.int32)
    sources[rows] = torch.arange(count, dtype=torch.int32)
    return sources.to(logit_rows.device, non_blocking=True)
