"""Fork safety: repair locks and inconsistent state in a forked child.

A fork copies the memory of the process, but only the thread that called it. Data that another thread was writing is
inconsistent in the child, and a lock that it held stays locked forever. So objects that have locks or belong to a
thread register here, and their `after_fork` method is called in the child before any other code runs. Objects whose
other threads run code with locks of its own, such as a forward pass of a model, also register as pauses: a fork waits
until they have paused. Objects that cannot be repaired when they are copied half written, such as a front end that is
emitting a rule, register their lock: a fork holds it, and so never happens while another thread writes.

Parent and child share no memory except pages that are copied on write.
"""

from __future__ import annotations

import os
import threading
from time import monotonic
from typing import Generic, Protocol, TypeVar
from weakref import ref

__all__ = ["ForkHandlers", "fork_handlers"]


LOCK_SECONDS = 30.0
"""Seconds after which a fork no longer waits for locks: whoever holds one may be waiting for the thread that forks."""


class Forkable(Protocol):
    """An object that must be repaired in a forked child."""

    def after_fork(self) -> None:
        """Repair this object in a forked child, whose only thread is the caller."""
        ...


class Pausable(Protocol):
    """An object whose threads must pause while the process is forked."""

    def before_fork(self) -> None:
        """Pause. Called in the thread that forks."""
        ...

    def after_fork_in_parent(self) -> None:
        """Go on. Called in the same thread, not in the child."""
        ...


class Locked(Protocol):
    """An object that must not be copied to a child while another thread holds its lock."""

    lock: threading.RLock

    def after_fork(self) -> None:
        """Replace the lock, which the thread that forked holds, in a forked child."""
        ...


T = TypeVar("T")


class WeakReferences(set["ref[T]"], Generic[T]):
    """Weak references to objects that are equal only to themselves. (A `WeakSet` takes four times as long.)"""

    def hold(self, item: T) -> None:
        """Add an object, until it is deleted."""
        self.add(ref(item, self.discard))

    def items(self) -> list[T]:
        """Return the objects that are alive."""
        return [item for one in list(self) if (item := one()) is not None]


class ForkHandlers:
    """Weak references to the objects to repair after a fork, in the order in which their classes were first added."""

    def __init__(self) -> None:
        self._objects: dict[type, WeakReferences[Forkable]] = {}
        self._pauses = WeakReferences[Pausable]()
        self._locked = WeakReferences[Locked]()
        self._held: list[threading.RLock] = []  # locks that the thread that forks has acquired
        self._forking = threading.RLock()  # two threads that fork must not wait for locks of each other
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self.pause, after_in_parent=self.resume, after_in_child=self.run)

    def add_pause(self, item: Pausable) -> None:
        """Call `item.before_fork()` before, and `item.after_fork_in_parent()` after every fork while it is alive."""
        self._pauses.hold(item)

    def add_locked(self, item: Locked) -> None:
        """Hold `item.lock` during every fork while `item` is alive, and call `item.after_fork()` in the child."""
        locked = self._locked
        locked.add(ref(item, locked.discard))  # what `hold` does, for each Program

    def pause(self) -> None:
        """Call `before_fork` of all objects, and acquire all locks: in this order, since paused threads use them."""
        self._forking.acquire()
        for item in self._pauses.items():
            item.before_fork()
        deadline = monotonic() + LOCK_SECONDS
        for locked in self._locked.items():
            lock = locked.lock
            if lock.acquire(timeout=max(0.0, deadline - monotonic())):
                self._held.append(lock)

    def resume(self) -> None:
        """Release all locks, and call `after_fork_in_parent` of all objects."""
        while self._held:
            self._held.pop().release()
        for item in self._pauses.items():
            item.after_fork_in_parent()
        self._forking.release()

    def add(self, item: Forkable) -> None:
        """Call `item.after_fork()` in every child that is forked while `item` is alive."""
        objects = self._objects.get(type(item))
        if objects is None:
            objects = self._objects.setdefault(type(item), WeakReferences())
        objects.add(ref(item, objects.discard))  # what `hold` does, for each state cache

    def run(self) -> None:
        """Call `after_fork` of all objects, which replace their locks."""
        self._held, self._forking = [], threading.RLock()
        for locked in self._locked.items():
            locked.after_fork()
        for items in list(self._objects.values()):
            for item in items.items():
                item.after_fork()


fork_handlers = ForkHandlers()
"""The registry of this process."""
