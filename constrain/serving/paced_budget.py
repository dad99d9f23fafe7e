"""The work budget of a request, which rests while the model runs.

Constructions hold the interpreter lock, which the thread that steps the model needs between the operations of a forward
pass. One thread that compiles without a pause leaves the model a quarter of its speed. So a request that constructs
something while texts are being generated works for a moment and then sleeps for a multiple of it: its own answer begins
later, and the texts of all others go on. After a while it takes turns with other such requests, see `compile_pool`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ..base.errors import LimitError
from ..base.work import WorkBudget
from .compile_pool import CHEAP, CompilePool

__all__ = ["PacedBudget"]

UNITS = 2_000
"""Units of work, of about a microsecond each, after which a thread looks whether it has to rest."""
REST = 3
"""Seconds of rest for each second of work."""
LONG_REST = 7
"""As REST, of requests that have left the fast queue of the threads: nobody else waits for them."""


class PacedBudget(WorkBudget):
    """A `WorkBudget` that makes the thread that spends it sleep REST or LONG_REST times as long as it worked.

    Parameters
    ----------
    limit : int
        The units of the budget.
    pool : CompilePool
        The threads, and whose turn it is.
    is_busy : callable
        Returns whether texts are being generated; otherwise no thread sleeps.
    """

    __slots__ = ("home", "is_abandoned", "is_busy", "pool", "unrested", "worked")

    def __init__(self, limit: int, pool: CompilePool, is_busy: Callable[[], bool]) -> None:
        super().__init__(limit)
        self.pool, self.is_busy = pool, is_busy
        self.is_abandoned = False
        self.home = threading.get_ident()  # the thread of the event loop, which must not sleep
        self.unrested = 0
        self.worked: dict[int, int] = {}  # by thread: its CPU time in nanoseconds when it rested last

    def abandon(self) -> None:
        """Let the constructions and draws of the request end with an error: nobody waits for them any more."""
        self.is_abandoned = True

    def check(self) -> None:
        """Raise LimitError if the request was abandoned."""
        if self.is_abandoned:
            raise LimitError("The request was abandoned before its answer was complete.")

    def spend(self, units: int, construction: str) -> None:
        """Charge units as `WorkBudget.spend` does, and rest if it is time."""
        super().spend(units, construction)
        self.unrested += units
        if self.unrested >= UNITS:
            self.unrested = 0
            self.rest()

    def take_turn(self, units: int) -> None:
        """Wait for the turn of a piece of work that cannot be divided and is not charged, of so many units."""
        self.pool.wait_turn(self.spent + units, lambda: self.is_abandoned)
        self.check()

    def rest(self) -> None:
        """Sleep in proportion to the work of the calling thread since its last rest; then wait for its turn.

        Raise LimitError if the request was abandoned.
        """
        thread, now = threading.get_ident(), time.thread_time_ns()
        before = self.worked.get(thread)
        self.worked[thread] = now
        if thread == self.home:
            return
        if before is not None and self.is_busy():
            time.sleep((REST if self.spent <= CHEAP else LONG_REST) * (now - before) / 1e9)
        self.pool.wait_turn(self.spent, lambda: self.is_abandoned)
        self.check()
