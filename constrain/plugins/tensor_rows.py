"""Apply packed masks to rows of a torch tensor of logits, in place, on any device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..engine.batches import apply_mask
from ..integrations.logits_processor import unpack_masks

if TYPE_CHECKING:
    import torch

__all__ = ["mask_tensor_rows"]


def mask_tensor_rows(logits: torch.Tensor, masks: NDArray[np.int32] | torch.Tensor, rows: Sequence[int]) -> None:
    """Set the logits of all tokens that are not allowed to minus infinity, in place.

    logits: floating point [B, V]. masks: int32 [n, words]. rows: the row of `logits` of each mask; others stay.
    A kernel does it on the CPU, torch elsewhere: engines run this in CUDA streams of their own, which torch knows.
    """
    import torch

    if not len(rows):
        return
    if logits.is_cpu and logits.stride(-1) == 1:
        apply_mask(logits, masks, rows=list(rows))
        return
    index = torch.tensor(list(rows), device=logits.device)
    words = torch.from_numpy(masks) if isinstance(masks, np.ndarray) else masks
    allowed = unpack_masks(words.to(logits.device), logits.shape[-1])
    logits[index] = logits[index].masked_fill(~allowed, -torch.inf)
