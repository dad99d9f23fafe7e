"""Compiled kernels: the code of their entry points, the checks of a build, and how a library is found and loaded."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import float32, float64, types
from numba.core.errors import NumbaError

from constrain.base.errors import ConstrainError
from constrain.kernels import entry_points
from constrain.kernels.context_views import at, copy_memory, count_ones, int64s_at, lowest_bit
from constrain.kernels.jit import module_builder, numba_internals, targets
from constrain.kernels.jit.compilation import ALONE, Declared, entry, inlined, kernel
from constrain.kernels.jit.entry_code import ALLOWED
from constrain.kernels.jit.object_loader import load_objects
from constrain.kernels.jit.object_symbols import list_undefined
from constrain.kernels.native import library_cache, native_library

ROOT = Path(__file__).parents[2]
SOURCE_HASH = "0" * 32
READ_ONLY = types.Array(types.uint8, 1, "C", readonly=True)


@inlined("int64(int64)")
def double(x: Any) -> Any:
    return 2 * x


@kernel("int64(int64, int64)")
def add(a: Any, b: Any) -> Any:
    """Return a + 2 b.

    More is said here.
    """
    return a + double(b)


@kernel("int64(int64)")
def factorial(n: Any) -> Any:
    return 1 if n < 2 else n * factorial(n - 1)


@entry("int64(int64)", releases_gil=False)
def compute(n: Any) -> Any:
    return add(n, factorial(n)) + later(n)


@kernel("int64(int64)")
def later(n: Any) -> Any:
    return min(n, 0)


@kernel("int64(int64)")
def look(address: Any) -> Any:
    pointer = at(address)
    return 100 * lowest_bit(pointer[0]) + count_ones(pointer[1]) + 0 * int64s_at(address)[0]


@entry([one(types.Array(one, 1, "C", readonly=True), one) for one in (float32, float64)])
def scale(row: Any, factor: Any) -> Any:
    return row[0] * factor


@entry("int64(int64, uint8[::1], int64[::1])")
def write_length(value: Any, text: Any, out: Any) -> Any:
    text[0] = value
    out[0] = len(text)
    return len(out)


@entry("int64(int32[::1], uint8[::1], int64)")
def add_doubles(few: Any, text: Any, n: Any) -> Any:
    return double(few[0]) + double(text[0]) + double(n) + double(3)


@entry(types.int64(READ_ONLY))
def read_last(text: Any) -> Any:
    return text[len(text) - 1]


@kernel("int64(int64)")
def divide(n: Any) -> Any:
    if n == 7:
        raise ValueError
    return 100 // n


@entry("float64(float64)")
def use_library(x: Any) -> Any:
    return math.sin(x)


@entry("int64(int64[::1])")
def fill_sevens(out: Any) -> Any:
    for k in range(len(out)):
        out[k] = 7
    return len(out)


@entry("int64(int64, int64, int64)")
def copy_words(target: Any, source: Any, count: Any) -> Any:
    return copy_memory(target, source, count)


FINE = [add, factorial, compute, later, look, scale, write_length, add_doubles, read_last]


def build_objects(functions: Sequence[Any]) -> list[bytes]:
    """Compile functions for this machine."""
    target, level = targets.find_target()
    module = module_builder.link_module(functions, lambda one: module_builder.compile_function(one).as_bitcode())
    return [targets.emit_head(target, SOURCE_HASH), targets.emit_level(target, level, module.as_bitcode())]


@pytest.fixture(scope="module")
def objects() -> list[bytes]:
    return build_objects(FINE)


@pytest.fixture(scope="module", params=["linked", "loaded by llvmlite"])
def functions(
    request: pytest.FixtureRequest, objects: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Callable[..., Any]]:
    """The functions of this file in a library, by their own names."""
    find = load_objects(objects) if request.param != "linked" else None
    if find is None:
        library = targets.link_for_host(objects)
        if library is None:
            pytest.skip("needs a C compiler, which links")
        path = tmp_path_factory.mktemp("library") / "few.so"
        path.write_bytes(library)
        find = native_library.open_library(path)
    assert native_library.read_functions(find, SOURCE_HASH[1:] + "1") is None, "another source_hash"
    found = native_library.read_functions(find, SOURCE_HASH)
    assert found is not None
    return {name.partition(".")[2]: function for name, function in found.items()}


# ---- entry points


def test_kernels_call_each_other_and_themselves(functions: dict[str, Callable[..., Any]]) -> None:
    assert functions["add"](1, 2) == 5
    assert functions["add"](-1, 0) == -1, "also the value that C functions return for an error"
    assert functions["factorial"](5) == 120
    assert functions["compute"](5) == 245
    assert functions["look"](np.array([8, -1], np.int32).ctypes.data) == 332
    assert functions["add"](2**63 - 1, 0) == 2**63 - 1 and functions["add"](np.int32(3), True) == 5


def test_the_types_of_arrays_select_the_signature(functions: dict[str, Callable[..., Any]]) -> None:
    scale = functions["scale"]
    assert scale(np.array([0.1], np.float32), 3) == float(np.float32(0.1) * np.float32(3))
    assert scale(np.array([0.1]), 3) == 0.1 * 3
    assert scale(array("d", [-1.0]), 1.0) == -1.0, "any object with a buffer"


def test_arrays_are_written(functions: dict[str, Callable[..., Any]]) -> None:
    text, out = bytearray(5), np.zeros(2, np.int64)
    assert functions["write_length"](65, text, out) == 2
    assert text == b"A\0\0\0\0" and out.tolist() == [5, 0]
    text.append(1)  # possible only when the buffer was released
    assert functions["read_last"](bytes(text)) == 1, "read-only is enough where nothing is written"


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("add", (1,), TypeError),
        ("add", (1, 2, 3), TypeError),
        ("add", (1, "2"), TypeError),
        ("add", (1, 2.0), TypeError),
        ("add", (1, None), TypeError),
        ("add", (2**63, 1), OverflowError),
        ("scale", (np.zeros(1, np.int32), 1.0), TypeError),
        ("scale", (np.zeros(1, np.float16), 1.0), TypeError),
        ("scale", (np.zeros((1, 1)), 1.0), TypeError),
        ("scale", (np.zeros(4)[::2], 1.0), ValueError),
        ("scale", (np.zeros(1), "1"), TypeError),
        ("scale", ([1.0], 1.0), TypeError),
        ("write_length", (1, bytearray(1), np.zeros(1, np.int32)), TypeError),
        ("write_length", (1, bytearray(1), np.zeros(1, np.uint64)), TypeError),
        ("write_length", (1, np.zeros(1, np.int8), np.zeros(1, np.int64)), TypeError),
        ("write_length", (1, b"1", np.zeros(1, np.int64)), (BufferError, ValueError)),
    ],
)
def test_arguments_are_checked(
    functions: dict[str, Callable[..., Any]], name: str, arguments: tuple[Any, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        functions[name](*arguments)
    for one in arguments:
        if isinstance(one, bytearray):
            one.append(1)  # the buffer was released, or this raises BufferError


def test_help_tells_parameters_and_purpose(functions: dict[str, Callable[..., Any]]) -> None:
    assert functions["add"].__text_signature__ == "(a, b, /)"  # type: ignore[attr-defined]
    assert functions["add"].__doc__ == "Return a + 2 b."


def test_python_calls_what_entry_points_names() -> None:
    """Each name is a kernel's; the first group of the file are those that do not release the GIL."""
    declared = {one.name: one for one in module_builder.load_kernels()}
    text = Path(entry_points.__file__).read_text("utf-8")
    rows = re.findall(r'^(\w+): Callable\[\[(.*?)\], (\w+)\] = find_function\(\s*"([\w.]+)"\s*\)', text, re.M)
    assert len(rows) == text.count("find_function(") > 30
    first_group = text.split("# ----")[1]
    for name, parameters, result, full in rows:
        one = declared[full]
        assert full.endswith(f".{name}")
        for signature in one.signatures:
            kinds = [
                "Array" if isinstance(kind, types.Array) else {"int": "int", "flo": "float"}[str(kind)[:3]]
                for kind in (*signature.args, signature.return_type)
            ]
            told = [*parameters.split(", "), result]
            assert all(a in (b, "Any") for a, b in zip(told, kinds, strict=True)), name
        assert one.releases_gil == (f"\n{name}:" not in first_group), name


