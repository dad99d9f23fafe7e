"""Decorators that declare compiled functions. Nothing is compiled when a file of kernels is imported.

    @kernel("int64(int64, int64)")   compiled alone; other kernels call it by its symbol, and so does Python
    @entry(signature)                the same with arrays, several signatures, or other options, for calls from Python
    @inlined("int64(int64)")         linked into its callers, because it is tiny or returns a tuple

`module_builder` compiles all declared functions to one LLVM module. Kernels may call themselves and each other in any
order, since a call names only a symbol. From Python, a declared function calls its compiled form in the library of this
process (`kernels.native_library`), as the tests of single kernels do; the package itself imports what it calls from
`kernels.entry_points`, which needs no numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.core.sigutils import normalize_signature
from numba.extending import models, register_model

from ...base.cached_property import cached_property
from ..native.native_library import find_function
from .numba_internals import PlainCompiler, unify_integers

__all__ = ["ALONE", "OPTIONS", "Declared", "Entry", "Kernel", "declared", "entry", "inlined", "kernel"]

OPTIONS = {
    "nogil": True,
    "error_model": "numpy",  # division by zero as in numpy: no kernel raises
    "_nrt": False,  # no reference counting (undocumented)
}
"""Options of numba for all functions."""
ALONE = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": PlainCompiler}
"""Options of numba for functions whose calls from Python are compiled by `entry_code`, not by numba."""

declared: dict[str, Declared] = {}
"""All declared functions by name, in the order of their declaration: what `module_builder` compiles."""


class Declared:
    """A function that is compiled with the others.

    name: module and function, below `constrain.kernels`. signatures: numba's, of which a call from Python takes the
    first whose array types fit. releases_gil: whether other threads of Python run during a call from Python.
    """

    function: Callable[..., Any]
    name: str
    symbol: str
    signatures: list[Any]
    releases_gil: bool
    options: dict[str, Any]

    def declare(
        self, function: Callable[..., Any], signatures: list[Any], releases_gil: bool, options: dict[str, Any]
    ) -> None:
        """Set the fields and add the function to `declared`."""
        self.function, self.signatures, self.releases_gil = function, signatures, releases_gil
        self.name, self.symbol = name_function(function), f"{function.__module__}.{function.__name__}"
        self.options, self.__doc__ = {**ALONE, **options}, function.__doc__
        declared[self.name] = self

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return self._compiled(*arguments)

    @cached_property
    def _compiled(self) -> Callable[..., Any]:
        return find_function(self.name)


class Entry(Declared):
    """A function that only Python calls."""


class Kernel(Declared, types.ExternalFunction):  # type: ignore[misc]
    """A function that Python calls, and other kernels by its symbol: to numba it is an external function."""

    def __init__(self, symbol: str, signature: Any) -> None:
        types.ExternalFunction.__init__(self, symbol, signature)


register_model(Kernel)(models.OpaqueModel)


def name_function(function: Callable[..., Any]) -> str:
    """Return the name of a function in the library: its module without the package of the kernels, and its own."""
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


def kernel(signature: str) -> Callable[[Any], Any]:
    """Declare a function that other kernels call, and Python. All arguments and the result are int64."""
    return entry(signature)


def entry(signature: Any, releases_gil: bool = True, **options: Any) -> Callable[[Any], Any]:
    """Declare a function that Python calls, for one signature or a list of them.

    Arguments are int64, floats, or one-dimensional contiguous arrays. Other kernels may call it if it has one signature
    without arrays. releases_gil: False where the call is shorter than releasing the GIL. options: of `numba.njit`.
    """
    given = signature if isinstance(signature, list) else [signature]
    signatures = [result(*arguments) for arguments, result in map(normalize_signature, given)]
    is_kernel = len(signatures) == 1 and not any(isinstance(one, types.Array) for one in signatures[0].args)

    def make(function: Any) -> Any:
        symbol = f"{function.__module__}.{function.__name__}"
        made = Kernel(symbol, signatures[0]) if is_kernel else Entry()
        made.declare(function, signatures, releases_gil, options)
        return made

    return make


def inlined(signature: str) -> Callable[[Any], Any]:
    """Declare a function that is linked into its callers. The signature is documentation: numba infers the types, all
    integers being int64.
    """
    return lambda function: unify_integers(njit(**ALONE)(function))
