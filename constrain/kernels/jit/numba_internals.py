"""The parts of numba that are used although they are not public, all to compile functions quickly, not optimised.

A build spends most of its time in numba, so what kernels do not need is left out: passes for language that none of them
uses, and resolving the same operator for the same types again. The machine code is the same (a test compares).

numba is needed where a library is built, not where it is used, so its versions are pinned (the extra `build`): another
one is refused by name, since it may compile kernels in another way without an error.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from functools import cache
from types import BuiltinFunctionType
from typing import Any, cast

import llvmlite
import numba
from numba import njit, types
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.registry import cpu_target
from numba.core.types.functions import BaseFunction

from ...base.errors import ConstrainError

__all__ = ["VERSIONS", "PlainCompiler", "check_versions", "compile_unoptimised", "unify_integers"]

VERSIONS = {"numba": ((0, 62), (0, 70)), "llvmlite": ((0, 45), (0, 52))}
"""The first version of each library with which this was tested, and the first with which it was not.

Equal to the extra `build` in pyproject.toml (a test compares)."""

UNUSED_PASSES = {
    "WithLifting", "InlineClosureLikes", "RewriteSemanticConstants", "DeadBranchPrune", "RewriteDynamicRaises",
    "MakeFunctionToJitFunction", "LiteralPropagationSubPipelinePass", "LiteralUnroll", "FindLiterallyCalls",
    "InlineInlinables", "InlineOverloads", "NopythonRewrites", "NoPythonSupportedFeatureValidation", "AnnotateTypes",
    "DumpParforDiagnostics", "IRLegalization",
}  # fmt: skip
"""Classes of passes without which kernels are compiled: for closures, `with`, exceptions, loops over tuples of several
types, optional arguments, expressions of arrays, checks, and reports. A kernel that needs one of them is not
compiled."""


class PlainCompiler(CompilerBase):  # type: ignore[misc]
    """numba's compiler without `UNUSED_PASSES`: the option `pipeline_class` of `njit`."""

    def define_pipelines(self) -> list[Any]:
        """Return the passes."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [one for one in passes.passes if one[0].__name__ not in UNUSED_PASSES]
        passes.finalize()
        return [passes]


def unify_integers(dispatcher: Any) -> Any:
    """Let numba compile a function that others inline once for all types of integers, as int64, and return it.

    Otherwise it is compiled for each combination of widths and of constants that it is called with.
    """
    find_template = dispatcher.get_call_template

    def find_unified(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return find_template(tuple(widen(one) for one in arguments), keywords)

    dispatcher.get_call_template = find_unified
    return dispatcher


def widen(one: Any) -> Any:
    """Return int64 for a type of integers or a constant of it, and any other type unchanged."""
    return types.int64 if isinstance(one, types.Integer) else one


class UnoptimisedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The LLVM module of a function and of what it links in, as numba wrote it; no machine code is made."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Do nothing: all modules are optimised together, for each target."""

    def _finalize_specific(self) -> None:
        """Do nothing: the module is never run here."""

    def get_pointer_to_function(self, name: str) -> int:
        """Link what the function calls into its module, and return 0: there is no machine code."""
        self._ensure_finalized()
        return 0


class UnoptimisedCodegen(JITCPUCodegen):  # type: ignore[misc]
    """numba's generator of code, with `UnoptimisedLibrary`."""

    _library_class = UnoptimisedLibrary

    def _add_module(self, module: Any) -> None:
        """Do nothing: the module is never run here."""

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing: no compiled function reads its environment."""


def check_versions() -> None:
    """Raise ConstrainError if a library has a version that was not tested."""
    for library, (least, bound) in VERSIONS.items():
        version = {"numba": numba, "llvmlite": llvmlite}[library].__version__
        if not least <= tuple(int(n) for n in re.findall(r"\d+", version)[:2]) < bound:
            needed = f"{library}>={least[0]}.{least[1]},<{bound[0]}.{bound[1]}"
            raise ConstrainError(
                f"The kernels are compiled by {needed}, and this is {library} {version}.",
                hint=f'pip install "{needed}", or a wheel of constrain-lm, which needs neither.',
            )


@cache
def make_codegen() -> UnoptimisedCodegen:
    """Return a generator of code for no processor in particular."""
    before = numba.config.CPU_NAME, numba.config.CPU_FEATURES
    numba.config.CPU_NAME, numba.config.CPU_FEATURES = "generic", ""
    try:
        return UnoptimisedCodegen("numba.exec")
    finally:
        numba.config.CPU_NAME, numba.config.CPU_FEATURES = before


@contextmanager
def unoptimised() -> Iterator[None]:
    """Let numba compile what is compiled in this block by `UnoptimisedCodegen`, and remember the types of operators."""
    context, functions = cpu_target.target_context, cast("Any", BaseFunction)
    before, context._internal_codegen = context._internal_codegen, make_codegen()
    functions.get_call_type = remember_type
    try:
        yield
    finally:
        context._internal_codegen = before
        functions.get_call_type = find_call_type


find_call_type = BaseFunction.get_call_type
call_types: dict[Hashable, tuple[Any, Any]] = {}
"""By function and types of its arguments: the signature, and the key of its implementation."""


def remember_type(function: Any, context: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the signature of a call, of operators and other built-in functions what was found for the same types.

    To find it, numba tries all signatures of an operator, those of numpy among them: a third of its time.
    """
    if keywords or not isinstance(function.typing_key, BuiltinFunctionType):
        return find_call_type(function, context, arguments, keywords)
    key = function.typing_key, arguments
    found = call_types.get(key)
    if found is None:
        signature = find_call_type(function, context, arguments, keywords)
        call_types[key] = signature, function.get_impl_key(signature)
        return signature
    signature, implementation = found
    function._impl_keys[signature.args] = implementation
    return signature


def compile_unoptimised(function: Any, signature: Any, options: dict[str, Any]) -> tuple[str, Any]:
    """Compile a function for a signature. Return the name of the native function, and the LLVM module that defines it.

    The module also defines what was linked in; these functions may be defined in other modules, too.
    """
    with unoptimised():
        dispatcher = njit(**options)(function)
        dispatcher.compile(signature)
        compiled = dispatcher.overloads[signature.args]
    return compiled.fndesc.llvm_func_name, compiled.library._final_module.clone()
