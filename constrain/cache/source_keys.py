"""Cache keys: an injective serialisation of source, style and limits.

Values are serialised by `marshal` in version 2, which distinguishes 1, 1.0 and True, preserves the order of keys,
accepts only built-in types and is the same in every process. Only keys made by this process are ever loaded.
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
    """Build the cache key of a request. Return None if the source contains values that cannot be serialised."""
    try:
        return marshal.dumps((source, STYLE(style), LIMITS(limits)), VERSION)
    except (ValueError, AttributeError):
        return None


def copy_source(key: bytes) -> Any:
    """Return an independent copy of the source in a key that `cache_key` returned."""
    return marshal.loads(key)[0]
