"""Compilation of kernels: without any one of numba's internals they compile through its public API, with a warning.

An internal is hidden from our code alone: numba itself needs most of them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from constrain.kernels.jit import numba_internals, object_cache

ROOT = Path(__file__).parents[2]

FEW_KERNELS = """
import numpy as np
from constrain.kernels.context_views import at, count_ones, lowest_bit
from constrain.kernels.jit.compilation import entry, inlined, kernel, recursive
from constrain.kernels.jit.entry_points import address_of, entry_point

@inlined("int64(int64)")
def double(x):
    return 2 * x

@kernel("int64(int64, int64)")
def add(a, b):
    return a + double(b)

@recursive("int64(int64)")
def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)

@entry("int64(int64)")
def compute(n):
    return add(n, factorial(n))

@kernel("int64(int64)")
def look(address):
    pointer = at(address)
    return 100 * lowest_bit(pointer[0]) + count_ones(pointer[1])

assert add(1, 2) == 5
assert look(address_of(np.array([8, -1], np.int32))) == 332
assert entry_point(compute)(5) == compute(5) == 245
"""

HIDING = '''
import importlib, sys, types

class Hidden:
    """An attribute of a class that our own code cannot see; numba can."""
    def __init__(self, name, original):
        self.name, self.original = name, original
    def __get__(self, instance, owner=None):
        if sys._getframe(1).f_globals["__name__"].startswith("constrain."):
            raise AttributeError(self.name)
        if self.name in getattr(instance, "__dict__", ()):
            return vars(instance)[self.name]
        get = getattr(type(self.original), "__get__", None)
        return get(self.original, instance, owner) if get else self.original
    def __set__(self, instance, value):
        vars(instance)[self.name] = value

class HidingModule(types.ModuleType):
    def __getattribute__(self, name):
        if name in hidden_names(self) and sys._getframe(1).f_globals["__name__"].startswith("constrain."):
            raise AttributeError(name)
        return super().__getattribute__(name)

def hidden_names(module):
    return types.ModuleType.__getattribute__(module, "__dict__").get("_hidden_names", ())

def hide(dotted):
    """Hide an object, given as in `numba_internals.INTERNALS`."""
    *path, name = dotted.split(".")
    owner = importlib.import_module(path[0])
    for k, part in enumerate(path[1:], 2):
        module = ".".join(path[:k])
        is_module = module not in sys.modules and not hasattr(owner, part)
        owner = importlib.import_module(module) if is_module else getattr(owner, part)
    if isinstance(owner, types.ModuleType):
        owner._hidden_names = {*hidden_names(owner), name}
        owner.__class__ = HidingModule
    else:
        owner = owner if isinstance(owner, type) else type(owner)
        setattr(owner, name, Hidden(name, getattr_static(owner, name)))

def getattr_static(owner, name):
    for one in owner.__mro__:
        if name in vars(one):
            return vars(one)[name]
    return None
'''

EACH_INTERNAL = '''
import importlib, os, sys, traceback, warnings
import llvmlite.binding, numba, numba.core.ccallback
from pathlib import Path

def start(folder, prepare):
    """Compile the few kernels in a process of its own: the warnings, and how many functions numba's cache held."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        with os.fdopen(reading) as file:
            text = file.read()
        assert os.waitpid(process, 0)[1] == 0, text
        return text
    try:
        with warnings.catch_warnings(record=True) as caught, os.fdopen(writing, "w") as out:
            warnings.simplefilter("always")
            try:
                numba.config.CACHE_DIR = str(folder)
                prepare()
                few = importlib.import_module("few_kernels")
                held = sum(few.compute.stats.cache_hits.values())
                messages = [str(one.message) for one in caught if one.category is RuntimeWarning]
                print(held, len(messages), *messages, sep="\\n", file=out, flush=True)
            except BaseException:
                traceback.print_exc(file=out)
                out.flush()
                os._exit(1)
    finally:
        os._exit(0)
