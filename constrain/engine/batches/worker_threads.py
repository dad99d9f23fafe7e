"""Threads that wait for work: one kernel call a thread, without the GIL, while the caller does its own share.

To wake a thread takes some 40 µs here (which is also what 64 cheap masks take), so nobody waits for that: whoever is
there first does a task, and the caller, done with one, goes on with the next that nobody has begun.
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
    """How many threads can run at the same time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerJob:
    """Tasks that may be done in any order, at the same time."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.waiting = deque(tasks)
        self.done: SimpleQueue[BaseException | None] = SimpleQueue()

    def help(self) -> None:
        """Does tasks until none is left that nobody has begun."""
        while True:
            try:
                task = self.waiting.popleft()
            except IndexError:
                return
            try:
                task()
            except BaseException as error:  # the caller's, who raises it
                self.done.put(error)
            else:
                self.done.put(None)


class WorkerThreads:
    """Threads made when they are first needed; they end with the process."""

    def __init__(self) -> None:
        self.inbox: SimpleQueue[WorkerJob] = SimpleQueue()
        self.lock = threading.Lock()
        self.count = 0

    def at_least(self, count: int) -> None:
        """Makes threads until there are so many."""
        with self.lock:
            while self.count < count:
                self.count += 1
                threading.Thread(target=self.work, name=f"constrain-{self.count}", daemon=True).start()

    def work(self) -> None:
        """Helps with what comes in, for ever."""
        while True:
            self.inbox.get().help()


@cache
def _workers() -> WorkerThreads:
    return WorkerThreads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.cache_clear)  # threads do not come along


def run_together(tasks: Sequence[Task]) -> None:
    """Does all tasks, at the same time if the cores are free; then raises what the first that failed raised."""
    workers, job = _workers(), WorkerJob(tasks)
    workers.at_least(len(tasks) - 1)
    for _ in tasks[1:]:
        workers.inbox.put(job)
    failed: BaseException | None = None
    count = 0
    while count < len(tasks):
        try:
            job.help()
            failed = job.done.get() or failed
            count += 1
        except KeyboardInterrupt as interrupt:  # not before the others are done: they write to what is the caller's
            failed = interrupt
    if failed is not None:
        raise failed
