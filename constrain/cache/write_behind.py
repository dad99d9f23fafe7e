"""Write-behind cache: a background thread writes pending objects, so that no caller waits for the disk.

Objects still pending when the process ends are written then. A forked child starts with none pending.
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
"""Seconds from the first pending object until all pending objects are written, unless another pause is given."""
MOST_PENDING = 512
"""Most pending objects. Further ones are not written, so that another process compiles them again."""

_T = TypeVar("_T")


class WriteBehind(Generic[_T]):
    """A queue of objects to write.

    `write` is called with a path and an object, by the background thread or when the process ends. `progress` returns a
    number that grows with the amount of data to write of an object; an object is queued again only if it has grown.
    `pause` are the seconds from the first pending object until all pending objects are written (None: PAUSE).
    """

    def __init__(
        self, write: Callable[[str, _T], None], progress: Callable[[_T], int], pause: float | None = None
    ) -> None:
        self.write, self.progress, self.pause = write, progress, pause
        self.begin()
        os.register_at_fork(after_in_child=self.begin)
        atexit.register(self.flush)

    def begin(self) -> None:
        """Start with an empty queue and no thread."""
        self._lock = threading.Lock()  # of what is pending
        self._writing = threading.RLock()  # held while objects are written; a signal handler may flush, too
        self._pending: dict[str, tuple[int, _T]] = {}
        self._running = False

    def later(self, path: str, made: _T) -> Callable[[], None]:
        """Return a function that queues an object, to be called whenever the object has changed.

        The function holds the object weakly.
        """
        reference = ref(made)

        def enqueue() -> None:
            current = reference()
            with self._lock:
                if current is None or len(self._pending) >= MOST_PENDING:
                    return
                size = self.progress(current)
                if path in self._pending and self._pending[path][0] >= size:
                    return
                self._pending[path] = size, current
                if not self._running:
                    self._running = self._start()

        return enqueue

    def _start(self) -> bool:
        """Start the thread. Return False if that is refused: then all is written when the process ends."""
        try:
            start_new_thread(self._run, ())  # threading.Thread would wait until it has begun
        except RuntimeError:  # by the system, or because the process is ending
            return False
        return True

    def _run(self) -> None:
        """Write until the queue is empty. One thread does so, since a write may wait long for a lock."""
        while True:
            time.sleep(PAUSE if self.pause is None else self.pause)
            try:
                self.flush()
            finally:
                with self._lock:
                    self._running = bool(self._pending) and sys.exc_info()[0] is None
                    continues = self._running
            if not continues:
                return

    def flush(self) -> None:
        """Write all pending objects now. When this returns, those that the thread was writing are written, too."""
        with self._writing:
            with self._lock:
                pending, self._pending = self._pending, {}
            for path, (_, made) in pending.items():
                self.write(path, made)
