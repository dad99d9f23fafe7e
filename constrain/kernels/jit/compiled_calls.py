"""Functions whose calls are lowered to given LLVM instructions, with one signature each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import intrinsic, lower_builtin, overload

from . import numba_internals
from .numba_internals import find_or_object

__all__ = ["define_call"]

ConcreteTemplate: Any = find_or_object("numba.core.typing.templates.ConcreteTemplate")
infer_global: Any = find_or_object("numba.core.typing.templates.infer_global")
signature: Any = find_or_object("numba.core.typing.templates.signature")


def define_call(function: Callable[..., Any], build: Callable[..., Any], result: Any, *arguments: Any) -> None:
    """Compile calls of a function to the instructions that `build(context, builder, *values)` emits.

    result, arguments: numba types; one or two arguments.

    Type inference resolves each call again in every pass, which is fast for a `ConcreteTemplate`. As `intrinsic`s,
    which numba documents, the functions of `context_views` took an eighth of the time of compiling all kernels.
    """
    if numba_internals.problems:
        _overload(function, build, result, *arguments)
        return

    @infer_global(function)
    class Template(ConcreteTemplate):  # type: ignore[misc]
        key = function
        cases = (signature(result, *arguments),)

    @lower_builtin(function, *arguments)  # type: ignore[untyped-decorator]
    def lower(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        return build(context, builder, *values)


def _overload(function: Callable[..., Any], build: Callable[..., Any], result: Any, *arguments: Any) -> None:
    """Do the same as `define_call` through numba's public API."""

    def codegen(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        casts = (context.cast(builder, *cast) for cast in zip(values, sig.args, arguments))
        return build(context, builder, *casts)

    if len(arguments) == 1:

        @intrinsic  # type: ignore[untyped-decorator]
        def compiled(typingctx: Any, a: Any) -> Any:
            return result(a), codegen

        overload(function)(lambda a: lambda a: compiled(a))  # noqa: PLW0108  (not itself a function of Python)
    else:

        @intrinsic  # type: ignore[untyped-decorator]
        def compiled(typingctx: Any, a: Any, b: Any) -> Any:
            return result(a, b), codegen

        overload(function)(lambda a, b: lambda a, b: compiled(a, b))  # noqa: PLW0108
