"""Load the kernels before measurements, and report their compilation, where they are compiled on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ..kernels.native import native_library
from .display import message_console, print_note

__all__ = ["announce_compilation", "load_kernels"]

NOTICE = "compiling kernels for this processor, once per checkout: about half a minute …"
Report = Callable[[int, int], None]
"""Called with the number of compiled kernels, first 0, and of all kernels."""


@contextmanager
def announce_compilation() -> Iterator[None]:
    """Announce a compilation of the kernels that begins in the block by a line on stderr; on a terminal with a bar.

    The kernels are compiled when they are first used, unless there is a library of them.
    """
    before = native_library.on_progress
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    progress = Progress(*columns, console=message_console(), transient=True)
    native_library.on_progress = show_bar(progress) if sys.stderr.isatty() else print_start
    try:
        yield
    finally:
        native_library.on_progress = before
        if progress.tasks:
            progress.stop()


def print_start(done: int, count: int) -> None:
    """Print a line when the compilation begins."""
    if not done:
        print_note(NOTICE)


def show_bar(progress: Progress) -> Report:
    """Return a function that prints a line when the compilation begins, and then shows a bar."""

    def report(done: int, count: int) -> None:
        if not done:
            print_note((NOTICE, "dim"))
            progress.start()
            progress.add_task("kernels", total=count)
        progress.update(progress.task_ids[-1], completed=done)

    return report


def load_kernels() -> float:
    """Load all kernels, compiling and announcing them if necessary. Return the time in seconds."""
    start = perf_counter()
    with announce_compilation():
        use_kernels()
    return perf_counter() - start


def use_kernels() -> None:
    """Call every public kernel once, with minimal arguments."""
    from ..compilation.constraint_compiler import compile
    from ..engine import batches  # noqa: F401  (with its kernels)
    from ..vocabulary.vocabulary import Vocabulary

    schema = {"type": "array", "items": {"type": ["string", "integer", "object"]}, "minItems": 1}
    matcher = compile(Vocabulary.bytes(), schema=schema).matcher()
    matcher.mask()
    matcher.advance_bytes(b'["')
    matcher.advance(97)
    matcher.next_bytes()
    matcher.forced()
    matcher.shortest_completion()
    matcher.mask()
