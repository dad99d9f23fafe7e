"""Functions whose calls are lowered to given LLVM instructions, with one signature each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import lower_builtin

__all__ = ["define_call"]


def define_call(function: Callable[..., Any], build: Callable[..., Any], result: Any, *arguments: Any) -> None:
    """Compile calls of a function to the instructions that `build(context, builder, *values)` emits.

    result, arguments: numba types.

    Type inference resolves each call again in every pass, which is fast for a `ConcreteTemplate`. As `intrinsic`s,
    which numba documents, the functions of `context_views` took an eighth of the time of compiling all kernels.
    """

    @infer_global(function)
    class Template(ConcreteTemplate):  # type: ignore[misc]
        key = function
        cases = (signature(result, *arguments),)

    @lower_builtin(function, *arguments)  # type: ignore[untyped-decorator]
    def lower(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        return build(context, builder, *values)
