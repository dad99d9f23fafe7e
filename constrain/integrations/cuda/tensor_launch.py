"""Conversion of torch tensors to kernel arguments, and kernel launches on torch's current stream.

A launch neither synchronises nor allocates, so it can be captured in a CUDA graph once the kernel has been compiled by
a first launch (about a second each). In numba's simulator (NUMBA_ENABLE_CUDASIM=1) tensors are on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numba import cuda

from ...base.errors import ArgumentError, LimitError, UnsupportedError
from ...kernels.cuda import cuda_order
from ...kernels.cuda.cuda_device import SIMULATED

__all__ = ["KINDS", "LogitRows", "flatten_masks", "launch_kernel", "on_card", "per_row", "rows_of"]

KINDS = {torch.float32: cuda_order.FLOAT32, torch.bfloat16: cuda_order.BFLOAT16, torch.float16: cuda_order.FLOAT16}
"""Logit dtypes that kernels read, with their codes."""
INFINITIES = {torch.float32: 0xFF800000, torch.bfloat16: 0xFF80FF80, torch.float16: 0xFC00FC00}
"""Four bytes of minus infinity: one float32, or two elements of 16 bits."""


def on_card(tensor: torch.Tensor) -> bool:
    """Return whether kernels can process a tensor: it is on a GPU, or on the CPU in the simulator."""
    return bool(tensor.is_cuda) or (SIMULATED and tensor.device.type == "cpu")


@dataclass(frozen=True)
class LogitRows:
    """Logits [B, V] as kernel arguments.

    bits: flat view as int32 or int16, row b starting at b * stride; count, width: B and V; kind: see
    `kernels/cuda/cuda_order.py`.
    """

    bits: torch.Tensor
    count: int
    width: int
    stride: int
    kind: int
    dtype: torch.dtype

    @property
    def four(self) -> Any:
        """Four bytes of minus infinity, as int32."""
        return np.int32(INFINITIES[self.dtype] - (1 << 32))

    @property
    def one(self) -> Any:
        """The bits of one element of minus infinity."""
        return self.four if self.dtype == torch.float32 else np.int16(self.four >> 16)

    @property
    def piece(self) -> int:
        """Number of elements in 16 bytes."""
        return 16 // int(self.bits.element_size())

    @property
    def head(self) -> int:
        """Number of elements of the first row before a 16-byte boundary."""
        return -(int(self.bits.data_ptr()) // int(self.bits.element_size())) % self.piece


def rows_of(logits: torch.Tensor) -> LogitRows:
    """Validate logits, float32, bfloat16 or float16 [B, V] on a GPU with contiguous rows, and return a view of them."""
    if logits.dtype not in KINDS or logits.ndim != 2 or (logits.shape[1] > 1 and logits.stride(1) != 1):
        raise ArgumentError(
            f"logits are {logits.dtype} {list(logits.shape)}, strides {logits.stride()}: give float32, bfloat16 or "
            f"float16 [B, V], the elements of a row side by side, such as logits.contiguous()"
        )
    if not on_card(logits):
        raise ArgumentError(
            f"logits are on {logits.device}: give a tensor on a card (constrain.apply_mask takes others)"
        )
    if logits.requires_grad:
        raise ArgumentError("logits require gradients, which the kernels do not support: give logits.detach()")
    count, width = logits.shape
    if width >= cuda_order.MOST_TOKENS:
        raise LimitError(
            f"rows of {width:,} logits are longer than {cuda_order.MOST_TOKENS - 1:,}, as kernels count tokens"
        )
    stride = int(logits.stride(0)) if count > 1 else width
    integers = logits.view(torch.int32 if logits.dtype == torch.float32 else torch.int16)
    flat = integers.as_strided(((count - 1) * stride + width if count else 0,), (1,))
    return LogitRows(flat, count, width, stride, KINDS[logits.dtype], logits.dtype)


def flatten_masks(
    masks: torch.Tensor | None, sources: torch.Tensor | None, rows: LogitRows
) -> tuple[torch.Tensor, int, torch.Tensor]:
    """Return flat masks, the number of words of each, and the index of the mask of each row (int32 [B], -1: none).

    By default mask i is for row i; a single mask is for all rows.
    """
    device = rows.bits.device
    if masks is None:
        none = torch.full((rows.count,), -1, dtype=torch.int32, device=device)
        return torch.zeros(1, dtype=torch.int32, device=device), 1, none
    table = masks.unsqueeze(0) if masks.ndim == 1 else masks
    if table.ndim != 2 or table.dtype != torch.int32 or table.device != device or not table.is_contiguous():
        raise ArgumentError(
            f"masks are {masks.dtype} {list(masks.shape)} on {masks.device}: give int32 [words] or [R, words], "
            f"contiguous, on {device}"
        )
    if sources is None:
        if len(table) not in (1, rows.count):
            raise ArgumentError(f"{len(table)} masks for {rows.count} rows: give sources= to assign masks to rows")
        sources = torch.arange(rows.count, dtype=torch.int32, device=device) % len(table)
    elif sources.dtype != torch.int32 or sources.shape != (rows.count,) or sources.device != device:
        raise ArgumentError(
            f"sources are {sources.dtype} {list(sources.shape)} on {sources.device}: "
            f"give int32 [{rows.count}] on {device}"
        )
    return table.view(-1), int(table.shape[1]), sources.contiguous()


def per_row(value: float | torch.Tensor, dtype: torch.dtype, rows: LogitRows, name: str) -> torch.Tensor:
    """Return a tensor [B] on the device of the rows from a number for all rows, or from such a tensor."""
    if not isinstance(value, torch.Tensor):
        return torch.full((rows.count,), value, dtype=dtype, device=rows.bits.device)
    if value.shape != (rows.count,) or value.device != rows.bits.device:
        raise ArgumentError(
            f"{name} is {list(value.shape)} on {value.device}: give a number, or [{rows.count}] on the card"
        )
    return value.to(dtype).contiguous()


def launch_kernel(kernel: Any, blocks: int, threads: int, *arguments: Any) -> None:
    """Launch a kernel on the current stream of the first tensor's device."""
    if not blocks:
        return
    device = next(one.device for one in arguments if isinstance(one, torch.Tensor))
    if SIMULATED:
        kernel[blocks, threads](*(one.numpy() if isinstance(one, torch.Tensor) else one for one in arguments))
        return
    if not cuda.is_available():
        raise UnsupportedError(
            f"there is a tensor on {device}, but numba finds no CUDA driver or compiler",
            hint='pip install "constrain-lm[cuda]", or see the CUDA section of `python -m numba -s`.',
        )
    with device_context(device):
        stream = cuda.external_stream(torch.cuda.current_stream(device).cuda_stream)
        kernel[blocks, threads, stream](
            *(cuda.as_cuda_array(one, sync=False) if isinstance(one, torch.Tensor) else one for one in arguments)
        )


def device_context(device: torch.device) -> AbstractContextManager[Any]:
    """Return numba's context of a device. numba keeps the first device of a thread, whichever device torch selects."""
    index = device.index or 0
    select: Callable[[], AbstractContextManager[Any]] = (lambda: cuda.gpus[index]) if index else nullcontext
    return select()
