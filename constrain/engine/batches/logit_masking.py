"""apply_mask: rows of masks on a batch of logits, in place and in the logits' own dtype.

What is not allowed becomes minus infinity; the others stay as they are, bit for bit. It costs what writing that many
bytes costs: see `kernels.logits`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from ...base.errors import ArgumentError, check_count
from ...base.extensions import find_extension
from ...kernels.jit.entry_points import entry_point
from ...kernels.logits import apply_masks
from .array_memory import ArrayMemory, as_numpy, check_rows, describe_memory
from .worker_threads import count_cores, run_together

__all__ = ["apply_mask"]

INFINITY = {"float16": (16, 0xFC00), "bfloat16": (16, 0xFF80), "float32": (32, 0xFF800000), "float64": (64, -1 << 52)}
"""Bits of a logit, and the pattern of minus infinity (IEEE 754; bfloat16 is the upper half of a float32)."""
LEAST_SHARE = 1 << 20
"""Bytes for which another thread pays: to wake one takes some 40 µs, to write them 30."""

_apply_many = entry_point(apply_masks)


def apply_mask(logits: Any, masks: Any, *, rows: Iterable[int] | None = None, threads: int | None = None) -> Any:
    """Sets every logit that is not allowed to minus infinity, in place; returns `logits`.

    logits: float32, bfloat16, float16 or float64, [V'] or [B, V'], a numpy array or a CPU tensor of torch; V' may
    exceed V: no token is beyond it. Rows may have any distance, their elements stand side by side.
    masks: int32 [ceil(V / 32)] or [N, ceil(V / 32)], as `Matcher.mask` and `fill_masks` write them.
    rows: the row of logits of each mask, all different; by default 0, 1, 2, ... Other rows stay as they are.
    threads: most threads; by default the cores, as far as that pays.

    On a card, tensors there go to its kernels (`integrations.cuda`, docs/how-to/gpu.md), in all but float64.

    Raises TypeError and ValueError for what does not fit, before anything is written.
    """
    if getattr(getattr(logits, "device", None), "type", "cpu") == "cuda":
        return find_extension("apply_mask_on_cuda")(logits, masks, rows=rows)
    threads = None if threads is None else check_count("threads", threads, 1)
    scores, bits = describe_memory(logits, "logits"), describe_memory(masks, "masks", written=False)
    if scores.dtype not in INFINITY or not scores.has_whole_rows():
        raise ArgumentError(
            f"logits are {scores}, strides {scores.strides}: give {', '.join(INFINITY)}, [V] or [B, V], "
            f"the elements of a row side by side, such as logits.contiguous()"
        )
    if bits.dtype != "int32" or not bits.has_whole_rows():
        raise ArgumentError(
            f"masks are {bits}, strides {bits.strides}: give int32 [words] or [N, words], rows contiguous"
        )
    _check_width(masks, scores, bits)
    height, count = (memory.shape[0] if len(memory.shape) == 2 else 1 for memory in (scores, bits))
    listed = check_rows(rows, count, height, "masks")
    numbers = array("q", listed) if listed else None
    width, pattern = INFINITY[scores.dtype]
    if threads is None:
        amount = count * scores.shape[-1] * scores.size
        threads = min(count_cores(), amount // LEAST_SHARE) if amount >= 2 * LEAST_SHARE else 1
    what = (scores.address, scores.stride, scores.shape[-1], bits.address, bits.stride, bits.shape[-1],
            numbers.buffer_info()[0] if numbers else 0)  # fmt: skip
    if threads == 1 or count < 2:
        _apply_many(*what, 0, count, width, pattern)
    else:
        edges = [count * share // min(threads, count) for share in range(min(threads, count) + 1)]
        run_together([partial(_apply_many, *what, *ends, width, pattern) for ends in zip(edges, edges[1:])])
    return logits


def _check_width(masks: Any, scores: ArrayMemory, bits: ArrayMemory) -> None:
    """Every token that may be allowed has a logit."""
    columns, words = scores.shape[-1], bits.shape[-1]
    if columns >= 32 * words:
        return
    last = as_numpy(masks)[..., -1].view(np.uint32) if columns > 32 * (words - 1) else None
    if last is None or (last >> np.uint32(columns % 32)).any():
        raise ArgumentError(
            f"logits have {columns} columns, and masks of {words} words speak of more tokens: "
            f"give all columns, or make the Vocabulary with size={columns}"
        )
