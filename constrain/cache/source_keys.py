"""Cache keys: an injective serialisation of source, style and limits.

Values are written by `marshal` in its version 2, which tells 1 from 1.0 and True, keeps the order of keys, knows only
Python's built-in types and is the same in every process. Only keys that were made here are ever read back.
"""

from __future__ import annotations

import marshal
from dataclasses import fields
from operator import attrgetter
from typing import Any

from ..base.options import Limits, Style

__all__ = ["cache_key", "copy_source"]

VERSION = 2
STYLE = attrgetter(*(one.name for one in fields(Style)))
LIMITS = attrgetter(*(one.name for one in fields(Limits)))


def cache_key(source: Any, style: Style, limits: Limits) -> bytes | None:
    """Build the cache key of a request. Return None if the source holds values that a key could not tell apart."""
    try:
        return marshal.dumps((source, STYLE(style), LIMITS(limits)), VERSION)
    except (ValueError, AttributeError):
        return None


def copy_source(key: bytes) -> Any:
    """Return the source in a key, as a copy that nobody else can change. key: what `cache_key` gave."""
    return marshal.loads(key)[0]
