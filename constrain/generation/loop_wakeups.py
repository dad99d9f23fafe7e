"""Wake-ups of event loops by the thread that steps a model: one for all that a step has to tell a loop.

Waking a loop from another thread is a system call (`loop.call_soon_threadsafe` writes to a socket), during which the
thread gives up the interpreter lock and then waits to have it again. Once for each token, that took a tenth of the time
of a batch of 64 streams.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

__all__ = ["LoopWakeups"]


class LoopWakeups:
    """Events of asyncio that are to be set in their loops. Used by one thread at a time."""

    def __init__(self) -> None:
        self.waiting: dict[asyncio.AbstractEventLoop, set[asyncio.Event]] = {}

    def add(self, loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
        """Note that an event of a loop is to be set."""
        self.waiting.setdefault(loop, set()).add(event)

    def send(self) -> None:
        """Set all events that were noted, with one call of each loop."""
        waiting, self.waiting = self.waiting, {}
        for loop, events in waiting.items():
            try:
                loop.call_soon_threadsafe(set_events, events)
            except RuntimeError:  # the loop was closed; nobody reads
                pass


def set_events(events: Iterable[asyncio.Event]) -> None:
    """Set events of the running loop."""
    for event in events:
        event.set()
