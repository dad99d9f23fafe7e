"""`ModelJobs`: functions of a model that run in threads, one after the other, and end when their request does.

with ModelJobs(engine.open_model(ids), threads) as jobs:
    await jobs.run(lambda: compute_law(jobs.lm, constraint))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import copy_context
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from ..generation.slot_model import SlotModel

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ModelJobs"]

T = TypeVar("T")


class ModelJobs:
    """A model after a prompt, and the threads in which its jobs run. Leaving the block frees the slots of the model.

    Parameters
    ----------
    lm : SlotModel
    threads : Executor
    """

    def __init__(self, lm: SlotModel, threads: Executor) -> None:
        self.lm, self.threads = lm, threads
        self.latest: Future[object] | None = None

    async def run(self, job: Callable[[], T]) -> T:
        """Return the result of a job, which runs `lm`. If this task is cancelled, the job fails at its next row."""
        started: Future[T] = self.threads.submit(copy_context().run, job)
        self.latest = started  # type: ignore[assignment]
        try:
            return await asyncio.wrap_future(started)
        except asyncio.CancelledError:
            self.lm.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Free the slots of the model, once the job that may still be running has ended."""
        if self.latest is None:
            self.lm.close()
        else:
            self.latest.add_done_callback(lambda _: self.lm.close())
