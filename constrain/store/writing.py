"""Writing later: a thread that writes what waits, a moment after it came to wait, so that no user waits for it.

What is not written yet when the process ends is written then. A forked child begins with nothing to write.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable
from weakref import ref

from ..automata.program import Program

__all__ = ["Writing"]

PAUSE = 1.0
"""Seconds between something to write and the writing of all that has come by then."""
MOST_WAITING = 512
"""Programs that may wait; one more is not written, which costs another process its compiling once."""


class Writing:
    """Programs that wait to be written. write: called for each, by a thread of its own or when the process ends."""

    def __init__(self, write: Callable[[str, Program], None]) -> None:
        self.write = write
        self.begin()
        os.register_at_fork(after_in_child=self.begin)
        atexit.register(self.flush)

    def begin(self) -> None:
        """With nothing to write, and no thread."""
        self._lock = threading.Lock()
        self._waiting: dict[str, Program] = {}
        self._running = False

    def later(self, path: str, program: Program) -> Callable[[], None]:
        """What to call when there is something new to write."""
        known = ref(program)

        def note() -> None:
            here = known()
            with self._lock:
                if here is None or len(self._waiting) >= MOST_WAITING:
                    return
                if path in self._waiting and len(self._waiting[path].links) >= len(here.links):
                    return
                self._waiting[path] = here
                if not self._running:
                    self._running = True
                    start_new_thread(self._run, ())  # threading.Thread would wait until it has begun

        return note

    def _run(self) -> None:
        time.sleep(PAUSE)
        with self._lock:
            self._running = False
        self.flush()

    def flush(self) -> None:
        """Writes all that waits."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for path, program in waiting.items():
            self.write(path, program)
