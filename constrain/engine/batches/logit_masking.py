"""apply_mask: apply rows of token masks to a batch of logits, in place and in the dtype of the logits.

Logits of tokens that are not allowed become minus infinity; all others keep their bits. The cost is that of writing
those bytes to memory, see `kernels.logits`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from ...base.errors import ArgumentError, check_count
from ...base.extensions import find_extension
from ...kernels.entry_points import apply_masks
from .array_memory import ArrayMemory, as_numpy, check_rows, describe_memory
from .worker_threads import count_cores, run_together

__all__ = ["apply_mask"]

INFINITY = {"float16": (16, 0xFC00), "bfloat16": (16, 0xFF80), "float32": (32, 0xFF800000), "float64": (64, -1 << 52)}
"""Bits per logit and bit pattern of minus infinity (IEEE 754; bfloat16 is the upper half of a float32)."""
LEAST_SHARE = 1 << 20
"""Bytes per thread from which another thread pays off: waking one takes about 40 µs, writing the bytes 30 µs."""


def apply_mask(logits: Any, masks: Any, *, rows: Iterable[int] | None = None, threads: int | None = None) -> Any:
    """Set the logits of all tokens that are not allowed to minus infinity, in place.

    Parameters
    ----------
    logits : ndarray or torch.Tensor, shape (V',) or (B, V')
        float32, bfloat16, float16 or float64. V' may exceed the size V of the vocabulary; tokens beyond V are not
        allowed. The elements of a row must be contiguous; the distance between rows is arbitrary. Tensors on a CUDA
        device are processed there (`integrations.cuda`, docs/how-to/gpu.md), except in float64.
    masks : ndarray or torch.Tensor of int32, shape (ceil(V / 32),) or (N, ceil(V / 32))
        Masks as `Matcher.mask` and `fill_masks` write them.
    rows : iterable of int, optional
        For each mask the row of `logits` that it applies to, all distinct. By default 0, 1, 2, ... Other rows are
        unchanged.
    threads : int, optional
        Most threads to use. By default the number of cores, fewer for small batches.

    Returns
    -------
    ndarray or torch.Tensor
        `logits`.

    Raises
    ------
    TypeError, ValueError
        If the arguments do not match each other. Nothing has been written then.
    """
    if getattr(getattr(logits, "device", None), "type", "cpu") == "cuda":
        return find_extension("apply_mask_on_cuda")(logits, masks, rows=rows)
    threads = None if threads is None else check_count("threads", threads, 1)
    scores, bits = describe_memory(logits, "logits"), describe_memory(masks, "masks", written=False)
    if scores.dtype not in INFINITY or not scores.has_contiguous_rows():
        raise ArgumentError(
            f"logits are {scores}, strides {scores.strides}: give {', '.join(INFINITY)}, [V] or [B, V], "
            f"the elements of a row side by side, such as logits.contiguous()"
        )
    if bits.dtype != "int32" or not bits.has_contiguous_rows():
        raise ArgumentError(
            f"masks are {bits}, strides {bits.strides}: give int32 [words] or [N, words], rows contiguous"
        )
    _check_width(masks, scores, bits)
    height, count = (memory.shape[0] if len(memory.shape) == 2 else 1 for memory in (scores, bits))
    row_numbers = check_rows(rows, count, height, "masks")
    numbers = array("q", row_numbers) if row_numbers else None
    width, pattern = INFINITY[scores.dtype]
    if threads is None:
        amount = count * scores.shape[-1] * scores.size
        threads = min(count_cores(), amount // LEAST_SHARE) if amount >= 2 * LEAST_SHARE else 1
    addresses = (scores.address, scores.stride, scores.shape[-1], bits.address, bits.stride, bits.shape[-1],
            numbers.buffer_info()[0] if numbers else 0)  # fmt: skip
    if threads == 1 or count < 2:
        apply_masks(*addresses, 0, count, width, pattern)
    else:
        edges = [count * share // min(threads, count) for share in range(min(threads, count) + 1)]
        run_together([partial(apply_masks, *addresses, *ends, width, pattern) for ends in zip(edges, edges[1:])])
    return logits


def _check_width(masks: Any, scores: ArrayMemory, bits: ArrayMemory) -> None:
    """Raise ArgumentError unless every token that a mask may allow has a logit."""
    columns, words = scores.shape[-1], bits.shape[-1]
    if columns >= 32 * words:
        return
    last = as_numpy(masks)[..., -1].view(np.uint32) if columns > 32 * (words - 1) else None
    if last is None or (last >> np.uint32(columns % 32)).any():
        raise ArgumentError(
            f"logits have {columns} columns, and masks of {words} words allow further tokens: "
            f"give all columns, or make the Vocabulary with size={columns}"
        )
