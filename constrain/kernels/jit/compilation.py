"""Decorators of compiled functions: separate compilation of kernels, linked by symbols when they are loaded.

numba links the callees of a function into it and optimises them again for each caller: with some 150 functions that
call each other this was two thirds of the compile time. A `kernel` is compiled alone; its callers know its name and
signature, and its address is resolved when they are loaded. A tiny function is `inlined` and one that calls itself is
`recursive`: both are linked into their callers by numba. An `entry` is called from Python.

Compiled code is cached on disk (`object_cache`). A kernel needs only the signatures of the others, so processes
compile different kernels in parallel, each its `Share`: see `precompile`. All this depends on internals of numba; if
they cannot be used, the same decorators compile through its public API (`numba_internals`, `public_api`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from ctypes import CFUNCTYPE, c_int64
from functools import cached_property, partial
from typing import Any

from llvmlite import binding
from numba import njit, types
from numba.extending import models, register_model

from . import numba_internals, object_cache, precompile, public_api
from .numba_internals import FAULTS, CFunc, ExternalFunction, normalize_signature, register_dispatcher

__all__ = ["OPTIONS", "Kernel", "entry", "inlined", "kernel", "recursive"]


class Share:
    """The kernels that this process compiles: all, unless it was started to compile a part of them."""

    def __init__(self, text: str) -> None:
        self.part, self.parts = (int(n) for n in text.split("/")) if text else (0, 1)
        self.load = [0] * self.parts

    def takes(self, function: Callable[..., Any]) -> bool:
        """Return whether this process compiles the next kernel.

        Each kernel goes to the part with the least code so far; every part computes the same assignment.
        """
        lightest = self.load.index(min(self.load))
        self.load[lightest] += len(function.__code__.co_code) + 100
        if lightest == self.part and IS_COMPILER:
            print(flush=True)  # noqa: T201  (`precompile` counts the lines)
        return lightest == self.part


this_share = Share(os.environ.get(precompile.SHARE, ""))
IS_COMPILER = precompile.SHARE in os.environ
"""Whether this process was started only to compile, and never runs a kernel."""
if not IS_COMPILER:
    precompile.ensure_compiled()

OPTIONS = public_api.OPTIONS if numba_internals.problems else {**public_api.OPTIONS, "_nrt": False}
"""Options of numba: without the GIL, division by zero as in numpy, without reference counting (undocumented)."""


class Kernel(ExternalFunction):  # type: ignore[misc]
    """A compiled function: an external symbol for other kernels. Python may call it, more slowly than an `entry`."""

    def __init__(self, symbol: str, signature: Any, function: Any, address: int) -> None:
        super().__init__(symbol, signature)
        self.__doc__ = function.__doc__
        self.address = address
        # A process that only compiles never runs a kernel: any address will do.
        binding.add_symbol(symbol, address or 1)

    def __call__(self, *arguments: int) -> int:
        """Call the kernel."""
        return self._function(*arguments)  # type: ignore[no-any-return]

    @cached_property
    def _function(self) -> Any:
        return CFUNCTYPE(c_int64, *[c_int64] * len(self.sig.args))(self.address)


if issubclass(Kernel, types.Type):  # not where numba's class is missing
    register_model(Kernel)(models.OpaqueModel)


_compiled: list[Any] = []
"""Compiled kernels, which must live as long as this process: their machine code is freed with them."""


def _compile_alone(function: Any, signature: str) -> Any:
    """Compile one function as a C callback, or load it from the cache."""
    made = CFunc(function, normalize_signature(signature), locals={}, options=OPTIONS)
    made._cache = object_cache.function_cache(function)
    made.compile()
    _compiled.append(made)
    return made


def _compile_dispatcher(function: Any, signatures: Iterable[Any], **more: Any) -> Any:
    """Compile one function for its signatures as `numba.njit` does, or load it from the cache."""
    made = njit(**OPTIONS, **more)(function)
    made._cache = object_cache.function_cache(function)
    signatures = list(signatures)
    with register_dispatcher(made):  # The function may call itself.
        for one in signatures:
            made.compile(one)
    if signatures:
        made.disable_compile()
    return made


def _compile_or_fall_back(
    compile_internally: Callable[[], Any], function: Any, signatures: Iterable[Any], **more: Any
) -> Any:
    """Compile by a function that uses numba's internals; if these fail, compile through the public API."""
    if not numba_internals.problems:
        try:
            return compile_internally()
        except FAULTS as fault:
            problem = f"{type(fault).__name__} in numba's internals: {fault}"
            if IS_COMPILER:
                object_cache.write_failure(problem)
                raise
            numba_internals.report_problems([problem])
    return public_api.compile_function(function, list(signatures), **more)


def _compile_or_load_kernel(function: Any, signature: str) -> Kernel:
    symbol = f"{function.__module__}.{function.__name__}"
    arguments, result = normalize_signature(signature)
    if IS_COMPILER:
        address = 0
        if this_share.takes(function):
            object_cache.add_object(symbol, _compile_alone(function, signature))
    else:
        address = object_cache.find_address(symbol) or _compile_alone(function, signature).address
    return Kernel(symbol, result(*arguments), function, address)


def kernel(signature: str) -> Callable[[Any], Any]:
    """Compile a function separately, or load it, for calls by other kernels. All arguments and the result are int64."""

    def make(function: Any) -> Any:
        return _compile_or_fall_back(lambda: _compile_or_load_kernel(function, signature), function, [signature])

    return make


def entry(signature: Any, **more: Any) -> Callable[[Any], Any]:
    """Compile a function that Python calls, for one signature or a list of them; kernels that call it link it in.

    more: further options of `numba.njit`.
    """

    def make(function: Any) -> Any:
        signatures = signature if isinstance(signature, list) else [signature]
        compiled = signatures if not IS_COMPILER or this_share.takes(function) else []
        options = {"no_cfunc_wrapper": True, **more}
        return _compile_or_fall_back(
            lambda: _compile_dispatcher(function, compiled, **options), function, signatures, **more
        )

    return make


def inlined(signature: str) -> Callable[[Any], Any]:
    """Link a function into its callers, because it is tiny or returns a tuple. It is compiled with them."""
    return partial(_inlined_or_recursive, signatures=[], no_cpython_wrapper=True)


def recursive(signature: str) -> Callable[[Any], Any]:
    """Compile a function that calls itself: numba resolves the recursion, and links the function into its callers."""
    return partial(_inlined_or_recursive, signatures=[signature])


def _inlined_or_recursive(function: Any, signatures: list[str], **more: Any) -> Any:
    def compile_internally() -> Any:
        return _compile_dispatcher(function, signatures, no_cfunc_wrapper=True, **more)

    return _compile_or_fall_back(compile_internally, function, signatures)
