"""Continue a recursion on a new thread, so that a count bounds its depth and not CPython's stack.

CPython bounds frames (and nested calls in C) by thread, 1,000 by default, and the caller may have used many of them.
The algebra of schemas is recursive by nature: whether an array has a value depends on its items. So it counts its
levels and continues on a new stack after every `LEVELS` of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import copy_context
from threading import Thread
from typing import Any, TypeVar

from ....base.errors import LimitError

__all__ = ["LEVELS", "continue_deeper", "run_on_fresh_stack", "run_with_stack"]

T = TypeVar("T")

LEVELS = 24
"""Levels of a recursion on one stack: each needs at most some 20 frames."""
MOST_STACKS = 128
MOST_FRAMES_USED = 150
"""Frames that a caller may have used before `run_with_stack` starts a new stack."""


def continue_deeper(level: int, function: Callable[..., T], *arguments: Any) -> T:
    """Call a function at a level of a recursion, on a new stack if `level` is a multiple of `LEVELS`.

    Raise LimitError beyond `LEVELS * MOST_STACKS` levels.
    """
    if level % LEVELS or not level:
        return function(*arguments)
    if level >= LEVELS * MOST_STACKS:
        raise LimitError(
            f"This schema has a chain of more than {LEVELS * MOST_STACKS:,} subschemas or references.", pointer="",
            hint="Use fewer levels.",
        )  # fmt: skip
    return run_on_fresh_stack(function, *arguments)


def run_with_stack(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function, on a new stack if the caller has used more than `MOST_FRAMES_USED` frames."""
    try:
        sys._getframe(MOST_FRAMES_USED)
    except ValueError:
        return function(*arguments)
    return run_on_fresh_stack(function, *arguments)


def run_on_fresh_stack(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function on another thread in the same context, and wait for it, even if an interrupt arrives.

    Raise LimitError if the process may not start another thread.
    """
    context = copy_context()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(context.run(function, *arguments))
        except BaseException as error:  # handed to the caller, below
            errors.append(error)

    thread = Thread(target=run, name="constrain-fresh-stack", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:  # CPython raises it if the system refuses the thread.
        raise LimitError(
            "This schema is nested so deeply that it needs another thread, and this process may not start one.",
            pointer="", hint="Use fewer levels, or let the process have more threads and address space.",
        ) from error  # fmt: skip
    try:
        thread.join()
    finally:
        thread.join()
    if errors:
        raise errors[0]
    return results[0]
