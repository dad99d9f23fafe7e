"""Launches of compiled kernels by CUDA's driver API.

A launch by numba's dispatcher takes 300 to 900 µs of the host (numba-cuda 0.30), most of it to wrap arrays and to check
what has been checked: more than some models need for a token. Here numba only compiles, and arguments are written into
one array as the kernel expects them, which can be used again for the next launch.

    load(kernel, signature, device)         the compiled function, once per signature and device
    Arguments(values)                       arguments
    launch(functions, stream, arguments)    on a stream, in whatever thread

Three things are private to numba, and are only used here: where a compiled kernel keeps its function, that an array is
passed as (0, 0, size, item size, address, shape, strides in bytes), and a scalar as itself. If `load` does not find the
first, it returns None, and the caller launches by the dispatcher.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Arguments", "Function", "launch", "load"]


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


class Arguments:
    """Arguments of kernels, of 64 bits each, in memory where the driver reads them when it launches.

    An array is seven or more values (see above). slots, floats: the memory as int64 [n], and as float32 [2 n], of which
    element 2 i is a float32 in slot i. The driver copies arguments, so slots may be written again after a launch.
    """

    def __init__(self, values: Sequence[int]) -> None:
        memory, pointers = bytearray(8 * len(values)), bytearray(8 * len(values))
        self.slots, self.floats = memoryview(memory).cast("q"), memoryview(memory).cast("f")
        first = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        addresses = memoryview(pointers).cast("q")
        for i, value in enumerate(values):
            self.slots[i], addresses[i] = value, first + 8 * i
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(pointers))
        self._pointers = addresses  # the memory at `address`


def launch(functions: Sequence[tuple[Function, tuple[int, int], int]], stream: int, arguments: Arguments) -> None:
    """Launch (function, blocks, threads) one after the other on a stream of their device, with the same arguments.

    The context of the device is set for this call if it is not the current one: a thread that has not used the device
    has none.
    """
    from cuda.bindings import driver

    context, places = functions[0][0].context, arguments.address
    is_current = int(driver.cuCtxGetCurrent()[1]) == int(context)
    if not is_current:
        check(driver.cuCtxPushCurrent(context))
    try:
        for function, (x, y), threads in functions:
            check(driver.cuLaunchKernel(function.code, x, y, 1, threads, 1, 1, 0, stream, places, 0))
    finally:
        if not is_current:
            check(driver.cuCtxPopCurrent())


def check(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the driver's answer, raise RuntimeError if it is an error."""
    if answer[0] != 0:
        raise RuntimeError(f"CUDA: {answer[0]!r}")
    return answer
