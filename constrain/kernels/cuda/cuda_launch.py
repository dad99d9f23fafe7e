"""Launches of compiled kernels by CUDA's driver API.

A launch by numba's dispatcher takes 300 to 900 µs of the host (numba-cuda 0.30), most of it to wrap arrays and to check
what has been checked: more than some models need for a token. Here numba only compiles, and arguments are written into
one array as the kernel expects them, in about 10 µs.

    load(kernel, signature, device)         the compiled function, once per signature and device
    pack(values)                            arguments
    launch(functions, stream, packed)       on a stream, in whatever thread

Three things are private to numba, and are only used here: where a compiled kernel keeps its function, that an array is
passed as (0, 0, size, item size, address, shape, strides in bytes), and a scalar as itself. If `load` does not find the
first, it returns None, and the caller launches by the dispatcher.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Function", "launch", "load", "pack"]


@dataclass(frozen=True)
class Function:
    """A compiled kernel: the driver's handles of its code and of the context of its device."""

    code: Any
    context: Any


def load(kernel: Any, signature: tuple[Any, ...], device: int) -> Function | None:
    """Compile a kernel for numba's types of its arguments, on a device; None if numba keeps its code elsewhere."""
    from cuda.bindings import driver
    from numba import cuda

    with cuda.gpus[device]:
        compiled = kernel.compile(signature)
        try:
            code = driver.CUfunction(int(compiled._codelibrary.get_cufunc().handle))
        except (AttributeError, TypeError):
            return None
    _, place = check(driver.cuDeviceGet(device))
    _, context = check(driver.cuDevicePrimaryCtxRetain(place))
    return Function(code, context)


def pack(values: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return arguments, arrays as seven or more values of 64 bits (see above), and their addresses: for `launch`."""
    slots = np.array(values, np.int64)
    first = slots.ctypes.data
    return slots, np.arange(first, first + 8 * len(slots), 8)


def launch(
    functions: Sequence[tuple[Function, tuple[int, int], int]],
    stream: int,
    packed: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> None:
    """Launch (function, blocks, threads) one after the other on a stream of their device, with the same arguments.

    The context is set for this call, since a thread that has not used the device has none.
    """
    from cuda.bindings import driver

    places = packed[1].ctypes.data
    check(driver.cuCtxPushCurrent(functions[0][0].context))
    try:
        for function, (x, y), threads in functions:
            check(driver.cuLaunchKernel(function.code, x, y, 1, threads, 1, 1, 0, stream, places, 0))
    finally:
        check(driver.cuCtxPopCurrent())


def check(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the driver's answer, raise RuntimeError if it is an error."""
    if int(answer[0]):
        raise RuntimeError(f"CUDA: {answer[0]!r}")
    return answer
