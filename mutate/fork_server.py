"""A plugin of pytest: a fork server, which runs the tests of each mutant in a child of one process.

The parent imports and collects once. A child activates its mutant, runs its tests until one fails, the quickest first,
and ends. Each test file is first run without a mutant: tests that fail then are left out, their CPU times give the
limits, and a mutant runs only the tests that reach it.
A child has folders of its own for cached and temporary files, so that nothing a mutant wrote is read by another.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from constrain.switch import activate, take_reached  # type: ignore[import-not-found]
from hypothesis import Phase, settings

from .limits import NOTES, Limits
from .schema_runner import ORDERS

__all__ = ["Server", "pytest_configure"]

ALONE = 900
"""CPU seconds that a test file may take without a mutant."""
PATIENCE, TIMES = 60.0, 12.0
"""Wall seconds that a child may take, and so many times the CPU seconds that its tests take without a mutant."""


MEMORY = 5 << 30
"""Bytes that a child may hold in memory."""
SLOW = 2.0
"""CPU seconds: tests that take more are slow."""
ANSWER = "answer.json"


@dataclass
class Child:
    """A running child: what it runs, its folder, when it must have ended; then what it has told."""

    number: int
    folder: Path
    begun: float
    last: float
    tests: int
    told: dict[str, Any] = field(default_factory=lambda: {"failed": [], "times": {}, "reached": {}})


class Server:
    """The hooks, and the children."""

    def __init__(self, orders: dict[str, Any], limits: Limits) -> None:
        self.orders, self.limits = orders, limits
        self.failed: list[str] = []
        self.dead: set[int] = set()
        self.items: dict[str, list[pytest.Item]] = {}
        self.sound: dict[str, list[pytest.Item]] = {}
        self.children: dict[int, Child] = {}
        self.reached: dict[str, set[int]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all mutants instead of all tests."""
        self.at_import = set(take_reached())
        for item in session.items:
            self.items.setdefault(item.nodeid.partition("::")[0], []).append(item)
        for mutants in self.orders["rounds"]:
            for number, quick, slow in mutants:
                if number not in self.dead:
                    self.ask(number, quick, slow)
            self.wait()
        return True

    def ask(self, number: int, quick: Sequence[str], slow: Sequence[str]) -> None:
        """Start a child for a mutant: file by file, which shares fixtures, the quickest tests first."""
        items = []
        for file in quick:
            items += [item for item in self.reaching(file, number) if self.seconds(item) <= SLOW]
        late = [item for file in slow for item in self.reaching(file, number) if self.seconds(item) > SLOW]
        items += sorted(late, key=self.seconds)
        while len(self.children) >= self.orders["jobs"]:
            self.answer(*self.next_end())
        self.start(number, items, sum(map(self.seconds, items)))

    def reaching(self, file: str, number: int) -> list[pytest.Item]:
        """Return the tests of a file that reach a mutant."""
        every = number in self.at_import
        return [item for item in self.sound_tests(file) if every or number in self.reached[item.nodeid]]

    def wait(self) -> None:
        """Wait until all children have ended."""
        while self.children:
            self.answer(*self.next_end())

    def seconds(self, item: pytest.Item) -> float:
        """Return the CPU seconds of a test without a mutant."""
        return self.limits.known[item.nodeid]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a test that fails."""
        if report.failed:
            self.failed.append(report.nodeid)
            print(report.longreprtext, flush=True)

    def sound_tests(self, file: str) -> list[pytest.Item]:
        """Return the tests of a file that pass without a mutant."""
        if file not in self.sound:
            self.wait()
            items = self.items.get(file, [])
            told = self.without_mutant(file, items)
            for name, seconds in told["times"].items():
                self.limits.known[name] = max(seconds, self.limits.known.get(name, 0.0))
            self.reached.update((name, set(numbers)) for name, numbers in told["reached"].items())
            passed = set(told["times"]).difference(told["failed"])
            self.sound[file] = sorted((item for item in items if item.nodeid in passed), key=self.seconds)
            left = [item.nodeid for item in items if item.nodeid not in passed]
            self.tell({"file": file, "left out": left})
        return self.sound[file]

    def without_mutant(self, file: str, items: Sequence[pytest.Item]) -> dict[str, Any]:
        """Return the report of a test file without a mutant, from this run or, for the same text, an earlier one."""
        digest = blake2b(Path(file).read_bytes(), digest_size=8).hexdigest()
        baseline = Path(f"baselines/{Path(file).stem}.{digest}.json")
        if not baseline.exists():
            self.start(0, items, float(ALONE))
            child, _ = self.next_end()
            baseline.parent.mkdir(exist_ok=True)
            baseline.write_text(json.dumps(child.told), "utf-8")
        told: dict[str, Any] = json.loads(baseline.read_text("utf-8"))
        return told

    def start(self, number: int, items: Sequence[pytest.Item], seconds: float) -> None:
        """Fork a child."""
        folder = Path(tempfile.mkdtemp(prefix="mutant-"))
        process = os.fork()
        if process == 0:
            try:
                self.run(number, items, folder)
            finally:
                os._exit(1)
        now = time.monotonic()
        self.children[process] = Child(number, folder, now, now + PATIENCE + TIMES * seconds, len(items))

    def run(self, number: int, items: Sequence[pytest.Item], folder: Path) -> None:
        """Run the tests in the child and report failures and times."""
        os.setsid()
        os.environ["CONSTRAIN_STORE"] = str(folder / "store")
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
        activate(number)
        if number == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (ALONE, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        reached = {}
        for item, following in zip_longest(items, items[1:]):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed and number:
                break
            if number == 0:
                reached[item.nodeid] = take_reached()
        told = {"failed": self.failed, "times": self.limits.found if number == 0 else {}, "reached": reached}
        (folder / ANSWER).write_text(json.dumps(told), "utf-8")
        os._exit(0)

    def next_end(self) -> tuple[Child, str]:
        """Wait until a child has ended: the child, and how it ended ("" as it should)."""
        while True:
            for process, child in self.children.items():
                why = (
                    "late"
                    if time.monotonic() > child.last
                    else "memory"
                    if read_resident_memory(process) > MEMORY
                    else ""
                )
                if why:
                    os.kill(process, signal.SIGKILL)
                ended, status = os.waitpid(process, 0 if why else os.WNOHANG)
                if ended:
                    del self.children[process]
                    kill_group(process)
                    if (child.folder / ANSWER).exists():
                        child.told = json.loads((child.folder / ANSWER).read_text("utf-8"))
                    shutil.rmtree(child.folder, ignore_errors=True)
                    code = os.waitstatus_to_exitcode(status)
                    how = signal.Signals(-code).name if code < 0 else f"exit {code}" if code else ""
                    return child, why or how
            time.sleep(0.02)

    def answer(self, child: Child, end: str) -> None:
        """Report the verdict on a mutant."""
        failed = child.told["failed"]
        if failed or end:
            self.dead.add(child.number)
        self.tell({
            "number": child.number, "killed": failed[0] if failed else end, "tests": child.tests,
            "seconds": time.monotonic() - child.begun,
        })  # fmt: skip

    def tell(self, line: dict[str, Any]) -> None:
        """Write a line to the runner."""
        os.write(self.orders["answers"], json.dumps(line).encode() + b"\n")


def read_resident_memory(process: int) -> int:
    """The bytes that a process holds in memory (its address space is far larger: tables reserve theirs ahead)."""
    pages = Path(f"/proc/{process}/statm").read_text("ascii").split()[1:2]
    return int(pages[0]) * resource.getpagesize() if pages else 0


def kill_group(process: int) -> None:
    """End what a child has left running."""
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def pytest_configure(config: pytest.Config) -> None:
    """Install the server if there are orders."""
    if ORDERS in os.environ:
        # A failing example need not be made small. Test files are not imported yet, the profile of conftest is loaded.
        settings.register_profile("mutate", phases=(Phase.explicit, Phase.generate), report_multiple_bugs=False)
        settings.load_profile("mutate")
        orders = json.loads(Path(os.environ[ORDERS]).read_text("utf-8"))
        limits = Limits(Path(os.environ[NOTES]))
        config.pluginmanager.register(limits)
        config.pluginmanager.register(Server(orders, limits))
