"""Targets: the module of all kernels optimised and emitted for a processor by LLVM, and linked to a shared library.

A library holds one object for each level of its processor, with its table of entry points, and a head: the hash of the
sources and a function that tells the level of the processor it runs on. Everything else is internal. Equal modules
give equal objects and libraries, byte for byte, on any machine.

`link_for_release` links for any target, by the linkers of Zig (the package `ziglang`); `link_for_host` for this machine
alone, by its C compiler, if there is one.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llvmlite import binding

from ..native.native_library import LEVEL, SOURCE_HASH, TABLE, name_platform
from .entry_code import ALLOWED, RAISED
from .object_loader import load_objects
from .object_symbols import list_undefined

__all__ = [
    "TARGETS", "Target", "emit_head", "emit_level", "find_target", "link_for_host", "link_for_release",
    "simplify_module",
]  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A platform for which kernels are compiled.

    name: as `native_library.name_platform` returns it. triple: LLVM's name. levels: LLVM's names of processors, from
    the least on; a library has an object for each.
    """

    name: str
    triple: str
    levels: tuple[str, ...]


TARGETS = {
    one.name: one
    for one in (
        Target("linux-x86_64", "x86_64-unknown-linux-gnu", ("x86-64-v2", "x86-64-v3", "x86-64-v4")),
        Target("linux-aarch64", "aarch64-unknown-linux-gnu", ("generic",)),
        Target("darwin-arm64", "arm64-apple-macosx11.0.0", ("apple-m1",)),
        Target("darwin-x86_64", "x86_64-apple-macosx11.0.0", ("x86-64-v2", "x86-64-v3")),
    )
}
"""The targets of which a wheel has libraries, by name. Levels of x86-64 are those of its psABI."""

X86_LEVEL = """
%four = type { i32, i32, i32, i32 }
define internal %four @identify(i32 %leaf) {
  %found = call %four asm sideeffect "cpuid",
    "={ax},={bx},={cx},={dx},0,2,~{dirflag},~{fpsr},~{flags}"(i32 %leaf, i32 0)
  ret %four %found
}
define internal i32 @all_set(i32 %value, i32 %bits) {
  %both = and i32 %value, %bits
  %equal = icmp eq i32 %both, %bits
  %number = zext i1 %equal to i32
  ret i32 %number
}
define i32 @LEVEL() {
entry:
  %leaf0 = call %four @identify(i32 0)
  %most = extractvalue %four %leaf0, 0
  %leaf1 = call %four @identify(i32 1)
  %features = extractvalue %four %leaf1, 2
  %extended = call %four @identify(i32 -2147483647)
  %more = extractvalue %four %extended, 2
  %v2.a = call i32 @all_set(i32 %features, i32 V2_FEATURES)
  %v2.b = call i32 @all_set(i32 %more, i32 V2_MORE)
  %v2 = and i32 %v2.a, %v2.b
  %has.seven = icmp uge i32 %most, 7
  %v3.a = call i32 @all_set(i32 %features, i32 V3_FEATURES)
  %v3.b = call i32 @all_set(i32 %more, i32 V3_MORE)
  %v3.c = and i32 %v3.a, %v3.b
  %v3.d = icmp eq i32 %v3.c, 1
  %look = and i1 %v3.d, %has.seven
  br i1 %look, label %further, label %least
further:
  %leaf7 = call %four @identify(i32 7)
  %seven = extractvalue %four %leaf7, 1
  %state = call { i32, i32 } asm sideeffect "xgetbv", "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}"(i32 0)
  %saved = extractvalue { i32, i32 } %state, 0
  %v3.e = call i32 @all_set(i32 %seven, i32 V3_SEVEN)
  %v3.f = call i32 @all_set(i32 %saved, i32 6)
  %v3.g = and i32 %v3.e, %v3.f
  %v3 = and i32 %v3.g, %v2
  %v4.a = call i32 @all_set(i32 %seven, i32 V4_SEVEN)
  %v4.b = call i32 @all_set(i32 %saved, i32 230)
  %v4.c = and i32 %v4.a, %v4.b
  %v4 = and i32 %v4.c, %v3
  br label %least
least:
  %has3 = phi i32 [ 0, %entry ], [ %v3, %further ]
  %has4 = phi i32 [ 0, %entry ], [ %v4, %further ]
  %one = add i32 %v2, %has3
  %two = add i32 %one, %has4
  %level = sub i32 %two, 1
  %over = icmp sgt i32 %level, MOST
  %found = select i1 %over, i32 MOST, i32 %level
  ret i32 %found
}
"""
"""The level of a processor: 0 for x86-64-v2, 1 for v3, 2 for v4, -1 for less, at most MOST.

Intel, Software Developer's Manual, volume 2, CPUID: leaves 1 (ECX), 7 (EBX) and 80000001H (ECX); XGETBV tells which
registers the operating system saves, without which they must not be used. Levels: x86-64 psABI, section 3.1.1."""
ONE_LEVEL = "define i32 @LEVEL() { ret i32 0 }"


def set_bits(*bits: int) -> str:
    """Return an int32 with these bits as a decimal number."""
    return str(sum(1 << bit for bit in bits))


