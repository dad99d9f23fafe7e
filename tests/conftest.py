"""Configuration of all tests: the folder of public data, which may be absent, and the profiles of Hypothesis.

    pytest --shared PATH    the folder with `data/`; by default ../shared beside the checkout, if it exists

A test that needs this data uses the fixture `shared` and is skipped if the folder does not exist.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from constrain.compilation.compile_caches import programs, recent

ROOT = Path(__file__).resolve().parent.parent

# No deadlines, and no failures for slow draws: time on a shared machine is not a property of the code.
# Derandomised, so that runs are reproducible; --hypothesis-profile=hunt draws new examples.
settings.register_profile(
    "house",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("hunt", parent=settings.get_profile("house"), derandomize=False, max_examples=2_000)
settings.load_profile("house")

# Caches in memory and on disk are off, so that a test compiles what it tests; tests of caches turn them on.
recent.most = programs.most = 0


GARBAGE = 8 << 30, 512 << 20
"""Bytes of address space and of memory by which a process may grow before garbage is collected."""
floor = 0, 0


def pytest_collection_finish() -> None:
    """Exempt the modules and the 15,000 tests, which live until the end, from garbage collection.

    Without this, each full collection scans millions of objects, which takes seconds. Full collections are rarer, too,
    since `pytest_runtest_logfinish` collects when memory has grown.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 100)


def pytest_unconfigure() -> None:
    """Let the interpreter free all objects at exit; extension modules report the others as leaks."""
    gc.unfreeze()


def pytest_runtest_logfinish() -> None:
    """Return memory to the system when the process has grown.

    The objects of a failing call are kept alive by its traceback, and in a large process garbage collections are so
    rare that hundreds of vocabularies accumulate; then tests that limit memory or fork fail.
    """
    global floor
    if any(now > before + more for now, before, more in zip(measure_memory(), floor, GARBAGE)):
        gc.collect()
        if sys.platform == "linux":
            ctypes.CDLL(None).malloc_trim(0)
        floor = measure_memory()


def measure_memory() -> tuple[int, int]:
    """Return bytes of address space and of memory of this process; 0 on systems without /proc."""
    try:
        addresses, memory = Path("/proc/self/statm").read_text().split()[:2]
    except OSError:
        return 0, 0
    return int(addresses) * mmap.PAGESIZE, int(memory) * mmap.PAGESIZE


@pytest.fixture(autouse=True, scope="module")
def unchanged_settings() -> Iterator[None]:
    """Check that a module leaves the caches of the compiler off and the gradients of torch on."""
    yield
    assert recent.most == programs.most == 0
    torch = sys.modules.get("torch")
    assert torch is None or torch.is_grad_enabled()


@pytest.fixture(autouse=True, scope="module")
def survivors() -> Iterator[None]:
    """Exempt the objects that are alive after a module from garbage collection, which makes later
    collections faster.
    """
    yield
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shared", default=None, metavar="PATH", help="folder with data/ (default: ../shared if it exists)"
    )


def pytest_report_header(config: pytest.Config) -> str:
    folder = find_shared(config)
    return f"shared data: {folder or 'none, tests that need it are skipped (--shared PATH)'}"


def find_shared(config: pytest.Config) -> Path | None:
    """Return the folder of public data, or None. A given path that does not exist is an error."""
    given = config.getoption("--shared")
    if given is not None:
        folder = Path(given).expanduser().resolve()
        if not (folder / "data").is_dir():
            raise pytest.UsageError(f"--shared {given}: no such folder with data/ in it")
        return folder
    folder = ROOT.parent / "shared"
    return folder if (folder / "data").is_dir() else None


@pytest.fixture(scope="session")
def shared(request: pytest.FixtureRequest) -> Path:
    """The folder of public data, which contains `data/`; without it the test is skipped."""
    folder = find_shared(request.config)
    if folder is None:
        pytest.skip("needs the public data: pytest --shared PATH")
    return folder


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT
