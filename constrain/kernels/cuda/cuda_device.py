"""The differences between a GPU and numba's CUDA simulator; all other files of this package are the same for both.

On a GPU `cuda` is numba's module, and operations without a Python expression (the bits of a float, a store of 16 bytes)
are intrinsics. In the simulator (NUMBA_ENABLE_CUDASIM=1) a kernel is plain Python, with a host thread for each thread
of a block; `cuda` then looks up the running kernel at each access. (The simulator itself replaces the `cuda` of a
module while a device function runs, which is a race between threads if kernels call functions of another file.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import config, cuda as numba_cuda, types

__all__ = ["SIMULATED", "bits_of", "cuda", "device", "float_of", "kernel", "store16"]

SIMULATED = bool(config.ENABLE_CUDASIM)
Function = Callable[..., Any]


class _Underway:
    """Proxy of `cuda` in the context of the running simulated kernel."""

    def __getattr__(self, name: str) -> Any:
        from numba.cuda.simulator.kernel import _get_kernel_context

        return getattr(_get_kernel_context() or numba_cuda, name)


if SIMULATED:
    cuda: Any = _Underway()

    def kernel(function: Function) -> Any:
        """Compile a kernel, launched as kernel[blocks, threads, stream](...)."""
        return numba_cuda.jit(function)

    def device(function: Function) -> Any:
        """Compile a device function, which kernels call."""
        return function

    def float_of(bits: Any) -> Any:
        """Return the float32 with the bits of an int32."""
        return np.int32(bits).view(np.float32)

    def bits_of(value: Any) -> Any:
        """Return the bits of a float32 as an int32."""
        return np.float32(value).view(np.int32)

    def store16(array: Any, index: Any, pattern: Any) -> None:
        """Write an int32 four times from array[index] on (int32 or int16), which must be aligned to 16 bytes."""
        array[index : index + 16 // array.dtype.itemsize] = np.full(4, pattern, np.int32).view(array.dtype)

else:
    from numba.core import cgutils

    try:
        from numba.cuda.extending import intrinsic
    except ImportError:
        from numba.core.extending import intrinsic
    ir = cgutils.ir
    cuda = numba_cuda

    def kernel(function: Function) -> Any:
        """Compile a kernel, launched as kernel[blocks, threads, stream](...)."""
        return numba_cuda.jit(function)

    def device(function: Function) -> Any:
        """Compile a device function, which kernels call."""
        return numba_cuda.jit(device=True)(function)

    @intrinsic  # type: ignore[untyped-decorator]
    def float_of(typingctx: Any, bits: Any) -> Any:
        """Return the float32 with the bits of an int32."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(types.float32))

        return types.float32(types.int32), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def bits_of(typingctx: Any, value: Any) -> Any:
        """Return the bits of a float32 as an int32."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(types.int32))

        return types.int32(types.float32), codegen

    @intrinsic  # type: ignore[untyped-decorator]
    def store16(typingctx: Any, array: Any, index: Any, pattern: Any) -> Any:
        """Write an int32 four times from array[index] on (int32 or int16), which must be aligned to 16 bytes."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = context.get_value_type(types.int32)
            four = ir.VectorType(word, 4)
            data = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
            place = builder.gep(data, [args[1]])
            value = ir.Constant(four, ir.Undefined)
            for lane in range(4):
                value = builder.insert_element(value, args[2], word(lane))
            builder.store(value, builder.bitcast(place, four.as_pointer()), align=16)
            return context.get_dummy_value()

        return types.void(array, types.int64, types.int32), codegen
