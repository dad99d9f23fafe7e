"""Objects loaded by llvmlite, where there is no linker: 50 ms a process, most of it the import of llvmlite."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from llvmlite import binding

if TYPE_CHECKING:
    from ..native.native_library import FindSymbol

__all__ = ["load_objects"]

_engines: list[Any] = []
"""LLVM's engines, which own the machine code: they must live as long as this process."""


def load_objects(objects: Iterable[bytes]) -> FindSymbol:
    """Place objects in memory. Return a function that finds their symbols."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    _engines.append(engine)
    for one in objects:
        engine.add_object_file(binding.ObjectFileRef.from_data(one))
    engine.finalize_object()

    def find(symbol: str) -> int | None:
        return int(engine.get_function_address(symbol)) or int(engine.get_global_value_address(symbol)) or None

    return find
