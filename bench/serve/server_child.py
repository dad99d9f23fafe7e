"""The server under test: `constrain serve` in a process of its own, its memory and its CPU time.

with ServerChild(["--slots", "64"]) as server:      # waits until it is ready
    server.port, server.read_memory(), server.read_cpu()
server.exit_code                                    # after SIGTERM; 0
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np

from ..process_figures import read_cpu_seconds, read_resident_memory

__all__ = ["ServerChild", "find_slope"]

PATIENCE = 300.0
"""Maximum seconds for the start of a server."""
STOPPING = 60.0
"""Maximum seconds for its end."""


class ServerChild:
    """A context manager that runs a server on a free port of this machine."""

    def __init__(self, options: Sequence[str]) -> None:
        self.options, self.port, self.exit_code = options, 0, -1
        self.output = Path(tempfile.mkstemp(prefix="constrain-serve-", suffix=".log")[1])

    def __enter__(self) -> ServerChild:
        code = "from constrain.cli.app import main; main()"
        command = [sys.executable, "-c", code, "serve", "--port", "0", "--log-format", "none", *self.options]
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=file)
        until = time.monotonic() + PATIENCE
        while not (found := re.search(r"http://[\d.]+:(\d+)", self.read_output())):
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the server did not start:\n{self.read_output()[-2_000:]}")
            time.sleep(0.1)
        self.port = int(found[1])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.exit_code = self.process.wait(STOPPING)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.exit_code = self.process.wait()

    def read_output(self) -> str:
        """Return what the server has printed."""
        return self.output.read_text("utf-8", errors="replace")

    def read_memory(self) -> float:
        """Return MiB of resident memory."""
        return read_resident_memory(pid=self.process.pid)

    def read_cpu(self) -> float:
        """Return seconds of CPU time."""
        return read_cpu_seconds(self.process.pid)


def find_slope(samples: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the least-squares line through (second, MiB), in MiB per minute; 0 for fewer than two."""
    if len(samples) < 2:
        return 0.0
    seconds, sizes = np.array(samples).T
    return float(np.polyfit(seconds, sizes, 1)[0] * 60)
