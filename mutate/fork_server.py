"""A pytest plugin: a fork server, which runs the tests of each mutant in a child of one process.

The parent imports and collects once. A child activates its mutant and runs its tests, fastest first, until one fails.
Each test file is first run without a mutant: tests that fail are excluded, their CPU times determine the limits, and a
mutant runs only the tests that reach it. A child has folders of its own for cached and temporary files, so that mutants
cannot influence each other.
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

from .limits import TIMES_FILE, Limits
from .schema_runner import ORDERS

__all__ = ["Server", "pytest_configure"]

ALONE = 900
"""Maximum CPU seconds of a test file without a mutant."""
PATIENCE, TIMES = 60.0, 12.0
"""Limit of wall time of a child: PATIENCE seconds, and TIMES times the CPU time of its tests without a mutant."""


MEMORY = 5 << 30
"""Maximum number of bytes of resident memory of a child."""
SLOW = 2.0
"""CPU seconds above which a test is slow."""
ANSWER = "answer.json"


@dataclass
class Child:
    """A running child. number: of its mutant. last: time at which it is killed. report: of the child,
    when it has ended.
    """

    number: int
    folder: Path
    begun: float
    last: float
    tests: int
    report: dict[str, Any] = field(default_factory=lambda: {"failed": [], "times": {}, "reached": {}})


class Server:
    """The hooks of the plugin, and the children."""

    def __init__(self, orders: dict[str, Any], limits: Limits) -> None:
        self.orders, self.limits = orders, limits
        self.failed: list[str] = []
        self.dead: set[int] = set()
        self.items: dict[str, list[pytest.Item]] = {}
        self.passing: dict[str, list[pytest.Item]] = {}
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
                    self.start_mutant(number, quick, slow)
            self.wait()
        return True

    def start_mutant(self, number: int, quick: Sequence[str], slow: Sequence[str]) -> None:
        """Start a child for a mutant. Its tests run file by file, so that they share fixtures, the fastest first."""
        items = []
        for file in quick:
            items += [item for item in self.list_reaching_tests(file, number) if self.seconds(item) <= SLOW]
        late = [item for file in slow for item in self.list_reaching_tests(file, number) if self.seconds(item) > SLOW]
        items += sorted(late, key=self.seconds)
        while len(self.children) >= self.orders["jobs"]:
            self.report_verdict(*self.wait_for_child())
        self.start(number, items, sum(map(self.seconds, items)))

    def list_reaching_tests(self, file: str, number: int) -> list[pytest.Item]:
        """Return the tests of a file that reach a mutant."""
        every = number in self.at_import
        return [item for item in self.list_passing_tests(file) if every or number in self.reached[item.nodeid]]

    def wait(self) -> None:
        """Wait until all children have ended."""
        while self.children:
            self.report_verdict(*self.wait_for_child())

    def seconds(self, item: pytest.Item) -> float:
        """Return the CPU seconds of a test without a mutant."""
        return self.limits.known[item.nodeid]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a test that fails."""
        if report.failed:
            self.failed.append(report.nodeid)
            print(report.longreprtext, flush=True)

    def list_passing_tests(self, file: str) -> list[pytest.Item]:
        """Return the tests of a file that pass without a mutant."""
        if file not in self.passing:
            self.wait()
            items = self.items.get(file, [])
            report = self.run_without_mutant(file, items)
            for name, seconds in report["times"].items():
                self.limits.known[name] = max(seconds, self.limits.known.get(name, 0.0))
            self.reached.update((name, set(numbers)) for name, numbers in report["reached"].items())
            passed = set(report["times"]).difference(report["failed"])
            self.passing[file] = sorted((item for item in items if item.nodeid in passed), key=self.seconds)
            left = [item.nodeid for item in items if item.nodeid not in passed]
            self.write_line({"file": file, "left out": left})
        return self.passing[file]

    def run_without_mutant(self, file: str, items: Sequence[pytest.Item]) -> dict[str, Any]:
        """Return the report of a test file without a mutant, from a cache if the file has not changed."""
        digest = blake2b(Path(file).read_bytes(), digest_size=8).hexdigest()
        baseline = Path(f"baselines/{Path(file).stem}.{digest}.json")
        if not baseline.exists():
            self.start(0, items, float(ALONE))
            child, _ = self.wait_for_child()
            baseline.parent.mkdir(exist_ok=True)
            baseline.write_text(json.dumps(child.report), "utf-8")
        report: dict[str, Any] = json.loads(baseline.read_text("utf-8"))
        return report

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
        report = {"failed": self.failed, "times": self.limits.found if number == 0 else {}, "reached": reached}
        (folder / ANSWER).write_text(json.dumps(report), "utf-8")
        os._exit(0)

    def wait_for_child(self) -> tuple[Child, str]:
        """Wait for the end of a child. Return it, and the reason of an abnormal end or ""."""
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
                        child.report = json.loads((child.folder / ANSWER).read_text("utf-8"))
                    shutil.rmtree(child.folder, ignore_errors=True)
                    code = os.waitstatus_to_exitcode(status)
                    how = signal.Signals(-code).name if code < 0 else f"exit {code}" if code else ""
                    return child, why or how
            time.sleep(0.02)

    def report_verdict(self, child: Child, end: str) -> None:
        """Report the verdict on a mutant."""
        failed = child.report["failed"]
        if failed or end:
            self.dead.add(child.number)
        self.write_line({
            "number": child.number, "killed": failed[0] if failed else end, "tests": child.tests,
            "seconds": time.monotonic() - child.begun,
        })  # fmt: skip

    def write_line(self, line: dict[str, Any]) -> None:
        """Write a line to the runner."""
        os.write(self.orders["answers"], json.dumps(line).encode() + b"\n")


def read_resident_memory(process: int) -> int:
    """Return bytes of resident memory of a process. Its address space is far larger, as tables reserve
    it in advance.
    """
    pages = Path(f"/proc/{process}/statm").read_text("ascii").split()[1:2]
    return int(pages[0]) * resource.getpagesize() if pages else 0


def kill_group(process: int) -> None:
    """Kill the processes that a child has left running."""
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def pytest_configure(config: pytest.Config) -> None:
    """Install the server if there are orders."""
    if ORDERS in os.environ:
        # Failing examples are not minimised. Test files are not imported yet; the profile of conftest is loaded.
        settings.register_profile("mutate", phases=(Phase.explicit, Phase.generate), report_multiple_bugs=False)
        settings.load_profile("mutate")
        orders = json.loads(Path(os.environ[ORDERS]).read_text("utf-8"))
        limits = Limits(Path(os.environ[TIMES_FILE]))
        config.pluginmanager.register(limits)
        config.pluginmanager.register(Server(orders, limits))
