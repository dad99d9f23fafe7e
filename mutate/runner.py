"""Run the tests selected for a mutant in a scratch copy of the checkout.

A mutant is killed if a test fails, the run dies or exceeds its time, and survives if all tests pass. Compiled kernels
are cached by a digest of all kernel files, so for each mutant of a kernel all are compiled.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from .limits import TIMES_FILE
from .operators import Mutant
from .selection import ROOT

__all__ = ["Scratch", "Verdict"]

FOLDERS = ("constrain", "tests", "bench", "fuzz", "schemas", "grammars", "docs", "mutate")
SLOWEST = 600.0
"""Maximum CPU seconds of the tests for a file without a mutant, with compiling kernels; beyond it the last test file is
left out."""
START, TIMES = 15.0, 4.0
"""Limit of CPU time with a mutant: START seconds, and TIMES times that without one."""
MEMORY = 40 << 30
"""Maximum bytes of address space: each table of masks reserves 256 MiB and uses a small part."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a mutant. killed: the reason, or "" if it survived. seconds: wall time. tests: number of tests, if
    known.
    """

    mutant: Mutant
    killed: str
    seconds: float
    tests: int = 0


class Scratch:
    """A copy of the checkout, in which one mutant at a time is written and tested."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in FOLDERS:
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("results", "*.pyc"))
        for name in ("pyproject.toml", "README.md", "Makefile", "constraints.txt"):
            shutil.copy2(ROOT / name, folder / name)
        shared, beside = ROOT.parent / "shared", folder.parent / "shared"
        if shared.is_dir() and not beside.exists():  # public data, which tests read from ../shared
            beside.symlink_to(shared)
        self.store = folder / "store"
        self.store.mkdir(mode=0o700)
        self.baselines: dict[tuple[str, ...], float] = {}
        self.left: dict[tuple[str, ...], tuple[str, ...]] = {}

    def judge(self, mutant: Mutant, tests: list[str]) -> Verdict:
        """Run the tests in one process until one fails; test files that fail without a mutant are left out."""
        good = self.select_passing(tuple(tests))
        begin = time.monotonic()
        return Verdict(mutant, self.run_with_mutant(mutant, good) if good else "", time.monotonic() - begin)

    def run_with_mutant(self, mutant: Mutant, tests: tuple[str, ...]) -> str:
        """Run the tests with the mutant in place. Return why they fail, or ""."""
        path = self.folder / mutant.file
        text, stat = path.read_text("utf-8"), path.stat()
        changed = {path: (text, stat)}
        path.write_text(mutant.apply(text), "utf-8")
        try:
            return self.run_tests(tests, START + TIMES * self.baselines[tests])
        finally:
            for one, (before, times) in changed.items():
                one.write_text(before, "utf-8")
                os.utime(one, ns=(times.st_atime_ns, times.st_mtime_ns))

    def select_passing(self, tests: tuple[str, ...]) -> tuple[str, ...]:
        """Return the test files that pass without a mutant, and record their cost."""
        given = tests
        while given not in self.left:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            failed = self.run_tests(tests, SLOWEST) if tests else ""
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if not failed:
                self.baselines[tests] = after.ru_utime - before.ru_utime
                self.left[given] = tests
            elif "::" in failed:
                tests = tuple(test for test in tests if not failed.startswith(test))
            else:
                tests = tests[:-1]
        return self.left[given]

    def run_tests(self, tests: tuple[str, ...], seconds: float) -> str:
        """Run tests with a limit of CPU time. Return the test that fails or the reason of an abnormal end, or ""."""
        code, said = self.run_python(
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "--no-header",
            "-W",
            "ignore",
            "-p",
            "mutate.limits",
            *tests,
            seconds=seconds,
        )
        if code in (0, 5):
            return ""
        failed = re.search(r"^FAILED (\S+)", said, re.M)
        return failed[1] if failed else signal.Signals(-code).name if code < 0 else f"exit {code}"

    def run_python(self, *arguments: str, seconds: float) -> tuple[int, str]:
        """Run Python in the copy. Return its exit code and output."""

        def limits() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

        try:
            done = subprocess.run(
                [sys.executable, *arguments],
                cwd=self.folder,
                env=self.build_environment(),
                capture_output=True,
                text=True,
                timeout=seconds * 6,
                preexec_fn=limits,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return -signal.SIGALRM, ""
        return done.returncode, done.stdout + done.stderr

    def build_environment(self) -> dict[str, str]:
        """Return the environment of processes in the copy."""
        return {
            **os.environ,
            "CONSTRAIN_STORE": str(self.store),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(self.folder),
            TIMES_FILE: str(self.folder / "times.json"),
        }