'''


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "few_kernels.py").write_text(FEW_KERNELS)
    (tmp_path / "hiding.py").write_text(HIDING)
    (tmp_path / "cache").mkdir(mode=0o700)
    return {
        **{name: value for name, value in os.environ.items() if name != "CONSTRAIN_KERNELS_SHARE"},
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }


def run(code: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


AGAIN = "numba.core.caching.NullCache"
"""The internal without which kernels are loaded a second time, too; numba's cache is the same without others."""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="each internal is hidden in a process of its own")


@pytest.mark.slow
@needs_fork
def test_without_an_internal_kernels_compile_through_the_public_api(
    environment: dict[str, str], tmp_path: Path
) -> None:
    found = run(
        EACH_INTERNAL
        + f"""
from hiding import hide
for dotted in {numba_internals.INTERNALS!r}:
    folder = Path({str(tmp_path)!r}) / dotted
    folder.mkdir(mode=0o700)
    for time in ("first", "again") if dotted == {AGAIN!r} else ("first",):
        print(dotted, time, start(folder, lambda: hide(dotted)), sep="\\n", end="")
""",
        environment,
    )
    lines = iter(found.splitlines())
    for dotted in numba_internals.INTERNALS:
        for time in ("first", "again") if dotted == AGAIN else ("first",):
            assert (next(lines), next(lines)) == (dotted, time)
            held, warnings, message = int(next(lines)), int(next(lines)), next(lines)
            assert warnings == 1, "once in each process"
            assert f"{dotted} is missing in numba" in message
            assert "public API" in message and "'numba>=" in message, "what it costs, and what to do"
            assert held == (time == "again"), f"numba's cache serves the second process without {dotted}"
    assert next(lines, None) is None


@needs_fork
def test_a_version_that_was_not_tried_is_not_relied_upon(environment: dict[str, str], tmp_path: Path) -> None:
    code = (
        EACH_INTERNAL
        + f"""
def newer(library, version):
    def prepare():
        library.__version__ = version
    return prepare
folder = Path({str(tmp_path)!r}) / "cache"
print(start(folder, newer(numba, "0.71.2")))
print(start(folder, newer(llvmlite, "1.0.0rc1")))
"""
    )
    found = run(code, environment)
    assert "numba 0.71.2 is not one of the versions that were tried (numba>=" in found
    assert "llvmlite 1.0.0rc1 is not one of the versions that were tried" in found


@needs_fork
def test_an_internal_that_fails_when_it_is_used(environment: dict[str, str], tmp_path: Path) -> None:
    """What only an instance has cannot be looked up before: compiling falls back when it is missed."""
    code = (
        EACH_INTERNAL
        + f"""
from hiding import hide
def prepare():
    from constrain.kernels.jit import object_cache
    object_cache.find_folder = lambda: None  # each process compiles in memory
    hide("numba.core.ccallback.CFunc.compile")
print(start(Path({str(tmp_path)!r}) / "cache", prepare))
"""
    )
    held, warnings, message = run(code, environment).splitlines()[:3]
    assert (held, warnings) == ("0", "1")
    assert "AttributeError in numba's internals: compile" in message


@pytest.mark.slow
def test_a_failure_while_precompiling_is_reported_and_remembered(environment: dict[str, str], tmp_path: Path) -> None:
    hide = 'from hiding import hide\nhide("numba.core.codegen.JITCodeLibrary._compiled_object")\n'
    (tmp_path / "sitecustomize.py").write_text(hide)  # in the processes that compile, too
    message = "AttributeError in numba's internals: _compiled_object. Kernels are compiled through numba's public API"
    code = "import few_kernels"
    first = run(code, environment)
    assert first.count(message) == 1
    assert re.search(r"compiling \d+ kernels", first)
    again = run(code, environment)
    assert again.count(message) == 1
    assert not re.search(r"compiling \d+ kernels", again), (
        "it is not tried a second time with the same versions and sources"
    )


def test_the_versions_are_those_of_the_requirements() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for library, (least, bound) in numba_internals.VERSIONS.items():
        required = re.search(rf'"{library}>=(\d+)\.(\d+),<(\d+)\.(\d+)"', project)
        assert required is not None
        assert tuple(int(n) for n in required.groups()) == (*least, *bound)


def test_the_installed_versions_are_supported() -> None:
    assert numba_internals.find_problems() == []


def test_folders_of_older_sources_are_removed(tmp_path: Path) -> None:
    for age in range(7):
        folder = tmp_path / f"{object_cache.FOLDER}{age}"
        folder.mkdir()
        (folder / object_cache.JOINED).write_bytes(b"x")
        os.utime(folder, (1000 - age, 1000 - age))
    (tmp_path / "other").mkdir()
    object_cache.prune_folders(tmp_path)
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        *(f"{object_cache.FOLDER}{age}" for age in range(object_cache.MOST_FOLDERS)),
        "other",
    ]
