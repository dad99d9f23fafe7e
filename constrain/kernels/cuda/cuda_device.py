"""The differences between a GPU and numba's CUDA simulator; all other files of this package are the same for both.

On a GPU `cuda` is numba's module, and operations without a Python expression (the bits of a float) are intrinsics. In
the simulator (NUMBA_ENABLE_CUDASIM=1) a kernel is plain Python, with a host thread for each thread of a block; `cuda`
then looks up the running kernel at each access. (The simulator itself replaces the `cuda` of a module while a device
function runs, which is a race between threads if kernels call functions of another file.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import config, cuda as numba_cuda, types

__all__ = ["LANES", "SIMULATED", "bits_of", "cuda", "device", "float_of", "kernel"]

SIMULATED = bool(config.ENABLE_CUDASIM)
LANES = 8 if SIMULATED else 32
"""Threads of a warp; in the simulator, which starts a host thread for each, threads that take the part of a warp."""
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

else:
    try:
        from numba.cuda.extending import intrinsic
    except ImportError:
        from numba.core.extending import intrinsic
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
