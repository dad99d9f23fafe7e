"""How kernels are compiled: each by itself, tied together by symbols, on all cores.

numba links whatever a function calls into it and optimises the whole anew, for each caller: with some 150 functions
that call each other this was two thirds of the time. A `kernel` is compiled alone; those that call it know its name
and signature, and its address is found when they are loaded, as a linker does. What is tiny and everywhere is
`inlined`: linked into its callers as numba does it. What Python calls is an `entry`.

Compiled code is kept on disk beside the sources (numba's cache). Since a kernel needs of the others only their
signatures, processes can compile different ones side by side, each its `Share`: see `ahead`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from llvmlite import binding
from numba import cfunc, njit, types
from numba.core import sigutils
from numba.extending import models, register_model

from . import ahead

__all__ = ["OPTIONS", "Kernel", "entry", "inlined", "kernel"]

OPTIONS = {"cache": True, "nogil": True, "_nrt": False, "error_model": "numpy"}
"""Kept on disk, without the GIL, without reference counts."""


class Share:
    """Which kernels this process compiles: all, unless it was started to compile a part of them."""

    def __init__(self, text: str) -> None:
        self.part, self.parts = (int(n) for n in text.split("/")) if text else (0, 1)
        self.load = [0] * self.parts

    def takes(self, function: Callable[..., Any]) -> bool:
        """Whether the next one is: each goes to the part that has least to do, which all parts work out alike."""
        lightest = self.load.index(min(self.load))
        self.load[lightest] += len(function.__code__.co_code) + 100
        if lightest == self.part and ahead.SHARE in os.environ:
            print(flush=True)  # noqa: T201  (`ahead` counts the lines)
        return lightest == self.part


share = Share(os.environ.get(ahead.SHARE, ""))
if ahead.SHARE not in os.environ:
    ahead.make_sure()


class Kernel(types.ExternalFunction):  # type: ignore[misc]
    """A compiled function, for other kernels a symbol; Python may call it too, more slowly than an `entry`."""

    def __init__(self, symbol: str, signature: Any, function: Any, made: Any) -> None:
        super().__init__(symbol, signature)
        self.__doc__ = function.__doc__
        self.made = made

    def __call__(self, *arguments: int) -> int:
        """As the kernel."""
        return self.made.ctypes(*arguments)  # type: ignore[no-any-return]


register_model(Kernel)(models.OpaqueModel)


def kernel(signature: str) -> Callable[[Any], Kernel]:
    """Compiled alone, now or once before: what other kernels call."""

    def make(function: Any) -> Kernel:
        symbol = f"{function.__module__}.{function.__name__}"
        arguments, result = sigutils.normalize_signature(signature)
        made = cfunc(signature, **OPTIONS)(function) if share.takes(function) else None
        # A process that compiles a part never runs what it made: any address will do.
        binding.add_symbol(symbol, made.address if made else 1)
        return Kernel(symbol, result(*arguments), function, made)

    return make


def entry(signature: Any, **more: Any) -> Callable[[Any], Any]:
    """What Python calls, by one signature or a list of them; other kernels get it linked in."""

    def make(function: Any) -> Any:
        options = {**OPTIONS, **more}
        return njit(signature, **options)(function) if share.takes(function) else njit(**options)(function)

    return make


def inlined(signature: str) -> Callable[[Any], Any]:
    """What is tiny, calls itself, or gives several numbers: linked into its callers."""
    return njit(signature, **OPTIONS)  # type: ignore[no-any-return]
