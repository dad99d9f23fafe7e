"""Write-behind: a thread writes what is pending a moment later, so that no caller waits for the disk.

What is not written when the process ends is written then. A forked child begins with nothing pending.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import ref

__all__ = ["WriteBehind"]

PAUSE = 1.0
"""Seconds between the first pending write and the writing of all that have come by then."""
MOST_PENDING = 512
"""Objects that may be pending; one more is not written, which costs another process its compiling once."""

_T = TypeVar("_T")


class WriteBehind(Generic[_T]):
    """Objects that are to be written.

    write: called with a path and an object, by a thread of its own or when the process ends. progress: a number that
    grows with what there is to write of an object; one that has not grown since it became pending stays pending once.
    """

    def __init__(self, write: Callable[[str, _T], None], progress: Callable[[_T], int]) -> None:
        self.write, self.progress = write, progress
        self.begin()
        os.register_at_fork(after_in_child=self.begin)
        atexit.register(self.flush)

    def begin(self) -> None:
        """Begin with nothing pending and no thread."""
        self._lock = threading.Lock()
        self._pending: dict[str, tuple[int, _T]] = {}
        self._running = False

    def later(self, path: str, made: _T) -> Callable[[], None]:
        """Return what to call when there is something new of an object to write."""
        known = ref(made)

        def note() -> None:
            here = known()
            with self._lock:
                if here is None or len(self._pending) >= MOST_PENDING:
                    return
                size = self.progress(here)
                if path in self._pending and self._pending[path][0] >= size:
                    return
                self._pending[path] = size, here
                if not self._running:
                    self._running = True
                    start_new_thread(self._run, ())  # threading.Thread would wait until it has begun

        return note

    def _run(self) -> None:
        """Write until nothing is pending. One thread does it: a write may have to wait for a lock that is held long."""
        while True:
            time.sleep(PAUSE)
            try:
                self.flush()
            finally:
                with self._lock:
                    self._running = bool(self._pending) and sys.exc_info()[0] is None
                    going_on = self._running
            if not going_on:
                return

    def flush(self) -> None:
        """Write everything that is pending."""
        with self._lock:
            pending, self._pending = self._pending, {}
        for path, (_, made) in pending.items():
            self.write(path, made)
