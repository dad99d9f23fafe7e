"""Extension points: functions that one package calls and a higher one implements, as in `Vocabulary.from_pretrained`.

A package imports only lower ones (the table in docs/tour.md). Where the implementation of a public method is in a
higher package, the composition root (`constrain/__init__`) registers a loader under a name, and the method looks the
function up. A loader is called when its function is first needed, so that its module is not imported earlier.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

__all__ = ["find_extension", "register_extension"]

Loader = Callable[[], Callable[..., Any]]


@cache
def _loaders() -> dict[str, Loader]:
    """Return the registered loaders by name."""
    return {}


def register_extension(name: str, load: Loader) -> None:
    """Register a function under a name. `load` imports and returns it. A later registration replaces it."""
    _loaders()[name] = load
    find_extension.cache_clear()


@cache
def find_extension(name: str) -> Callable[..., Any]:
    """Return the function with this name. Raise KeyError if none was registered."""
    return _loaders()[name]()
