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

__all__ = [
    "LANES", "SIMULATED", "bits_of", "cuda", "device", "exp2", "float_of", "kernel", "larger", "load_four",
]  # fmt: skip

SIMULATED = bool(config.ENABLE_CUDASIM)
LANES = 8 if SIMULATED else 32
"""Threads of a warp; in the simulator, which starts a host thread for each, threads that take the part of a warp."""
EXP2 = "llvm.nvvm.ex2.approx.ftz.f"
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

    def exp2(value: Any) -> Any:
        """Return 2 to the power of a float32."""
        return np.float32(2.0 ** float(value))

    def larger(a: Any, b: Any) -> Any:
        """Return the larger of two float32, the other one if one is NaN."""
        return np.fmax(a, b)

    def load_four(array: Any, index: Any) -> Any:
        """Return four adjacent elements of a flat array, from `index` on."""
        return tuple(array[int(index) + i] for i in range(4))

else:
    try:
        from numba.cuda.extending import intrinsic
    except ImportError:
        from numba.core.extending import intrinsic
    from llvmlite import ir
    from numba.cuda import libdevice

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
    def exp2(typingctx: Any, value: Any) -> Any:
        """Return 2 to the power of a float32, by the instruction for it: to within 2^-22 of the result, 0 below 2^-126.

        That of the library takes twice as many instructions.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            real = ir.FloatType()
            function = builder.module.globals.get(EXP2)
            if function is None:
                function = ir.Function(builder.module, ir.FunctionType(real, [real]), EXP2)
            return builder.call(function, args)

        return types.float32(types.float32), codegen

    def larger(a: Any, b: Any) -> Any:
        """Return the larger of two float32, the other one if one is NaN."""
        return libdevice.fmaxf(a, b)

    larger = device(larger)

    @intrinsic  # type: ignore[untyped-decorator]
    def load_four(typingctx: Any, array: Any, index: Any) -> Any:
        """Return four adjacent elements of a flat array, from `index` on, by one access: their address must be a
        multiple of their size.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            element = context.get_data_type(array.dtype)
            vector = ir.VectorType(element, 4)
            data = context.make_array(array)(context, builder, args[0]).data
            address = builder.bitcast(builder.gep(data, [args[1]]), vector.as_pointer())
            four = builder.load(address, align=array.dtype.bitwidth // 2)
            items = [builder.extract_element(four, ir.Constant(ir.IntType(32), i)) for i in range(4)]
            return context.make_tuple(builder, signature.return_type, items)

        return types.UniTuple(array.dtype, 4)(array, index), codegen