def test_an_inlined_function_is_compiled_once_for_all_integers(functions: dict[str, Callable[..., Any]]) -> None:
    few, text = np.array([-(2**31)], np.int32), np.array([255], np.uint8)
    assert functions["add_doubles"](few, text, 2**40) == -(2**32) + 510 + 2**41 + 6
    assert list(double.overloads) == [(types.int64,)]


# ---- checks of a build


def test_a_kernel_that_raises_is_refused() -> None:
    with pytest.raises(RuntimeError, match="a kernel may raise"):
        build_objects([divide])


def test_a_kernel_that_needs_another_library_is_refused() -> None:
    with pytest.raises(RuntimeError, match="kernels need sin"):
        build_objects([use_library])


def test_the_code_is_that_of_all_passes_of_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the passes that are left out nor the types that are remembered change what is emitted."""
    before = targets.link_for_host(build_objects(FINE))
    if before is None:
        pytest.skip("a C compiler strips the names, which numba numbers")
    assert targets.link_for_host(build_objects(FINE)) == before  # all types are remembered now
    monkeypatch.setattr(numba_internals, "UNUSED_PASSES", set())
    monkeypatch.setattr(numba_internals, "remember_type", numba_internals.find_call_type)
    assert targets.link_for_host(build_objects(FINE)) == before


def test_a_kernel_that_needs_a_pass_that_is_left_out_is_refused() -> None:
    def call_closure(a: Any) -> Any:
        def add_one(b: Any) -> Any:
            return b + 1

        return add_one(a)

    with pytest.raises(NumbaError):
        numba_internals.compile_unoptimised(call_closure, factorial.signatures[0], ALONE)


def test_every_target_is_emitted(objects: list[bytes]) -> None:
    """Only that of this machine can be run here; `make kernels` links them all."""
    module = module_builder.link_module(FINE, lambda one: module_builder.compile_function(one).as_bitcode())
    heads = {"linux": b"\x7fELF", "darwin": b"\xcf\xfa\xed\xfe"}
    for target in targets.TARGETS.values():
        for level in range(len(target.levels)):
            found = targets.emit_level(target, level, module.as_bitcode())
            assert found.startswith(heads[target.name.partition("-")[0]])
            needed = list_undefined(found)
            assert {"PyLong_AsLongLong", "PyObject_GetBuffer"} <= needed <= ALLOWED
        assert SOURCE_HASH.encode() in targets.emit_head(target, SOURCE_HASH)


def test_functions_that_fill_and_copy_memory_are_emitted_for_every_target() -> None:
    """LLVM calls a function of macOS's C library for loops that fill memory there."""
    functions = [fill_sevens, copy_words]
    module = module_builder.link_module(functions, lambda one: module_builder.compile_function(one).as_bitcode())
    for target in targets.TARGETS.values():
        needed = list_undefined(targets.emit_level(target, 0, module.as_bitcode()))
        assert ("memset_pattern16" in needed) == target.name.startswith("darwin")
        assert "memcpy" in needed
        assert needed <= ALLOWED


