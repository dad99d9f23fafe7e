"""The kernels are compiled once per install, and that takes a while: say so, and keep the time out of what is measured."""

from __future__ import annotations

import threading
from pathlib import Path
from time import perf_counter

from .show import note

__all__ = ["compiled", "ready"]

PATIENCE = 1.0
"""Seconds of silence: loading kernels that are compiled already takes less."""


def compiled() -> bool:
    """Whether numba's cache beside the kernels looks complete: an index for each file of them, newer than the file."""
    folder = Path(__file__).parent.parent / "kernels"
    for file in folder.glob("*.py"):
        if "njit" not in file.read_text("utf-8"):
            continue
        indices = [index.stat().st_mtime for index in folder.glob(f"__pycache__/{file.stem}.*.nbi")]
        if not indices or max(indices) < file.stat().st_mtime:
            return False
    return True


def ready(words: str = "compiling kernels, once per install (about half a minute) …") -> float:
    """Loads all kernels, compiling them if need be, with a note on stderr if that is felt: the seconds it took."""
    start = perf_counter()
    timer = threading.Timer(PATIENCE, note, [words])
    if not compiled():
        timer.start()
    try:
        exercise()
    finally:
        timer.cancel()
    return perf_counter() - start


def exercise() -> None:
    """Uses every public kernel once, on next to nothing."""
    from ..compile import compile
    from ..tokens.vocabulary import Vocabulary

    schema = {"type": "array", "items": {"type": ["string", "integer", "object"]}, "minItems": 1}
    matcher = compile(Vocabulary.bytes(), schema=schema).matcher()
    matcher.mask()
    matcher.advance_bytes(b'["')
    matcher.advance(97)
    matcher.next_bytes()
    matcher.forced()
    matcher.shortest_completion()
    matcher.mask()
