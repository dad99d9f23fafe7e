"""Calls of methods that do not keep their object alive.

An object that has another object call it back would be part of a cycle of references, which only Python's garbage
collector frees. What a compile makes is released when its Constraint is, and the collector has less to do: it runs
whenever some hundreds of objects more were made than freed, which may be amid a step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar
from weakref import WeakMethod

__all__ = ["call_weakly"]

P = ParamSpec("P")
T = TypeVar("T")


def call_weakly(method: Callable[P, T]) -> Callable[P, T]:
    """Return a function that calls a bound method. It must not be called after the object of the method is freed."""
    weak = WeakMethod(method)

    def call(*arguments: P.args, **options: P.kwargs) -> T:
        found = weak()
        assert found is not None, "the object of a method that is called must be alive"
        return found(*arguments, **options)

    return call
