"""How kernels are compiled: each by itself, tied together by symbols, on all cores.

numba links whatever a function calls into it and optimises the whole anew, for each caller: with some 150 functions
that call each other this was two thirds of the time. A `kernel` is compiled alone; those that call it know its name
and signature, and its address is found when they are loaded, as a linker does. What is tiny and everywhere is
`inlined`, and what calls itself is `recursive`: linked into their callers as numba does it. What Python calls is an
`entry`.

Compiled code is kept on disk (`object_cache`). Since a kernel needs of the others only their signatures, processes can
compile different ones side by side, each its `Share`: see `precompile`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from ctypes import CFUNCTYPE, c_int64
from functools import cached_property, partial
from typing import Any

from llvmlite import binding
from numba import njit, types
from numba.core import sigutils, typeinfer
from numba.core.ccallback import CFunc
from numba.extending import models, register_model

from . import object_cache, precompile

__all__ = ["OPTIONS", "Kernel", "entry", "inlined", "kernel", "recursive"]

OPTIONS = {"nogil": True, "_nrt": False, "error_model": "numpy"}
"""Without the GIL, without reference counts."""


class Share:
    """Which kernels this process compiles: all, unless it was started to compile a part of them."""

    def __init__(self, text: str) -> None:
        self.part, self.parts = (int(n) for n in text.split("/")) if text else (0, 1)
        self.load = [0] * self.parts

    def takes(self, function: Callable[..., Any]) -> bool:
        """Whether the next one is: each goes to the part that has least to do, which all parts work out alike."""
        lightest = self.load.index(min(self.load))
        self.load[lightest] += len(function.__code__.co_code) + 100
        if lightest == self.part and IS_COMPILER:
            print(flush=True)  # noqa: T201  (`precompile` counts the lines)
        return lightest == self.part


share = Share(os.environ.get(precompile.SHARE, ""))
IS_COMPILER = precompile.SHARE in os.environ
"""Whether this process was started to compile, and never runs what it makes."""
if not IS_COMPILER:
    precompile.make_sure()


class Kernel(types.ExternalFunction):  # type: ignore[misc]
    """A compiled function, for other kernels a symbol; Python may call it too, more slowly than an `entry`."""

    def __init__(self, symbol: str, signature: Any, function: Any, address: int) -> None:
        super().__init__(symbol, signature)
        self.__doc__ = function.__doc__
        self.address = address
        # A process that only compiles never runs what it makes: any address will do.
        binding.add_symbol(symbol, address or 1)

    def __call__(self, *arguments: int) -> int:
        """As the kernel."""
        return self._function(*arguments)  # type: ignore[no-any-return]

    @cached_property
    def _function(self) -> Any:
        return CFUNCTYPE(c_int64, *[c_int64] * len(self.sig.args))(self.address)


register_model(Kernel)(models.OpaqueModel)


_kept: list[Any] = []


def keep(made: Any) -> Any:
    """The same, which lives as long as this process, and its code with it."""
    _kept.append(made)
    return made


def _compiled_alone(function: Any, signature: str) -> Any:
    """Compile one function as a C callback, or load it."""
    made: Any = CFunc(function, sigutils.normalize_signature(signature), locals={}, options=OPTIONS)
    made._cache = object_cache.function_cache(function)
    made.compile()
    return made


def _dispatcher(function: Any, signatures: Iterable[Any], **more: Any) -> Any:
    """Compile one function by its signatures as `numba.njit` does, or load it."""
    made = njit(**OPTIONS, **more)(function)
    made._cache = object_cache.function_cache(function)
    signatures = list(signatures)
    with typeinfer.register_dispatcher(made):  # which may call itself
        for one in signatures:
            made.compile(one)
    if signatures:
        made.disable_compile()
    return made


def kernel(signature: str) -> Callable[[Any], Kernel]:
    """Compiled alone, now or once before: what other kernels call. All its arguments and its result are int64."""

    def make(function: Any) -> Kernel:
        symbol = f"{function.__module__}.{function.__name__}"
        arguments, result = sigutils.normalize_signature(signature)
        if IS_COMPILER:
            address = 0
            if share.takes(function):
                object_cache.put(symbol, _compiled_alone(function, signature))
        else:
            address = object_cache.address(symbol) or keep(_compiled_alone(function, signature)).address
        return Kernel(symbol, result(*arguments), function, address)

    return make


def entry(signature: Any, **more: Any) -> Callable[[Any], Any]:
    """What Python calls, by one signature or a list of them; other kernels get it linked in."""

    def make(function: Any) -> Any:
        signatures = signature if isinstance(signature, list) else [signature]
        compiled = not IS_COMPILER or share.takes(function)
        return _dispatcher(function, signatures if compiled else (), **{"no_cfunc_wrapper": True, **more})

    return make


def inlined(signature: str) -> Callable[[Any], Any]:
    """What is tiny, or gives several numbers: linked into its callers, and compiled when one of them is."""
    return partial(_dispatcher, signatures=(), no_cpython_wrapper=True, no_cfunc_wrapper=True)


def recursive(signature: str) -> Callable[[Any], Any]:
    """What calls itself: numba binds it to itself, and links it into its callers."""
    return partial(_dispatcher, signatures=(signature,), no_cfunc_wrapper=True)
