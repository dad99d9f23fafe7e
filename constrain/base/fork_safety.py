"""What a forked child has to repair: locks and half-written state of threads that exist only in its parent.

A fork copies memory, but of all threads only the one that called it. What another thread was just writing stays half
written in the child, and a lock that it held stays locked for ever. So objects with locks, or that belong to a thread,
register here, and `after_fork` of each is called in the child before anything else runs there.

Nothing is shared with the parent but pages that are copied when either of the two writes to them.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

__all__ = ["ForkHandlers", "fork_handlers"]


class Forkable(Protocol):
    """An object that a child repairs."""

    def after_fork(self) -> None:
        """Repair this object in a forked child, in the only thread that there is."""
        ...


class ForkHandlers:
    """Objects to repair after a fork, held weakly, in the order in which their classes registered first."""

    def __init__(self) -> None:
        self._objects: dict[type, WeakSet[Forkable]] = {}
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.run)

    def add(self, one: Forkable) -> None:
        """Call `one.after_fork()` in every child that is forked while `one` is alive."""
        self._objects.setdefault(type(one), WeakSet()).add(one)

    def run(self) -> None:
        """Repair all objects."""
        for kind in list(self._objects.values()):
            for one in list(kind):
                one.after_fork()


fork_handlers = ForkHandlers()
"""Those of this process."""
