"""`cached_property` without a lock.

That of `functools` holds a lock until Python 3.12, one for all instances of a class. A process that forks while another
thread computes such a property leaves the lock taken in the child, which then waits for it forever. Without a lock two
threads may compute a value twice: so a property must give the same value each time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property"]

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:
        """A method whose result is stored under its name in the instance's `__dict__` (as in Python 3.12)."""

        def __init__(self, method: Callable[[Any], Any]) -> None:
            self.method, self.name, self.__doc__ = method, method.__name__, method.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.method(instance)
            return value
