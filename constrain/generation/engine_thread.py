"""The thread that steps the scheduler of an Engine, so that requests of any thread or task share batches.

A fork waits for the end of a running step, so that the child inherits no lock that a step holds. In the child, where
the thread does not exist, the Engine has no texts and an empty cache, and its next request starts a new thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConstrainError, LimitError
from ..base.fork_safety import fork_handlers
from ..decoding.prefix_calls import PrefixCall, PrefixReader, RowKind
from ..decoding.request_run import RequestRun
from ..decoding.requests import GenerationRequest
from ..decoding.scheduler import Scheduler
from .loop_wakeups import LoopWakeups

__all__ = ["EngineThread"]

FORK_SECONDS = 30.0
"""How long a fork waits for the end of a step."""
STOP_SECONDS = 1.0
"""How long an unreachable Engine waits for its thread. The collector may run in a thread that a step waits for."""


class EngineThread:
    """Steps a scheduler while it has work. The thread starts with the first request, and is a daemon.

    wakeups: what listeners to texts, which are called in the thread, add to it is sent after each step.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.condition = threading.Condition()
        self.stepping = threading.RLock()
        self.wakeups = LoopWakeups()
        self.forks = 0  # that wait for the end of a step, or are under way
        self.thread: threading.Thread | None = None
        self.is_closed = self.is_lost = False
        fork_handlers.add(self)
        fork_handlers.add_pause(self)

    def submit(
        self,
        requests: Sequence[GenerationRequest],
        on_done: Callable[[RequestRun], None],
        max_queue: int | None = None,
    ) -> list[RequestRun]:
        """Queue requests and return their runs.

        on_done: called in the thread as each run ends. max_queue: the most requests that may wait for a slot then.
        Raises LimitError if they would be more, and ConstrainError after `close`, in a forked process that cannot use
        the model, and in the thread itself, which would wait for itself.
        """
        with self.condition:
            self.check_open()
            waiting = self.count_waiting(len(requests))
            if max_queue is not None and waiting > max_queue:
                raise LimitError(
                    f"the Engine has no slot for {waiting} of the prompts that it has, and max_queue is {max_queue}",
                    hint="Try again later, or raise max_queue.",
                )
            self.start_thread()
            runs = [self.scheduler.submit(request, on_done) for request in requests]
            self.condition.notify()
        return runs

    def start_thread(self) -> None:
        """Start the thread, if it does not run. The condition must be held."""
        if self.thread is None:
            self.thread = threading.Thread(target=self.work, name="constrain-engine", daemon=True)
            self.thread.start()

    def check_open(self) -> None:
        """Raise ConstrainError if no request can be queued."""
        if self.is_closed:
            raise ConstrainError("the Engine is closed", hint="Make a new one.")
        if self.is_lost:
            raise ConstrainError(
                "the Engine was made before this process was forked, and its model is on a device that a forked "
                "process cannot use",
                hint='Make the Engine after the fork, or start processes with the method "spawn".',
            )
        if self.thread is threading.current_thread():
            raise ConstrainError(
                "the Engine was called by a function that it calls itself while it generates, and would wait for ever",
                hint="Let listeners and checks use another Engine.",
            )

    def count_waiting(self, added: int) -> int:
        """Return how many prompts will have no slot when this many are added."""
        free = max(0, self.scheduler.slots - self.scheduler.used)
        return max(0, len(self.scheduler.queue) + added - free)

    def read_rows(
        self, reader: PrefixReader, prefixes: Sequence[Sequence[int]], kind: RowKind
    ) -> NDArray[np.floating[Any]]:
        """Return the model's rows after prefixes, float [len(prefixes), V], when the steps that compute them are done.

        Raises ConstrainError as `submit`.
        """
        with self.condition:
            self.check_open()
            self.start_thread()
            call: PrefixCall = self.scheduler.prefix_calls.submit(reader, prefixes, kind)
            self.condition.notify()
        try:
            return call.done.result()
        except BaseException:
            call.is_cancelled = True
            raise

    def free_slots(self, reader: PrefixReader) -> None:
        """Free the slots of a reader before the next step."""
        with self.condition:
            reader.is_idle = True
            self.condition.notify()

    def cancel(self, runs: Sequence[RequestRun]) -> None:
        """Abandon runs; their slots are free from the next step on."""
        for run in runs:
            self.scheduler.cancel(run)
        with self.condition:
            self.condition.notify()

    def work(self) -> None:
        """Step the scheduler until the Engine is closed."""
        while True:
            with self.condition:
                while not self.is_closed and (self.forks or not self.scheduler.has_work):
                    self.condition.wait()
                if self.is_closed:
                    break
            with self.stepping:
                try:
                    self.scheduler.step()
                except BaseException as error:  # of the scheduler itself: nothing is known of any text
                    self.scheduler.abort(error)
            self.wakeups.send()
        self.scheduler.abort()
        self.wakeups.send()
        self.scheduler.runner.close()

    def close(self) -> None:
        """End all runs, stop the thread and free the caches."""
        self.stop(None)

    def stop(self, seconds: float | None = STOP_SECONDS) -> None:
        """End all runs, stop the thread and free the caches. Wait for that, at most so many seconds."""
        with self.condition:
            already, self.is_closed = self.is_closed, True
            self.condition.notify()
        if self.thread is not None:
            if self.thread is not threading.current_thread():
                self.thread.join(seconds)
        elif not already:
            self.scheduler.runner.close()

    # ---- forks --------------------------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Wait for the end of a running step, and let no other begin."""
        with self.condition:
            self.forks += 1
        self.stepping.acquire(timeout=FORK_SECONDS)

    def after_fork_in_parent(self) -> None:
        """Let steps begin again."""
        with suppress(RuntimeError):  # the step did not end in time: this thread does not hold the lock
            self.stepping.release()
        with self.condition:
            self.forks -= 1
            self.condition.notify()

    def after_fork(self) -> None:
        """Forget the texts of the parent, whose thread does not exist in the child."""
        self.condition, self.stepping = threading.Condition(), threading.RLock()
        self.thread, self.forks, self.wakeups = None, 0, LoopWakeups()
        self.scheduler.forget_runs()
        self.is_lost = not self.scheduler.runner.restart()
