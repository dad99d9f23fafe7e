"""What was asked for, as bytes: equal for equal sources, and different for all that might compile differently.

Values are spelled by `marshal` in its version 2, which tells 1 from 1.0 and True, keeps the order of keys, knows no
types but Python's own and is the same in every process. Nothing is ever read from such bytes but our own copy.
"""

from __future__ import annotations

import marshal
from dataclasses import fields
from operator import attrgetter
from typing import Any

from ..style import Limits, Style

__all__ = ["asked", "copied"]

VERSION = 2
STYLE = attrgetter(*(one.name for one in fields(Style)))
LIMITS = attrgetter(*(one.name for one in fields(Limits)))


def asked(what: Any, style: Style, limits: Limits) -> bytes | None:
    """The bytes; None if there is something in it that they could not tell from another."""
    try:
        return marshal.dumps((what, STYLE(style), LIMITS(limits)), VERSION)
    except (ValueError, AttributeError):
        return None


def copied(spelled: bytes) -> Any:
    """What was asked for, as a copy that nobody else can change. spelled: what `asked` gave."""
    return marshal.loads(spelled)[0]
