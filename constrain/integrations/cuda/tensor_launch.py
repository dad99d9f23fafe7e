"""Conversion of torch tensors to kernel arguments, and kernel launches on torch's current stream.

A launch neither synchronises nor allocates, so it can be captured in a CUDA graph once the kernel has been compiled by
a first launch (about a second each). In numba's simulator (NUMBA_ENABLE_CUDASIM=1) tensors are on the CPU.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import cuda, types
from numba.core.errors import NumbaPerformanceWarning
from numba.np.numpy_support import from_dtype

from ...base.errors import ArgumentError, LimitError, UnsupportedError
from ...kernels.cuda import cuda_launch, cuda_order
from ...kernels.cuda.cuda_device import SIMULATED

__all__ = ["KINDS", "LogitRows", "Masks", "flatten_masks", "launch_kernel", "on_card", "per_row", "rows_of"]

KINDS = {torch.float32: cuda_order.FLOAT32, torch.bfloat16: cuda_order.BFLOAT16, torch.float16: cuda_order.FLOAT16}
"""Logit dtypes that kernels read, with their codes."""
INFINITIES = {
    torch.float32: np.int32(0xFF800000 - (1 << 32)),
    torch.bfloat16: np.int16(0xFF80 - (1 << 16)),
    torch.float16: np.int16(0xFC00 - (1 << 16)),
}
"""The bits of minus infinity."""


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


class Masks(NamedTuple):
    """Masks as kernel arguments: flat bits, words of each mask, number of masks, and `rows` (see `find_mask`)."""

    bits: torch.Tensor
    words: int
    number: int
    rows: torch.Tensor


def flatten_masks(masks: torch.Tensor | None, sources: torch.Tensor | None, rows: LogitRows) -> Masks:
    """Validate masks, and the index of the mask of each row (int32 [B], -1: none).

    By default mask i is for row i; a single mask is for all rows.
    """
    device = rows.bits.device
    if masks is None:
        return Masks(empty(torch.int32, device), 1, 0, empty(torch.int32, device))
    table = masks.unsqueeze(0) if masks.ndim == 1 else masks
    if table.ndim != 2 or table.dtype != torch.int32 or table.device != device or not table.is_contiguous():
        raise ArgumentError(
            f"masks are {masks.dtype} {list(masks.shape)} on {masks.device}: give int32 [words] or [R, words], "
            f"contiguous, on {device}"
        )
    if sources is None:
        if len(table) not in (1, rows.count):
            raise ArgumentError(f"{len(table)} masks for {rows.count} rows: give sources= to assign masks to rows")
        sources = empty(torch.int32, device)
    elif sources.dtype != torch.int32 or sources.shape != (rows.count,) or sources.device != device:
        raise ArgumentError(
            f"sources are {sources.dtype} {list(sources.shape)} on {sources.device}: "
            f"give int32 [{rows.count}] on {device}"
        )
    return Masks(table.view(-1), int(table.shape[1]), len(table), sources.contiguous())


@lru_cache(maxsize=64)
def empty(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return a tensor without elements: the argument of a kernel that is not given."""
    return torch.empty(0, dtype=dtype, device=device)


NUMBERS: dict[torch.dtype, Any] = {torch.float32: np.float32, torch.int32: np.int32, torch.int64: np.int64}


def per_row(
    value: float | torch.Tensor, dtype: torch.dtype, rows: LogitRows, name: str
) -> tuple[torch.Tensor, np.generic]:
    """Return a parameter as two kernel arguments: values of the rows, [B] or [0], and the value of all rows."""
    if not isinstance(value, torch.Tensor):
        return empty(dtype, rows.bits.device), NUMBERS[dtype](value)
    if value.shape != (rows.count,) or value.device != rows.bits.device:
        raise ArgumentError(
            f"{name} is {list(value.shape)} on {value.device}: give a number, or [{rows.count}] on the card"
        )
    return value.to(dtype).contiguous(), NUMBERS[dtype](0)


def launch_kernel(kernel: Any, blocks: int | tuple[int, int], threads: int, *arguments: Any) -> None:
    """Launch a kernel on the current stream of the first tensor's device.

    arguments: tensors, contiguous; ints, which are int64; numpy's scalars.
    """
    grid = blocks if isinstance(blocks, tuple) else (blocks, 1)
    if not grid[0] * grid[1]:
        return
    device = next(one.device for one in arguments if isinstance(one, torch.Tensor))
    if SIMULATED:
        kernel[grid, threads](*(one.numpy() if isinstance(one, torch.Tensor) else one for one in arguments))
        return
    index = device.index or 0
    stream = torch.cuda.current_stream(device).cuda_stream
    function = find_function(kernel, index, arguments)
    if function is None:
        launch_by_numba(kernel, grid, threads, index, stream, arguments)
        return
    values: list[int] = []
    for one in arguments:
        if isinstance(one, torch.Tensor):
            size = one.element_size()
            values += (0, 0, one.numel(), size, one.data_ptr(), *one.shape, *(size * step for step in one.stride()))
        else:
            values.append(one if isinstance(one, int) else int.from_bytes(one.tobytes(), "little"))
    cuda_launch.launch(function, grid, threads, stream, values)


FUNCTIONS: dict[tuple[Any, ...], cuda_launch.Function | None] = {}
"""Compiled kernels: (kernel, index of the device, types of the arguments) -> function, or None: by numba alone."""


def find_function(kernel: Any, device: int, arguments: tuple[Any, ...]) -> cuda_launch.Function | None:
    """Return the compiled kernel for these arguments; compile it if it is not yet."""
    kinds = tuple((one.dtype, one.ndim) if isinstance(one, torch.Tensor) else type(one) for one in arguments)
    key = kernel, device, kinds
    try:
        return FUNCTIONS[key]
    except KeyError:
        pass
    if not cuda.is_available():
        raise UnsupportedError(
            f"there is a tensor on cuda:{device}, but numba finds no CUDA driver or compiler",
            hint='pip install "constrain-lm[cuda]", or see the CUDA section of `python -m numba -s`.',
        )
    scalars = {int: types.int64, np.int64: types.int64, np.int32: types.int32, np.int16: types.int16,
               np.float32: types.float32}  # fmt: skip
    signature = tuple(
        types.Array(from_dtype(numpy_dtype(kind[0])), kind[1], "C") if isinstance(kind, tuple) else scalars[kind]
        for kind in kinds
    )
    found = FUNCTIONS[key] = cuda_launch.load(kernel, signature, device)
    return found


def numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    """Return numpy's name of a dtype of torch."""
    return np.dtype(str(dtype).removeprefix("torch."))


def launch_by_numba(
    kernel: Any, grid: tuple[int, int], threads: int, device: int, stream: int, arguments: tuple[Any, ...]
) -> None:
    """Launch a kernel by numba's dispatcher, which takes some 300 to 900 µs of the host."""
    with cuda.gpus[device], warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaPerformanceWarning)  # a row is a block, and a batch may be small
        kernel[grid, threads, cuda.external_stream(stream)](
            *(cuda.as_cuda_array(one, sync=False) if isinstance(one, torch.Tensor) else one for one in arguments)
        )