X86_BITS = {
    "V2_FEATURES": set_bits(0, 9, 13, 19, 20, 23),  # SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT
    "V2_MORE": set_bits(0),  # LAHF
    "V3_FEATURES": set_bits(12, 22, 27, 28, 29),  # FMA, MOVBE, OSXSAVE, AVX, F16C
    "V3_MORE": set_bits(5),  # LZCNT
    "V3_SEVEN": set_bits(3, 5, 8),  # BMI1, AVX2, BMI2
    "V4_SEVEN": set_bits(16, 17, 28, 30, 31),  # AVX512F, DQ, CD, BW, VL
}


def find_target() -> tuple[Target, int]:
    """Return the target of this machine and its level there.

    A platform of which wheels have no library, or a processor below its least level, has a target of one level, which
    is LLVM's default.
    """
    target = TARGETS.get(name_platform())
    if target is not None:
        place = load_objects([emit_head(target, "")])(LEVEL)
        level = ctypes.CFUNCTYPE(ctypes.c_int)(place or 0)()
        if level >= 0:
            return target, level
    return Target(name_platform(), binding.get_default_triple(), ("",)), 0


def make_machine(target: Target, processor: str) -> Any:
    """Return LLVM's target machine."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.initialize_native_asmparser()
    return binding.Target.from_triple(target.triple).create_target_machine(
        cpu=processor, opt=3, reloc="pic", codemodel="small"
    )


def emit_head(target: Target, source_hash: str) -> bytes:
    """Return the object with the source hash and the function that tells the level of the processor."""
    text = ONE_LEVEL
    if len(target.levels) > 1:
        text = re.sub("[A-Z0-9]+_[A-Z]+", lambda match: X86_BITS[match[0]], X86_LEVEL)
        text = text.replace("MOST", str(len(target.levels) - 1))
    text = text.replace("LEVEL", LEVEL)
    text += f'\n@{SOURCE_HASH} = constant [{len(source_hash) + 1} x i8] c"{source_hash}\\00"\n'
    module, machine = binding.parse_assembly(text), make_machine(target, "x86-64" if len(target.levels) > 1 else "")
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    module.verify()
    return bytes(machine.emit_object(module))


def emit_level(target: Target, level: int, module: bytes) -> bytes:
    """Return the object of all kernels for a level of a target.

    module: bitcode of `module_builder.link_module`. Raise RuntimeError if a kernel may raise an exception, or needs a
    function of another library.
    """
    machine = make_machine(target, target.levels[level])
    whole = binding.parse_bitcode(module)
    whole.triple, whole.data_layout = target.triple, str(machine.target_data)
    for one in (*whole.functions, *whole.global_variables):
        if not one.is_declaration and one.name != TABLE:
            one.linkage = "internal"
    whole.get_global_variable(TABLE).name = f"{TABLE}{level}"
    run_passes(whole, machine, 3, unrolls=True)
    code = bytes(machine.emit_object(whole))
    check_undefined(code)
    return code


def simplify_module(module: Any) -> None:
    """Let LLVM simplify a module of one kernel, for no target in particular.

    numba writes twenty lines of LLVM's language for a line of Python. With less to read, the passes over all kernels,
    which one core runs, take half the time. Loops are left as they are for those passes, which know the processor.
    """
    triple = binding.get_default_triple()
    machine = make_machine(Target(name_platform(), triple, ("",)), "")
    module.triple, module.data_layout = triple, str(machine.target_data)
    run_passes(module, machine, 1, unrolls=False)


def run_passes(module: Any, machine: Any, level: int, unrolls: bool) -> None:
    """Run LLVM's passes of a level over a module. unrolls: whether loops are unrolled and vectorised."""
    options = binding.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization, options.slp_vectorization, options.loop_unrolling = unrolls, False, unrolls
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def check_undefined(code: bytes) -> None:
    """Raise RuntimeError if an object needs an undefined symbol that is not allowed."""
    undefined = list_undefined(code)
    if RAISED in undefined:
        raise RuntimeError("a kernel may raise an exception")
    if others := undefined - ALLOWED:
        raise RuntimeError(f"kernels need {', '.join(sorted(others))}, which libraries may not")


def link_for_release(target: Target, objects: Sequence[bytes]) -> bytes:
    """Return a shared library, linked by Zig."""
    if target.name.startswith("linux"):
        command = ["ld.lld", "-shared", "--strip-all", "--build-id=none", "-z", "noexecstack", "-z", "now"]
    else:
        processor = "aarch64" if "arm64" in target.triple else "x86_64"
        command = ["cc", "-target", f"{processor}-macos.11.0", "-shared", "-Wl,-undefined,dynamic_lookup", "-s",
                   "-Wl,-install_name,constrain-kernels"]  # fmt: skip
    return link(["-m", "ziglang", *command], sys.executable, objects)


def link_for_host(objects: Sequence[bytes]) -> bytes | None:
    """Return a shared library for this machine, linked by its C compiler; None if it has none."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-nostdlib", "-Wl,-z,noexecstack"]
    try:
        return link(["-shared", "-s", *undefined], compiler, objects)
    except (OSError, RuntimeError):
        return None  # a compiler that cannot link: kernels are loaded by llvmlite


def link(arguments: Sequence[str], program: str, objects: Sequence[bytes]) -> bytes:
    """Run a linker. Raise RuntimeError if it fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [folder / f"{number}.o" for number in range(len(objects))]
        for path, data in zip(paths, objects):
            path.write_bytes(data)
        names = [path.name for path in paths]  # relative: a path may be written into the library
        done = subprocess.run(
            [program, *arguments, "-o", "library", *names], cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"linking failed: {done.stderr[-2000:]}")
        return (folder / "library").read_bytes()
