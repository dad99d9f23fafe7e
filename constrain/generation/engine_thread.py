"""The thread that steps the scheduler of an Engine, so that requests of any thread or task share batches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ..base.errors import ConstrainError
from ..decoding.request_run import RequestRun
from ..decoding.requests import GenerationRequest
from ..decoding.scheduler import Scheduler

__all__ = ["EngineThread"]


class EngineThread:
    """Steps a scheduler while it has work. The thread starts with the first request, and is a daemon."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.condition = threading.Condition()
        self.thread: threading.Thread | None = None
        self.is_closed = False

    def submit(self, requests: Sequence[GenerationRequest], on_done: Callable[[RequestRun], None]) -> list[RequestRun]:
        """Queue requests and return their runs. on_done: called in the thread as each run ends.

        Raises ConstrainError after `close`.
        """
        with self.condition:
            if self.is_closed:
                raise ConstrainError("the Engine is closed", hint="Make a new one.")
            if self.thread is None:
                self.thread = threading.Thread(target=self.work, name="constrain-engine", daemon=True)
                self.thread.start()
            runs = [self.scheduler.submit(request, on_done) for request in requests]
            self.condition.notify()
        return runs

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
                while not self.is_closed and not self.scheduler.has_work:
                    self.condition.wait()
                if self.is_closed:
                    break
            try:
                self.scheduler.step()
            except BaseException as error:  # of the scheduler itself: nothing is known of any text
                self.scheduler.abort(error)
        self.scheduler.abort()
        self.scheduler.runner.close()

    def close(self) -> None:
        """End all runs, stop the thread and free the caches."""
        with self.condition:
            already, self.is_closed = self.is_closed, True
            self.condition.notify()
        if self.thread is not None:
            if self.thread is not threading.current_thread():
                self.thread.join()
        elif not already:
            self.scheduler.runner.close()