def test_the_level_of_this_processor() -> None:
    target, level = targets.find_target()
    if target.name != "linux-x86_64":
        pytest.skip("levels are of x86-64")
    flags = set(re.findall(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.M)[0].split())
    v2 = {"pni", "ssse3", "cx16", "sse4_1", "sse4_2", "popcnt", "lahf_lm"}
    v3 = v2 | {"fma", "movbe", "avx", "f16c", "abm", "bmi1", "avx2", "bmi2"}
    v4 = v3 | {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"}
    assert level == sum(one <= flags for one in (v2, v3, v4)) - 1


def test_other_versions_of_numba_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    numba_internals.check_versions()
    monkeypatch.setattr("llvmlite.__version__", "1.0.0rc1")
    with pytest.raises(ConstrainError, match=r"llvmlite>=.*, and this is llvmlite 1\.0\.0rc1"):
        numba_internals.check_versions()


def test_the_versions_are_those_of_the_requirements() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for library, (least, bound) in numba_internals.VERSIONS.items():
        required = re.search(rf'"{library}>=(\d+)\.(\d+),<(\d+)\.(\d+)"', project)
        assert required is not None
        assert tuple(int(n) for n in required.groups()) == (*least, *bound)


# ---- finding a library


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)


FIRST_MASK = """
import sys, constrain
schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
constrain.compile(constrain.Vocabulary.bytes(), schema=schema).matcher().mask()
"""


