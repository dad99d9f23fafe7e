"""The style of bare Python types, such as `type=int` and `type=list[float]`: numbers that 64 bits hold.

A bare type shows a model nothing of what to write, and some answers run on: of 200 lists of integers by the embedded
model, one had a number of 40 digits, the limit of the default style. So where no style is given, numbers of bare types
have at most 18 digits in a row. White space is that of the default style: without any, where this model would begin a
line it writes digits instead (`python -m bench bare_types` has the figures). A schema, a class with fields and every
style that is given are taken as they are.
"""

from __future__ import annotations

from typing import Any

from ..base.options import Style
from ..frontends.python_types import to_schema
from .generation_arguments import ConstraintRequest

__all__ = ["BARE_STYLE", "choose_style", "is_bare"]

BARE_STYLE = Style(digits=18)
"""The style of bare types where none is given."""


def choose_style(request: ConstraintRequest, style: Style) -> Style:
    """Return the style for a request: BARE_STYLE for a bare type if the style is the default, else the given one."""
    tp = request.find_type()
    is_default = isinstance(style, Style) and style == Style()
    return BARE_STYLE if is_default and tp is not None and is_bare(to_schema(tp)) else style


def is_bare(schema: dict[str, Any]) -> bool:
    """Return whether the schema of a type has scalars, and arrays of them, but no objects and no definitions."""
    todo: list[Any] = [schema]
    while todo:
        part = todo.pop()
        if isinstance(part, list):
            todo.extend(part)
        elif isinstance(part, dict):
            if part.get("type") == "object" or "$ref" in part or ("type" not in part and not part.keys() & SCALAR_KEYS):
                return False
            todo.extend(part[name] for name in ("items", "prefixItems", "anyOf", "allOf") if name in part)
    return True


SCALAR_KEYS = frozenset(("enum", "const", "anyOf", "allOf", "items"))
"""Keywords of schemas without `type` that allow no object by themselves; `enum` lists values as they are."""
