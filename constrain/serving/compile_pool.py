"""The threads in which requests are read, their constraints compiled and their texts judged, in two queues.

Every job begins in the fast queue, of which so many jobs run at a time. One that has spent more than CHEAP units of
work goes on in the slow queue, where one job works at a time: the one that has received the least so far (multilevel
feedback, Corbató et al. 1962). So schemas that take seconds to compile, however many, delay neither the small ones nor
the ends of other texts, and a large schema waits for the first part of others rather than for their end.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any, TypeVar

__all__ = ["CHEAP", "CompilePool"]

T = TypeVar("T")

CHEAP = 20_000
"""Units of work that a job may spend in the fast queue; a unit is about a microsecond."""
QUANTUM = 50_000
"""Units of work after which a job in the slow queue lets others of the same amount go first."""
PATIENCE = 0.25
"""Seconds after which a job that waits in the slow queue looks whether its request was abandoned."""
C_LIBRARY = ctypes.CDLL(None) if sys.platform == "linux" else None


def return_free_memory() -> None:
    """Return free memory to the system where the C library is glibc, which keeps that of threads (malloc_trim(3))."""
    trim = getattr(C_LIBRARY, "malloc_trim", None)
    if trim is not None:
        trim(0)


class CompilePool(ThreadPoolExecutor):
    """Threads for the jobs of requests.

    Parameters
    ----------
    width : int
        Most jobs in the fast queue at a time.
    most_threads : int
        Most threads, those that wait included.
    """

    def __init__(self, width: int, most_threads: int) -> None:
        super().__init__(most_threads, thread_name_prefix="constrain-compile")
        self.fast = threading.Semaphore(width)
        self.working: set[int] = set()  # threads that run a job
        self.in_fast: set[int] = set()  # those of them that are in the fast queue
        self.condition = threading.Condition()
        self.slow: dict[int, tuple[int, int]] = {}  # by thread: units received, in quanta, and order of arrival there
        self.arrivals = count()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run a function in a thread, beginning in the fast queue."""
        return super().submit(self.run_job, partial(fn, *args, **kwargs))

    def run_job(self, job: Callable[[], T]) -> T:
        """Run a job in this thread."""
        thread = threading.get_ident()
        self.fast.acquire()
        self.working.add(thread)
        self.in_fast.add(thread)
        try:
            return job()
        finally:
            self.working.remove(thread)
            self.leave_fast(thread)
            with self.condition:
                was_slow = self.slow.pop(thread, None) is not None
                self.condition.notify_all()
            if was_slow:
                return_free_memory()

    def leave_fast(self, thread: int) -> None:
        """Let another job into the fast queue, if this thread is in it."""
        if thread in self.in_fast:
            self.in_fast.remove(thread)
            self.fast.release()

    def wait_turn(self, spent: int, is_abandoned: Callable[[], bool]) -> None:
        """Wait until the job of this thread may go on. Called between the parts of a job; other threads do not wait.

        spent: units of work that its request has received. is_abandoned: returns whether to stop waiting.
        """
        thread, level = threading.get_ident(), spent // QUANTUM
        if spent <= CHEAP or thread not in self.working:
            return
        self.leave_fast(thread)
        with self.condition:
            if thread not in self.slow or self.slow[thread][0] != level:
                self.slow[thread] = level, next(self.arrivals)
                self.condition.notify_all()
            while min(self.slow.values()) != self.slow[thread] and not is_abandoned():
                self.condition.wait(PATIENCE)