def test_a_first_mask_does_not_import_numba() -> None:
    native_library.list_functions()  # compiles, unless there is a library
    done = run_python(f"{FIRST_MASK}print([one for one in ('numba', 'llvmlite') if one in sys.modules])")
    assert done.stdout == "[]\n", done.stderr


def test_without_library_and_numba_an_error_says_what_to_do() -> None:
    hide = """
import importlib.util
from constrain.kernels.native import native_library
native_library.find_compiled = lambda: None
importlib.util.find_spec = lambda name: None
"""
    done = run_python(hide + FIRST_MASK)
    assert done.returncode == 1
    for part in (
        native_library.name_platform(),
        native_library.compute_source_hash(),
        'pip install "constrain-lm[build]"',
    ):
        assert part in done.stderr


def test_a_library_is_used_only_of_these_sources(
    objects: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = targets.link_for_host(objects)
    if library is None:
        pytest.skip("needs a C compiler, which links")
    monkeypatch.setattr(native_library, "LIBRARIES", tmp_path)
    monkeypatch.setattr(native_library, "list_libraries", lambda *_: [])
    monkeypatch.setattr(native_library, "read_objects", lambda *_: None)
    path = tmp_path / f"{native_library.name_platform()}{native_library.SUFFIX}"
    assert native_library.find_compiled() is None
    path.write_bytes(b"no library")
    assert native_library.find_compiled() is None
    (tmp_path / "other").write_bytes(library)  # another file: a loaded one must not be overwritten
    os.replace(tmp_path / "other", path)
    assert native_library.find_compiled() is None
    monkeypatch.setattr(native_library, "compute_source_hash", lambda: SOURCE_HASH)
    found = native_library.find_compiled()
    assert found is not None and found["test_kernel_library.add"](1, 2) == 5
    monkeypatch.setattr(native_library, "TABLE", "functions_of_no_level_")
    assert native_library.find_compiled() is None


def test_objects_are_kept_where_there_is_no_linker(
    objects: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setattr(
        library_cache, "find_folder", lambda source_hash: (tmp_path / f"kernels-{source_hash}", tmp_path)
    )
    monkeypatch.setattr(native_library, "LIBRARIES", tmp_path)
    monkeypatch.setattr(native_library, "compute_source_hash", lambda: SOURCE_HASH)
    assert native_library.find_compiled() is None
    packed = library_cache.pack_objects(objects)
    assert (
        library_cache.keep_file(SOURCE_HASH, native_library.name_platform(), library_cache.OBJECTS, packed) is not None
    )
    found = native_library.find_compiled()
    assert found is not None and found["test_kernel_library.add"](1, 2) == 5


def test_the_source_hash_depends_on_every_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {path.name for path in native_library.list_sources()}
    assert {"masks.py", "context_layout.py", "entry_code.py", "targets.py"} <= names
    hashes, one = set(), tmp_path / "one.py"
    monkeypatch.setattr(native_library, "list_sources", lambda: [one])
    for text in ("a = 1", "a = 2", ""):
        one.write_text(text)
        hashes.add(native_library.compute_source_hash.__wrapped__())
    assert len(hashes) == 3


def test_folders_of_older_sources_are_removed(tmp_path: Path) -> None:
    for age in range(7):
        folder = tmp_path / f"{library_cache.FOLDER}{age}"
        folder.mkdir()
        (folder / "linux.so").write_bytes(b"x")
        os.utime(folder, (1000 - age, 1000 - age))
    (tmp_path / "other").mkdir()
    library_cache.prune_folders(tmp_path)
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        *(f"{library_cache.FOLDER}{age}" for age in range(library_cache.MOST_FOLDERS)),
        "other",
    ]


def test_declared_functions_call_their_compiled_form() -> None:
    from constrain.kernels.masks import fill_mask

    assert isinstance(fill_mask, Declared)
    with pytest.raises(TypeError):
        fill_mask(1)
    assert fill_mask._compiled is entry_points.fill_mask
