"""Tell the caller of a public function, by Python's warnings, what in a schema asserts nothing."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any

from ....base.errors import SchemaWarning
from ....base.json_documents import load_document
from ....base.options import Limits, Style
from ....base.work import work_budget
from .suspicious_keywords import build_warnings, find_suspicious_names

__all__ = ["list_schema_warnings", "warn_of_schema"]

PACKAGE = __name__.partition(".")[0]


def list_schema_warnings(
    schema: Any, registry: Mapping[str, Any] | None, style: Style, limits: Limits
) -> tuple[str, ...]:
    """Return what there is to warn of in a schema. Raise SchemaError or LimitError for what is no document."""
    with work_budget(limits.work):
        return build_warnings(find_suspicious_names(load_document(schema, limits), registry, style, limits))


def warn_of_schema(messages: tuple[str, ...]) -> None:
    """Warn with `SchemaWarning`, at the line of the nearest caller that is not a module of this package."""
    if messages:
        level = _outside()
        for message in messages:
            warnings.warn(message, SchemaWarning, stacklevel=level)


def _outside() -> int:
    """The `stacklevel` for `warn_of_schema` that names the line from which this package was called."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        frame, level = frame.f_back, level + 1
    return level
