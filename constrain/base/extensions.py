"""Functions that a package names and a package above it provides, such as `Vocabulary.from_pretrained`.

A package imports only those below it. Where a public method belongs to a class below and its work is done above, the
composition root (`constrain/__init__`) registers a loader under a name, and the method looks the function up. A loader
is called when its function is first needed, so that nothing is imported early.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

__all__ = ["find_extension", "register_extension"]

Loader = Callable[[], Callable[..., Any]]


@cache
def _loaders() -> dict[str, Loader]:
    return {}


def register_extension(name: str, load: Loader) -> None:
    """Register the function of that name, which `load` imports and returns. A later registration replaces it."""
    _loaders()[name] = load
    find_extension.cache_clear()


@cache
def find_extension(name: str) -> Callable[..., Any]:
    """Return the function of that name. Raise KeyError if none was registered."""
    return _loaders()[name]()
