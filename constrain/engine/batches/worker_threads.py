"""Worker threads: one kernel call per thread, without the GIL, while the caller does its own share.

Waking a thread takes about 40 µs (as much as 64 cheap masks), so nobody waits for it: each task is done by the first
thread that is ready, and the caller takes tasks that no worker has started.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from queue import SimpleQueue

__all__ = ["count_cores", "run_together"]

Task = Callable[[], object]


def count_cores() -> int:
    """Return the number of threads that can run at the same time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerJob:
    """Tasks that may run concurrently and in any order."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.waiting = deque(tasks)
        self.done: SimpleQueue[BaseException | None] = SimpleQueue()

    def help(self) -> None:
        """Run tasks until all have been started."""
        while True:
            try:
                task = self.waiting.popleft()
            except IndexError:
                return
            try:
                task()
            except BaseException as error:  # re-raised by the caller
                self.done.put(error)
            else:
                self.done.put(None)


class WorkerThreads:
    """Daemon threads, started when first needed."""

    def __init__(self) -> None:
        self.inbox: SimpleQueue[WorkerJob] = SimpleQueue()
        self.lock = threading.Lock()
        self.count = 0

    def at_least(self, count: int) -> None:
        """Start threads until there are `count`, or as many as the process may have."""
        with self.lock:
            while self.count < count:
                thread = threading.Thread(target=self.work, name=f"constrain-{self.count + 1}", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the system refuses the thread, or the process is ending
                    return
                self.count += 1

    def work(self) -> None:
        """Help with incoming jobs, forever."""
        while True:
            self.inbox.get().help()


@cache
def _workers() -> WorkerThreads:
    return WorkerThreads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.cache_clear)  # threads do not survive a fork


def run_together(tasks: Sequence[Task]) -> None:
    """Run all tasks, concurrently if cores are free. Once all have finished, raise an exception if one of them did."""
    workers, job = _workers(), WorkerJob(tasks)
    workers.at_least(len(tasks) - 1)
    for _ in range(min(len(tasks) - 1, workers.count)):
        workers.inbox.put(job)
    failed: BaseException | None = None
    count = 0
    while count < len(tasks):
        try:
            job.help()
            failed = job.done.get() or failed
            count += 1
        except KeyboardInterrupt as interrupt:  # wait for the other tasks: they write to the caller's memory
            failed = interrupt
    if failed is not None:
        raise failed
