"""What all tests share: the folder of public data, which may be absent, and how Hypothesis runs.

    pytest --shared PATH    the folder with `data/`; by default ../shared beside the checkout, if it exists

A test that needs that data asks for the fixture `shared` and is skipped, visibly, where there is none.
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

# Time on a shared machine says nothing about the code: no deadlines, and no failing over a slow draw.
# Derandomised: a run shows what the code does, not what the day brought; hunt for more with --hypothesis-profile=hunt.
settings.register_profile(
    "house",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("hunt", parent=settings.get_profile("house"), derandomize=False, max_examples=2_000)
settings.load_profile("house")

# A test compiles what it tests: nothing comes from an earlier one, in this process or on disk, unless it asks for that.
recent.most = programs.most = 0


GARBAGE = 8 << 30, 512 << 20
"""Bytes of addresses and of memory by which a process may grow before garbage is collected."""
floor = 0, 0


def pytest_collection_finish() -> None:
    """Exempt from garbage collection what lives until the end: the modules and the 15,000 tests.

    Without this, each full collection looks at millions of objects, and takes seconds. Full collections are rarer, too,
    since `pytest_runtest_logfinish` collects when memory has grown.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 100)


def pytest_unconfigure() -> None:
    """Let the interpreter free everything when it ends: extension modules report what is left as leaks."""
    gc.unfreeze()


def pytest_runtest_logfinish() -> None:
    """Return memory to the system when the process has grown.

    What a failing call leaves behind is kept alive by its traceback, and in a large process the garbage collector comes
    by so rarely that hundreds of vocabularies accumulate; then tests fail that limit memory, or that fork.
    """
    global floor
    if any(now > before + more for now, before, more in zip(measure_memory(), floor, GARBAGE)):
        gc.collect()
        if sys.platform == "linux":
            ctypes.CDLL(None).malloc_trim(0)
        floor = measure_memory()


def measure_memory() -> tuple[int, int]:
    """Return the bytes of addresses and of memory that this process uses; 0 where the system does not say."""
    try:
        addresses, memory = Path("/proc/self/statm").read_text().split()[:2]
    except OSError:
        return 0, 0
    return int(addresses) * mmap.PAGESIZE, int(memory) * mmap.PAGESIZE


@pytest.fixture(autouse=True, scope="module")
def unchanged_settings() -> Iterator[None]:
    """A module leaves the caches of the compiler off and the gradients of torch on, as it found them."""
    yield
    assert recent.most == programs.most == 0
    torch = sys.modules.get("torch")
    assert torch is None or torch.is_grad_enabled()


@pytest.fixture(autouse=True, scope="module")
def survivors() -> Iterator[None]:
    """What is alive after a module lives until the end: later collections need not look at it, and take less time."""
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
    asked = config.getoption("--shared")
    if asked is not None:
        folder = Path(asked).expanduser().resolve()
        if not (folder / "data").is_dir():
            raise pytest.UsageError(f"--shared {asked}: no such folder with data/ in it")
        return folder
    folder = ROOT.parent / "shared"
    return folder if (folder / "data").is_dir() else None


@pytest.fixture(scope="session")
def shared(request: pytest.FixtureRequest) -> Path:
    """The folder of public data, with `data/` in it; the test is skipped where there is none."""
    folder = find_shared(request.config)
    if folder is None:
        pytest.skip("needs the public data: pytest --shared PATH")
    return folder


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT
