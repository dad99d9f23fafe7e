"""Conversion of torch tensors to kernel arguments, and kernel launches on torch's current stream.

A launch neither synchronises nor allocates, so it can be captured in a CUDA graph once the kernel has been compiled by
a first launch (about a second each). In numba's simulator (NUMBA_ENABLE_CUDASIM=1) tensors are on the CPU.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import cuda, types
from numba.core.errors import NumbaPerformanceWarning
from numba.np.numpy_support import from_dtype

from ...base.errors import ArgumentError, LimitError, UnsupportedError
from ...kernels.cuda import cuda_launch, cuda_order
from ...kernels.cuda.cuda_device import SIMULATED

__all__ = [
    "KINDS", "LARGEST", "Flat", "LogitRows", "Masks", "Plan", "Plans", "describe_tensor", "flatten_masks",
    "launch_kernel", "launch_kernels", "on_card", "per_row", "rows_of",
]  # fmt: skip

KINDS = {torch.float32: cuda_order.FLOAT32, torch.bfloat16: cuda_order.BFLOAT16, torch.float16: cuda_order.FLOAT16}
"""Logit dtypes that kernels read, with their codes."""
INFINITIES = {
    torch.float32: np.int32(0xFF800000 - (1 << 32)),
    torch.bfloat16: np.int16(0xFF80 - (1 << 16)),
    torch.float16: np.int16(0xFC00 - (1 << 16)),
}
"""The bits of minus infinity."""


Launch = tuple[Any, int | tuple[int, int], int]
"""A kernel, its blocks and the threads of a block."""


def on_card(tensor: torch.Tensor) -> bool:
    """Return whether kernels can process a tensor: it is on a GPU, or on the CPU in the simulator."""
    return bool(tensor.is_cuda) or (SIMULATED and tensor.device.type == "cpu")


class Flat(NamedTuple):
    """An array in the memory of a tensor, contiguous, as a kernel argument.

    dtype: of torch; shape: of the array; offset: bytes from the tensor's first element on.
    """

    tensor: torch.Tensor
    dtype: torch.dtype
    shape: tuple[int, ...]
    offset: int = 0

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the array, for the simulator."""
        size = -(-math.prod(self.shape) * self.dtype.itemsize // self.tensor.element_size())
        first = self.offset // self.tensor.element_size()
        whole = self.tensor.as_strided((size,), (1,), self.tensor.storage_offset() + first)
        array: np.ndarray[Any, Any] = whole.view(self.dtype).numpy()[: math.prod(self.shape)]
        return array.reshape(self.shape)


@dataclass(frozen=True)
class LogitRows:
    """Logits [B, V] as kernel arguments.

    bits: flat, as int32 or int16, row b starting at b * stride; count, width: B and V; kind: see
    `kernels/cuda/cuda_order.py`.
    """

    bits: Flat
    count: int
    width: int
    stride: int
    kind: int
    dtype: torch.dtype
    device: torch.device


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
    integers = torch.int32 if logits.dtype == torch.float32 else torch.int16
    flat = Flat(logits, integers, ((count - 1) * stride + width if count else 0,))
    return LogitRows(flat, count, width, stride, KINDS[logits.dtype], logits.dtype, logits.device)


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
    device = rows.device
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


LARGEST = (1 << 31) - 1
"""The largest int32: a larger top_k is no other cut."""


def per_row(
    value: float | torch.Tensor, dtype: torch.dtype, rows: LogitRows, name: str
) -> tuple[torch.Tensor, np.generic]:
    """Return a parameter as two kernel arguments: values of the rows, [B] or [0], and the value of all rows."""
    if not isinstance(value, torch.Tensor):
        if dtype == torch.int32:
            value = min(value, LARGEST)
        return empty(dtype, rows.device), NUMBERS[dtype](value)
    if value.shape != (rows.count,) or value.device != rows.device:
        raise ArgumentError(
            f"{name} is {list(value.shape)} on {value.device}: give a number, or [{rows.count}] on the card"
        )
    return value.to(dtype).contiguous(), NUMBERS[dtype](0)


def launch_kernel(kernel: Any, blocks: int | tuple[int, int], threads: int, *arguments: Any) -> None:
    """Launch a kernel on the current stream of the device of the first tensor. See `launch_kernels`."""
    launch_kernels([(kernel, blocks, threads)], arguments)


def launch_kernels(launches: Sequence[Launch], arguments: Sequence[Any], types_of: Any = None) -> Plan | None:
    """Launch kernels one after the other, with the same arguments, on the current stream of the first tensor's device.

    launches: (kernel, blocks, threads). arguments: contiguous tensors, `Flat`, ints, which are int64, numpy's scalars,
    and named tuples of them. types_of: stands for the types of the arguments, where the caller knows that they are
    always the same for it. Returns a plan of the same launches, None if they were not made by the driver.
    """
    first = find_tensor(arguments)
    grids = [
        (kernel, blocks if isinstance(blocks, tuple) else (blocks, 1), threads) for kernel, blocks, threads in launches
    ]
    if not all(grid[0] * grid[1] for _, grid, _ in grids):
        return None
    if SIMULATED:
        arrays = convert(arguments, lambda one: one.numpy())
        for kernel, grid, threads in grids:
            kernel[grid, threads](*arrays)
        return None
    index = first.device.index or 0
    kinds = types_of or find_kinds(arguments)
    found = [(find_function(kernel, index, kinds, arguments), grid, threads) for kernel, grid, threads in grids]
    functions = [(function, grid, threads) for function, grid, threads in found if function is not None]
    if len(functions) == len(grids):
        plan = Plan(functions, arguments, index)
        plan.launch()
        return plan
    for kernel, grid, threads in grids:
        launch_by_numba(kernel, grid, threads, index, current_stream(index), arguments)
    return None


class Plan:
    """Launches that are prepared for arguments of given shapes: only addresses and numbers are written anew.

    slots, floats: as of `cuda_launch.Arguments`. places: the slot of each argument, in order, named tuples taken apart:
    of its address if it is an array. A plan belongs to one thread (see `Plans`).
    """

    __slots__ = ("arguments", "device", "floats", "functions", "places", "slots")

    def __init__(
        self, functions: Sequence[tuple[cuda_launch.Function, tuple[int, int], int]], arguments: Sequence[Any],
        device: int,
    ) -> None:  # fmt: skip
        values: list[int] = []
        self.places: list[int] = []
        flatten(arguments, values, self.places)
        self.arguments = cuda_launch.Arguments(values)
        self.slots, self.floats = self.arguments.slots, self.arguments.floats
        self.functions, self.device = functions, device

    def launch(self) -> None:
        """Launch on the current stream of the device."""
        cuda_launch.launch(self.functions, current_stream(self.device), self.arguments)


MOST_PLANS = 1024
"""Most plans of a thread, for one function; then all are made anew."""


class Plans(threading.local):
    """The plans of each thread: what callers derive from dtypes, shapes and devices -> plan."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}

    def add(self, key: Any, plan: Any) -> None:
        """Keep a plan."""
        if len(self.known) >= MOST_PLANS:
            self.known.clear()
        self.known[key] = plan


def describe_tensor(tensor: torch.Tensor | None) -> Any:
    """Return all of a tensor that a plan depends on, as part of a key."""
    if tensor is None:
        return None
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.device, tensor.requires_grad


def current_stream(device: int) -> int:
    """Return the handle of torch's current stream of a device."""
    try:
        return int(torch._C._cuda_getCurrentRawStream(device))
    except AttributeError:  # private to torch; the public way takes 30 times as long
        return int(torch.cuda.current_stream(device).cuda_stream)


def find_tensor(arguments: Sequence[Any]) -> torch.Tensor:
    """Return the first tensor among arguments."""
    for one in arguments:
        if isinstance(one, torch.Tensor):
            return one
        if isinstance(one, tuple):
            return one.tensor if isinstance(one, Flat) else find_tensor(one)
    raise TypeError("a kernel is launched without a tensor")


def convert(arguments: Sequence[Any], change: Callable[[Any], Any]) -> list[Any]:
    """Return arguments with tensors and `Flat` changed, in named tuples too."""
    return [
        change(one)
        if isinstance(one, (torch.Tensor, Flat))
        else type(one)(*convert(one, change))
        if isinstance(one, tuple)
        else one
        for one in arguments
    ]


def flatten(arguments: Sequence[Any], out: list[int], places: list[int]) -> None:
    """Append the 64-bit values that the kernel gets for arguments (see `kernels/cuda/cuda_launch.py`).

    places: the index of each argument among the values is appended, of its address if it is an array.
    """
    for one in arguments:
        if isinstance(one, (torch.Tensor, Flat)):
            before, after = describe_array(one.dtype, tuple(one.shape))
            out += before
            places.append(len(out))
            out.append(one.data_ptr() if isinstance(one, torch.Tensor) else one.tensor.data_ptr() + one.offset)
            out += after
        elif isinstance(one, tuple):
            flatten(one, out, places)
        else:
            places.append(len(out))
            out.append(one if isinstance(one, int) else int.from_bytes(one.tobytes(), "little", signed=True))


@lru_cache(maxsize=1024)
def describe_array(dtype: torch.dtype, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the values of a contiguous array before its address, and after it."""
    steps = [dtype.itemsize]
    for length in reversed(shape[1:]):
        steps.append(steps[-1] * length)
    return (0, 0, math.prod(shape), dtype.itemsize), (*shape, *reversed(steps))


def find_kinds(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return what determines the types of arguments."""
    kinds: list[Any] = []
    for one in arguments:
        if isinstance(one, torch.Tensor):
            kinds.append((one.dtype, one.ndim))
        elif isinstance(one, Flat):
            kinds.append((one.dtype, len(one.shape)))
        elif isinstance(one, tuple):
            kinds.append((type(one), *find_kinds(one)))
        else:
            kinds.append(type(one))
    return tuple(kinds)


SCALARS = {
    int: types.int64, np.int64: types.int64, np.int32: types.int32, np.int16: types.int16, np.float32: types.float32,
}  # fmt: skip


def find_signature(kinds: Sequence[Any]) -> tuple[Any, ...]:
    """Return numba's types of arguments."""
    out: list[Any] = []
    for kind in kinds:
        if not isinstance(kind, tuple):
            out.append(SCALARS[kind])
        elif isinstance(kind[0], torch.dtype):
            out.append(types.Array(from_dtype(np.dtype(str(kind[0]).removeprefix("torch."))), kind[1], "C"))
        else:
            out.append(types.NamedTuple(find_signature(kind[1:]), kind[0]))
    return tuple(out)


FUNCTIONS: dict[tuple[Any, ...], cuda_launch.Function | None] = {}
"""Compiled kernels: (kernel, index of the device, types of the arguments) -> function, or None: by numba alone."""


def find_function(kernel: Any, device: int, kinds: Any, arguments: Sequence[Any]) -> cuda_launch.Function | None:
    """Return the compiled kernel for these arguments; compile it if it is not yet."""
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
    found = FUNCTIONS[key] = cuda_launch.load(kernel, find_signature(find_kinds(arguments)), device)
    return found


def launch_by_numba(
    kernel: Any, grid: tuple[int, int], threads: int, device: int, stream: int, arguments: Sequence[Any]
) -> None:
    """Launch a kernel by numba's dispatcher, which takes some 300 to 900 µs of the host."""
    with cuda.gpus[device], warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaPerformanceWarning)  # a row is a block, and a batch may be small
        kernel[grid, threads, cuda.external_stream(stream)](*convert(arguments, wrap_array))


def wrap_array(one: torch.Tensor | Flat) -> Any:
    """Return a tensor, or an array in one, as numba knows it."""
    if isinstance(one, torch.Tensor):
        return cuda.as_cuda_array(one, sync=False)
    dtype = np.dtype(str(one.dtype).removeprefix("torch."))
    interface = {"shape": one.shape, "typestr": dtype.str, "data": (one.tensor.data_ptr() + one.offset, False),
                 "version": 3, "strides": None}  # fmt: skip
    return cuda.as_cuda_array(SimpleNamespace(__cuda_array_interface__=interface), sync=False)
