"""Load the kernels before measurements, and report their compilation, which happens once per install."""

from __future__ import annotations

import sys
from time import perf_counter

from rich.progress import Progress

from ..compilation.constraint_compiler import compile
from ..engine import batches  # noqa: F401  (with its kernels)
from ..kernels.jit import precompile
from ..vocabulary.vocabulary import Vocabulary
from .display import message_console, print_note

__all__ = ["are_kernels_compiled", "load_kernels"]

WORDS = "compiling kernels, once per install"


def are_kernels_compiled() -> bool:
    """Return whether all kernels, in their current version, are compiled on disk."""
    return precompile.is_compiled()


def load_kernels() -> float:
    """Load all kernels, compiling them if necessary, with a progress bar on stderr (in a pipe a line).

    Return the time in seconds.
    """
    start = perf_counter()
    if not are_kernels_compiled():
        compile_all()
    use_kernels()
    return perf_counter() - start


def compile_all() -> None:
    """Compile the kernels and show the progress."""
    if not sys.stderr.isatty():
        print_note(f"{WORDS} (some twenty seconds on two cores) …")
        precompile.on_progress = lambda done, all_: None
        precompile.compile_all()
        return
    with Progress(console=message_console(), transient=True) as progress:
        task = progress.add_task(WORDS)
        precompile.on_progress = lambda done, all_: progress.update(task, completed=done, total=all_)
        precompile.compile_all()


def use_kernels() -> None:
    """Call every public kernel once, with minimal arguments."""

    schema = {"type": "array", "items": {"type": ["string", "integer", "object"]}, "minItems": 1}
    matcher = compile(Vocabulary.bytes(), schema=schema).matcher()
    matcher.mask()
    matcher.advance_bytes(b'["')
    matcher.advance(97)
    matcher.next_bytes()
    matcher.forced()
    matcher.shortest_completion()
    matcher.mask()
