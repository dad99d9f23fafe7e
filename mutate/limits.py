"""A pytest plugin: records the CPU time of each test without a mutant, and limits tests with one to a multiple of it.

A kernel that loops never returns to Python, so the limit is RLIMIT_CPU: SIGXCPU ends the process.
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["TIMES_FILE", "Limits", "pytest_configure"]

TIMES_FILE = "MUTATE_TIMES"
"""Environment variable: the file from which times of tests are read, and to which they are written."""
START, TIMES = 5.0, 4.0
"""The limit of a test with a mutant: START seconds, and TIMES times its CPU time without one."""


class Limits:
    """The hooks of the plugin. known: times of tests by node id."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[str, float] = json.loads(path.read_text("utf-8")) if path.exists() else {}
        self.found: dict[str, float] = {}
        self.hard = resource.getrlimit(resource.RLIMIT_CPU)[1]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Limit and measure one test, with the fixtures that it is the first to use."""
        before = time.process_time()
        if item.nodeid in self.known:
            left = START + TIMES * self.known[item.nodeid]
            soft = int(before + left) + 1
            if self.hard == resource.RLIM_INFINITY or soft <= self.hard:
                resource.setrlimit(resource.RLIMIT_CPU, (soft, self.hard))
        result = yield
        self.found[item.nodeid] = time.process_time() - before
        return result

    def pytest_sessionfinish(self) -> None:
        """Write the times of tests to the file."""
        self.path.write_text(json.dumps({**self.found, **self.known}), "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Install the hooks if there is a file for times."""
    if TIMES_FILE in os.environ:
        config.pluginmanager.register(Limits(Path(os.environ[TIMES_FILE])))
