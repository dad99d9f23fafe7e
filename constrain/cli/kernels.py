"""The kernels are compiled once per install, which takes a while: say so, and keep it out of what is measured."""

from __future__ import annotations

import threading
from pathlib import Path
from time import perf_counter

from .show import note

__all__ = ["compiled", "ready"]

PATIENCE = 1.0
"""Seconds of silence: loading kernels that are compiled already takes less."""


def compiled() -> bool:
    """Whether numba's cache beside the kernels holds the ones that everything goes through, newer than their file."""
    file = Path(__file__).parent.parent / "kernels" / "masks.py"
    indices = [index.stat().st_mtime for index in file.parent.glob("__pycache__/masks.*.nbi")]
    return bool(indices) and max(indices) >= file.stat().st_mtime


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
